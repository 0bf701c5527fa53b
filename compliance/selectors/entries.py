"""What the API asks of the trail: its search words, entries by them, and exports.

The search words are read here once, for addresses and for the bodies of orders: each reader returns the value, or raises
`ValueError` saying what to write instead.
"""

import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from compliance.models import AuditExport, LedgerEntry, ServiceToken
from compliance.selectors.ledger import EntryFilter, search_entries
from compliance.vocabulary import ExportStatus
from evaluations.kernel.actor import ActorKind
from evaluations.kernel.clock import parse_instant
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, NotFound

ACTION_PATTERN = "^[a-z_]+\\.[a-z_]+$"
ACTOR_PATTERN = f"^({'|'.join(ActorKind)}):.+$"
TARGET_PATTERN = "^[a-z_]+(:.+)?$"
WORD_LIMIT = 261
"""Characters of a search word: a kind of 60, a colon, an id of 200."""
EARLIEST_YEAR = 1970
PART_BYTES = 1024 * 1024

# Control characters and halves of pairs: no column, and no filter kept as JSON, can hold all of them.
_UNWRITTEN = re.compile("[\\x00-\\x1f\\x7f\\ud800-\\udfff]")


class ExportNotReady(DomainError):
    """The file of an export that is not whole yet, or never will be."""

    code = "export_not_ready"
    kind = ErrorKind.CONFLICT


def read_action(given: str) -> str:
    """Read `noun.past_participle`."""
    return _matching(ACTION_PATTERN, given, "write an action such as evidence.recorded")


def read_actor(given: str) -> str:
    """Read `kind:id`."""
    return _matching(ACTOR_PATTERN, given, f"write kind:id, with one of the kinds {', '.join(ActorKind)}")


def read_target(given: str) -> str:
    """Read `kind:id`, or a bare kind."""
    return _matching(TARGET_PATTERN, given, "write kind:id such as verdict:…, or a kind alone")


def read_moment(given: str) -> datetime:
    """Read an instant with its offset from UTC, from 1970 on; a bare date means its midnight in UTC."""
    try:
        moment = parse_instant(given, field="")
    except InputRefused as refusal:
        hint = refusal.problems[0].hint
        raise ValueError(f"{hint} (in an address, + is written %2B)" if " " in given else hint) from None
    except OverflowError:  # an instant whose date in UTC lies before the first year or behind the last
        raise ValueError(f"write a time between the years {EARLIEST_YEAR} and 9999") from None
    if moment.year < EARLIEST_YEAR:
        raise ValueError(f"write a time between the years {EARLIEST_YEAR} and 9999")
    return moment


READERS: Mapping[str, Callable[[str], Any]] = {
    "actor": read_actor,
    "action": read_action,
    "target": read_target,
    "since": read_moment,
    "until": read_moment,
}
"""The parts of an `EntryFilter`, each with its reader."""


def find_entries(*, from_index: int | None = None, to_index: int | None = None, **wanted: Any) -> QuerySet[LedgerEntry]:
    """Return entries, each with its leaf once sealed. `wanted` are parts of an `EntryFilter`; a range of indexes, both ends
    included, leaves out what has no index yet.
    """
    rows = search_entries(EntryFilter(**wanted))
    if from_index is not None:
        rows = rows.filter(leaf__index__gte=from_index)
    return rows if to_index is None else rows.filter(leaf__index__lte=to_index)


def get_entry(*, uid: uuid.UUID) -> LedgerEntry | None:
    """Return one entry, with its leaf once sealed."""
    return LedgerEntry.objects.select_related("leaf").filter(uid=uid).first()


def token_names(ids: Collection[uuid.UUID]) -> dict[str, str]:
    """Return the names of tokens by their ids as text."""
    if not ids:
        return {}
    return {str(key): name for key, name in ServiceToken.objects.filter(pk__in=ids).values_list("pk", "name")}


def find_exports(*, status: str | None = None, format: str | None = None) -> QuerySet[AuditExport]:  # noqa: A002
    """Return exports, each with its checkpoint, newest first."""
    rows = AuditExport.objects.select_related("checkpoint").order_by("-id")
    if status is not None:
        rows = rows.filter(status=status)
    return rows if format is None else rows.filter(format=format)


def get_export(*, uid: uuid.UUID) -> AuditExport | None:
    """Return one export."""
    return find_exports().filter(uid=uid).first()


def is_kept_here(job: AuditExport) -> bool:
    """True for an export whose file lies in the export directory: a command writes where its operator says, and what lies there
    now is no business of a server.
    """
    return Path(job.path).parent == Path(settings.AUDIT_EXPORT_DIR).absolute()


def read_export(job: AuditExport) -> Iterator[bytes]:
    """Return the file of an export, part by part. Raises `ExportNotReady`, and `NotFound` where it is kept no more."""
    if job.status != ExportStatus.DONE:
        failed = job.status == ExportStatus.FAILED
        raise ExportNotReady("this export failed: order another one" if failed else "the file is not whole yet: try again soon")
    path = Path(job.path)
    try:
        kept = is_kept_here(job) and path.stat().st_size == job.file_bytes
    except OSError:
        kept = False
    if not kept:
        raise NotFound("the file of this export is not kept here; the same range, ordered again, is made of the same bytes")
    return _parts(path)


def _parts(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while part := stream.read(PART_BYTES):
            yield part


def _matching(pattern: str, given: str, hint: str) -> str:
    if len(given) > WORD_LIMIT or _UNWRITTEN.search(given) or not re.fullmatch(pattern, given):
        raise ValueError(hint)
    return given
