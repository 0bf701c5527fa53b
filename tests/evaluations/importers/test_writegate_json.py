import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.importers import writegate_json
from evaluations.importers.base import MAX_PROBLEMS, DocumentDraft
from evaluations.kernel.errors import InputRefused
from tests.evaluations.importers.helpers import OBSERVATION, document, evidence, observation, only, pairs_of, problems_of

LINE = {"format": "writegate-evidence/1", "source": "lab", "provenance": "claim"}


def lines(*values: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def test_every_field_arrives_in_its_draft():
    given = document(
        {
            "subject": "Model A (with fallback)",
            "answered_by": ["model-a-20261001", "model-b"],
            "about": "agent",
            "run": {"status": "partial", "ended_at": "2026-11-01T02:00:00+02:00"},
            "published_at": "2026-11-03",
            "harness": {"name": "Harness", "version": "1.2"},
            "note": "first line\nsecond line",
            "supersedes": "0b9f2c1e-0000-4000-8000-000000000000",
            "provenance": "run_log",
            "observations": [
                {
                    **OBSERVATION,
                    "slice": "hr",
                    "value": "66.7",
                    "k": "6.666666",
                    "n": 10,
                    "repeats": 3,
                    "errored": 1,
                    "unscored": 0,
                    "as_written": "66.7%",
                    "judge": {
                        "models": ["judge-1"],
                        "rule": "majority",
                        "is_subject": False,
                        "agreement": 97.4,
                        "agreement_n": 500,
                        "kappa": -0.02,
                    },
                }
            ],
        }
    )
    ((draft, found),) = pairs_of(writegate_json, given)
    assert draft == (
        "Model A (with fallback)",
        "lab",
        "run_log",
        "partial",
        "Harness 1.2",
        datetime(2026, 11, 1, tzinfo=UTC),
        datetime(2026, 11, 3, tzinfo=UTC),
        ("model-a-20261001", "model-b"),
        "agent",
        "evidence[0]",
        "first line\nsecond line",
        "0b9f2c1e-0000-4000-8000-000000000000",
    )
    assert found[:4] == ("infeasible_refusal_rate", "bench", "1", "hr")
    assert found.value == Decimal("66.666660")
    assert found[5:11] == ("66.7%", Decimal("6.666666"), 10, 3, 1, 0)
    assert found.judge == {
        "models": ["judge-1"],
        "rule": "majority",
        "is_subject": False,
        "agreement": "97.4",
        "agreement_n": 500,
        "kappa": "-0.02",
    }
    assert found.locator == "evidence[0].observations[0]"


def test_what_is_left_out_has_its_documented_default():
    ((draft, found),) = pairs_of(writegate_json, document(evidence(run=...)))
    assert (draft.run_status, draft.about, draft.harness, draft.run_ended_at) == ("unknown", "model", "", None)
    assert (found.slice, found.k, found.n, found.judge) == ("overall", None, None, None)


def test_all_observations_of_one_evidence_come_with_the_same_draft():
    given = document(evidence(observation(), observation(slice="hr")))
    (first, _), (second, _) = pairs_of(writegate_json, given)
    assert first is second


def test_null_is_the_same_as_absent():
    given = document(evidence(observation(k=None, n=None, judge=None, slice=None), note=None, harness=None, answered_by=None))
    assert len(pairs_of(writegate_json, given)) == 1


def test_the_date_of_the_document_holds_for_evidence_that_states_none():
    given = document(evidence(), evidence(subject="B", published_at="2026-01-02"), document={"published_at": "2026-01-01"})
    (first, _), (second, _) = pairs_of(writegate_json, given)
    assert first.published_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert second.published_at == datetime(2026, 1, 2, tzinfo=UTC)


def test_the_source_may_come_with_the_command_but_may_not_differ():
    ((draft, _),) = pairs_of(writegate_json, document(source=...), source="press")
    assert draft.source == "press"
    assert len(pairs_of(writegate_json, document(source="lab"), source="lab")) == 1
    assert "the command says `press`" in only(problems_of(writegate_json, document(), source="press")).message
    assert only(problems_of(writegate_json, document(source=...))).code == "missing"
    assert only(problems_of(writegate_json, document(source="labs"))).code == "unknown_source"


def test_json_lines_take_a_header_line_or_repeat_the_header():
    with_header = lines(LINE, evidence(), evidence(subject="B"))
    repeated = lines({**LINE, **evidence()}, {**LINE, **evidence(subject="B")})
    for text, name in [(with_header, "a.jsonl"), (repeated, "a.ndjson"), (with_header, "a.json"), (repeated, "a.json")]:
        found = pairs_of(writegate_json, text, name=name)
        assert [draft.subject_as_written for draft, _ in found] == ["Model A", "B"]
        assert {draft.provenance for draft, _ in found} == {"claim"}


def test_one_line_without_a_line_end_is_json_lines_too():
    assert len(pairs_of(writegate_json, json.dumps({**LINE, **evidence()}), name="a.json")) == 1


def test_a_document_on_one_line_is_a_document():
    assert len(pairs_of(writegate_json, json.dumps(document()) + "\n", name="a.json")) == 1


def test_problems_in_json_lines_name_the_line():
    text = lines(LINE, evidence()) + "\n" + lines(evidence(observation(value="x"), subject="B")) + '{"subject": \n'
    first, second = problems_of(writegate_json, text, name="a.jsonl")
    assert (first.line, first.field) == (4, "observations[0].value")
    assert (second.line, second.code) == (5, "malformed")


def test_all_problems_of_json_lines_are_told_at_once():
    bad = evidence(observation(value="x"))
    text = lines(LINE, bad, evidence(subject="B")) + "{\n" + lines(evidence(subject="C"), bad) + '{"subject": 1, "subject": 2}\n'
    assert [problem.line for problem in problems_of(writegate_json, text, name="a.jsonl")] == [2, 4, 6, 7]


def test_every_line_of_json_lines_is_an_evidence_object():
    for bad in ("null", "[]", "5", "{}"):
        text = lines(LINE, evidence()) + bad + "\n"
        assert {problem.line for problem in problems_of(writegate_json, text, name="a.jsonl")} == {3}
    assert only(problems_of(writegate_json, lines(LINE), name="a.jsonl")).code == "empty"


def test_a_line_without_format_and_without_a_header_line_is_refused():
    assert (
        only(problems_of(writegate_json, lines(evidence(source="lab", provenance="claim")), name="a.jsonl")).code
        == "unknown_format"
    )


def test_problems_in_a_document_name_the_line_of_the_value():
    text = json.dumps(document(evidence(observation(value="80%"))), indent=1)
    problem = only(problems_of(writegate_json, text))
    assert "80%" in text.splitlines()[problem.line - 1]
    assert problem.field == "evidence[0].observations[0].value"


def test_all_problems_are_told_at_once_in_the_order_of_the_file():
    given = document(
        evidence(observation(unit="fraction"), subject=""),
        evidence(observation(metric="x"), run={"status": "done", "ended_at": "yesterday"}, about="robot", surprise=1),
        provenance="gossip",
    )
    fields = [problem.field for problem in problems_of(writegate_json, given)]
    assert fields == [
        "evidence[0].subject",
        "evidence[0].provenance",
        "evidence[0].observations[0].unit",
        "evidence[1].surprise",
        "evidence[1].provenance",
        "evidence[1].run.status",
        "evidence[1].run.ended_at",
        "evidence[1].about",
        "evidence[1].observations[0].metric",
    ]


def test_fifty_problems_are_enough():
    problems = problems_of(writegate_json, document(evidence(*[observation(value="x")] * 80)))
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1].code == "and_more"


def test_duplicate_keys_are_refused_with_both_lines():
    text = '{"format": "writegate-evidence/1",\n "source": "lab",\n "evidence": [],\n "source": "press"}'
    problem = only(problems_of(writegate_json, text))
    assert (problem.code, problem.line, problem.field) == ("duplicate_key", 4, "source")
    assert "line 2" in problem.message
    nested = json.dumps(document()).replace('"value": "80.0"', '"value": "8.0", "value": "80.0"')
    assert only(problems_of(writegate_json, nested)).field == "evidence[0].observations[0].value"


def test_duplicate_observations_are_refused_whatever_their_values():
    given = document(evidence(observation(), observation(value="81")))
    problem = only(problems_of(writegate_json, given))
    assert (problem.code, problem.field) == ("duplicate", "evidence[0].observations[1]")
    two = document(evidence(), evidence(observation(value="1")))
    assert only(problems_of(writegate_json, two)).code == "duplicate"
    other_run = document(evidence(), evidence(run={"status": "complete", "ended_at": "2026-11-02"}))
    assert len(pairs_of(writegate_json, other_run)) == 2


SPELLINGS = {
    "metric": ["infeasible_refusal_rate", "harmful_completion_rate", "unknown_rate", None, 1],
    "version": ["1", 1, "2", "3", None],
    "unit": ["percent", "tasks"],
    "slice": ["hr", None, 7, ["hr"]],
    "value": ["80.0", 80.0, "80", 80, None, True, "8e1"],
    "k": [8, "8", None, 8.5, [8]],
    "n": [10, "10", None, 0],
    "errored": [0, None, 3],
    "as_written": ["80", 80, None],
}


@given(st.lists(st.fixed_dictionaries({name: st.sampled_from(held) for name, held in SPELLINGS.items()}), min_size=2, max_size=7))
def test_what_was_read_before_is_read_as_if_it_were_the_first(seen):
    items = [evidence(observation(**each), subject=f"model-{number}") for number, each in enumerate(seen)]

    def read(*some):
        try:
            return [found[:-1] for _, found in pairs_of(writegate_json, document(*some))], []
        except InputRefused as refused:
            return [], [problem.message for problem in refused.problems]

    alone = [read(item) for item in items]
    problems = [problem for _, told in alone for problem in told]
    assert read(*items) == ([] if problems else [found for pairs, _ in alone for found in pairs], problems)


WHOLE = json.dumps(document(), indent=1).encode()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty"),
        (WHOLE[: len(WHOLE) // 2], "malformed"),
        (WHOLE[:-2], "malformed"),
        (WHOLE + b"}", "malformed"),
        (b"\xef\xbb\xbf" + WHOLE, "byte_order_mark"),
        (WHOLE.decode().encode("utf-16"), "encoding"),
        (WHOLE.decode().encode("utf-16-le"), "encoding"),
        (WHOLE.replace(b"Model A", "Modèle".encode("latin-1")), "encoding"),
        (WHOLE.replace(b"Model A", b"Model \x00"), "encoding"),
        (WHOLE.replace(b"Model A", b"Model \\u0000"), "invalid"),
        (WHOLE.replace(b"Model A", b"Model \\ud800"), "invalid"),
        (WHOLE.replace(b"Model A", b" Model A"), "invalid"),
        (b"[" * 100_000, "malformed"),
        (b'{"a":' * 900 + b"1" + b"}" * 900, "unknown_field"),
        (b"[1]", "invalid"),
        (b"null", "invalid"),
        (b"{}", "unknown_format"),
        (b'"text"', "invalid"),
        (b"<html></html>", "malformed"),
        (json.dumps(document(format="writegate-evidence/2")).encode(), "unknown_format"),
        (json.dumps({**document(), "evidence": []}).encode(), "invalid"),
        (json.dumps(document("x")).encode(), "invalid"),
        (json.dumps(document(evidence("x"))).encode(), "invalid"),
        (json.dumps(document(evidence(subject=5))).encode(), "invalid"),
        (json.dumps(document(evidence(answered_by="x"))).encode(), "invalid"),
        (json.dumps(document(evidence(run=[]))).encode(), "invalid"),
        (json.dumps(document(evidence(harness={"version": "1"}))).encode(), "missing"),
        (json.dumps(document(document={"url": "javascript:x"})).encode(), "invalid"),
    ],
)
def test_a_file_that_cannot_be_read_gets_a_message_and_never_a_traceback(content, code):
    assert code in {problem.code for problem in problems_of(writegate_json, content)}


def test_a_byte_that_is_not_utf_8_is_named_with_offset_and_line():
    content = WHOLE.replace(b"Model A", "Modèle".encode("latin-1"))
    problem = only(problems_of(writegate_json, content))
    place = content.index(b"\xe8")
    assert f"offset {place}" in problem.message
    assert problem.line == content[:place].count(b"\n") + 1


@pytest.mark.parametrize(
    "written",
    [
        "2026-11-01T12:00:00",
        "2026-11",
        "01.11.2026",
        "2026-13-01",
        "2026-11-01 12:00Z",
        "2026-02-30",
        "0001-01-01T00:00:00+10:00",
        1761955200,
    ],
)
def test_an_instant_without_offset_or_outside_the_calendar_is_refused(written):
    assert only(problems_of(writegate_json, document(evidence(published_at=written)))).code == "not_an_instant"


def test_a_document_larger_than_the_limit_is_refused_while_lines_are_streamed(monkeypatch):
    monkeypatch.setattr(writegate_json, "MAX_JSON_BYTES", 1024 * 1024)
    many = document(*[evidence(subject=f"Model {index}") for index in range(6000)])
    assert only(problems_of(writegate_json, many)).code == "too_large"
    text = lines(LINE, *[evidence(subject=f"Model {index}") for index in range(6000)])
    assert len(text) > 1024 * 1024
    assert len(pairs_of(writegate_json, text, name="a.jsonl")) == 6000


def test_describe_reads_the_document_and_leaves_problems_to_read():
    given = document(document={"title": "T", "url": "https://example.org/a", "publisher": "P", "licence": "L"})
    draft = writegate_json.describe(io.BytesIO(json.dumps(given).encode()), name="a.json")
    assert draft == DocumentDraft("T", "https://example.org/a", "P", "L")
    text = lines({**LINE, "document": {"title": "T"}}, evidence())
    assert writegate_json.describe(io.BytesIO(text.encode()), name="a.jsonl").title == "T"
    assert writegate_json.describe(io.BytesIO(b"{"), name="a.json") == DocumentDraft()


@pytest.mark.parametrize("kappa", ["1.01", "-2", "41", True, "high"])
def test_a_kappa_is_a_number_from_minus_one_to_one(kappa):
    with pytest.raises(InputRefused, match="kappa"):
        pairs_of(writegate_json, document(evidence(observation(judge={"models": ["j"], "kappa": kappa}))))
