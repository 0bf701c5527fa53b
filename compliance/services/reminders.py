"""Reminders: 14, 7 and 1 days before a grant ends, is to be certified anew, or loses evidence to age; and reviews that are due.

Each is queued once, whatever runs twice: the outbox keeps one message for each grant, matter and number of days. A run that comes
late tells the nearest alone.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from compliance.models import Grant
from compliance.selectors.break_glass import unreviewed
from compliance.selectors.grants import with_standing
from compliance.selectors.recipients import holders_of, people_of_grants
from compliance.selectors.resting import evidence_due
from compliance.services.notices import grant_path
from compliance.services.outbox import Notice, apply_notify_all
from compliance.vocabulary import EffectiveStatus, GrantKind, NoticeKind, Role
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor, system_job
from evaluations.kernel.canonical import timestamp
from evaluations.kernel.clock import now
from evaluations.kernel.services import service

JOB = "send-reminders"
DAYS = (1, 7, 14)
BATCH = 500


class _Due(NamedTuple):
    """Something that comes upon a grant: the kind of its notice, a word for it, when, since when that is known, and what is said."""

    kind: NoticeKind
    what: str
    when: datetime
    since: datetime | None
    sentence: str


def send_reminders(*, task_id: str = "", at: datetime | None = None) -> int:
    """Queue the reminders that are due at `at` (by default now); return how many messages are new. Needs to be outside of any
    transaction."""
    moment = at or now()
    actor = system_job(JOB, task_id=task_id)
    queued = remind_of_reviews(actor=actor, at=moment)
    after = 0
    while True:
        grants = _page(after, moment)
        if not grants:
            return queued
        queued += remind_of_grants(actor=actor, grants=grants, at=moment)
        after = grants[-1].pk


@service(refused="reminder.refused")
def remind_of_grants(*, actor: Actor, grants: Sequence[Grant], at: datetime) -> int:
    """Queue what is due for these grants, to whoever asked for them and the owners of their systems."""
    people = people_of_grants(grants, at=at)
    due = evidence_due(grants, at=at, until=at + timedelta(days=max(DAYS)))
    notices = []
    for grant in grants:
        for item in _what_comes(grant, due.get(grant.pk)):
            days = nearest(item.when, since=item.since, at=at)
            if days is not None:
                notices.append(_notice(grant, item, days, people[grant.pk]))
    return _queue(actor, notices, at)


@service(refused="reminder.refused")
def remind_of_reviews(*, actor: Actor, at: datetime) -> int:
    """Tell administrators, once a day, of each break-glass whose review is overdue."""
    overdue = list(unreviewed(at=at).order_by("id"))
    people = holders_of((Role.ADMINISTRATOR,), at=at)
    notices = [
        Notice(
            NoticeKind.REVIEW_DUE,
            ("grant", str(grant.uid)),
            "A break-glass was not reviewed in time",
            cause=f"day:{at:%Y-%m-%d}",
            lines=[grant.reason, "Ask for its review anew, and have people sign it: until then its opener opens no other."],
            link=grant_path(grant),
            data={"grant": str(grant.uid), "opened_at": grant.starts_at},
            people=people,
        )
        for grant in overdue
    ]
    return _queue(actor, notices, at)


def nearest(when: datetime, *, since: datetime | None, at: datetime) -> int | None:
    """Return of how many days before `when` it is time to remind at an instant; None for none.

    Only the nearest is told. One that would lie before `since`, when it was agreed, is none: nobody needs reminding of what she has
    just signed.
    """
    if when <= at:
        return None
    for days in DAYS:
        moment = when - timedelta(days=days)
        if moment <= at:
            return days if since is None or moment > since else None
    return None


def _page(after: int, at: datetime) -> list[Grant]:
    live = with_standing(Grant.objects.filter(pk__gt=after, kind=GrantKind.STANDING), at=at)
    live = live.filter(standing__in=[EffectiveStatus.ACTIVE, EffectiveStatus.NOT_BEGUN])
    return list(live.select_related("subject_version__subject").order_by("id")[:BATCH])


def _what_comes(grant: Grant, evidence_ages: datetime | None) -> Iterable[_Due]:
    yield _Due(NoticeKind.GRANT_ENDING, "end", grant.ends_at, grant.starts_at, "it ends: ask for its renewal")
    if grant.recertify_by is not None and grant.recertify_by < grant.ends_at:
        certified = grant.recertify_by - timedelta(days=grant.recertify_every_days or 0)
        yield _Due(
            NoticeKind.GRANT_ENDING,
            "recertification",
            grant.recertify_by,
            certified,
            "it is suspended unless it is certified anew",
        )
    if evidence_ages is not None:
        yield _Due(
            NoticeKind.EVIDENCE_ENDING, "evidence", evidence_ages, None, "evidence that it rests on becomes too old: measure anew"
        )


def _notice(grant: Grant, due: _Due, days: int, people: Iterable[UUID]) -> Notice:
    left = "1 day" if days == 1 else f"{days} days"
    return Notice(
        due.kind,
        ("grant", str(grant.uid)),
        f"Grant of {grant.subject_version.subject.key}: within {left} {due.sentence}",
        # The instant too: a new date, after a renewed certification, is another matter.
        cause=f"{due.what}:{timestamp(due.when)}:{days}",
        lines=[f"At {due.when:%Y-%m-%d %H:%M} UTC {due.sentence}."],
        link=grant_path(grant),
        data={"grant": str(grant.uid), "what": due.what, "at": due.when, "days": days},
        people=people,
    )


def _queue(actor: Actor, notices: Sequence[Notice], at: datetime) -> int:
    queued = apply_notify_all(notices, at=at) if notices else 0
    if queued:
        audit.record(
            audit.Event(action="reminder.queued", actor=actor, target=("service", JOB), new={"messages": queued, "at": at})
        )
    return queued
