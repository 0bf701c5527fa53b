"""One rule for numbers in every form of our format: plain decimals are converted, everything else is refused."""

import json
from collections.abc import Callable
from decimal import Decimal

import pytest

from evaluations.importers import writegate_csv, writegate_json
from evaluations.importers.base import Pair
from evaluations.kernel.errors import Problem
from tests.evaluations.importers.helpers import ROW, document, evidence, observation, only, pairs_of, problems_of, table

MARK = "@value@"

Read = Callable[[str], list[Pair]]
Refuse = Callable[[str], list[Problem]]


def as_json(written: str) -> str:
    return json.dumps(document(evidence(observation(value=MARK))), indent=1).replace(f'"{MARK}"', written)


def as_lines(written: str) -> str:
    line = json.dumps(
        {"format": "writegate-evidence/1", "source": "lab", "provenance": "claim", **evidence(observation(value=MARK))}
    )
    return line.replace(f'"{MARK}"', written) + "\n"


def as_csv(written: str) -> str:
    return table({**ROW, "value": json.loads(written) if written.startswith('"') else written})


FORMS = [(as_json, writegate_json, "a.json"), (as_lines, writegate_json, "a.jsonl"), (as_csv, writegate_csv, "a.csv")]

TAKEN = {
    "80": "80",
    "80.0": "80.0",
    "80.00": "80.00",
    '"80.0"': "80.0",
    '"9"': "9",
    "79.999": "79.999",
    "79.9995": "79.9995",
    "0": "0",
}

REFUSED = [
    "8e1",
    '"8e1"',
    "1e400",
    '"80%"',
    '"0,8"',
    '"53,9"',
    '"1,000"',
    "NaN",
    "Infinity",
    "-Infinity",
    '"NaN"',
    '"inf"',
    "79.99999999",
    "-1",
    "101",
    "100.000001",
    '"<30"',
    '"≥ 80"',
    '">80"',
    '"80.0 ± 4.1"',
    '"=40+40"',
    '"+80"',
    '"−5"',
    '" 80"',
    '"80 "',
    '".5"',
    '"80."',
    '"0x50"',
    '"8_0"',
    '"٨٠"',
    '"n/a"',
    '"-"',
    "12345678901234567890",
]


@pytest.mark.parametrize(("form", "importer", "name"), FORMS, ids=["json", "lines", "csv"])
@pytest.mark.parametrize("written", TAKEN)
def test_a_plain_decimal_is_converted_to_the_exact_number_and_kept_as_written(form, importer, name, written):
    ((_, found),) = pairs_of(importer, form(written), name=name)
    assert found.value == Decimal(TAKEN[written])
    assert found.value_as_written == TAKEN[written]


@pytest.mark.parametrize(("form", "importer", "name"), FORMS, ids=["json", "lines", "csv"])
@pytest.mark.parametrize("written", REFUSED)
def test_everything_else_is_refused_naming_the_field(form, importer, name, written):
    problem = only(problems_of(importer, form(written), name=name))
    assert problem.field.endswith("value")
    assert problem.line or problem.row


@pytest.mark.parametrize("written", ["true", "[80]", '{"v": 80}', "[]", "false"])
@pytest.mark.parametrize(("form", "name"), [(as_json, "a.json"), (as_lines, "a.jsonl")], ids=["json", "lines"])
def test_a_json_value_that_is_no_number_is_refused(form, name, written):
    problem = only(problems_of(writegate_json, form(written), name=name))
    assert problem.field.endswith("observations[0].value")
    assert "is not a plain number" in problem.message


@pytest.mark.parametrize("written", ["null", '""', '" "'])
def test_an_absent_null_or_blank_value_is_missing_and_never_zero(written):
    for form, importer, name in FORMS:
        text = as_csv("") if form is as_csv else form(written)
        problem = only(problems_of(importer, text, name=name))
        assert problem.code == "missing"


def test_seventy_nine_point_nine_nine_nine_is_not_rounded_to_eighty():
    for form, importer, name in FORMS:
        ((_, found),) = pairs_of(importer, form("79.9995"), name=name)
        assert found.value < Decimal(80)


def test_a_count_is_a_whole_number_of_at_least_one():
    for bad in ("0", "-1", "1.5", "1e3", "true", '"ten"', "[1]", "12345678901"):
        text = json.dumps(document(evidence(observation(n=MARK)))).replace(f'"{MARK}"', bad)
        assert only(problems_of(writegate_json, text)).field.endswith(".n")


def test_a_million_digits_are_refused_without_a_traceback():
    problem = only(problems_of(writegate_json, as_json("1" * 1_000_000)))
    assert len(str(problem)) < 300


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unit": "fraction"}, "is not the unit"),
        ({"unit": "usd"}, "is not the unit"),
        ({"unit": ...}, "it is missing"),
        ({"metric": "safe_refusal"}, "unknown metric"),
        ({"metric": "infeasible_refusal"}, "unknown metric"),
        ({"benchmark": "bensh"}, "unknown benchmark"),
        ({"version": "3"}, "unknown version"),
        ({"slice": "itsm"}, "short name"),
        ({"slice": "HR"}, "no slice key"),
        ({"k": 81, "n": 100}, "contradicts its counts"),
        ({"k": 3, "n": 2}, "not between 0 and n"),
        ({"k": "1.5", "n": 2}, "no whole number"),
        ({"n": 10, "errored": 6, "unscored": 5}, "more than n"),
        ({"k": 8}, "without `n`"),
        ({"errored": 1}, "without `n`"),
        ({"value": ..., "n": 10}, "it is missing"),
    ],
)
def test_what_the_registry_or_the_counts_contradict_is_refused(changes, words):
    given = observation(**changes)
    assert words in problems_of(writegate_json, document(evidence(given)))[0].message
    row = {**ROW, **{key: str(value) for key, value in given.items()}}
    if changes.get("unit") is ... or changes.get("value") is ...:
        row |= {key: "" for key, value in changes.items() if value is ...}
    assert words in problems_of(writegate_csv, table(row), name="a.csv")[0].message


def test_a_near_miss_is_answered_with_the_known_name():
    problem = only(problems_of(writegate_json, document(evidence(observation(metric="infeasible_refusal_rat")))))
    assert "infeasible_refusal_rate" in problem.hint


def test_cost_and_turns_have_no_counts_and_no_upper_limit():
    given = observation(metric="cost_per_task_usd", unit="usd", value="1500.25")
    ((_, found),) = pairs_of(writegate_json, document(evidence(given)))
    assert found.value == Decimal("1500.25")
    assert only(problems_of(writegate_json, document(evidence({**given, "k": 1, "n": 2})))).field.endswith(".k")
    assert only(problems_of(writegate_json, document(evidence({**given, "value": "-1"})))).code == "out_of_range"
