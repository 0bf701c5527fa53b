"""Roles: given from a day on, and ended; never deleted, so that who held what at any instant can be told."""

from datetime import datetime

from compliance.models import Person, RoleMembership, Team
from compliance.services.administration import (
    MAX_REASON,
    apply_keep_an_administrator,
    apply_lock_administrators,
    apply_require_administrator,
    responsible,
)
from compliance.services.idempotency import apply_first_time
from compliance.vocabulary import Role
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service


class OwnRoleRefused(DomainError):
    code = "own_role_refused"
    kind = ErrorKind.FORBIDDEN


class RoleHeld(DomainError):
    code = "role_held"
    kind = ErrorKind.CONFLICT


class RoleEnded(DomainError):
    code = "role_ended"
    kind = ErrorKind.CONFLICT


@service(refused="role.refused")
def give_role(
    *,
    actor: Actor,
    person: Person,
    role: str,
    team: Team | None = None,
    ends_at: datetime | None = None,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> RoleMembership:
    """Give a person a role from now on, for every team or for one, until an instant or until it is ended.

    Only an administrator may, and to others alone. Raises `AdministratorNeeded`, `OwnRoleRefused`, `RoleHeld`, `InputRefused`.
    """
    giver = apply_require_administrator(actor=actor)
    if giver == person.pk:
        raise OwnRoleRefused("nobody gives herself a role: ask another administrator")
    act = f"role.given {person.pk} {digest([role, team.key if team else None, ends_at])}"
    if not apply_first_time(actor=actor, key=idempotency_key, act=act):
        return RoleMembership.objects.filter(person=person, role=role, team=team).latest("id")
    if role not in Role.values:
        raise InputRefused([Problem(f"`{role}` is no role", field="role", hint=f"known roles: {', '.join(Role.values)}")])
    # Two who give the same role at once are put in line behind the person's row; the clock is read behind it.
    Person.objects.select_for_update(no_key=True).get(pk=person.pk)
    moment = now()
    if ends_at is not None and ends_at <= moment:
        raise InputRefused([Problem("a role ends after it begins", field="ends_at", hint="write a later instant")])
    held = RoleMembership.objects.filter(person=person, role=role, team=team)
    if any(item.ends_at is None or moment < item.ends_at for item in held):
        raise RoleHeld("she holds this role already: end it first, where its end should be another")
    membership = RoleMembership.objects.create(
        person=person, role=role, team=team, given_by=responsible(actor).reference, starts_at=moment, ends_at=ends_at
    )
    audit.record(
        audit.Event(
            action="role.given",
            actor=actor,
            target=("person", str(person.pk)),
            new={"membership": membership.pk, "role": str(role), "team": team.key if team else None, "ends_at": ends_at},
            request_id=request_id,
        )
    )
    return membership


@service(refused="role.refused")
def end_role(
    *,
    actor: Actor,
    membership: RoleMembership,
    reason: str = "",
    idempotency_key: str | None = None,
    request_id: str = "",
) -> RoleMembership:
    """End a role now; what was signed under it stays signed, and counts as its policy says.

    Raises `AdministratorNeeded`, `LastAdministrator`, `RoleEnded`.
    """
    if membership.role == Role.ADMINISTRATOR:
        apply_lock_administrators()
    apply_require_administrator(actor=actor)
    if not apply_first_time(actor=actor, key=idempotency_key, act=f"role.ended {membership.pk} {digest(reason)}"):
        return membership.reload()
    if membership.role == Role.ADMINISTRATOR:
        apply_keep_an_administrator(without=membership.person_id)
    known = RoleMembership.objects.select_for_update(no_key=True).get(pk=membership.pk)
    # Read behind the lock: who signs holds it until her signature stands, and that came before this end.
    moment = now()
    if known.ends_at is not None and known.ends_at <= moment:
        raise RoleEnded("this role has ended already")
    # An end before the beginning would say that she never held it.
    if not RoleMembership.claim(
        known.pk, expected={"ends_at": known.ends_at}, moved_to={"ends_at": max(moment, known.starts_at)}
    ):
        raise RoleEnded("somebody else has just moved this role's end: look again")
    audit.record(
        audit.Event(
            action="role.ended",
            actor=actor,
            target=("person", str(known.person_id)),
            old={"ends_at": known.ends_at},
            new={"membership": known.pk, "role": known.role, "reason": reason.strip()[:MAX_REASON]},
            request_id=request_id,
        )
    )
    return known.reload()
