"""What a denial says of the way on: ask people, ask again, or neither; and where people can sign, until when to ask them and where."""

from typing import Any
from uuid import UUID

from django.conf import settings

from compliance.deciding.next_steps import NextAction, Step, next_step
from compliance.services.access_requests import requestable_until
from compliance.services.recording import Decided
from evaluations.kernel.canonical import timestamp

REQUESTS = "/access/v1/requests"
TEMPLATE = "grant"
DISPLAY = {
    "title": "Ask for a grant",
    "description": "People sign it, and until they have the answer stays no. Say why it is needed in `context.business_justification`.",
}


def next_of(answer: Decided) -> dict[str, Any]:
    """Return what a denial's context says of the way on. Bound by reference: `evaluation_id` is what a request names it by."""
    step = next_step(answer.judgement.reasons, answer.facts, answer.at)
    told = step_value(step)
    if step.action is not NextAction.REQUEST or answer.uid is None:
        return told
    asking: dict[str, Any] = {"expires_at": timestamp(requestable_until(answer.at))}
    if settings.PUBLIC_URL:
        asking["endpoint"] = f"{settings.PUBLIC_URL}{REQUESTS}"
    return {**told, "access_request": {**asking, "template": TEMPLATE, "display": DISPLAY}}


def step_value(step: Step) -> dict[str, Any]:
    """Return a step as a context holds it: without `retry_after` where there is nothing to wait for."""
    value: dict[str, Any] = {"next_action": step.action.value}
    return value if step.retry_after is None else {**value, "retry_after": step.retry_after}


def task_address(uid: UUID) -> str:
    """Return where a task is looked at."""
    return f"{settings.PUBLIC_URL or settings.NOTICE_ORIGIN}{REQUESTS}/{uid}"
