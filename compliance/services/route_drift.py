"""People told where a route reaches what is not cleared: an agent's beyond the models that were signed, or one that was cleared before.

A route with a grant of its own needs no word here: another set behind it is another version, which suspends that grant.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from compliance.models import DriftNotice, Grant, RoutingInventory
from compliance.selectors.routing import Served, live_grants_named, live_grants_of, served_by
from compliance.services.drift import People, apply_note_drift, told_notice
from compliance.services.outbox import apply_notify_all
from compliance.vocabulary import DriftCause
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest
from evaluations.models import SubjectVersionMember
from evaluations.vocabulary import SubjectKind


def apply_tell_of_routes(*, actor: Actor, inventories: Sequence[RoutingInventory], served: Sequence[Served], at: datetime) -> int:
    """Tell of every path that is newly not cleared, once, inside an open service transaction; return how many nobody told before.

    `served` is what the inventories serve, which are those in effect.
    """
    rows = [
        DriftNotice(
            grant=grant,
            cause=DriftCause.ROUTE_CHANGED,
            key=f"route:{digest([told[part] for part in sorted(told)])}",
            detail={"routes": [told]},
            actor=actor.reference,
            at=at,
        )
        for grant, told in (*_beyond_the_signed(served, at), *_no_longer_cleared(inventories, served, at))
    ]
    fresh = apply_note_drift(actor=actor, rows=rows)
    if fresh:
        people = People(at)
        systems = {row.grant_id: [link.system for link in row.grant.grant_systems.all()] for row in fresh}
        notices = [told_notice(row, systems[row.grant_id], people.who_can_act(row.grant, systems[row.grant_id])) for row in fresh]
        apply_notify_all(notices, at=at)
    return len(fresh)


def _beyond_the_signed(served: Sequence[Served], at: datetime) -> Iterator[tuple[Grant, dict[str, Any]]]:
    """Yield the live grants of agents whose name is a route's, with each path to what is not among the models that they pin."""
    by_name: defaultdict[str, list[Served]] = defaultdict(list)
    for each in served:
        by_name[each.route.name].append(each)
    grants = live_grants_named(by_name, SubjectKind.AGENT, at=at)
    pinned: defaultdict[int, set[int]] = defaultdict(set)
    links = SubjectVersionMember.objects.filter(version__in={grant.subject_version_id for grant in grants})
    for version, member in links.values_list("version_id", "member_id"):
        pinned[version].add(member)
    for grant in grants:
        for each in by_name[grant.subject_version.subject.key]:
            for told in _problems(each, pinned[grant.subject_version_id], "not_pinned"):
                yield grant, told


def _no_longer_cleared(
    inventories: Sequence[RoutingInventory], served: Sequence[Served], at: datetime
) -> Iterator[tuple[Grant, dict[str, Any]]]:
    """Yield each path that is not cleared of a route that the inventory before had cleared, by the grants that stand now.

    It is told of the oldest of the grants that cleared it.
    """
    before = served_by([inventory.previous for inventory in inventories if inventory.previous is not None], at=at)
    was = {(each.inventory, each.route.name): each for each in before if each.closed}
    holders = _holders({pk for each in (*was.values(), *served) for pk in _known(each)}, at)
    for each in served:
        earlier = was.get((each.inventory, each.route.name))
        if earlier is None:
            continue
        for (system, action), held in holders.items():
            cleared = _known(earlier)
            if cleared <= held.keys():
                grant = min((held[pk] for pk in cleared), key=lambda grant: grant.pk)
                for told in _problems(each, held.keys(), "no_grant"):
                    yield grant, {**told, "system": system, "action": action}


def _holders(version_ids: Collection[int], at: datetime) -> Mapping[tuple[str, str], Mapping[int, Grant]]:
    """Return by system and action which subject versions have a live grant for it, and the oldest such grant of each."""
    found: defaultdict[tuple[str, str], dict[int, Grant]] = defaultdict(dict)
    for grant in live_grants_of(version_ids, at=at):
        for link in grant.grant_systems.all():
            for action in grant.actions:
                found[link.system.key, action].setdefault(grant.subject_version_id, grant)
    return found


def _known(served: Served) -> set[int]:
    return {item.version.pk for item in served.reached if item.version is not None}


def _problems(served: Served, cleared: Collection[int], otherwise: str) -> Iterator[dict[str, Any]]:
    """Yield what stands against a route where these subject versions are cleared; `otherwise` is what is wrong with all others."""
    base = {"inventory": served.inventory, "route": served.route.name, "system": "", "action": ""}
    for item in served.reached:
        if item.version is None or item.version.pk not in cleared:
            problem = "unknown_model" if item.version is None else otherwise
            yield {**base, "path": list(item.member.path), "at": item.member.at, "subject": item.cite, "problem": problem}
    for each in served.route.opens:
        yield {**base, "path": list(each.path), "at": "", "subject": "", "problem": each.reason}
