"""Who may close what is open: one person is enough to take access away, and never to give it."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from compliance.models import RoleMembership
from compliance.selectors.systems import EVERYWHERE, may_manage_system, roles_held
from compliance.services.administration import responsible
from evaluations.kernel.actor import Actor, ActorKind
from evaluations.kernel.errors import DomainError, ErrorKind
from policies.models import System


class MayNotClose(DomainError):
    """Whoever closes holds security or administrator, or owns a system that it is about."""

    code = "may_not_close"
    kind = ErrorKind.FORBIDDEN


def require_closer(*, actor: Actor, systems: Collection[System], at: datetime, requester: UUID | None = None) -> UUID:
    """Return the person behind the actor, where she may close what is about these systems: one of them is enough to own.

    `requester` may too, where one is given. A token closes for the person it belongs to. Raises `MayNotClose`.
    """
    return require_closer_of_each(actor=actor, groups=[systems], at=at, requester=requester)


def require_closer_of_each(
    *, actor: Actor, groups: Iterable[Collection[System]], at: datetime, requester: UUID | None = None
) -> UUID:
    """Return the person behind the actor, where she may close what is about each of these groups of systems. See `require_closer`."""
    acting = responsible(actor)
    if acting.kind is ActorKind.PERSON:
        person = UUID(acting.id)
        held = roles_held(person_id=person, at=at)
        if person == requester or all(
            _is_everywhere(held) or any(may_manage_system(held, system) for system in systems) for systems in groups
        ):
            return person
    raise MayNotClose("only security, an administrator or the owner of one of its systems closes this: tell one of them")


def require_stopper(*, actor: Actor, system: System | None, at: datetime) -> UUID:
    """Return the person behind the actor, where she may pull the stop button; a system's owner only for that system."""
    acting = responsible(actor)
    if acting.kind is ActorKind.PERSON:
        person = UUID(acting.id)
        held = roles_held(person_id=person, at=at)
        if _is_everywhere(held) or (system is not None and may_manage_system(held, system)):
            return person
    raise MayNotClose("security and administrators stop everything, a system owner what reaches her systems: tell one of them")


def _is_everywhere(held: Sequence[RoleMembership]) -> bool:
    return any(item.role in EVERYWHERE for item in held)
