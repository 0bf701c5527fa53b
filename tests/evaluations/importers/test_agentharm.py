"""AgentHarm logs of Inspect, where `accuracy` is a refusal rate: real ones (made-up twins in this repository), and grades of harm."""

import io
import json
import zipfile
from decimal import Decimal

import pytest

from evaluations.importers import profiles
from evaluations.importers.base import Profile
from tests.evaluations.importers.foreign import read, refused
from tests.evaluations.importers.helpers import only
from tests.evaluations.importers.inspect_made import as_json, log, sample
from tests.support.evidence_files import evidence_bytes

REPRO, UPSTREAM = profiles.load_profile("agentharm-repro"), profiles.load_profile("agentharm")
MODEL = "openai/meta-llama/Meta-Llama-3.1-8B-Instruct"
CHATS = {
    "2025-03-31T12-31-27+02-00_chat-task_bUVT5uu4i2PkraCuujafaM.eval": (25, 3, "56.818181", "0.56818"),
    "2025-03-31T12-39-02+02-00_chat-task_h8gopFCxjK9pyoHRzNCN8d.eval": (23, 2, "52.272727", "0.52272"),
}


def half(name: str, *, whole: bool = False) -> dict[str, bytes]:
    """The archive of one half, whose samples are two of 18 shards."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for member, file in (("_journal/start.json", "start"), ("header.json", "header")):
            archive.writestr(member, evidence_bytes(f"agentharm-inspect/{name}/{file}.json"))
        for number in (1, 18):
            archive.writestr(
                f"_journal/summaries/{number}.json", evidence_bytes(f"agentharm-inspect/{name}/summaries-{number}.json")
            )
    return {f"{name}.eval": out.getvalue()}


def graded(*grades: tuple[object, object], task: str = "inspect_evals/agentharm", **changes) -> dict[str, bytes]:
    """A log as inspect_evals writes it: (refusal, grade) of each sample."""
    samples = [
        sample(number, {"score": grade, "refusal": refusal}, score="combined_scorer")
        for number, (refusal, grade) in enumerate(grades)
    ]
    scored = [grade for _, grade in grades if isinstance(grade, float) and grade == grade]
    metrics = {
        "avg_refusals": {"value": sum(bool(refusal) for refusal, _ in grades) / len(grades)},
        "avg_score": {"value": sum(scored) / len(scored)},
        "avg_full_score": {"value": sum(grade == 1 for grade in scored) / len(scored)},
    }
    entry = {"name": "combined_scorer", "scorer": "combined_scorer", "params": {}, "metrics": metrics}
    spec = {"task": task, "task_version": 9, "task_args": {"refusal_judge": "openai/gpt-4o-2024-08-06"}, **changes}
    return {"log.json": as_json(log(samples, results_={"scores": [entry]}, eval_=spec))}


def values(files: dict[str, bytes], profile: Profile = UPSTREAM) -> dict[str, Decimal]:
    return {seen.metric: seen.value for _, seen in read(files, profile=profile)}


@pytest.mark.parametrize("name", sorted(CHATS))
def test_a_metric_called_accuracy_that_means_refusal_is_mapped(name):
    ((draft, seen),) = read({name: evidence_bytes(f"agentharm-inspect/{name}")}, profile=REPRO)
    refusals, unread, value, written = CHATS[name]
    assert (draft.subject_as_written, draft.run_status, draft.provenance) == (MODEL, "complete", "recounted")
    assert (seen.metric, seen.benchmark_version) == ("harmful_refusal_rate", "repro-2025-03-chat")
    assert (seen.k, seen.n, seen.unscored, seen.value) == (refusals, 44, unread, Decimal(value))
    assert seen.value_as_written.startswith(written)
    assert f"(I {unread}, No {44 - refusals - unread}, Yes {refusals})" in draft.note


def test_a_judge_that_is_the_model_under_test_is_marked():
    for name in CHATS:
        ((_, seen),) = read({name: evidence_bytes(f"agentharm-inspect/{name}")}, profile=REPRO)
        assert seen.judge == {"models": [MODEL], "is_subject": True}


def test_the_same_word_is_over_refusal_in_the_benign_half():
    found = {}
    for name in ("harmful", "benign"):
        ((draft, seen),) = read(half(name), profile=REPRO)
        found[name] = seen.metric, str(seen.value), seen.n, seen.k, draft.provenance
    assert found == {
        "harmful": ("harmful_refusal_rate", "36.363636", 176, None, "claim"),
        "benign": ("over_refusal_rate", "7.386364", 176, None, "claim"),
    }


def test_without_the_profile_nothing_is_guessed():
    name = sorted(CHATS)[0]
    assert only(refused({name: evidence_bytes(f"agentharm-inspect/{name}")})).code == "profile_missing"


def test_refusal_and_harm_are_two_metrics_of_one_scorer():
    files = graded((True, 0.0), (False, 1.0), (False, 0.5), (False, 0.0))
    assert values(files) == {"harmful_refusal_rate": 25, "harm_score": Decimal("37.5"), "harmful_completion_rate": 25}
    judges = {json.dumps(seen.judge) for _, seen in read(files, profile=UPSTREAM)}
    assert judges == {'{"models": ["openai/gpt-4o-2024-08-06"], "is_subject": false}', "null"}


def test_over_benign_assignments_the_grade_is_no_harm():
    files = graded((True, 0.0), (False, 1.0), task="inspect_evals/agentharm_benign")
    assert values(files) == {"over_refusal_rate": 50}


def test_a_refusal_that_did_the_task_is_contradicted_and_counts_as_none():
    pairs = read(graded((True, 1.0), (True, 0.5), (False, 0.0), (False, 0.0)), profile=UPSTREAM)
    refusal = next(seen for _, seen in pairs if seen.metric == "harmful_refusal_rate")
    assert (refusal.k, refusal.n, refusal.unscored, refusal.value) == (1, 4, 1, 25)
    assert "1 of refusal contradicted by score" in pairs[0][0].note


def test_an_assignment_without_a_grade_counts_as_harm_done():
    found = values(graded((False, float("nan")), (False, 0.0), (False, 1.0), (True, 0.0)))
    assert found["harmful_completion_rate"] == 50
    assert found["harm_score"] == 50


def test_another_version_of_the_task_is_refused():
    assert only(refused(graded((True, 0.0), task_version=8), profile=UPSTREAM)).code == "other_version"
