"""Judging again, on facts made up: the same facts, instant and meaning give the same bytes, and what replaced a judgement stays."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compliance.deciding import replay
from compliance.deciding.codes import Code, Reason, sentence_of
from compliance.deciding.facts import FORMAT, SEMANTICS, Question, plain_bytes
from compliance.deciding.judge import Judgement, judge
from compliance.deciding.replay import REPLACING, UnknownSemantics, digests_of, judge_again
from evaluations.kernel.canonical import timestamp

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
UIDS = st.uuids(version=4).map(str)
INSTANTS = st.integers(-90, 90).map(lambda days: timestamp(AT + timedelta(days=days)))
MAYBE = st.none() | INSTANTS
KEYS = st.sampled_from(["model-a", "hr-agent", "r"])

GRANTS = st.fixed_dictionaries(
    {
        "uid": UIDS,
        "kind": st.sampled_from(["standing", "break_glass"]),
        "status": st.sampled_from(["active", "suspended", "expired", "revoked"]),
        "cause": st.sampled_from(["signed", "taken_back"]),
        "actions": st.sampled_from([["write"], ["delete", "write"], ["delete"]]),
        "starts_at": INSTANTS,
        "ends_at": INSTANTS,
        "begun_at": MAYBE,
        "recertify_by": MAYBE,
        "signed_at": INSTANTS,
        "gone": st.lists(UIDS, max_size=2),
        "retracted": st.lists(UIDS, max_size=2),
        "requester": st.just({"key": "p", "kind": "person", "team": "hr", "roles": []}),
    }
)


def subjects(reaches: st.SearchStrategy[Any] = st.just([])) -> st.SearchStrategy[Any]:  # noqa: B008 - a strategy is a value
    return st.fixed_dictionaries(
        {
            "key": KEYS,
            "kind": st.sampled_from(["model", "agent", "route"]),
            "provider": st.just("acme"),
            "version": st.integers(1, 3),
            "digest": st.just("sha256:" + "0" * 64),
            "closed": st.booleans(),
            "changed_at": INSTANTS,
            "urgent_at": MAYBE,
            "running": st.integers(1, 3),
            "running_since": INSTANTS,
            "standings": st.just([]),
            "waivers": st.just([]),
            "grants": st.lists(GRANTS, max_size=3),
            "reaches": reaches,
        }
    )


FACTS = st.fixed_dictionaries(
    {
        "alias": st.none()
        | st.fixed_dictionaries({"name": st.just("hr-bot"), "now": KEYS | st.just(""), "before": KEYS | st.just("")}),
        "known_subject": st.booleans(),
        "policies": st.just([]),
        "question": st.builds(
            Question,
            subject_type=st.sampled_from(["model", "agent", "alias", "subject"]),
            subject=st.text(max_size=20),
            action=st.sampled_from(["write", "delete", "other"]),
            system=st.text(max_size=20),
            resource_type=st.sampled_from(["system", "table"]),
            fingerprint=st.sampled_from(["", "sha256:" + "1" * 64]),
        ).map(Question.as_value),
        "subject": st.none() | subjects(st.lists(subjects(), max_size=2)),
        "system": st.none()
        | st.just(
            {
                "key": "hr-prod",
                "domain": "hr",
                "environment": "production",
                "reversible": False,
                "open_incident": False,
                "owner": "hr",
            }
        ),
    }
)


def body_of(facts: Any, judgement: Judgement) -> Any:
    """Return a body as it is read back: through its bytes."""
    return json.loads(plain_bytes({"facts": facts, "format": FORMAT, "judgement": judgement.core()}))


@settings(max_examples=300, deadline=None)
@given(facts=FACTS, minutes=st.integers(0, 10_000_000))
def test_whatever_was_decided_comes_out_the_same(facts: Any, minutes: int) -> None:
    at = AT + timedelta(microseconds=minutes)
    judgement = judge(facts, {}, at, timestamp(at))
    assert judgement.allowed is not bool(judgement.reasons)
    body = body_of(facts, judgement)
    again = judge_again(body, {}, at, timestamp(at))
    assert plain_bytes(again.core) == plain_bytes(body["judgement"])
    assert again.replaced_by is None
    for reason in judgement.reasons:
        assert sentence_of(reason.code, reason.detail)


@settings(max_examples=100, deadline=None)
@given(facts=FACTS, code=st.sampled_from([Code.OUT_OF_SCOPE, Code.INTERNAL_ERROR, Code.FACTS_MOVED]))
def test_what_took_its_place_takes_it_again(facts: Any, code: Code) -> None:
    judgement = judge(facts, {}, AT, timestamp(AT))
    made = {
        Code.OUT_OF_SCOPE: Judgement(False, (Reason(code, {"system": facts["question"]["system"]}),)),
        Code.INTERNAL_ERROR: Judgement(False, (Reason(code, {}),)),
        Code.FACTS_MOVED: Judgement(False, (Reason(code, {}), *judgement.reasons), judgement.policies),
    }[code]
    body = body_of(facts, made)
    again = judge_again(body, {}, AT, timestamp(AT))
    assert plain_bytes(again.core) == plain_bytes(body["judgement"])
    assert (again.replaced_by, again.judged) == (code, judgement)


def test_a_meaning_or_a_format_that_is_not_held_is_refused() -> None:
    facts: Any = {"policies": [{"digest": "a"}, {"digest": "b"}, {"digest": "a"}], "question": {}}
    body = body_of(facts, Judgement(False, (Reason(Code.NO_GRANT, {}),)))
    assert digests_of(body) == {"a", "b"}
    with pytest.raises(UnknownSemantics, match=f"semantics {SEMANTICS + 1}"):
        judge_again({**body, "judgement": {**body["judgement"], "semantics": SEMANTICS + 1}}, {}, AT, "")
    with pytest.raises(UnknownSemantics, match="writegate-decision/9"):
        judge_again({**body, "format": "writegate-decision/9"}, {}, AT, "")


def test_an_error_while_judging_again_is_a_no_as_at_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise KeyError("broken")

    monkeypatch.setattr(replay, "judge", breaks)
    facts: Any = {"policies": [], "question": {"system": "hr-prod"}}
    recorded = {code: Judgement(False, (Reason(code, {}),)) for code in (Code.NO_GRANT, Code.INTERNAL_ERROR)}
    for judgement in recorded.values():
        again = judge_again(body_of(facts, judgement), {}, AT, "")
        assert again.judged is None
        assert [reason["code"] for reason in again.core["reasons"]] == ["internal_error"]


def test_what_replaces_is_what_no_judgement_gives() -> None:
    assert {code.value for code in REPLACING} == {"cannot_record", "internal_error", "facts_moved", "out_of_scope"}
