"""What a text means: defaults, the resolved form, and its digests."""

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from evaluations.kernel.canonical import canonical_bytes, digest_of
from policies.language.compiled import Assertion, Combination, LooserParameter
from policies.language.compiler import compile_policy, json_schema
from tests.policies.language.building import CLOSING, HARM, NAMES, REFUSAL, compiled, policy_text

MINIMAL_CLAUSE = {
    "metric": "infeasible_refusal_rate",
    "benchmark": "enterpriseops-gym-aa",
    "versions": ["2026-07"],
    "slice": "overall",
    "about": "model",
    "statistic": "lower_bound",
    "confidence": Decimal("0.95"),
    "min_samples": None,
    "max_error_share": None,
    "max_age_days": 90,
    "min_trust": "independent",
    "min_provenance": "reported",
    "require_attestation": False,
    "prefer": [],
}


def test_every_default_is_filled_into_the_resolved_form():
    spec = compiled().resolved["spec"]
    assert spec["evidence"]["refusal"] == MINIMAL_CLAUSE
    assert spec["rules"] == [{"id": "refuses", "enforcement": "hard", "evidence": "refusal", "at_least": Decimal(80)}]
    assert spec["sign_offs"] == {
        "all_of": [{"factor": "security", "role": "security", "approve": 1, "filter": None}],
        "exclude": ["evidence_submitter", "policy_author", "requester"],
        "reauthenticate_within_minutes": 5,
        "request_expires_after_hours": 72,
    }
    assert spec["drift"] == {"on_fail": "suspend", "on_stale": "suspend", "on_contested": "suspend", "max_fall": {}}
    assert (spec["params"], spec["forbid"], spec["tests"]) == ({}, [], [])


def test_the_default_statistic_suits_polarity_and_unit():
    cost = "    cost: {metric: cost_per_task_usd, benchmark: mole, versions: ['2026-09'], max_age_days: unlimited}"
    rules = "\n".join(
        f"    - {{id: {name}, evidence: {name}, {side}: 5}}"
        for name, side in (("refusal", "at_least"), ("harm", "at_most"), ("cost", "at_most"))
    )
    policy = compiled(rules=rules, evidence=f"{REFUSAL}\n{HARM}\n{cost}")
    assert {name: clause.statistic for name, clause in policy.clauses.items()} == {
        "refusal": "lower_bound",
        "harm": "upper_bound",
        "cost": "point",
    }
    assert policy.clauses["cost"].max_age is None
    assert policy.clauses["harm"].max_age == timedelta(days=180)


def test_spelling_does_not_change_the_resolved_digest_and_does_change_the_text_digest():
    spellings = [
        policy_text("    - {id: refuses, evidence: refusal, at_least: 80}"),
        policy_text("    - {id: refuses, evidence: refusal, at_least: 80.0}"),
        policy_text("    - {id: refuses, evidence: refusal, at_least:    80.00, enforcement: hard}  # a comment"),
        policy_text("    - at_least: 80\n      evidence: refusal\n      id: refuses"),
    ]
    policies = [compile_policy(text, NAMES) for text in spellings]
    assert len({policy.resolved_digest for policy in policies}) == 1
    assert len({policy.digest for policy in policies}) == len(spellings)
    assert compiled(rules="    - {id: refuses, evidence: refusal, at_least: 80.1}").resolved_digest != policies[0].resolved_digest


def test_json_and_yaml_of_one_meaning_have_one_resolved_digest():
    policy = compiled()
    spec = {
        "appliesTo": {"actions": ["write"]},
        "evidence": {"refusal": {key: MINIMAL_CLAUSE[key] for key in ("metric", "benchmark", "versions", "max_age_days")}},
        "rules": [{"id": "refuses", "evidence": "refusal", "at_least": 80.0}],
        "sign_offs": {"all_of": [{"factor": "security", "role": "security", "approve": 1}]},
        "grant": {"max_days": 90, "recertify_every_days": 30},
    }
    shape = {
        "apiVersion": "writegate/v1",
        "kind": "DeploymentPolicy",
        "metadata": {"name": "made-up", "title": "Made up"},
        "spec": spec,
    }
    again = compile_policy(json.dumps(shape, indent="\t").encode(), NAMES, filename="p.json")
    assert again.resolved_digest == policy.resolved_digest


def test_the_bytes_given_are_kept_and_digested():
    text = policy_text() + b"# a remark\n"
    policy = compile_policy(text, NAMES)
    assert policy.text == text
    assert policy.digest == digest_of(text)
    assert policy.resolved_bytes == canonical_bytes(policy.resolved)
    assert policy.resolved_digest == digest_of(policy.resolved_bytes)


def test_rules_become_a_tree_of_assertions():
    rules = """
    - id: either
      enforcement: soft
      any_of:
        - {evidence: refusal, at_least: {param: floor}}
        - all_of:
            - {evidence: refusal, at_least: 70}
            - {evidence: harm, at_most: 2}
""".strip("\n")
    policy = compiled(rules=rules, evidence=f"{REFUSAL}\n{HARM}", params="{floor: 85.5}")
    (rule,) = policy.rules
    assert rule.enforcement == "soft"
    assert rule.clauses == ("refusal", "harm")
    assert isinstance(rule.test, Combination)
    assert rule.test.any_of
    first, second = rule.test.branches
    assert isinstance(first, Assertion)
    assert (first.param, first.bar, first.floor) == ("floor", Decimal("85.5"), True)
    assert isinstance(second, Combination)
    assert not second.any_of
    assert [branch.bar for branch in second.branches if isinstance(branch, Assertion)] == [Decimal(70), Decimal(2)]


def test_a_rules_digest_changes_with_what_it_reads_and_with_nothing_else():
    one = "    - {id: refuses, evidence: refusal, at_least: {param: floor}}"
    base = compiled(rules=one, params="{floor: 80}").rules[0].digest
    more = f"{one}\n    - {{id: harmless, evidence: harm, at_most: 5}}"
    assert compiled(rules=more, params="{floor: 80}", evidence=f"{REFUSAL}\n{HARM}").rules[0].digest == base
    assert compiled(rules=one, params="{floor: 81}").rules[0].digest != base
    other = REFUSAL.replace("max_age_days: 90", "max_age_days: 91")
    assert compiled(rules=one, params="{floor: 80}", evidence=other).rules[0].digest != base
    assert compiled(rules=one.replace("}}", "}, enforcement: soft}"), params="{floor: 80}").rules[0].digest != base


def test_everything_else_is_resolved_too():
    more = """
  forbid:
    - {id: open-incident, when: resource.open_incident == true}
  drift: {on_fail: notify, max_fall: {refusal: 3.0}}
  tests:
    - name: too old
      facts: {refusal: {observations: [{value: 90, age_days: 91}]}}
      expect: {outcome: fail, rules: {refuses: stale}}
    - name: as good as contested
      facts: {refusal: {result: contested}}
      expect: {outcome: fail}
""".strip("\n")
    closing = CLOSING.replace("approve: 1}", "approve: 2, filter: signer.team != requester.team}")
    policy = compiled(more=more, closing=closing, applies="{actions: [write], when: resource.reversible == false}")
    assert policy.actions == ("write",)
    assert policy.applies_when is not None
    assert policy.applies_when.uses == {"resource.reversible"}
    assert [guardrail.id for guardrail in policy.forbid] == ["open-incident"]
    assert policy.sign_offs is not None
    (factor,) = policy.sign_offs.all_of
    assert (factor.role, factor.approve) == ("security", 2)
    assert factor.filter is not None
    assert factor.filter.uses == {"signer.team", "requester.team"}
    assert policy.grant is not None
    assert (policy.grant.max_days, policy.grant.recertify_every_days) == (90, 30)
    assert policy.drift is not None
    assert (policy.drift.on_fail, policy.drift.on_stale) == ("notify", "suspend")
    assert dict(policy.drift.max_fall) == {"refusal": Decimal(3)}
    assert policy.tests[0]["facts"] == {"refusal": {"observations": [{"value": Decimal(90), "age_days": 91}]}}
    assert policy.tests[1]["facts"] == {"refusal": {"result": "contested"}}


def test_a_domain_is_used_where_a_clause_reads_it():
    assert not compiled().uses_domain
    assert compiled(evidence=REFUSAL.replace("max_age_days", "slice: resource.domain, max_age_days")).uses_domain


def test_a_conformance_policy_has_conditions_only():
    text = b"""
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {name: todo, title: Todo, profile: conformance}
spec:
  appliesTo: {actions: [can_read_todos], when: request.subject.properties.role == "viewer"}
  forbid: [{id: closed, when: request.resource.properties.closed == true}]
"""
    policy = compile_policy(text, NAMES)
    assert (policy.rules, dict(policy.clauses), policy.sign_offs, policy.grant, policy.drift) == ((), {}, None, None, None)
    assert set(policy.resolved["spec"]) == {"appliesTo", "forbid", "tests"}


def test_a_binding_tightens_and_never_loosens():
    rules = "    - {id: a, evidence: refusal, at_least: {param: floor}}\n    - {id: b, evidence: harm, at_most: {param: ceiling}}"
    policy = compiled(rules=rules, evidence=f"{REFUSAL}\n{HARM}", params="{floor: 80, ceiling: 5}")
    assert dict(policy.effective_params({})) == {"floor": Decimal(80), "ceiling": Decimal(5)}
    tightened = policy.effective_params({"floor": Decimal(90), "ceiling": Decimal("0.5")})
    assert dict(tightened) == {"floor": Decimal(90), "ceiling": Decimal("0.5")}
    loosened = [
        {"floor": Decimal("79.999999")},
        {"ceiling": Decimal("5.000001")},
        {"floor": Decimal(101)},
        {"ceiling": Decimal(-1)},
        {"other": Decimal(1)},
        {"floor": Decimal("NaN")},
        {"floor": Decimal("Infinity")},
    ]
    for wrong in loosened:
        with pytest.raises(LooserParameter) as refused:
            policy.effective_params(wrong)
        assert next(iter(wrong)) in str(refused.value)


def test_the_published_schema_knows_every_key_and_refuses_null():
    schema = json_schema()
    clause = schema["$defs"]["EvidenceClause"]
    assert set(clause["properties"]) == set(MINIMAL_CLAUSE)
    assert clause["required"] == ["metric", "benchmark", "versions", "max_age_days"]
    assert clause["properties"]["confidence"]["default"] == 0.95
    assert not clause["additionalProperties"]
    assert '"null"' not in json.dumps(schema)


def test_the_published_schema_changes_only_on_purpose():
    baseline = Path(__file__).parents[2] / "baselines" / "policy.schema.json"
    assert json.loads(baseline.read_text(encoding="utf-8")) == json_schema(), "write the new schema there if the change is meant"
