"""A long batch is read and recorded part by part: its answers are those of the same questions asked singly, all on record or none."""

from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest
from django.db import DEFAULT_DB_ALIAS, DataError, OperationalError, connections

from compliance.deciding.facts import Question
from compliance.models import Decision, Grant, LedgerEntry, ServiceToken
from compliance.selectors.deciding import read
from compliance.services import decisions, recording
from compliance.services.decisions import Semantic, TokenRefused, Unavailable, decide
from compliance.services.people import revoke_token, token_digest
from compliance.services.recording import Decided, Recorder, forget_bodies
from compliance.services.stopping import suspend_grant
from evaluations.services.agents import register_route
from tests.support import signing, world
from tests.support.asking import ask_token, codes_of
from tests.support.racing import racers

Connect = Callable[[], "psycopg.Connection[Any]"]
PART = 4


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (read, decisions, recording):
        monkeypatch.setattr(module, "PART", PART)
    monkeypatch.setattr(decisions, "MOST_OF_ONE", 0)
    forget_bodies()


@pytest.fixture
def land(committed_db) -> signing.Ground:
    ground = signing.ground()
    signing.granted(ground)
    return ground


@pytest.fixture
def token(land: signing.Ground) -> str:
    return ask_token(land.asker)


def questions_of(*subjects: str) -> list[Question]:
    return [Question("subject", subject, "write", "hr-prod") for subject in subjects]


MIXED = questions_of("model-a", "nobody", "model-a@1", "r", "model-a", "r", "nobody", "model-a@2", "model-a", "r", "open-r")


def ask(token: str, questions: list[Question] = MIXED, **more: Any) -> list[Decided]:
    return decide(questions=questions, token_digest=token_digest(token), **more)


def routes(land: signing.Ground) -> None:
    world.register("model-b")
    register_route(actor=world.ACTOR, key="r", models=["model-a", "model-b"])
    register_route(actor=world.ACTOR, key="open-r", models=["model-a"], closed=False)
    world.judge_all()


@pytest.mark.parametrize("number", [PART, PART + 1, 2 * PART, len(MIXED)])
def test_it_is_answered_as_each_question_alone(land: signing.Ground, token: str, number: int) -> None:
    routes(land)
    questions = MIXED[:number]
    together = ask(token, questions)
    singly = [ask(token, [question])[0] for question in questions]
    assert [answer.judgement for answer in together] == [answer.judgement for answer in singly]
    assert [answer.facts for answer in together] == [answer.facts for answer in singly]
    assert {answer.judgement.allowed for answer in together} == {True, False}
    rows = list(Decision.objects.order_by("id")[:number])
    assert [row.uid for row in rows] == [answer.uid for answer in together]
    entries = list(LedgerEntry.objects.filter(action="decision.made").order_by("id")[:number])
    assert [entry.uid for entry in entries] == [answer.entry for answer in together]
    assert len({answer.at for answer in together}) == 1


def test_all_of_it_is_one_transaction(token: str) -> None:
    ask(token)
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT xmin::text), count(*) FROM compliance_decision")
        assert cursor.fetchone() == (1, len(MIXED))
        cursor.execute("SELECT pg_current_xact_id_if_assigned()")
        assert cursor.fetchone() == (None,), "nothing is left open"


@pytest.mark.parametrize(
    ("semantic", "subjects", "answered"),
    [
        (Semantic.DENY_ON_FIRST_DENY, ["model-a"] * 6 + ["nobody"] + ["model-a"] * 6, 7),
        (Semantic.DENY_ON_FIRST_DENY, ["model-a"] * 3 + ["nobody"] + ["model-a"] * 6, 4),
        (Semantic.DENY_ON_FIRST_DENY, ["model-a"] * 9, 9),
        (Semantic.PERMIT_ON_FIRST_PERMIT, ["nobody"] * 5 + ["model-a"] * 5, 6),
        (Semantic.PERMIT_ON_FIRST_PERMIT, ["nobody"] * 9, 9),
    ],
)
def test_it_ends_with_the_answer_that_decides(token: str, semantic: Semantic, subjects: list[str], answered: int) -> None:
    assert len(ask(token, questions_of(*subjects), semantic=semantic)) == answered
    assert Decision.objects.count() == answered
    assert ask(token, semantic=semantic), "the connection is free again"


def test_who_may_not_ask_is_refused_before_anything_is_judged(land: signing.Ground, token: str) -> None:
    admitted: list[int] = []
    ask(token, admit=lambda _, number: admitted.append(number))
    assert admitted == [len(MIXED)], "it counts whole, and once"
    revoke_token(actor=world.ACTOR, token=ServiceToken.objects.get())
    with pytest.raises(TokenRefused):
        ask(token)
    assert Decision.objects.count() == len(MIXED)


def test_what_is_made_of_the_answers_meanwhile_is_made_of_all_of_them(token: str) -> None:
    seen: list[Decided] = []
    assert ask(token, meanwhile=seen.extend) == seen
    assert [answer.judgement.allowed for answer in seen].count(True) == 4


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Have something happen when all is judged and nothing recorded."""
    record = Recorder.record

    def arrange(happens: Callable[[], Any]) -> None:
        def then_record(*given: Any, **named: Any) -> Any:
            happens()
            return record(*given, **named)

        monkeypatch.setattr(Recorder, "record", then_record)

    return arrange


def test_what_moved_meanwhile_is_judged_anew(land: signing.Ground, token: str, between) -> None:
    grant = Grant.objects.get()

    def stop() -> None:
        if grant.reload().status == "active":
            suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="odd")

    between(stop)
    answers = ask(token, questions_of(*["model-a"] * 9))
    assert [codes_of(answer) for answer in answers] == [["grant_suspended"]] * 9
    assert Decision.objects.count() == 9


@pytest.mark.parametrize("number", [PART + 1, 2 * PART, 9])
def test_what_moves_while_it_is_recorded_is_judged_anew(token: str, number: int) -> None:
    moved: list[Any] = []

    def move(_: Any) -> None:
        with racers(1) as another:
            moved.extend(another.run(world.judge_all))

    answers = ask(token, questions_of(*["model-a"] * number), meanwhile=lambda told: None if moved else move(told))
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(
            "SELECT bool_and(d.xmin::text::bigint > s.xmin::text::bigint) FROM compliance_decision d, policies_standing s"
        )
        assert (cursor.fetchone(), len(moved)) == ((True,), 1)
    assert [answer.judgement.allowed for answer in answers] == [True] * number
    assert Decision.objects.count() == number, "nothing is left of the first attempt"


def test_what_cannot_be_read_is_told_as_it_is(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "QUESTIONS", f"{read.QUESTIONS} WHERE 1 / cardinality($1) = 0 OR 1 / (cardinality($1) - 1) = 0")
    with pytest.raises(Unavailable) as told:
        ask(token)
    assert isinstance(told.value.__cause__, DataError)


def test_what_moves_each_time_is_refused(token: str, between) -> None:
    between(world.judge_all)
    answers = ask(token, questions_of(*["model-a", "nobody"] * 4))
    assert [codes_of(answer)[0] for answer in answers] == ["facts_moved", "unknown_subject"] * 4
    assert Decision.objects.count() == 8


@pytest.mark.parametrize("state", ["53100", "25006", "23514"])
def test_what_cannot_be_recorded_whole_is_no_and_leaves_nothing(token: str, superuser_connection: Connect, state: str) -> None:
    superuser = superuser_connection()
    superuser.execute(
        "CREATE FUNCTION refuse_the_last() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF NEW.subject = 'open-r' THEN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END IF; RETURN NEW; END $$"
    )
    superuser.execute(
        "CREATE TRIGGER refuse_last BEFORE INSERT ON compliance_decision FOR EACH ROW EXECUTE FUNCTION refuse_the_last()"
    )
    try:
        answers = ask(token)
    finally:
        superuser.execute("DROP FUNCTION refuse_the_last() CASCADE")
    assert {(codes_of(answer)[0], answer.judgement.allowed, answer.entry) for answer in answers} == {
        ("cannot_record", False, None)
    }
    assert not Decision.objects.exists()
    assert not LedgerEntry.objects.filter(action="decision.made").exists()
    assert [answer.judgement.allowed for answer in ask(token)].count(True) == 4


def test_a_connection_that_breaks_off_midway_is_made_anew(
    token: str, superuser_connection: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    heard = decisions._heard

    def break_off(*given: Any) -> Any:
        if not ended:
            pid = connections[DEFAULT_DB_ALIAS].connection.info.backend_pid
            superuser_connection().execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            ended.append(pid)
        return heard(*given)

    monkeypatch.setattr(decisions, "_heard", break_off)
    assert len(ask(token)) == len(MIXED)
    assert Decision.objects.count() == len(MIXED)
    assert connections[DEFAULT_DB_ALIAS].connection.info.backend_pid not in ended


def test_a_connection_that_breaks_off_each_time_is_no_answer(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr(decisions, "_heard", broken)
    with pytest.raises(Unavailable):
        ask(token)
    monkeypatch.undo()
    assert not Decision.objects.exists()


def test_several_at_once_each_have_their_answers(land: signing.Ground, token: str) -> None:
    routes(land)
    expected = [answer.judgement.allowed for answer in ask(token)]
    forget_bodies()
    with racers(4) as race:
        for turned in (MIXED, MIXED[::-1]):
            told = race.run(*[partial(ask, token, turned)] * 2, *[partial(ask, token, turned[::-1])] * 2)
            answers = [[answer.judgement.allowed for answer in outcome.value] for outcome in told]
            assert answers[0] == answers[1] == (expected if turned is MIXED else expected[::-1])
            assert answers[2] == answers[3] == answers[0][::-1]
    assert Decision.objects.count() == 9 * len(MIXED)
