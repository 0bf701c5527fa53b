"""Fetching what lies at an address: whole or not at all, within limits of time and size, and from nowhere that was not checked.

Redirects are followed by hand, at most `MAX_HOPS` of them: each hop is an address of its own, checked and pinned like the first. A key
goes to the host that it is for and to no other. What is cut off, and what does not say how long it is, is refused: half a table looks
like a whole one. Asked again is only what may pass: a broken wire, a 5xx, a 429; and `Retry-After` is heeded.
"""

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta
from http import HTTPStatus
from tempfile import TemporaryFile
from typing import BinaryIO, NamedTuple, Self
from urllib.parse import urljoin

from django.conf import settings
from requests.utils import parse_header_links

from evaluations.kernel import outgoing
from evaluations.kernel.clock import now
from evaluations.kernel.outgoing import (
    MAX_WAIT,
    AddressRefused,
    Allowed,
    Answered,
    NoAnswer,
    Target,
    parse_target,
    resolve,
    retry_after,
)
from evaluations.services.pacing import HostBusy, hold_host, turn_at
from evaluations.vocabulary import RefreshCause

MAX_HOPS = 5
ATTEMPTS = 4
PAUSE_SECONDS = 0.5
"""Before the second attempt; twice as long before each further one, and up to a fifth more."""
CHUNK_BYTES = 64 * 1024
MAX_DETAIL = 500
MAX_TAG = 300

REDIRECTS = (301, 302, 303, 307, 308)
WAITS = (429, 503)
_CAUSES = {
    401: (RefreshCause.KEY_REFUSED, "it does not accept the key, or asks for one"),
    403: (RefreshCause.KEY_REFUSED, "it does not let us read this"),
    404: (RefreshCause.NOT_FOUND, "nothing is there"),
    410: (RefreshCause.NOT_FOUND, "it is gone for good"),
    429: (RefreshCause.ASKED_TO_WAIT, "its limit of requests is reached"),
}
_WHYS = {
    outgoing.TIMEOUT: RefreshCause.TIMED_OUT,
    outgoing.CERTIFICATE: RefreshCause.CERTIFICATE,
    outgoing.UNREACHABLE: RefreshCause.UNREACHABLE,
    outgoing.NO_HTTP: RefreshCause.NO_HTTP,
    outgoing.CUT_OFF: RefreshCause.TRUNCATED,
}
_PASSING = (RefreshCause.UNREACHABLE, RefreshCause.TRUNCATED, RefreshCause.NO_HTTP)


class FetchFailed(Exception):
    """Nothing was fetched. The sentence holds no secret; `wait` is how long the host asks us to stay away."""

    def __init__(
        self,
        cause: RefreshCause,
        detail: str,
        *,
        http_status: int | None = None,
        wait: timedelta = timedelta(0),
        passing: bool = False,
    ) -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail[:MAX_DETAIL]
        self.http_status = http_status
        self.wait = wait
        self.passing = passing


class Key(NamedTuple):
    """A key, the one `host` or `host:port` that it is for, and the header it goes in."""

    place: str
    secret: str
    header: str


class Validators(NamedTuple):
    """What an earlier answer said of itself, by which a later request asks whether it has changed (RFC 9110, 13.1)."""

    etag: str = ""
    last_modified: str = ""

    def headers(self) -> dict[str, str]:
        given = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in given.items() if value}


UNKNOWN = Validators()


class Fetched(NamedTuple):
    """One whole answer. Without a `stream` the source says that nothing has changed."""

    stream: BinaryIO | None
    validators: Validators
    next_url: str
    http_status: int
    media_type: str = ""


class Fetcher:
    """Fetches for one run, and counts. Its files and its time end with it: use it as a context."""

    def __init__(self) -> None:
        self.key: Key | None = None
        self.ends = time.monotonic() + settings.REFRESH_SECONDS
        self.bytes_received = 0
        self.requests = 0
        self._max_bytes = settings.REFRESH_MAX_BYTES
        self._allowed = Allowed(settings.REFRESH_ALLOW, "WRITEGATE_REFRESH_ALLOW")
        self.files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.files.close()

    def counts(self) -> dict[str, int]:
        """Return what was counted so far, by the names of a run's columns."""
        return {"requests": self.requests, "bytes_received": self.bytes_received}

    def fetch(self, url: str, validators: Validators = UNKNOWN) -> Fetched:
        """Return what lies at an address. Raises `FetchFailed`. Network: outside any transaction."""
        pause = PAUSE_SECONDS
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._follow(url, validators)
            except FetchFailed as failed:
                wait = max(pause * (1 + 0.2 * random.random()), failed.wait.total_seconds())  # noqa: S311 - no secret
                if not failed.passing or attempt == ATTEMPTS or time.monotonic() + wait >= self.ends:
                    raise
            time.sleep(wait)
            pause *= 2
        raise AssertionError("the last attempt returns or raises")

    def _follow(self, url: str, validators: Validators) -> Fetched:
        for _ in range(MAX_HOPS + 1):
            try:
                target = parse_target(url, self._allowed)
                addresses = resolve(target)
            except AddressRefused as refused:
                raise FetchFailed(RefreshCause.ADDRESS_REFUSED, refused.detail) from None
            answer = self._ask(target, addresses, validators)
            if isinstance(answer, Fetched):
                return answer._replace(next_url=urljoin(url, answer.next_url) if answer.next_url else "")
            url = urljoin(url, answer)
        raise FetchFailed(RefreshCause.ADDRESS_REFUSED, f"more than {MAX_HOPS} redirects, one after the other")

    def _ask(self, target: Target, addresses: Sequence[str], validators: Validators) -> Fetched | str:
        """Ask once; return what was fetched, or where the answer leads to."""
        headers = {"User-Agent": "writegate", "Accept": "*/*", "Accept-Encoding": "identity", **validators.headers()}
        if self.key is not None and target.place == self.key.place:
            headers[self.key.header] = self.key.secret
        try:
            with turn_at(target.place, ends=self.ends):
                self.requests += 1
                with outgoing.asked(target, addresses, method="GET", headers=headers, ends=self.ends) as answered:
                    return self._take(target, answered, conditional=any(validators))
        except HostBusy as busy:
            raise FetchFailed(RefreshCause.HOST_BUSY, f"`{target.place}`: {busy}", wait=busy.wait) from None
        except NoAnswer as failure:
            cause = _WHYS[failure.why]
            raise FetchFailed(cause, f"`{target.place}`: {failure.detail}", passing=cause in _PASSING) from None

    def _take(self, target: Target, answered: Answered, *, conditional: bool) -> Fetched | str:
        headers = answered.headers
        location = headers.get("Location", "")
        if answered.status in REDIRECTS and location:
            return location
        found = Validators(headers.get("ETag", "")[:MAX_TAG], headers.get("Last-Modified", "")[:MAX_TAG])
        if answered.status == HTTPStatus.NOT_MODIFIED and conditional:
            return Fetched(None, found, "", answered.status)
        if answered.status != HTTPStatus.OK:
            raise _refusal(target, answered)
        encoding = headers.get("Content-Encoding", "identity").strip().lower()
        if encoding != "identity":
            raise FetchFailed(RefreshCause.NO_HTTP, f"`{target.place}`: the answer is encoded as {encoding[:20]}, unasked")
        stream = self._body(target, answered)
        links = parse_header_links(headers.get("Link", ""))
        following = next((link["url"] for link in links if link.get("rel") == "next"), "")
        return Fetched(stream, found, following, answered.status, headers.get_content_type())

    def _body(self, target: Target, answered: Answered) -> BinaryIO:
        stated = answered.headers.get("Content-Length", "").strip()
        chunked = answered.headers.get("Transfer-Encoding", "").strip().lower() == "chunked"
        if not chunked and not (stated.isascii() and stated.isdigit()):
            raise _cut_off(f"`{target.place}`: the answer does not say how long it is, so nobody can tell whether it is whole")
        left = self._max_bytes - self.bytes_received
        stream: BinaryIO = self.files.enter_context(TemporaryFile())  # noqa: SIM115 - the run closes it
        received = 0
        while received <= left and (chunked or int(stated) <= left):
            data = answered.read(CHUNK_BYTES)
            if not data:
                break
            received += len(data)
            self.bytes_received += len(data)
            stream.write(data)
        else:
            raise FetchFailed(RefreshCause.TOO_LARGE, f"`{target.place}`: one run reads at most {self._max_bytes} bytes")
        if not chunked and received != int(stated):
            raise _cut_off(f"`{target.place}`: {received} of {stated} bytes came")
        stream.seek(0)
        return stream


def _cut_off(detail: str) -> FetchFailed:
    return FetchFailed(RefreshCause.TRUNCATED, detail, passing=True)


def _refusal(target: Target, answered: Answered) -> FetchFailed:
    """Return why an answer is no good; where it asks to wait, all workers do."""
    status = answered.status
    cause, what = _CAUSES.get(status, (RefreshCause.HTTP_ERROR, "the answer is no page"))
    detail = f"`{target.place}` answers {status}: {what}"
    if status in WAITS and answered.headers.get("Retry-After"):
        wait = min(retry_after(answered.headers["Retry-After"], at=now()), MAX_WAIT)
        hold_host(target.place, until=now() + wait)
        return FetchFailed(
            RefreshCause.ASKED_TO_WAIT,
            f"{detail}; come back in {wait.total_seconds():.0f} s",
            http_status=status,
            wait=wait,
            passing=True,
        )
    return FetchFailed(cause, detail, http_status=status, passing=status in WAITS or status >= 500)
