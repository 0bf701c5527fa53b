"""Replay: facts document, policy bytes and instant give the same judgement core, byte for byte."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.kernel.canonical import canonical_bytes, digest_of
from policies.language.compiler import PolicyRefused
from policies.language.evaluator import judge
from policies.language.facts import Facts, FactsUnreadable, Member, Metrics, facts_digest, from_document
from policies.language.replay import UnknownSemantics, replay
from tests.policies.language.building import HARM, METRICS, NOW, REFUSAL, compiled, facts, harm, observation, with_clause
from tests.policies.language.strategies import FACTS, POLICIES

CASES = settings(max_examples=150, deadline=None)
POINT = with_clause(statistic="point")


@CASES
@given(st.sampled_from(POLICIES), FACTS)
def test_a_judgement_is_replayed_from_its_bytes(policy, given_facts):
    judgement = judge(policy, given_facts, as_of=NOW)
    document = given_facts.to_document(judgement.reasons)
    again = replay(document, policy.text, as_of=NOW)
    assert again.core_bytes() == judgement.core_bytes()
    assert from_document(document).to_document(again.reasons) == document


@CASES
@given(st.sampled_from(POLICIES), FACTS, st.randoms())
def test_the_order_of_candidates_changes_no_byte(policy, given_facts, random):
    judgement = judge(policy, given_facts, as_of=NOW)
    shuffled = given_facts._replace(
        candidates={clause: tuple(random.sample(held, len(held))) for clause, held in reversed(given_facts.candidates.items())},
        aliases=tuple(random.sample(given_facts.aliases, len(given_facts.aliases))),
    )
    again = judge(policy, shuffled, as_of=NOW)
    assert again.core_bytes() == judgement.core_bytes()
    assert shuffled.to_document(again.reasons) == given_facts.to_document(judgement.reasons)


@CASES
@given(st.sampled_from(POLICIES), FACTS)
def test_documents_and_cores_are_canonical(policy, given_facts):
    judgement = judge(policy, given_facts, as_of=NOW)
    for written in (given_facts.to_document(judgement.reasons), judgement.core_bytes()):
        assert canonical_bytes(json.loads(written)) == written


@CASES
@given(st.sampled_from(POLICIES), FACTS, st.integers(0, 400))
def test_the_facts_document_decides_the_core_without_the_instant(policy, given_facts, days):
    first, second = judge(policy, given_facts, as_of=NOW), judge(policy, given_facts, as_of=NOW + timedelta(days=days))
    if given_facts.to_document(first.reasons) == given_facts.to_document(second.reasons):
        assert first.core_bytes() == second.core_bytes()


def test_the_document_says_what_was_known_and_why_it_counted():
    given_facts = facts(
        domain="hr", refusal=(observation("90.50", k=None, n=None), observation("70", evidence="ev-2", trust="vendor"))
    )
    document = given_facts.to_document(judge(POINT, given_facts, as_of=NOW).reasons)
    held = json.loads(document)
    first, second = held["candidates"]["refusal"]
    assert (first["value"], first["value_as_written"], first["reason"], first["n"]) == ("90.5", "90.50", "", None)
    assert (second["trust"], second["reason"]) == ("vendor", "trust_too_low")
    assert first["ended_at"] == "2026-08-22T00:00:00.000000Z"
    assert held["metrics"]["infeasible_refusal_rate"]["digest"] == "sha256:infeasible_refusal_rate"
    assert "as_of" not in held
    assert facts_digest(document) == digest_of(document)


def test_a_route_is_replayed_too():
    evidence = f"{REFUSAL}\n{HARM.replace('max_age_days', 'about: agent, max_age_days')}"
    rules = "    - {id: a, evidence: refusal, at_least: 80}\n    - {id: b, evidence: harm, at_most: 5}"
    policy = compiled(rules=rules, evidence=evidence)
    route = tuple(Member(key, f"sha256:{key}", {"refusal": (observation(k=900, n=1000),)}) for key in ("model-b", "model-a"))
    given_facts = Facts("helper", "sha256:h", candidates={"harm": (harm(0, about="agent"),)}, metrics=METRICS, route=route)
    judgement = judge(policy, given_facts, as_of=NOW)
    document = given_facts.to_document(judgement.reasons)
    assert judgement.outcome == "pass"
    assert [member["subject"] for member in json.loads(document)["route"]] == ["model-a", "model-b"]
    assert replay(document, policy.text, as_of=NOW).core_bytes() == judgement.core_bytes()


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_an_error_over_a_number_that_is_not_finite_is_replayed_too(value):
    given_facts = facts(refusal=observation("0")._replace(value=Decimal(value)))
    judgement = judge(POINT, given_facts, as_of=NOW)
    document = given_facts.to_document(judgement.reasons)
    assert json.loads(document)["candidates"]["refusal"][0]["value"] == value
    assert replay(document, POINT.text, as_of=NOW).core_bytes() == judgement.core_bytes()


def test_the_metric_definitions_of_then_are_used_and_not_those_of_today():
    given_facts = facts(refusal=observation("90"))
    document = given_facts.to_document(judge(POINT, given_facts, as_of=NOW).reasons)
    turned = document.replace(b'"better":"higher"', b'"better":"lower"')
    with pytest.raises(PolicyRefused, match="at_most"):
        replay(turned, POINT.text, as_of=NOW)
    without = given_facts._replace(metrics=Metrics({})).to_document(judge(POINT, given_facts, as_of=NOW).reasons)
    with pytest.raises(PolicyRefused, match="unknown metric"):
        replay(without, POINT.text, as_of=NOW)


def test_times_are_written_in_utc_whatever_their_zone():
    zone = timezone(timedelta(hours=5, minutes=30))
    given_facts = facts(refusal=observation("90", ended_at=datetime(2026, 8, 22, 5, 30, tzinfo=zone)))
    same = facts(refusal=observation("90", ended_at=datetime(2026, 8, 22, tzinfo=UTC)))
    written = [item.to_document(judge(POINT, item, as_of=NOW).reasons) for item in (given_facts, same)]
    assert written[0] == written[1]


def test_candidates_that_were_not_judged_are_left_out():
    given_facts = facts(refusal=observation("90"), harm=harm(0))
    document = given_facts.to_document(judge(POINT, given_facts, as_of=NOW).reasons)
    assert set(json.loads(document)["candidates"]) == {"refusal"}


@pytest.mark.parametrize("document", [b"", b"{}", b"[]", b'{"facts":2}', b'{"facts":1}', b"\xff"])
def test_what_is_no_facts_document_is_refused(document):
    with pytest.raises(FactsUnreadable):
        from_document(document)


def test_another_semantics_is_refused():
    given_facts = facts(refusal=observation("90"))
    document = given_facts.to_document(judge(POINT, given_facts, as_of=NOW).reasons)
    with pytest.raises(UnknownSemantics):
        replay(document, POINT.text, as_of=NOW, semantics=2)
