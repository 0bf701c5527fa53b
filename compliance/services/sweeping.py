"""Tidying: what the clock has decided already is written down, and whoever can act is told.

Nothing waits for it: whether a grant may be used or a request signed is read from the clock at the moment of use. The one thing that
does not happen without it is a beginning: a later start begins after another look at its signers.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from compliance.models import Grant, ServiceBeat, SignOffRequest, Waiver
from compliance.selectors.proposals import plain_value
from compliance.selectors.recipients import people_of_grants
from compliance.selectors.signers import lapsed_seats
from compliance.services.beats import record_beat
from compliance.services.grants import apply_moves
from compliance.services.notices import apply_tell_request, grant_notice, question_of
from compliance.services.outbox import apply_notify_all
from compliance.services.proofs import apply_hold_people
from compliance.services.requests import apply_close_request
from compliance.services.stopping import apply_tell_suspended
from compliance.signals import grants_to_review
from compliance.vocabulary import Cause, GrantMove, GrantStatus, NoticeKind, RequestStatus
from evaluations.kernel.actor import Actor, system_job
from evaluations.kernel.canonical import timestamp
from evaluations.kernel.clock import now
from evaluations.kernel.services import service

JOB = "sweep-grants"
BATCH = 500
MOST_BATCHES = 20
FIRST_LOOK_BACK = timedelta(days=7)


class Swept(NamedTuple):
    """What one run wrote down. `suspended` counts grants that were not certified in time, and those whose signers no longer stand."""

    begun: int
    suspended: int
    expired: int
    closed: int
    waivers_ended: int


def sweep(*, task_id: str = "", at: datetime | None = None) -> Swept:
    """Write down what the clock has decided by `at` (by default now). Safe to run twice and by several at once.

    Needs to be outside of any transaction. What it does not get done in one run, the next one does.
    """
    moment = at or now()
    actor = system_job(JOB, task_id=task_id)
    expired = _until_none_is_left(partial(expire_ended_grants, actor=actor, at=moment))
    suspended = _until_none_is_left(partial(suspend_uncertified_grants, actor=actor, at=moment))
    begun = 0
    for grant in waiting_to_begin(at=moment)[:BATCH]:
        held = begin_grant(actor=actor, grant=grant, at=moment)
        begun += held.status == GrantStatus.ACTIVE and held.begun_at is not None
        suspended += held.status == GrantStatus.SUSPENDED
    closed = _until_none_is_left(partial(close_expired_requests, actor=actor, at=moment))
    return Swept(begun, suspended, expired, closed, _announce_ended_waivers(moment))


def waiting_to_begin(*, at: datetime) -> QuerySet[Grant]:
    """Return active grants whose start has come and that nobody has begun."""
    return Grant.objects.filter(status=GrantStatus.ACTIVE, begun_at=None, starts_at__lte=at, ends_at__gt=at).order_by("id")


@service(refused="grant.refused")
def begin_grant(*, actor: Actor, grant: Grant, at: datetime | None = None) -> Grant:
    """Begin a grant whose start has come, where everybody who signed it still could; else suspend it, naming who could not.

    One that has begun, or stands elsewhere by now, is returned as it is.
    """
    moment = at or now()
    dossier = grant.dossier
    if dossier is not None:
        apply_hold_people(set(dossier.seats.values_list("person_id", flat=True)))
    # The people first, as whoever signs does; then the grant.
    held = waiting_to_begin(at=moment).select_for_update().filter(pk=grant.pk, dossier=dossier).first()
    if held is None:
        return grant.reload()
    lapsed = lapsed_seats(dossier, at=moment) if dossier is not None else {}
    if lapsed:
        signers = [{"person": str(person), "reasons": reasons} for person, reasons in sorted(lapsed.items())]
        events = apply_moves(
            actor=actor,
            grants=[held],
            move=GrantMove.SUSPENDED,
            cause=Cause.SIGNER_NO_LONGER_ELIGIBLE,
            at=moment,
            detail={"signers": signers},
        )
        apply_tell_suspended(events=events, at=moment)
        return held.reload()
    events = apply_moves(actor=actor, grants=[held], move=GrantMove.BEGUN, cause=Cause.SIGNED, at=moment)
    people = people_of_grants([held], at=moment)
    apply_notify_all(
        [
            grant_notice(
                kind=NoticeKind.GRANT_BEGAN,
                event=event,
                title="A grant has begun",
                lines=[f"It ends at {held.ends_at:%Y-%m-%d %H:%M} UTC."],
                people=people[held.pk],
            )
            for event in events
        ],
        at=moment,
    )
    return held.reload()


@service(refused="grant.refused")
def expire_ended_grants(*, actor: Actor, at: datetime) -> int:
    """Write down that grants have ended, one batch; return how many."""
    ended = _batch(Grant.objects.filter(status__in=[GrantStatus.ACTIVE, GrantStatus.SUSPENDED], ends_at__lte=at))
    details = {grant.pk: {"ends_at": timestamp(grant.ends_at)} for grant in ended}
    return len(apply_moves(actor=actor, grants=ended, move=GrantMove.EXPIRED, cause=Cause.ENDED, at=at, details=details))


@service(refused="grant.refused")
def suspend_uncertified_grants(*, actor: Actor, at: datetime) -> int:
    """Write down that grants were not certified in time, one batch, and tell; return how many."""
    missed = _batch(Grant.objects.filter(status=GrantStatus.ACTIVE, recertify_by__lte=at, ends_at__gt=at))
    events = apply_moves(actor=actor, grants=missed, move=GrantMove.SUSPENDED, cause=Cause.RECERTIFICATION_MISSED, at=at)
    apply_tell_suspended(events=events, at=at)
    return len(events)


@service(refused="request.refused")
def close_expired_requests(*, actor: Actor, at: datetime) -> int:
    """Close requests that were not signed in time, one batch, and tell who asked; return how many."""
    expired = _batch(SignOffRequest.objects.filter(status=RequestStatus.OPEN, expires_at__lte=at))
    dossiers = {
        request.pk: request
        for request in SignOffRequest.objects.filter(pk__in=[request.pk for request in expired]).select_related("dossier")
    }
    for request in dossiers.values():
        apply_close_request(actor=actor, request=request, status=RequestStatus.EXPIRED, because="not signed in time", at=at)
        asked = question_of(plain_value(bytes(request.dossier.content))) if request.dossier else str(request)
        request.refresh_from_db(fields=["status"])
        apply_tell_request(
            request=request,
            kind=NoticeKind.REQUEST_DECIDED,
            title=f"{RequestStatus.EXPIRED.label}: {asked}",
            cause=f"status:{RequestStatus.EXPIRED}",
            people=[request.requester_id],
            at=at,
            lines=["File it anew where it is still needed."],
        )
    return len(dossiers)


def _until_none_is_left(step: Callable[[], int]) -> int:
    done = 0
    for _ in range(MOST_BATCHES):
        moved = step()
        done += moved
        if not moved:
            break
    return done


def _batch(rows: QuerySet[Any]) -> list[Any]:
    """Take some rows that nobody else works on; locked in the order of their ids."""
    return list(rows.order_by("id").select_for_update(skip_locked=True)[:BATCH])


def _announce_ended_waivers(at: datetime) -> int:
    """Announce subject versions of which a waiver has ended since the last run, and note this one."""
    beat = ServiceBeat.objects.filter(name=JOB).first()
    since = beat.beat_at if beat else at - FIRST_LOOK_BACK
    ended = Waiver.objects.filter(Q(ends_at__gt=since, ends_at__lte=at), revocation=None)
    versions = sorted(set(ended.order_by().values_list("subject_version_id", flat=True)))
    if versions:
        grants_to_review.send_robust(sender=Waiver, subject_version_ids=versions)
    record_beat(name=JOB, beat_at=at)
    return len(versions)
