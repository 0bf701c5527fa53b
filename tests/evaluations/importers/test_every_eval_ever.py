"""Every Eval Ever: three schema versions' right values, and that a record never becomes cleaner than the log it was made from."""

import json
from decimal import Decimal
from typing import Any

import pytest

from evaluations.importers import profiles
from evaluations.importers.base import Profile
from evaluations.importers.registry import pick
from tests.evaluations.importers.foreign import read, refused
from tests.evaluations.importers.helpers import only
from tests.support.evidence_files import evidence_bytes, evidence_file

EXPECTED: dict[str, Any] = json.loads(evidence_file("every-eval-ever/expected.json").read_text())["files"]
RECORDS = {name: right for name, right in EXPECTED.items() if name.endswith(".json")}
CANCELLED = "converted-from-cancelled-inspect.json"
REFERENCE = "v0.3.0-reference.json"
MEASURE: dict[str, Any] = {
    "of": "accuracy",
    "metric": "infeasible_refusal_rate",
    "better": "higher",
    "level": "task",
    "unit": "fraction",
}


def profile(*measures: dict[str, Any], **changes: Any) -> Profile:
    made = {"format": "writegate-profile/1", "name": "eee", "importer": "every-eval-ever", "benchmark": "writes", "version": "1"}
    listed = [{**MEASURE, "slice": f"s{index}", **each} for index, each in enumerate(measures or ({},))]
    return profiles.read_profile(json.dumps({**made, "measures": listed, **changes}).encode(), name="profile.json")


def files(name: str) -> dict[str, bytes]:
    return {name: evidence_bytes(f"every-eval-ever/{name}")}


def record(score: object = 0.5, *, config: dict | None = None, **changes: Any) -> dict[str, bytes]:
    value = json.loads(evidence_bytes(f"every-eval-ever/{REFERENCE}"))
    result = value["evaluation_results"][0]
    result["score_details"]["score"] = score
    result["metric_config"] |= config or {}
    result |= changes.pop("result", {})
    return {"record.json": json.dumps({**value, **changes}).encode()}


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_every_record_has_its_right_values(name):
    right = RECORDS[name]
    observations = right["observations"]
    measures = [{"of": each["metric"] or each["evaluation"], "evaluation": each["evaluation"]} for each in observations]
    found = {seen.slice: (draft, seen) for draft, seen in read(files(name), profile=profile(*measures))}
    assert len(found) == len(observations)
    for index, each in enumerate(observations):
        draft, seen = found[f"s{index}"]
        assert Decimal(seen.value_as_written) == Decimal(str(each["value"]))
        assert abs(seen.value - Decimal(str(each["value"])) * 100) <= Decimal("0.000001")
        assert draft.subject_as_written.split(" (")[0] == right["model_id"]
        assert (draft.provenance, seen.n, seen.k) == ("claim", None, None)
        assert (each["n"] is None) or f"runs counted: {each['n']}" in draft.note
        assert draft.locator == right["evaluation_id"]


def test_a_cancelled_log_converted_into_a_clean_record_never_qualifies():
    ((draft, seen),) = read(files(CANCELLED), profile=profile())
    assert (draft.run_status, draft.provenance, seen.value) == ("partial", "claim", Decimal("66.666666"))
    assert "less was run than the data set has" in draft.note
    assert "may have been cancelled" in draft.note
    ((draft, _),) = read(files("converted-from-lm-eval.json"), profile=profile({"of": "exact-match"}))
    assert draft.run_status == "unknown"


def test_a_published_table_presents_finished_results():
    ((draft, _),) = read(files("v0.2.2-mmlu-pro.json"), profile=profile({"of": "mmlu_pro/overall"}))
    assert draft.run_status == "complete"
    assert "measured by TIGER-Lab, third party" in draft.note
    assert "scores not read: MMLU-Pro (Biology) mmlu_pro/biology" in draft.note


def test_names_are_kept_as_written_with_precision_and_settings():
    ((draft, _),) = read(files("v0.2.0-open-llm-leaderboard.json"), profile=profile({"of": "IFEval"}))
    assert draft.subject_as_written == "TencentARC/LLaMA-Pro-8B-Instruct (precision=bfloat16)"
    ((draft, _),) = read(files("converted-from-epochs4-inspect.json"), profile=profile())
    assert draft.subject_as_written == "mistral/mistral-large-latest (max_tokens=2048, temperature=0.75)"
    assert draft.run_ended_at.isoformat() == "2025-03-21T05:07:40+00:00"


def test_a_bare_accuracy_is_refused_without_a_profile():
    problem = only(refused(files(REFERENCE)))
    assert (problem.code, problem.field) == ("profile_missing", "profile")


def test_one_score_under_two_names_is_taken_once_or_refused():
    name = "converted-from-epochs4-inspect.json"
    assert len(read(files(name), profile=profile())) == 1
    both = profile({"slice": "overall"}, {"of": "inspect_ai.mean", "slice": "overall"})
    assert only(refused(files(name), profile=both)).code == "duplicate"


def test_direction_is_never_taken_from_the_record():
    lower = {"metric": "harmful_completion_rate", "better": "lower", "level": "outcome"}
    ((_, seen),) = read(record(config={"lower_is_better": False}), profile=profile(lower))
    assert (seen.metric, seen.value) == ("harmful_completion_rate", 50)


@pytest.mark.parametrize(
    ("given", "measure", "code", "field"),
    [
        (record(51.1), {}, "out_of_range", "evaluation_results[0].score_details.score"),
        (record(51.1, config={"max_score": "Infinity"}), {}, "unit_mix", "evaluation_results[0].score_details.score"),
        (record(0.511), {"unit": "percent"}, "wrong_unit", "evaluation_results[0].metric_config.metric_unit"),
        (record(50, config={"metric_unit": "percent", "max_score": 100}), {}, "wrong_unit", ""),
        (record("0.5"), {}, "not_a_number", "evaluation_results[0].score_details.score"),
        (record(float("nan")), {}, "not_a_number", "evaluation_results[0].score_details.score"),
        (record(schema_version="1.0.0"), {}, "unknown_version", "schema_version"),
        (record(model_info={"id": "gpt-4\u043e"}), {}, "look_alike", "id"),
        (record(evaluation_timestamp="yesterday"), {}, "not_an_instant", "evaluation_timestamp"),
        (record(), {"of": "other"}, "unknown_score", "evaluation_results"),
        (record(evaluation_results=[]), {}, "unknown_shape", ""),
    ],
)
def test_what_contradicts_itself_or_the_profile_is_refused(given, measure, code, field):
    problems = refused(given, profile=profile(measure))
    assert code in {problem.code for problem in problems}
    assert not field or field in {problem.field for problem in problems}


def test_a_judge_that_is_the_subject_is_marked():
    scoring = {"judges": [{"model_info": {"id": "demo-org/demo-model"}}]}
    ((_, seen),) = read(record(config={"llm_scoring": scoring}), profile=profile())
    assert seen.judge == {"models": ["demo-org/demo-model"], "is_subject": True}


def test_a_local_time_is_the_earliest_instant_it_can_mean():
    ((draft, _),) = read(record(evaluation_timestamp="2026-05-02T10:00:00"), profile=profile())
    assert draft.run_ended_at.isoformat() == "2026-05-01T20:00:00+00:00"


def test_records_are_recognised_and_their_samples_are_not_taken_for_one():
    for name in RECORDS:
        assert pick(None, evidence_bytes(f"every-eval-ever/{name}")[:65536], name).NAME == "every-eval-ever"
    assert only(refused(files("v0.3.0-reference_samples.jsonl"), format_name="every-eval-ever")).code == "unknown_shape"
