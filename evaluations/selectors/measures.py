"""What was measured about a subject version, in groups of metric, benchmark version and slice: for a page, however much there is."""

from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from evaluations.selectors.evidence import SEEN_COLUMNS, SeenObservation, seen_statement

SHOWN_EACH = 6
"""So many observations of a group are read: what may count before what cannot, the newest first."""


class MeasureGroup(NamedTuple):
    """One measure of one subject: how many observations there are, of how many sources, how many in dispute; and the newest."""

    total: int
    sources: int
    disputed: int
    newest: tuple[SeenObservation, ...]


# A group is paged over, so that a page costs what it shows; what lies behind it is counted where it lies.
_GROUPS = f"""
{seen_statement("true")}, groups AS (
    SELECT metric, benchmark, version, slice, count(*) AS total, count(DISTINCT source) AS sources,
        count(*) FILTER (WHERE ruling IN ('disputed', 'dispute_upheld')) AS disputed
    FROM seen GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4 LIMIT %(most)s OFFSET %(start)s
), ranked AS (
    SELECT g.total, g.sources, g.disputed, s.*, row_number() OVER (
        PARTITION BY s.metric, s.benchmark, s.version, s.slice
        ORDER BY s.ruling = 'retracted', s.identity_problem <> '', s.run_status <> 'complete', s.ended_at DESC NULLS LAST,
            s.evidence_id DESC, s.ordinal
    ) AS place
    FROM groups g JOIN seen s USING (metric, benchmark, version, slice)
)
SELECT total, sources, disputed, {SEEN_COLUMNS} FROM ranked WHERE place <= %(each)s
ORDER BY metric, benchmark, version, slice, place
"""  # noqa: S608


def measures_of(version_id: int, *, known_at: datetime, start: int, most: int) -> list[MeasureGroup]:
    """Return groups `start` to `start + most` of a subject version's measures, by metric, benchmark, version and slice; one query."""
    groups: dict[tuple[str, str, str, str], MeasureGroup] = {}
    given: dict[str, Any] = {"ids": [version_id], "known_at": known_at, "start": start, "most": most, "each": SHOWN_EACH}
    with connection.cursor() as cursor:
        cursor.execute(_GROUPS, given)
        for total, sources, disputed, *fields in cursor.fetchall():
            seen = SeenObservation._make(fields)
            key = seen.metric, seen.benchmark, seen.version, seen.slice
            held = groups.get(key, MeasureGroup(total, sources, disputed, ()))
            groups[key] = held._replace(newest=(*held.newest, seen))
    return list(groups.values())
