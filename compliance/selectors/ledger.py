"""The trail and the log, read: entries by what they are about, and the rows that trees and exports are made of."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from django.db import connection
from django.db.models import QuerySet

from compliance.models import Checkpoint, LedgerEntry, LedgerLeaf, LedgerPending, SigningKey

# `{conditions}` is filled with texts of this module; what was asked for travels beside them.
_FROM = """
FROM compliance_ledgerleaf leaf JOIN compliance_ledgerentry entry ON entry.id = leaf.entry_id
WHERE leaf."index" >= %s AND leaf."index" < %s{conditions}
"""
_READ = f'SELECT leaf."index", leaf.leaf_hash, entry.content {_FROM} ORDER BY leaf."index" LIMIT %s'
_COUNT = f"SELECT count(*) {_FROM}"
_LEAVES = 'SELECT leaf_hash FROM compliance_ledgerleaf WHERE "index" >= %s AND "index" < %s ORDER BY "index"'
_TILES = """
SELECT level, number, hashes FROM compliance_ledgertile
JOIN unnest(%s::smallint[], %s::bigint[]) AS wanted(l, n) ON level = l AND number = n
"""
_ROOTS = """
SELECT level, root FROM compliance_ledgertile
JOIN unnest(%s::smallint[], %s::bigint[], %s::bigint[]) AS wanted(l, first, behind)
    ON level = l AND number >= first AND number < behind
ORDER BY level, number
"""


@dataclass(slots=True)
class EntryRow:
    """One sealed entry as the log holds it."""

    index: int
    leaf_hash: bytes
    content: bytes


class EntryFilter(NamedTuple):
    """Which entries are asked for; empty parts ask for nothing. `actor` is `kind:id`, `target` `kind:id` or a bare kind."""

    actor: str = ""
    action: str = ""
    target: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_empty(self) -> bool:
        return not any(self)


EVERYTHING = EntryFilter()


def search_entries(wanted: EntryFilter, *, before_id: int | None = None) -> QuerySet[LedgerEntry]:
    """Return entries newest first, each with its leaf once sealed. `before_id` is the cursor: new entries never move a page."""
    rows = LedgerEntry.objects.select_related("leaf").order_by("-id")
    if wanted.actor:
        rows = rows.filter(actor=wanted.actor)
    if wanted.action:
        rows = rows.filter(action=wanted.action)
    if wanted.target:
        kind, colon, identity = wanted.target.partition(":")
        rows = rows.filter(target_kind=kind, **({"target_id": identity} if colon else {}))
    if wanted.since is not None:
        rows = rows.filter(recorded_at__gte=wanted.since)
    if wanted.until is not None:
        rows = rows.filter(recorded_at__lt=wanted.until)
    return rows if before_id is None else rows.filter(id__lt=before_id)


def last_checkpoint() -> Checkpoint | None:
    """Return the newest checkpoint, or None before the first sealing."""
    return Checkpoint.objects.order_by("-size").first()


def checkpoint_covering(index: int) -> Checkpoint | None:
    """Return the first stored checkpoint that covers an index: the same one for ever."""
    return Checkpoint.objects.filter(size__gt=index).order_by("size").first()


def leaf_count() -> int:
    """Return how many entries are sealed. Indexes have no gap, so the last one says it."""
    last = LedgerLeaf.objects.order_by("-index").values_list("index", flat=True).first()
    return 0 if last is None else int(last) + 1


def pending_count() -> int:
    """Return how many entries wait for their index."""
    return LedgerPending.objects.count()


def live_signing_key() -> SigningKey | None:
    """Return the key whose announcement is the newest, or None before the first sealing."""
    return SigningKey.objects.filter(until_at=None).first()


def signing_keys(*, up_to_size: int | None = None) -> list[SigningKey]:
    """Return the keys announced in a tree of this size, oldest first."""
    rows = SigningKey.objects.order_by("announced_index")
    return list(rows if up_to_size is None else rows.filter(announced_index__lt=up_to_size))


def read_tiles(names: Iterable[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
    """Return the hashes of the full tiles among (level, number) pairs."""
    wanted = list(names)
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(_TILES, [[level for level, _ in wanted], [number for _, number in wanted]], binary=True)
        return {(level, number): hashes for level, number, hashes in cursor.fetchall()}


def read_leaf_hashes(start: int, end: int) -> list[bytes]:
    """Return the leaf hashes of the indexes from `start` to before `end`."""
    if start == end:
        return []
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(_LEAVES, [start, end], binary=True)
        return [row[0] for row in cursor.fetchall()]


def read_tile_roots(spans: Sequence[tuple[int, int, int]]) -> dict[int, list[bytes]]:
    """Return, for each (level, start, end), the roots of that level's full tiles with numbers from `start` to before `end`."""
    found: dict[int, list[bytes]] = {level: [] for level, _, _ in spans}
    wanted = [span for span in spans if span[1] < span[2]]
    if wanted:
        connection.ensure_connection()
        with psycopg.Cursor(connection.connection) as cursor:
            cursor.execute(_ROOTS, [list(column) for column in zip(*wanted, strict=True)], binary=True)
            for level, root in cursor.fetchall():
                found[level].append(root)
    return found


def read_entries(start: int, end: int) -> list[EntryRow]:
    """Return the sealed entries with indexes from `start` to before `end`, in order."""
    return read_filtered(EVERYTHING, start=start, end=end, limit=end - start)


def read_filtered(wanted: EntryFilter, *, start: int, end: int, limit: int) -> list[EntryRow]:
    """Return the first `limit` sealed entries that match, with indexes from `start` to before `end`, in order."""
    conditions, values = _conditions(wanted)
    connection.ensure_connection()
    # The driver's plain cursor, for its binary form: bytes as hexadecimal text would be twice as many, and be turned back here.
    with psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(_READ.format(conditions=conditions), [start, end, *values, limit], binary=True)
        return [EntryRow(*row) for row in cursor.fetchall()]


def count_filtered(wanted: EntryFilter, *, end: int) -> int:
    """Return how many sealed entries before `end` match."""
    conditions, values = _conditions(wanted)
    with connection.cursor() as cursor:
        cursor.execute(_COUNT.format(conditions=conditions), [0, end, *values])
        return int(cursor.fetchone()[0])


def _conditions(wanted: EntryFilter) -> tuple[str, list[Any]]:
    kind, colon, identity = wanted.target.partition(":")
    parts: Sequence[tuple[str, Any]] = (
        ("entry.actor = %s", wanted.actor),
        ("entry.action = %s", wanted.action),
        ("entry.target_kind = %s", kind),
        ("entry.target_id = %s", identity if colon else ""),
        ("entry.recorded_at >= %s", wanted.since),
        ("entry.recorded_at < %s", wanted.until),
    )
    chosen = [(text, value) for text, value in parts if value]
    return "".join(f" AND {text}" for text, _ in chosen), [value for _, value in chosen]
