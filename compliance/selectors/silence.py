"""Which scheduled sources have fallen silent, and when what they vouched for grows too old."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import connection

from evaluations.models import RefreshRun, SourceSchedule

FAILED_RUNS = 3
"""After so many runs in a row without success a source is taken for dead."""
INTERVALS = 2
"""Likewise after so many intervals without one, whatever became of the runs."""
GRACE = timedelta(minutes=15)
AHEAD = timedelta(days=3)
"""A source that fails at all is told of so long before its evidence grows too old for some verdict."""

# The nearest instant at which age changes a verdict on somebody whom evidence of the source is about. Wider than what decides: what
# did not decide today may tomorrow.
_AGES = """
SELECT min(standing.due_at) FROM policies_standing standing
WHERE standing.due_at > %s AND standing.subject_version_id IN (
    SELECT alias.subject_version_id FROM evaluations_aliasassignment alias
    JOIN evaluations_evidence evidence ON evidence.subject_as_written = alias.name_as_written
    WHERE evidence.source_id = %s
)
"""


class Silence(NamedTuple):
    """A source that is to be told of: why, its last run, and when its evidence first grows too old."""

    schedule: SourceSchedule
    why: str
    last_run: RefreshRun | None
    ages_at: datetime | None


def silences(*, at: datetime) -> Iterator[Silence]:
    """Yield the silent sources that nobody was told of yet."""
    watched = SourceSchedule.objects.filter(paused_at=None, alarmed_at=None).select_related("source").order_by("id")
    for schedule in watched.iterator(chunk_size=1_000):
        overdue = (schedule.succeeded_at or schedule.set_at) + INTERVALS * timedelta(minutes=schedule.interval_minutes) + GRACE
        if not schedule.failed_runs and at < overdue:
            continue
        ages_at = _ages_at(schedule.source_id, at)
        why = ""
        if schedule.failed_runs >= FAILED_RUNS:
            why = f"{schedule.failed_runs} refreshes in a row failed"
        elif at >= overdue:
            why = f"no refresh succeeded since {schedule.succeeded_at or schedule.set_at:%Y-%m-%d %H:%M} UTC"
        elif ages_at is not None and ages_at <= at + AHEAD:
            why = "its last refresh failed, and its evidence is about to be too old"
        if why:
            yield Silence(schedule, why, schedule.source.refresh_runs.order_by("-id").first(), ages_at)


def _ages_at(source_id: int, at: datetime) -> datetime | None:
    with connection.cursor() as cursor:
        cursor.execute(_AGES, [at, source_id])
        found: datetime | None = cursor.fetchone()[0]
    return found
