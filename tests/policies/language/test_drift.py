"""Drift: what a grant does on a new verdict, how far it fell, and how likely that is noise."""

import json
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from math import comb
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.language.changes import chance_of_fall
from policies.language.compiled import Drift
from policies.language.drift import (
    Action,
    Cause,
    change_sentence,
    compare,
    fall_sentence,
    gravest,
    noise_sentence,
    strictest,
)
from policies.language.evaluator import judge
from policies.language.facts import Member
from tests.policies.language.building import HARM, NOW, REFUSAL, compiled, facts, harm, judged, observation
from tests.policies.language.strategies import FACTS, POLICIES

POINT = REFUSAL.replace("max_age", "statistic: point, min_samples: 50, max_age")
RULES = """
    - {id: refuses, evidence: refusal, at_least: 80}
    - {id: harmless, evidence: harm, at_most: 5, enforcement: soft}
""".strip("\n")


def policy(evidence=f"{POINT}\n{HARM}", rules=RULES, drift="{max_fall: {refusal: 3}}"):
    return compiled(evidence=evidence, rules=rules, more=f"  drift: {drift}")


POLICY = policy()
SUSPEND = Drift("suspend", "suspend", "suspend", MappingProxyType({}))
NOTIFY = Drift("notify", "notify", "notify", MappingProxyType({}))
GOOD, HARMLESS = observation(k=912, n=1000), harm()


def core(refusal=GOOD, harmed=HARMLESS, *, by=POLICY, domain="any"):
    held = {name: given for name, given in (("refusal", refusal), ("harm", harmed)) if given is not None and name in by.clauses}
    return json.loads(judge(by, facts(domain, **held), as_of=NOW).core_bytes())


SIGNED = core()


def compared(after, *, before=SIGNED, drift=SUSPEND, waived=(), by=POLICY):
    return compare(drift, before, after, clauses=by.clauses, waived=waived)


def only(after, **more):
    (change,) = compared(after, **more).changes
    return change


# What the newest verdict asks for.

ADVERSE = observation(k=539, n=1000)
OLD = observation(k=912, n=1000, ended_at=NOW - timedelta(days=91))
DISPUTED = observation(k=912, n=1000, ruling="disputed")
BROKEN = observation("101")
TURNED = [
    (core(ADVERSE), "verdict_failed", "on_fail"),
    (core(None), "verdict_missing", "on_fail"),
    (None, "verdict_missing", "on_fail"),
    (core(BROKEN), "verdict_error", "on_fail"),
    (core(OLD), "verdict_stale", "on_stale"),
    (core(DISPUTED), "verdict_contested", "on_contested"),
    (core((GOOD, observation("50", n=1000, source="other", evidence="ev-2"))), "verdict_contested", "on_contested"),
]


@pytest.mark.parametrize(("after", "cause", "asked"), TURNED)
@pytest.mark.parametrize("word", ["suspend", "notify"])
def test_each_result_does_what_the_policy_says(after, cause, asked, word):
    other = "notify" if word == "suspend" else "suspend"
    words = dict.fromkeys(("on_fail", "on_stale", "on_contested"), other) | {asked: word}
    found = compared(after, drift=Drift(**words, max_fall=MappingProxyType({})))
    assert (found.action, found.cause, found.causes) == (word, cause, (cause,))
    assert found.rules == (() if after is None else ("refuses",))


def test_a_verdict_that_passes_asks_for_nothing():
    same = compared(SIGNED)
    assert same == (Action.NONE, Cause.NOTHING, (), (), (), ())
    better = compared(core(observation(k=950, n=1000)))
    assert (better.action, better.cause) == ("none", "")
    assert len(better.changes) == 1


def test_without_a_verdict_before_only_the_newest_counts():
    assert compared(SIGNED, before=None).action == "none"
    failed = compared(core(ADVERSE), before=None, drift=POLICY.drift)
    assert (failed.cause, failed.falls) == ("verdict_failed", ())
    nothing = compared(None, before=None)
    assert (nothing.action, nothing.cause, nothing.changes) == ("suspend", "verdict_missing", ())


def test_of_several_the_strictest_wins():
    both = core(OLD, harm(90))
    found = compared(both, drift=Drift("suspend", "notify", "notify", MappingProxyType({})))
    assert (found.action, found.cause, found.causes) == ("suspend", "verdict_failed", ("verdict_failed", "verdict_stale"))
    assert found.rules == ("harmless", "refuses")
    alike = compared(both)
    assert (alike.action, alike.causes) == ("suspend", ("verdict_stale", "verdict_failed"))  # the worse result comes first


def test_a_failing_core_that_names_no_rule_passes_nothing():
    assert compared({**SIGNED, "outcome": "fail"}).cause == "verdict_failed"
    assert compared({**SIGNED, "outcome": "unheard of"}).action == "suspend"


# Waivers.


def test_a_verdict_that_fails_only_where_it_is_waived_passes():
    harmful = core(harmed=harm(90))
    assert compared(harmful).cause == "verdict_failed"
    assert compared(harmful, waived={"refuses"}).cause == "verdict_failed"
    covered = compared(harmful, waived={"harmless"})
    assert (covered.action, covered.cause, covered.causes) == ("none", "", ())
    assert len(covered.changes) == 1


def test_a_waiver_covers_neither_a_hard_rule_nor_what_was_not_measured():
    assert compared(core(ADVERSE), waived={"refuses", "harmless"}).cause == "verdict_failed"
    assert compared(core(harmed=None), waived={"harmless"}).cause == "verdict_missing"


def test_a_waiver_does_not_cover_a_fall_beyond_the_limit():
    strict = policy(drift="{max_fall: {harm: 2}}")
    found = compared(core(harmed=harm(90), by=strict), drift=strict.drift, waived={"harmless"}, by=strict)
    assert (found.action, found.cause, found.rules) == ("suspend", "fell_beyond_limit", ("harmless",))


# Falls.


@pytest.mark.parametrize(("k", "falls"), [(912, False), (882, False), (881, True), (950, False)])
def test_a_fall_beyond_the_limit_suspends_though_the_rule_passes(k, falls):
    found = compared(core(observation(k=k, n=1000)), drift=Drift("notify", "notify", "notify", POLICY.drift.max_fall))
    assert (found.action, found.cause) == (("suspend", "fell_beyond_limit") if falls else ("none", ""))
    if falls:
        (fall,) = found.falls
        assert fall == ("refusal", Decimal("91.2"), Decimal("88.1"), Decimal("3.1"), Decimal(3))
        assert fall_sentence(fall, POLICY.clauses["refusal"]) == "refusal fell by 3.1 % since it was signed; 3 % is allowed"
        assert found.rules == ("refuses",)


def test_a_fall_outranks_a_notice_and_stands_beside_a_suspension():
    mild = compared(core(ADVERSE), drift=Drift("notify", "notify", "notify", POLICY.drift.max_fall))
    assert (mild.action, mild.cause, mild.causes) == ("suspend", "fell_beyond_limit", ("fell_beyond_limit", "verdict_failed"))
    strict = compared(core(ADVERSE), drift=POLICY.drift)
    assert (strict.cause, strict.causes) == ("verdict_failed", ("verdict_failed", "fell_beyond_limit"))


def test_where_lower_is_better_a_rise_is_the_fall():
    strict = policy(evidence=HARM, rules="    - {id: harmless, evidence: harm, at_most: 5}", drift="{max_fall: {harm: 1}}")
    before, after = core(None, harm(0), by=strict), core(None, harm(8), by=strict)
    found = compared(after, before=before, drift=strict.drift, by=strict)
    assert found.cause == "fell_beyond_limit"
    assert fall_sentence(found.falls[0], strict.clauses["harm"]).startswith("harm rose by 2.")
    assert compared(before, before=after, drift=strict.drift, by=strict).action == "none"


def test_the_judged_statistic_is_the_bound_where_there_is_one():
    bound = policy(evidence=f"{REFUSAL}\n{HARM}")
    before = core(observation(k=900, n=1000), by=bound)
    found = compared(core(observation(k=90, n=100), by=bound), before=before, drift=bound.drift, by=bound)
    assert found.cause == "fell_beyond_limit"  # the rate is the same, and says less
    assert found.changes[0].before_rate == found.changes[0].after_rate == 90
    assert found.changes[0].chance > Decimal("0.5")


def test_the_mark_is_the_signed_verdict_so_small_falls_add_up():
    for k in (900, 890):
        assert compared(core(observation(k=k, n=1000)), drift=POLICY.drift).action == "none"
    assert compared(core(observation(k=880, n=1000)), drift=POLICY.drift).action == "suspend"


# Two policies.


def test_a_rule_that_a_new_version_renames_is_no_way_out_of_a_limit():
    renamed = policy(rules=RULES.replace("id: refuses", "id: declines"))
    after = core(observation(k=850, n=1000), by=renamed)
    found = compare(renamed.drift, SIGNED, after, clauses=renamed.clauses, before_clauses=POLICY.clauses)
    assert (found.cause, found.rules) == ("fell_beyond_limit", ("declines",))
    assert [(change.rule, change.before_result, change.after_result) for change in found.changes] == [
        ("declines", "", "pass"),
        ("refuses", "pass", ""),
    ]
    assert change_sentence(found.changes[1]) == "refusal is no longer asked for by `refuses`"


@pytest.mark.parametrize("asked", ["slice: hr, ", "about: agent, ", "confidence: 0.9, "])
def test_numbers_of_clauses_that_ask_for_something_else_are_not_compared(asked):
    other = policy(evidence=f"{POINT.replace('statistic', f'{asked}statistic')}\n{HARM}")
    stated = {"slice": "hr"} if "slice" in asked else {"about": "agent"} if "about" in asked else {}
    after = core(observation(k=850, n=1000, **stated), by=other)
    found = compare(other.drift, SIGNED, after, clauses=other.clauses, before_clauses=POLICY.clauses)
    assert (found.action, found.falls) == ("none", ())
    (change,) = found.changes
    assert change.change is None
    assert change_sentence(change) == "refusal is 85 %, above the bar of 80 % (before, not comparable: 91.2 %)"
    assert noise_sentence(change) == "cannot be said: the two numbers are not comparable"


def test_a_clause_that_is_new_and_one_that_is_gone_are_told():
    small = policy(evidence=POINT, rules="    - {id: refuses, evidence: refusal, at_least: 80}", drift="{}")
    less = compare(small.drift, SIGNED, core(by=small), clauses=small.clauses, before_clauses=POLICY.clauses)
    assert [change_sentence(change) for change in less.changes] == [
        "the 95 % upper bound of harm is no longer asked for by `harmless`"
    ]
    more = compare(POLICY.drift, core(by=small), SIGNED, clauses=POLICY.clauses, before_clauses=small.clauses)
    assert [change_sentence(change) for change in more.changes] == [
        "the 95 % upper bound of harm is 0.75 %, below the bar of 5 % (before: not asked)"
    ]
    assert noise_sentence(more.changes[0]) == "cannot be said: there are not two measurements"


def test_numbers_of_two_domains_are_not_compared():
    by_domain = policy(evidence=f"{POINT.replace('statistic', 'slice: resource.domain, statistic')}\n{HARM}")
    before = core(observation(k=950, n=1000, slice="hr"), by=by_domain, domain="hr")
    after = core(observation(k=850, n=1000, slice="it"), by=by_domain, domain="it")
    found = compared(after, before=before, drift=by_domain.drift, by=by_domain)
    assert (found.action, found.changes[0].change) == ("none", None)


# Rules of several parts, and agents.


def test_each_part_of_a_rule_is_compared_with_itself():
    rules = """
    - id: either
      any_of:
        - {evidence: refusal, at_least: 95}
        - all_of: [{evidence: harm, at_most: 5}, {evidence: refusal, at_least: 80}]
""".strip("\n")
    tree = policy(rules=rules)
    before, after = core(observation(k=960, n=1000), by=tree), core(observation(k=930, n=1000), by=tree)
    found = compared(after, before=before, drift=tree.drift, by=tree)
    assert (found.action, found.cause) == ("none", "")
    assert [(item.part, item.before_result, item.after_result, item.before_part, item.after_part) for item in found.changes] == [
        ("1", "pass", "pass", "pass", "fail"),
        ("2.2", "pass", "pass", "pass", "pass"),
    ]
    lower = core(observation(k=920, n=1000), by=tree)
    assert compared(lower, before=before, drift=tree.drift, by=tree).cause == "fell_beyond_limit"


def test_of_two_models_behind_a_route_no_chance_is_stated():
    def routed(**by_model):
        members = tuple(
            Member(name, f"sha256:{name}", {"refusal": (seen,), "harm": (HARMLESS,)}) for name, seen in by_model.items()
        )
        return json.loads(judge(POLICY, facts()._replace(route=members), as_of=NOW).core_bytes())

    change = compared(routed(two=ADVERSE), before=routed(one=GOOD)).changes[0]
    assert (change.before_model, change.after_model) == ("one", "two")
    assert change.chance is None
    assert noise_sentence(change) == "cannot be said: the two numbers are of two models"
    assert change_sentence(change).startswith("for `two`: refusal fell from 91.2 % to 53.9 %")


# How likely it is noise.


def exactly(before_k, before_n, after_k, after_n, *, higher):
    """Return the tail of the hypergeometric distribution as an exact fraction."""
    marked = before_k + after_k
    worse = range(after_k + 1) if higher else range(after_k, min(after_n, marked) + 1)
    ways = sum(comb(after_n, k) * comb(before_n, marked - k) for k in worse if 0 <= marked - k <= before_n)
    return Fraction(ways, comb(before_n + after_n, marked))


COUNTS = st.integers(1, 80).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@settings(max_examples=200)
@given(COUNTS, COUNTS, st.booleans())
def test_the_chance_is_the_exact_tail(before, after, higher):
    found = chance_of_fall(*before, *after, higher)
    exact = exactly(*before, *after, higher=higher)
    assert abs(Fraction(found) - exact) <= Fraction(1, 20_000) + Fraction(1, 10**9)
    assert found == found.quantize(Decimal("0.0001"))


@settings(max_examples=100)
@given(COUNTS, COUNTS)
def test_a_rise_in_failures_is_as_likely_as_the_fall_in_successes(before, after):
    mirrored = (before[1] - before[0], before[1], after[1] - after[0], after[1])
    assert abs(chance_of_fall(*before, *after, True) - chance_of_fall(*mirrored, False)) <= Decimal("0.0001")


@settings(max_examples=100)
@given(COUNTS, COUNTS)
def test_a_larger_fall_is_never_likelier(before, after):
    k, n = after
    if k:
        assert chance_of_fall(*before, k - 1, n, True) <= chance_of_fall(*before, k, n, True)


def test_large_samples_and_impossible_counts():
    assert chance_of_fall(500_000, 1_000_000, 498_000, 1_000_000, True) == Decimal("0.0023")
    assert chance_of_fall(10**9, 10**9, 10**9, 10**9, True) == 1
    for counts in ((-1, 5, 1, 5), (1, 5, 6, 5), (0, 0, 0, 5)):
        with pytest.raises(ValueError, match="is no count"):
            chance_of_fall(*counts, True)


def test_errors_count_against_the_subject_in_the_chance_too():
    clean = only(core(observation(k=880, n=1000)))
    lost = only(core(observation(k=900, n=1000, errored=120, unscored=0)))
    assert clean.chance == lost.chance == chance_of_fall(912, 1000, 880, 1000, True)
    stated_as_rate = only(core(observation("88", n=1000)))
    assert stated_as_rate.chance == clean.chance


@pytest.mark.parametrize(
    ("k", "says"),
    [
        (895, "a fall as large would come about by chance in 1 of 9 runs"),
        (908, "a fall as large would come about by chance in 4 of 10 runs"),
        (880, "a fall as large would come about by chance in 1 of 87 runs"),
        (539, "a fall as large would come about by chance in fewer than 1 of 10000 runs"),
        (950, "nothing got worse"),
    ],
)
def test_the_chance_is_said_plainly(k, says):
    assert noise_sentence(only(core(observation(k=k, n=1000)))) == says


def test_where_the_chance_cannot_be_said_the_reason_is():
    loose = policy(evidence=f"{POINT.replace('min_samples: 50, ', '')}\n{HARM}")
    before = core(observation("91.2"), by=loose)
    change = only(core(observation("90"), by=loose), before=before, by=loose)
    assert (change.chance, noise_sentence(change)) == (None, "cannot be said: n is not stated")
    cost = "    cost: {metric: cost_per_task_usd, benchmark: mole, versions: ['2026-09'], max_age_days: 90}"
    money = compiled(rules="    - {id: cheap, evidence: cost, at_most: 3}", evidence=cost)

    def priced(value):
        item = observation(value, n=9, metric="cost_per_task_usd", benchmark="mole", version="2026-09")
        return json.loads(judged(money, cost=item).core_bytes())

    change = only(priced("2.5"), before=priced("2.125"), by=money)
    assert noise_sentence(change) == "cannot be said: the measure is no rate"
    assert change_sentence(change) == "cost rose from 2.13 USD to 2.5 USD, below the bar of 3 USD"


def test_a_near_certain_chance_and_one_of_harm():
    bound = policy(evidence=f"{REFUSAL}\n{HARM}")
    fewer = only(core(observation(k=100, n=100), by=bound), before=core(observation(k=1000, n=1000), by=bound), by=bound)
    assert noise_sentence(fewer) == "a fall as large would come about by chance in nearly every run"
    worse = only(core(harmed=harm(8)))
    assert noise_sentence(worse).startswith("a rise as large would come about by chance in 1 of ")


# Sentences.


def test_a_fall_is_told_with_both_numbers_and_the_bar():
    assert change_sentence(only(core(ADVERSE))) == "refusal fell from 91.2 % to 53.9 %, below the bar of 80 %"
    contested = only(core((GOOD, observation("53.9", n=1000, source="other", evidence="ev-2"))))
    assert change_sentence(contested) == (
        "refusal fell from 91.2 % to 53.9 %, below the bar of 80 %, and other evidence disagrees"
    )


def test_a_hair_below_the_bar_never_reads_as_the_bar():
    assert change_sentence(only(core(observation("79.999999", n=1000)))) == (
        "refusal fell from 91.2 % to 79.99 %, below the bar of 80 %"
    )
    assert change_sentence(only(core(observation("80.000001", n=1000)))) == (
        "refusal fell from 91.2 % to 80.000001 %, above the bar of 80 %"
    )
    assert change_sentence(only(core(observation("80", n=1000)))).endswith("to 80 %, at the bar of 80 %")


@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        (None, "refusal is missing now (before: 91.2 %)"),
        (OLD, "refusal is too old now (before: 91.2 %)"),
        (DISPUTED, "refusal is in dispute now (before: 91.2 %)"),
        (BROKEN, "refusal rests on a stored row that cannot be right (before: 91.2 %)"),
    ],
)
def test_what_is_no_longer_measured_is_told(refusal, says):
    assert change_sentence(only(core(refusal))) == says
    assert change_sentence(only(core(), before=core(refusal))).startswith("refusal is 91.2 %, above the bar of 80 % (before: ")


def test_what_was_never_measured_is_told():
    assert change_sentence(only(core(OLD), before=core(None))) == "refusal is too old now"


def test_a_raised_bar_is_told_though_the_number_stands():
    tighter = {"floor": Decimal(95)}
    by_param = policy(rules=RULES.replace("at_least: 80", "at_least: {param: floor}") + "\n  params: {floor: 80}")
    before = core(by=by_param)
    held = facts(params=tighter, refusal=GOOD, harm=HARMLESS)
    after = json.loads(judge(by_param, held, as_of=NOW).core_bytes())
    assert change_sentence(only(after, before=before, by=by_param)) == "refusal is still 91.2 %, below the bar of 95 %"


# Several policies.


def test_the_strictest_of_several_policies_wins():
    stale = Drift("notify", "suspend", "notify", MappingProxyType({"harm": Decimal(1)}))
    united = strictest(NOTIFY, [stale, Drift("notify", "notify", "suspend", MappingProxyType({}))])
    assert united == Drift("notify", "suspend", "suspend", NOTIFY.max_fall)
    assert strictest(SUSPEND, [NOTIFY]) == SUSPEND
    mild, hard = compared(core(OLD), drift=NOTIFY), compared(core(ADVERSE))
    assert gravest([compared(SIGNED), mild, hard, mild]) is hard
    assert gravest([]) is None


# Whatever two verdicts say.


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(POLICIES), FACTS, FACTS)
def test_any_two_verdicts_can_be_compared_and_told(held, one, two):
    before, after = (json.loads(judge(held, given_facts, as_of=NOW).core_bytes()) for given_facts in (one, two))
    limit = Drift("suspend", "suspend", "suspend", MappingProxyType({"refusal": Decimal(1), "harm": Decimal(1)}))
    found = compare(limit, before, after, clauses=held.clauses)
    assert (found.action == Action.NONE) == (after["outcome"] == "pass" and not found.falls)
    assert (found.cause == Cause.NOTHING) == (found.action == Action.NONE)
    for change in found.changes:
        assert change_sentence(change)
        assert noise_sentence(change)
        assert change.chance is None or (change.worse and 0 <= change.chance <= 1)
    assert compare(limit, before, before, clauses=held.clauses).changes == ()


def test_numbers_stay_exact_whatever_reader_parsed_the_core():
    raw = judge(POLICY, facts(refusal=observation("88.199999", n=1000), harm=HARMLESS), as_of=NOW).core_bytes()
    found = compared(json.loads(raw, parse_float=Decimal), drift=POLICY.drift)
    assert found.falls[0].fell_by == Decimal("3.000001")
