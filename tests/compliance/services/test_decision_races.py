"""Decisions under fire: what is allowed was allowed by what stood when it was recorded, and what cannot be recorded is no."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
from django.db import connections

from compliance.models import Decision, Grant, LedgerEntry
from compliance.services import decisions
from compliance.services.decisions import Unavailable
from compliance.services.filing import request_reinstatement
from compliance.services.stopping import suspend_grant
from policies.services.systems import set_open_incident
from tests.support import signing, world
from tests.support.asking import ask_gate, ask_token, codes_of
from tests.support.racing import racers

ROUNDS = pytest.mark.parametrize("rounds", [10, pytest.param(200, marks=pytest.mark.slow)])
ASKING = 4


@pytest.fixture
def land(committed_db) -> signing.Ground:
    return signing.ground()


def back(land: signing.Ground, grant: Grant) -> None:
    request = request_reinstatement(actor=signing.actor_of(land.asker), grant=grant, reason="all is well again")
    for signer in (land.owner, land.security):
        signing.sign(signer, request)


@pytest.mark.slow
@ROUNDS
def test_no_allow_is_entered_after_its_grant_s_suspension(land: signing.Ground, rounds: int) -> None:
    grant = signing.granted(land)
    token = ask_token(land.asker)
    stop = signing.actor_of(land.security)
    seen = set()
    with racers(ASKING + 1) as race:
        for _ in range(rounds):
            asks = [partial(ask_gate, token)] * ASKING
            outcomes = race.run(*asks, partial(suspend_grant, actor=stop, grant=grant.reload(), reason="odd"))
            answers = [outcome.value for outcome in outcomes[:ASKING]]
            seen.update(answer.judgement.allowed for answer in answers)
            stopped = LedgerEntry.objects.filter(action="grant.suspended").latest("id").pk
            allowed = [answer.entry for answer in answers if answer.judgement.allowed]
            assert all(pk < stopped for pk in LedgerEntry.objects.filter(uid__in=allowed).values_list("id", flat=True))
            assert LedgerEntry.objects.filter(uid__in=allowed).count() == len(allowed)
            assert codes_of(ask_gate(token)) == ["grant_suspended"]
            back(land, grant.reload())
    assert rounds < 50 or seen == {True, False}, "the race was run, and not always won by the same"


@ROUNDS
def test_an_incident_binds_whatever_is_asked_after_it(land: signing.Ground, rounds: int) -> None:
    world.activate(world.propose_text(signing.GUARDED))
    world.judge_all()
    signing.granted(land)
    token = ask_token(land.asker)
    with racers(ASKING + 1) as race:
        for _ in range(rounds):
            opens = partial(set_open_incident, actor=world.ACTOR, system=land.system, is_open=True, reason="payroll is down")
            race.run(*[partial(ask_gate, token)] * ASKING, opens)
            assert codes_of(ask_gate(token)) == ["forbidden_by_guardrail"]
            set_open_incident(actor=world.ACTOR, system=land.system, is_open=False, reason="over")


# --- between the two statements


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Have something happen between what is read and what is recorded."""
    read = decisions.read_asked

    def arrange(happens: Callable[[], Any]) -> None:
        def read_then(*given: Any, **named: Any) -> Any:
            found = read(*given, **named)
            happens()
            return found

        monkeypatch.setattr(decisions, "read_asked", read_then)

    return arrange


def test_what_moved_meanwhile_is_judged_anew(land: signing.Ground, between) -> None:
    grant = signing.granted(land)
    token = ask_token(land.asker)

    def stop() -> None:
        if grant.reload().status == "active":
            suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="odd")

    between(stop)
    assert codes_of(ask_gate(token)) == ["grant_suspended"]
    assert Decision.objects.count() == 1


def test_what_moves_each_time_is_refused(land: signing.Ground, between) -> None:
    signing.granted(land)
    token = ask_token(land.asker)
    between(world.judge_all)
    answer = ask_gate(token)
    assert codes_of(answer) == ["facts_moved"]
    assert Decision.objects.get(uid=answer.uid).allowed is False


def test_an_error_in_judging_is_a_recorded_no(land: signing.Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    signing.granted(land)
    token = ask_token(land.asker)
    monkeypatch.setattr(decisions, "judge", lambda *given: 1 / 0)
    answer = ask_gate(token)
    assert codes_of(answer) == ["internal_error"]
    assert Decision.objects.get(uid=answer.uid).codes == ["internal_error"]


# --- where nothing can be recorded


@pytest.fixture
def refuse_decisions(superuser_connection) -> Iterator[Callable[[str], None]]:
    """Have the decisions table refuse rows with an SQLSTATE, as a full disk or a broken one does."""
    owner: psycopg.Connection = superuser_connection()

    def refuse(state: str) -> None:
        owner.execute(
            "CREATE OR REPLACE FUNCTION refuse_decision() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END $$"
        )
        owner.execute("CREATE TRIGGER refuse_decision BEFORE INSERT ON compliance_decision EXECUTE FUNCTION refuse_decision()")

    yield refuse
    owner.execute("DROP FUNCTION IF EXISTS refuse_decision() CASCADE")


@pytest.mark.parametrize("state", ["53100", "42501", "25006", "58030", "XX001", "23514"])
def test_what_cannot_be_recorded_is_no(land: signing.Ground, refuse_decisions, state: str) -> None:
    signing.granted(land)
    token = ask_token(land.asker)
    refuse_decisions(state)
    answer = ask_gate(token)
    assert (codes_of(answer), answer.uid, answer.entry) == (["cannot_record"], None, None)
    assert Decision.objects.count() == LedgerEntry.objects.filter(action="decision.made").count() == 0


def test_a_database_that_only_reads_records_nothing(land: signing.Ground) -> None:
    signing.granted(land)
    token = ask_token(land.asker)
    ask_gate(token)
    both = (connections["default"], decisions._common)
    for connection in both:
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
    try:
        assert codes_of(ask_gate(token)) == ["cannot_record"]
    finally:
        decisions.close_common_connection()
        with connections["default"].cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = off")
    assert ask_gate(token).judgement.allowed


def test_a_connection_that_was_ended_is_made_anew(land: signing.Ground, superuser_connection) -> None:
    signing.granted(land)
    token = ask_token(land.asker)
    assert ask_gate(token).judgement.allowed
    for connection in (connections["default"], decisions._common):
        connection.ensure_connection()
        pid = connection.connection.info.backend_pid
        superuser_connection().execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    assert ask_gate(token).judgement.allowed


def test_a_database_that_is_gone_is_no_answer_at_all(land: signing.Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    token = ask_token(land.asker)
    connections["default"].close()
    monkeypatch.setitem(connections["default"].settings_dict, "PORT", "1")
    with pytest.raises(Unavailable):
        ask_gate(token)
    monkeypatch.undo()
    connections["default"].close()
    assert codes_of(ask_gate(token)) == ["no_grant"]
