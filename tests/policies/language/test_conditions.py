"""Conditions of the moment: types, refused constructs, and "an absent fact is an error, and an error denies"."""

from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum

import pytest

from policies.language.conditions import (
    FILTER_VARIABLES,
    MAX_EXPRESSION,
    WHEN_VARIABLES,
    Answer,
    ConditionRefused,
    ask_values,
    compile_condition,
)

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)
FACTS = {
    "subject": {"key": "made-up-1", "kind": "model", "provider": "made-up"},
    "action": {"name": "write"},
    "resource": {
        "key": "hr-prod",
        "domain": "hr",
        "environment": "production",
        "owner": "hr-team",
        "reversible": False,
        "open_incident": False,
    },
    "requester": {"key": "alice", "kind": "person", "team": "platform", "roles": ["requester"]},
    "signer": {"key": "bob", "team": "security", "roles": ["security", "auditor"]},
    "now": NOON,
    "request": {
        "subject": {"properties": {}},
        "action": {"properties": {}},
        "resource": {"properties": {"tier": "gold", "size": 3}},
    },
}


def answer(expression: str, facts: dict[str, object] | None = None) -> Answer:
    values = ask_values(FACTS if facts is None else facts)
    return compile_condition(expression, FILTER_VARIABLES).evaluate(values).answer


def findings(expression: str) -> list[str]:
    with pytest.raises(ConditionRefused) as refused:
        compile_condition(expression)
    return [finding.message for finding in refused.value.findings]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("resource.reversible == false", "true"),
        ("!resource.reversible", "true"),
        ("resource.open_incident", "false"),
        ("resource.environment in ['production', 'staging']", "true"),
        ("subject.provider.startsWith('made')", "true"),
        ("signer.team != requester.team", "true"),
        ("'security' in signer.roles", "true"),
        ("size(signer.roles) == 2", "true"),
        ("now < timestamp('2026-09-01T12:00:00Z')", "false"),
        ("now + duration('1h') > timestamp('2026-09-01T12:00:00Z')", "true"),
        ("request.resource.properties.tier == 'gold' && request.resource.properties.size == 3", "true"),
        ("resource.domain == 'hr' ? action.name == 'write' : false", "true"),
    ],
)
def test_a_condition_is_judged_over_the_registrys_facts(expression, expected):
    assert answer(expression) == expected


@pytest.mark.parametrize("expression", ["resource.open_incident != true", "!(resource.environment in ['staging'])"])
@pytest.mark.parametrize("held", ["absent", None, "", " "])
def test_an_absent_null_or_blank_fact_is_missing_under_negative_operators_too(expression, held):
    name = "open_incident" if "incident" in expression else "environment"
    resource = {key: value for key, value in FACTS["resource"].items() if key != name}
    if held != "absent":
        resource[name] = held
    found = compile_condition(expression).evaluate(ask_values({**FACTS, "resource": resource}))
    assert (found.answer, found.missing) == ("error", f"resource.{name}")


@pytest.mark.parametrize(
    "expression", ["request.resource.properties.region != 'x'", "!(request.resource.properties.region in ['x'])"]
)
@pytest.mark.parametrize("properties", [{}, {"region": None}, {"region": ""}, {"region": "\t"}])
def test_an_absent_null_or_blank_claim_is_missing_too(expression, properties):
    found = compile_condition(expression).evaluate(ask_values({**FACTS, "request": {"resource": {"properties": properties}}}))
    assert (found.answer, found.missing) == ("error", "region")


def test_a_fact_of_another_type_is_an_error():
    assert answer("resource.reversible == false", {"resource": {"reversible": "false"}}) == "error"
    assert answer("resource.key == 'x'", {"resource": {"key": 5}}) == "error"


def test_an_error_is_absorbed_only_where_the_other_side_decides_alone():
    assert answer("resource.open_incident || true", {}) == "true"
    assert answer("resource.open_incident && false", {}) == "false"
    assert answer("resource.open_incident || false", {}) == "error"
    assert answer("resource.open_incident ? true : true", {}) == "error"


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("has(request.resource.properties.tier)", "`has`"),
        ("dyn(1) == 1", "`dyn`"),
        ("type(resource.key) == string", "`type`"),
        ("resource.key.matches('.*')", "`matches`"),
        ("matches(resource.key, '.*')", "`matches`"),
        ("requester.roles.all(role, role == 'x')", "`all`"),
        ("requester.roles.exists(role, role == 'x')", "`exists`"),
        ("requester.roles.exists_one(role, role == 'x')", "`exists_one`"),
        ("requester.roles.map(role, role) == ['x']", "`map`"),
        ("requester.roles.filter(role, role == 'x') == ['x']", "`filter`"),
        ("1.0 / 0.0 > 1.0", "division"),
        ("3 % 2 == 1", "remainder"),
        ("'tier' in request.resource.properties", "not available on a map"),
        ("size(request.resource.properties) == 0", "not available on a map"),
    ],
)
def test_refused_constructs_do_not_compile(expression, word):
    (message,) = findings(expression)
    assert word in message


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("resource.region == 'x'", "`resource.environment`"),
        ("region == 'x'", "`resource`"),
        ("signer.key == 'x'", "in a sign-off's `filter` only"),
        ("resource.key == 1", "both sides must have one type"),
        ("resource.key", "gives text"),
        ("request.resource.properties.tier", "unknown type"),
        ("resource.key ==", "not a CEL expression"),
        ("resource.key == 'x' resource.key", "not a CEL expression"),
        ("(" * 200 + "true" + ")" * 200, "nested too deeply"),
        ("true" + " && true" * 200, f"at most {MAX_EXPRESSION}"),
    ],
)
def test_what_does_not_type_check_is_refused_with_a_reason(expression, word):
    assert any(word in message for message in findings(expression))


def test_every_finding_of_an_expression_is_told():
    assert len(findings("resource.region == 'x' && 1 / 0 == 1 && resource.key == 1")) == 3


def test_a_condition_knows_what_it_reads():
    condition = compile_condition("resource.reversible == false && request.resource.properties.key == subject.key")
    assert condition.uses == {"resource.reversible", "request.resource.properties", "subject.key"}


def test_signers_exist_in_a_filter_only():
    assert set(FILTER_VARIABLES) - set(WHEN_VARIABLES) == {"signer.key", "signer.team", "signer.roles"}


def test_numbers_that_cel_cannot_hold_exactly_or_at_all_are_absent():
    for held in (Decimal("NaN"), float("inf"), 2**70):
        values = ask_values({"request": {"resource": {"properties": {"size": held}}}})
        assert compile_condition("request.resource.properties.size != 3").evaluate(values).missing == "size"
    values = ask_values({"request": {"resource": {"properties": {"size": Decimal("3.0")}}}})
    assert compile_condition("request.resource.properties.size == 3").evaluate(values).answer == "true"


def test_members_of_closed_lists_are_texts():
    class Kind(StrEnum):
        MODEL = "model"

    assert answer("subject.kind == 'model'", {"subject": {"kind": Kind.MODEL}}) == "true"


def test_facts_that_no_condition_can_read_and_naive_times_are_refused():
    with pytest.raises(ValueError, match=r"resource\.colour"):
        ask_values({"resource": {"colour": "red"}})
    with pytest.raises(ValueError, match="time zone"):
        ask_values({"now": datetime(2026, 9, 1)})  # noqa: DTZ001 - the very thing that is refused
