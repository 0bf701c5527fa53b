"""The routes of an inventory as its page shows them: held against a system, searched, and in pages."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from compliance.admin.names import address_of
from compliance.admin.sighted import sight
from compliance.selectors.gateways import Cleared, ClearedRoute, cleared_routes
from compliance.selectors.routing import Reached, cleared_systems
from compliance.selectors.sight import Sight
from evaluations.kernel.clock import now
from evaluations.kernel.display import Cell, Custom, Mark, anchor, chip, link, ticked
from policies.language.routing import CHANGES, REASONS, shown_path
from policies.models import System

ROUTES_SHOWN, MEMBERS_SHOWN, PAIRS_SHOWN = 25, 20, 6
ACTION = "write"
OPEN, UNKNOWN, CLOSED = (
    Mark("open", "fail", "lock_open"),
    Mark("unknown model", "missing", "help"),
    Mark("closed", "neutral", "lock"),
)
CLEARED, NOT_CLEARED = Mark("cleared", "pass", "check_circle"), Mark("not cleared", "fail", "cancel")
GRANTED, NO_GRANT = Mark("granted", "pass", "check_circle"), Mark("no grant", "fail", "cancel")
EVERY, ONLY_OPEN, ONLY_NOT_CLEARED = "", "open", "not-cleared"


class HeldForm(forms.Form):
    """Against what an inventory is held, and which of its routes are shown. Its words stand in the page's address."""

    system = forms.ModelChoiceField(
        label="Held against",
        queryset=System.objects.none(),
        to_field_name="key",
        required=False,
        empty_label="no system in particular",
        help_text="A system whose grants you may see",
    )
    action = forms.CharField(label="Action", required=False, max_length=40, help_text="What is done to it")
    show = forms.ChoiceField(
        label="Routes",
        required=False,
        choices=[(EVERY, "every route"), (ONLY_NOT_CLEARED, "those that are not cleared"), (ONLY_OPEN, "those that are open")],
    )
    q = forms.CharField(
        label="Name", required=False, max_length=200, help_text="Part of it", widget=forms.TextInput(attrs={"type": "search"})
    )

    def __init__(self, given: Any, seen_by: Sight) -> None:
        super().__init__({"action": ACTION, **{name: given[name] for name in self.base_fields if name in given}})
        systems: Any = self.fields["system"]
        systems.queryset = cleared_systems(seen_by).order_by("title", "key")
        systems.label_from_instance = lambda row: f"{row.title} ({row.key})"

    def asked_for(self) -> tuple[System | None, str]:
        """Return the system, where one is named that may be, and the action."""
        asked = self.cleaned_data if self.is_valid() else {}
        return asked.get("system"), asked.get("action") or ACTION


@dataclass(frozen=True)
class Held:
    """What a page shows of routes: against which system and action, None for none in particular."""

    system: System | None
    action: str

    def clears(self, route: ClearedRoute) -> bool:
        return bool(route.cleared_for) if self.system is None else (self.system.key, self.action) in route.cleared_for

    def is_shown(self, route: ClearedRoute, show: str) -> bool:
        if show == ONLY_OPEN:
            return not route.served.route.closed
        return show != ONLY_NOT_CLEARED or not self.clears(route)


def routes_section(row: Any, request: HttpRequest) -> Custom:
    """Return the section of an inventory's page that shows its routes, as far as the address asks for them."""
    form = HeldForm(request.GET, sight(request))
    held = Held(*form.asked_for())
    asked = form.cleaned_data
    every = cleared_routes(row, sight(request), at=now())
    wanted = asked.get("q", "").lower()
    found = [each for each in every if wanted in each.served.route.name.lower() and held.is_shown(each, asked.get("show", ""))]
    page = Paginator(found, ROUTES_SHOWN).get_page(request.GET.get("p"))
    sees_any = held.system is not None or form.fields["system"].queryset.exists()  # type: ignore[attr-defined]
    allowed = ""
    if held.system is not None and row.in_effect:
        query = urlencode({"system": held.system.key, "action": held.action})
        allowed = f"{reverse('admin:compliance_routinginventory_allowed', args=[row.pk])}?{query}"
    data = {
        "form": form,
        "sees_any": sees_any,
        "held": held,
        "cleared": sum(held.clears(each) for each in every),
        "count": len(every),
        "found": len(found),
        "narrowed": len(found) != len(every),
        "routes": [_shown(each, held, sees_any=sees_any) for each in page],
        "page": page,
        "older": _page_address(request, page.next_page_number()) if page.has_next() else "",
        "newer": _page_address(request, page.previous_page_number()) if page.has_previous() else "",
        "allowed": allowed,
    }
    return Custom("Routes", "writegate/sections/routes.html", data)


def _shown(route: ClearedRoute, held: Held, *, sees_any: bool) -> dict[str, Any]:
    """Return one route as its template shows it: what stands against it first."""
    members = [_member(item, granted, held) for item, granted in zip(route.served.reached, route.granted, strict=True)]
    members.sort(key=lambda member: member["order"])
    return {
        "name": route.served.route.name,
        "chip": chip(_mark(route, held)),
        "count": len(members),
        "cleared_for": _pairs(route.cleared_for) if sees_any and held.system is None else "",
        "opens": [
            {"because": REASONS[each.reason], "path": shown_path(each.path), "change": ticked(CHANGES[each.reason])}
            for each in route.served.route.opens
        ],
        "members": members[:MEMBERS_SHOWN],
        "more": len(members) - MEMBERS_SHOWN,
    }


def _mark(route: ClearedRoute, held: Held) -> Mark:
    if held.system is not None:
        return CLEARED if held.clears(route) else NOT_CLEARED
    if not route.served.route.closed:
        return OPEN
    return CLOSED if route.served.closed else UNKNOWN


def _member(item: Reached, granted: Cleared, held: Held) -> dict[str, Any]:
    cleared = bool(granted) if held.system is None else (held.system.key, held.action) in granted
    if item.version is None:
        stands: Cell = chip(UNKNOWN)
    elif held.system is not None:
        stands = chip(GRANTED if cleared else NO_GRANT)
    else:
        stands = _pairs(granted)
    return {
        "written": item.member.written,
        "means": link(item.version, empty=anchor(address_of(item.member.written), "nobody has said whom")),
        "stands": stands,
        "path": shown_path(item.member.path),
        "order": (item.version is not None) + cleared,
    }


def _pairs(pairs: Cleared) -> str:
    told = [f"{action} on {system}" for system, action in sorted(pairs)]
    more = f" and {len(told) - PAIRS_SHOWN} more" if len(told) > PAIRS_SHOWN else ""
    return f"{', '.join(told[:PAIRS_SHOWN])}{more}" if told else "nothing"


def _page_address(request: HttpRequest, number: int) -> str:
    query = request.GET.copy()
    query["p"] = str(number)
    return f"?{query.urlencode()}"
