"""Reads about schedules and refresh runs."""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from evaluations.kernel.canonical import digest
from evaluations.kernel.errors import NotFound
from evaluations.models import RefreshRun, SourceSchedule

FIELDS = ("connector", "address", "format", "profile", "subject", "key_name", "interval_minutes")
"""What is stated in a schedule, beside whether it is paused."""


def schedule_state(schedule: SourceSchedule) -> dict[str, Any]:
    """Return what stands in a schedule, as entries tell of it."""
    return {**{field: getattr(schedule, field) for field in FIELDS}, "paused": schedule.paused_at is not None}


def schedule_digest(schedule: SourceSchedule | None) -> str:
    """Return the digest of `schedule_state`: what a caller saw, so that a change in between is noticed. None has one too."""
    state: Mapping[str, Any] | None = None if schedule is None else schedule_state(schedule)
    return digest(state)


def schedule_of(source_id: int) -> SourceSchedule | None:
    """Return the schedule of a source, with `source` loaded, or None."""
    return SourceSchedule.objects.select_related("source").filter(source=source_id).first()


def scheduled_source(key: str) -> int:
    """Return the row id of the source with this key. Raises `NotFound` where there is none, or none with a schedule."""
    found = SourceSchedule.objects.filter(source__key=key).values_list("source_id", flat=True).first()
    if found is None:
        raise NotFound(f"no source `{key}` with a schedule")
    return int(found)


def due_schedules(*, at: datetime) -> QuerySet[SourceSchedule]:
    """Return schedules that are due and that nobody was sent to lately, longest due first; with those whose run is
    open: its message, or its worker, may be lost."""
    still_open = RefreshRun.objects.filter(source=OuterRef("source"), ended_at=None)
    free = Q(queued_until=None) | Q(queued_until__lte=at)
    by_clock = Q(paused_at=None, due_at__lte=at)
    return SourceSchedule.objects.filter(free).filter(by_clock | Exists(still_open)).order_by("due_at", "id")


def open_run(source_id: int) -> RefreshRun | None:
    """Return the run of a source that is asked for or running, or None."""
    return RefreshRun.objects.filter(source=source_id, ended_at=None).first()


def find_runs(*, source: str | None = None, outcome: str | None = None) -> QuerySet[Any]:
    """Return refresh runs with their sources."""
    rows = RefreshRun.objects.select_related("source")
    if source is not None:
        rows = rows.filter(source__key=source)
    return rows if outcome is None else rows.filter(outcome=outcome)


def get_run(*, uid: uuid.UUID) -> RefreshRun | None:
    return find_runs().filter(uid=uid).first()
