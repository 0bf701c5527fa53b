"""Taking access away: the stop button, suspending and revoking. One person is enough; coming back takes the quorum."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from compliance.models import Grant, GrantEvent, GrantSystem
from compliance.selectors.grants import grants_in_scope, scope_exists
from compliance.selectors.recipients import people_of_grants
from compliance.services.closing import require_closer, require_closer_of_each, require_stopper
from compliance.services.grants import GrantNotLive, apply_moves
from compliance.services.idempotency import IdempotencyKeyReused, apply_claim_key, apply_first_time, apply_use_key
from compliance.services.notices import grant_notice
from compliance.services.outbox import Notice, apply_notify_all
from compliance.services.requests import MAX_TEXT
from compliance.vocabulary import Cause, GrantMove, NoticeKind, StopScope
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.services import service
from policies.models import System

TOLD_APART = 20
"""So many suspended grants have a notice each; more are told in one."""
NAMED = 200
GRANTS_PATH = "/admin/compliance/grant/"
_REFERENCE = "stop "


@dataclass(frozen=True, slots=True)
class Stopped:
    """What one pull of the stop button suspended: how many grants, and which."""

    count: int
    uids: tuple[UUID, ...]


@service(refused="stop.refused")
def stop_grants(
    *,
    actor: Actor,
    scope: str,
    key: str,
    reason: str,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> Stopped:
    """Suspend every active grant within a scope, also those that have not begun yet.

    `key` names the subject, system, provider or benchmark, and is empty for `all`. With an idempotency key the same order again
    returns what the first one stopped. Raises `InputRefused`, `MayNotClose`, `IdempotencyKeyReused`.
    """
    at = now()
    wide, said = _order(scope, key, reason)
    require_stopper(actor=actor, system=System.objects.get(key=key) if wide is StopScope.SYSTEM else None, at=at)
    claim = {"caller": actor.reference, "key": idempotency_key or "", "request_digest": digest([str(wide), key, said])}
    known = apply_claim_key(**claim) if idempotency_key is not None else None
    if known is not None:
        return _stopped_before(known)
    order = uuid4()
    grants = list(grants_in_scope(wide, key, at=at).order_by("id"))
    told = {"order": str(order), "scope": str(wide), "key": key, "reason": said}
    events = apply_moves(
        actor=actor,
        grants=grants,
        move=GrantMove.SUSPENDED,
        cause=Cause.STOPPED,
        at=at,
        detail=told,
        request_id=request_id,
    )
    uids = tuple(event.grant.uid for event in events)
    _tell_stop(order, wide, key, said, events, at)
    if idempotency_key is not None:
        apply_use_key(**claim, reference=f"{_REFERENCE}{order}")
    audit.record(
        audit.Event(
            action="stop.pulled",
            actor=actor,
            target=("stop", str(order)),
            new={"scope": str(wide), "key": key, "count": len(uids), "reason": said},
            request_id=request_id,
        )
    )
    return Stopped(len(uids), uids)


@service(refused="grant.refused")
def suspend_grant(*, actor: Actor, grant: Grant, reason: str, idempotency_key: str | None = None, request_id: str = "") -> Grant:
    """Suspend one active grant. Raises `MayNotClose`, `GrantNotLive`, `InputRefused`."""
    at = now()
    said = _said(reason)
    require_closer(actor=actor, systems=_systems_of([grant]), at=at)
    if not apply_first_time(actor=actor, key=idempotency_key, act=f"grant.suspended {grant.uid} {digest(said)}"):
        return grant.reload()
    events = _suspend(actor, [grant], said, at, request_id)
    if not events:
        raise GrantNotLive("only an active grant is suspended: look at how it stands now")
    apply_tell_suspended(events=events, at=at)
    return grant.reload()


@service(refused="grant.refused")
def suspend_grants(*, actor: Actor, grants: Sequence[Grant], reason: str, request_id: str = "") -> list[Grant]:
    """Suspend those of the grants that are active, each with its own event, and return them.

    Raises `MayNotClose` where one of them is not hers to close; nothing is suspended then.
    """
    at = now()
    said = _said(reason)
    require_closer_of_each(actor=actor, groups=_systems_by_grant(grants).values(), at=at)
    events = _suspend(actor, grants, said, at, request_id)
    apply_tell_suspended(events=events, at=at)
    return list(Grant.objects.filter(pk__in=[event.grant_id for event in events]).order_by("id"))


@service(refused="grant.refused")
def revoke_grant(*, actor: Actor, grant: Grant, reason: str, idempotency_key: str | None = None, request_id: str = "") -> Grant:
    """End a grant for good; whoever asked for it may too. Raises `MayNotClose`, `GrantNotLive`, `InputRefused`."""
    at = now()
    said = _said(reason)
    require_closer(actor=actor, systems=_systems_of([grant]), at=at, requester=grant.requester_id)
    if not apply_first_time(actor=actor, key=idempotency_key, act=f"grant.revoked {grant.uid} {digest(said)}"):
        return grant.reload()
    events = apply_moves(
        actor=actor,
        grants=[grant],
        move=GrantMove.REVOKED,
        cause=Cause.TAKEN_BACK,
        at=at,
        detail={"reason": said},
        request_id=request_id,
    )
    if not events:
        raise GrantNotLive("the grant has ended already")
    apply_tell_suspended(events=events, at=at)
    return grant.reload()


def apply_tell_suspended(*, events: Sequence[GrantEvent], at: datetime) -> int:
    """Tell requesters and owners that grants may not be used any more, inside an open service transaction.

    A notice for each grant; where there are many, one for all: nobody reads a thousand.
    """
    if not events:
        return 0
    people = people_of_grants([event.grant for event in events], at=at)
    if len(events) <= TOLD_APART:
        return apply_notify_all([_notice_of(event, people[event.grant_id]) for event in events], at=at)
    first = events[0]
    notice = Notice(
        NoticeKind.GRANT_SUSPENDED,
        ("grant", str(first.grant.uid)),
        f"{len(events)} grants may not be used any more: {Cause(first.cause).label}",
        cause=f"events:{first.number}:{len(events)}",
        lines=[f"They are {first.get_status_display()} since {first.at:%Y-%m-%d %H:%M:%S} UTC."],
        link=GRANTS_PATH,
        data={"count": len(events), "cause": str(first.cause), "grants": [str(event.grant.uid) for event in events[:NAMED]]},
        people=set().union(*people.values()),
    )
    return apply_notify_all([notice], at=at)


def _notice_of(event: GrantEvent, people: set[UUID]) -> Notice:
    reason = event.detail.get("reason")
    return grant_notice(
        kind=NoticeKind.GRANT_SUSPENDED,
        event=event,
        title=f"A grant may not be used any more: {Cause(event.cause).label}",
        lines=[str(reason)] if reason else [],
        people=people,
    )


def _tell_stop(order: UUID, scope: StopScope, key: str, reason: str, events: Sequence[GrantEvent], at: datetime) -> None:
    people = people_of_grants([event.grant for event in events], at=at)
    what = scope.label if scope is StopScope.ALL else f"{scope.label} {key}"
    notice = Notice(
        NoticeKind.STOP_PULLED,
        ("stop", str(order)),
        f"Stopped: {what}, {len(events)} grants",
        cause="pulled",
        lines=[reason, "They come back by a request for reinstatement alone, which their quorum signs."],
        link=GRANTS_PATH,
        data={
            "scope": str(scope),
            "key": key,
            "count": len(events),
            "grants": [str(event.grant.uid) for event in events[:NAMED]],
        },
        people=set().union(*people.values()),
    )
    apply_notify_all([notice], at=at)


def _stopped_before(reference: str) -> Stopped:
    if not reference.startswith(_REFERENCE):
        raise IdempotencyKeyReused("this Idempotency-Key was used for something else; take a new key")
    events = GrantEvent.objects.filter(cause=Cause.STOPPED, detail__order=reference.removeprefix(_REFERENCE))
    uids = tuple(events.order_by("grant_id").values_list("grant__uid", flat=True))
    return Stopped(len(uids), uids)


def _order(scope: str, key: str, reason: str) -> tuple[StopScope, str]:
    if scope not in StopScope.values:
        raise InputRefused(
            [Problem(f"`{scope[:40]}` is no scope of a stop", field="scope", hint=f"one of {', '.join(StopScope.values)}")]
        )
    wide = StopScope(scope)
    if not scope_exists(wide, key):
        hint = "leave it empty" if wide is StopScope.ALL else "nothing was stopped: look the name up"
        raise InputRefused([Problem(f"no {wide.label} `{key[:120]}` is registered", field="key", hint=hint)])
    return wide, _said(reason)


def _said(reason: str) -> str:
    said = reason.strip()
    if not said or len(said) > MAX_TEXT:
        raise InputRefused([Problem(f"a reason has 1 to {MAX_TEXT} characters", field="reason", hint="say why it is closed")])
    return said


def _suspend(actor: Actor, grants: Sequence[Grant], reason: str, at: datetime, request_id: str) -> list[GrantEvent]:
    return apply_moves(
        actor=actor,
        grants=grants,
        move=GrantMove.SUSPENDED,
        cause=Cause.TAKEN_BACK,
        at=at,
        detail={"reason": reason},
        request_id=request_id,
    )


def _systems_of(grants: Sequence[Grant]) -> list[System]:
    return list(System.objects.filter(grant_systems__grant__in=grants).distinct().order_by("key"))


def _systems_by_grant(grants: Sequence[Grant]) -> dict[int, list[System]]:
    found: dict[int, list[System]] = {grant.pk: [] for grant in grants}
    for link in GrantSystem.objects.filter(grant__in=grants).select_related("system").order_by("system__key"):
        found[link.grant_id].append(link.system)
    return found
