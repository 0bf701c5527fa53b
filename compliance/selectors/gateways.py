"""Gateways' inventories as people look at them: how each stands, what came of reconciling it, and for what its routes are cleared."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Exists, F, Func, IntegerField, Max, OuterRef, Q, QuerySet, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Substr

from compliance.models import DriftNotice, Grant, GrantSystem, LedgerEntry, RoutingInventory, ServiceBeat
from compliance.selectors.drift import DriftRow, drift_row
from compliance.selectors.grants import with_standing
from compliance.selectors.routing import ROUTE_CHECK, Served, cleared_systems, document_of, served_by
from compliance.selectors.sight import Sight, visible_grants
from compliance.vocabulary import DriftCause, EffectiveStatus
from evaluations.kernel.canonical import canonical_bytes
from policies.language.routing_forms import names_in

MOST_CANDIDATES = 20
"""Gateways that are looked into for one name."""
_HEAD = 40
"""Bytes of a content by which its form is told."""

Cleared = frozenset[tuple[str, str]]
"""Pairs of a system's key and an action."""


class Counts(NamedTuple):
    """How many names an inventory serves, and behind how many of them the set cannot be known."""

    routes: int
    opens: int


class Told(NamedTuple):
    """Of how many paths people were told since an inventory was handed in, and when last."""

    paths: int
    last_at: datetime


class ClearedRoute(NamedTuple):
    """A name that is served, with everything for which it is cleared; `granted` is the same of each member, in their order."""

    served: Served
    cleared_for: Cleared
    granted: tuple[Cleared, ...]


def listed_inventories() -> QuerySet[Any]:
    """Return every inventory, unordered and without its content, with `in_effect` and `form`'s first bytes, `head`, beside it."""
    newer = RoutingInventory.objects.filter(previous=OuterRef("pk"))
    rows = RoutingInventory.objects.defer("content").select_related("previous")
    return rows.annotate(in_effect=~Exists(newer), head=Substr("content", 1, _HEAD))


def counted_at_import(uids: Collection[UUID]) -> dict[str, Counts]:
    """Return by id what was counted when inventories were handed in, from the trail: what they say never changes."""
    entries = LedgerEntry.objects.filter(
        target_kind="routing_inventory", target_id__in=[str(uid) for uid in uids], action="routing.imported"
    )
    found = {}
    for target, content in entries.values_list("target_id", "content"):
        said = json.loads(bytes(content))["new"]
        found[target] = Counts(said["routes"], said["open"])
    return found


def last_check_at() -> datetime | None:
    """Return when every inventory in effect was last held against what is registered and granted, None where that never was."""
    return ServiceBeat.objects.filter(name=ROUTE_CHECK).values_list("beat_at", flat=True).first()


def told_since(inventories: Sequence[RoutingInventory], sight: Sight) -> dict[str, Told]:
    """Return by gateway of how many paths people were told since its inventory, one of each gateway, was handed in.

    Those alone count that are about a grant which who asks may see.
    """
    if not inventories:
        return {}
    since = [Q(gateway=each.name, at__gte=each.imported_at) for each in inventories]
    notices = _notices(sight).filter(at__gte=min(each.imported_at for each in inventories)).filter(_any_of(since))
    counted = notices.order_by().values("gateway").annotate(paths=Count("pk"), last_at=Max("at"))
    return {row["gateway"]: Told(row["paths"], row["last_at"]) for row in counted}


def told_of(inventory: RoutingInventory, sight: Sight, *, until: datetime | None, limit: int) -> list[DriftRow]:
    """Return of which paths people were told while an inventory was in effect, newest first, as far as somebody may see the grants."""
    notices = _notices(sight).filter(gateway=inventory.name, at__gte=inventory.imported_at)
    if until is not None:
        notices = notices.filter(at__lt=until)
    rows = notices.select_related("grant__subject_version__subject", "grant__requester").order_by("-at", "-id")
    return [drift_row(row) for row in rows[:limit]]


def cleared_routes(inventory: RoutingInventory, sight: Sight, *, at: datetime) -> list[ClearedRoute]:
    """Return every name of an inventory, in its order, with every system and action for which all that can answer has a live grant.

    Of systems whose grants who asks may not see, nothing is among them.
    """
    served = served_by([inventory], at=at)
    granted = _granted({item.version.pk for each in served for item in each.reached if item.version is not None}, sight, at=at)
    return [_cleared(each, granted) for each in served]


def gateways_of(name: str) -> list[RoutingInventory]:
    """Return the inventories in effect, by gateway, that serve a name; at most `MOST_CANDIDATES` are looked into."""
    written = canonical_bytes(name)
    place = Func(
        Value(written), F("content"), template="position(%(expressions)s)", arg_joiner=" in ", output_field=IntegerField()
    )
    candidates = listed_inventories().defer(None).filter(in_effect=True).annotate(place=place).filter(place__gt=0)
    return [row for row in candidates.order_by("name")[:MOST_CANDIDATES] if name in names_in(document_of(row))]


def _cleared(served: Served, granted: Mapping[int, Cleared]) -> ClearedRoute:
    of_members = tuple(granted.get(item.version.pk, Cleared()) if item.version else Cleared() for item in served.reached)
    cleared = of_members[0].intersection(*of_members[1:]) if served.closed and of_members else Cleared()
    return ClearedRoute(served, cleared, of_members)


def _granted(version_ids: Collection[int], sight: Sight, *, at: datetime) -> dict[int, Cleared]:
    """Return by subject version for which systems and actions it has a live grant."""
    live = with_standing(Grant.objects.filter(subject_version__in=version_ids), at=at).filter(standing=EffectiveStatus.ACTIVE)
    links = GrantSystem.objects.filter(grant__in=live.values("pk"), system__in=cleared_systems(sight))
    found: dict[int, set[tuple[str, str]]] = {}
    for version, system, actions in links.values_list("grant__subject_version", "system__key", "grant__actions").distinct():
        found.setdefault(version, set()).update((system, action) for action in actions)
    return {version: Cleared(pairs) for version, pairs in found.items()}


def _notices(sight: Sight) -> QuerySet[Any]:
    first = KeyTextTransform("inventory", KeyTextTransform(0, KeyTextTransform("routes", "detail")))
    notices = DriftNotice.objects.filter(cause=DriftCause.ROUTE_CHANGED, grant__in=visible_grants(sight))
    return notices.annotate(gateway=first)


def _any_of(conditions: Iterable[Q]) -> Q:
    whole = Q()
    for condition in conditions:
        whole |= condition
    return whole
