"""`decide`: the answer to a question, on record before it leaves. Two statements: read with row versions; lock, compare, insert.

There is no cache but of what never changes. Whatever goes wrong is a denial: one that is recorded where it can be, that says
`cannot_record` where the database answers and takes nothing, and `Unavailable` where there is none to ask.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from enum import StrEnum

from django.db import DEFAULT_DB_ALIAS, Error, connections
from psycopg import errors

from compliance.deciding.codes import Code, Reason
from compliance.deciding.facts import Question
from compliance.deciding.judge import Judgement, judge
from compliance.selectors.deciding.conformance import read_asked
from compliance.selectors.deciding.read import Asked, Caller
from compliance.services.recording import Decided, Recorder, forget_bodies
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


_NOTHING = Question(subject_type="", subject="", action="", system="")
Judged = tuple[Asked, Judgement]
Admit = Callable[[Caller, int], None]


def decide(
    *,
    questions: Sequence[Question],
    token_digest: str,
    semantic: Semantic = Semantic.EXECUTE_ALL,
    observed: bool = False,
    request_id: str = "",
    admit: Admit | None = None,
) -> list[Decided]:
    """Answer questions and record the answers, in their order; all of them at one instant, in one transaction.

    `admit` is asked before anything is judged, with the caller and the number of questions, and may raise. Not wrapped as other
    services are: it is asked thousands of times a second, and its transaction is the one statement. Raises `TokenRefused`,
    `ScopeMissing`, `Unavailable`.
    """
    lost: Error | None = None
    for _ in range(ATTEMPTS):
        lost = None
        at = now()
        try:
            caller, asked = read_admitted(questions, token_digest=token_digest, at=at, admit=admit)
            judged = _judge_all(asked, caller, semantic, at)
            recorder = Recorder(caller, observed=observed, request_id=request_id, at=at)
        except Error as error:
            # A connection that broke since it was last used, or none to be had: once more, on a new one.
            lost = error
            logger.warning("a question could not be read", exc_info=error)
            connections[DEFAULT_DB_ALIAS].close()
            continue
        try:
            answers = recorder.record(judged, held=True)
        except Error as error:
            if not _answers():
                # What was sent may have been recorded all the same, which is harmless.
                logger.warning("an answer could not be recorded at first", exc_info=error)
                lost = error
                connections[DEFAULT_DB_ALIAS].close()
            elif isinstance(error.__cause__, RACED):
                forget_bodies()
            else:
                return _unrecorded(judged, at, error)
            continue
        if answers is not None:
            note_use(token_id=caller.id, unnoted=caller.unnoted, at=at)
            return answers
    if lost is not None:
        logger.error("no database to decide with: %s", type(lost.__cause__ or lost).__name__)
        raise Unavailable("the gate cannot reach its database, so the answer is no; ask again shortly") from lost
    return _moved(judged, recorder, at)


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
    caller, asked = read_asked(questions, token_digest=token_digest, at=at)
    if caller is None or not caller.live:
        raise TokenRefused("the token is unknown, expired or revoked")
    if not any(held == Scope.DECIDE or held.startswith(f"{Scope.DECIDE}:") for held in caller.scopes):
        raise ScopeMissing(f"the token lacks the scope `{Scope.DECIDE}`")
    if admit is not None:
        admit(caller, len(questions))
    return caller, asked


def _judge_all(asked: Iterable[Asked], caller: Caller, semantic: Semantic, at: datetime) -> list[Judged]:
    """Judge one after the other, up to the one that decides."""
    stamp = timestamp(at)
    judged: list[Judged] = []
    for item in asked:
        found = judge_asked(item, caller, at, stamp)
        judged.append((item, found))
        if semantic == (Semantic.PERMIT_ON_FIRST_PERMIT if found.allowed else Semantic.DENY_ON_FIRST_DENY):
            break
    return judged


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


def _moved(judged: Sequence[Judged], recorder: Recorder, at: datetime) -> list[Decided]:
    """Refuse what would have been allowed: what it rests on moved each time it was looked at."""
    instead = [(item, found.replaced_by(Code.FACTS_MOVED) if found.allowed else found) for item, found in judged]
    try:
        return recorder.record(instead, held=False) or []
    except Error as error:
        return _unrecorded(instead, at, error)


def _unrecorded(judged: Sequence[Judged], at: datetime, error: Error) -> list[Decided]:
    """Return denials of which there is no record, where the database answers; else raise `Unavailable`."""
    logger.error("decisions could not be recorded: %s", type(error.__cause__ or error).__name__, exc_info=error)
    if not _answers():
        connections[DEFAULT_DB_ALIAS].close()
        raise Unavailable("the gate cannot record an answer, so it is no; ask again shortly") from error
    return [Decided(found.replaced_by(Code.CANNOT_RECORD), item.facts, at, None, None, b"") for item, found in judged]


def _answers() -> bool:
    """True where the database answers on the present connection."""
    try:
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return False
    return True
