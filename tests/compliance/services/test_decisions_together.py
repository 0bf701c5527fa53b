"""Several who ask at once are answered in one transaction: each by her own rights, on record under her own name, or not at all."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections

from compliance.deciding.facts import Question
from compliance.models import Decision, LedgerEntry
from compliance.services import decisions
from compliance.services.decisions import Asking, ScopeMissing, TokenRefused, decide
from compliance.services.people import token_digest
from compliance.services.recording import Decided, Recorder, forget_bodies
from compliance.services.stopping import suspend_grant
from tests.support import signing
from tests.support.asking import ask_token, codes_of
from tests.support.racing import racers

Connect = Callable[[], "psycopg.Connection[Any]"]


@pytest.fixture
def land(committed_db) -> signing.Ground:
    ground = signing.ground()
    signing.granted(ground)
    forget_bodies()
    return ground


def asking(token: str, *subjects: str, **more: Any) -> Asking:
    questions = [Question("model", subject, "write", "hr-prod") for subject in subjects or ("model-a",)]
    return Asking(questions, token_digest(token), **more)


def refuse(*_: object) -> None:
    raise PermissionError("too many")


def allowed(outcome: list[Decided] | Exception | None) -> list[bool]:
    assert isinstance(outcome, list), outcome
    return [answer.judgement.allowed for answer in outcome]


def test_each_is_answered_by_her_own_rights(land: signing.Ground) -> None:
    mine, hers = ask_token(land.asker), ask_token(land.security)
    first, second, third, fourth, fifth, sixth = decisions._decide_together(
        [
            asking(mine, request_id="one"),
            asking("wg_unknown"),
            asking(ask_token(land.asker, "read")),
            asking(hers, "nobody", "model-a", request_id="four", observed=True),
            asking(ask_token(land.asker, "decide:erp-prod")),
            asking(mine, admit=refuse),
        ]
    )
    assert allowed(first) == [True]
    assert isinstance(second, TokenRefused)
    assert isinstance(third, ScopeMissing)
    assert allowed(fourth) == [False, True]
    assert isinstance(fifth, list)
    assert codes_of(fifth[0]) == ["out_of_scope"]
    assert isinstance(sixth, PermissionError)
    rows = Decision.objects.order_by("id")
    assert [(row.request_id, row.observed, row.allowed) for row in rows] == [
        ("one", False, True),
        ("four", True, False),
        ("four", True, True),
        ("", False, False),
    ]
    assert len({row.at for row in rows}) == 1
    entries = LedgerEntry.objects.filter(action="decision.made").order_by("id")
    assert [entry.uid for entry in entries] == [row.entry for row in rows], "entered in the order in which they were decided"
    people = [str(account.person_id) for account in (land.asker, land.security, land.security, land.asker)]
    assert all(person in bytes(entry.content).decode() for entry, person in zip(entries, people, strict=True))


def test_a_grant_that_is_being_moved_keeps_nobody_waiting(land: signing.Ground, superuser_connection: Connect) -> None:
    token = ask_token(land.asker)
    both = [asking(token), asking(token, "nobody")]
    with superuser_connection() as mover:
        mover.autocommit = False
        mover.execute("SELECT FROM compliance_grant FOR UPDATE")
        assert decisions._decide_together(both) == [None, None]
        mover.rollback()
    assert not Decision.objects.exists()
    assert [allowed(outcome) for outcome in decisions._decide_together(both)] == [[True], [False]]


def test_one_who_asks_alone_hears_what_became_of_the_grant(land: signing.Ground) -> None:
    grant = land.version.grants.get()
    token = ask_token(land.asker)
    suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="odd")
    (answer,) = decide(questions=asking(token).questions, token_digest=token_digest(token))
    assert codes_of(answer) == ["grant_suspended"]


@pytest.mark.parametrize("fails", ["reading", "recording"])
def test_where_it_fails_for_all_each_asks_for_herself(land: signing.Ground, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    token = ask_token(land.asker)
    record, hear = Recorder.record, decisions._hear
    calls = []

    def once(*given: Any, **more: Any) -> Any:
        calls.append(given)
        if len(calls) == 1:
            raise OperationalError("gone")
        return (record if fails == "recording" else hear)(*given, **more)

    if fails == "recording":
        monkeypatch.setattr(Recorder, "record", once)
    else:
        monkeypatch.setattr(decisions, "_hear", once)
    admitted: list[int] = []
    (answer,) = decide(
        questions=asking(token).questions, token_digest=token_digest(token), admit=lambda _, number: admitted.append(number)
    )
    assert answer.judgement.allowed
    assert len(calls) == 2
    assert admitted == [1], "counted once, however often it is tried"
    assert Decision.objects.count() == 1


def test_whoever_leads_asks_on_one_connection(land: signing.Ground, superuser_connection: Connect) -> None:
    token = ask_token(land.asker)
    questions, digest = asking(token).questions, token_digest(token)
    with racers(4) as callers:
        for _ in range(5):
            told = callers.run(*[lambda: decide(questions=questions, token_digest=digest)] * 4)
            assert all(outcome.value[0].judgement.allowed for outcome in told)
        assert callers.run(lambda: connections[DEFAULT_DB_ALIAS].connection)[0].value is None, "a thread's own was not needed"
    # Somebody ends it: who asks next is answered all the same, and those after her share a new one.
    assert decisions._common is not None
    ended = decisions._common.connection.info.backend_pid
    with superuser_connection() as superuser:
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])
    for _ in range(2):
        (answer,) = decide(questions=questions, token_digest=digest)
        assert answer.judgement.allowed
    assert decisions._common.connection.info.backend_pid != ended


def test_a_long_batch_is_nobody_else_s_to_wait_for(land: signing.Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions._gathering, "do", lambda job: pytest.fail("it was gathered"))
    token = ask_token(land.asker)
    questions = asking(token, *["model-a"] * (decisions.MOST_OF_ONE + 1)).questions
    assert [answer.judgement.allowed for answer in decide(questions=questions, token_digest=token_digest(token))] == [True] * 9


def test_the_same_question_asked_twice_at_once_has_two_records(land: signing.Ground) -> None:
    token = ask_token(land.asker)
    first, second = decisions._decide_together([asking(token), asking(token)])
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert first[0].uid != second[0].uid
    assert len({row.body_id for row in Decision.objects.all()}) == 1
