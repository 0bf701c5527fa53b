"""Names settled by people: whom a name as written means, confirmed by one evidence steward who saw what that touches."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from compliance.selectors.access import holds_any_role
from compliance.selectors.naming import Touched, touched_by
from compliance.services.administration import responsible
from compliance.services.idempotency import apply_first_time
from compliance.services.registrations import RoleMissing
from compliance.vocabulary import Role
from evaluations.kernel.actor import Actor, ActorKind
from evaluations.kernel.canonical import digest
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service
from evaluations.models import AliasAssignment, Source, SubjectVersion
from evaluations.services.subjects import apply_assign_alias

STEWARDS = (Role.EVIDENCE_STEWARD, Role.ADMINISTRATOR)


class NameMoved(DomainError):
    """What the statement would touch is no longer what was shown."""

    code = "name_moved"
    kind = ErrorKind.CONFLICT


class Settled(NamedTuple):
    """The statement that was recorded, and what it touched."""

    assignment: AliasAssignment
    touched: Touched


@service(refused="alias.refused")
def settle_name(
    *,
    actor: Actor,
    name: str,
    means: SubjectVersion | None,
    source: Source | None = None,
    effective_from: datetime | None = None,
    reason: str = "",
    seen: str,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> Settled:
    """State for a person whom a name means, in a source or in any; nobody where `means` is None, which takes a reason.

    `seen` is the digest of what she was shown (`touched_by`): whatever moved since raises `NameMoved`. The verdicts are judged anew
    after the commit, and the grants that rest on them reviewed. Raises `RoleMissing`, `InputRefused`, `IdempotencyKeyReused`.
    """
    _require_steward(actor)
    with connection.cursor() as cursor:
        # Two who settle one name do it one after the other, and the second sees what the first has said.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 2))", [name])
    if means is None and not reason.strip():
        raise InputRefused([Problem("say why the name means nobody", field="reason", code="missing")])
    touched = touched_by(name=name, source=source, means=means)
    cited = [name, source.key if source else "", means.digest if means else "", str(effective_from or ""), reason]
    if not apply_first_time(actor=actor, key=idempotency_key, act=f"alias.assigned {digest(cited)}"):
        return Settled(AliasAssignment.objects.filter(name_as_written=name, source=source).latest("id"), touched)
    if touched.digest != seen:
        raise NameMoved("something under this name has moved since it was shown: look once more")
    assignment = apply_assign_alias(
        actor=actor,
        name_as_written=name,
        subject_version=means,
        source=source,
        effective_from=effective_from,
        reason=reason,
        touches=[str(grant.uid) for grant in touched.grants],
        request_id=request_id,
    )
    return Settled(assignment, touched)


def _require_steward(actor: Actor) -> None:
    person = responsible(actor)
    if person.kind is not ActorKind.PERSON or not holds_any_role(person_id=UUID(person.id), roles=STEWARDS, at=now()):
        raise RoleMissing("this needs the role evidence_steward or administrator")
