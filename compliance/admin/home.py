"""The home page: what waits for the reader, the fleet matrix and recent drift, or the first steps of an empty system."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest
from django.urls import reverse

from compliance.admin.drift import timeline
from compliance.admin.head import shown_head
from compliance.admin.inbox import waiting
from compliance.selectors.fleet import Fleet, FleetRow, Stand, read_fleet
from evaluations.kernel.display import anchor, link, list_link, number
from evaluations.vocabulary import Unit
from policies.admin.marks import domain_words, result_chip
from policies.models import Standing
from policies.selectors.policies import noted_unreadable
from policies.vocabulary import ANY_DOMAIN, Result

ROWS_A_PAGE = 50
SHORT = Context(prec=3)
ORDERS = {"key": "by key", "edge": "nearest to the edge first"}
_RESULT_ORDER = {str(word): place for place, word in enumerate(Result.values)}


def context(request: HttpRequest) -> dict[str, Any]:
    """Return what the home template shows beside the frame's own."""
    fleet = read_fleet()
    order = request.GET.get("order", "key")
    rows = list(fleet.rows)
    if order == "edge":
        # Those of which nothing was measured have no edge, and stand last.
        rows.sort(key=lambda row: (row.edge is None, row.edge or 0, row.version.subject.key))
    page = Paginator(rows, ROWS_A_PAGE).get_page(request.GET.get("p"))
    empty = not fleet.rows or not fleet.policies
    return {
        "empty": empty,
        "none_in_force": not fleet.active,
        "inbox": waiting(request),
        "unreadable": [link(version) for version, _ in noted_unreadable()],
        "drift": None if empty else timeline(request),
        "head": None if empty else shown_head(),
        "columns": [_column(fleet, place) for place in range(len(fleet.policies))],
        "rows": [_row(row, fleet) for row in page.object_list],
        "page": page,
        "order": order if order in ORDERS else "key",
        "orders": list(ORDERS.items()),
        "total": len(fleet.rows),
        "more": fleet.more,
    }


def _column(fleet: Fleet, place: int) -> dict[str, Any]:
    version = fleet.policies[place]
    stands = [row.places[place] for row in fleet.rows]
    cleared = sum(bool(cell) and all(stand.result == Result.PASS for stand in cell) for cell in stands)
    return {
        "link": link(version, version.policy.name),
        "name": version.policy.name,
        "version": version.number,
        "state": "active" if version.pk in fleet.active else "not active",
        "cleared": f"{cleared} of {len(stands)} pass",
    }


def _row(row: FleetRow, fleet: Fleet) -> dict[str, Any]:
    return {
        "link": link(row.version.subject, row.version.subject.key),
        "version": row.version.number,
        "cells": [
            {"policy": policy.policy.name, "stands": _stands(place, row, policy.pk)}
            for policy, place in zip(fleet.policies, row.places, strict=True)
        ],
        "edge": _edge(row.edge),
    }


def _edge(edge: Decimal | None) -> str:
    return "nothing was measured" if edge is None else number(SHORT.plus(edge), Unit.PERCENT)


def _stands(place: Sequence[Stand], row: FleetRow, policy_version_id: int) -> list[Any]:
    """Return the chips of one place: one a result, with the domains it holds in."""
    groups: defaultdict[str, list[Stand]] = defaultdict(list)
    for stand in place:
        groups[stand.result].append(stand)
    shown = []
    for result, stands in sorted(groups.items(), key=lambda item: _RESULT_ORDER.get(item[0], 0)):
        chip = result_chip(result)
        if len(stands) == 1:
            address = reverse("admin:policies_verdict_change", args=[stands[0].verdict_id])
            where = "" if stands[0].domain == ANY_DOMAIN else f"in {domain_words(stands[0].domain)}"
            shown.append({"chip": anchor(address, chip), "where": where})
        else:
            every = list_link(
                Standing,
                chip,
                subject_version__id__exact=row.version.pk,
                policy_version__id__exact=policy_version_id,
                verdict__result__exact=result,
            )
            shown.append({"chip": every, "where": f"in {len(stands)} domains"})
    return shown
