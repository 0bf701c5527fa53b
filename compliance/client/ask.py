"""`writegate request`: ask for write access, or for what the gate denied. People sign it; this files the question, and may wait."""

import argparse
import json
import re
import sys
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

from compliance.client.access_requests import RequestRefused, Task, file_request, read_task, wait_for
from compliance.client.http import AddressRefused, NoAnswer, Reply, Server, parse_json
from compliance.client.options import server_of
from compliance.client.outcome import COULD_NOT, DONE, REFUSED, Refused, explain, plain, whole_seconds

PATH = "/api/v1/requests"
MAX_DENIAL_BYTES = 1024 * 1024

_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)


def run_request(given: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """File an access request, and wait for its signatures where that is asked for; returns the exit code."""
    try:
        value = _of_denial(given) if given.denial is not None else _of_arguments(given)
        server = server_of(given)
    except (Refused, AddressRefused) as refused:
        print(f"refused: {refused}", file=err)
        return REFUSED
    if given.denial is None:
        return _file(given, server, value, out, err)

    def file() -> Task:
        return file_request(server, value, timeout=given.timeout, retries=given.retries)

    return _ended(given, file_and_wait(given, server, file, err), out)


def _of_arguments(given: argparse.Namespace) -> dict[str, Any]:
    missing = [name for name in ("subject", "system", "until") if not getattr(given, name)]
    if missing:
        raise Refused(f"say --{' and --'.join(missing)}, or give what `check --json` printed as --denial")
    if given.emergency:
        raise Refused("--emergency is said of a denial: give --denial")
    return {
        "kind": "grant",
        "subject": given.subject,
        "systems": given.system,
        "actions": given.action or ["write"],
        "ends_at": read_end(given.until),
        "reason": given.reason,
    }


def _of_denial(given: argparse.Namespace) -> dict[str, Any]:
    """Return the request about the denial that `check --json` printed. Raises `Refused`."""
    said = [name for name in ("subject", "system", "action") if getattr(given, name)]
    if said:
        raise Refused(f"leave out --{' and --'.join(said)}: the denial says what was asked")
    where = "standard input" if str(given.denial) == "-" else str(given.denial)
    try:
        content = sys.stdin.buffer.read(MAX_DENIAL_BYTES) if str(given.denial) == "-" else _read(given.denial)
        told = parse_json(content)
    except (OSError, ValueError) as error:
        raise Refused(f"no answer can be read from {where}") from error
    asked = told.get("access_request") if isinstance(told, dict) else None
    if not isinstance(asked, dict):
        raise Refused(f"what {where} holds is no denial that a request would change; see its `next_action`")
    wanted: dict[str, Any] = {"emergency": True} if given.emergency else {}
    if given.until:
        wanted["requested_until"] = read_end(given.until)
    value = {**asked, "context": {"business_justification": given.reason}}
    return {**value, "requested_access": wanted} if wanted else value


def _read(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(MAX_DENIAL_BYTES)


def _file(given: argparse.Namespace, server: Server, body: dict[str, Any], out: TextIO, err: TextIO) -> int:
    content = json.dumps([body, given.run_id or uuid.uuid4().hex], sort_keys=True).encode()
    headers = {"Idempotency-Key": f"request-{sha256(content).hexdigest()}"}
    sent = json.dumps(body).encode()
    try:
        reply = server.send("POST", PATH, sent, headers=headers, timeout=given.timeout, retries=given.retries)
    except NoAnswer as failure:
        print(f"could not file the request: {failure}", file=err)
        return COULD_NOT
    if reply.status != 201:
        return explain(reply, err, what="file the request")
    code = _accept(reply, server.url, out, err)
    if code != DONE or given.wait is None:
        return code
    uid: str = reply.value["uid"]

    def look() -> Task:
        return read_task(server, uid, timeout=given.timeout, retries=given.retries)

    return _ended(given, file_and_wait(given, server, look, err), out)


def file_and_wait(given: argparse.Namespace, server: Server, file: Callable[[], Task], err: TextIO) -> Task | int:
    """File a request and wait for it as the arguments say, telling where it stands; an exit code where it is not filed or followed."""
    try:
        task = file()
        _tell(task, err)
        if given.wait is None:
            return task
        return wait_for(
            server,
            task,
            seconds=given.wait,
            timeout=given.timeout,
            retries=given.retries,
            tell=lambda moved: _tell(moved, err),
        )
    except RequestRefused as refusal:
        return explain(refusal.reply, err, what="file the request")
    except NoAnswer as failure:
        print(f"could not file the request: {failure}", file=err)
        return COULD_NOT


def _tell(task: Task, err: TextIO) -> None:
    signed = f", {task.signed} of {task.needed} signatures" if task.needed else ""
    waits = f", waits for {' and '.join(task.awaiting)}" if task.awaiting else ""
    print(f"request {task.id} is {task.status}{signed}{waits}", file=err)
    if task.is_pending and task.page:
        print(f"  {task.page}", file=err)


def _ended(given: argparse.Namespace, task: Task | int, out: TextIO) -> int:
    """Return what a request that was filed or waited for ends with."""
    if isinstance(task, int):
        return task
    print(task.id, file=out)
    if task.is_approved or (task.is_pending and given.wait is None):
        return DONE
    return COULD_NOT if task.is_pending else REFUSED


def read_end(text: str) -> str:
    """Return an end as the service takes it; a date alone is its first instant in UTC. Raises `Refused`."""
    try:
        if _DAY.match(text):
            return f"{datetime.strptime(text, '%Y-%m-%d').replace(tzinfo=UTC):%Y-%m-%dT%H:%M:%SZ}"
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError) as error:
        raise Refused(f"`{text}` is no time: write 2026-12-31, or 2026-12-31T18:00:00Z") from error
    raise Refused(f"`{text}` has no offset from UTC: add Z or +01:00")


def _accept(reply: Reply, url: str, out: TextIO, err: TextIO) -> int:
    made: Any = reply.value
    try:
        uid, status = UUID(made["uid"]), plain(made["status"])
    except (KeyError, TypeError, ValueError, AttributeError):
        print("could not file the request: the answer is none of a Writegate service", file=err)
        return COULD_NOT
    print(f"request {uid} is {status}", file=out)
    print(f"  {url}{PATH}/{uid}", file=out)
    expires = made.get("expires_at")
    if isinstance(expires, str):
        print(f"  to be signed until {whole_seconds(expires)}", file=out)
    return DONE
