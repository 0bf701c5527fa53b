"""Who sees what: the one rule behind every list, detail, search, filter, count, export and file about requests and grants.

- auditors, administrators and security see everything;
- everybody sees what she asked for herself, what she has signed, and what is about a system that her team owns;
- whoever holds a role that the present dossier asks for sees it: she may have to sign it. A system owner owns the system for that.

Decisions are seen by those who see everything and by the teams that own the system; one about no system that is registered, by the
first alone. Who asked is no matter: an answer out of a token's scope rests on facts that its bearer may not know.

What somebody may not see does not exist for her: the doors answer 404.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from compliance.models import Decision, Grant, GrantSystem, Person, QuorumFactor, RequestSystem, SignOff, SignOffRequest, Waiver
from compliance.selectors.access import live_roles
from compliance.vocabulary import Role
from policies.models import System

SEES_ALL = frozenset({Role.AUDITOR, Role.ADMINISTRATOR, Role.SECURITY})


class Sight(NamedTuple):
    """What a person sees at an instant. `teams` own the systems she answers for; `systems` narrows a token to some, None is all."""

    person: UUID
    roles: frozenset[str]
    teams: frozenset[str]
    systems: frozenset[str] | None = None

    @property
    def everything(self) -> bool:
        return bool(self.roles & SEES_ALL)


def sight_of(person_id: UUID, *, at: datetime, systems: Collection[str] | None = None) -> Sight:
    """Return what a person sees; `systems` narrows it to what is about these, for a token that is so narrowed."""
    held = live_roles(person_id=person_id, at=at)
    person = Person.objects.select_related("team").get(pk=person_id)
    teams = {membership.team.key for membership in held if membership.team is not None and membership.role == Role.SYSTEM_OWNER}
    if person.team is not None:
        teams.add(person.team.key)
    return Sight(
        person_id,
        frozenset(str(membership.role) for membership in held),
        frozenset(teams),
        None if systems is None else frozenset(systems),
    )


def visible_requests(sight: Sight) -> QuerySet[SignOffRequest]:
    """Return the requests that somebody may see."""
    about = RequestSystem.objects.filter(request=OuterRef("pk"))
    return _narrowed(SignOffRequest.objects.all(), sight, about, Q(requester=sight.person) | Q(Exists(_signed(sight, "pk"))))


def visible_grants(sight: Sight) -> QuerySet[Grant]:
    """Return the grants that somebody may see."""
    about = GrantSystem.objects.filter(grant=OuterRef("pk"))
    return _narrowed(Grant.objects.all(), sight, about, Q(requester=sight.person) | Q(Exists(_signed(sight, "request"))))


def visible_waivers(sight: Sight) -> QuerySet[Waiver]:
    """Return the waivers that somebody may see."""
    about = System.objects.filter(pk=OuterRef("system"))
    own = Q(request__requester=sight.person) | Q(Exists(_signed(sight, "request")))
    rows = Waiver.objects.all() if sight.systems is None else Waiver.objects.filter(system__key__in=sight.systems)
    if sight.everything:
        return rows
    return rows.filter(own | Q(Exists(about.filter(owner__in=sight.teams))) | Q(Exists(_asking(sight))))


def visible_decisions(sight: Sight) -> QuerySet[Decision]:
    """Return the decisions that somebody may see."""
    rows = Decision.objects.all()
    if sight.systems is not None:
        rows = rows.filter(system__in=_systems(key__in=sight.systems))
    return rows if sight.everything else rows.filter(system__in=_systems(owner__in=sight.teams))


def _systems(**about: Collection[str]) -> list[int]:
    """Return the ids of systems: there are few, and a list of them lets an index be walked."""
    return list(System.objects.filter(**about).values_list("pk", flat=True))


def _narrowed(rows: QuerySet[Any], sight: Sight, about: QuerySet[Any], own: Q) -> QuerySet[Any]:
    if sight.systems is not None:
        # All of its systems: a token for one system learns nothing about another.
        rows = rows.filter(Exists(about)).exclude(Exists(about.exclude(system__key__in=sight.systems)))
    if sight.everything:
        return rows
    seen = own | Q(Exists(about.filter(system__owner__in=sight.teams))) | Q(Exists(_asking(sight)))
    if Role.SYSTEM_OWNER in sight.roles:
        # Every system owner counts where a dossier that asks for one is about no system, as an activation's is.
        asking = QuorumFactor.objects.filter(dossier=OuterRef("dossier"), role=Role.SYSTEM_OWNER)
        seen |= Q(Exists(asking)) & ~Q(Exists(about))
    return rows.filter(seen)


def _signed(sight: Sight, request: str) -> QuerySet[SignOff]:
    return SignOff.objects.filter(request=OuterRef(request), person=sight.person)


def _asking(sight: Sight) -> QuerySet[QuorumFactor]:
    roles = sight.roles - {Role.SYSTEM_OWNER}
    return QuorumFactor.objects.filter(dossier=OuterRef("dossier"), role__in=roles)
