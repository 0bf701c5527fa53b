"""Requests to addresses that people gave us: which of them may be asked, and one request to the very address that was checked.

An address inside our own network (private, loopback, link-local, a cloud's metadata) is refused unless `WEBHOOK_ALLOW` names its
host and port. The name is resolved once and the connection goes to what was found then, so that a name which changes between
check and use gains nothing. No proxy and no redirect is followed.
"""

import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings

from evaluations.kernel.errors import DomainError

TIMEOUT_SECONDS = 10.0
READ_BYTES = 4096
MAX_URL = 1000
DEFAULT_PORTS = {"https": 443, "http": 80}

_PLAIN = re.compile(r"[\x21-\x7e]+\Z")
# Addresses that count as public and are not: a cloud's own services, and forms that carry another address inside.
_REFUSED = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.88.99.0/24", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16")))


class AddressRefused(DomainError):
    """No request of ours goes to this address."""

    code = "address_refused"


class DeliveryFailed(Exception):
    """A message was not taken. The sentence holds no secret. `final`: trying again cannot help."""

    def __init__(self, detail: str, *, final: bool = False) -> None:
        super().__init__(detail)
        self.detail = detail
        self.final = final


class Target(NamedTuple):
    """An address taken apart. `path` has its query; `allowed` says that the operator named host and port."""

    scheme: str
    host: str
    port: int
    path: str
    allowed: bool

    @property
    def place(self) -> str:
        """Return `host:port`, or the host alone at the scheme's own port."""
        return self.host_name if self.port == DEFAULT_PORTS[self.scheme] else f"{self.host_name}:{self.port}"

    @property
    def host_name(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


class Answer(NamedTuple):
    """What an endpoint said; its body is not kept."""

    status: int
    retry_after: str


def parse_target(url: str) -> Target:
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
        raise AddressRefused("leave user, password and #fragment out of the address; messages are signed instead")
    number = DEFAULT_PORTS[parts.scheme] if port is None else port
    bracketed = f"[{host}]" if ":" in host else host
    allowed = f"{bracketed}:{number}" in {each.lower() for each in settings.WEBHOOK_ALLOW}
    if parts.scheme != "https" and not allowed:
        raise AddressRefused("only https is asked; the operator may allow this host and port by WRITEGATE_WEBHOOK_ALLOW")
    path = parts.path or "/"
    return Target(parts.scheme, host, number, f"{path}?{parts.query}" if parts.query else path, allowed)


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
            f"the host `{target.host}` lies inside a private network; the operator may allow it by WRITEGATE_WEBHOOK_ALLOW"
        )
    return addresses


def is_public(text: str) -> bool:
    """True for an address of the open internet."""
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        return is_public(str(mapped))
    return address.is_global and not address.is_multicast and not any(address in network for network in _REFUSED)


def post(
    target: Target,
    addresses: Sequence[str],
    *,
    body: bytes,
    headers: Mapping[str, str],
    seconds: float = TIMEOUT_SECONDS,
    context: ssl.SSLContext | None = None,
) -> Answer:
    """Send one request to the first of the checked `addresses` that answers, and return what it said.

    All of it takes at most `seconds`, however slowly the other side writes. Raises `DeliveryFailed`.
    """
    ends = time.monotonic() + seconds
    wire = [_connect(target, addresses, ends)]
    # A time limit of the socket counts between two bytes: one who sends a byte a second would hold us for ever.
    cut = threading.Timer(max(0.0, ends - time.monotonic()), _cut, [wire])
    cut.daemon = True
    cut.start()
    try:
        if target.scheme == "https":
            secured = (context or ssl.create_default_context()).wrap_socket(
                wire[0], server_hostname=target.host, do_handshake_on_connect=False
            )
            wire[0] = secured
            secured.do_handshake()
        return _exchange(target, wire[0], body, headers, ends)
    except (OSError, HTTPException, ValueError) as error:
        raise DeliveryFailed("no answer within the time" if time.monotonic() >= ends else _reason(error)) from None
    finally:
        cut.cancel()
        wire[0].close()


def _exchange(target: Target, wire: socket.socket, body: bytes, headers: Mapping[str, str], ends: float) -> Answer:
    connection = HTTPConnection(target.host, target.port)
    connection.auto_open = 0  # a second connection would be a second look-up
    connection.sock = wire
    sent = {"Host": target.place, "Content-Length": str(len(body)), "Connection": "close", **headers}
    connection.request("POST", target.path, body=body, headers=sent)
    response = connection.getresponse()
    if time.monotonic() >= ends:
        # Cut off in the middle of its head, which then only looks whole.
        raise TimeoutError
    with suppress(OSError, HTTPException):
        response.read(READ_BYTES)
    return Answer(response.status, response.headers.get("Retry-After", ""))


def _connect(target: Target, addresses: Sequence[str], ends: float) -> socket.socket:
    failure = "no address to ask"
    for address in addresses:
        left = ends - time.monotonic()
        if left <= 0:
            raise DeliveryFailed("no answer within the time")
        try:
            return socket.create_connection((address, target.port), timeout=left)
        except OSError as error:
            failure = _reason(error)
    raise DeliveryFailed(failure)


def _cut(wire: list[socket.socket]) -> None:
    with suppress(OSError):
        wire[0].shutdown(socket.SHUT_RDWR)


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate does not hold: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "no answer within the time"
    if isinstance(error, ssl.SSLError):
        return "TLS could not be agreed on"
    if isinstance(error, OSError):
        return f"not reached: {error.strerror or 'the connection broke'}"
    return "the answer is no HTTP"
