"""`writegate request`: ask for write access. People sign it; this only files the question."""

import argparse
import json
import re
import uuid
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TextIO
from uuid import UUID

from compliance.client.http import AddressRefused, NoAnswer, Reply
from compliance.client.options import server_of
from compliance.client.outcome import COULD_NOT, DONE, REFUSED, Refused, explain, plain

PATH = "/api/v1/requests"

_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)


def run_request(given: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """File an access request; returns the exit code."""
    try:
        body = {
            "kind": "grant",
            "subject": given.subject,
            "systems": given.system,
            "actions": given.action or ["write"],
            "ends_at": read_end(given.until),
            "reason": given.reason,
        }
        server = server_of(given)
    except (Refused, AddressRefused) as refused:
        print(f"refused: {refused}", file=err)
        return REFUSED
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
    return _accept(reply, server.url, out, err)


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
        print(f"  to be signed until {plain(expires)}", file=out)
    return DONE
