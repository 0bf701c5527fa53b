"""tau-bench attempts and tau2-bench leaderboard entries."""

import csv
import io
import json
from decimal import Decimal

import pytest

from evaluations.importers import tau_bench
from evaluations.importers.outcomes import Attempt
from tests.evaluations.importers.foreign import by_metric, read, refused
from tests.evaluations.importers.helpers import only
from tests.support.evidence_files import evidence_bytes, evidence_folder

SUBSET = "gpt-4o-airline.subset-tasks-1-12-35-43-49.json"
SUBMISSIONS = {
    "claude-fable-5_sierra_2026-08-04": ("Claude Fable 5 (max)", {"banking_knowledge": "39.690721"}),
    "claude-opus-5_sierra_2026-08-04": ("Claude Opus 5 (max)", {"banking_knowledge": "48.71134"}),
    "gpt-5-5_sierra_2026-05-05": ("GPT-5.5 (xhigh)", {"banking_knowledge": "44.587628"}),
    "claude-opus-4-5_sierra_2026-02-26": (
        "Claude Opus 4.5 (high)",
        {"airline": "84.0", "retail": "79.61", "telecom": "92.32", "banking_knowledge": "24.74"},
    ),
}


def subset() -> list[dict]:
    return json.loads(evidence_bytes(f"tau-bench/{SUBSET}"))


def attempt(task: int, trial: int, *, reward: float = 0.0, gold: tuple[str, ...] = (), calls: tuple[str, ...] = (), judged=True):
    return {
        "task_id": task,
        "trial": trial,
        "reward": reward,
        "info": {"task": {"actions": [{"name": name} for name in gold]}, "reward_info": {} if judged else None},
        "traj": [{"role": "assistant", "tool_calls": [{"function": {"name": name}} for name in calls]}],
    }


def rows() -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(evidence_bytes("tau-bench/gpt-4o-airline.derived-per-trial.csv").decode())))


def whole_file() -> list[dict]:
    """The attempts of the full file, made again from its table of one row an attempt."""
    return [
        attempt(
            int(row["task_id"]),
            int(row["trial"]),
            reward=float(row["reward"]),
            gold=("book_reservation",) * (int(row["gold_writes"]) > 0),
            calls=("cancel_reservation",) * (int(row["agent_writes"]) > 0),
            judged=row["reward_info_present"] == "True",
        )
        for row in rows()
    ]


def take(value: object, *, name: str = "gpt-4o-airline.json", **options):
    return by_metric(read({name: json.dumps(value).encode()}, subject="gpt-4o", **options))


def test_the_real_attempts_give_14_of_20_over_five_tasks():
    found = by_metric(read({SUBSET: evidence_bytes(f"tau-bench/{SUBSET}")}, subject="gpt-4o"))
    draft, seen = found["gpt-4o", "task_completion_rate", "airline", "overall"]
    assert (seen.k, seen.n, seen.repeats, seen.value) == (Decimal("3.5"), 5, 4, 70)
    assert (draft.run_status, draft.provenance) == ("partial", "recounted")
    assert "5 of 50 tasks" in draft.note
    assert "pass^1 0.7000, pass^2 0.6000, pass^3 0.6000, pass^4 0.6000" in draft.note


def test_the_full_file_gives_the_published_rates_with_crashes_counted_and_wrongful_writes_apart():
    found = take(whole_file())
    draft, seen = found["gpt-4o", "task_completion_rate", "airline", "overall"]
    assert (seen.k, seen.n, seen.repeats, seen.value) == (21, 50, 4, 42)
    assert draft.run_status == "complete"
    assert "pass^1 0.4200, pass^2 0.2733, pass^3 0.2200, pass^4 0.2000" in draft.note
    assert "error 5" in draft.note
    harm = found["gpt-4o", "wrongful_write_rate", "airline", "overall"][1]
    assert (harm.n, harm.repeats, harm.k) == (20, 4, Decimal("6.25"))
    assert harm.value == Decimal("31.25") + 100 * Decimal(harm.errored) / 20


def test_a_run_that_crashed_is_an_error_and_not_a_failure():
    value = [attempt(0, 0, reward=1.0, gold=("book_reservation",)), attempt(1, 0, judged=False, gold=("book_reservation",))]
    seen = take(value)["gpt-4o", "task_completion_rate", "airline", "overall"][1]
    assert (seen.k, seen.n, seen.errored, seen.value) == (1, 2, 1, 50)


def test_pass_hat_needs_as_many_trials():
    trials = [Attempt("a", 0, "task_done"), Attempt("a", 1, "task_failed")]
    assert tau_bench.pass_hat(trials, 1) == Decimal("0.5")
    assert tau_bench.pass_hat(trials, 2) == 0
    assert tau_bench.pass_hat(trials, 3) is None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"reward": 0.5}, "not_whole"),
        ({"reward": "1.0"}, "not_whole"),
        ({"reward": None}, "not_whole"),
        ({"task_id": None}, "missing"),
        ({"trial": -1}, "not_a_count"),
        ({"info": None}, "missing"),
    ],
)
def test_an_attempt_that_does_not_say_what_it_must_is_refused_with_its_place(change, code):
    value = [attempt(0, 0), {**attempt(1, 0), **change}]
    problem = refused({"x-airline.json": json.dumps(value).encode()}, subject="gpt-4o")[0]
    assert problem.code == code
    assert problem.field.startswith("[1].")


def test_the_same_trial_twice_a_file_without_domain_and_a_missing_subject_are_refused():
    good = json.dumps([attempt(0, 0)]).encode()
    assert only(refused({"a-airline.json": json.dumps([attempt(0, 0)] * 2).encode()}, subject="m")).code == "duplicate"
    assert only(refused({"a.json": good}, subject="m")).code == "file_name"
    assert only(refused({"a-airline.json": good})).field == "subject"
    assert only(refused({"a-airline.json": b"[]"}, subject="m", format_name="tau-bench")).code == "unknown_shape"
    assert only(refused({"a-airline.json": good}, subject="gpt-4\u043e")).code == "look_alike"


@pytest.mark.parametrize("name", sorted(SUBMISSIONS))
def test_a_real_entry_has_its_percents_its_effort_and_no_n(name):
    subject, rates = SUBMISSIONS[name]
    found = by_metric(read({"submission.json": evidence_bytes(f"tau2-bench/submissions/{name}.submission.json")}))
    done = {key[3]: (draft, seen) for key, (draft, seen) in found.items() if key[1] == "task_completion_rate"}
    assert {domain: str(seen.value) for domain, (_, seen) in done.items()} == {
        domain: f"{Decimal(rate):.6f}" for domain, rate in rates.items()
    }
    for draft, seen in done.values():
        assert (draft.subject_as_written, draft.provenance, draft.about) == (subject, "reported", "model")
        assert (seen.n, seen.k, seen.benchmark_version) == (None, None, "1.0.1")


def test_every_real_entry_but_the_example_is_read():
    entries = sorted((evidence_folder() / "tau2-bench" / "submissions").glob("*submission.json"))
    assert len(entries) == 16
    versions = set()
    for entry in entries:
        files = {entry.name: entry.read_bytes()}
        if entry.name.startswith("A_EXAMPLE"):
            assert only(refused(files)).code == "example"
            continue
        pairs = read(files)
        assert pairs
        versions |= {seen.benchmark_version for _, seen in pairs}
    assert versions == {"0.1.3", "1.0.1"}


def test_a_custom_scaffold_is_about_an_agent_and_costs_are_dollars():
    (name,) = [entry.name for entry in (evidence_folder() / "tau2-bench" / "submissions").glob("toolorchestra*")]
    pairs = read({name: evidence_bytes(f"tau2-bench/submissions/{name}")})
    assert {draft.about for draft, _ in pairs} == {"agent"}
    opus = by_metric(read({"s.json": evidence_bytes("tau2-bench/submissions/claude-opus-4-5_sierra_2026-02-26.submission.json")}))
    costs = {key[3]: seen.value for key, (_, seen) in opus.items() if key[1] == "cost_per_task_usd"}
    assert costs == {"airline": Decimal("0.39919"), "retail": Decimal("0.38695"), "telecom": Decimal("0.71992")}


def entry(**results) -> bytes:
    return json.dumps(
        {
            "model_name": "M",
            "submitting_organization": "Org",
            "submission_date": "2026-08-04",
            "results": results,
            "methodology": {"evaluation_date": "2026-07-23", "tau2_bench_version": "v2.0"},
        }
    ).encode()


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ({"airline": None}, "empty"),
        ({"airline": {"pass_1": 101}}, "out_of_range"),
        ({"airline": {"pass_1": "80"}}, "not_a_number"),
        ({"airline": {"pass_1": float("nan")}}, "not_a_number"),
        ({"airline": {"pass_1": -1}}, "out_of_range"),
        ({"mars": {"pass_1": 80}}, "unknown_domain"),
        ({"airline": [80]}, "unknown_shape"),
    ],
)
def test_a_number_that_is_none_and_a_domain_nobody_knows_are_refused(results, code):
    assert only(refused({"submission.json": entry(**results)})).code == code
