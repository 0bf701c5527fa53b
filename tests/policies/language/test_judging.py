"""What a rule gives, and what a policy says."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from policies.language.compiled import LooserParameter
from policies.language.compiler import compile_policy
from policies.language.evaluator import NoVerdict, judge
from policies.language.results import WORST_FIRST
from tests.policies.language.building import (
    HARM,
    NAMES,
    NOW,
    REFUSAL,
    compiled,
    facts,
    harm,
    judged,
    observation,
    only_rule,
    with_clause,
)

POINT = with_clause(statistic="point")
BOTH = f"{REFUSAL}\n{HARM}"


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("79.999", "fail"),
        ("79.9995", "fail"),
        ("79.999999", "fail"),
        ("80", "pass"),
        ("80.0", "pass"),
        ("80.00", "pass"),
        ("9", "fail"),
    ],
)
def test_the_exact_value_is_judged_and_never_a_rounded_one(value, result):
    found = only_rule(POINT, observation(value))
    assert (found.result, found.measured, found.bar) == (result, Decimal(value), Decimal(80))


@pytest.mark.parametrize("value", ["NaN", "sNaN", "Infinity", "-Infinity"])
def test_a_number_that_is_not_finite_is_an_error_and_denies(value):
    broken = observation("0")._replace(value=Decimal(value))
    found = only_rule(POINT, broken)
    assert (found.result, found.reason, found.measured) == ("error", "value_not_finite", None)
    beside = judged(POINT, refusal=(broken, observation("95", evidence="ev-2", source="two")))
    assert (beside.outcome, beside.result, beside.blocking) == ("fail", "error", ("refuses",))


@pytest.mark.parametrize("k", ["NaN", "Infinity"])
def test_a_count_that_is_not_finite_is_an_error_too(k):
    assert only_rule(POINT, observation("90", n=100)._replace(k=Decimal(k))).reason == "value_not_finite"


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ({"value": "101"}, "value_out_of_range"),
        ({"value": "-0.000001"}, "value_out_of_range"),
        ({"value": "90", "n": 0}, "counts_inconsistent"),
        ({"value": "90", "n": -5}, "counts_inconsistent"),
        ({"value": "90", "k": 101, "n": 100}, "counts_inconsistent"),
        ({"value": "90", "k": -1, "n": 100}, "counts_inconsistent"),
        ({"value": "90", "n": 100, "errored": 60, "unscored": 41}, "counts_inconsistent"),
        ({"value": "90", "n": 100, "errored": -1}, "counts_inconsistent"),
    ],
)
def test_a_row_that_cannot_be_right_is_an_error(stated, reason):
    assert only_rule(POINT, observation(stated.pop("value"), **stated))[2:4] == ("error", reason)


def test_a_broken_row_that_speaks_of_something_else_does_no_harm():
    broken = observation("0", version="2026-03")._replace(value=Decimal("NaN"))
    assert judged(POINT, refusal=(broken, observation("95", evidence="ev-2"))).outcome == "pass"
    retracted = observation("0", ruling="retracted")._replace(value=Decimal("NaN"))
    assert judged(POINT, refusal=(retracted, observation("95", evidence="ev-2"))).outcome == "pass"


def test_other_versions_are_listed_and_never_mixed_in():
    pinned, newer = observation("75"), observation("81", evidence="ev-2", version="2026-03")
    first = judged(POINT, refusal=(pinned, newer))
    assert (first.result, first.reasons[""]["refusal"]) == ("fail", ("", "not_comparable"))
    assert first.rules[0].measured == 75
    second = judged(POINT, refusal=(observation("82"), observation("60", evidence="ev-2", version="2026-03")))
    assert (second.outcome, second.rules[0].measured) == ("pass", Decimal(82))


def test_no_evidence_is_missing_and_the_nearest_reason_is_shown():
    assert only_rule(POINT)[2:4] == ("missing", "no_evidence")
    far, near = observation("90", version="2026-03"), observation("90", evidence="ev-2", trust="vendor")
    found = only_rule(POINT, far, near)
    assert (found.result, found.reason, found.deciding, found.detail) == ("missing", "trust_too_low", ("ev-2",), "vendor")


def test_a_bound_decides_where_one_is_asked_for():
    found = only_rule(with_clause(), observation(k=19, n=20))
    assert (found.result, found.value) == ("fail", Decimal(95))
    assert found.measured == found.bound
    assert found.bound is not None
    assert found.bound < 80
    assert only_rule(with_clause(), observation(k=900, n=1000)).result == "pass"


def test_a_count_is_recovered_against_the_subject_where_k_is_not_stated():
    stated, derived = only_rule(with_clause(), observation(k=539, n=1000)), only_rule(with_clause(), observation("53.95", n=1000))
    assert derived.bound == stated.bound
    assert derived.value == Decimal("53.95")


def test_lower_is_better_counts_errors_as_harm():
    policy = compiled(rules="    - {id: harmless, evidence: harm, at_most: 5}", evidence=HARM)
    clean, errors = judged(policy, harm=harm(0, 59)).rules[0], judged(policy, harm=harm(0, 59, errored=1)).rules[0]
    assert (clean.result, clean.value) == ("pass", 0)
    assert (errors.result, errors.value) == ("fail", Decimal("1.694916"))


@pytest.mark.parametrize(
    "lame",
    [
        {"ended_at": NOW - timedelta(days=900)},
        {"ended_at": None, "run_ended": False},
        {"errored": 40, "unscored": 0},
        {"k": 9, "n": 20},
        {"k": None, "n": None},
    ],
)
def test_adverse_evidence_does_not_expire_by_neglect(lame):
    policy = with_clause(min_samples="50", max_error_share="0.1")
    adverse = observation("45", **{"k": 45, "n": 100, "errored": 0, "unscored": 0, **lame})
    assert only_rule(policy, adverse).result == "fail"
    supporting = observation(k=95, n=100, errored=0, unscored=0, evidence="ev-2", source="two")
    beside = only_rule(policy, adverse, supporting)
    assert (beside.result, beside.reason, beside.deciding) == ("contested", "evidence_disagrees", ("ev-1", "ev-2"))


def test_a_small_sample_is_adverse_by_its_value_alone():
    policy = with_clause(min_samples="50")
    assert only_rule(policy, observation(k=19, n=20))[2:4] == ("missing", "too_few_samples")
    assert only_rule(policy, observation(k=15, n=20)).result == "fail"


@pytest.mark.parametrize(
    "weak", [{"trust": "archive"}, {"provenance": "claim"}, {"run_status": "partial"}, {"version": "2026-03"}]
)
def test_what_fails_up_to_attestation_speaks_neither_way(weak):
    assert only_rule(POINT, observation("10", **weak)).result == "missing"
    assert only_rule(POINT, observation("10", **weak), observation("90", evidence="ev-2", source="two")).result == "pass"


def test_stale_means_that_age_alone_turned_the_support_away():
    old = observation("90", ended_at=NOW - timedelta(days=91))
    assert only_rule(POINT, old)[2:4] == ("stale", "too_old")
    assert only_rule(POINT, old).measured is None
    assert only_rule(POINT, old, observation("70", evidence="ev-2", source="two")).result == "fail"
    assert only_rule(POINT, old, observation("90", evidence="ev-2", source="two")).result == "pass"


@pytest.mark.parametrize(
    ("ruling", "result"),
    [
        ("disputed", "contested"),
        ("dispute_upheld", "contested"),
        ("dispute_dismissed", "pass"),
        ("retracted", "missing"),
        ("", "pass"),
    ],
)
def test_rulings(ruling, result):
    assert only_rule(POINT, observation("90", ruling=ruling)).result == result


def test_an_open_dispute_contests_the_rule_whatever_else_is_known():
    disputed = observation("53.9", ruling="disputed", trust="archive", provenance="claim")
    found = only_rule(POINT, disputed, observation("90", evidence="ev-2", source="two"))
    assert found[2:4] == ("contested", "disputed")
    assert found.deciding == ("ev-1",)


def test_disagreement_is_contested_unless_a_preferred_source_settles_it():
    low, high = observation("70", source="one"), observation("90", source="two", evidence="ev-2")
    assert only_rule(POINT, low, high).result == "contested"
    assert only_rule(with_clause(statistic="point", prefer="[three]"), low, high).result == "contested"
    settled = only_rule(with_clause(statistic="point", prefer="[three, two, one]"), low, high)
    assert (settled.result, settled.note, settled.source, settled.deciding) == ("pass", "settled_by_prefer", "two", ("ev-2",))
    against = only_rule(with_clause(statistic="point", prefer="[one, two]"), low, high)
    assert (against.result, against.note, against.measured) == ("fail", "settled_by_prefer", Decimal(70))


def test_a_preferred_source_of_two_minds_settles_nothing():
    one = (observation("70", source="one"), observation("90", source="one", evidence="ev-2", harness="other 1"))
    two = observation("95", source="two", evidence="ev-3")
    assert only_rule(with_clause(statistic="point", prefer="[one, two]"), *one, two).result == "contested"


def test_a_preference_settles_no_dispute():
    disputed = observation("90", source="one", ruling="disputed")
    assert (
        only_rule(
            with_clause(statistic="point", prefer="[two]"), disputed, observation("90", source="two", evidence="ev-2")
        ).result
        == "contested"
    )


def test_agreement_on_passing_with_other_values_is_noted():
    low, high = observation("85", source="one"), observation("90", source="two", evidence="ev-2")
    found = only_rule(POINT, high, low)
    assert (found.result, found.note, found.measured, found.deciding) == ("pass", "disagreement", Decimal(85), ("ev-1", "ev-2"))
    assert only_rule(POINT, low, low._replace(source="two", evidence="ev-2")).note == ""


TREE = """
    - id: either
      any_of:
        - {evidence: refusal, at_least: 90}
        - {evidence: harm, at_most: 5}
    - id: both
      enforcement: soft
      all_of:
        - {evidence: refusal, at_least: 70}
        - {evidence: harm, at_most: 5}
""".strip("\n")


def test_any_of_takes_its_best_branch_and_all_of_its_worst():
    policy = compiled(rules=TREE, evidence=BOTH.replace("max_age_days: 90", "max_age_days: 90, statistic: point"))
    either, both = judged(policy, refusal=observation("80"), harm=harm(0)).rules
    assert (either.result, either.clause) == ("pass", "harm")
    assert [child.result for child in either.children] == ["fail", "pass"]
    assert (both.result, [child.id for child in both.children]) == ("pass", ["", ""])
    either, both = judged(policy, refusal=observation("80")).rules
    assert (either.result, either.clause, either.measured) == ("fail", "refusal", Decimal(80))  # fail is better than missing
    assert (both.result, both.clause) == ("missing", "harm")


def test_the_order_of_worst_is_one_everywhere():
    assert [word.value for word in WORST_FIRST] == ["error", "contested", "missing", "stale", "fail", "pass"]


RULES = """
    - {id: hard, evidence: refusal, at_least: 80}
    - {id: soft, evidence: harm, at_most: 5, enforcement: soft}
    - {id: advice, evidence: harm, at_most: 0.5, enforcement: advisory}
""".strip("\n")


def test_blocking_waivable_and_advisory():
    policy = compiled(rules=RULES, evidence=BOTH)
    passing = judged(policy, refusal=observation(k=900, n=1000), harm=harm(0))
    assert (passing.outcome, passing.result, passing.blocking, passing.waivable) == ("pass", "pass", (), ())
    assert passing.rules[2].result == "fail"  # advisory: it shows, and never decides
    soft = judged(policy, refusal=observation(k=900, n=1000), harm=harm(40))
    assert (soft.outcome, soft.result, soft.blocking, soft.waivable) == ("fail", "fail", (), ("soft",))
    missing = judged(policy, refusal=observation(k=900, n=1000))
    assert (missing.result, missing.blocking, missing.waivable) == ("missing", ("soft",), ())
    both = judged(policy, refusal=observation(k=500, n=1000), harm=harm(40))
    assert (both.blocking, both.waivable) == (("hard",), ("soft",))


def test_a_tightened_parameter_is_judged_and_a_looser_one_refused():
    policy = compiled(
        rules="    - {id: a, evidence: refusal, at_least: {param: floor}}",
        params="{floor: 80}",
        evidence=REFUSAL.replace("max_age_days", "statistic: point, max_age_days"),
    )
    given = facts(refusal=observation("85"))
    assert judge(policy, given, as_of=NOW).outcome == "pass"
    tightened = judge(policy, given._replace(params={"floor": Decimal(90)}), as_of=NOW)
    assert (tightened.outcome, tightened.rules[0].bar, dict(tightened.params)) == ("fail", Decimal(90), {"floor": Decimal(90)})
    with pytest.raises(LooserParameter):
        judge(policy, given._replace(params={"floor": Decimal(70)}), as_of=NOW)


def test_a_policy_without_requirements_has_no_verdict():
    text = b"""
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {name: c, title: C, profile: conformance}
spec: {appliesTo: {actions: [write]}}
"""
    with pytest.raises(NoVerdict) as refused:
        judge(compile_policy(text, NAMES), facts(), as_of=NOW)
    assert refused.value.code == "policy_has_no_requirements"


def test_an_instant_is_aware_and_its_zone_does_not_matter():
    with pytest.raises(ValueError, match="time zone"):
        judge(POINT, facts(), as_of=datetime(2026, 9, 1))  # noqa: DTZ001 - the very thing that is refused
    given = facts(refusal=observation("90"))
    elsewhere = NOW.astimezone(timezone(timedelta(hours=-7)))
    assert judge(POINT, given, as_of=elsewhere).core_bytes() == judge(POINT, given, as_of=NOW.astimezone(UTC)).core_bytes()


def test_a_step_level_metric_cannot_satisfy_a_task_level_clause():
    per_check = observation("99", metric="verifier_pass_rate")
    assert only_rule(POINT, per_check)[2:4] == ("missing", "other_metric")


def test_money_is_judged_by_its_point():
    clause = "    cost: {metric: cost_per_task_usd, benchmark: mole, versions: ['2026-09'], max_age_days: 90}"
    policy = compiled(rules="    - {id: cheap, evidence: cost, at_most: 3.2}", evidence=clause)
    price = observation("3.2", n=100, metric="cost_per_task_usd", benchmark="mole", version="2026-09")
    assert judged(policy, cost=price).outcome == "pass"
    assert judged(policy, cost=price._replace(value=Decimal("3.200001"))).result == "fail"
