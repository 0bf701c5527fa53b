"""Drift: standing grants are looked at again whenever something under them moves, and stopped or told of as the policies say.

What a review does follows from what stands now, so it can run twice, late, or twice at once: a grant moves by claim, a notice has a
unique key, and what is already suspended is left.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from compliance.models import DriftNotice, Grant, GrantEvent, GrantReview
from compliance.selectors.access import all_live_roles
from compliance.selectors.drift import lines_of, open_requests
from compliance.selectors.marks import due_grants, marks_of
from compliance.selectors.reviewing import Case, read_cases, standing_grants
from compliance.services.findings import Finding, find
from compliance.services.grants import apply_moves
from compliance.services.notices import grant_notice, grant_path
from compliance.services.outbox import Notice, apply_notify_all
from compliance.services.sign_offs import refresh_dossier
from compliance.vocabulary import Cause, DriftCause, GrantMove, GrantStatus, NoticeKind, Role
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.bulk import insert_new
from evaluations.kernel.canonical import timestamp
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError
from evaluations.kernel.services import service
from policies.models import System

REVIEWED_AT_ONCE = 500
REVIEWED_IN_A_TASK = 2 * REVIEWED_AT_ONCE
REFRESHED_AT_ONCE = 50
JUDGED_WITHIN = timedelta(minutes=2)
"""A policy that has just begun to apply is given so long to be judged; whoever asks meanwhile is denied for want of a verdict."""


class Reviewed(NamedTuple):
    """How many active standing grants were looked at, how many of them were suspended, and how many notices are new."""

    looked_at: int
    suspended: int
    noticed: int


class Slice(NamedTuple):
    """One slice of a long walk: what was done, and after which id the next one starts (None: that was all)."""

    done: int
    last: int | None


def review_grants(*, actor: Actor, grant_ids: Sequence[int] = (), subject_version_ids: Sequence[int] = ()) -> Reviewed:
    """Review the active standing grants named, and those of these subject versions, a batch at a time.

    Not a service itself: it opens no transaction, and what it has done before an interruption stays done.
    """
    found = standing_grants(subject_version_ids=subject_version_ids) if subject_version_ids else []
    ids = sorted({*grant_ids, *found})
    total = Reviewed(0, 0, 0)
    for start in range(0, len(ids), REVIEWED_AT_ONCE):
        done = review_batch(actor=actor, grant_ids=ids[start : start + REVIEWED_AT_ONCE])
        total = Reviewed(*(held + more for held, more in zip(total, done, strict=True)))
    return total


def review_slice(
    *, actor: Actor, subject_version_ids: Sequence[int], after: int = 0, limit: int = REVIEWED_IN_A_TASK
) -> tuple[Reviewed, int | None]:
    """Review one slice of the grants of these subject versions; returns also after which grant the next starts, None at the end."""
    ids = standing_grants(subject_version_ids=subject_version_ids, after=after, limit=limit)
    return review_grants(actor=actor, grant_ids=ids), ids[-1] if len(ids) == limit else None


def review_due_grants(*, actor: Actor, after: int = 0, limit: int = REVIEWED_IN_A_TASK) -> tuple[Reviewed, int | None]:
    """Find by query one slice of the grants under which something moved since their last review, and review them.

    Returns what was done, and after which grant the next slice starts, None where none is left.
    """
    ids = due_grants(at=now(), after=after, limit=limit)
    return review_grants(actor=actor, grant_ids=ids), ids[-1] if len(ids) == limit else None


def refresh_requests(
    *, actor: Actor, subject_version_ids: Sequence[int] = (), policy_ids: Sequence[int] = (), after: int = 0
) -> Slice:
    """Refresh one slice of the open dossiers that may read otherwise now, so that void signatures show at once.

    Not a service itself: each request is refreshed in a transaction of its own. One that is refused is passed over.
    """
    waiting = open_requests(
        subject_version_ids=subject_version_ids, policy_ids=policy_ids, after=after, limit=REFRESHED_AT_ONCE, at=now()
    )
    for request in waiting:
        try:
            refresh_dossier(actor=actor, request=request)
        except DomainError:
            # Closed or expired meanwhile, or no longer to be built: the refusal is on record, and whoever signs meets it too.
            continue
    return Slice(len(waiting), waiting[-1].pk if len(waiting) == REFRESHED_AT_ONCE else None)


@service(refused="drift.refused")
def review_batch(*, actor: Actor, grant_ids: Sequence[int]) -> Reviewed:
    """Review grants in one transaction: suspend those that may not stand, and tell of what else moved, each once."""
    at = now()
    # The marks first: what is committed while the rest is read makes the grant due once more, and is never missed.
    marks = marks_of(grant_ids, at=at)
    unjudged = dict(GrantReview.objects.filter(grant__in=grant_ids).values_list("grant_id", "unjudged_since"))
    cases = read_cases(grant_ids, at=at)
    findings = {case.grant.pk: find(case, patient=at - (unjudged.get(case.grant.pk) or at) < JUDGED_WITHIN) for case in cases}
    events = _suspend(actor, cases, findings, at)
    suspended = {event.grant_id for event in events}
    noticed = _notice(actor, cases, findings, at)
    _tell(cases, events, noticed, at)
    rows = [
        GrantReview(
            grant=case.grant,
            # A grant that waits for its verdict stays due.
            seen="" if findings[case.grant.pk].waiting else marks.get(case.grant.pk, ""),
            reviewed_at=at,
            unjudged_since=(unjudged.get(case.grant.pk) or at) if findings[case.grant.pk].waiting else None,
        )
        for case in cases
        if case.grant.pk in suspended or findings[case.grant.pk].cause is None
    ]
    GrantReview.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["grant"], update_fields=["seen", "reviewed_at", "unjudged_since"]
    )
    return Reviewed(len(cases), len(events), len(noticed))


def _suspend(actor: Actor, cases: Sequence[Case], findings: Mapping[int, Finding], at: datetime) -> list[GrantEvent]:
    falling = {case.grant.pk: case.grant for case in cases if findings[case.grant.pk].cause is not None}
    if not falling:
        return []
    # All of them locked in one order before they move cause by cause; one that was certified anew meanwhile is looked at again.
    held = dict(
        Grant.objects.select_for_update()
        .filter(pk__in=falling, status=GrantStatus.ACTIVE)
        .order_by("pk")
        .values_list("pk", "dossier_id")
    )
    by_cause: defaultdict[Cause, list[Grant]] = defaultdict(list)
    for pk, grant in falling.items():
        cause = findings[pk].cause
        if cause is not None and held.get(pk) == grant.dossier_id:
            by_cause[cause].append(grant)
    events: list[GrantEvent] = []
    for cause, grants in by_cause.items():
        details = {grant.pk: findings[grant.pk].detail for grant in grants}
        events += apply_moves(actor=actor, grants=grants, move=GrantMove.SUSPENDED, cause=cause, at=at, details=details)
    return events


def _notice(actor: Actor, cases: Sequence[Case], findings: Mapping[int, Finding], at: datetime) -> list[DriftNotice]:
    rows = [
        DriftNotice(grant=case.grant, cause=alert.cause, key=alert.key, detail=alert.detail, actor=actor.reference, at=at)
        for case in cases
        for alert in sorted(findings[case.grant.pk].alerts, key=lambda alert: (alert.cause, alert.key))
    ]
    return apply_note_drift(actor=actor, rows=rows)


def apply_note_drift(*, actor: Actor, rows: Sequence[DriftNotice]) -> list[DriftNotice]:
    """Record what is told without stopping anything inside an open service transaction; return what nobody told before."""
    fresh = insert_new(rows)
    if fresh:
        audit.record(
            *(
                audit.Event(
                    action="drift.noticed",
                    actor=actor,
                    target=("grant", str(row.grant.uid)),
                    new={"cause": str(row.cause), "key": row.key, **row.detail},
                )
                for row in fresh
            )
        )
    return fresh


def _tell(cases: Sequence[Case], events: Sequence[GrantEvent], noticed: Sequence[DriftNotice], at: datetime) -> None:
    if not events and not noticed:
        return
    about = {case.grant.pk: case for case in cases}
    people = People(at)
    notices = [
        grant_notice(
            kind=NoticeKind.GRANT_SUSPENDED,
            event=event,
            title=f"Suspended: {_named(about[event.grant_id].grant, about[event.grant_id].systems)}",
            lines=list(lines_of(event.detail)),
            people=people.who_can_act(about[event.grant_id].grant, about[event.grant_id].systems),
        )
        for event in events
    ]
    notices += [
        told_notice(row, about[row.grant_id].systems, people.who_can_act(about[row.grant_id].grant, about[row.grant_id].systems))
        for row in noticed
    ]
    apply_notify_all(notices, at=at)


def told_notice(row: DriftNotice, systems: Iterable[System], people: Iterable[UUID]) -> Notice:
    """Return the notice of something that was told and suspends nothing; its cause is what was told, so that it is told once."""
    return Notice(
        NoticeKind.DRIFT_NOTICED,
        ("grant", str(row.grant.uid)),
        f"Drift: {_named(row.grant, systems)}",
        cause=f"{row.cause}:{row.key}",
        lines=[*lines_of(row.detail), f"The grant stands: {DriftCause(row.cause).label}."],
        link=grant_path(row.grant),
        data={"grant": str(row.grant.uid), "cause": str(row.cause), "at": timestamp(row.at), "detail": row.detail},
        people=people,
    )


class People:
    """Who can act on a grant: who asked for it, the owners of its systems, and security."""

    def __init__(self, at: datetime) -> None:
        self._security: list[UUID] = []
        self._owners: defaultdict[str, list[UUID]] = defaultdict(list)
        for membership in all_live_roles(at=at, roles=[Role.SYSTEM_OWNER, Role.SECURITY]):
            if membership.role == Role.SECURITY:
                self._security.append(membership.person_id)
            else:
                team: Any = membership.team or membership.person.team
                self._owners[team.key if team else ""].append(membership.person_id)

    def who_can_act(self, grant: Grant, systems: Iterable[System]) -> list[UUID]:
        owners = [person for system in systems if system.owner for person in self._owners[system.owner]]
        return [grant.requester_id, *owners, *self._security]


def _named(grant: Grant, systems: Iterable[System]) -> str:
    version = grant.subject_version
    places = ", ".join(system.title or system.key for system in systems)
    return f"{version.subject.key} v{version.number} on {places}"
