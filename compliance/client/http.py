"""Exchanges with a Writegate service, with what a pipeline needs to trust them: TLS, one time limit, no redirects, whole answers.

Standard library only. Proxies that the environment names are not used: a token goes to the server that was named and to nobody else.
"""

import http.client
import ipaddress
import json
import os
import queue
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

MAX_ANSWER_BYTES = 1024 * 1024
TIMEOUT_SECONDS = 30.0
RETRIES = 2
MAX_RETRIES = 10
PAUSE_SECONDS = 0.5
"""A first retry comes within so long; each further one within twice the time before, up to `MAX_PAUSE_SECONDS`."""
MAX_PAUSE_SECONDS = 8.0
NOT_MODIFIED = 304
TRY_LATER = frozenset({408, 425, 429})

Body = bytes | Path | None
"""What is sent: bytes, or a file, which is read while it is sent and anew for each attempt."""

_CHUNK = 64 * 1024
_LENGTH_DIGITS = 18


class AddressRefused(Exception):
    """The address of the server is none that we would send a token to."""


class NoAnswer(Exception):
    """The server could not be reached, or what it sent is no whole answer. `again` says whether another attempt may help."""

    def __init__(self, said: str, *, again: bool = True) -> None:
        super().__init__(said)
        self.again = again


@dataclass(frozen=True)
class Reply:
    """What a server sent, whole: status, headers by lower-case name, the bytes of the body."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @cached_property
    def value(self) -> Any:
        """The JSON value of the body, None where it is no JSON."""
        try:
            return parse_json(self.content)
        except ValueError:
            return None

    @property
    def is_trouble(self) -> bool:
        """True where the server did not get to an answer and may later."""
        return self.status >= 500 or self.status in TRY_LATER


@dataclass(frozen=True)
class Server:
    """A service, and the token that is for it alone. Its text shows no token."""

    address: SplitResult
    token: str = field(repr=False)

    @property
    def url(self) -> str:
        """The address as it was given, without a slash at its end."""
        return self.address.geturl().rstrip("/")

    def send(
        self,
        method: str,
        path: str,
        body: Body = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        most: int = MAX_ANSWER_BYTES,
    ) -> Reply:
        """Send one request and return the reply, whatever its status; all attempts together take at most `timeout` seconds.

        `most` is how many bytes an answer may have.

        Where nothing whole came back, or the server is in trouble, it is sent again, up to `retries` times: callers send what does no
        harm twice. The pause before is random (full jitter), or what `Retry-After` asks for; one that would outlast the time limit
        ends it. Raises `NoAnswer`.
        """
        sent = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json",
            "User-Agent": "writegate-client",
            **({"Content-Type": "application/json"} if body is not None else {}),
            **(headers or {}),
        }
        until = time.monotonic() + timeout
        return _patiently(
            lambda: exchange(self.address, method, path, body, headers=sent, until=until, most=most), until, retries
        )


def check_address(server: str, *, allow_http: bool = False) -> SplitResult:
    """Return the parts of a server's address. Raises `AddressRefused`: plain HTTP goes to this machine alone, unless allowed."""
    try:
        address = urlsplit(server)
        _ = address.port
    except ValueError as error:
        raise AddressRefused(f"`{server}` is no address: {error}") from error
    if address.scheme not in ("https", "http") or not address.hostname:
        raise AddressRefused(f"`{server}` is no address: write https://gate.example.org")
    if address.username is not None or address.query or address.fragment:
        raise AddressRefused("the server's address has no user, query or fragment: the token is given apart")
    if not server.isascii() or any(letter.isspace() or not letter.isprintable() for letter in server):
        raise AddressRefused("the server's address is plain ASCII without spaces")
    if address.scheme == "http" and not allow_http and not _is_loopback(address.hostname):
        raise AddressRefused("over http the token could be read on the way: use https, or say --allow-http")
    return address


def exchange(
    address: SplitResult,
    method: str,
    path: str,
    body: Body,
    *,
    headers: Mapping[str, str],
    until: float,
    most: int = MAX_ANSWER_BYTES,
) -> Reply:
    """Send one request once and return the reply; over at `until` (of `time.monotonic`), whatever the other side does.

    Raises `NoAnswer`, also for a redirect: to follow it would take the token along.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise NoAnswer("the time limit was reached", again=False)
    connection = _connect(address, left)
    done: queue.SimpleQueue[Reply | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put(_talk(connection, method, address.path.rstrip("/") + path, body, headers, until, most))
        except Exception as error:  # raised again, where it is waited for
            done.put(error)
        finally:
            connection.close()

    # A name server that is silent and a server that sends a byte now and then pass every time limit of a socket. None passes this one.
    threading.Thread(target=work, name="writegate-exchange", daemon=True).start()
    try:
        got = done.get(timeout=left)
    except queue.Empty:
        _hang_up(connection)
        raise NoAnswer(f"{_place(address)} does not answer within the time limit", again=False) from None
    if isinstance(got, OSError | http.client.HTTPException | UnicodeError):
        said = getattr(got, "verify_message", None) or getattr(got, "strerror", None) or str(got) or type(got).__name__
        # A certificate or a host name that is wrong now is wrong in a second too.
        again = not isinstance(got, ssl.SSLCertVerificationError | UnicodeError)
        raise NoAnswer(f"{_place(address)} does not answer: {said}", again=again) from got
    if isinstance(got, Exception):
        raise got
    if 300 <= got.status < 400 and got.status != NOT_MODIFIED:
        said = f"the server answered with a redirect ({got.status}), which is not followed: name the final address"
        raise NoAnswer(said, again=False)
    return got


def parse_json(content: bytes) -> Any:
    """Return the value of JSON text in UTF-8. Raises `ValueError` for anything else, a member that is named twice included."""
    try:
        return json.loads(content.decode(), object_pairs_hook=_members, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _patiently(attempt: Callable[[], Reply], until: float, retries: int) -> Reply:
    for left in range(retries, -1, -1):
        pause = random.uniform(0, min(MAX_PAUSE_SECONDS, PAUSE_SECONDS * 2 ** (retries - left)))  # noqa: S311 - no secret
        try:
            reply = attempt()
        except NoAnswer as failure:
            if not left or not failure.again or time.monotonic() + pause >= until:
                raise
        else:
            asked = _asked_pause(reply)
            pause = pause if asked is None else asked
            if not left or not reply.is_trouble or time.monotonic() + pause >= until:
                return reply
        time.sleep(pause)
    raise AssertionError("unreachable")


def _asked_pause(reply: Reply) -> float | None:
    """Return the seconds that `Retry-After` asks for, as a number or as a date; None where it asks for nothing readable."""
    text = reply.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:_LENGTH_DIGITS])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _connect(address: SplitResult, timeout: float) -> http.client.HTTPConnection:
    host = address.hostname or ""
    if address.scheme == "https":
        return http.client.HTTPSConnection(host, address.port, timeout=timeout, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, address.port, timeout=timeout)


def _talk(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: Body,
    headers: Mapping[str, str],
    until: float,
    most: int,
) -> Reply:
    _send(connection, method, path, body, dict(headers))
    with connection.getresponse() as response:
        _check_length(response)
        content = _read(response, until, most)
        return Reply(response.status, {name.lower(): text for name, text in response.getheaders()}, content)


def _send(connection: http.client.HTTPConnection, method: str, path: str, body: Body, headers: dict[str, str]) -> None:
    if not isinstance(body, Path):
        connection.request(method, path, body=body, headers=headers)
        return
    with body.open("rb") as stream, suppress(BrokenPipeError, ConnectionResetError):
        # Who does not want a file answers before he has all of it, and hangs up: what he said is read all the same.
        size = os.fstat(stream.fileno()).st_size
        connection.request(method, path, body=stream, headers={**headers, "Content-Length": str(size)})


def _check_length(response: http.client.HTTPResponse) -> None:
    """Refuse an answer that states its length in a way that two readers could take differently."""
    lengths = response.headers.get_all("Content-Length", [])
    odd = len(lengths) > 1 or any(not (one.isascii() and one.isdigit() and len(one) <= _LENGTH_DIGITS) for one in lengths)
    if odd or (lengths and "Transfer-Encoding" in response.headers):
        raise NoAnswer("the answer states no clear length", again=False)


def _read(response: http.client.HTTPResponse, until: float, most: int) -> bytes:
    parts, size = [], 0
    while chunk := response.read1(_CHUNK):
        size += len(chunk)
        if size > most:
            raise NoAnswer(f"the answer is longer than {most} bytes: is this a Writegate service?", again=False)
        if time.monotonic() > until:
            raise NoAnswer("the answer took too long", again=False)
        parts.append(chunk)
    if response.length:
        raise NoAnswer(f"the answer broke off: {response.length} bytes of it are missing")
    return b"".join(parts)


def _hang_up(connection: http.client.HTTPConnection) -> None:
    """Wake the thread that still waits for the other side."""
    wire = connection.sock
    if wire is not None:
        with suppress(OSError):
            wire.shutdown(socket.SHUT_RDWR)


def _place(address: SplitResult) -> str:
    return f"{address.scheme}://{address.netloc}"


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a member is named twice")
    return made


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
