"""Hugging Face's two forms: every real file's right values, borrowed evidence, tokens, and 51.1 beside 0.511."""

import json
from decimal import Decimal
from typing import Any

import pytest

from evaluations.importers import hf_claims, profiles
from evaluations.importers.base import Profile
from evaluations.importers.registry import pick
from tests.evaluations.importers.foreign import read, refused
from tests.evaluations.importers.helpers import only
from tests.support.evidence_files import evidence_bytes, evidence_file

RESULTS: dict[str, Any] = json.loads(evidence_file("hf-eval-results/expected.json").read_text())["files"]
CARDS: dict[str, Any] = json.loads(evidence_file("hf-model-index/expected.json").read_text())["files"]
BORROWED = sorted(name for name in RESULTS if name.startswith("borrowed"))
REPACKAGED = "Vedika-advanced-AI/Vedika-4.1-flash"
MIXED = "generated-three-values-one-task.yaml"
SIMPLE = "sample_simple_model_index.md"
MEASURE: dict[str, Any] = {
    "of": "safe_refusal",
    "metric": "infeasible_refusal_rate",
    "better": "higher",
    "level": "task",
    "unit": "percent",
}


def profile(*measures: dict[str, Any], importer: str = "hf-eval-results") -> Profile:
    listed = [{**MEASURE, "slice": f"s{index}", **each} for index, each in enumerate(measures or ({},))]
    made = {"format": "writegate-profile/1", "name": "hf", "importer": importer, "benchmark": "writes", "version": "1"}
    return profiles.read_profile(json.dumps({**made, "measures": listed}).encode(), name="profile.json")


def card(*measures: dict[str, Any]) -> Profile:
    return profile(*({"of": "accuracy", "unit": "fraction", **each} for each in measures or ({},)), importer="hf-model-index")


def entry(value: object = 53.9, **changes: Any) -> dict[str, Any]:
    return {"dataset": {"id": "acme/hr-writes", "task_id": "safe_refusal"}, "value": value, **changes}


def as_file(*entries: dict[str, Any]) -> dict[str, bytes]:
    return {"r.yaml": json.dumps(list(entries)).encode()}


def as_card(*metrics: dict[str, Any], **changes: Any) -> dict[str, bytes]:
    result = {"task": {"type": "t"}, "dataset": {"type": "d", "name": "D"}, "metrics": list(metrics), **changes}
    return {"README.md": f"---\n{json.dumps({'model-index': [{'name': 'm', 'results': [result]}]})}\n---\n# m\n".encode()}


@pytest.mark.parametrize("name", BORROWED)
def test_a_repackaged_model_citing_another_card_lands_on_its_name_as_written_and_is_marked(name):
    (right,) = RESULTS[name]["entries"]
    told = profile({"of": right["task"], "dataset": right["dataset"]})
    ((draft, seen),) = read({name: evidence_bytes(f"hf-eval-results/{name}")}, profile=told, subject=REPACKAGED)
    assert (draft.subject_as_written, draft.run_status, draft.provenance) == (REPACKAGED, "unknown", "claim")
    assert draft.note.startswith("borrowed: the source is the card of google/gemma-4-12B-it, another model")
    assert right["source"] in draft.note
    assert (seen.value, seen.n, seen.k) == (Decimal(str(right["value"])), None, None)
    assert draft.run_ended_at.date().isoformat() == right["date"]
    ((own, _),) = read({name: evidence_bytes(f"hf-eval-results/{name}")}, profile=told, subject="google/gemma-4-12B-it")
    assert own.run_status == "complete"
    assert "borrowed" not in own.note


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("https://huggingface.co/google/gemma", "google/gemma"),
        ("https://hf.co/google/gemma/blob/main/README.md", "google/gemma"),
        ("https://huggingface.co/Org/Own", ""),
        ("https://huggingface.co/datasets/a/b", ""),
        ("https://huggingface.co/spaces/a/b", ""),
        ("https://example.org/google/gemma", ""),
        ("", ""),
    ],
)
def test_a_source_is_another_models_where_it_is_its_card(url, other):
    assert hf_claims.borrowed("org/own (dtype=bf16)", url) == other


def test_51_1_and_0_511_in_one_file_are_refused_as_a_mix_and_not_scaled():
    files = {MIXED: evidence_bytes(f"hf-eval-results/{MIXED}")}
    problems = refused(files, profile=profile(), subject="acme/model")
    assert [(problem.code, problem.field) for problem in problems if problem.code != "duplicate"] == [
        ("not_a_number", "[2].value"),
        ("unit_mix", "[1].value"),
    ]
    assert only(refused(as_file(entry(0.539)), profile=profile(), subject="a/m")).code == "unit_mix"
    assert only(refused(as_file(entry(53.9)), profile=profile({"unit": "fraction"}), subject="a/m")).code == "unit_mix"


def test_the_model_is_the_repository_and_must_be_given():
    assert only(refused(as_file(entry()), profile=profile())).code == "missing"
    problems = refused(as_file(entry()), profile=profile(), subject="acme/m\u043edel")
    assert "look_alike" in {problem.code for problem in problems}


def test_a_bare_value_is_refused_without_a_profile():
    for files in (as_file(entry()), as_card({"type": "accuracy", "value": 0.9})):
        assert only(refused(files, subject="acme/model")).code == "profile_missing"


def test_a_token_is_told_and_a_proposal_too():
    ((draft, _),) = read(as_file(entry(verifyToken="abc")), profile=profile(), subject="acme/model")
    assert "a token to verify it is there, and was not checked" in draft.note
    ((draft, _),) = read(as_file(entry()), profile=profile(), subject="acme/model")
    assert "self-reported" in draft.note
    wrapped = {"filename": "r.yaml", "verified": False, "data": entry(), "pullRequest": 3}
    ((draft, seen),) = read(as_file(wrapped), profile=profile(), subject="acme/model", format_name="hf-eval-results")
    assert seen.value == Decimal("53.9")
    assert "not merged" in draft.note


def test_the_specifications_template_is_no_data():
    files = {"t.yaml": evidence_bytes("hf-eval-results/spec-template.yaml")}
    problems = refused(files, profile=profile(), subject="acme/model", format_name="hf-eval-results")
    assert {problem.code for problem in problems} <= {"missing", "malformed", "not_a_number", "look_alike", "not_an_instant"}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"dataset": {"id": "a/b"}, "value": 1}, "missing"),
        ({"dataset": "a/b", "value": 1}, "unknown_shape"),
        ({"dataset": {"id": "a/b", "task_id": "safe_refusal"}}, "unknown_shape"),
        (entry("53.9"), "not_a_number"),
        (entry(float("nan")), "not_a_number"),
        (entry(153.9), "out_of_range"),
        (entry(date="yesterday"), "not_an_instant"),
        (entry(dataset={"id": "a/b", "task_id": "other"}), "unknown_score"),
    ],
)
def test_what_is_no_result_is_refused(given, code):
    found = refused(as_file(given), profile=profile(), subject="acme/model", format_name="hf-eval-results")
    assert code in {problem.code for problem in found}


def test_a_card_has_its_right_values():
    right = CARDS[SIMPLE]["results"]
    measures = [{"of": each["metric"], "dataset": each["dataset"], "task": each["task"]} for each in right]
    pairs = read({SIMPLE: evidence_bytes(f"hf-model-index/{SIMPLE}")}, profile=card(*measures))
    assert [(draft.subject_as_written, seen.value_as_written) for draft, seen in pairs] == [
        (CARDS[SIMPLE]["model_name"], str(each["value"])) for each in right
    ]
    for (draft, seen), each in zip(pairs, right, strict=True):
        assert (draft.provenance, draft.run_ended_at, seen.n, seen.k) == ("claim", None, None, None)
        assert seen.value == Decimal(str(each["value"])) * 100
        assert (each["revision"] or "self-reported") in draft.note
    narrowed = card({"of": "f1", "config": "default", "split": "test"})
    assert len(read({SIMPLE: evidence_bytes(f"hf-model-index/{SIMPLE}")}, profile=narrowed)) == 1
    other = card({"of": "f1", "split": "train"})
    assert only(refused({SIMPLE: evidence_bytes(f"hf-model-index/{SIMPLE}")}, profile=other)).code == "unknown_score"


def test_a_card_whose_repository_is_given_notes_what_its_owner_calls_it():
    ((draft, _),) = read(as_card({"type": "accuracy", "value": 0.9}), profile=card(), subject="org/model")
    assert draft.subject_as_written == "org/model"
    assert "called m by its card" in draft.note


@pytest.mark.parametrize(
    ("name", "code", "field"),
    [
        ("sample_invalid_model_index.md", "missing", "model-index[0].results[0].dataset"),
        ("sample_windows_line_breaks.md", "empty", "model-index"),
        ("sample_invalid_card_data.md", "unknown_shape", ""),
        ("sample_no_metadata.md", "empty", ""),
    ],
)
def test_a_card_without_results_or_with_half_of_one_is_refused(name, code, field):
    problem = only(refused({name: evidence_bytes(f"hf-model-index/{name}")}, profile=card()))
    assert (problem.code, problem.field) == (code, field)


def test_a_borrowed_source_and_a_mix_in_a_card():
    source = {"name": "card", "url": "https://huggingface.co/google/gemma"}
    ((draft, _),) = read(as_card({"type": "accuracy", "value": 0.9}, source=source), profile=card(), subject="org/model")
    assert (draft.run_status, draft.note.split(";")[0]) == (
        "unknown",
        "borrowed: the source is the card of google/gemma, another model",
    )
    mixed = as_card({"type": "accuracy", "value": 0.511}, {"type": "f1", "value": 51.1})
    told = card({}, {"of": "f1"})
    assert only(refused(mixed, profile=told)).code == "unit_mix"
    assert only(refused(as_card({"type": "accuracy", "value": "90%"}), profile=card())).code == "not_a_number"


def test_a_line_of_a_card_is_told_as_it_stands_in_the_file():
    data = b"---\nmodel-index:\n- name: m\n  name: n\n---\n"
    problem = only(refused({"README.md": data}, profile=card()))
    assert (problem.code, problem.line) == ("malformed", 4)


def test_both_forms_are_recognised():
    for name in BORROWED:
        assert pick(None, evidence_bytes(f"hf-eval-results/{name}"), name).NAME == "hf-eval-results"
    for name in CARDS:
        assert pick(None, evidence_bytes(f"hf-model-index/{name}"), name).NAME == "hf-model-index"
