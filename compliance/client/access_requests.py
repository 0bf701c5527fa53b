"""Access requests: what the gate denied is asked of people, and waited for. `Gate` is the way to them for programs.

The draft profile "Access Request and Approval" of AuthZEN 1.0. A token goes to the service that was named, whatever address a denial
holds. Nothing here allows anything: once people have signed, the gate is asked again.
"""

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from compliance.client.answers import Answer
from compliance.client.http import RETRIES, TIMEOUT_SECONDS, NoAnswer, Reply, Server
from compliance.client.outcome import plain

PATH = "/access/v1/requests"
PENDING, APPROVED = "pending", "approved"
POLL_SECONDS, MOST_POLL_SECONDS = 5.0, 60.0
"""How long to wait between two looks at a task: at first, and in the end. The service may ask for longer."""
MAX_SHOWN_ROLES = 20


class RequestRefused(Exception):
    """The service files no request, or tells nothing of a task: its code, and the sentence that says why. `reply` is what it sent."""

    def __init__(self, reply: Reply) -> None:
        problem = reply.value if isinstance(reply.value, dict) else {}
        self.reply = reply
        self.code = plain(problem.get("code") or "refused")
        super().__init__(plain(problem.get("detail") or f"the service answered with status {reply.status}"))


@dataclass(frozen=True, slots=True)
class Task:
    """A request and where it stands: `pending`, or how it ended. Nothing but `approved` with an `approval` is a yes of people.

    `signed` of `needed` signatures are there, `awaiting` are the roles of the others. `page` is where people look at it.
    """

    id: str
    status: str
    signed: int = 0
    needed: int = 0
    awaiting: tuple[str, ...] = ()
    approval: Mapping[str, Any] | None = None
    expires_at: str = ""
    page: str = ""
    wait_seconds: float = POLL_SECONDS

    @property
    def is_approved(self) -> bool:
        return self.status == APPROVED and self.approval is not None

    @property
    def is_pending(self) -> bool:
        return self.status == PENDING


def denied_value(
    answer: Answer, *, justification: str = "", until: datetime | None = None, emergency: bool = False
) -> dict[str, Any]:
    """Return what asks for what an answer denied. Raises `ValueError` for one that says nothing of a request."""
    if answer.requestable_until is None:
        raise ValueError(f"no request would change this answer: {answer.reason or 'it allows'}")
    value = replace(answer.question, observe=False, approval=None).as_value()
    value["denial"] = {"evaluation_id": answer.evaluation_id, "expires_at": answer.requestable_until.isoformat()}
    if justification:
        value["context"] = {"business_justification": justification}
    wanted: dict[str, Any] = {}
    if until is not None:
        wanted["requested_until"] = until.astimezone(UTC).isoformat()
    if emergency:
        wanted["emergency"] = True
    return {**value, "requested_access": wanted} if wanted else value


def file_request(server: Server, value: Mapping[str, Any], *, timeout: float = TIMEOUT_SECONDS, retries: int = RETRIES) -> Task:
    """File what `denied_value` gives, and return its task; sent again it is the same one, and so is one that was there before.

    Raises `RequestRefused`, `NoAnswer`.
    """
    content = json.dumps(value, sort_keys=True).encode()
    headers = {"Idempotency-Key": f"denial-{sha256(content).hexdigest()}"}
    reply = server.send("POST", PATH, content, headers=headers, timeout=timeout, retries=retries)
    if reply.status in (201, 202):
        return _task(reply)
    there = reply.value.get("task") if reply.status == 409 and isinstance(reply.value, dict) else None
    if isinstance(there, dict) and _is_uuid(there.get("id")):
        return read_task(server, there["id"], timeout=timeout, retries=retries)
    raise _refusal(reply)


def read_task(server: Server, uid: str, *, timeout: float = TIMEOUT_SECONDS, retries: int = RETRIES) -> Task:
    """Return where a task stands. Raises `RequestRefused`, `NoAnswer`."""
    reply = server.send("GET", f"{PATH}/{uid}", timeout=timeout, retries=retries)
    if reply.status != 200:
        raise _refusal(reply)
    return _task(reply)


def wait_for(
    server: Server,
    task: Task,
    *,
    seconds: float,
    timeout: float = TIMEOUT_SECONDS,
    retries: int = RETRIES,
    tell: Callable[[Task], object] = lambda _: None,
    sleep: Callable[[float], object] = time.sleep,
) -> Task:
    """Return a task once it has ended, or as it stands after so many seconds; `tell` is called whenever it has moved.

    That the service does not answer for a while is waited out as well. Raises `RequestRefused`.
    """
    until, pause = time.monotonic() + seconds, POLL_SECONDS
    while task.is_pending and (left := until - time.monotonic()) > 0:
        sleep(min(left, max(task.wait_seconds, random.uniform(pause / 2, pause))))  # noqa: S311 - no secret
        pause = min(2 * pause, MOST_POLL_SECONDS)
        try:
            seen = read_task(server, task.id, timeout=timeout, retries=retries)
        except NoAnswer:
            continue
        if (seen.status, seen.signed) != (task.status, task.signed):
            tell(seen)
        task = seen
    return task


def _task(reply: Reply) -> Task:
    """Return the task of a reply. Raises `NoAnswer` for a reply that holds none."""
    whole: Any = reply.value
    try:
        task, result = whole["task"], whole.get("result")
        uid, status = str(UUID(task["id"])), task["status"]
        progress, links = task.get("progress") or {}, task.get("links") or {}
        step, needed = int(progress.get("current_step", 0)), int(progress.get("total_steps", 0))
        awaiting = tuple(plain(role) for role in list(progress.get("awaiting") or [])[:MAX_SHOWN_ROLES])
        approval = result["approval"] if result is not None and result["mode"] == "reevaluate" else None
        if not isinstance(status, str) or not (approval is None or isinstance(approval, dict)):
            raise TypeError
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NoAnswer("the answer tells of no task: is this a Writegate service?", again=False) from error
    pause = reply.headers.get("retry-after", "")
    return Task(
        uid,
        plain(status),
        max(step - 1, 0),
        needed,
        awaiting,
        approval,
        plain(task.get("expires_at") or ""),
        plain(links.get("ticket") or ""),
        float(pause) if pause.isascii() and pause.isdigit() and len(pause) < 5 else POLL_SECONDS,
    )


def _refusal(reply: Reply) -> Exception:
    if reply.is_trouble:
        return NoAnswer(f"the service answered with status {reply.status}")
    return RequestRefused(reply)


def _is_uuid(text: Any) -> bool:
    try:
        return isinstance(text, str) and str(UUID(text)) == text
    except ValueError:
        return False
