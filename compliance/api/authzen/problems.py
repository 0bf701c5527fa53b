"""Refusals of access requests as problem details (RFC 9457), with the types of AuthZEN's draft profile where it names one.

Members are those of every problem of ours; a request that is there already is named by its `task`.
"""

import logging
from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, Error, connections

from compliance.api.authzen.denials import task_address
from compliance.api.authzen.frame import Outgoing, json_answer
from compliance.api.authzen.reading import Misshapen, Refused
from compliance.api.errors import PROBLEM_TYPE, STATUS, problem_value
from evaluations.kernel.errors import DomainError, InputRefused, Problem

TYPE_PREFIX = "urn:openid:authzen:access-request:error:"
STATUSES: Mapping[str, int] = {
    "not_requestable": 400,
    "expired_denial": 410,
    "invalid_denial_binding": 400,
    "duplicate_request": 409,
    "unknown_task": 404,
    "task_expired": 410,
    "invalid_task_state": 409,
}
"""The profile's words for refusals, with the status of each."""
_SAME_MEANT = {
    "idempotency_key_reused": "duplicate_request",
    "request_closed": "invalid_task_state",
    "request_expired": "invalid_task_state",
}
_BY_STATUS = {400: "invalid", 413: "too_large"}

logger = logging.getLogger("compliance.authzen")


class Refusal(Exception):
    """A request is refused: status, code, one sentence, headers."""

    def __init__(self, status: int, code: str, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.code, self.sentence, self.headers = status, code, sentence, dict(headers or {})


class UnknownTask(Refusal):
    """There is no such task, or none that the caller sees."""

    def __init__(self) -> None:
        super().__init__(404, "unknown_task", "there is no task of yours under this id")


def problem_of(error: Exception, request_id: str) -> Outgoing:
    """Return the problem that an exception is. What nobody foresaw is logged, and nothing of it is shown."""
    if isinstance(error, Refusal):
        return _problem(request_id, error.status, error.code, error.sentence, headers=error.headers)
    if isinstance(error, Refused):
        return _problem(request_id, error.status, _BY_STATUS.get(error.status, "refused"), error.sentence, headers=error.headers)
    if isinstance(error, Misshapen):
        return _problem(request_id, 400, "invalid", str(error))
    if isinstance(error, InputRefused):
        return _problem(request_id, STATUS[error.kind], error.code, error.detail, error.problems)
    if isinstance(error, DomainError):
        code = _SAME_MEANT.get(error.code, error.code)
        waiting = error.facts.get("task")
        return _problem(
            request_id,
            STATUSES.get(code, STATUS[error.kind]),
            code,
            error.detail,
            task=waiting if isinstance(waiting, UUID) else None,
        )
    if isinstance(error, Error):
        logger.error("an access request could not be answered", exc_info=error, extra={"request_id": request_id})
        connections[DEFAULT_DB_ALIAS].close()
        return _problem(
            request_id, 503, "database_unavailable", "the database does not answer; try again", headers={"Retry-After": "1"}
        )
    logger.error("an access request broke", exc_info=error, extra={"request_id": request_id})
    return _problem(request_id, 500, "internal_error", f"something broke on our side; the log has it under request {request_id}")


def _problem(
    request_id: str,
    status: int,
    code: str,
    detail: str,
    problems: Sequence[Problem] = (),
    *,
    headers: Mapping[str, str] | None = None,
    task: UUID | None = None,
) -> Outgoing:
    value = problem_value(request_id, status, code, detail, problems)
    if code in STATUSES:
        value["type"] = f"{TYPE_PREFIX}{code}"
    if task is not None:
        value["task"] = {"id": str(task), "status_endpoint": task_address(task)}
    return json_answer(value, status=status, headers={**(headers or {}), "Content-Type": PROBLEM_TYPE})
