"""Results of the lm-evaluation-harness: every real file's right values, four generations, filters, groups, samples and limits."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from evaluations.importers import profiles
from evaluations.importers.base import Profile
from evaluations.importers.registry import pick
from tests.evaluations.importers.foreign import read, refused
from tests.evaluations.importers.helpers import only
from tests.support.evidence_files import evidence_bytes, evidence_file

EXPECTED: dict[str, Any] = json.loads(evidence_file("lm-eval-harness/expected.json").read_text())["files"]
GENERATED = "generated/results_2026-11-29T17-16-44.528678.json"
MADE = {task: f"generated/samples_refuse_{task}_2026-11-29T17-16-44.528678.jsonl" for task in ("hr", "itsm", "email", "gen")}
MATH = "v0.4.9.2/results_2026-01-21T03-44-18.458309.json"
MATH_SAMPLES = "v0.4.9.2/samples_math_perturbed_full_2026-01-21T03-44-18.458309.jsonl"
PYTHIA = "v0-2023/12b-5shot_step143000.json"
MEASURE: dict[str, Any] = {
    "of": "acc",
    "task": "refuse_hr",
    "metric": "infeasible_refusal_rate",
    "better": "higher",
    "level": "task",
    "unit": "fraction",
}


def profile(*measures: dict[str, Any], **changes: Any) -> Profile:
    made = {"format": "writegate-profile/1", "name": "lm", "importer": "lm-eval-harness", "benchmark": "writes", "version": "1"}
    listed = [{**MEASURE, "slice": f"s{index}", **each} for index, each in enumerate(measures or ({},))]
    return profiles.read_profile(json.dumps({**made, "measures": listed, **changes}).encode(), name="profile.json")


def files(*names: str) -> dict[str, bytes]:
    return {name: evidence_bytes(f"lm-eval-harness/{name}") for name in names}


def made(task: dict[str, Any], **changes: Any) -> dict[str, bytes]:
    value = {
        "results": {"refuse_hr": {"alias": "refuse_hr", **task}},
        "versions": {"refuse_hr": 1.0},
        "n-samples": {"refuse_hr": {"original": 4, "effective": 4}},
        "n-shot": {"refuse_hr": 0},
        "config": {"model": "hf", "model_args": "pretrained=org/model", "limit": None},
        "date": 1768964383.8593218,
        "lm_eval_version": "0.4.9",
        **changes,
    }
    return {"results_2026-01-21T03-44-18.json": json.dumps(value).encode()}


def samples(*rows: dict[str, Any]) -> dict[str, bytes]:
    lines = [
        {"doc_id": index, "filter": "none", "metrics": ["acc"], "filtered_resps": [], **row} for index, row in enumerate(rows)
    ]
    return {"samples_refuse_hr_2026-01-21T03-44-18.5.jsonl": "\n".join(map(json.dumps, lines)).encode()}


def wanted(name: str) -> list[tuple[str, dict[str, Any]]]:
    return [(key, right) for key, right in EXPECTED[name]["observations"].items() if right["value"] is not None]


@pytest.mark.parametrize("name", [GENERATED, MATH])
def test_every_task_metric_and_filter_has_its_right_value_and_n(name):
    rights = wanted(name)
    measures = []
    for key, right in rights:
        task, metric, filtered = key.split("|")
        measures.append({"of": metric, "task": task, "filter": filtered, "group": right["is_group"]})
    subject = "dummy" if name == GENERATED else None
    pairs = read(files(name), profile=profile(*measures), subject=subject)
    found = {seen.slice: (draft, seen) for draft, seen in pairs}
    assert len(found) == len(rights)
    for index, (_, right) in enumerate(rights):
        draft, seen = found[f"s{index}"]
        assert Decimal(seen.value_as_written) == Decimal(str(right["value"]))
        assert abs(seen.value - Decimal(str(right["value"])) * 100) <= Decimal("0.000001")
        assert seen.n == (None if right["is_group"] else right["n"])
        assert (draft.run_status, draft.provenance) == ("complete", "run_log")
        assert draft.run_ended_at == datetime.fromtimestamp(int(EXPECTED[name]["date_unix"]), tz=UTC)
        assert EXPECTED[name]["lm_eval_version"] in draft.harness


def test_with_its_samples_a_rate_is_counted_and_must_be_what_the_results_say():
    measures, rights = [], []
    for domain, name in MADE.items():
        for key, right in EXPECTED[name]["recount"].items():
            metric, filtered = key.split("|")
            measures.append({"of": metric, "task": f"refuse_{domain}", "filter": filtered})
            rights.append((right["n"], right["k"]))
    pairs = read(files(GENERATED, *MADE.values()), profile=profile(*measures), subject="dummy")
    found = {seen.slice: (draft.provenance, seen.n, seen.k) for draft, seen in pairs}
    assert found == {f"s{index}": ("recounted", n, Decimal(k)) for index, (n, k) in enumerate(rights)}


def test_a_samples_file_shorter_than_n_is_told_and_not_counted():
    measure = {"of": "exact_match", "task": "math_perturbed_full"}
    ((draft, seen),) = read(files(MATH, MATH_SAMPLES), profile=profile(measure))
    assert (draft.provenance, seen.k, seen.n) == ("run_log", None, 5000)
    assert "10 samples, of 5000 documents a filter: not counted" in draft.note


def test_where_every_document_counts_0_or_1_k_follows_from_value_and_n():
    measure = {"of": "exact_match", "task": "math_rephrased_full", "binary": True}
    ((draft, seen),) = read(files(MATH), profile=profile(measure))
    assert (seen.k, seen.n, seen.value) == (2, 5000, Decimal("0.04"))
    assert draft.subject_as_written == "RylanSchaeffer/mem_Qwen3-93M_minerva_math_rep_0_sbst_1.0000_epch_1_ot_1"
    problem = only(refused(made({"acc,none": 0.3}), profile=profile({"binary": True})))
    assert (problem.code, problem.field) == ("contradicts_counts", "results.refuse_hr.acc,none")


def test_a_group_is_an_average_over_tasks_and_never_a_tasks_number():
    group = {"task": "refuse_all"}
    assert only(refused(files(GENERATED), profile=profile(group), subject="dummy")).code == "group"
    assert only(refused(files(GENERATED), profile=profile({"group": True}), subject="dummy")).code == "group"
    ((draft, seen),) = read(files(GENERATED), profile=profile({**group, "group": True}), subject="dummy")
    assert (seen.value, seen.n, seen.k) == (32, None, None)
    assert "an average over the tasks refuse_hr, refuse_itsm" in draft.note


def test_two_filters_of_a_task_are_two_measures_and_an_unknown_one_is_refused():
    both = ({"of": "exact_match", "task": "refuse_gen", "filter": each} for each in ("strict", "flexible"))
    assert len(read(files(GENERATED), profile=profile(*both), subject="dummy")) == 2
    problem = only(refused(files(GENERATED), profile=profile({"of": "exact_match", "task": "refuse_gen"}), subject="dummy"))
    assert (problem.code, problem.field) == ("not_a_number", "results.refuse_gen.exact_match,none")
    assert "exact_match,strict" in problem.hint


def test_old_results_have_neither_n_nor_date_and_the_model_in_its_arguments():
    ((draft, seen),) = read(files(PYTHIA), profile=profile({"task": "arc_challenge"}))
    assert draft.subject_as_written == "EleutherAI/pythia-v1.1-12b (revision=step143000)"
    assert (seen.n, seen.k, draft.run_ended_at, seen.value) == (None, None, None, Decimal("36.518771"))
    bias, bare = "v0-2023/bias-intervention_01-21-2023.json", "v0-2023/arc_challenge-v2.0-res.json"
    for name in (bias, bare):
        assert only(refused(files(name), profile=profile({"task": "arc_challenge"}))).code == "missing"
        ((draft, seen),) = read(files(name), profile=profile({"task": "arc_challenge"}), subject="pythia-1.3b")
        right = Decimal(str(EXPECTED[name]["examples"]["arc_challenge"]["acc"]))
        assert (draft.subject_as_written, Decimal(seen.value_as_written)) == ("pythia-1.3b", right)


def test_the_fork_of_2022_has_a_date_for_each_value():
    fork = {"results": {"refuse_hr": {"2022-07-07-15-40-10": {"acc": 0.25}, "2022-07-09-01-00-00": {"acc": 0.5}}}}
    pairs = read({"fork.json": json.dumps(fork).encode()}, profile=profile(), subject="bloom")
    assert [(draft.run_ended_at.isoformat()[:10], seen.value, seen.n) for draft, seen in pairs] == [
        ("2022-07-07", 25, None),
        ("2022-07-09", 50, None),
    ]


def test_numbers_without_task_model_or_harness_are_no_evidence():
    data = {"opt.json": b'{"pass@1": 0.0, "pass@10": 0.0}'}
    assert only(refused(data)).code == "unknown_format"
    assert only(refused(data, format_name="lm-eval-harness", profile=profile())).code == "unknown_shape"


def test_a_bare_acc_is_refused_without_a_profile():
    problem = only(refused(files(GENERATED)))
    assert (problem.code, problem.field) == ("profile_missing", "profile")


def test_nan_is_refused_and_a_stderr_that_is_no_number_is_not_read():
    name = "derived/na-stderr.json"
    assert only(refused(files(name), profile=profile({"task": "refuse_itsm"}), subject="dummy")).code == "not_a_number"
    ((_, seen),) = read(files(name), profile=profile({"task": "refuse_email"}), subject="dummy")
    assert seen.value == 35


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"n-samples": {"refuse_hr": {"original": 100, "effective": 4}}}, "limited: 4 of 100"),
        ({"config": {"model_args": "pretrained=org/model", "limit": 4.0}}, "limited: 4 of 4"),
    ],
)
def test_a_limited_run_is_partial(changes, what):
    ((draft, _),) = read(made({"acc,none": 0.5}, **changes), profile=profile())
    assert draft.run_status == "partial"
    assert what in draft.note


def test_quantisation_and_revision_are_part_of_the_name_and_the_machine_is_not():
    arguments = {"pretrained": "org/model", "load_in_4bit": True, "revision": "main", "device": "cuda:1", "dtype": "bfloat16"}
    config = {"model_args": arguments}
    ((draft, _),) = read(made({"acc,none": 0.5}, config=config, system_instruction_sha="ab" * 32), profile=profile())
    settings = "dtype=bfloat16, load_in_4bit=true, revision=main, system_instruction=sha256:abababababab"
    assert draft.subject_as_written == f"org/model ({settings})"


@pytest.mark.parametrize("named", ["pretrained=/home/me/checkpoint", "pretrained=./out", "tokenizer=x", ""])
def test_a_path_or_nothing_is_no_name(named):
    found = made({"acc,none": 0.5}, config={"model_args": named}, model_name="b8izj3vk")
    problem = only(refused(found, profile=profile()))
    assert (problem.code, problem.field) == ("missing", "config.model_args")
    assert read(found, profile=profile(), subject="org/model")[0][0].subject_as_written == "org/model"


def test_another_subject_than_the_files_is_refused():
    assert only(refused(made({"acc,none": 0.5}), profile=profile(), subject="other")).code == "other_subject"


@pytest.mark.parametrize("changes", [{"task_version": "2.0"}, {"n_shot": "5"}])
def test_a_pinned_version_or_number_of_examples_must_be_the_files(changes):
    assert only(refused(made({"acc,none": 0.5}), profile=profile(changes))).code == "other_version"
    assert read(made({"acc,none": 0.5}), profile=profile({"task_version": "1.0", "n_shot": "0"}))


def test_51_1_among_fractions_and_0_511_among_percents_are_refused_and_not_scaled():
    assert only(refused(made({"acc,none": 51.1}), profile=profile())).code == "unit_mix"
    assert only(refused(made({"acc,none": 0.511}), profile=profile({"unit": "percent"}))).code == "unit_mix"


def test_samples_that_contradict_the_results_or_stand_twice_are_refused():
    rows = [{"acc": 1.0}, {"acc": 0.0}, {"acc": 0.0}, {"acc": 0.0}]
    both = {**made({"acc,none": 0.25}), **samples(*rows)}
    ((_, seen),) = read(both, profile=profile())
    assert (seen.k, seen.n) == (1, 4)
    assert only(refused({**made({"acc,none": 0.5}), **samples(*rows)}, profile=profile())).code == "contradicts_counts"
    twice = {**made({"acc,none": 0.25}), **samples(*rows[:3], {"acc": 0.0, "doc_id": 0})}
    assert only(refused(twice, profile=profile())).code == "duplicate"


def test_a_sample_without_a_score_counts_against_the_subject():
    rows = [{"acc": 1.0}, {"acc": 1.0}, {"acc": None}, {"acc": float("nan")}]
    ((_, seen),) = read({**made({"acc,none": 1.0}), **samples(*rows)}, profile=profile())
    assert (seen.k, seen.n, seen.unscored, seen.value) == (2, 4, 2, 50)


def test_results_and_samples_are_recognised():
    for name in (GENERATED, MATH, PYTHIA, "v0-2023/arc_challenge-v2.0-res.json", *MADE.values()):
        assert pick(None, evidence_bytes(f"lm-eval-harness/{name}")[:65536], name).NAME == "lm-eval-harness"
    assert only(refused(files(*MADE.values()), profile=profile())).code == "empty"
