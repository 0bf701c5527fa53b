"""The bundled policies compile, mean what they promise, and their own tests are green."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import policies
from evaluations.kernel.numbers import plain
from policies.language.compiled import CompiledPolicy, assertions_of
from policies.language.compiler import compile_policy
from policies.language.evaluator import judge
from policies.language.facts import Candidate, Facts
from policies.language.lint import Known, lint
from policies.language.lint_mutants import score_mutants
from tests.policies.language.building import METRICS, NAMES, NOW, facts, observation

LIBRARY = Path(policies.__file__).parent / "library"
SUPPLEMENTS = ("cost-ceiling", "step-to-task-honesty")
NAMES_OF_POLICIES = (
    "cost-ceiling",
    "demo-writes",
    "hr-writes",
    "itsm-writes",
    "refusal-gate",
    "reversible-writes",
    "step-to-task-honesty",
    "supervised-writes",
    "unattended-writes",
)
every_policy = pytest.mark.parametrize("name", NAMES_OF_POLICIES)


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
    if wanted.statistic != "point" or wanted.min_samples is not None:
        fields.setdefault("n", 1_000_000_000)
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


@every_policy
def test_no_change_of_a_policy_goes_unnoticed_by_its_tests(name):
    score = score_mutants(load(name))
    assert score.survivors == ()
    assert score.percent == 100
    assert score.total >= 3


@every_policy
def test_only_the_refusal_gate_is_blocked_and_every_rule_is_tested(name):
    values = {"resource.domain": frozenset({"hr", "it_service_management", "customer_service", "email", "calendar", "drive"})}
    found = lint(load(name), Known(METRICS, values))
    blocking = {item.code for item in found if item.level == "block"}
    assert blocking == ({"refusal-only", "archive-only"} if name == "refusal-gate" else set())
    warnings = {item.code for item in found if item.level == "warn"}
    if name != "refusal-gate":
        # Harm is published as an average only; the pages say so.
        assert warnings <= {"average-over-domains"}


@every_policy
def test_what_permits_by_itself_asks_for_harm(name):
    policy = load(name)
    harm = {clause.name for clause in policy.clauses.values() if METRICS[clause.metric].family == "harm"}
    hard = {clause for rule in policy.rules if rule.enforcement == "hard" for clause in rule.clauses}
    assert (policy.profile == "supplement") == (name in SUPPLEMENTS)
    assert bool(harm & hard) == (name not in (*SUPPLEMENTS, "refusal-gate"))


@every_policy
def test_each_policy_has_a_page_that_says_what_it_asks(name):
    policy = load(name)
    page = (LIBRARY / f"{name}.md").read_text()
    assert page.startswith(f"# `{name}`: ")
    for rule in policy.rules:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{rule.id}` |")]
        for item in assertions_of(rule.test):
            unit = "%" if item.clause.percent else "USD"
            assert f"at {'least' if item.floor else 'most'} {plain(item.bar)} {unit}" in row
            assert not item.param or f"(`{item.param}`)" in row
            assert item.clause.min_samples is None or f"{item.clause.min_samples} tasks or more" in row
        assert (rule.enforcement == "advisory") == ("advisory" in row)
    if "average-over-domains" in {item.code for item in lint(policy, Known(METRICS))} and name != "refusal-gate":
        assert "the lint warns" in page.lower()


def test_the_index_names_each_policy_and_nothing_else():
    index = (LIBRARY / "README.md").read_text()
    rows = [line for line in index.splitlines() if line.startswith("| [")]
    named = [line.split("`")[1] for line in rows]
    assert sorted(named) == list(NAMES_OF_POLICIES)
    assert all(f"[`{name}`]({name}.md)" in index for name in named)
    assert {line.split("`")[1] for line in rows if "it adds to others" in line} == set(SUPPLEMENTS)
    assert sorted(path.stem for path in LIBRARY.glob("*.md")) == sorted([*NAMES_OF_POLICIES, "README"])


@pytest.mark.parametrize(
    ("name", "applies", "not_to"),
    [
        ("hr-writes", {"resource.domain": "hr"}, {"resource.domain": "email"}),
        ("itsm-writes", {"resource.domain": "it_service_management"}, {"resource.domain": "hr"}),
        (
            "reversible-writes",
            {"resource.domain": "email", "resource.reversible": True},
            {"resource.domain": "email", "resource.reversible": False},
        ),
        (
            "reversible-writes",
            {"resource.domain": "drive", "resource.reversible": True},
            {"resource.domain": "hr", "resource.reversible": True},
        ),
        ("unattended-writes", {"resource.reversible": False}, {"resource.reversible": True}),
    ],
)
def test_a_policy_applies_to_its_own_systems(name, applies, not_to):
    when = load(name).applies_when
    assert when is not None
    assert when.evaluate(applies).answer == "true"
    assert when.evaluate(not_to).answer == "false"
    assert when.evaluate({}).answer == "error"


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
