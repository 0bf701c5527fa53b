"""Waivers: recorded by the quorum that signed them, taken back by one person."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction

from compliance.models import Dossier, SignOffRequest, Waiver, WaiverRevocation
from compliance.services.closing import require_closer
from compliance.services.grants import apply_ask_for_review
from compliance.services.idempotency import apply_first_time
from compliance.services.requests import MAX_TEXT, RequestClosed
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service
from policies.models import Policy, System


class WaiverRevoked(DomainError):
    """The waiver was taken back before."""

    code = "waiver_revoked"
    kind = ErrorKind.CONFLICT


def apply_waive(
    *, actor: Actor, request: SignOffRequest, dossier: Dossier, asked: Mapping[str, Any], ends_at: datetime, at: datetime
) -> Waiver:
    """Record a waiver that a dossier asked for, inside the transaction that completes its request.

    `asked` is one item of the dossier's `waivers`: it covers what was measured then, and nothing worse.
    """
    version = request.subject_version
    if version is None:
        raise RequestClosed("the request names no subject version")
    waiver = Waiver(
        request=request,
        dossier=dossier,
        subject_version=version,
        system=System.objects.get(key=asked["system"]),
        policy=Policy.objects.get(name=asked["policy"]),
        rule=asked["rule"],
        rule_digest=asked["rule_digest"],
        measured=Decimal(asked["measured"]),
        floor=asked["floor"],
        reason=asked["reason"],
        starts_at=at,
        ends_at=ends_at,
        waived_by=actor.reference,
        recorded_at=at,
    )
    waiver.save()
    audit.record(
        audit.Event(
            action="waiver.recorded",
            actor=actor,
            target=("waiver", str(waiver.uid)),
            new={
                "request": str(request.uid),
                "policy": asked["policy"],
                "system": asked["system"],
                "rule": waiver.rule,
                "measured": waiver.measured,
                "reason": waiver.reason,
                "ends_at": waiver.ends_at,
            },
            digests={"rule": waiver.rule_digest, "dossier": dossier.digest},
        )
    )
    return waiver


@service(refused="waiver.refused")
def revoke_waiver(
    *, actor: Actor, waiver: Waiver, reason: str, idempotency_key: str | None = None, request_id: str = ""
) -> WaiverRevocation:
    """Take a waiver back before its end: one person is enough to close. What rests on it is looked at again at once.

    Raises `MayNotClose`, `WaiverRevoked`, `InputRefused`.
    """
    at = now()
    said = reason.strip()
    if not said or len(said) > MAX_TEXT:
        raise InputRefused([Problem(f"a reason has 1 to {MAX_TEXT} characters", field="reason", hint="say why it is taken back")])
    require_closer(actor=actor, systems=[waiver.system], at=at, requester=waiver.request.requester_id)
    if not apply_first_time(actor=actor, key=idempotency_key, act=f"waiver.revoked {waiver.uid} {digest(said)}"):
        return WaiverRevocation.objects.get(waiver=waiver)
    revocation = WaiverRevocation(waiver=waiver, reason=said, revoked_by=actor.reference, recorded_at=at)
    try:
        with transaction.atomic():
            revocation.save()
    except IntegrityError as twice:
        raise WaiverRevoked("the waiver was taken back already") from twice
    audit.record(
        audit.Event(
            action="waiver.revoked",
            actor=actor,
            target=("waiver", str(waiver.uid)),
            new={"reason": said},
            request_id=request_id,
        )
    )
    apply_ask_for_review([waiver.subject_version_id])
    return revocation
