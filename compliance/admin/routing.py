"""Routes: what gateways serve, who can answer behind each name, and for which systems all of that is granted.

Every member of staff sees what was handed in, as every reader of the API does; what is granted, those who may know it of a system.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.http import urlencode

from compliance.admin.drift import shown_drift
from compliance.admin.log import attachment
from compliance.admin.rights import actor_of
from compliance.admin.routes import HeldForm, routes_section
from compliance.admin.sighted import SightedAdmin, name_people, sight
from compliance.models import RoutingInventory
from compliance.selectors.gateways import (
    Counts,
    Told,
    counted_at_import,
    gateways_of,
    last_check_at,
    listed_inventories,
    told_of,
    told_since,
)
from compliance.selectors.routing import BESIDE, allowed_routing
from compliance.selectors.sight import Sight
from compliance.selectors.systems import kinds_to_register, roles_held
from compliance.services.registrations import RoleMissing
from compliance.services.routing import reconcile_routes
from evaluations.admin.subjects import SubjectAdmin
from evaluations.kernel.clock import now
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Custom,
    Fields,
    Mark,
    Record,
    Section,
    Table,
    anchor,
    chip,
    instant,
    link,
    shortened,
    url_of,
    whole_digest,
)
from evaluations.kernel.errors import DomainError
from evaluations.models import Subject
from evaluations.vocabulary import SubjectKind
from policies.language.routing_forms import LITELLM, OPENROUTER, form_of_start
from policies.language.routing_inventory import yaml_of

TOLD_SHOWN = 10
FORM_WORDS = {LITELLM: "LiteLLM", OPENROUTER: "OpenRouter"}
IN_EFFECT, REPLACED = Mark("in effect", "pass", "check_circle"), Mark("replaced", "missing", "history")
WHY_NOT = (
    "Reconciling may register a new version of a route, so it needs the role administrator, now. An administrator gives roles."
)


class EffectFilter(admin.SimpleListFilter):
    """What is in effect, unless somebody asks for what stood before."""

    title = "whether it is in effect"
    parameter_name = "effect"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("replaced", "replaced"), ("every", "in effect or replaced")]

    def choices(self, changelist: Any) -> Any:
        first, *rest = super().choices(changelist)
        return [{**first, "display": "in effect"}, *rest]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset if self.value() == "every" else queryset.filter(in_effect=self.value() != "replaced")


@admin.register(RoutingInventory)
class RoutingInventoryAdmin(SightedAdmin):
    about = (
        "What gateways serve, as it was handed in: names, and the closed set of models that can answer behind each."
        " An open name is one behind which that set cannot be known; it clears nobody."
    )
    empty_sentence = "Nobody has handed in what a gateway serves."
    change_list_template = "writegate/routing_list.html"
    list_display = ("gateway", "stands", "form_shown", "read", "route_count", "reconciled", "outcome")
    list_filter = (EffectFilter,)
    search_fields = ("name", "^uid", "^digest")
    ordering = ("name", "-id")

    def visible(self, sight: Sight) -> QuerySet[Any]:
        return listed_inventories()

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        found = super().get_changelist_instance(request)
        told = told_since([row for row in found.result_list if row.in_effect], sight(request))
        for row in found.result_list:
            row.shown_told = told.get(row.name)
        return found

    def prepare_rows(self, rows: Sequence[Any]) -> None:
        counts, checked_at = counted_at_import([row.uid for row in rows]), last_check_at()
        for row in rows:
            row.shown_counts = counts.get(str(row.uid))
            row.shown_check = _reconciled_at(row, checked_at)

    @admin.display(description="gateway", ordering="name")
    def gateway(self, row: RoutingInventory) -> Cell:
        return shortened(row.name)

    @admin.display(description="stands")
    def stands(self, row: Any) -> Cell:
        return chip(IN_EFFECT if row.in_effect else REPLACED)

    @admin.display(description="form")
    def form_shown(self, row: Any) -> str:
        return _form(row)

    @admin.display(description="read", ordering="id")
    def read(self, row: RoutingInventory) -> Cell:
        return instant(row.imported_at)

    @admin.display(description="routes")
    def route_count(self, row: Any) -> str:
        return _counted(row.shown_counts)

    @admin.display(description="reconciled last")
    def reconciled(self, row: Any) -> Cell:
        return instant(row.shown_check, empty="no longer")

    @admin.display(description="told of")
    def outcome(self, row: Any) -> Cell:
        return _told_words(row.shown_told) if row.in_effect else "see its page"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        offered = {
            "api": request.build_absolute_uri(reverse("api-v1:routing")),
            "may_reconcile": _registers_routes(request),
            "reconcile": reverse("admin:compliance_routinginventory_reconcile"),
        }
        return super().changelist_view(request, {**offered, **(extra_context or {})})

    def get_urls(self) -> list[URLPattern]:
        return [
            self.own_path("reconcile/", self.reconcile_view, "reconcile"),
            self.own_path("<int:pk>/allowed/", self.allowed_view, "allowed"),
            *super().get_urls(),
        ]

    def reconcile_view(self, request: HttpRequest) -> HttpResponseBase:
        """On POST hold every gateway's inventory against what is registered and granted now, say what came of it, and lead back."""
        pk = request.POST.get("back", "")
        row = self.get_queryset(request).filter(pk=pk).first() if pk.isascii() and pk.isdigit() and len(pk) < 19 else None
        back = reverse("admin:compliance_routinginventory_changelist") if row is None else url_of(row)
        if request.method != "POST":
            return redirect(back)
        try:
            done = reconcile_routes(actor=actor_of(request), kinds=_kinds(request))
        except RoleMissing:
            return self.page(request, "writegate/refused.html", "Another role is needed", status=403, why=WHY_NOT, back=back)
        except DomainError as refused:
            messages.error(request, f"Nothing was changed: {refused.detail}.")
        else:
            versions = f"New versions: {', '.join(done.registered)}." if done.registered else "No route has a new version."
            told = f"People were told of {_paths(done.told)} more." if done.told else "There was nothing new to tell anybody of."
            messages.success(request, f"{_routes(done.routes)} of every gateway were looked at. {versions} {told}")
        return redirect(back)

    def allowed_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Hand out the part of an inventory in effect that is cleared for a system and action, in the form it was handed in."""
        row = self.found(request, pk)
        system, action = HeldForm(request.GET, sight(request)).asked_for()
        if system is None or not row.in_effect:
            raise Http404("no such part of an inventory in effect")
        content = yaml_of(allowed_routing(row, system, action, now())).encode()
        name = f"{row.name}-{system.key}-{action}.yaml".replace("/", "-")
        return attachment(content, name, kind="application/yaml; charset=utf-8")

    def describe(self, row: Any, request: HttpRequest) -> Record:
        replaced_by = None if row.in_effect else RoutingInventory.objects.defer("content").get(previous=row)
        counts = counted_at_import([row.uid]).get(str(row.uid))
        told = told_of(row, sight(request), until=replaced_by and replaced_by.imported_at, limit=TOLD_SHOWN + 1)
        checked_at = _reconciled_at(row, last_check_at())
        fields: list[tuple[str, Cell]] = [
            ("Gateway", row.name),
            ("Form", _form(row)),
            ("Handed in", instant(row.imported_at)),
            ("By", ActorReference(row.imported_by)),
            ("Routes", _counted(counts)),
            ("Reconciled last", instant(checked_at, empty="no longer: it was replaced")),
            ("The one before", link(row.previous, "what stood before", empty="none: it is the first")),
            ("Replaced by", link(replaced_by, "what stands since", empty="nothing: it is in effect")),
            ("Digest", whole_digest(row.digest)),
        ]
        return Record(
            lead=f"What {row.name} serves{'' if row.in_effect else ', until it was replaced'}.",
            mark=chip(IN_EFFECT if row.in_effect else REPLACED),
            target=("routing_inventory", str(row.uid)),
            sections=[
                *([self._reconcile_section(row)] if row.in_effect and _registers_routes(request) else []),
                Fields("Inventory", fields),
                routes_section(row, request),
                _told_section(told),
            ],
        )

    def _reconcile_section(self, row: RoutingInventory) -> Custom:
        data = {"address": reverse("admin:compliance_routinginventory_reconcile"), "back": row.pk}
        return Custom("Reconcile", "writegate/sections/reconcile.html", data)


@SubjectAdmin.add_section
def gateways_of_subject(row: Subject, request: HttpRequest) -> Section | None:
    """Show which gateways serve a route; of an agent, those that serve its name, where any does."""
    if row.kind not in (SubjectKind.ROUTE, SubjectKind.AGENT):
        return None
    names = dict.fromkeys((row.key, row.key.removeprefix(BESIDE)) if row.kind == SubjectKind.ROUTE else (row.key,))
    found = [(name, inventory) for name in names for inventory in gateways_of(name)]
    if row.kind == SubjectKind.AGENT and not found:
        return None
    return Table(
        "Gateways that serve it",
        ("Gateway", "Under the name", "Form", "Read"),
        [
            [anchor(f"{url_of(each)}?{urlencode({'q': name})}", each.name), name, _form(each), instant(each.imported_at)]
            for name, each in found
        ],
        empty="No gateway whose inventory is in effect serves it.",
        note="What can answer behind it there, and for which systems all of that is granted, stands on the gateway's page.",
    )


def _told_section(rows: Sequence[Any]) -> Custom:
    shown = [shown_drift(row) for row in rows[:TOLD_SHOWN]]
    name_people(row["actor"] for row in shown)
    data = {"rows": shown, "alone": False, "nothing": "Of no path, as far as you may see the grants it would be about."}
    return Custom("What people were told of", "writegate/sections/drift_rows.html", data)


def _reconciled_at(row: Any, checked_at: datetime | None) -> datetime | None:
    """Return when an inventory was last reconciled, None once it is replaced. Handing one in reconciles it too."""
    if not row.in_effect:
        return None
    return max(row.imported_at, checked_at) if checked_at is not None else row.imported_at


def _form(row: Any) -> str:
    return FORM_WORDS[form_of_start(bytes(row.head))]


def _told_words(told: Told | None) -> str:
    return "no path" if told is None else f"{_paths(told.paths)}, last {told.last_at:%Y-%m-%d}"


def _counted(counts: Counts | None) -> str:
    return "not stated" if counts is None else f"{counts.routes:,}, of which {counts.opens or 'none'} open"


def _paths(count: int) -> str:
    return f"{count:,} path{'' if count == 1 else 's'}"


def _routes(count: int) -> str:
    return f"{count:,} route{'' if count == 1 else 's'}"


def _kinds(request: HttpRequest) -> Any:
    user: Any = request.user
    return kinds_to_register(roles_held(person_id=user.person_id, at=now()))


def _registers_routes(request: HttpRequest) -> bool:
    return SubjectKind.ROUTE in _kinds(request)
