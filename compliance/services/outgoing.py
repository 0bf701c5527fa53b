"""Messages to addresses that people gave us: one POST to the very address that was checked, see `evaluations.kernel.outgoing`.

An address inside our own network is refused unless `WEBHOOK_ALLOW` names its host and port.
"""

import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from django.conf import settings

from evaluations.kernel import outgoing
from evaluations.kernel.outgoing import MAX_URL, AddressRefused, NoAnswer, Target, resolve

__all__ = ["MAX_URL", "AddressRefused", "Answer", "DeliveryFailed", "Target", "parse_target", "post", "resolve"]

TIMEOUT_SECONDS = 10.0
READ_BYTES = 4096


class DeliveryFailed(Exception):
    """A message was not taken. The sentence holds no secret. `final`: trying again cannot help."""

    def __init__(self, detail: str, *, final: bool = False) -> None:
        super().__init__(detail)
        self.detail = detail
        self.final = final


class Answer(NamedTuple):
    """What an endpoint said; its body is not kept."""

    status: int
    retry_after: str


def parse_target(url: str) -> Target:
    """Return the parts of a webhook's address. Raises `AddressRefused` for one that can never be asked."""
    return outgoing.parse_target(url, outgoing.Allowed(settings.WEBHOOK_ALLOW, "WRITEGATE_WEBHOOK_ALLOW"))


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
    try:
        with outgoing.asked(target, addresses, method="POST", headers=headers, body=body, ends=ends, context=context) as answered:
            with suppress(NoAnswer):
                answered.read(READ_BYTES)
            return Answer(answered.status, answered.headers.get("Retry-After", ""))
    except NoAnswer as failure:
        raise DeliveryFailed(failure.detail) from None
