"""Requests to addresses that people gave us: which of them may be asked, and one request to the very address that was checked.

An address inside our own network (private, loopback, link-local, a cloud's metadata) is refused unless the operator has named its host
and port. The name is resolved once and the connection goes to what was found then, so that a name which changes between check and use
gains nothing. No proxy and no redirect is followed.
"""

import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, IncompleteRead
from typing import NamedTuple
from urllib.parse import urlsplit

from evaluations.kernel.errors import DomainError

MAX_URL = 1000
DEFAULT_PORTS = {"https": 443, "http": 80}
MAX_WAIT = timedelta(hours=24)

_PLAIN = re.compile(r"[\x21-\x7e]+\Z")
# Addresses that count as public and are not: a cloud's own services, and forms that carry another address inside.
_REFUSED = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.88.99.0/24", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16")))

TIMEOUT, CERTIFICATE, UNREACHABLE, NO_HTTP, CUT_OFF = "timeout", "certificate", "unreachable", "no_http", "cut_off"
"""Why there was no answer."""


class AddressRefused(DomainError):
    """No request of ours goes to this address."""

    code = "address_refused"


class NoAnswer(Exception):
    """There was no whole answer. `why` is one of the words above; the sentence holds no secret."""

    def __init__(self, why: str, detail: str) -> None:
        super().__init__(detail)
        self.why = why
        self.detail = detail


class Allowed(NamedTuple):
    """What the operator allows beside the open internet: `host:port`s, and the variable that names them."""

    places: Collection[str]
    variable: str


class Target(NamedTuple):
    """An address taken apart. `path` has its query; `allowed` says that the operator named host and port."""

    scheme: str
    host: str
    port: int
    path: str
    allowed: bool
    variable: str

    @property
    def place(self) -> str:
        """Return `host:port`, or the host alone at the scheme's own port."""
        return self.host_name if self.port == DEFAULT_PORTS[self.scheme] else f"{self.host_name}:{self.port}"

    @property
    def host_name(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def parse_target(url: str, allowed: Allowed) -> Target:
    """Return the parts of an address. Raises `AddressRefused` for one that can never be asked."""
    if len(url) > MAX_URL or not _PLAIN.match(url) or "\\" in url:
        raise AddressRefused(f"an address is at most {MAX_URL} printable ASCII characters; write other letters as %XX or xn--")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise AddressRefused("this is no address; write one such as https://example.org/hooks") from None
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in DEFAULT_PORTS or not host:
        raise AddressRefused("an address begins with https:// and a host")
    if "@" in parts.netloc or parts.fragment:
        raise AddressRefused("leave user, password and #fragment out of the address")
    number = DEFAULT_PORTS[parts.scheme] if port is None else port
    bracketed = f"[{host}]" if ":" in host else host
    named = f"{bracketed}:{number}" in {each.lower() for each in allowed.places}
    if parts.scheme != "https" and not named:
        raise AddressRefused(f"only https is asked; the operator may allow this host and port by {allowed.variable}")
    path = parts.path or "/"
    return Target(parts.scheme, host, number, f"{path}?{parts.query}" if parts.query else path, named, allowed.variable)


def resolve(target: Target) -> Sequence[str]:
    """Look the host up; every address found must be fit to be asked. Raises `AddressRefused`. Network: outside any transaction."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise AddressRefused(f"the host `{target.host}` is not found; look at its spelling") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not target.allowed and not all(map(is_public, addresses)):
        # Which address it is would tell of our network.
        raise AddressRefused(
            f"the host `{target.host}` lies inside a private network; the operator may allow it by {target.variable}"
        )
    return addresses


def is_public(text: str) -> bool:
    """True for an address of the open internet."""
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        return is_public(str(mapped))
    return address.is_global and not address.is_multicast and not any(address in network for network in _REFUSED)


def retry_after(text: str, *, at: datetime) -> timedelta:
    """Return how long a `Retry-After` asks to wait: seconds or a date, as RFC 9110 has it; nothing where it is neither."""
    given = text.strip()
    if given.isascii() and given.isdigit():
        return timedelta(seconds=min(int(given[:9]), int(MAX_WAIT.total_seconds())))
    try:
        return max(timedelta(0), parsedate_to_datetime(given) - at)
    except (TypeError, ValueError):
        return timedelta(0)


class Answered:
    """An answer whose body is still on the wire. Reading it raises `NoAnswer` where the wire breaks or the time is over."""

    def __init__(self, response: HTTPResponse, ends: float) -> None:
        self._response = response
        self._ends = ends
        self.status = response.status
        self.headers: HTTPMessage = response.headers

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, none at the end. An end that the time limit made is no end."""
        try:
            data = self._response.read(size)
        except (OSError, HTTPException, ValueError) as error:
            raise _no_answer(error, self._ends) from None
        if not data and time.monotonic() >= self._ends:
            raise _no_answer(TimeoutError(), self._ends)
        return data


@contextmanager
def asked(
    target: Target,
    addresses: Sequence[str],
    *,
    method: str,
    headers: Mapping[str, str],
    ends: float,
    body: bytes | None = None,
    context: ssl.SSLContext | None = None,
) -> Iterator[Answered]:
    """Send one request to the first of the checked `addresses` that answers, and yield the answer; the wire is closed afterwards.

    All of it, reading included, ends at the instant `ends` of `time.monotonic()`, however slowly the other side writes. Raises
    `NoAnswer`.
    """
    wire = [_connect(target, addresses, ends)]
    # A time limit of the socket counts between two bytes: one who sends a byte a second would hold us for ever.
    cut = threading.Timer(max(0.0, ends - time.monotonic()), _cut, [wire])
    cut.daemon = True
    cut.start()
    try:
        yield _begin(target, wire, method=method, headers=headers, body=body, context=context, ends=ends)
    finally:
        cut.cancel()
        wire[0].close()


def _begin(
    target: Target,
    wire: list[socket.socket],
    *,
    method: str,
    headers: Mapping[str, str],
    body: bytes | None,
    context: ssl.SSLContext | None,
    ends: float,
) -> Answered:
    try:
        if target.scheme == "https":
            secured = (context or _trusting()).wrap_socket(wire[0], server_hostname=target.host, do_handshake_on_connect=False)
            wire[0] = secured
            secured.do_handshake()
        connection = HTTPConnection(target.host, target.port)
        connection.auto_open = 0  # a second connection would be a second look-up
        connection.sock = wire[0]
        length = {} if body is None else {"Content-Length": str(len(body))}
        connection.request(
            method, target.path, body=body, headers={"Host": target.place, **length, "Connection": "close", **headers}
        )
        response = connection.getresponse()
    except (OSError, HTTPException, ValueError) as error:
        raise _no_answer(error, ends) from None
    if time.monotonic() >= ends:
        # Cut off in the middle of its head, which then only looks whole.
        raise _no_answer(TimeoutError(), ends)
    return Answered(response, ends)


@lru_cache(maxsize=1)
def _trusting() -> ssl.SSLContext:
    # Reading the machine's certificates takes longer than most answers.
    return ssl.create_default_context()


def _connect(target: Target, addresses: Sequence[str], ends: float) -> socket.socket:
    failure = NoAnswer(UNREACHABLE, "no address to ask")
    for address in addresses:
        left = ends - time.monotonic()
        if left <= 0:
            raise NoAnswer(TIMEOUT, "no answer within the time")
        try:
            return socket.create_connection((address, target.port), timeout=left)
        except OSError as error:
            failure = _no_answer(error, ends)
    raise failure


def _cut(wire: list[socket.socket]) -> None:
    with suppress(OSError):
        wire[0].shutdown(socket.SHUT_RDWR)


def _no_answer(error: Exception, ends: float) -> NoAnswer:
    if isinstance(error, TimeoutError) or time.monotonic() >= ends:
        return NoAnswer(TIMEOUT, "no answer within the time")
    if isinstance(error, ssl.SSLCertVerificationError):
        return NoAnswer(CERTIFICATE, f"the certificate does not hold: {error.verify_message}")
    if isinstance(error, ssl.SSLError):
        return NoAnswer(CERTIFICATE, "TLS could not be agreed on")
    if isinstance(error, IncompleteRead):
        return NoAnswer(CUT_OFF, "the answer was cut off")
    if isinstance(error, OSError):
        return NoAnswer(UNREACHABLE, f"not reached: {error.strerror or 'the connection broke'}")
    return NoAnswer(NO_HTTP, "the answer is no HTTP")
