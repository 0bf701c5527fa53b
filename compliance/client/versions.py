"""Which version of an agent its files state now, asked of the service that knows the versions of its models."""

import time
from typing import Any
from urllib.parse import quote

from compliance.client.answers import DIGEST, numbered_key
from compliance.client.fingerprint import Fingerprint
from compliance.client.http import NoAnswer, Server
from compliance.client.outcome import Refused, plain

PATH = "/api/v1/subjects/"


def version_digest(server: Server, found: Fingerprint, *, until: float, retries: int) -> str:
    """Return the digest under which the service pins, or would pin, this agent now; `until` is of `time.monotonic`.

    The token needs the scope `read`. Raises `Refused` for a model that is unknown there, `NoAnswer`.
    """
    reaches = {_digest_of(server, name, until - time.monotonic(), retries) for name in found.models}
    return found.version_digest(reaches)


def _digest_of(server: Server, name: str, left: float, retries: int) -> str:
    """Return the digest of the model version that a name means: `key@number`, or the newest of `key`."""
    if left <= 0:
        raise NoAnswer("the time limit was reached")
    key = numbered_key(name)
    number = name.rpartition("@")[2] if key else ""
    path = PATH + quote(key or name, safe="/") + (f"/versions/{number}" if key else "/versions?page_size=1")
    reply = server.send("GET", path, timeout=left, retries=retries)
    if reply.status in (401, 403):
        raise Refused(
            f"the token may not read what `{name}` means (status {reply.status}): give it the scope `read`, "
            "or name the version with --fingerprint, as `writegate register --quiet` prints it"
        )
    if reply.status == 404:
        raise Refused(f"the service knows no model `{name}`")
    if reply.status != 200:
        raise NoAnswer(f"the service did not say what `{name}` means (status {reply.status})")
    made: Any = reply.value
    try:
        digest = (made if key else made["results"][0])["digest"]
    except (KeyError, TypeError, IndexError):
        digest = None
    if not isinstance(digest, str) or not DIGEST.match(digest):
        raise NoAnswer(f"the service did not say what `{plain(name)}` means: is this a Writegate service?")
    return digest
