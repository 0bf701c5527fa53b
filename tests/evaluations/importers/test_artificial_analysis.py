"""Artificial Analysis: a real snapshot's values (a made-up twin in this repository), pages of the API, and what must be loud."""

import json
from decimal import Decimal

import pytest

from evaluations.importers import artificial_analysis
from evaluations.importers.registry import pick
from tests.evaluations.importers.foreign import by_metric, read, refused
from tests.evaluations.importers.helpers import only
from tests.support.evidence_files import evidence_bytes

SNAPSHOT = "enterpriseops_gym_aa_snapshot_2026-08-26.json"
PERCENT = {"claude-fable-5": "51.1", "gemini-3-5-flash": "50.1", "gpt-5-5": "46.6", "claude-opus-4-8": "44.0", "glm-5-2": "42.7"}


def record(name: str = "Model A (high)", value: object = 0.5, *, field: str = "enterpriseOpsGym", **more) -> dict:
    return {"id": f"id-{name}", "slug": "model-a", "name": name, field: value, **more}


def page(*records: dict, number: int = 1, of: int = 1) -> bytes:
    place = {"page": number, "page_size": 2, "total_pages": of, "has_more": number < of}
    return json.dumps({"tier": "pro", "pagination": place, "data": list(records)}).encode()


def rates(files: dict[str, bytes]) -> dict[str, Decimal]:
    return {key[0]: seen.value for key, (_, seen) in by_metric(read(files)).items() if key[1] == "task_completion_rate"}


def test_the_snapshot_has_14_scores_of_18_models_as_percent_and_no_n():
    pairs = read({SNAPSHOT: evidence_bytes(f"artificial-analysis/{SNAPSHOT}")})
    assert len(pairs) == 14
    slugs = {draft.note.split(";")[0].removeprefix("slug "): (draft, seen) for draft, seen in pairs}
    assert {slug: f"{slugs[slug][1].value:.1f}" for slug in PERCENT} == PERCENT
    assert "deepseek-v4-pro" not in slugs
    draft, seen = slugs["claude-fable-5"]
    assert draft.subject_as_written == "Claude Fable 5 (Adaptive Reasoning, Max Effort, Opus 4.8 Fallback)"
    assert (seen.n, seen.k, seen.repeats, draft.provenance) == (None, None, 3, "reported")
    assert seen.value_as_written == "0.5111906893464637"
    assert draft.published_at.isoformat() == "2026-08-26T00:00:00+00:00"
    assert not any("refusal" in found.metric for _, found in pairs)


def test_3351_counts_against_a_published_1150():
    for draft, _ in read({SNAPSHOT: evidence_bytes(f"artificial-analysis/{SNAPSHOT}")}):
        assert "whole counts over 3351 (1117 tasks x 3), not over the 1150 announced" in draft.note
    counts = [Decimal(repr(count / 3351)) for count in (1, 1713, 1678, 3350)]
    assert artificial_analysis.whole_counts(counts, 3351)
    assert not artificial_analysis.whole_counts(counts, 3450)
    assert artificial_analysis.whole_counts([Decimal(repr(1725 / 3450))], 3450)


@pytest.mark.parametrize(
    "made",
    [
        record(field="enterpriseOpsGym"),
        record(field="enterprise_ops_gym"),
        {"name": "Model A (high)", "evaluations": {"enterprise_ops_gym": 0.5}},
        {"name": "Model A (high)", "enterpriseOpsGymBreakdown": {"summary": {"successRate": 0.5}}},
        {"name": "Model A (high)", "enterprise_ops_gym_breakdown": {"summary": {"success_rate": 0.5}}},
    ],
)
def test_old_and_new_field_names_give_the_same_value(made):
    assert rates({"page.json": page(made)}) == {"Model A (high)": 50}
    assert pick(None, page(made), "page.json").NAME == "artificial-analysis"


def test_turns_are_read_beside_the_score():
    found = by_metric(read({"page.json": page(record(enterpriseOpsGymAvgConversationTurns=27.25))}))
    assert found["Model A (high)", "turns_per_task", "2026-07", "overall"][1].value == Decimal("27.25")


@pytest.mark.parametrize(
    ("body", "code", "what"),
    [
        ({"status": 401, "error": "Invalid API key"}, "error_answer", "a good key"),
        ({"status_code": 429, "message": "Too many requests"}, "error_answer", "Retry-After"),
        ({"error": {"code": 429, "message": "slow down"}}, "error_answer", "Retry-After"),
        ({"error": "Internal error"}, "error_answer", "holds no evidence"),
        ({"status": 500, "data": [record()]}, "error_answer", "holds no evidence"),
        ({"status": 200, "data": []}, "shape_changed", "ask again"),
        ({"status": 200, "items": [record()]}, "shape_changed", "ask again"),
        ({"status": 200, "data": [{"name": "A", "enterpriseOps": 0.5}]}, "shape_changed", "known fields"),
        ({"status": 200, "data": [record(value=None)]}, "empty", "never read as zero"),
    ],
)
def test_errors_missing_fields_and_a_changed_shape_are_loud(body, code, what):
    problem = only(refused({"page.json": json.dumps(body).encode()}, format_name="artificial-analysis"))
    assert problem.code == code
    assert what in problem.hint


def test_51_1_and_0_511_in_one_table_are_refused_as_a_mix_and_not_scaled():
    problem = only(refused({"page.json": page(record("A", 0.511), record("B", 51.1))}))
    assert (problem.code, problem.field) == ("unit_mix", "data[1].enterpriseOpsGym")


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), "0.5", True, [0.5], 1.0001])
def test_what_is_no_fraction_is_refused(value):
    assert refused({"page.json": page(record(value=value))})


def test_pages_are_read_together_and_a_missing_or_doubled_one_is_refused():
    first, second = page(record("A"), number=1, of=2), page(record("B"), number=2, of=2)
    assert set(rates({"1.json": first, "2.json": second})) == {"A", "B"}
    assert "pages are missing: 2 of 2" in only(refused({"1.json": first})).message
    assert {problem.code for problem in refused({"1.json": first, "2.json": first})} >= {"duplicate", "incomplete"}


def test_one_model_twice_and_a_look_alike_are_refused():
    assert only(refused({"page.json": page(record("A"), record("A", 0.4))})).code == "duplicate"
    assert "U+0410 CYRILLIC CAPITAL LETTER A" in only(refused({"page.json": page(record("\u0410"))})).message
