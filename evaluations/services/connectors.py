"""The roads by which a source's files come in: each makes, of a schedule, the files to import and what to ask by the next time.

A list of several pages is fetched whole: where one page has changed, all of them are fetched anew, so that no set is half old. Its
pages lie on one host. The next one is named by the `Link` of RFC 8288, by `next` in the body, or by the place that Artificial Analysis
states.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time
from pathlib import PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, quote, unquote, urlencode, urljoin, urlsplit, urlunsplit

from django.conf import settings

from evaluations.importers.registry import IMPORTERS
from evaluations.kernel.clock import now
from evaluations.kernel.outgoing import AddressRefused, Allowed, parse_target
from evaluations.models import SourceSchedule
from evaluations.services.fetching import Fetcher, FetchFailed, Key, Validators
from evaluations.services.folders import folder_problem, gather_folder
from evaluations.services.gathering import Batch, Gathered
from evaluations.vocabulary import Connector, RefreshCause

MAX_PAGE_TO_PARSE = 16 * 1024 * 1024
KEY_HEADERS: Mapping[str, tuple[str, str]] = {Connector.ARTIFICIAL_ANALYSIS: ("x-api-key", "{}")}
"""Header and form in which a key is sent, for connectors other than `Authorization: Bearer`."""
SUFFIXES = {"application/json": ".json", "text/csv": ".csv", "application/zip": ".zip", "application/x-ndjson": ".jsonl"}

_NAMES = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_REPOSITORY = re.compile(
    rf"(?P<kind>(?:datasets|spaces)/)?(?P<name>{_NAMES}/{_NAMES})@(?P<revision>[A-Za-z0-9._/-]{{1,100}}):(?P<path>.+)\Z"
)
EXAMPLES = {
    Connector.HUGGING_FACE: "datasets/owner/name@main:path/results.json",
    Connector.GITHUB: "owner/name@v1:path/results.json",
}

Following = Callable[[str, BinaryIO], str]


def gather(schedule: SourceSchedule, fetcher: Fetcher, *, forced: bool) -> Gathered:
    """Return what a schedule brings in now. `forced`: also what is known to be unchanged. Raises `FetchFailed`."""
    known = {} if forced else schedule.marks
    if schedule.connector == Connector.FOLDER:
        return gather_folder(schedule.address, known=known, together=_is_group(schedule.format), files=fetcher.files)
    if schedule.connector == Connector.ARTIFICIAL_ANALYSIS:
        gathered = _pages(address_of(schedule), fetcher, known, _next_place)
        # A live statement without a date: it is published as of the day on which it was fetched, at its first instant.
        return gathered._replace(published_at=datetime.combine(now().date(), time(), UTC))
    return _pages(address_of(schedule), fetcher, known, _next_in_body)


def address_of(schedule: SourceSchedule) -> str:
    """Return the address of the first request of a schedule that has one."""
    return made_address(schedule.connector, schedule.address)


def made_address(connector: str, address: str) -> str:
    """Return the address that a schedule's own words make. Raises `ValueError` saying what to write instead."""
    base = settings.REFRESH_BASES.get(connector, "").rstrip("/")
    if connector == Connector.ARTIFICIAL_ANALYSIS:
        return address or base
    if connector not in (Connector.HUGGING_FACE, Connector.GITHUB):
        return address
    found = _REPOSITORY.match(address)
    parts = PurePosixPath(found["path"]).parts if found else ()
    unclean = not parts or ".." in parts or parts[0] == "/" or not (found and found["path"].isprintable())
    if found is None or unclean or ".." in found["revision"] or (found["kind"] and connector == Connector.GITHUB):
        raise ValueError(f"write repository, revision and path, such as {EXAMPLES[Connector(connector)]}")
    path = quote("/".join(parts))
    if connector == Connector.GITHUB:
        return f"{base}/{found['name']}/{quote(found['revision'])}/{path}"
    return f"{base}/{found['kind'] or ''}{found['name']}/resolve/{quote(found['revision'], safe='')}/{path}"


def address_problem(connector: str, address: str) -> str:
    """Return what is wrong with the address of a schedule, or "". No name is looked up."""
    if connector == Connector.FOLDER:
        return folder_problem(address)
    try:
        parse_target(made_address(connector, address), Allowed(settings.REFRESH_ALLOW, "WRITEGATE_REFRESH_ALLOW"))
    except (ValueError, AddressRefused) as refused:
        return str(refused)
    return ""


def key_problem(name: str) -> str:
    """Return what is wrong with the name of a key, or "". The key itself is not shown."""
    if name and not name.startswith(settings.SOURCE_KEY_PREFIX):
        return f"the names of keys begin with {settings.SOURCE_KEY_PREFIX}"
    if name and len(settings.SOURCE_KEYS.get(name, "").split()) != 2:
        return f"the variable {name} is not set to a host and a key, with a space between"
    return ""


def key_of(schedule: SourceSchedule) -> Key | None:
    """Return the key that a schedule names. Raises `FetchFailed` where it is not set."""
    if not schedule.key_name:
        return None
    if problem := key_problem(schedule.key_name):
        raise FetchFailed(RefreshCause.KEY_MISSING, problem)
    place, secret = settings.SOURCE_KEYS[schedule.key_name].split()
    header, form = KEY_HEADERS.get(schedule.connector, ("Authorization", "Bearer {}"))
    return Key(place.lower(), form.format(secret), header)


def _pages(start: str, fetcher: Fetcher, known: Mapping[str, Any], following: Following) -> Gathered:
    marks: dict[str, Any] = {}
    files: dict[str, BinaryIO] = {}
    first, status = Validators(), None
    url = start
    while url:
        if len(marks) >= settings.REFRESH_MAX_PAGES:
            raise FetchFailed(RefreshCause.TOO_MANY_PAGES, f"the list has more than {settings.REFRESH_MAX_PAGES} pages")
        mark = known.get(url, {})
        fetched = fetcher.fetch(url, Validators(mark.get("etag", ""), mark.get("last_modified", "")))
        if not marks:
            first, status = fetched.validators, fetched.http_status
        if fetched.stream is None:
            marks[url] = mark
        else:
            files[_name_of(url, len(marks), fetched.media_type)] = fetched.stream
            found = fetched.next_url or following(url, fetched.stream)
            marks[url] = {**fetched.validators._asdict(), "next": found}
        url = str(marks[url].get("next", ""))
        if url in marks or (url and urlsplit(url)[:2] != urlsplit(start)[:2]):
            raise FetchFailed(
                RefreshCause.ADDRESS_REFUSED, "the next page of the list lies on another host, or is one of those before"
            )
    if files and len(files) < len(marks):
        return _pages(start, fetcher, {}, following)
    cause = RefreshCause.SAME_BYTES if files else RefreshCause.NOT_MODIFIED
    batches = (Batch(files, marks),) if files else ()
    return Gathered(batches, {} if files else marks, cause, http_status=status, validators=first)


def _name_of(url: str, page: int, media_type: str) -> str:
    path = PurePosixPath(unquote(urlsplit(url).path))
    stem = (
        "".join(letter if letter.isprintable() and letter not in '/\\:*?"<>|' else "_" for letter in path.stem)[-100:] or "page"
    )
    suffix = path.suffix if path.suffix.isascii() and 1 < len(path.suffix) <= 10 else SUFFIXES.get(media_type, "")
    return f"{stem}-{page + 1}{suffix}" if page else f"{stem}{suffix}"


def _next_in_body(url: str, stream: BinaryIO) -> str:
    """Return the address under `next` of a JSON object, "" where there is none."""
    value = _parsed(stream)
    following = value.get("next") if isinstance(value, dict) else None
    return urljoin(url, following) if isinstance(following, str) else ""


def _next_place(url: str, stream: BinaryIO) -> str:
    """Return the address of the page after the one whose `pagination` says where it stands."""
    value = _parsed(stream)
    place = value.get("pagination") if isinstance(value, dict) else None
    if not isinstance(place, dict):
        return ""
    page, total = place.get("page"), place.get("total_pages")
    if not isinstance(page, int) or not isinstance(total, int) or page >= total:
        return ""
    parts = urlsplit(url)
    query = [(name, held) for name, held in parse_qsl(parts.query, keep_blank_values=True) if name != "page"]
    return urlunsplit(parts._replace(query=urlencode([*query, ("page", str(page + 1))])))


def _parsed(stream: BinaryIO) -> Any:
    """Return the JSON object that a page is, None where it is another thing; the importer judges it."""
    head = stream.read(64)
    stream.seek(0)
    if head.lstrip()[:1] != b"{":
        return None
    data = stream.read(MAX_PAGE_TO_PARSE + 1)
    stream.seek(0)
    if len(data) > MAX_PAGE_TO_PARSE:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _is_group(format_name: str) -> bool:
    return any(importer.GROUP for importer in IMPORTERS if format_name == importer.NAME)
