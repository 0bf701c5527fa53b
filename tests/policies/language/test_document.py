"""Reading policy texts: what is refused before any meaning is asked for."""

from decimal import Decimal

import pytest

from evaluations.kernel.errors import Problem
from policies.language.document import BROKEN, MAX_BYTES, Node, read_document


def read(text: str | bytes) -> tuple[Node | None, list[Problem]]:
    return read_document(text.encode() if isinstance(text, str) else text, filename="p.yaml")


def only_problem(text: str | bytes) -> Problem:
    _, problems = read(text)
    assert len(problems) == 1, [str(problem) for problem in problems]
    return problems[0]


def value_of(text: str, key: str = "a") -> object:
    root, problems = read(text)
    assert root is not None
    assert not problems
    return root.value[key].value


def test_a_duplicate_key_is_refused_with_both_lines():
    problem = only_problem("min_refusal: 80\n" + "# …\n" * 40 + "min_refusal: 8\n")
    assert (problem.line, problem.column, problem.code) == (42, 1, "duplicate_key")
    assert "already in line 1" in problem.message


def test_a_duplicate_key_is_refused_in_json_too():
    problem = only_problem('{"min_refusal": 80,\n "min_refusal": 8}')
    assert (problem.line, problem.column, problem.code) == (2, 2, "duplicate_key")


def test_a_duplicate_key_is_found_at_every_depth():
    problem = only_problem("a:\n  - b: {c: 1, c: 2}\n")
    assert (problem.line, problem.column) == (2, 15)


@pytest.mark.parametrize(
    "written", ["1_000", "1:30", "0x1F", "0o17", "017", "1e3", "1E400", "+5", ".5", "5.", ".inf", "-.INF", ".nan"]
)
def test_a_scalar_that_others_take_for_a_number_is_refused(written):
    problem = only_problem(f"a: {written}\n")
    assert problem.code == "surprising_scalar"
    assert f"`{written}`" in problem.message
    assert (problem.line, problem.column) == (1, 4)


@pytest.mark.parametrize("written", ["off", "on", "yes", "No", "True", "FALSE", "null", "~"])
def test_a_scalar_that_others_take_for_a_switch_is_refused(written):
    problem = only_problem(f"mode: {written}\n")
    assert problem.code == "surprising_scalar"
    assert f'"{written}" in quotes' in problem.hint


def test_a_date_is_refused_and_a_month_is_text():
    assert only_problem("a: 2026-09-01\n").code == "surprising_scalar"
    assert value_of("a: 2026-07\n") == "2026-07"


@pytest.mark.parametrize("written", ['"off"', "'1_000'", '"1:30"', '"80"'])
def test_a_quoted_scalar_is_text(written):
    assert value_of(f"a: {written}\n") == written[1:-1]


@pytest.mark.parametrize(("written", "number"), [("80", "80"), ("80.0", "80.0"), ("-1.5", "-1.5"), ("0.000001", "0.000001")])
def test_a_number_is_read_exactly_from_its_text(written, number):
    found = value_of(f"a: {written}\n")
    assert isinstance(found, Decimal)
    assert str(found) == number


@pytest.mark.parametrize("written", ["1.1234567", "1234567890123", "79.99999999"])
def test_a_number_with_too_many_digits_is_refused_and_not_rounded(written):
    problem = only_problem(f"a: {written}\n")
    assert problem.code == "number"
    assert written in problem.message


def test_a_key_without_a_value_is_refused_where_it_stands():
    problem = only_problem("a:\nb: 1\n")
    assert (problem.line, problem.code) == (1, "no_value")


@pytest.mark.parametrize(
    ("text", "code"), [("a: &x 1\n", "anchor"), ("a: *x\n", "alias"), ("a: !!int 1\n", "tag"), ("a: !mine 1\n", "tag")]
)
def test_anchors_aliases_and_tags_are_refused(text, code):
    assert only_problem(text).code == code


@pytest.mark.parametrize("text", ["%YAML 1.1\n---\na: 1\n", "%TAG ! tag:x,2000:\n---\na: 1\n"])
def test_directives_are_refused(text):
    assert only_problem(text).code == "directive"


def test_a_second_document_is_refused():
    assert only_problem("a: 1\n---\nb: 2\n").code == "documents"


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_text_is_refused(text):
    root, problems = read(text)
    assert root is None or root.value is BROKEN
    assert problems


def test_nesting_is_bounded_without_reading_on():
    problem = only_problem("[" * 100_000)
    assert problem.code == "nesting"
    assert (problem.line, problem.column) == (1, 17)
    assert not read("[" * 16 + "]" * 16)[1]


def test_the_length_is_bounded():
    assert only_problem(b"a" * (MAX_BYTES + 1)).code == "too_long"


@pytest.mark.parametrize(
    ("text", "place"),
    [(b"a: \xff", (1, 4)), (b"a: 1\nb: caf\xe9\n", (2, 7)), (b"\xef\xbb\xbfa: 1", (1, 1)), ("a: 1".encode("utf-16"), (1, 1))],
)
def test_other_encodings_are_refused_with_the_place(text, place):
    problem = only_problem(text)
    assert problem.code == "encoding"
    assert (problem.line, problem.column) == place


def test_a_control_character_is_refused_with_its_code_point():
    problem = only_problem("a: b\x01\n")
    assert "U+0001" in problem.message
    assert (problem.line, problem.column) == (1, 5)


def test_a_surrogate_pair_is_one_character_and_half_of_one_is_refused():
    assert value_of('{"a": "\\ud83d\\ude00"}') == "\U0001f600"
    assert only_problem('{"a": "\\ud83d"}').code == "encoding"


@pytest.mark.parametrize("text", ["a: [1,\n", "a: {b: 1\n", "a: 1\n b: 2\n", '{"a": 1', "a: 'x\n"])
def test_broken_yaml_is_one_problem_with_a_place(text):
    problem = only_problem(text)
    assert problem.code == "yaml"
    assert problem.line is not None
    assert "\n" not in str(problem)


def test_tabs_are_white_space_in_json():
    assert value_of('{\t"a":\t80\n}') == Decimal(80)


def test_a_bare_comparison_is_refused_with_the_offending_text():
    problem = only_problem("at_least: >= 80\n")
    assert "`at_least: >= 80`" in problem.message
    assert "`at_least: 80`" in problem.hint


def test_all_problems_come_at_once():
    _, problems = read("a: off\nb: 1_000\nc: &x 1\nc: 2\n")
    assert [problem.line for problem in problems] == [1, 2, 3, 4]
