"""What gateways serve, held against what is registered and granted: who can answer behind each name, by which path, and who may not."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from compliance.models import Grant, GrantSystem, LedgerEntry, RoutingInventory
from compliance.selectors.grants import with_standing
from compliance.selectors.reviewing import REINSTATED
from compliance.selectors.sight import Sight
from compliance.vocabulary import EffectiveStatus
from evaluations.models import AliasAssignment, Subject, SubjectVersion
from evaluations.vocabulary import SubjectKind
from policies.language.routing import CHANGES, EVERY_NAME, REASONS, Member, Open, Route, shown_path
from policies.language.routing_forms import LITELLM, allowed_part, routes_in
from policies.models import System

DEFAULT_NAME = LITELLM
"""The gateway that is meant where none is named, and no file at hand says otherwise."""
ROUTE_CHECK = "route-check"
"""Who reconciles on time, and the sign of life of it."""
BESIDE = "route/"
"""Before the key of a route whose name belongs to a model or an agent."""


class Reached(NamedTuple):
    """A member of a route with the model version that its name means, None where it means none that is registered."""

    member: Member
    version: SubjectVersion | None

    @property
    def cite(self) -> str:
        return cite_version(self.version)


class Served(NamedTuple):
    """A name that a gateway serves, with what can answer behind it."""

    inventory: str
    route: Route
    reached: tuple[Reached, ...]

    @property
    def closed(self) -> bool:
        """True where everything that can answer is known and registered."""
        return self.route.closed and all(item.version is not None for item in self.reached)


class Reach(NamedTuple):
    """A member in a report. `problem` is `unknown_model`, `no_grant`, or "" where it is cleared."""

    model: str
    at: str
    path: tuple[str, ...]
    subject: str
    problem: str


class RouteReport(NamedTuple):
    """One name, held against one system and action: cleared where it is closed and everything behind it has a live grant."""

    name: str
    cleared: bool
    members: tuple[Reach, ...]
    opens: tuple[Open, ...]


def find_inventories(*, name: str | None = None) -> QuerySet[RoutingInventory]:
    """Return inventories, unordered, without their content."""
    rows = RoutingInventory.objects.defer("content").select_related("previous")
    return rows if name is None else rows.filter(name=name)


def get_inventory(*, uid: UUID) -> RoutingInventory | None:
    return RoutingInventory.objects.select_related("previous").filter(uid=uid).first()


def newest_inventory(*, name: str) -> RoutingInventory | None:
    """Return the inventory of a gateway that is in effect, None where it has none."""
    return RoutingInventory.objects.select_related("previous").filter(name=name).order_by("-id").first()


def newest_inventories() -> list[RoutingInventory]:
    """Return the inventory in effect of each gateway, by name."""
    return list(RoutingInventory.objects.select_related("previous").order_by("name", "-id").distinct("name"))


def document_of(inventory: RoutingInventory) -> dict[str, Any]:
    """Return the document of an inventory as plain values."""
    document: dict[str, Any] = json.loads(bytes(inventory.content))
    return document


def routes_of(inventory: RoutingInventory) -> tuple[Route, ...]:
    """Return every name that an inventory serves, with what is written behind it."""
    return routes_in(document_of(inventory))


def served_by(inventories: Iterable[RoutingInventory], *, at: datetime) -> list[Served]:
    """Return every name that the inventories serve, in their order, with what answers by what the names mean at an instant."""
    routes = [(inventory.name, route) for inventory in inventories for route in routes_of(inventory)]
    members = {member for _, route in routes for member in route.members}
    meant = versions_meant({text for member in members for text in (member.written, member.model)}, at=at)
    return [
        Served(name, route, tuple(Reached(member, _meant(member, meant)) for member in route.members)) for name, route in routes
    ]


def versions_meant(names: Collection[str], *, at: datetime) -> dict[str, SubjectVersion | None]:
    """Return what names as written in a gateway mean at an instant: the model version of the alias assignment in effect (None where
    it names nobody, or no model), else the newest of the model with this very key. A name that means nothing is not among them.
    """
    assigned = (
        AliasAssignment.objects.filter(name_as_written__in=names, source=None, recorded_at__lte=at)
        .filter(Q(effective_from=None) | Q(effective_from__lte=at))
        .order_by("name_as_written", F("effective_from").desc(nulls_last=True), "-id")
        .distinct("name_as_written")
        .select_related("subject_version__subject")
    )
    found: dict[str, SubjectVersion | None] = {}
    for row in assigned:
        version = row.subject_version
        found[row.name_as_written] = version if version is not None and version.subject.kind == SubjectKind.MODEL else None
    by_key = SubjectVersion.objects.filter(
        subject__key__in=set(names) - found.keys(), subject__kind=SubjectKind.MODEL, registered_at__lte=at
    )
    for version in by_key.order_by("subject_id", "-number").distinct("subject_id").select_related("subject"):
        found[version.subject.key] = version
    return found


def read_routing_report(inventory: RoutingInventory, system: System, action: str, at: datetime) -> tuple[RouteReport, ...]:
    """Return every name of an inventory with each path to a member that has no live grant for this system and action."""
    served = served_by([inventory], at=at)
    ids = {item.version.pk for each in served for item in each.reached if item.version is not None}
    granted = {grant.subject_version_id for grant in _live_grants(ids, system, action, at=at)}
    return tuple(_report(each, granted) for each in served)


def allowed_routing(inventory: RoutingInventory, system: System, action: str, at: datetime) -> dict[str, Any]:
    """Return an inventory's document with nothing in it but the names that are cleared for a system and action."""
    cleared = [route.name for route in read_routing_report(inventory, system, action, at) if route.cleared]
    return allowed_part(document_of(inventory), cleared)


def plain_report(inventory: RoutingInventory, at: datetime) -> tuple[RouteReport, ...]:
    """Return every name of an inventory with what can answer behind it, held against no system: none is cleared."""
    return tuple(
        RouteReport(each.route.name, False, tuple(_reach(item, None) for item in each.reached), each.route.opens)
        for each in served_by([inventory], at=at)
    )


def cleared_systems(sight: Sight) -> QuerySet[System]:
    """Return the systems of which somebody may learn what has a grant: who sees everything, and the team that owns them."""
    rows = System.objects.all() if sight.everything else System.objects.filter(owner__in=sight.teams).exclude(owner="")
    return rows if sight.systems is None else rows.filter(key__in=sight.systems)


def sees_clearance(sight: Sight, system: System) -> bool:
    """True where somebody may learn what has a grant for a system."""
    return cleared_systems(sight).filter(pk=system.pk).exists()


def route_keys(names: Collection[str]) -> dict[str, str]:
    """Return by name the key under which its route is registered, or would be; a wildcard is no key and has none."""
    wanted = [name for name in names if EVERY_NAME not in name]
    taken = Subject.objects.filter(key__in=wanted).exclude(kind=SubjectKind.ROUTE)
    others = set(taken.values_list("key", flat=True))
    return {name: f"{BESIDE}{name}" if name in others else name for name in wanted}


def running_routes(keys: Collection[str]) -> dict[str, SubjectVersion]:
    """Return by key the version of each route that runs now: the one registered last, or rolled back to since."""
    rows = SubjectVersion.objects.filter(subject__key__in=keys, subject__kind=SubjectKind.ROUTE).select_related("subject")
    versions = {cite_version(version): version for version in rows.prefetch_related("members").order_by("id")}
    began = {cite: version.registered_at for cite, version in versions.items()}
    again = LedgerEntry.objects.filter(action=REINSTATED, target_kind="subject_version", target_id__in=versions)
    for cite, at in again.values_list("target_id", "recorded_at"):
        began[cite] = max(began[cite], at)
    latest = sorted(versions, key=lambda cite: (began[cite], versions[cite].number))
    return {versions[cite].subject.key: versions[cite] for cite in latest}


def live_grants_of(version_ids: Collection[int], *, at: datetime) -> list[Any]:
    """Return the grants of these subject versions that may be used at an instant, oldest first, each with its systems."""
    found = with_standing(Grant.objects.filter(subject_version__in=version_ids), at=at).filter(standing=EffectiveStatus.ACTIVE)
    return list(found.select_related("subject_version__subject").prefetch_related("grant_systems__system").order_by("id"))


def live_grants_named(keys: Collection[str], kind: SubjectKind, *, at: datetime) -> list[Any]:
    """Return the grants of subjects with these keys that may be used at an instant, oldest first, each with its systems."""
    subjects = SubjectVersion.objects.filter(subject__key__in=keys, subject__kind=kind).values_list("pk", flat=True)
    return live_grants_of(list(subjects), at=at)


def report_lines(report: Sequence[RouteReport], *, held: bool) -> list[str]:
    """Return a report as lines: each name, and under it every path that stands against it. `held`: against a system's grants."""
    lines = []
    for route in report:
        lines.append(f"{route.name}: {'cleared' if route.cleared else 'not cleared'}" if held else f"{route.name}:")
        lines += [
            f"  {each.problem or each.subject}: {shown_path(each.path)}" for each in route.members if each.problem or not held
        ]
        lines += [f"  open, {REASONS[each.reason]}: {shown_path(each.path)}; {CHANGES[each.reason]}" for each in route.opens]
    return lines


def cite_version(version: SubjectVersion | None) -> str:
    """Return `key@number`, "" for none."""
    return "" if version is None else f"{version.subject.key}@{version.number}"


def _live_grants(version_ids: Collection[int], system: System, action: str, *, at: datetime) -> list[Any]:
    link = GrantSystem.objects.filter(grant=OuterRef("pk"), system=system)
    named = Grant.objects.filter(Exists(link), subject_version__in=version_ids, actions__contains=[action])
    return list(with_standing(named, at=at).filter(standing=EffectiveStatus.ACTIVE).order_by("id"))


def _meant(member: Member, meant: Mapping[str, SubjectVersion | None]) -> SubjectVersion | None:
    # What was said of this endpoint goes before what was said of the model wherever it stands, which may say nothing about it here.
    return meant.get(member.written) if member.exact or member.written in meant else meant.get(member.model)


def _report(served: Served, granted: Collection[int]) -> RouteReport:
    members = tuple(_reach(item, granted) for item in served.reached)
    cleared = served.closed and not any(member.problem for member in members)
    return RouteReport(served.route.name, cleared, members, served.route.opens)


def _reach(item: Reached, granted: Collection[int] | None) -> Reach:
    problem = ""
    if item.version is None:
        problem = "unknown_model"
    elif granted is not None and item.version.pk not in granted:
        problem = "no_grant"
    return Reach(item.member.model, item.member.at, item.member.path, item.cite, problem)
