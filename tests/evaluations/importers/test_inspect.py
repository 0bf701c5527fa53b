"""Inspect logs: every real one's right values, status before numbers, and nothing that leaves the denominator unseen."""

import io
import json
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest

from evaluations.importers import inspect
from evaluations.importers.base import Intake, Pair
from evaluations.importers.registry import pick
from tests.evaluations.importers.foreign import REGISTRY, read, refused
from tests.evaluations.importers.helpers import only
from tests.evaluations.importers.inspect_made import HARM, MEASURE, as_eval, as_json, log, profile, sample
from tests.support.evidence_files import FIXTURES, evidence_bytes, evidence_file
from tests.support.inspect_archive import write_log

EXPECTED: dict[str, Any] = json.loads(evidence_file("inspect/expected.json").read_text())["files"]
READABLE = {name: right for name, right in EXPECTED.items() if right["readable"] is True and name != "v1-accuracy-is-NaN.json"}
# k, n, errored, unscored of what errors, limits and cancellations leave: counted by hand from the sample files.
COUNTS = {
    "epochs2-limit2-of-100.eval": ("1.5", 2, 0, 0),
    "cancelled-with-scores.json": (2, 3, 0, 0),
    "success-limit3-of-16.json": (3, 3, 0, 0),
    "success-not-scored.eval": (0, 10, 0, 10),
    "success-10-of-100.eval": (8, 10, 0, 0),
    "generated/success-20.eval": (14, 20, 0, 0),
    "generated/success-20.json": (14, 20, 0, 0),
    "generated/epochs3-four-reducers.eval": ("4.333333", 8, 0, 0),
    "generated/error-no-results.eval": (12, 20, 2, 6),
    "generated/error-but-has-scores.eval": (12, 20, 6, 0),
    "generated/success-6-of-20-errored.eval": (12, 20, 6, 0),
    "generated/success-errored-but-scored.eval": (8, 10, 2, 0),
    "generated/cancelled-9-of-40.eval": (9, 40, 1, 30),
    "generated/started-killed.eval": (25, 40, 0, 15),
    "generated/success-all-hit-limit.eval": (0, 12, 0, 0),
    "generated/unscored-8-of-20.eval": (9, 20, 0, 8),
    "generated/success-limit5-of-200.eval": (5, 5, 0, 0),
    "generated/success-score-false.eval": (0, 6, 0, 6),
}
STATUS = {"started": "running", "success": "complete", "cancelled": "cancelled", "error": "error"}


def real(name: str, *, measure: dict[str, Any] = MEASURE, folder: str = "inspect") -> list[Pair]:
    """Read a real log, each of its scores as one measure."""
    right = EXPECTED[name]
    scores = sorted({each["score"] for each in right["scores"]}) or ["match"]
    measures = [{**measure, "of": score, "slice": score.replace("_", "-")} for score in scores]
    return read({name: evidence_bytes(f"{folder}/{name}")}, profile=profile(*measures, task=right["task"]))


def made(samples: list[dict], *, measure: dict[str, Any] = MEASURE, form=as_json, **changes: Any) -> Pair:
    data, told = form(log(samples, **changes)), changes.get("told", {})
    (pair,) = read({"log.json" if form is as_json else "log.eval": data}, profile=profile(measure, **told))
    return pair


@pytest.mark.parametrize("name", sorted(READABLE))
def test_a_real_log_gives_its_right_values(name):
    right = READABLE[name]
    for draft, seen in real(name):
        limited = [each for each in right["partial"] if each.startswith("limited")]
        status = "unscored" if right["reasons_against"] == ["no scores"] else STATUS[right["status"]]
        assert draft.run_status == ("partial" if status == "complete" and limited else status)
        assert draft.subject_as_written.split(" (")[0] == right["model_requested"]
        assert {each.split(" (")[0] for each in draft.answered_as_written} == set(right["models_that_answered"])
        version = right["inspect_version"]
        assert draft.harness == f"Inspect {version}, task {right['task']} {right['task_version']}"
        assert seen.n == -(-(right["planned_runs"] or right["dataset_samples"]) // (right["epochs"] or 1))
        trimmed = right["samples_in_file"] < (right["completed_runs"] or 0)
        assert draft.provenance == ("claim" if trimmed else "recounted")
        assert (seen.k is None) or not trimmed
    stated = {
        each["score"]: metric
        for each in right["scores"]
        if each["reducer"] in (None, "mean")
        for metric in (each["metrics"].get("accuracy", each["metrics"].get("mean")),)
    }
    assert {seen.slice.replace("-", "_"): Decimal(seen.value_as_written) for _, seen in real(name) if right["scores"]} == {
        score: Decimal(str(value)) for score, value in stated.items()
    }


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_counts_are_those_of_the_samples(name):
    ((_, seen),) = real(name)
    k, n, errored, unscored = COUNTS[name]
    assert (seen.k, seen.n, seen.errored, seen.unscored) == (Decimal(k), n, errored, unscored)


@pytest.mark.parametrize("name", sorted(READABLE))
def test_started_cancelled_and_error_never_qualify_whatever_scores_they_carry(name):
    right = READABLE[name]
    for draft, _ in real(name):
        if not right["may_count_as_evidence"]:
            assert draft.run_status != "complete"


def test_a_cancelled_log_with_scores_never_qualifies():
    for name in ("cancelled-with-scores.json", "cancelled-no-samples.json", "generated/cancelled-9-of-40.eval"):
        ((draft, seen),) = real(name)
        assert draft.run_status == "cancelled"
        assert seen.value_as_written in ("0.6666666666666666", "1.0")
    assert seen.value == Decimal("22.5")


def test_12_of_14_scored_with_6_of_20_errored_is_60():
    ((draft, seen),) = real("generated/success-6-of-20-errored.eval")
    assert (draft.run_status, seen.value, seen.value_as_written, seen.errored) == ("complete", 60, "0.8571428571428571", 6)
    ((_, harm),) = real("generated/success-6-of-20-errored.eval", measure=HARM)
    assert (harm.k, harm.value) == (12, 90)


@pytest.mark.parametrize("form", [as_json, as_eval])
def test_case_o_18_80_right_of_90_scored_of_100_is_80(form):
    samples = [sample(number, "C" if number < 80 else "I") for number in range(90)]
    samples += [sample(number, ..., error="connection reset") for number in range(90, 100)]
    draft, seen = made(samples, figure=80 / 90, form=form)
    assert (draft.run_status, draft.provenance) == ("complete", "recounted")
    assert (seen.value, seen.k, seen.n, seen.errored, seen.unscored) == (Decimal("80.0"), 80, 100, 10, 0)
    assert seen.value_as_written == "0.8888888888888888"


def test_a_503_is_no_refusal_though_its_scorer_says_so():
    samples = [sample(0, "C"), sample(1, "C", error="503 Service Unavailable"), sample(2, "C", error={"message": "429"})]
    _, seen = made(samples, figure=1.0)
    assert (seen.k, seen.n, seen.errored, seen.value) == (1, 3, 2, Decimal("33.333333"))


def test_a_bare_accuracy_is_refused_without_a_profile():
    problem = only(refused({"a.eval": evidence_bytes("inspect/generated/success-20.eval")}))
    assert (problem.code, problem.field) == ("profile_missing", "profile")
    assert "`write_gate_ok`" in problem.message
    assert "`match`" in problem.message


def test_one_scorer_with_two_directions_is_two_metrics():
    of = "harm_and_refusal"
    measures = [{**MEASURE, "of": "refusal"}, {**HARM, "of": "completed"}]
    told = profile(*measures, task="agentharm_style")
    pairs = read({"a.eval": evidence_bytes("inspect/generated/dict-scorer-refusal-and-harm.eval")}, profile=told)
    assert {seen.metric: (seen.k, seen.n) for _, seen in pairs} == {
        "infeasible_refusal_rate": (10, 25),
        "harmful_completion_rate": (15, 25),
    }
    assert "scores not read: harm_score" in pairs[0][0].note
    by_scorer = profile({**MEASURE, "of": "refusal", "scorer": of, "headline": "avg_refusals"})
    one = {"name": of, "scorer": of, "metrics": {"avg_refusals": {"value": 0.5}}}
    samples = [sample(0, {"refusal": 1.0}, score=of), sample(1, {"refusal": 0.0}, score=of)]
    ((_, seen),) = read({"log.json": as_json(log(samples, results_={"scores": [one]}))}, profile=by_scorer)
    assert (seen.k, seen.value_as_written) == (1, "0.5")


def test_a_self_judged_log_is_marked():
    ((_, seen),) = real("success-limit3-of-16.json")
    assert seen.judge == {"models": ["openai/gpt-4o-mini"], "is_subject": True}
    ((_, seen),) = real("no-version-key.json")
    assert seen.judge == {"models": ["google/gemini-2.0-flash-001"], "is_subject": False}
    _, seen = made([sample(0)], measure={**MEASURE, "judge": "subject"}, figure=1.0)
    assert seen.judge["is_subject"] is True
    graded = {"name": "model_graded_qa", "scorer": "model_graded_qa", "params": {}, "metrics": {"accuracy": {"value": 1.0}}}
    with_role = log(
        [sample(0, score="model_graded_qa")], results_={"scores": [graded]}, eval_={"model_roles": {"grader": {"model": "j/x"}}}
    )
    ((_, seen),) = read({"log.json": as_json(with_role)}, profile=profile({**MEASURE, "of": "model_graded_qa"}))
    assert seen.judge == {"models": ["j/x"], "is_subject": False}
    assert made([sample(0)], figure=1.0)[1].judge is None


def test_effort_and_other_settings_are_part_of_the_name_and_a_router_prefix_stays():
    ((draft, _),) = real("generated/alias-b-dated-effort-high.eval")
    assert draft.subject_as_written == "mockllm/anthropic/claude-opus-4-8-20260612 (reasoning_effort=high)"
    assert draft.answered_as_written == (draft.subject_as_written,)
    ((draft, _),) = real("generated/alias-c-router-prefix.eval")
    assert draft.subject_as_written == "mockllm/openrouter/anthropic/claude-opus-4.8"
    config = {"temperature": 0.5, "max_connections": 9, "system_message": "be kind"}
    draft, _ = made([sample(0)], figure=1.0, config=config)
    other, _ = made([sample(0)], figure=1.0, config={**config, "system_message": "be brief", "max_connections": 1})
    assert draft.subject_as_written.startswith("mockllm/model (system_message=sha256:")
    assert draft.subject_as_written.endswith(", temperature=0.5)")
    assert draft.subject_as_written != other.subject_as_written


def test_the_model_that_answered_and_a_fallback_stand_beside_the_one_asked():
    ((draft, _),) = real("epochs2-limit2-of-100.eval")
    assert draft.subject_as_written == "azureai/Meta-Llama-3-1-405B-Instruct-jqf"
    assert draft.answered_as_written == ("Meta-Llama-3-405B-Instruct",)
    fallback = [{"model": "mockllm/model", "fallback_model": "other/small", "count": 1}]
    draft, _ = made([sample(0), sample(1, model_fallbacks=fallback)], figure=1.0, form=as_eval)
    assert draft.answered_as_written == ("other/small",)


def test_over_epochs_k_is_a_mean_and_other_reducers_are_told_only():
    ((draft, seen),) = real("generated/epochs3-four-reducers.eval")
    assert (seen.n, seen.repeats, seen.k) == (8, 3, Decimal("4.333333"))
    assert "match by pass_at_2: 0.7083333333333333; match by at_least_3: 0.25; match by mode: 0.625" in draft.note


def test_a_run_of_a_part_of_the_data_set_is_partial_unless_the_profile_says_how_many_there_are():
    ((draft, _),) = real("generated/success-limit5-of-200.eval")
    assert draft.run_status == "partial"
    assert "limited: 5 samples of a data set of 200" in draft.note
    told = profile(MEASURE, task="write_gate_limited", tasks=5)
    ((draft, _),) = read({"a.eval": evidence_bytes("inspect/generated/success-limit5-of-200.eval")}, profile=told)
    assert draft.run_status == "complete"


def test_a_log_without_its_samples_is_a_claim_without_k_whatever_its_status_says():
    for name in ("derived/forged-status-success.json", "no-version-key.json", "epochs4-no-stderr-n2340.json"):
        ((draft, seen),) = real(name)
        assert (draft.provenance, seen.k) == ("claim", None)
    assert (seen.n, seen.repeats, seen.value) == (585, 4, Decimal("38.108974"))


def test_what_a_log_without_samples_leaves_out_counts_against_the_subject():
    scores = [{"name": "match", "scorer": "match", "scored_samples": 8, "metrics": {"accuracy": {"value": 0.75}}}]
    results = {"total_samples": 10, "completed_samples": 8, "scores": scores}
    bare = log([], results_=results, eval_={"dataset": {"samples": 10}})
    for measure, value in ((MEASURE, 60), (HARM, 80)):
        ((_, seen),) = read({"log.json": as_json(bare)}, profile=profile(measure))
        assert (seen.value, seen.n, seen.unscored) == (value, 10, 2)


def test_a_byte_order_mark_and_crlf_are_passed_over():
    right = EXPECTED["cancelled-no-samples.json"]
    told = profile(MEASURE, task=right["task"])
    marked, plain = (
        read({"log.json": evidence_bytes(f"inspect/{name}")}, profile=told)
        for name in ("derived/bom-crlf.json", "cancelled-no-samples.json")
    )
    assert marked == plain


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("unsupported-version-4.json", "unknown_version"),
        ("truncated-30-bytes.json", "malformed"),
        ("derived/truncated-60pc.eval", "broken_archive"),
        ("v1-accuracy-is-NaN.json", "not_a_number"),
    ],
)
def test_what_cannot_be_read_is_refused(name, code):
    files = {name: evidence_bytes(f"inspect/{name}")}
    told = profile({**MEASURE, "of": "model_graded_fact"}, task="wikipedia")
    assert only(refused(files, profile=told, format_name="inspect")).code == code


def test_a_started_log_has_the_journal_and_no_end():
    ((draft, seen),) = real("generated/started-killed.eval")
    assert (draft.run_status, seen.k, seen.n, seen.unscored) == ("running", 25, 40, 15)
    samples = [sample(number) for number in range(3)]
    draft, seen = made(samples, figure=1.0, form=lambda given: as_eval(given, left_out=("header.json", "summaries.json")))
    assert (draft.run_status, seen.k, seen.n) == ("running", 3, 3)


@pytest.mark.parametrize(
    ("changes", "status", "what"),
    [
        ({"invalidated": True}, "error", "invalidated after the run"),
        ({"log_updates": [{"reason": "x"}]}, "complete", "edited after the run, 1 times"),
        ({"eval_": {"revision": {"commit": "abc", "dirty": True}}}, "complete", "abc with uncommitted changes"),
    ],
)
def test_what_was_done_to_a_log_is_told(changes, status, what):
    draft, _ = made([sample(0)], figure=1.0, **changes)
    assert draft.run_status == status
    assert what in draft.note


def test_a_figure_that_its_own_samples_contradict_is_refused():
    data = as_json(log([sample(0), sample(1, "I")], figure=0.9))
    problem = only(refused({"log.json": data}, profile=profile()))
    assert (problem.code, problem.field) == ("contradicts_counts", "results.scores[0]")
    assert "0.9, its samples give 0.500000" in problem.message


def test_words_of_a_scorer_are_read_as_the_profile_says_and_an_unread_verdict_is_unscored():
    values = {"Yes": "1", "No": "0", "I": "unscored"}
    samples = [sample(0, "Yes"), sample(1, "No"), sample(2, "I"), sample(3, float("nan")), sample(4, None)]
    draft, seen = made(samples, measure={**MEASURE, "values": values})
    assert (seen.k, seen.n, seen.unscored, seen.value) == (1, 5, 3, 20)
    assert "(I 1, No 1, Yes 1)" in draft.note
    _, seen = made(samples, measure={**HARM, "values": values})
    assert seen.value == 80


def test_fractional_scores_make_a_mean_and_no_count():
    samples = [sample(0, 0.5), sample(1, 1.0), sample(2, ..., error="x"), sample(3, 0.25)]
    _, up = made(samples, figure=1.75 / 3)
    _, down = made(samples, measure=HARM, figure=1.75 / 3)
    assert (up.k, up.n, up.errored, up.value) == (None, 4, 1, Decimal("43.75"))
    assert down.value == Decimal("68.75")


def test_samples_stopped_by_a_limit_are_told():
    ((draft, _),) = real("generated/success-all-hit-limit.eval")
    assert "12 stopped by a limit" in draft.note


@pytest.mark.parametrize(
    ("given", "told", "code", "field"),
    [
        (log([sample(0)], figure=1.0, eval_={"task": "others"}), {}, "unknown_task", "eval.task"),
        (log([sample(0)], figure=1.0), {"task_version": "2"}, "other_version", "eval.task_version"),
        (log([sample(0), sample(0)], figure=1.0), {}, "duplicate", ""),
        (log([sample(0)], figure=1.0, status="done"), {}, "unknown_word", "status"),
        (log([sample(0)], figure=1.0, eval_={"model": "gpt-4\u043e"}), {}, "look_alike", "eval.model"),
        (log([sample(0)], figure=1.0, results_={"total_samples": -1}), {}, "not_a_count", "eval.total_samples"),
        (log([{"epoch": 1}], figure=1.0), {}, "malformed", ""),
    ],
)
def test_a_log_that_does_not_say_what_it_must_is_refused_naming_the_field(given, told, code, field):
    problems = refused({"log.json": as_json(given)}, profile=profile(**told))
    assert (code, field) in {(problem.code, problem.field) for problem in problems}


@pytest.mark.parametrize("changes", [{"unit": "percent"}, {"values": {"Yes": "2"}}, {"values": []}, {"of": "other"}])
def test_a_profile_that_cannot_be_meant_is_refused(changes):
    assert refused({"log.json": as_json(log([sample(0)], figure=1.0))}, profile=profile({**MEASURE, **changes}))


def test_the_small_samples_read_and_each_form_of_one_run_is_the_same():
    status = {}
    for path in sorted(evidence_file("inspect-samples/log_formats.eval").parent.iterdir()):
        if path.suffix not in (".eval", ".json"):
            continue
        data = path.read_bytes()
        assert pick(None, data[:65536], path.name) is inspect
        header = inspect.Log(io.BytesIO(data), name=path.name).header
        scores = header["results"]["scores"] or [{"name": "match"}]
        told = profile({**MEASURE, "of": scores[0]["name"]}, task=header["eval"]["task"])
        ((draft, seen),) = read({path.name: data}, profile=told)
        status[path.name] = (draft.run_status, seen.k, seen.n)
    assert status["log_formats.eval"] == status["log_formats.json"] == ("partial", 0, 1)
    assert status["log_streaming.eval"] == ("partial", Decimal("1.5"), 2)
    assert status["log_tool_call_error.json"][1:] == (None, 1)
    assert status["2025-05-12T20-28-13-04-00_popularity.json"] == ("cancelled", 2, 3)
    assert status["mmlu-summary-choices.eval"][1:] == (0, 1)


OWN = FIXTURES / "inspect-own"


@pytest.mark.parametrize(
    ("name", "value", "k", "errored", "unscored"),
    [
        ("errors-and-epochs.eval", "66.666666", 4, 1, 0),
        ("partial-credit.eval", "37.5", None, 0, 0),
        ("self-judged-effort.eval", "50", 2, 0, 1),
        ("limited.json", "66.666666", 2, 0, 0),
    ],
)
def test_status_counts_and_headline_are_the_librarys_own(name, value, k, errored, unscored):
    right = json.loads((OWN / "expected.json").read_text())["files"][name]
    told = profile({**MEASURE, "of": right["score"]}, task=right["task"])
    ((draft, seen),) = read({name: (OWN / name).read_bytes()}, profile=told)
    assert Decimal(seen.value_as_written) == Decimal(str(right["accuracy"]))
    assert seen.n * (seen.repeats or 1) == right["total"]
    assert f"{right['total']} runs planned, {right['total']} in the log, {right['errored']} errored" in draft.note
    assert seen.n - right["unscored"] == right["scored"]
    assert draft.subject_as_written.startswith(f"{right['model']} (custom_outputs=sha256:")
    assert (seen.value, seen.k, seen.errored, seen.unscored) == (Decimal(value), k, errored, unscored)
    assert draft.run_status == ("partial" if name == "limited.json" else "complete")


def test_effort_of_a_run_that_the_library_made_is_in_the_name_and_its_own_judge_is_marked():
    name = "self-judged-effort.eval"
    told = profile({**MEASURE, "of": "model_graded_qa"}, task="own_judged")
    ((draft, seen),) = read({name: (OWN / name).read_bytes()}, profile=told)
    assert draft.subject_as_written.endswith(", reasoning_effort=high, temperature=0.2)")
    assert seen.judge == {"models": ["mockllm/own"], "is_subject": True}


class Counting(io.RawIOBase):
    """A file that counts what is read of it."""

    def __init__(self, inner) -> None:
        self.inner, self.bytes = inner, 0

    def read(self, size: int = -1) -> bytes:
        data = self.inner.read(size)
        self.bytes += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.inner.seek(offset, whence)

    def tell(self) -> int:
        return self.inner.tell()

    def seekable(self) -> bool:
        return True


@pytest.mark.slow
def test_of_a_large_archive_headers_and_summaries_are_read_and_memory_stays(tmp_path):
    path = tmp_path / "big.eval"
    write_log(path, 7_800)  # 100 MB, a tenth of what `python -m tests.bench inspect` measures
    tracemalloc.start()
    with path.open("rb") as file:
        stream = Counting(file)
        intake = Intake(REGISTRY, "lab", profile=profile(task="big"))
        ((draft, seen),) = inspect.read_group({"big.eval": stream}, intake)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (draft.run_status, seen.k, seen.n, seen.errored, seen.unscored) == ("complete", 7_020, 7_800, 0, 0)
    assert path.stat().st_size > 100_000_000
    assert stream.bytes < 4_000_000
    assert peak < 40 * 1024 * 1024
