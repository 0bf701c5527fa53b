"""Grants in the states that tests ask for."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from compliance.models import Grant, LedgerEntry, OutboxMessage, SignOffRequest, User
from compliance.services.break_glass import Opened, open_break_glass
from compliance.services.filing import request_reinstatement
from compliance.vocabulary import Role
from evaluations.kernel.clock import now
from evaluations.models import SubjectVersion
from evaluations.services.subjects import register_subject, register_subject_version
from policies.models import System
from tests.support import signing, world
from tests.support.signing import Ground

JUSTIFICATION = "payroll stands still and nobody of the team can be reached"


def glass(land: Ground, *, account: User | None = None, **changes: Any) -> Opened:
    """Open a break-glass on the ground's system, by security, freshly re-authenticated."""
    opener = account or land.security
    given: dict[str, Any] = {
        "actor": signing.actor_of(opener),
        "account": opener,
        "session": signing.prove(opener),
        "subject_version": land.version,
        "systems": [land.system],
        "actions": ["write"],
        "justification": JUSTIFICATION,
        "minutes": 60,
        **changes,
    }
    return open_break_glass(**given)


def agent(land: Ground, key: str = "hr-agent") -> SubjectVersion:
    """Register an agent that reaches the ground's model."""
    subject = register_subject(actor=world.ACTOR, key=key, kind="agent")
    return register_subject_version(actor=world.ACTOR, subject=subject, pin={"prompt": "p"}, members=[land.version])


def starting(land: Ground, *, days: int = 3, systems: Sequence[System] | None = None) -> Grant:
    """Return a signed grant whose start lies days ahead."""
    return signing.granted(land, starts_at=now() + timedelta(days=days), days=30, systems=systems)


def back(land: Ground, grant: Grant) -> SignOffRequest:
    """Ask for a suspended grant to come back, and have both sign it."""
    request = request_reinstatement(actor=signing.actor_of(land.asker), grant=grant, reason="all is well again")
    signing.sign(land.owner, request)
    signing.sign(land.security, request)
    return request


def administrator(name: str = "Ada Admin") -> User:
    return signing.human(name, Role.ADMINISTRATOR)


def entries(action: str) -> int:
    return LedgerEntry.objects.filter(action=action).count()


def told(kind: str) -> set[str]:
    """Return to whom mails of a kind are queued."""
    return {str(person) for person in OutboxMessage.objects.filter(kind=kind, channel="mail").values_list("person_id", flat=True)}


def people(*accounts: User) -> set[str]:
    return {str(account.person_id) for account in accounts}
