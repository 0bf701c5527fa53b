import io
import json
import zipfile
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from evaluations.importers import enterpriseops_gym
from evaluations.importers.base import Intake
from evaluations.kernel.errors import InputRefused
from tests.evaluations.importers.eog import as_bytes, failed, path, result, run, runner_file
from tests.evaluations.importers.helpers import REGISTRY, only
from tests.support.evidence_files import evidence_bytes

YES, NO = (True, True), (True, False)


def read(files, **options):
    streams = {name: io.BytesIO(data if isinstance(data, bytes) else as_bytes(data)) for name, data in files.items()}
    return list(enterpriseops_gym.read_group(streams, Intake(REGISTRY, **{"source": "lab", **options})))


def refused(files, **options):
    with pytest.raises(InputRefused) as caught:
        read(files, **options)
    assert all(problem.hint and problem.file for problem in caught.value.problems)
    return list(caught.value.problems)


def by_metric(pairs):
    return {seen.metric: seen for _, seen in pairs}


def test_one_result_file_is_one_task_and_a_partial_run():
    pairs = read({"results_oracle__itsm__task_1.json": result(run(1, YES, turns=3))})
    draft = pairs[0][0]
    assert {id(each) for each, _ in pairs} == {id(draft)}
    assert (draft.subject_as_written, draft.provenance, draft.run_status) == ("provider/model-x", "recounted", "partial")
    assert draft.answered_as_written == ("model-x-2026-05-01",)
    assert draft.run_ended_at == datetime(2026, 6, 10, 10, 1, 1, 750000, tzinfo=UTC)
    seen = by_metric(pairs)
    assert {each.slice for each in seen.values()} == {"it_service_management"}
    assert {each.benchmark_version for each in seen.values()} == {"public-oracle"}
    assert seen["task_completion_rate"][4:9] == (Decimal(100), "1 of 1 x 1", Decimal(1), 1, 1)
    assert (seen["verifier_pass_rate"].k, seen["verifier_pass_rate"].n) == (2, 2)
    assert (seen["turns_per_task"].value, seen["turns_per_task"].k) == (3, None)


def test_a_rate_over_tasks_takes_the_mean_over_repeats_and_counts_errors_as_failures():
    files = {
        path("a"): result(run(1, YES), run(2, YES), run(3, NO)),
        path("b"): result(run(1, NO), failed(2), run(3, YES)),
        path("c"): result(failed(1), failed(2), failed(3)),
        path("d"): result(run(1, YES), run(2, YES), run(3, YES)),
    }
    seen = by_metric(read(files))
    tasks = seen["task_completion_rate"]
    # 2 + 1 + 0 + 3 of 12 runs; four of them errored.
    assert (tasks.k, tasks.n, tasks.repeats, tasks.errored, tasks.unscored) == (2, 4, 3, 2, 0)
    assert tasks.value == 50
    # Task c never shows how many checks it has, so there is no honest rate over checks.
    assert "verifier_pass_rate" not in seen
    assert seen["turns_per_task"].n == 4


def test_checks_of_errored_runs_count_as_failed():
    files = {path("a"): result(run(1, YES), failed(2)), path("b"): result(run(1, NO), run(2, YES))}
    checks = by_metric(read(files))["verifier_pass_rate"]
    # 2 + 0 + 1 + 2 of 4 checks times 2 repeats.
    assert (checks.k, checks.n, checks.repeats, checks.errored) == (Decimal("2.5"), 4, 2, 1)
    assert checks.value == Decimal("62.5")


def test_repeats_in_folders_are_repeats_and_not_tasks():
    files = {path("a", folder=folder): result(run(1, YES if folder < 3 else NO)) for folder in (1, 2, 3)}
    seen = by_metric(read(files))["task_completion_rate"]
    assert (seen.n, seen.repeats, seen.k) == (1, 3, Decimal("0.666666"))
    assert seen.value == Decimal("66.666600")
    assert seen.value < Decimal(200) / 3


def test_a_run_that_is_missing_beside_the_others_counts_as_failed():
    files = {path("a"): result(run(1, YES), run(2, YES)), path("b"): result(run(1, YES))}
    pairs = read(files)
    seen = by_metric(pairs)["task_completion_rate"]
    assert (seen.k, seen.n, seen.unscored) == (Decimal("1.5"), 2, 1)
    assert pairs[0][0].run_status == "partial"


def test_a_run_that_checked_nothing_is_no_success():
    given = result(run(1, ()))
    assert given["runs"][0]["overall_success"] is True
    given["statistics"]["successful_runs"] = 0
    seen = by_metric(read({path("a"): given}))
    assert (seen["task_completion_rate"].value, seen["task_completion_rate"].unscored) == (0, 1)
    assert "verifier_pass_rate" not in seen


def test_a_run_is_complete_only_with_every_task_of_the_public_split():
    size = enterpriseops_gym.PUBLIC_TASKS["teams"]
    files = {path(f"t{index}", domain="teams"): result(run(1, YES)) for index in range(size)}
    assert {draft.run_status for draft, _ in read(files)} == {"complete"}
    some = dict(list(files.items())[:-1])
    assert {draft.run_status for draft, _ in read(some)} == {"partial"}
    files[path("one-more", domain="teams")] = result(run(1, YES))
    assert only(refused(files)).code == "unknown_split"
    assert sum(enterpriseops_gym.PUBLIC_TASKS.values()) == 649


def test_models_domains_modes_and_orchestrators_are_never_mixed():
    files = {
        path("a"): result(run(1, YES)),
        path("a", domain="email"): result(run(1, YES)),
        path("a", mode="plus_5_tools"): result(run(1, YES)),
        path("a", orchestrator="planner_react"): result(run(1, YES)),
        path("b", folder=2): result(run(1, YES), model="provider/other"),
    }
    drafts = {draft for draft, _ in read(files)}
    assert len(drafts) == 5
    assert {draft.harness for draft in drafts} == {"EnterpriseOps-Gym react", "EnterpriseOps-Gym planner_react"}


def test_a_zip_of_the_results_tree_reads_as_its_files():
    files = {path(task, folder=folder): result(run(1, YES)) for task in "abc" for folder in (1, 2)}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(name, as_bytes(value))
    assert enterpriseops_gym.sniff(out.getvalue()[:65536], "results.zip")
    pairs = list(enterpriseops_gym.read_group({"results.zip": out}, Intake(REGISTRY, "lab")))
    assert pairs == read(files)


REAL = "enterpriseops-gym/tasks/"
DOUBLED = "task_20251205_153330_906_a8eea1c0_8c7a6205"
SINGLE = "task_20260102_155148_014_accab84d_910b176a"


def as_the_harness_keeps_it(task):
    """A run in which every check passed, its outcomes by name as the harness keeps them."""
    made = run(1, YES)
    names = [each["name"] for each in json.loads(evidence_bytes(f"{REAL}{task}.json"))["verifiers"]]
    made["verification_results"] = {name: {"passed": True} for name in names}
    made["verification_summary"] = {"total": len(set(names)), "passed": len(set(names)), "failed": 0, "pass_rate": 1.0}
    return result(made)


def test_checks_of_one_name_do_not_vanish_beside_their_task():
    results = {path(task, domain="csm"): as_the_harness_keeps_it(task) for task in (DOUBLED, SINGLE)}
    alone = read(results)
    assert by_metric(alone)["task_completion_rate"].value == 100
    assert "2 tasks were not given beside their results" in alone[0][0].note
    tasks = {f"tasks/{task}.json": evidence_bytes(f"{REAL}{task}.json") for task in (DOUBLED, SINGLE)}
    for files in ({**results, **tasks}, {**tasks, **results}):
        pairs = read(files)
        seen = by_metric(pairs)
        # 11 checks under 3 names and 4 under 4: of 15, the outcomes of 7 are there.
        checks, completed = seen["verifier_pass_rate"], seen["task_completion_rate"]
        assert (checks.k, checks.n, checks.unscored) == (7, 15, 8)
        assert (completed.k, completed.n, completed.unscored) == (1, 2, 1)
        assert "8 outcomes of checks are not there" in pairs[0][0].note
        assert enterpriseops_gym.sniff(next(iter(tasks.values()))[:65536], "t.json")


def test_real_tasks_have_the_checks_that_are_known_of_them():
    known = {DOUBLED: 11, "task_20251205_154853_044_d4a463c3_fce76046": 4, SINGLE: 4}
    known["task_20251212_172511_458_e6427839_47076c15"] = 2
    for task, count in known.items():
        seen = by_metric(read({path(task): result(failed(1)), f"{task}.json": evidence_bytes(f"{REAL}{task}.json")}))
        # Though no run ever showed them.
        assert (seen["verifier_pass_rate"].n, seen["verifier_pass_rate"].errored) == (count, count)


def test_a_task_and_its_results_must_agree():
    verifiers = [{"name": "check 0"}]
    task = {"gym_servers_config": [], "verifiers": verifiers}
    assert only(refused({path("a"): result(run(1, YES)), "a.json": task})).code == "contradicts_counts"
    twice = {path("a"): result(run(1, (True,))), "a.json": task, "b.json": {**task, "task_id": "a", "verifiers": verifiers * 2}}
    assert only(refused(twice)).code == "duplicate"
    assert only(refused({path("a"): result(run(1, YES)), "a.json": {**task, "verifiers": {}}})).code == "unknown_shape"
    assert only(refused({"a.json": task})).code == "no_numbers"


def test_a_run_that_keeps_its_checks_under_one_name_twice_is_refused():
    text = as_bytes(result(run(1, YES))).replace(b'"check 1"', b'"check 0"')
    assert only(refused({path("a"): text})).code == "duplicate_key"


def test_checks_of_one_name_are_each_counted_in_the_third_partys_list():
    given = runner_file(span="0-1", total=2, tasks=((False, True), (True, True)))
    for row in given["results"]:
        for each in row["verifiers"]:
            each["name"] = "update_entitlement"
    seen = by_metric(read({"teams.json": given}, subject="Model X"))
    assert (seen["verifier_pass_rate"].k, seen["verifier_pass_rate"].n, seen["task_completion_rate"].k) == (3, 4, 1)


def broken(**changes):
    given = result(run(1, YES), run(2, NO))
    given["runs"][0] |= changes
    return given


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("answer.json", result(run(1, YES)), "file_name"),
        ("results_oracle__sales__t.json", result(run(1, YES)), "file_name"),
        ("results_plus_7_tools__hr__t.json", result(run(1, YES)), "file_name"),
        (path("a"), result(), "empty"),
        (path("a"), result(run(1, YES), model=""), "missing"),
        (path("a"), broken(overall_success=False), "contradicts_counts"),
        (path("a"), broken(verification_summary={"total": 3, "passed": 2}), "contradicts_counts"),
        (path("a"), broken(verification_summary={"total": 2, "passed": "2 of 2"}), "not_a_count"),
        (path("a"), broken(run_number=2), "duplicate"),
        (path("a"), broken(started_at="2026-06-10T10:00:00"), "not_an_instant"),
        (path("a"), {**result(run(1, YES)), "statistics": {"successful_runs": 0}}, "contradicts_counts"),
        (path("a"), b"{", "malformed"),
        (path("a"), b"", "empty"),
        (path("a"), b'{"benchmark_config": {}, "benchmark_config": {}}', "duplicate_key"),
        (path("a"), {"hello": 1}, "unknown_shape"),
        (path("a"), [1], "unknown_shape"),
        ("notes.txt", b"hello", "not_evidence"),
    ],
)
def test_a_file_that_is_wrong_is_refused_naming_it(name, value, code):
    problem = refused({name: value})[0]
    assert (problem.code, problem.file) == (code, name)


def test_the_same_result_given_twice_is_refused():
    files = {path("a"): result(run(1, YES)), "copy/" + path("a"): result(run(1, YES))}
    assert only(refused(files)).code == "duplicate"


def test_names_must_be_registered():
    small = REGISTRY._replace(benchmarks={"bench": frozenset({"1"})})
    with pytest.raises(InputRefused) as caught:
        list(enterpriseops_gym.read_group({path("a"): io.BytesIO(as_bytes(result(run(1, YES))))}, Intake(small, "lab")))
    assert {problem.code for problem in caught.value.problems} == {"unknown_benchmark"}
    assert only(refused({path("a"): result(run(1, YES))}, source=None)).field == "source"
    assert only(refused({path("a"): result(run(1, YES))}, subject="other")).field == "subject"


def test_the_third_partys_partial_run_counts_planned_tasks():
    ((draft, seen),) = read({"teams.json": runner_file()}, subject="Model X")
    assert (draft.run_status, draft.run_ended_at) == ("partial", None)
    # Its own `task_pass_rate` says 100.0%: 2 of the 2 tasks that were run, of 8 planned.
    assert (seen.metric, seen.value, seen.k, seen.n, seen.unscored) == ("task_completion_rate", 25, 2, 8, 6)
    assert (seen.benchmark_version, seen.slice) == ("third-party-runner", "teams")


def test_the_third_partys_whole_run_has_both_rates():
    given = runner_file(span="0-1", total=2, tasks=((True,) * 8, (True, False)))
    pairs = read({"teams.json": given}, subject="Model X")
    assert {draft.run_status for draft, _ in pairs} == {"complete"}
    seen = by_metric(pairs)
    assert (seen["task_completion_rate"].value, seen["verifier_pass_rate"].value) == (50, 90)


def test_the_third_partys_file_needs_a_subject_and_agreeing_counts():
    assert enterpriseops_gym.sniff(as_bytes(runner_file()), "teams.json")
    assert only(refused({"teams.json": runner_file()})).field == "subject"
    for changes, field in [
        ({"tasks_passed": 1}, "tasks_passed"),
        ({"verifiers_total": 4}, "verifiers_total"),
        ({"range": "2-8"}, "tasks_total"),
        ({"tasks_run": 3}, "tasks_run"),
        ({"domain": "sales"}, "domain"),
        ({"tasks_total": "many"}, "tasks_total"),
    ]:
        assert refused({"teams.json": {**runner_file(), **changes}}, subject="X")[0].field == field
