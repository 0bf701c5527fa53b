"""Sentences: plain, exact, and with the digits that explain the verdict."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.language.evaluator import judge
from policies.language.explain import candidate_sentence, sentence
from policies.language.results import Reason
from tests.policies.language.building import HARM, NOW, REFUSAL, compiled, facts, harm, judged, observation, with_clause
from tests.policies.language.strategies import FACTS, POLICIES

POINT = with_clause(statistic="point")
STRICT = with_clause(min_samples="50", max_error_share="0.02")


def said(policy, *candidates):
    return sentence(judged(policy, refusal=candidates).rules[0], policy)


def test_a_number_is_shown_with_unit_n_and_bar():
    assert (
        said(POINT, observation("53.9"))
        == "The infeasible refusal rate is 53.9 % (n not stated, source `lab`), below the required 80 %."
    )


@pytest.mark.parametrize("value", ["79.9995", "79.999999", "79.999"])
def test_a_hair_below_the_bar_never_reads_as_the_bar(value):
    text = said(POINT, observation(value))
    assert f"{value} %" in text
    assert "80.0 %" not in text


def test_a_computed_rate_shows_the_digits_that_explain_it():
    assert "is 79.99 % (799999 of 1000000," in said(POINT, observation(k=799_999, n=1_000_000))
    assert "is 80.000001 % (" in said(POINT, observation("80.000001"))
    assert "is 66.66 % (2 of 3," in said(POINT, observation(k=2, n=3))


def test_a_bound_is_shown_with_its_confidence_rate_and_counts():
    text = said(with_clause(), observation(k=19, n=20))
    assert text == (
        "The 95 % lower bound of the infeasible refusal rate is 78.38 % (95 %, 19 of 20, source `lab`), below the required 80 %."
    )


def test_lower_is_better_is_worded_so():
    policy = compiled(rules="    - {id: a, evidence: harm, at_most: 5}", evidence=HARM)
    failing = sentence(judged(policy, harm=harm(40, errored=3)).rules[0], policy)
    assert "upper bound of the harmful completion rate" in failing
    assert "3 errored or unscored counted against it" in failing
    assert failing.endswith("above the allowed 5 %.")
    assert "at most the allowed 5 %" in sentence(judged(policy, harm=harm(0)).rules[0], policy)


def test_money_has_its_unit():
    clause = "    cost: {metric: cost_per_task_usd, benchmark: mole, versions: ['2026-09'], max_age_days: 90}"
    policy = compiled(rules="    - {id: cheap, evidence: cost, at_most: 3}", evidence=clause)
    price = observation("3.2", metric="cost_per_task_usd", benchmark="mole", version="2026-09")
    assert sentence(judged(policy, cost=price).rules[0], policy).startswith("The cost per task is 3.2 USD")


@pytest.mark.parametrize(
    ("policy", "stated", "words"),
    [
        (POINT, {"value": "90", "ended_at": NOW - timedelta(days=91)}, "would pass, but it is of 2026-06-02, more than 90 days"),
        (POINT, {"value": "90", "ended_at": None}, "it has no date"),
        (POINT, {"value": "90", "ruling": "disputed"}, "a dispute about it is open"),
        (POINT, {"value": "90", "ruling": "dispute_upheld"}, "a dispute about it was upheld"),
        (POINT, {"value": "90", "ruling": "retracted"}, "it was retracted"),
        (
            POINT,
            {"value": "90", "version": "2026-03"},
            "version `2026-03` is not the pinned version `2026-07`, so it is not comparable",
        ),
        (POINT, {"value": "90", "slice": "hr"}, "it covers the slice `hr`"),
        (POINT, {"value": "90", "metric": "verifier_pass_rate"}, "it measures `verifier_pass_rate`"),
        (POINT, {"value": "90", "benchmark": "mole"}, "it is on `mole`"),
        (POINT, {"value": "90", "about": "agent"}, "it is about the agent"),
        (POINT, {"value": "90", "run_status": "partial"}, "its run is `partial`"),
        (POINT, {"value": "90", "trust": "vendor"}, "trusted as `vendor`, and the policy asks for `independent` or better"),
        (POINT, {"value": "90", "provenance": "claim"}, "held as `claim`, and the policy asks for `reported` or better"),
        (POINT, {"value": "90", "identity_problem": "identity_unresolved"}, "the name `Made-Up 1` is not known"),
        (POINT, {"value": "101"}, "101 is outside the metric's range"),
        (STRICT, {"value": "95", "n": None}, "no sample size, so there is no confidence bound"),
        (STRICT, {"k": 19, "n": 20}, "20 samples are fewer than the 50 required"),
        (STRICT, {"k": 95, "n": 100}, "does not state how many tasks errored"),
        (STRICT, {"k": 95, "n": 100, "errored": 3, "unscored": 0}, "3 of 100 tasks lost are more than 2 %"),
    ],
)
def test_every_refusal_says_why(policy, stated, words):
    assert words in said(policy, observation(stated.pop("value", None), **stated))


def test_nothing_known_says_what_was_looked_for():
    assert (
        said(POINT) == "No evidence: no observation of the infeasible refusal rate on `enterpriseops-gym-aa` `2026-07` is known."
    )
    policy = compiled(evidence=REFUSAL.replace("max_age_days", "slice: resource.domain, max_age_days"))
    assert "no system with a domain is named" in said(policy)


def test_disagreement_and_preference_are_told():
    low, high = observation("70", source="one"), observation("90", source="two", evidence="ev-2")
    assert said(POINT, low, high).startswith("Evidence disagrees: the infeasible refusal rate is 70 %")
    assert said(with_clause(statistic="point", prefer="[two]"), low, high).endswith(
        "Other evidence disagrees; the policy prefers `two`."
    )
    assert said(POINT, observation("85"), high).endswith("gives another value and passes too.")


def test_branches_are_counted():
    rules = "    - {id: a, any_of: [{evidence: refusal, at_least: 90}, {evidence: harm, at_most: 5}]}"
    policy = compiled(rules=rules, evidence=f"{REFUSAL}\n{HARM}")
    assert sentence(judged(policy, harm=harm(0)).rules[0], policy).startswith("1 of 2 alternatives passes: The 95 % upper bound")
    assert sentence(judged(policy).rules[0], policy).startswith("0 of 2 parts pass; the one that decides: No evidence")


def test_a_member_of_a_route_is_named():
    result = judged(POINT, refusal=observation("53.9")).rules[0]._replace(model="model-a")
    assert sentence(result, POINT).startswith("For `model-a`: the infeasible refusal rate is 53.9 %")


def test_a_candidate_has_a_sentence_of_its_own():
    clause = POINT.clauses["refusal"]
    assert candidate_sentence("", observation("90"), clause).endswith("qualifies.")
    for reason in Reason:
        text = candidate_sentence(reason, observation("90"), clause)
        assert " does not count: " in text


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(POLICIES), FACTS)
def test_every_judgement_can_be_told_and_never_shows_a_failing_number_as_its_bar(policy, given_facts):
    for result in judge(policy, given_facts, as_of=NOW).rules:
        text = sentence(result, policy)
        assert text.endswith(".")
        assert "None" not in text
        assert "\n" not in text or "\n" in str(given_facts)
        shown = re.search(r" is ([0-9.]+) % \(.*\), (below|above|at least|at most) the \w+ ([0-9.]+) %\.", text)
        if shown:
            number, side, bar = Decimal(shown[1]), shown[2], Decimal(shown[3])
            assert {"below": number < bar, "above": number > bar, "at least": number >= bar, "at most": number <= bar}[side]


def test_facts_are_told_beside_a_broken_row():
    broken = observation("0")._replace(value=Decimal("NaN"))
    result = judge(POINT, facts(refusal=broken), as_of=NOW).rules[0]
    assert sentence(result, POINT) == "A stored row cannot be right, so nothing is judged: the number NaN is not finite."
