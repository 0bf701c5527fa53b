"""What only an administrator may do, and who she is: steps shared by the services on accounts and roles."""

import uuid

from django.db import connection

from compliance.models import User
from compliance.selectors.access import all_live_roles, live_roles
from compliance.vocabulary import Role
from evaluations.kernel.actor import Actor, ActorKind
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind

MAX_REASON = 500
ADMINISTRATORS_LOCK = 0x77675F61646D696E  # "wg_admin"


class AdministratorNeeded(DomainError):
    code = "administrator_needed"
    kind = ErrorKind.FORBIDDEN


class LastAdministrator(DomainError):
    code = "last_administrator"
    kind = ErrorKind.CONFLICT


class ReaderAlone(DomainError):
    """An auditor reads everything and changes nothing: what she says of it, she says to those who act."""

    code = "reader_alone"
    kind = ErrorKind.FORBIDDEN


def responsible(actor: Actor) -> Actor:
    """Return the person behind an actor: herself, or the one on whose behalf a token acts; else the actor."""
    behind = actor.on_behalf_of
    return behind if behind is not None and behind.kind is ActorKind.PERSON else actor


def apply_require_administrator(*, actor: Actor) -> uuid.UUID:
    """Return the id of the administrator behind the actor. Raises `AdministratorNeeded` for anybody else."""
    acting = responsible(actor)
    if acting.kind is ActorKind.PERSON:
        person_id = uuid.UUID(acting.id)
        held = live_roles(person_id=person_id, at=now())
        if any(membership.role == Role.ADMINISTRATOR for membership in held):
            return person_id
    raise AdministratorNeeded("only an administrator may do this: ask one, or have the role given to you")


def apply_lock_administrators() -> None:
    """Put in line those who take an administrator away; to be called before anything is read that they decide on.

    An advisory lock and no row's: who signs locks rows of accounts and roles in an order of her own.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ADMINISTRATORS_LOCK])


def apply_keep_an_administrator(*, without: uuid.UUID) -> None:
    """Refuse what would leave nobody who may give roles. The administrators are locked (`apply_lock_administrators`)."""
    # Read after the lock: what another ended while we waited must lie in our past.
    live = {item.person_id for item in all_live_roles(at=now(), roles=[Role.ADMINISTRATOR])}
    others = User.objects.filter(person_id__in=live - {without}, is_active=True)
    if without in live and not others.exists():
        raise LastAdministrator("this is the last administrator: give the role to somebody else first")


def apply_refuse_reader(actor: Actor) -> None:
    """Refuse a person who is an auditor and nothing else, and her tokens. Raises `ReaderAlone`."""
    acting = responsible(actor)
    if acting.kind is not ActorKind.PERSON:
        return
    held = live_roles(person_id=uuid.UUID(acting.id), at=now())
    if {membership.role for membership in held} == {Role.AUDITOR}:
        raise ReaderAlone("an auditor reads everything and changes nothing: ask somebody who acts here")
