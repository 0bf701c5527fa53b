"""Grants: who may act on what, until when, on whose word, and every move since. Taking access away is one click; giving it never is."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from compliance.admin.asking import OF_GRANTS
from compliance.admin.decisions import decisions_section
from compliance.admin.drift import DriftPages, drift_section
from compliance.admin.requests import request_link, status_chip
from compliance.admin.rights import actor_of
from compliance.admin.sighted import ReasonedForm, SightedAdmin, person_reference, sight, time_left
from compliance.admin.signatures import meaning_chip
from compliance.admin.stopping import StoppingPages
from compliance.models import Grant, GrantEvent, Seat
from compliance.selectors.grants import find_grants, standing_of
from compliance.selectors.requests import status_at
from compliance.selectors.sight import Sight, visible_grants, visible_requests
from compliance.selectors.systems import may_manage_system, roles_held
from compliance.services.stopping import revoke_grant, suspend_grant, suspend_grants
from compliance.vocabulary import Cause, EffectiveStatus, GrantKind, Role
from evaluations.kernel.clock import now
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Custom,
    Fields,
    Mark,
    Record,
    Table,
    chip,
    instant,
    link,
    said,
    words,
)
from evaluations.kernel.errors import DomainError
from policies.models import System

SHOWN = 50
CHOSEN = "g"
"""The address of the page that suspends several names each by this."""
STATUS_MARKS = {
    EffectiveStatus.ACTIVE: Mark("active", "pass", "check_circle"),
    EffectiveStatus.NOT_BEGUN: Mark("not begun", "missing", "schedule"),
    EffectiveStatus.SUSPENDED: Mark("suspended", "stale", "pause_circle"),
    EffectiveStatus.EXPIRED: Mark("expired", "missing", "event_busy"),
    EffectiveStatus.REVOKED: Mark("revoked", "fail", "block"),
}


class StandingFilter(admin.SimpleListFilter):
    title = "how it stands"
    parameter_name = "stands"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(word), mark.word) for word, mark in STATUS_MARKS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(standing=self.value()) if self.value() in EffectiveStatus.values else queryset


@admin.register(Grant)
class GrantAdmin(DriftPages, StoppingPages, SightedAdmin):
    about = "Which subject may act on which system, until when. Whether one may be used is read at the moment of use."
    empty_sentence = "No grant that you may see was ever made."
    change_list_template = "writegate/grant_list.html"
    list_display = ("who", "may", "on_systems", "stands", "why", "left", "until", "kind_shown")
    list_filter = (
        StandingFilter,
        "kind",
        ("subject_version__subject", AutocompleteSelectFilter),
        ("grant_systems__system", AutocompleteSelectFilter),
    )
    search_fields = ("subject_version__subject__key", "grant_systems__system__key", "grant_systems__system__title", "^uid")
    ordering = ("-id",)

    def visible(self, sight: Sight) -> QuerySet[Grant]:
        return find_grants(sight, now=now())

    def prepare_rows(self, rows: Any) -> None:
        at = now()
        for row in rows:
            row.shown, row.shown_at = standing_of(row, at=at), at

    @admin.display(description="subject", ordering="subject_version__subject__key")
    def who(self, row: Grant) -> str:
        return str(row.subject_version)

    @admin.display(description="may")
    def may(self, row: Grant) -> str:
        return ", ".join(row.actions)

    @admin.display(description="on")
    def on_systems(self, row: Any) -> str:
        return ", ".join(row.system_keys)

    @admin.display(description="stands", ordering="standing")
    def stands(self, row: Any) -> Cell:
        return chip(STATUS_MARKS[row.shown.status])

    @admin.display(description="because")
    def why(self, row: Any) -> str:
        return str(row.shown.cause.label)

    @admin.display(description="time left")
    def left(self, row: Any) -> str:
        return time_left(row.ends_at, row.shown_at) if row.shown.until else "over"

    @admin.display(description="until", ordering="ends_at")
    def until(self, row: Grant) -> Cell:
        return instant(row.ends_at)

    @admin.display(description="kind", ordering="kind")
    def kind_shown(self, row: Grant) -> str:
        return row.get_kind_display()

    # --- suspending several -------------------------------------------------------------------------------------------------

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Offer to suspend what is ticked: there is no bulk way to give access, only one to take it away."""
        return {"suspend": (None, "suspend", "suspend those that are ticked")}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if request.method == "POST" and request.POST.get("action") == "suspend":
            chosen = request.POST.getlist("_selected_action")
            if not chosen or request.POST.get("select_across") == "1":
                told = "Tick the grants to suspend on this page; what reaches further is for the stop button."
                messages.warning(request, told)
                return redirect("admin:compliance_grant_changelist")
            return redirect(f"{reverse('admin:compliance_grant_suspend_several')}?{urlencode({CHOSEN: chosen}, doseq=True)}")
        return super().changelist_view(request, extra_context)

    def get_urls(self) -> list[URLPattern]:
        return [
            self.own_path("suspend/", self.suspend_several_view, "suspend_several"),
            self.own_path("<int:pk>/suspend/", self.suspend_view, "suspend"),
            self.own_path("<int:pk>/revoke/", self.revoke_view, "revoke"),
            *self.stopping_urls(),
            *self.drift_urls(),
            *super().get_urls(),
        ]

    def suspend_several_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show what was ticked and ask for a reason; on POST suspend those that are active, each with its own event."""
        pks = [pk for pk in request.GET.getlist(CHOSEN) if pk.isascii() and pk.isdigit() and len(pk) < 19]
        grants = list(self.get_queryset(request).filter(pk__in=pks))
        if not grants or len(grants) != len(set(pks)):
            raise Http404("no such grants")
        form = ReasonedForm(request.POST) if request.method == "POST" else ReasonedForm()
        if form.is_bound and form.is_valid():
            try:
                done = suspend_grants(actor=actor_of(request), grants=grants, **form.cleaned_data)
            except DomainError as refused:
                form.add_refusal(refused)
            else:
                messages.success(request, f"{len(done)} of {len(grants)} suspended; the others were not active.")
                return redirect("admin:compliance_grant_changelist")
        many = f"{len(grants)} grant{'' if len(grants) == 1 else 's'}"
        return self.form_page(
            request,
            form,
            title="Suspend",
            lead=f"Suspend {many}",
            about="They may not be used from this moment on. Each comes back only through its quorum.",
            button=f"Suspend {many}",
            back=reverse("admin:compliance_grant_changelist"),
            status=422 if form.errors else 200,
            sections=[grants_table("What was ticked", grants)],
        )

    # --- one grant ----------------------------------------------------------------------------------------------------------

    def suspend_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        return self._close(request, pk, suspend_grant, "It is suspended: it may not be used from this moment on.")

    def revoke_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        return self._close(request, pk, revoke_grant, "It is revoked, for good.")

    def _close(self, request: HttpRequest, pk: int, act: Any, done: str) -> HttpResponseBase:
        row = self.found(request, pk)
        if request.method == "POST":
            form = ReasonedForm(request.POST)
            if form.is_valid():
                try:
                    act(actor=actor_of(request), grant=row, **form.cleaned_data)
                except DomainError as refused:
                    form.add_refusal(refused)
                else:
                    messages.success(request, done)
            for problems in form.errors.values():
                for problem in problems:
                    messages.error(request, str(problem))
        return redirect("admin:compliance_grant_change", pk)

    def describe(self, row: Any, request: HttpRequest) -> Record:
        at = now()
        standing = standing_of(row, at=at)
        systems = list(System.objects.filter(grant_systems__grant=row).order_by("key"))
        named = " and ".join(system.title for system in systems)
        countdown = time_left(row.ends_at, at) if standing.until else "over"
        requester = person_reference(row.requester_id)
        certified = instant(row.recertify_by, empty="never: it is short")
        recertified = certified
        if standing.until and row.recertify_by:
            recertified = format_html("{} · {}", certified, time_left(row.recertify_by, at))
        events = list(GrantEvent.objects.filter(grant=row).order_by("-number")[:SHOWN])
        acts = self._acts(request, row, standing.status, systems)
        drifted = drift_section(row)
        seen = visible_grants(sight(request))
        before = seen.filter(pk=row.renews_id).first() if row.renews_id else None
        after = seen.filter(renews=row).order_by("-id").first()
        return Record(
            lead=f"{row.subject_version} {'may' if standing.usable else 'may not now'} {' and '.join(row.actions)} to {named}.",
            mark=chip(STATUS_MARKS[standing.status]),
            target=("grant", str(row.uid)),
            sections=[
                *([Custom("Act", "writegate/sections/grant_acts.html", acts)] if acts else []),
                Fields(
                    "Grant",
                    [
                        ("Stands so because", str(standing.cause.label)),
                        ("Time left", countdown),
                        ("From", instant(row.starts_at)),
                        ("Until", instant(row.ends_at)),
                        ("Next certification", recertified),
                        ("Subject", link(row.subject_version)),
                        ("Systems", words(system.key for system in systems)),
                        ("Kind", row.get_kind_display()),
                        ("Asked for by", requester),
                        ("Why", row.reason),
                        (
                            "Renews",
                            link(
                                before, empty="nothing: it is the first" if row.renews_id is None else "one that you do not see"
                            ),
                        ),
                        ("Renewed by", link(after, empty="nothing that you see")),
                    ],
                ),
                *([drifted] if drifted else []),
                decisions_section(request, row),
                self._rests(row),
                Table(
                    "Every move, newest first",
                    ("Move", "It became", "Because", "More", "By", "When"),
                    [
                        [
                            event.get_move_display(),
                            chip(STATUS_MARKS[EffectiveStatus(event.status)]),
                            str(Cause(event.cause).label),
                            detail_words(event.detail),
                            ActorReference(event.actor),
                            instant(event.at),
                        ]
                        for event in events
                    ],
                    empty="It has not moved.",
                ),
                self._later(row, request),
            ],
        )

    def _rests(self, row: Grant) -> Table:
        """Return who signed the dossier that the grant rests on now, each in the place that she filled."""
        seats = (
            Seat.objects.filter(dossier=row.dossier_id)
            .select_related("factor", "sign_off__request")
            .order_by("factor__ordinal", "number")
            if row.dossier_id
            else Seat.objects.none()
        )
        rows = [
            [
                seat.factor.factor,
                person_reference(seat.person_id),
                ", ".join(str(Role(role).label) for role in seat.sign_off.roles),
                meaning_chip(seat.sign_off.meaning),
                seat.sign_off.reason,
                instant(seat.sign_off.signed_at),
                link(seat.sign_off.request, "the dossier"),
            ]
            for seat in seats
        ]
        empty = (
            "One person opened it as break-glass: nobody signed it, and others review it."
            if row.kind == GrantKind.BREAK_GLASS
            else ""
        )
        columns = ("For", "Signed by", "As", "Meaning", "Why", "When", "On")
        return Table("Whose signatures it rests on", columns, rows, empty=empty or "It rests on no signature.")

    def _later(self, row: Grant, request: HttpRequest) -> Table:
        at = now()
        found = (
            visible_requests(sight(request))
            .filter(grant=row)
            .select_related("subject_version__subject", "policy", "policy_version__policy", "evidence")
        )
        rows = [
            [request_link(item), status_chip(status_at(item, at)), person_reference(item.requester_id), instant(item.created_at)]
            for item in found.order_by("-id")[:SHOWN]
        ]
        return Table("What was asked for it since", ("Request", "Status", "By", "Filed"), rows, empty="Nothing.")

    def _acts(
        self, request: HttpRequest, row: Grant, status: EffectiveStatus, systems: Sequence[System]
    ) -> Mapping[str, Any] | None:
        """Return what the signed-in person may do to the grant as it stands; None where nothing is left to do."""
        if status in (EffectiveStatus.EXPIRED, EffectiveStatus.REVOKED) and row.kind == GrantKind.BREAK_GLASS:
            return None
        person = sight(request).person
        held = roles_held(person_id=person, at=now())
        closes = any(may_manage_system(held, system) for system in systems)
        alive = status not in (EffectiveStatus.EXPIRED, EffectiveStatus.REVOKED)
        asks = row.kind == GrantKind.STANDING and any(item.role in (Role.REQUESTER, Role.SYSTEM_OWNER) for item in held)
        wanted = {
            "renewal": status != EffectiveStatus.REVOKED,
            "reinstatement": row.status == "suspended" and alive,
            "recertification": row.status == "active" and alive,
            "waiver": alive,
        }
        links = [
            (OF_GRANTS[word][0], reverse(f"admin:compliance_signoffrequest_ask_{word}", args=[row.pk]))
            for word, offered in wanted.items()
            if asks and offered
        ]
        acts = {
            "suspend": reverse("admin:compliance_grant_suspend", args=[row.pk])
            if closes and row.status == "active" and alive
            else "",
            "revoke": reverse("admin:compliance_grant_revoke", args=[row.pk])
            if alive and (closes or row.requester_id == person)
            else "",
            "links": links,
        }
        return acts if any(acts.values()) else None


def grants_table(title: str, grants: Sequence[Any]) -> Table:
    """Return grants as a table: who may do what where, and how each stands now."""
    at = now()
    return Table(
        title,
        ("Grant", "May", "On", "Stands", "Until"),
        [
            [
                link(row, str(row.subject_version)),
                ", ".join(row.actions),
                ", ".join(row.system_keys),
                chip(STATUS_MARKS[standing_of(row, at=at).status]),
                instant(row.ends_at),
            ]
            for row in grants
        ],
        empty="None.",
    )


def detail_words(detail: Mapping[str, Any]) -> str:
    """Spell what an event says beside its cause, as far as it is plain words and numbers."""
    plain = (
        f"{name.replace('_', ' ')}: {value}" for name, value in detail.items() if isinstance(value, str | int) and value != ""
    )
    return said("\n".join(plain), empty="nothing more")
