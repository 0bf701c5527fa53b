"""`decide`: the answer to a question, on record before it leaves. Two statements: read with row versions; lock, compare, insert.

There is no cache but of what never changes. Whatever goes wrong is a denial: one that is recorded where it can be, that says
`cannot_record` where the database answers and takes nothing, and `Unavailable` where there is none to ask.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import errors

from compliance.deciding.codes import Code, Reason
from compliance.deciding.facts import Question
from compliance.deciding.judge import Judgement, judge
from compliance.selectors.deciding.conformance import read_asked, read_asked_in_parts
from compliance.selectors.deciding.read import PART, Asked, Caller
from compliance.services.gathering import Gathering
from compliance.services.recording import Answer, Decided, Meanwhile, Recorder, Teller, forget_bodies, teller_of
from compliance.services.tokens import note_use
from compliance.vocabulary import Scope
from evaluations.kernel.canonical import timestamp
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind

ATTEMPTS = 2
RACED = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable, errors.NoDataFound)
"""What another transaction's work looks like from here: the question is read and judged once more."""

logger = logging.getLogger("compliance.decisions")


class TokenRefused(DomainError):
    """Who asks could not be told: the token is unknown, expired or revoked."""

    code = "token_refused"
    kind = ErrorKind.FORBIDDEN


class ScopeMissing(DomainError):
    """The token may not ask at all."""

    code = "scope_missing"
    kind = ErrorKind.FORBIDDEN


class Unavailable(DomainError):
    """There is no database to ask or to record in: the answer is no, and nobody has it on record."""

    code = "cannot_judge"
    kind = ErrorKind.UNAVAILABLE


class Semantic(StrEnum):
    """How many of a batch are answered: all, or up to the first that decides (AuthZEN 1.0, `evaluations_semantic`)."""

    EXECUTE_ALL = "execute_all"
    DENY_ON_FIRST_DENY = "deny_on_first_deny"
    PERMIT_ON_FIRST_PERMIT = "permit_on_first_permit"


Admit = Callable[[Caller, int], None]
MOST_ASKING = 32
"""So many who ask at once are answered in one transaction."""
LINGER_SECONDS = 0.001
MOST_OF_ONE = 8
"""Whoever asks more at once is answered for herself: nobody waits for a long batch of somebody else's."""
_NOTHING = Question(subject_type="", subject="", action="", system="")


@dataclass(slots=True)
class Asking:
    """One request: its questions, whose they are, and how they are to be answered. `admit` is None once they are let in."""

    questions: Sequence[Question]
    token_digest: str
    semantic: Semantic = Semantic.EXECUTE_ALL
    observed: bool = False
    request_id: str = ""
    admit: Admit | None = None
    meanwhile: Meanwhile | None = None


class _Heard(NamedTuple):
    """What was judged: who asks, and either the answers to it or why there are none."""

    caller: Caller | None
    answers: Sequence[Answer]
    refusal: Exception | None = None


def decide(
    *,
    questions: Sequence[Question],
    token_digest: str,
    semantic: Semantic = Semantic.EXECUTE_ALL,
    observed: bool = False,
    request_id: str = "",
    admit: Admit | None = None,
    meanwhile: Meanwhile | None = None,
) -> list[Decided]:
    """Answer questions and record the answers, in their order; all of them at one instant, in one transaction.

    Those who ask at the same time share the transaction, and what one of them is refused for is no concern of the others. `admit` is
    asked before anything is judged, with the caller and the number of questions, and may raise. `meanwhile` is given the answers of a
    long batch before they are recorded: they are none until they are returned. Not wrapped as other services are: it is asked
    thousands of times a second, and its transaction is the one statement.

    Raises `TokenRefused`, `ScopeMissing`, `Unavailable`.
    """
    asking = Asking(questions, token_digest, semantic, observed, request_id, admit, meanwhile)
    if len(questions) > MOST_OF_ONE or connections[DEFAULT_DB_ALIAS].in_atomic_block:
        # What is done in somebody's transaction is done in hers, and by nobody else.
        return _decide_alone(asking)
    found = _gathering.do(asking)
    if isinstance(found, Exception):
        raise found
    return found


def _decide_alone(asking: Asking) -> list[Decided]:
    lost: Error | None = None
    for _ in range(ATTEMPTS):
        lost = None
        at = now()
        try:
            recorder = Recorder(at, meanwhile=asking.meanwhile)
            heard = _hear_alone(asking, at, recorder)
        except Error as error:
            # A connection that broke since it was last used, or none to be had: once more, on a new one.
            lost = error
            logger.warning("a question could not be read", exc_info=error)
            connections[DEFAULT_DB_ALIAS].close()
            continue
        if heard.refusal is not None:
            raise heard.refusal
        try:
            decided = recorder.record(heard.answers, held=True)
        except Error as error:
            if not _answers():
                # What was sent may have been recorded all the same, which is harmless.
                logger.warning("an answer could not be recorded at first", exc_info=error)
                lost = error
                connections[DEFAULT_DB_ALIAS].close()
            elif isinstance(error.__cause__, RACED):
                forget_bodies()
            else:
                return _unrecorded(heard.answers, at, error)
            continue
        if decided is not None:
            _note_use([heard], at)
            return decided
    if lost is not None:
        logger.error("no database to decide with: %s", type(lost.__cause__ or lost).__name__)
        raise Unavailable("the gate cannot reach its database, so the answer is no; ask again shortly") from lost
    return _moved(heard.answers, at)


def _decide_together(askings: Sequence[Asking]) -> list[list[Decided] | Exception | None]:
    """Answer several requests in one transaction: each gets its answers, why there are none, or None, to be answered alone."""
    at = now()
    with _common_connection() as common:
        try:
            heard = _hear(askings, at)
            answers = [answer for one in heard for answer in one.answers]
            decided = Recorder(at, patient=False).record(answers, held=True) if answers else []
        except Error as error:
            # Each tries for herself, and meets what is wrong with her own question alone.
            logger.warning("%s requests could not be answered at once", len(askings), exc_info=error)
            forget_bodies()
            common.close()
            return [None] * len(askings)
        if decided is not None:
            _note_use(heard, at)
    told = iter(decided or ())
    return [one.refusal or (None if decided is None else list(islice(told, len(one.answers)))) for one in heard]


_common: BaseDatabaseWrapper | None = None


@contextmanager
def _common_connection() -> Iterator[BaseDatabaseWrapper]:
    """Put one connection of the process in the place of the thread's own: whoever leads asks on it, and nobody else meanwhile.

    One server process keeps its plans and caches warm then, instead of one for each thread that may come to lead.
    """
    global _common  # noqa: PLW0603  (made when it is first needed, by the one who leads)
    if _common is None:
        _common = connections.create_connection(DEFAULT_DB_ALIAS)
        _common.inc_thread_sharing()
    own = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = _common
    try:
        yield _common
    finally:
        connections[DEFAULT_DB_ALIAS] = own


def close_common_connection() -> None:
    """Close the connection on which those who ask at once are answered; the next of them makes a new one."""
    if _common is not None:
        _common.close()


_gathering: Gathering[Asking, list[Decided] | Exception] = Gathering(
    together=_decide_together, alone=_decide_alone, most=MOST_ASKING, linger=LINGER_SECONDS
)


def check_caller(*, token_digest: str, admit: Admit | None = None) -> Caller:
    """Return who asks, where there is no question to answer. Raises as `decide` does."""
    for _ in range(ATTEMPTS):
        try:
            return read_admitted([_NOTHING], token_digest=token_digest, at=now(), admit=admit)[0]
        except Error as error:
            lost = error
            connections[DEFAULT_DB_ALIAS].close()
    raise Unavailable("the gate cannot reach its database; ask again shortly") from lost


def read_admitted(
    questions: Sequence[Question], *, token_digest: str, at: datetime, admit: Admit | None = None
) -> tuple[Caller, Sequence[Asked]]:
    """Return who asks, and one or more questions with their facts. Raises `TokenRefused`, `ScopeMissing`, and what `admit` raises."""
    (caller,), asked = read_asked(questions, token_digests=[token_digest], at=at)
    return _admitted(caller, len(questions), admit), asked


def _admitted(caller: Caller | None, questions: int, admit: Admit | None) -> Caller:
    if caller is None or not caller.live:
        raise TokenRefused("the token is unknown, expired or revoked")
    if not any(held == Scope.DECIDE or held.startswith(f"{Scope.DECIDE}:") for held in caller.scopes):
        raise ScopeMissing(f"the token lacks the scope `{Scope.DECIDE}`")
    if admit is not None:
        admit(caller, questions)
    return caller


def _hear(askings: Sequence[Asking], at: datetime) -> list[_Heard]:
    """Read and judge what is asked, by request; a request that is refused takes nothing from the others."""
    digests = list(dict.fromkeys(asking.token_digest for asking in askings))
    questions = [question for asking in askings for question in asking.questions]
    callers, asked = read_asked(questions, token_digests=digests, at=at)
    known = dict(zip(digests, callers, strict=True))
    left = iter(asked)
    return [_heard(asking, known[asking.token_digest], list(islice(left, len(asking.questions))), at) for asking in askings]


def _hear_alone(asking: Asking, at: datetime, recorder: Recorder) -> _Heard:
    """Read and judge what one asks, a long batch part by part: the next is looked up while one is judged and prepared."""
    if len(asking.questions) <= PART:
        return _hear([asking], at)[0]
    heard, answers = _Heard(None, ()), list[Answer]()
    with closing(read_asked_in_parts(asking.questions, token_digests=[asking.token_digest], at=at)) as parts:
        for (caller,), asked in parts:
            heard = _heard(asking, caller, asked, at)
            answers += heard.answers
            recorder.prepare(heard.answers)
            if heard.refusal is not None or _decides(answers[-1].judgement, asking.semantic):
                break
    return heard._replace(answers=answers)


def _heard(asking: Asking, caller: Caller | None, asked: Sequence[Asked], at: datetime) -> _Heard:
    try:
        caller = _admitted(caller, len(asking.questions), asking.admit)
    except Exception as refusal:
        return _Heard(caller, (), refusal)
    # Counted once, however often it is tried.
    asking.admit = None
    teller = teller_of(caller, observed=asking.observed, request_id=asking.request_id)
    return _Heard(caller, _judge_all(asked, caller, teller, asking.semantic, at))


def _judge_all(asked: Iterable[Asked], caller: Caller, teller: Teller, semantic: Semantic, at: datetime) -> list[Answer]:
    """Judge one after the other, up to the one that decides."""
    stamp = timestamp(at)
    answers: list[Answer] = []
    for item in asked:
        found = judge_asked(item, caller, at, stamp)
        answers.append(Answer.to(item, found, teller))
        if _decides(found, semantic):
            break
    return answers


def _decides(found: Judgement, semantic: Semantic) -> bool:
    """Tell whether nothing behind this answer is asked."""
    return semantic == (Semantic.PERMIT_ON_FIRST_PERMIT if found.allowed else Semantic.DENY_ON_FIRST_DENY)


def judge_asked(item: Asked, caller: Caller, at: datetime, stamp: str) -> Judgement:
    """Return what is answered to one question of a caller; never raises."""
    system = item.question.system
    if not caller.holds(Scope.DECIDE, system=system):
        # Nothing is said of what is there: the token is for another system.
        return Judgement(False, (Reason(Code.OUT_OF_SCOPE, {"system": system}),))
    try:
        return judge(item.facts, item.policies, at, stamp)
    except Exception:
        # Whatever it was, the answer is no; the record says so, and the log why.
        logger.exception("judging a question ended in an error")
        return Judgement(False, (Reason(Code.INTERNAL_ERROR, {}),))


def _moved(answers: Sequence[Answer], at: datetime) -> list[Decided]:
    """Refuse what would have been allowed: what it rests on moved each time it was looked at."""
    instead = [answer.replaced_by(Code.FACTS_MOVED) if answer.judgement.allowed else answer for answer in answers]
    try:
        return Recorder(at).record(instead, held=False) or []
    except Error as error:
        return _unrecorded(instead, at, error)


def _unrecorded(answers: Sequence[Answer], at: datetime, error: Error) -> list[Decided]:
    """Return denials of which there is no record, where the database answers; else raise `Unavailable`."""
    logger.error("decisions could not be recorded: %s", type(error.__cause__ or error).__name__, exc_info=error)
    if not _answers():
        connections[DEFAULT_DB_ALIAS].close()
        raise Unavailable("the gate cannot record an answer, so it is no; ask again shortly") from error
    return [
        Decided(answer.judgement.replaced_by(Code.CANNOT_RECORD), answer.asked.facts, at, None, None, b"") for answer in answers
    ]


def _note_use(heard: Iterable[_Heard], at: datetime) -> None:
    for caller in {one.caller for one in heard if one.caller is not None and one.refusal is None}:
        note_use(token_id=caller.id, unnoted=caller.unnoted, at=at)


def _answers() -> bool:
    """True where the database answers on the present connection."""
    try:
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return False
    return True
