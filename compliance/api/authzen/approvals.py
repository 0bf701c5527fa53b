"""What an answer says of an approval that came with its question, where it is no.

The draft profile "Access Request and Approval" of AuthZEN 1.0: after people have signed, the question is asked again with the
approval at `context.approval`. It changes nothing of the judgement, which is on the facts of the moment as ever; so an allow is not
looked at here. A denial says in `reason` what became of the approval, and `next_action` says what to do, as of any denial.
"""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db import DEFAULT_DB_ALIAS, Error, connections

from compliance.api.authzen.frame import Outgoing
from compliance.api.authzen.reading import Members
from compliance.api.sighted import systems_of
from compliance.deciding.next_steps import NextAction
from compliance.models import Grant
from compliance.selectors.access import find_live_token
from compliance.selectors.access_tasks import Presented, find_approved, word_for_approval
from compliance.selectors.sight import Sight, sight_of
from compliance.vocabulary import Scope
from evaluations.kernel.clock import now

_DENIED = b'"decision":false'

logger = logging.getLogger("compliance.authzen")


def tell_of_approvals(token_digest: str, body: Members, answer: Outgoing) -> Outgoing:
    """Return the answer to a body with what became of the approvals in it, item by item."""
    if ("context" not in body and "evaluations" not in body) or _DENIED not in answer.content or not _presents(body):
        return answer
    at = now()
    try:
        sight = _sight(token_digest, at)
        if sight is not None:
            return answer._replace(content=_told(sight, body, orjson.loads(answer.content), at))
    except Error:
        # The denial is on record and stays one; what is lost is a word about the approval.
        logger.warning("an approval could not be looked up", exc_info=True)
        # The short way starts no handler of Django's, which would look after the connection.
        connections[DEFAULT_DB_ALIAS].close()
    return answer


def _presents(body: Members) -> bool:
    if _approval_in(body) is not None:
        return True
    items = body.get("evaluations")
    return isinstance(items, list) and any(_approval_in(item) is not None for item in items)


def _has_context(item: Any) -> bool:
    return isinstance(item, dict) and "context" in item


def _approval_in(item: Any) -> Any:
    context = item.get("context") if isinstance(item, dict) else None
    return context.get("approval") if isinstance(context, dict) else None


def _sight(token_digest: str, at: datetime) -> Sight | None:
    token = find_live_token(token_digest=token_digest, at=at)
    return None if token is None else sight_of(token.person_id, at=at, systems=systems_of(token, Scope.DECIDE))


def _told(sight: Sight, body: Members, value: dict[str, Any], at: datetime) -> bytes:
    answers = value.get("evaluations")
    # A context inside an item takes the place of the one beside the list; a batch may end before its last item.
    items = [body] if answers is None else [item if _has_context(item) else body for item in body["evaluations"]]
    presented = [
        (approval, answer["context"])
        for item, answer in zip(items, [value] if answers is None else answers, strict=False)
        if (approval := _approval_in(item)) is not None and not answer["decision"] and "error" not in answer["context"]
    ]
    approved = find_approved(sight, [approval for approval, _ in presented])
    for approval, context in presented:
        _tell(approved, approval, context, at)
    return orjson.dumps(value)


def _tell(approved: Mapping[UUID, Grant], approval: Any, context: dict[str, Any], at: datetime) -> None:
    waits = context["next_action"] == NextAction.RETRY
    word = word_for_approval(approved, approval, _asked(context), waits=waits, at=at)
    if word:
        context["reason"] = word


def _asked(context: Mapping[str, Any]) -> Presented | None:
    subject = context.get("subject")
    return None if subject is None else Presented(subject["key"], subject["version"], context["action"], context["system"])
