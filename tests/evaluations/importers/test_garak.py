"""garak reports: `passed` counts attacks that failed, and a model without answers passes no probe."""

import gzip
import json
from decimal import Decimal

import pytest

from evaluations.importers import garak
from evaluations.importers.base import Problems
from evaluations.kernel.errors import InputRefused
from tests.evaluations.importers.foreign import by_metric, read, refused
from tests.evaluations.importers.helpers import only
from tests.support.evidence_files import evidence_bytes

EXPECTED = json.loads(evidence_bytes("garak/expected.json"))["files"]
REPORTS = [name for name, right in EXPECTED.items() if "evals" in right and not right["bad_lines"]]
BLANK = "generated/blank-model-passes-everything.report.jsonl"
DISAGREE = "generated/two-detectors-disagree.report.jsonl"


def data(name: str) -> bytes:
    return evidence_bytes(f"garak/{name}")


def take(name: str):
    return by_metric(read({name.rsplit("/", 1)[-1]: data(name)}))


def lines(*entries: dict, completed: bool = True, version: str = "0.17.1") -> bytes:
    made = [
        {"entry_type": "start_run setup", "plugins.target_type": "openai", "plugins.target_name": "gpt-x", "run.generations": 1},
        {"entry_type": "init", "garak_version": version, "start_time": "2026-11-01T12:00:00"},
        *entries,
        *([{"entry_type": "completion", "end_time": "2026-11-01T13:00:00"}] if completed else []),
    ]
    return "\n".join(map(json.dumps, made)).encode()


def attempt(*scores: object, said: str = "No.", detector: str = "d.D") -> dict:
    return {
        "entry_type": "attempt",
        "status": 2,
        "probe_classname": "p.P",
        "outputs": [{"text": said}] * len(scores),
        "detector_results": {detector: list(scores)},
    }


def evaluated(passed: int, total: int, *, nones: int = 0, detector: str = "d.D") -> dict:
    counts = {
        "passed": passed,
        "fails": total - passed,
        "nones": nones,
        "total_evaluated": total,
        "total_processed": total + nones,
    }
    return {"entry_type": "eval", "probe": "p.P", "detector": detector, **counts}


@pytest.mark.parametrize("name", REPORTS)
def test_a_real_report_is_read_to_its_right_values(name):
    right = EXPECTED[name]
    problems = Problems(name)
    report = garak.scan(data(name).decode().split("\n"), problems)
    assert not problems
    assert report.version == (right["garak_version"] or "")
    assert report.completed is right["completed"]
    assert report.judged == right["attempts_judged"]
    assert report.target == (right["target"] or "").removesuffix(" None")
    found = [(one.probe, one.detector, one.passed, one.total, one.nones, one.processed) for one in report.evals.values()]
    assert found == [
        tuple(one[key] for key in ("probe", "detector", "passed", "total", "nones", "processed")) for one in right["evals"]
    ]
    for one, other in zip(report.evals.values(), right["evals"], strict=True):
        assert one.hits / one.total == other["attack_success_rate"]
        interval = other["interval_of_attack_success"]
        assert one.interval == (f"{interval[0]} to {interval[1]}" if interval else "")


def test_passed_means_that_the_attack_failed():
    draft, seen = take("test_with_ci.report.jsonl")["test", "attack_success_rate", "0.14.0.pre1", "test.test.always.pass"]
    assert (seen.value, seen.value_as_written) == (26, "13 of 50 evaluated")
    assert (draft.provenance, draft.run_status) == ("reported", "complete")
    assert "interval as printed 0.14 to 0.38" in draft.note
    assert "does not hold every attempt" in draft.note


def test_a_dead_models_empty_answers_pass_no_probe():
    for _, seen in take(BLANK).values():
        assert (seen.k, seen.value) == (0, 100)
        assert seen.unscored == seen.n
        assert seen.value_as_written.startswith("0 of ")
    alive = by_metric(read({"r.jsonl": lines(attempt(0.0), attempt(0.0, said="  "), evaluated(2, 2))}))
    assert [(seen.n, seen.unscored, seen.value) for _, seen in alive.values()] == [(2, 1, 50)]


def test_two_detectors_on_the_same_outputs_are_two_measures():
    found = {key[3]: seen for key, (_, seen) in take(DISAGREE).items()}
    assert found["dan.dan_11_0.dan.dan"].value == 100
    assert found["dan.dan_11_0.mitigation.mitigationbypass"].k == 0
    assert len(found) == 3


def test_generations_are_no_new_prompts():
    ((_, seen),) = read({"r.jsonl": lines(attempt(1.0, 0.0, 0.0), attempt(0.0, 0.0, 0.0), evaluated(5, 6))})
    assert (seen.n, seen.repeats, seen.k) == (2, 3, Decimal("0.333334"))


def test_scores_that_are_none_leave_garaks_denominator_and_count_here():
    ((_, seen),) = read({"r.jsonl": lines(attempt(0.0), attempt(None), evaluated(1, 1, nones=1))})
    assert (seen.n, seen.unscored, seen.value, seen.value_as_written) == (2, 1, 50, "0 of 1 evaluated")


def test_rows_that_contradict_their_headline_are_recounted_and_both_are_kept():
    ((draft, seen),) = read({"r.jsonl": lines(attempt(1.0), attempt(0.0), evaluated(2, 2))})
    assert (seen.k, seen.value, seen.value_as_written) == (1, 50, "0 of 2 evaluated")
    assert "the eval line states 0 hits" in draft.note


def test_a_scan_that_did_not_finish_is_partial_and_one_without_evals_is_refused():
    ((draft, _),) = read({"r.jsonl": lines(attempt(0.0), evaluated(1, 1), completed=False)})
    assert draft.run_status == "partial"
    assert only(refused({"r.jsonl": data("generated/aborted-no-eval.report.jsonl")})).code == "empty"
    agg = take("agg.report.jsonl").values()
    assert {draft.run_status for draft, _ in agg} == {"partial"}
    assert {draft.run_ended_at.date().isoformat() for draft, _ in agg} == {"2025-08-28"}


def test_the_end_of_the_run_is_the_earliest_that_its_local_time_can_mean():
    ((draft, _),) = read({"r.jsonl": lines(attempt(0.0), evaluated(1, 1))})
    assert draft.run_ended_at.isoformat() == "2026-10-31T23:00:00+00:00"
    assert (draft.subject_as_written, draft.harness) == ("openai gpt-x", "garak 0.17.1")


@pytest.mark.parametrize("name", [name for name, right in EXPECTED.items() if "hits" in right])
def test_a_hit_log_is_refused_for_want_of_a_denominator(name):
    problem = only(refused({"x.hitlog.jsonl": data(name)}))
    assert (problem.code, problem.line) == ("no_denominator", 1)


def test_a_report_that_names_neither_model_nor_version_and_one_cut_in_a_line_are_refused():
    fields = {problem.field for problem in refused({"q.report.jsonl": data("qual_review_mixed.report.jsonl")})}
    assert fields == {"plugins.target_type", "garak_version"}
    problem = only(refused({"c.report.jsonl": data("derived/cut-mid-line.report.jsonl")}))
    assert problem.code == "malformed"
    assert problem.line is not None
    assert problem.line > 2


def test_a_gzip_reads_as_what_it_holds_and_a_bomb_or_a_broken_one_is_refused():
    assert read({"r.report.jsonl.gz": data("derived/two-detectors-disagree.report.jsonl.gz")}) == read({"r": data(DISAGREE)})
    bomb = gzip.compress(lines(*[attempt(0.0)] * 3, evaluated(3, 3)) + b"\n" + b" " * (64 * 1024 * 1024))
    assert only(refused({"r.jsonl.gz": bomb})).code in {"expansion", "line_too_long"}
    broken = data("derived/two-detectors-disagree.report.jsonl.gz")[:-200]
    assert only(refused({"r.jsonl.gz": broken})).code == "broken_archive"


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({**evaluated(3, 2), "fails": 0}, "contradicts_counts"),
        ({**evaluated(1, 2), "fails": 0}, "contradicts_counts"),
        ({**evaluated(1, 1), "total_processed": 9}, "contradicts_counts"),
        ({**evaluated(1, 1), "passed": None}, "missing"),
        ({**evaluated(1, 1), "passed": 0.5}, "not_a_count"),
        ({**evaluated(1, 1), "probe": "p\u0430"}, "look_alike"),
        (evaluated(0, 0), "no_sample"),
        ({**attempt(0.0), "detector_results": {"d.D": [0.0, 0.0]}}, "contradicts_counts"),
        ([1], "unknown_shape"),
    ],
)
def test_an_entry_that_contradicts_itself_is_refused_with_its_line(entry, code):
    problem = refused({"r.jsonl": lines(evaluated(1, 1, detector="x.X"), entry)})[0]
    assert (problem.code, problem.line) == (code, 4)


def test_the_same_eval_twice_and_a_version_nobody_registered_are_refused():
    assert only(refused({"r.jsonl": lines(evaluated(1, 1), evaluated(1, 1))})).code == "duplicate"
    assert only(refused({"r.jsonl": lines(evaluated(1, 1), version="9.9")})).code == "unknown_benchmark_version"


def test_memory_does_not_grow_with_attempts():
    problems = Problems("r")
    text = json.dumps(attempt(0.0, 1.0))
    report = garak.scan((text for _ in range(20_000)), problems)
    assert report.judged == 20_000
    assert len(report.rows) == 1


def test_a_line_beyond_the_limit_is_refused():
    with pytest.raises(InputRefused) as caught:
        read({"r.jsonl": lines(attempt(0.0, said="x" * (garak.MAX_LINE_BYTES + 300_000)))})
    assert only(list(caught.value.problems)).code == "line_too_long"
