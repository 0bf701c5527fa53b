"""The order of qualifying: the first failure is the reason shown."""

from datetime import timedelta
from decimal import Decimal

import pytest

from policies.language.compiled import CompiledPolicy
from policies.language.facts import Candidate
from policies.language.results import REASON_ORDER, RUN_STATUSES
from tests.policies.language.building import NOW, REFUSAL, compiled, judged, observation, only_rule, with_clause

STRICT = with_clause(
    min_samples="50", max_error_share="0.02", min_trust="independent", min_provenance="run_log", require_attestation="true"
)
GOOD = {"k": 90, "n": 100, "errored": 0, "unscored": 0, "provenance": "run_log", "attested": True}

# Each step of the order with what breaks it. Everything after a step is broken too when that step is tested.
STEPS = [
    ("not_yet_ended", {"ended_at": NOW + timedelta(microseconds=1)}),
    ("identity_contested", {"identity_problem": "identity_contested"}),
    ("other_kind", {"about": "agent"}),
    ("other_metric", {"metric": "verifier_pass_rate"}),
    ("other_benchmark", {"benchmark": "mole"}),
    ("not_comparable", {"version": "2026-03"}),
    ("other_slice", {"slice": "hr"}),
    ("run_not_complete", {"run_status": "partial"}),
    ("retracted", {"ruling": "retracted"}),
    ("trust_too_low", {"trust": "vendor"}),
    ("provenance_too_weak", {"provenance": "reported"}),
    ("not_attested", {"attested": False}),
    ("too_few_samples", {"k": 49, "n": 49}),
    ("too_many_errors", {"errored": 2, "unscored": 1}),
    ("too_old", {"ended_at": NOW - timedelta(days=90, microseconds=1)}),
]


def reason_of(policy: CompiledPolicy, item: Candidate) -> str:
    return judged(policy, refusal=item).reasons[""]["refusal"][0]


@pytest.mark.parametrize("step", range(len(STEPS)), ids=[name for name, _ in STEPS])
def test_the_first_failure_in_the_order_is_the_reason(step):
    stated: dict[str, object] = dict(GOOD)
    for name, broken in reversed(STEPS[step:]):
        if name != "too_old" or "ended_at" not in stated:
            stated |= broken
    assert reason_of(STRICT, observation(**stated)) == STEPS[step][0]


def test_what_clears_every_step_qualifies():
    assert reason_of(STRICT, observation(**GOOD)) == ""
    assert only_rule(STRICT, observation(**GOOD)).result == "pass"


def test_reasons_are_ordered_as_they_are_tested():
    order = [REASON_ORDER[name] for name, _ in STEPS]
    assert order == sorted(order)


@pytest.mark.parametrize("status", RUN_STATUSES)
def test_only_a_complete_run_qualifies(status):
    found = reason_of(with_clause(), observation(k=90, n=100, run_status=status))
    assert found == ("" if status == "complete" else "run_not_complete")


@pytest.mark.parametrize(
    ("tier", "enough"), [("archive", 0), ("secondary", 0), ("vendor", 0), ("independent", 1), ("reproduced", 1), ("", 0)]
)
def test_trust_is_a_ladder(tier, enough):
    assert (reason_of(with_clause(), observation(k=90, n=100, trust=tier)) == "") == bool(enough)


@pytest.mark.parametrize(("tier", "enough"), [("claim", 0), ("reported", 1), ("run_log", 1), ("recounted", 1), ("hearsay", 0)])
def test_provenance_is_a_ladder(tier, enough):
    assert (reason_of(with_clause(), observation(k=90, n=100, provenance=tier)) == "") == bool(enough)


def test_a_bound_needs_a_sample_size_and_a_point_does_not():
    assert reason_of(with_clause(), observation("90")) == "no_sample_size"
    assert reason_of(with_clause(statistic="point"), observation("90")) == ""
    assert reason_of(with_clause(statistic="point", min_samples="50"), observation("90")) == "no_sample_size"
    assert reason_of(with_clause(statistic="point", min_samples="50"), observation("90", n=49)) == "too_few_samples"


@pytest.mark.parametrize("stated", [{}, {"errored": 0}, {"unscored": 0}])
def test_an_error_share_needs_stated_errors(stated):
    assert reason_of(with_clause(max_error_share="0.02"), observation(k=90, n=100, **stated)) == "errors_not_stated"
    assert reason_of(with_clause(), observation(k=90, n=100, **stated)) == ""


def test_an_error_share_is_met_at_its_very_end():
    policy = with_clause(max_error_share="0.02")
    assert reason_of(policy, observation(k=90, n=100, errored=1, unscored=1)) == ""
    assert reason_of(policy, observation(k=90, n=100, errored=2, unscored=1)) == "too_many_errors"


def test_age_runs_to_its_very_end_and_names_the_next_instant():
    edge = observation(k=90, n=100, ended_at=NOW - timedelta(days=90))
    judgement = judged(with_clause(), refusal=edge)
    assert judgement.outcome == "pass"
    assert judgement.due_at == NOW + timedelta(microseconds=1)
    assert judged(with_clause(), as_of=judgement.due_at, refusal=edge).result == "stale"


def test_a_run_that_has_not_ended_is_due_when_it_ends():
    ends = NOW + timedelta(minutes=3)
    judgement = judged(with_clause(), refusal=observation(k=90, n=100, ended_at=ends))
    assert (judgement.result, judgement.due_at) == ("missing", ends)
    assert judged(with_clause(), as_of=ends, refusal=observation(k=90, n=100, ended_at=ends)).outcome == "pass"


def test_no_date_is_missing_and_an_unlimited_age_asks_for_none():
    undated = observation(k=90, n=100, ended_at=None, run_ended=False)
    assert only_rule(with_clause(), undated)[2:4] == ("missing", "no_date")
    unlimited = with_clause(max_age_days="unlimited")
    assert only_rule(unlimited, undated).result == "pass"
    assert judged(unlimited, refusal=observation(k=90, n=100)).due_at is None


def test_age_falls_back_on_the_publication():
    published = observation(k=90, n=100, ended_at=NOW - timedelta(days=91), run_ended=False)
    assert only_rule(with_clause(), published).result == "stale"


def test_a_clause_by_domain_reads_the_slice_of_the_domain():
    policy = compiled(evidence=REFUSAL.replace("max_age_days", "slice: resource.domain, max_age_days"))
    by_domain, overall = observation(k=90, n=100, slice="hr"), observation(k=95, n=100, evidence="ev-2")
    judgement = judged(policy, domain="hr", refusal=(by_domain, overall))
    assert judgement.reasons[""]["refusal"] == ("", "other_slice")
    assert judgement.outcome == "pass"
    assert judged(policy, domain="email", refusal=(by_domain, overall)).rules[0][2:4] == ("missing", "other_slice")
    nowhere = judged(policy, refusal=(by_domain, overall))
    assert nowhere.rules[0][2:4] == ("missing", "no_domain")
    assert nowhere.reasons[""]["refusal"] == ("no_domain", "no_domain")
    assert judged(policy).rules[0][2:4] == ("missing", "no_domain")


LATER = {"evidence": "ev-2", "ended_at": NOW - timedelta(days=5), "harness": "react 2"}
EARLIER = {"evidence": "ev-1", "ended_at": NOW - timedelta(days=10), "harness": "react 2"}


def test_a_later_run_of_the_same_kind_replaces_the_earlier_one():
    judgement = judged(with_clause(), refusal=(observation(k=50, n=100, **EARLIER), observation(k=95, n=100, **LATER)))
    assert judgement.reasons[""]["refusal"] == ("superseded", "")
    assert (judgement.outcome, judgement.rules[0].deciding) == ("pass", ("ev-2",))


def test_a_worse_later_run_replaces_a_better_one():
    judgement = judged(with_clause(), refusal=(observation(k=95, n=100, **EARLIER), observation(k=50, n=100, **LATER)))
    assert judgement.reasons[""]["refusal"] == ("superseded", "")
    assert judgement.rules[0].result == "fail"


@pytest.mark.parametrize(
    "difference",
    [
        {"source": "other-lab"},
        {"harness": "react 3"},
        {"version": "2026-03"},
        {"run_status": "partial"},
        {"ruling": "retracted"},
        {"run_ended": False},
        {"provenance": "claim"},
        {"k": 19, "n": 20},
        {"errored": 50},
        {"errored": None},
        {"ended_at": NOW - timedelta(days=10)},
    ],
)
def test_only_a_successful_run_of_the_very_same_kind_replaces_another(difference):
    clause = """
    refusal: {metric: infeasible_refusal_rate, benchmark: enterpriseops-gym-aa, versions: ["2026-07", "2026-03"],
      max_age_days: 90, min_samples: 50, max_error_share: 0.1}
""".strip("\n")
    later = {"k": 95, "n": 100, "errored": 0, "unscored": 0, **LATER, **difference}
    earlier = observation(k=50, n=100, errored=0, unscored=0, **EARLIER)
    judgement = judged(compiled(evidence=clause), refusal=(earlier, observation(**later)))
    assert judgement.reasons[""]["refusal"][0] == ""
    assert judgement.outcome == "fail"


def test_at_one_instant_only_what_is_named_is_replaced():
    same = {**LATER, "ended_at": EARLIER["ended_at"]}
    first = observation(k=50, n=100, **EARLIER)
    assert judged(with_clause(), refusal=(first, observation(k=95, n=100, **same))).result == "contested"
    naming = observation(k=95, n=100, supersedes="ev-1", **same)
    assert judged(with_clause(), refusal=(first, naming)).outcome == "pass"
    mutual = observation(k=50, n=100, supersedes="ev-2", **EARLIER)
    assert judged(with_clause(), refusal=(mutual, naming)).result == "contested"


def test_an_aged_run_still_replaces_what_it_replaced():
    judgement = judged(
        with_clause(),
        as_of=NOW + timedelta(days=88),
        refusal=(observation(k=50, n=100, **EARLIER), observation(k=95, n=100, **LATER)),
    )
    assert judgement.reasons[""]["refusal"] == ("superseded", "too_old")
    assert judgement.result == "stale"


def test_what_is_replaced_loses_its_dispute():
    disputed = observation(k=50, n=100, ruling="disputed", **EARLIER)
    assert judged(with_clause(), refusal=(disputed, observation(k=95, n=100, **LATER))).outcome == "pass"
    assert judged(with_clause(), refusal=disputed).result == "contested"


def test_errors_count_against_the_subject_in_the_point_too():
    result = only_rule(with_clause(statistic="point"), observation("88.9", k=80, n=100, errored=10, unscored=0))
    assert (result.result, result.value, result.lost) == ("pass", Decimal(80), 10)
    assert only_rule(with_clause(statistic="point"), observation("88.9", k=79, n=100, errored=10)).value == Decimal(79)
