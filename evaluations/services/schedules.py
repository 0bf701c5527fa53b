"""From where and how often a source is refreshed: every change, by whoever vouches for the address."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from evaluations.importers.fields import closest, is_clean_line
from evaluations.importers.profiles import bundled_profiles
from evaluations.importers.registry import names
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service
from evaluations.models import Source, SourceSchedule
from evaluations.selectors.refreshing import FIELDS, schedule_digest, schedule_state
from evaluations.services.connectors import address_problem, key_problem
from evaluations.vocabulary import Connector

MAX_ADDRESS, MAX_SUBJECT, MAX_KEY_NAME = 1000, 300, 120
MAX_INTERVAL_MINUTES = 366 * 24 * 60
FETCHES_OTHERWISE = frozenset(FIELDS) - {"interval_minutes"}
"""A change of these makes what was seen before worth nothing."""


class ScheduleChanged(DomainError):
    """The schedule is no longer as the caller saw it."""

    code = "schedule_changed"
    kind = ErrorKind.CONFLICT


class ScheduleWish(NamedTuple):
    """What a schedule is to state. `format` and `profile` may be empty: the format is then recognised from the files."""

    connector: str
    address: str
    interval_minutes: int
    format: str = ""
    profile: str = ""
    subject: str = ""
    key_name: str = ""
    paused: bool = False


@service(refused="schedule.refused")
def set_schedule(
    *, actor: Actor, source: Source, wish: ScheduleWish, expected_digest: str = "", request_id: str = ""
) -> SourceSchedule:
    """State from where and how often a source is refreshed; stating what stands changes nothing.

    With `expected_digest` the schedule must still be as `schedule_digest` gave it. Raises `InputRefused`, `ScheduleChanged`.
    """
    return apply_set_schedule(actor=actor, source=source, wish=wish, expected_digest=expected_digest, request_id=request_id)


def apply_set_schedule(
    *, actor: Actor, source: Source, wish: ScheduleWish, expected_digest: str = "", request_id: str = ""
) -> SourceSchedule:
    """Set a schedule inside an open service transaction."""
    problems = _problems(wish)
    if problems:
        raise InputRefused(problems)
    # The source's own row is the lock: of two who set a first schedule at once, one finds the other's.
    Source.objects.select_for_update().get(pk=source.pk)
    schedule = SourceSchedule.objects.filter(source=source).first()
    if expected_digest and expected_digest != schedule_digest(schedule):
        raise ScheduleChanged("the schedule was changed since you saw it: look at it again")
    stated = {field: getattr(wish, field) for field in FIELDS}
    before = None if schedule is None else schedule_state(schedule)
    if schedule is not None and before == {**stated, "paused": wish.paused}:
        return schedule
    moment = now()
    is_new = schedule is None
    schedule = schedule or SourceSchedule(source=source)
    if (
        before is None
        or any(before[field] != stated[field] for field in FETCHES_OTHERWISE)
        or (before["paused"] and not wish.paused)
    ):
        schedule.due_at = moment
    if before is None or any(before[field] != stated[field] for field in FETCHES_OTHERWISE):
        schedule.marks, schedule.failed_runs = {}, 0
    schedule.due_at = min(schedule.due_at, moment + timedelta(minutes=wish.interval_minutes))
    for field, value in stated.items():
        setattr(schedule, field, value)
    schedule.paused_at = (schedule.paused_at or moment) if wish.paused else None
    schedule.set_by, schedule.set_at, schedule.queued_until = actor.reference, moment, None
    schedule.save()
    audit.record(
        audit.Event(
            action="schedule.made" if is_new else "schedule.changed",
            actor=actor,
            target=("source", source.key),
            old=before,
            new=schedule_state(schedule),
            request_id=request_id,
        )
    )
    return schedule


def apply_alarm_source(*, actor: Actor, schedule: SourceSchedule, why: str, at: datetime) -> bool:
    """Mark a source as dead inside an open service transaction; False where it is marked already, or has come back meanwhile.

    The next run that succeeds takes the mark away.
    """
    expected = {"alarmed_at": None, "succeeded_at": schedule.succeeded_at}
    if not SourceSchedule.claim(schedule.pk, expected=expected, moved_to={"alarmed_at": at}):
        return False
    new = {"why": why, "failed_runs": schedule.failed_runs}
    audit.record(audit.Event(action="source.alarmed", actor=actor, target=("source", schedule.source.key), new=new))
    return True


def _problems(wish: ScheduleWish) -> list[Problem]:
    found: list[Problem] = []

    def wrong(field: str, message: str, hint: str = "") -> None:
        found.append(Problem(message, field=field, hint=hint, code="invalid"))

    _words(wish, wrong)
    if wish.connector not in Connector.values:
        wrong("connector", f"`{wish.connector[:40]}` is no connector", f"one of {', '.join(Connector.values)}")
    elif problem := address_problem(wish.connector, wish.address):
        wrong("address", problem)
    if wish.format and wish.format not in names():
        wrong("format", f"unknown format `{wish.format[:40]}`", closest(wish.format, names(), what="formats"))
    if wish.profile and wish.profile not in bundled_profiles():
        wrong("profile", f"unknown profile `{wish.profile[:40]}`", closest(wish.profile, bundled_profiles(), what="profiles"))
    if problem := key_problem(wish.key_name):
        wrong("key_name", problem)
    if wish.key_name and wish.connector == Connector.FOLDER:
        wrong("key_name", "a folder takes no key")
    if not 1 <= wish.interval_minutes <= MAX_INTERVAL_MINUTES:
        wrong("interval_minutes", f"write a whole number of minutes, 1 to {MAX_INTERVAL_MINUTES}")
    return found


def _words(wish: ScheduleWish, wrong: Any) -> None:
    limits: Mapping[str, int] = {"address": MAX_ADDRESS, "subject": MAX_SUBJECT, "key_name": MAX_KEY_NAME}
    for field, limit in limits.items():
        text = getattr(wish, field)
        if text and (len(text) > limit or not is_clean_line(text)):
            wrong(field, f"write one line of at most {limit} characters")
