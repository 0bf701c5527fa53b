"""Grants: made, moved and ended. Every move is a claim on the row and a fact with its cause."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Case, F, When
from django.db.models.functions import Coalesce

from compliance.models import Dossier, Grant, GrantEvent, GrantSystem, SignOffRequest
from compliance.selectors.proposals import AccessProposal
from compliance.services.requests import RequestClosed
from compliance.signals import grants_to_review
from compliance.vocabulary import Cause, GrantMove, GrantStatus
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.bulk import execute_with_arrays
from evaluations.kernel.errors import DomainError, ErrorKind

LIVE = (GrantStatus.ACTIVE, GrantStatus.SUSPENDED)
_FROM: Mapping[GrantMove, tuple[GrantStatus, ...]] = {
    GrantMove.BEGUN: (GrantStatus.ACTIVE,),
    GrantMove.SUSPENDED: (GrantStatus.ACTIVE,),
    GrantMove.REINSTATED: (GrantStatus.SUSPENDED,),
    GrantMove.RECERTIFIED: (GrantStatus.ACTIVE,),
    GrantMove.EXPIRED: LIVE,
    GrantMove.REVOKED: LIVE,
}
_BECOMES: Mapping[GrantMove, GrantStatus] = {
    GrantMove.BEGUN: GrantStatus.ACTIVE,
    GrantMove.SUSPENDED: GrantStatus.SUSPENDED,
    GrantMove.REINSTATED: GrantStatus.ACTIVE,
    GrantMove.RECERTIFIED: GrantStatus.ACTIVE,
    GrantMove.EXPIRED: GrantStatus.EXPIRED,
    GrantMove.REVOKED: GrantStatus.REVOKED,
}


_LOCK = """
SELECT id, status, dossier_id, recertify_by FROM compliance_grant
WHERE id = ANY(%s) AND status = ANY(%s) ORDER BY id FOR UPDATE
"""
_NUMBERS = "SELECT grant_id, max(number) FROM compliance_grantevent WHERE grant_id = ANY(%s) GROUP BY grant_id"
_INSERT = """
INSERT INTO compliance_grantevent (grant_id, number, move, status, cause, detail, dossier_id, recertify_by, actor, at)
SELECT grant_id, number, %(move)s, %(status)s, %(cause)s, detail::jsonb, dossier_id, recertify_by, %(actor)s, %(at)s
FROM unnest(%(grants)b::bigint[], %(numbers)b::int[], %(details)b::text[], %(dossiers)b::bigint[], %(recertify_by)b::timestamptz[])
    AS given(grant_id, number, detail, dossier_id, recertify_by)
"""


class _Held(NamedTuple):
    """A grant's row as it stands under our lock."""

    status: str
    dossier_id: int | None
    recertify_by: datetime | None


class GrantNotLive(DomainError):
    """The grant does not stand where the move begins: somebody else moved it, or it has ended."""

    code = "grant_not_live"
    kind = ErrorKind.CONFLICT


def apply_make_grant(*, actor: Actor, request: SignOffRequest, dossier: Dossier, terms: Mapping[str, Any], at: datetime) -> Grant:
    """Make the grant that a completed request asked for, inside an open service transaction; a renewal ends the one it renews.

    `terms` are the dossier's. It begins at once unless a later start was asked for: then when that has come and its signers still
    stand. The database refuses it without the signatures of the dossier's quorum.
    """
    version = request.subject_version
    if version is None:
        raise RequestClosed("the request names no subject version")
    if request.grant_id is not None:
        # One at a time: of two renewals that are signed at the same instant, the second finds the first one's grant.
        Grant.objects.select_for_update().get(pk=request.grant_id)
        if Grant.objects.filter(renews=request.grant_id, status__in=LIVE).exists():
            raise GrantNotLive("the grant has been renewed already: renew its successor")
    proposal = AccessProposal.read(bytes(request.proposal))
    starts = max(proposal.starts_at or at, at)
    days = terms["recertify_every_days"]
    grant = Grant(
        subject_version=version,
        actions=list(proposal.actions),
        requester_id=request.requester_id,
        request=request,
        dossier=dossier,
        starts_at=starts,
        ends_at=proposal.ends_at,
        begun_at=at if starts <= at else None,
        recertify_every_days=days,
        recertify_by=min(starts + timedelta(days=days), proposal.ends_at),
        renews=request.grant,
        reason=request.reason,
        cause=Cause.SIGNED,
        created_at=at,
    )
    grant.save()
    systems = [item.system for item in request.about_systems.select_related("system").order_by("system__key")]
    GrantSystem.objects.bulk_create(GrantSystem(grant=grant, system=system) for system in systems)
    if request.grant is not None:
        # In one transaction with its successor: there is no instant without a grant.
        apply_moves(
            actor=actor,
            grants=[request.grant],
            move=GrantMove.EXPIRED,
            cause=Cause.RENEWED,
            detail={"renewed_by": str(grant.uid)},
            at=at,
        )
    apply_record_making(actor=actor, grant=grant, systems=[system.key for system in systems], at=at)
    apply_ask_for_review([grant.subject_version_id])
    return grant


def apply_record_making(*, actor: Actor, grant: Grant, systems: Sequence[str], at: datetime) -> None:
    """Record the first event of a grant, and its entry, inside an open service transaction."""
    GrantEvent(
        grant=grant,
        number=1,
        move=GrantMove.MADE,
        status=grant.status,
        cause=grant.cause,
        dossier=grant.dossier,
        recertify_by=grant.recertify_by,
        actor=actor.reference,
        at=at,
    ).save()
    version = grant.subject_version
    audit.record(
        audit.Event(
            action="grant.made",
            actor=actor,
            target=("grant", str(grant.uid)),
            new={
                "kind": str(grant.kind),
                "status": str(grant.status),
                "cause": str(grant.cause),
                "subject_version": f"{version.subject.key}@{version.number}",
                "actions": list(grant.actions),
                "systems": list(systems),
                "starts_at": grant.starts_at,
                "ends_at": grant.ends_at,
                "recertify_by": grant.recertify_by,
                "request": str(grant.request.uid) if grant.request else None,
                "renews": str(grant.renews.uid) if grant.renews else None,
                "reason": grant.reason,
            },
            digests={"dossier": grant.dossier.digest} if grant.dossier else {},
        )
    )


def apply_moves(
    *,
    actor: Actor,
    grants: Sequence[Grant],
    move: GrantMove,
    cause: Cause,
    at: datetime,
    detail: Mapping[str, Any] | None = None,
    details: Mapping[int, Mapping[str, Any]] | None = None,
    dossier: Dossier | None = None,
    recertify_by: datetime | None = None,
    request_id: str = "",
) -> list[GrantEvent]:
    """Move grants inside an open service transaction, each by claim, and return the events of those that moved.

    A grant that stands elsewhere is left alone: whoever came first has moved it. `detail` is told of every grant, `details` of one by
    its row id. `dossier` carries a grant that comes back or is certified anew, until `recertify_by`.
    """
    became = _BECOMES[move]
    with connection.cursor() as cursor:
        # Locked in the order of their ids, so that two callers with many grants in common never wait for each other in a circle.
        cursor.execute(_LOCK, [[grant.pk for grant in grants], [str(status) for status in _FROM[move]]])
        before = {pk: _Held(*rest) for pk, *rest in cursor.fetchall()}
        # Asked once the rows are ours: whoever held them before has numbered her events.
        cursor.execute(_NUMBERS, [list(before)])
        numbers = dict(cursor.fetchall())
    moving = sorted((grant for grant in grants if grant.pk in before), key=lambda grant: grant.pk)
    if not moving:
        return []
    changes: dict[str, Any] = {"status": became, "cause": cause}
    if dossier is not None:
        changes |= {"dossier": dossier, "recertify_by": recertify_by}
    if move in (GrantMove.BEGUN, GrantMove.REINSTATED):
        # One that comes back before its start begins when that has come, after another look at its signers.
        changes["begun_at"] = Case(When(starts_at__lte=at, then=Coalesce(F("begun_at"), at)), default=F("begun_at"))
    Grant.objects.filter(pk__in=before).update(**changes)
    events = [
        GrantEvent(
            grant=grant,
            number=numbers[grant.pk] + 1,
            move=move,
            status=became,
            cause=cause,
            detail={**(detail or {}), **((details or {}).get(grant.pk) or {})},
            # As the row stands under the lock: the caller may have read it a while ago.
            dossier_id=dossier.pk if dossier else before[grant.pk].dossier_id,
            recertify_by=recertify_by or before[grant.pk].recertify_by,
            actor=actor.reference,
            at=at,
        )
        for grant in moving
    ]
    _insert_events(events)
    audit.record(
        *(
            audit.Event(
                action=f"grant.{move}",
                actor=actor,
                target=("grant", str(event.grant.uid)),
                old={"status": before[event.grant_id].status},
                new={"status": str(became), "cause": str(cause), "recertify_by": event.recertify_by, **event.detail},
                digests={"dossier": dossier.digest} if dossier else {},
                request_id=request_id,
            )
            for event in events
        )
    )
    return events


def _insert_events(events: Sequence[GrantEvent]) -> None:
    """Insert the events of one move in one statement: ten thousand grants are stopped at one stroke."""
    first = events[0]
    execute_with_arrays(
        _INSERT,
        {
            "move": str(first.move),
            "status": str(first.status),
            "cause": str(first.cause),
            "actor": first.actor,
            "at": first.at,
            "grants": [event.grant_id for event in events],
            "numbers": [event.number for event in events],
            "details": [json.dumps(event.detail) for event in events],
            "dossiers": [event.dossier_id for event in events],
            "recertify_by": [event.recertify_by for event in events],
        },
    )


def apply_carry_on(
    *, actor: Actor, grant: Grant, move: GrantMove, dossier: Dossier, terms: Mapping[str, Any], at: datetime
) -> Grant:
    """Bring a suspended grant back, or certify an active one anew, on a fresh dossier, inside an open service transaction.

    `terms` are the dossier's: where they have grown stricter, the next certification is due by them.
    """
    days = min(grant.recertify_every_days or 0, terms["recertify_every_days"])
    recertify_by = min(at + timedelta(days=days), grant.ends_at)
    moved = apply_moves(
        actor=actor, grants=[grant], move=move, cause=Cause.SIGNED, at=at, dossier=dossier, recertify_by=recertify_by
    )
    if not moved or grant.ends_at <= at:
        raise GrantNotLive("the grant has moved since this was asked, or has ended: look at it again")
    apply_ask_for_review([grant.subject_version_id])
    return grant.reload()


def apply_ask_for_review(subject_version_ids: Sequence[int]) -> None:
    """Announce after commit that grants of these subject versions are to be looked at: what they rest on may have changed.

    A verdict may fall between the dossier that was signed and the grant that it made: nobody else would tell.
    """
    transaction.on_commit(partial(_announce, list(subject_version_ids)), robust=True)


def _announce(subject_version_ids: list[int]) -> None:
    grants_to_review.send_robust(sender=Grant, subject_version_ids=subject_version_ids)
