"""Systems as the API lists them, and who may manage which."""

import uuid
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from compliance.models import RoleMembership, Team
from compliance.vocabulary import Role
from evaluations.vocabulary import SubjectKind
from policies.models import System

EVERYWHERE = (Role.SECURITY, Role.ADMINISTRATOR)
"""The roles that manage every system; a `system_owner` manages those of her team."""

_REGISTER_AGENTS = (Role.REQUESTER, Role.SYSTEM_OWNER, Role.ADMINISTRATOR)
_REGISTER_ALL = (Role.ADMINISTRATOR,)


def find_systems(
    *,
    domain: str | None = None,
    environment: str | None = None,
    owner: str | None = None,
    reversible: bool | None = None,
    open_incident: bool | None = None,
) -> QuerySet[Any]:
    """Return systems, unordered."""
    given = {
        "domain": domain,
        "environment": environment,
        "owner": owner,
        "reversible": reversible,
        "open_incident": open_incident,
    }
    return System.objects.filter(**{name: value for name, value in given.items() if value is not None})


def find_system(*, key: str) -> System | None:
    return System.objects.filter(key=key).first()


def known_teams() -> list[str]:
    """Return the keys of all teams, ordered."""
    return list(Team.objects.order_by("key").values_list("key", flat=True))


def roles_held(*, person_id: uuid.UUID, at: datetime) -> list[RoleMembership]:
    """Return what roles a person holds at an instant, each with its team and the person's own."""
    held = RoleMembership.objects.filter(person_id=person_id, starts_at__lte=at).filter(Q(ends_at=None) | Q(ends_at__gt=at))
    return list(held.select_related("team", "person__team"))


def may_manage_system(person_roles: Iterable[RoleMembership], system: System) -> bool:
    """True when one of the roles (as `roles_held` gives them) manages the system: change it, or switch its open incident.

    A `system_owner` manages the systems of the team for which she holds the role, else of her own team; a system without an owner is
    managed by `EVERYWHERE` alone.
    """
    for membership in person_roles:
        if membership.role in EVERYWHERE:
            return True
        team = membership.team or membership.person.team
        if membership.role == Role.SYSTEM_OWNER and team is not None and system.owner and team.key == system.owner:
            return True
    return False


def kinds_to_register(person_roles: Sequence[RoleMembership]) -> Collection[str]:
    """Return the kinds of subjects that somebody with these roles may register."""
    roles = {membership.role for membership in person_roles}
    if roles & set(_REGISTER_ALL):
        return frozenset(SubjectKind.values)
    return frozenset({SubjectKind.AGENT.value}) if roles & set(_REGISTER_AGENTS) else frozenset()


def systems_named(keys: Collection[str]) -> dict[str, System]:
    """Return the systems with these keys, by key; a key that no system has is not among them."""
    return {system.key: system for system in System.objects.filter(key__in=keys).order_by("key")}


def find_team(*, key: str) -> Team | None:
    return Team.objects.filter(key=key).first()
