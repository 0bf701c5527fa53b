"""What a gate may answer: right, or in one of the many ways that must never be taken for an allow.

`ODD` names every way; each is a function that writes to the wire what it is named for.
"""

import base64
import json
import struct
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

DIGEST = "sha256:" + "a" * 64
SLOW_SECONDS = 20.0


@dataclass
class Asked:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)


Reply = Callable[[BaseHTTPRequestHandler, Asked], None]


def allow(question: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """The decision that allows a question, as the service gives it; `changes` go into its context, None takes a member out."""
    name = question["subject"]["id"]
    key, _, number = name.rpartition("@") if name.rpartition("@")[2].isdigit() else (name, "", "")
    claimed = question["subject"].get("properties", {}).get("fingerprint", DIGEST)
    at = datetime.now(UTC)
    context = {
        "evaluation_id": str(uuid.uuid4()),
        "evaluated_at": at.isoformat(),
        "reasons": [],
        "subject": {"key": key, "version": int(number or 1), "digest": claimed},
        "system": question["resource"]["id"],
        "action": question["action"]["name"],
        "policies": [],
        "grants": [str(uuid.uuid4())],
        "evidence": [],
        "waived": [],
        "valid_until": (at + timedelta(minutes=5)).isoformat(),
        "entry": {"id": str(uuid.uuid4()), "leaf_hash": base64.b64encode(sha256(b"entry").digest()).decode()},
    }
    context |= changes
    return {"decision": True, "context": {name: value for name, value in context.items() if value is not None}}


def deny(question: Mapping[str, Any], *codes: str) -> dict[str, Any]:
    """The decision that denies a question, for the reasons with these codes."""
    reasons = [{"code": code, "message": f"because of {code}", "detail": {}} for code in codes]
    made = allow(question, reasons=reasons, reason=codes[0], valid_until=None, grants=[])
    return {**made, "decision": False}


def send(
    handler: BaseHTTPRequestHandler,
    status: int,
    content: bytes = b"",
    *,
    kind: str | None = "application/json",
    length: int | str | None = None,
    **headers: str,
) -> None:
    """Write one answer; `length` stands in place of the true length."""
    handler.send_response(status)
    if kind is not None:
        handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    for name, text in headers.items():
        handler.send_header(name.replace("_", "-"), text)
    handler.end_headers()
    handler.wfile.write(content)


def answering(make: Callable[[Mapping[str, Any]], Any], *, status: int = 200, echo: bool = True, **options: Any) -> Reply:
    """A reply that is a value made of the question, or the bytes it made."""

    def give(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
        made = make(asked.value)
        headers = {"X_Request_ID": asked.headers["x-request-id"]} if echo and "x-request-id" in asked.headers else {}
        send(handler, status, made if isinstance(made, bytes) else json.dumps(made).encode(), **(headers | options))

    return give


def plainly(status: int, content: bytes = b"", **options: Any) -> Reply:
    """A reply that takes no notice of the question."""
    return lambda handler, asked: send(handler, status, content, **options)


right = answering(allow)
wrong = answering(lambda question: deny(question, "no_grant"))


def changed(**changes: Any) -> Reply:
    """An allow whose context was changed."""
    return answering(lambda question: allow(question, **changes))


def deciding(value: Any) -> Reply:
    """An allow whose `decision` is another value."""
    return answering(lambda question: {**allow(question), "decision": value})


def text_of(question: Mapping[str, Any]) -> bytes:
    return json.dumps(allow(question)).encode()


def cut(after: int, *, chunked: bool = False) -> Reply:
    """An allow of which so many bytes come (less, where negative), before the connection ends."""

    def give(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
        content = text_of(asked.value)
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding" if chunked else "Content-Length", "chunked" if chunked else str(len(content)))
        handler.end_headers()
        part = content[:after]
        handler.wfile.write(f"{len(content):x}\r\n".encode() + part if chunked else part)

    return give


def chunked_without_end(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    """Every byte of the allow in one chunk, and then nothing where the last chunk belongs."""
    content = text_of(asked.value)
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")


def lasting(seconds: float) -> Reply:
    """An allow that comes after so long."""

    def give(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
        time.sleep(seconds)
        right(handler, asked)

    return give


def dripping(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    """An allow that begins at once, and whose head comes byte by byte."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(int(SLOW_SECONDS / 0.05)):
        handler.wfile.write(b"a")
        time.sleep(0.05)


def dripping_body(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    """The same of the body."""
    content = b" " * 100_000 + text_of(asked.value)
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    for place in range(int(SLOW_SECONDS / 0.05)):
        handler.wfile.write(content[place : place + 1])
        time.sleep(0.05)


def hanging_up(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    """Nothing, and the end of the connection."""


def resetting(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    """A connection that breaks."""
    handler.connection.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def doubled(handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    """An allow with two lengths."""
    content = text_of(asked.value)
    send(handler, 200, content, Content_Length=str(len(content) + 1))


def in_another_encoding(name: str) -> Reply:
    return answering(lambda question: json.dumps(allow(question)).encode(name))


def _past(seconds: float = 1) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()


_UNTIL = "2099-01-01T00:00:00Z"
_ENTRY = {"id": str(uuid.uuid4()), "leaf_hash": base64.b64encode(bytes(32)).decode()}
_SUBJECT = {"key": "hr-agent", "version": 1, "digest": DIGEST}
_TEXT = "text/plain; charset=utf-8"

# Each is asked whether `hr-agent` may write at `hr-prod`, with the fingerprint DIGEST.
ODD: Mapping[str, Reply] = {
    "deny": wrong,
    "deny without a context": answering(lambda _: {"decision": False}),
    "cut after 20 bytes": cut(20),
    "cut before the last byte": cut(-1),
    "cut before the first byte": cut(0),
    "chunked and cut": cut(20, chunked=True),
    "chunked without an end": chunked_without_end,
    "a length too short": answering(allow, length=40),
    "a length too long": answering(allow, length=9_999),
    "a length that is no number": answering(allow, length="many"),
    "a negative length": answering(allow, length=-1),
    "two lengths": doubled,
    "hanging up": hanging_up,
    "resetting": resetting,
    "redirect 301": plainly(301, b"", Location="http://127.0.0.1:1/"),
    "redirect 307": plainly(307, b"", Location="http://127.0.0.1:1/"),
    "redirect with an allow": answering(allow, status=302, Location="http://127.0.0.1:1/"),
    "201 with an allow": answering(allow, status=201),
    "202 with an allow": answering(allow, status=202),
    "203 with an allow": answering(allow, status=203),
    "206 with an allow": answering(allow, status=206),
    "204": plainly(204),
    "400": plainly(400, b"the subject is missing", kind=_TEXT),
    "401": plainly(401, b"who are you", kind=_TEXT),
    "403 with an allow": answering(allow, status=403),
    "404": plainly(404, b"<h1>Not found</h1>", kind="text/html"),
    "429": plainly(429, b"slower", kind=_TEXT, Retry_After="9999"),
    "500": plainly(500, b"it broke", kind=_TEXT),
    "500 with an allow": answering(allow, status=500),
    "502 of a proxy": plainly(502, b"<html>Bad gateway</html>", kind="text/html"),
    "503 that denies": plainly(503, b'{"decision": false, "context": {"reason": "cannot_judge"}}'),
    "503 with an allow": answering(allow, status=503),
    "empty": plainly(200),
    "white space": plainly(200, b" \r\n"),
    "a page": plainly(200, b"<!doctype html><title>Sign in</title>", kind="text/html"),
    "a page called JSON": plainly(200, b"<!doctype html><title>Sign in</title>"),
    "an allow called a page": answering(allow, kind="text/html"),
    "an allow called text": answering(allow, kind=_TEXT),
    "an allow of no type": answering(allow, kind=None),
    "an allow as a problem": answering(allow, kind="application/problem+json"),
    "no JSON": plainly(200, b"{'decision': True}"),
    "true": plainly(200, b"true"),
    "a list": answering(lambda question: [allow(question)]),
    "nothing in it": plainly(200, b"{}"),
    "a lone decision": plainly(200, b'{"decision": true}'),
    "two documents": answering(lambda question: text_of(question) * 2),
    "rubbish after it": answering(lambda question: text_of(question) + b"x"),
    "a byte order mark": answering(lambda question: b"\xef\xbb\xbf" + text_of(question)),
    "UTF-16": in_another_encoding("utf-16"),
    "UTF-32": in_another_encoding("utf-32"),
    "no UTF-8": answering(lambda question: text_of(question)[:-1] + b', "x": "\xff"}'),
    "two decisions, deny first": answering(lambda question: b'{"decision": false, ' + text_of(question)[1:]),
    "two decisions, deny last": answering(lambda question: text_of(question)[:-1] + b', "decision": false}'),
    "NaN": answering(lambda question: text_of(question)[:-1] + b', "x": NaN}'),
    "nested too deep": plainly(200, b'{"decision": true, "context": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "a number too long": plainly(200, b'{"decision": ' + b"1" * 10_000 + b"}"),
    "huge": answering(lambda question: text_of(question) + b" " * (1024 * 1024)),
    'decision "true"': deciding("true"),
    "decision 1": deciding(1),
    "decision 1.0": deciding(1.0),
    "decision null": deciding(None),
    "decision [true]": deciding([True]),
    "decision {}": deciding({"allow": True}),
    "Decision": answering(lambda question: {"Decision": True, "context": allow(question)["context"]}),
    "result": answering(lambda question: {"result": allow(question)}),
    "a batch": answering(lambda question: {"evaluations": [allow(question)]}),
    "no context": answering(lambda _: {"decision": True}),
    "context null": answering(lambda _: {"decision": True, "context": None}),
    "context a list": answering(lambda question: {"decision": True, "context": [allow(question)["context"]]}),
    "no evaluation_id": changed(evaluation_id=None),
    "an empty evaluation_id": changed(evaluation_id=""),
    "an evaluation_id that is none": changed(evaluation_id="dec_01"),
    "an evaluation_id that is a number": changed(evaluation_id=7),
    "no entry": changed(entry=None),
    "an entry that is a text": changed(entry=str(uuid.uuid4())),
    "an entry without its id": changed(entry={"leaf_hash": _ENTRY["leaf_hash"]}),
    "an entry without its hash": changed(entry={"id": _ENTRY["id"]}),
    "an entry with half a hash": changed(entry={**_ENTRY, "leaf_hash": base64.b64encode(bytes(16)).decode()}),
    "an entry with a hash that is none": changed(entry={**_ENTRY, "leaf_hash": "?" * 44}),
    "no valid_until": changed(valid_until=None),
    "valid_until past": answering(lambda question: allow(question, valid_until=_past())),
    "valid_until without an offset": changed(valid_until="2099-01-01T00:00:00"),
    "valid_until a number": changed(valid_until=4_070_908_800),
    "valid_until no time": changed(valid_until="tomorrow"),
    "another system": changed(system="crm-prod"),
    "no system": changed(system=None),
    "the system in capitals": changed(system="HR-PROD"),
    "another action": changed(action="read"),
    "no action": changed(action=None),
    "another subject": changed(subject={**_SUBJECT, "key": "crm-agent"}),
    "no subject": changed(subject=None),
    "a subject that is a text": changed(subject="hr-agent"),
    "a subject without its version": changed(subject={"key": "hr-agent", "digest": DIGEST}),
    "another fingerprint": changed(subject={**_SUBJECT, "digest": "sha256:" + "b" * 64}),
    "no fingerprint": changed(subject={"key": "hr-agent", "version": 1}),
    "an allow with reasons against it": changed(reasons=[{"code": "no_grant", "message": "", "detail": {}}]),
    "another request's answer": answering(allow, echo=False, X_Request_ID=uuid.uuid4().hex),
    "no HTTP": lambda handler, asked: handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n") and None,
    "endless headers": lambda handler, asked: handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 5_000) and None,
    "a line too long": lambda handler, asked: handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-A: " + b"b" * 200_000) and None,
}
SLOW: Mapping[str, Reply] = {"slow": lasting(SLOW_SECONDS), "dripping": dripping, "dripping body": dripping_body}
