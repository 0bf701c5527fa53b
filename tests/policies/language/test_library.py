"""The bundled policies compile, mean what they promise, and their own tests are green."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import policies
from policies.language.compiled import CompiledPolicy
from policies.language.compiler import compile_policy
from policies.language.evaluator import judge
from policies.language.facts import Candidate, Facts
from tests.policies.language.building import METRICS, NAMES, NOW, facts, observation

LIBRARY = Path(policies.__file__).parent / "library"
NAMES_OF_POLICIES = ("demo-writes", "refusal-gate", "unattended-writes")


def load(name: str) -> CompiledPolicy:
    path = LIBRARY / f"{name}.yaml"
    return compile_policy(path.read_bytes(), NAMES, filename=path.name)


def made_up(policy: CompiledPolicy, clause: str, stated: dict[str, Any], place: int) -> Candidate:
    """Return an observation that qualifies in everything a test fact does not state."""
    wanted = policy.clauses[clause]
    fields = dict(stated)
    ended = NOW - timedelta(days=fields.pop("age_days", 0))
    value = fields.pop("value", None)
    fields.setdefault("errored", 0)
    fields.setdefault("unscored", 0)
    return observation(
        None if value is None else str(value),
        **{
            "evidence": f"{clause}-{place}",
            "metric": wanted.metric,
            "benchmark": wanted.benchmark,
            "version": min(wanted.versions),
            "slice": "hr" if wanted.by_domain else wanted.slice,
            "trust": wanted.min_trust,
            "provenance": wanted.min_provenance,
            "ended_at": ended,
            **fields,
        },
    )


def as_facts(policy: CompiledPolicy, test: Any) -> Facts:
    candidates = {
        clause: tuple(made_up(policy, clause, dict(stated), place) for place, stated in enumerate(fact["observations"]))
        for clause, fact in test["facts"].items()
    }
    return Facts("made-up-1", "sha256:1", "hr", candidates=candidates, metrics=METRICS)


def cases() -> list[Any]:
    return [
        pytest.param(policy, test, id=f"{policy.name}: {test['name']}")
        for policy in map(load, NAMES_OF_POLICIES)
        for test in policy.tests
    ]


def test_the_library_holds_these_policies_and_no_other():
    assert sorted(path.stem for path in LIBRARY.glob("*.yaml")) == list(NAMES_OF_POLICIES)
    assert [load(name).name for name in NAMES_OF_POLICIES] == list(NAMES_OF_POLICIES)


@pytest.mark.parametrize(("policy", "test"), cases())
def test_the_tests_that_travel_with_a_policy_are_green(policy, test):
    judgement = judge(policy, as_facts(policy, test), as_of=NOW)
    results = {result.id: result.result for result in judgement.rules}
    assert test["expect"]["outcome"] == judgement.outcome
    assert {**results, **test["expect"]["rules"]} == results


def test_the_refusal_gate_reads_any_claim_of_any_age():
    policy = load("refusal-gate")
    claim = observation("53.9", trust="archive", provenance="claim", ended_at=None, run_ended=False)
    (rule,) = judge(policy, facts(refusal=claim), as_of=NOW).rules
    assert (rule.id, rule.result, rule.measured, rule.bar) == (
        "refuses-out-of-bounds-orders",
        "fail",
        Decimal("53.9"),
        Decimal(80),
    )
    (rule,) = judge(policy, facts(), as_of=NOW).rules
    assert (rule.result, rule.reason) == ("missing", "no_evidence")
    assert not policy.uses_domain
    assert b"NOT FIT FOR ACTIVATION" in policy.text


def test_unattended_writes_is_the_published_example():
    policy = load("unattended-writes")
    spec = policy.resolved["spec"]
    refusal, harm = policy.clauses["refusal"], policy.clauses["harm"]
    assert policy.uses_domain
    assert (refusal.statistic, refusal.min_samples, refusal.max_error_share) == ("lower_bound", 50, Decimal("0.02"))
    assert (refusal.max_age, harm.max_age) == (timedelta(days=90), timedelta(days=180))
    assert (harm.statistic, harm.min_samples, harm.min_trust, harm.min_provenance) == (
        "upper_bound",
        100,
        "independent",
        "reported",
    )
    assert spec["params"] == {"min_refusal": Decimal(80), "max_harm": Decimal(5)}
    assert [rule.id for rule in policy.rules] == ["refuses-out-of-bounds-orders", "does-no-harm-when-it-does-not-refuse"]
    assert spec["drift"]["max_fall"] == {"refusal": Decimal(3)}


def test_demo_writes_asks_the_same_without_a_system():
    demo, real = load("demo-writes"), load("unattended-writes")
    assert not demo.uses_domain
    assert {clause.benchmark for clause in demo.clauses.values()} == {"demo-bench"}
    own = ("benchmark", "versions", "slice")
    for name in ("refusal", "harm"):
        one, other = dict(demo.resolved["spec"]["evidence"][name]), dict(real.resolved["spec"]["evidence"][name])
        assert {**one, **dict.fromkeys(own)} == {**other, **dict.fromkeys(own)}
    for section in ("rules", "params", "sign_offs", "grant", "drift", "forbid", "appliesTo"):
        assert demo.resolved["spec"][section] == real.resolved["spec"][section]
