"""Evaluation and evaluations: a question comes in, the recorded answer goes out."""

import logging
import math
import uuid
from collections.abc import Callable, Sequence
from functools import wraps
from time import perf_counter
from typing import Any, NamedTuple

from compliance.api.authentication import CHALLENGE
from compliance.api.authzen import limits
from compliance.api.authzen.answers import cannot_judge, decision_of, error_item
from compliance.api.authzen.approvals import tell_of_approvals
from compliance.api.authzen.callers import address_of, request_id_of, token_digest_of, why_unheard
from compliance.api.authzen.frame import Incoming, Outgoing, json_answer, text_answer
from compliance.api.authzen.reading import Asking, Members, Refused, read_many, read_object, read_one
from compliance.api.metrics import observe_decisions, observe_unavailable
from compliance.api.requests import REQUEST_ID_HEADER
from compliance.deciding.facts import Question
from compliance.selectors.deciding.read import Caller
from compliance.services.decisions import ScopeMissing, Semantic, TokenRefused, Unavailable, check_caller, decide
from compliance.services.recording import Decided

logger = logging.getLogger("compliance.authzen")


class Asker(NamedTuple):
    """Who asks, as far as the request tells: `admit` lets so many questions in, or raises `Refused`."""

    token_digest: str
    request_id: str

    def admit(self, caller: Caller, questions: int) -> None:
        """Count questions against the token's limit. Raises `Refused`."""
        _wait_for(limits.questions().take(self.token_digest, questions), "more questions than the gate takes of one token")


Door = Callable[[Asker, Members], Outgoing]


def door(answer: Door) -> Callable[[Incoming], Outgoing]:
    """Make a door of a function that answers a POST by a bearer token: no session, no cookie, no negotiation.

    Whatever goes wrong becomes one sentence of text and its status, and is never a permission.
    """

    @wraps(answer)
    def opened(incoming: Incoming) -> Outgoing:
        request_id = request_id_of(incoming.meta)
        status, content, headers = _answered(answer, incoming, request_id)
        return Outgoing(status, content, {**headers, REQUEST_ID_HEADER: request_id, "Cache-Control": "no-store"})

    return opened


@door
def evaluation(asker: Asker, body: Members) -> Outgoing:
    """`POST /access/v1/evaluation`."""
    return tell_of_approvals(asker.token_digest, body, _evaluate(asker, read_one(body)))


@door
def evaluations(asker: Asker, body: Members) -> Outgoing:
    """`POST /access/v1/evaluations`."""
    return tell_of_approvals(asker.token_digest, body, _evaluate(asker, read_many(body)))


def _evaluate(asker: Asker, asking: Asking) -> Outgoing:
    items = asking.items
    if asking.semantic is Semantic.DENY_ON_FIRST_DENY:
        # What is no question is denied: nothing behind it is asked.
        first = next((place for place, item in enumerate(items) if isinstance(item, str)), len(items))
        items = items[: first + 1]
    questions = [item for item in items if isinstance(item, Question)]
    if not questions:
        check_caller(token_digest=asker.token_digest, admit=asker.admit)
    told = _Told(asking)
    answers = _decide(asker, questions, asking, told) if questions else []
    if not asking.many:
        return json_answer(told.value_of(answers[0]))
    return json_answer({"evaluations": _in_order(items, answers, asking, told)})


class _Told:
    """Answers as they are told: those of a long batch are written before it is recorded, and told once it is."""

    def __init__(self, asking: Asking) -> None:
        self._observed = asking.observed
        self._written: dict[uuid.UUID | None, dict[str, Any]] = {}

    def write(self, answers: Sequence[Decided]) -> None:
        self._written.update((answer.uid, decision_of(answer, observed=self._observed)) for answer in answers)

    def value_of(self, answer: Decided) -> dict[str, Any]:
        return self._written.get(answer.uid) or decision_of(answer, observed=self._observed)


def _decide(asker: Asker, questions: list[Question], asking: Asking, told: _Told) -> list[Decided]:
    began = perf_counter()
    try:
        decided = decide(
            questions=questions,
            token_digest=asker.token_digest,
            semantic=asking.semantic,
            observed=asking.observed,
            request_id=asker.request_id,
            admit=asker.admit,
            meanwhile=told.write,
        )
    except Unavailable:
        observe_unavailable(len(questions))
        raise
    observe_decisions(decided, perf_counter() - began)
    return decided


def _in_order(items: list[Question | str], answers: list[Decided], asking: Asking, told: _Told) -> list[dict[str, Any]]:
    """Return an answer an item, up to the one that decides where the semantic ends there."""
    waiting = iter(answers)
    found: list[dict[str, Any]] = []
    for item in items:
        if isinstance(item, str):
            found.append(error_item(item))
            continue
        answer = next(waiting, None)
        if answer is None:
            break
        found.append(told.value_of(answer))
        if answer.judgement.allowed and asking.semantic is Semantic.PERMIT_ON_FIRST_PERMIT:
            break
    return found


# --- the frame


def _answered(answer: Door, incoming: Incoming, request_id: str) -> Outgoing:
    try:
        if incoming.method != "POST":
            raise Refused(405, "send the question by POST", {"Allow": "POST"})
        return _admitted(answer, incoming, request_id)
    except Refused as refusal:
        return text_answer(refusal.sentence, status=refusal.status, headers=refusal.headers)
    except ScopeMissing as refusal:
        return text_answer(refusal.detail, status=403)
    except Unavailable:
        return json_answer(cannot_judge(), status=503, headers={"Retry-After": "1"})
    except Exception:
        logger.exception("a question broke", extra={"request_id": request_id})
        return text_answer(f"something broke on our side; the log has it under request {request_id}", status=500)


def _admitted(answer: Door, incoming: Incoming, request_id: str) -> Outgoing:
    address, digest = address_of(incoming.meta), token_digest_of(incoming.meta)
    # A token that held a moment ago is heard whatever else comes from its address: many may share one.
    known = digest is not None and digest in limits.questions()
    if not known:
        _wait_for(limits.failures().wait(address), "too many requests from this address were refused")
    try:
        if digest is None:
            raise TokenRefused(why_unheard(incoming.meta))
        _wait_for(limits.questions().wait(digest), "more questions than the gate takes of one token")
        return answer(Asker(digest, request_id), read_object(incoming))
    except TokenRefused as refusal:
        limits.failures().take(address)
        if digest is not None:
            limits.questions().forget(digest)
        raise Refused(401, refusal.detail, {"WWW-Authenticate": CHALLENGE}) from None
    except (Refused, ScopeMissing) as refusal:
        if not known:
            limits.failures().take(address)
        elif digest is not None and isinstance(refusal, ScopeMissing):
            # It was let in at another door, and here nothing was taken of it.
            limits.questions().take(digest)
        raise


def _wait_for(seconds: float, why: str) -> None:
    if seconds > 0:
        raise Refused(429, f"{why}; ask again later", {"Retry-After": str(math.ceil(seconds))})
