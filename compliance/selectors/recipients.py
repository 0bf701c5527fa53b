"""Who is told: the people who can act on a grant, by role and by the team that owns its systems."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from compliance.models import Grant, GrantSystem, RoleMembership
from compliance.vocabulary import Role


def holders_of(roles: Collection[Role], *, at: datetime) -> set[UUID]:
    """Return everybody who holds one of the roles at an instant."""
    held = RoleMembership.objects.filter(Q(ends_at=None) | Q(ends_at__gt=at), role__in=list(roles), starts_at__lte=at)
    return set(held.order_by().values_list("person_id", flat=True))


def owners_by_team(teams: Collection[str], *, at: datetime) -> dict[str, set[UUID]]:
    """Return the system owners of each team: by the team that the role was given for, else by their own."""
    wanted = {team for team in teams if team}
    owners: defaultdict[str, set[UUID]] = defaultdict(set)
    if not wanted:
        return owners
    held = RoleMembership.objects.filter(
        Q(ends_at=None) | Q(ends_at__gt=at), role=Role.SYSTEM_OWNER, starts_at__lte=at
    ).values_list("person_id", "team__key", "person__team__key")
    for person, given_for, own in held.order_by():
        team = given_for or own
        if team in wanted:
            owners[team].add(person)
    return owners


def people_of_grants(grants: Sequence[Grant], *, at: datetime) -> dict[int, set[UUID]]:
    """Return, by row id of each grant, who asked for it and who owns its systems. Two queries, however many grants."""
    teams: defaultdict[int, set[str]] = defaultdict(set)
    links = GrantSystem.objects.filter(grant__in=[grant.pk for grant in grants]).values_list("grant_id", "system__owner")
    for grant_id, owner in links:
        teams[grant_id].add(owner)
    owners = owners_by_team({team for some in teams.values() for team in some}, at=at)
    return {grant.pk: {grant.requester_id}.union(*(owners.get(team, set()) for team in teams[grant.pk])) for grant in grants}
