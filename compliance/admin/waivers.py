"""Waivers: failing soft rules that the right people accepted for a time. Each goes on showing as failed; one person takes it back."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, reverse

from compliance.admin.requests import request_link
from compliance.admin.rights import actor_of
from compliance.admin.sighted import ReasonedForm, SightedAdmin, sight, time_left
from compliance.models import SignOffRequest, Waiver
from compliance.selectors.sight import Sight, visible_requests
from compliance.selectors.systems import may_manage_system, roles_held
from compliance.selectors.waivers import find_waivers
from compliance.services.waivers import revoke_waiver
from evaluations.kernel.clock import now
from evaluations.kernel.display import ActorReference, Cell, Custom, Fields, Mark, Record, chip, instant, link, whole_digest
from evaluations.kernel.errors import DomainError
from evaluations.kernel.numbers import plain

LIVE = Mark("counts", "stale", "rule")
MARKS = {"waits": Mark("not begun", "missing", "schedule"), "over": Mark("ended", "missing", "event_busy")}
REVOKED = Mark("taken back", "fail", "block")


class LiveFilter(admin.SimpleListFilter):
    title = "whether it counts"
    parameter_name = "counts"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "counts now"), ("no", "does not count")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in ("yes", "no"):
            return queryset
        live = find_waivers(sight(request), at=now(), live=self.value() == "yes")
        return queryset.filter(pk__in=live.values("pk"))


@admin.register(Waiver)
class WaiverAdmin(SightedAdmin):
    about = "Failing soft rules that were accepted for a time. Each still shows as failed; nothing worse than was measured is covered."
    empty_sentence = "No waiver that you may see was ever signed."
    list_display = ("rule_shown", "subject", "on_system", "stands", "covers", "left", "until")
    list_display_links = ("rule_shown",)
    list_filter = (LiveFilter,)
    search_fields = ("rule", "policy__name", "subject_version__subject__key", "system__key", "^uid")
    ordering = ("-id",)

    def visible(self, sight: Sight) -> QuerySet[Waiver]:
        return find_waivers(sight, at=now())

    @admin.display(description="rule", ordering="rule")
    def rule_shown(self, row: Waiver) -> str:
        return f"{row.rule} of {row.policy.name}"

    @admin.display(description="subject", ordering="subject_version__subject__key")
    def subject(self, row: Waiver) -> str:
        return str(row.subject_version)

    @admin.display(description="on", ordering="system__key")
    def on_system(self, row: Waiver) -> str:
        return row.system.key

    @admin.display(description="stands")
    def stands(self, row: Waiver) -> Cell:
        return chip(_mark(row))

    @admin.display(description="covers")
    def covers(self, row: Waiver) -> str:
        return _covers(row)

    @admin.display(description="time left")
    def left(self, row: Waiver) -> str:
        return time_left(row.ends_at, now()) if _mark(row) is LIVE else "over"

    @admin.display(description="until", ordering="ends_at")
    def until(self, row: Waiver) -> Cell:
        return instant(row.ends_at)

    def get_urls(self) -> list[URLPattern]:
        return [self.own_path("<int:pk>/revoke/", self.revoke_view, "revoke"), *super().get_urls()]

    def revoke_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Ask for a reason; on POST take the waiver back."""
        row: Waiver = self.found(request, pk)
        form = ReasonedForm(request.POST) if request.method == "POST" else ReasonedForm()
        back = reverse("admin:compliance_waiver_change", args=[pk])
        if form.is_bound and form.is_valid():
            try:
                revoke_waiver(actor=actor_of(request), waiver=row, **form.cleaned_data)
            except DomainError as refused:
                form.add_refusal(refused)
            else:
                messages.success(request, "It is taken back; what rests on it is looked at again.")
                return redirect(back)
        return self.form_page(
            request,
            form,
            title="Take back",
            lead=f"Take back the waiver of {row.rule} for {row.subject_version} on {row.system.title}",
            about="From this moment on the rule counts in full. Grants that rest on the waiver are looked at again at once.",
            button="Take it back",
            back=back,
            status=422 if form.errors else 200,
        )

    def describe(self, row: Any, request: HttpRequest) -> Record:
        person = sight(request).person
        asked: SignOffRequest | None = (
            visible_requests(sight(request)).select_related("subject_version__subject").filter(pk=row.request_id).first()
        )
        closes = may_manage_system(roles_held(person_id=person, at=now()), row.system)
        mark = _mark(row)
        acts = [("Take it back", reverse("admin:compliance_waiver_revoke", args=[row.pk]))]
        offered = mark is LIVE and (closes or row.request.requester_id == person)
        taken = getattr(row, "revocation", None)
        rows: list[tuple[str, Cell]] = [
            ("Rule", row.rule),
            ("Policy", link(row.policy)),
            ("Subject", link(row.subject_version)),
            ("System", link(row.system)),
            ("Covers", _covers(row)),
            ("From", instant(row.starts_at)),
            ("Until", instant(row.ends_at)),
            ("Time left", time_left(row.ends_at, now())),
            ("Why", row.reason),
            ("Signed on", request_link(asked) if asked else "a request that you do not see"),
            ("Completed by", ActorReference(row.waived_by)),
            ("Rule digest", whole_digest(row.rule_digest)),
        ]
        if taken is not None:
            rows += [
                ("Taken back", instant(taken.recorded_at)),
                ("By", ActorReference(taken.revoked_by)),
                ("Because", taken.reason),
            ]
        return Record(
            lead=f"{row.rule} of {row.policy.name} fails for {row.subject_version} on {row.system.title}, and was accepted for a time.",
            mark=chip(mark),
            target=("waiver", str(row.uid)),
            sections=[
                *([Custom("Act", "writegate/sections/links.html", {"links": acts, "note": ""})] if offered else []),
                Fields("Waiver", rows),
            ],
        )


def _mark(row: Waiver) -> Mark:
    at = now()
    if getattr(row, "revocation", None) is not None:
        return REVOKED
    if row.ends_at <= at:
        return MARKS["over"]
    return LIVE if row.starts_at <= at else MARKS["waits"]


def _covers(row: Waiver) -> str:
    return f"{'at least' if row.floor else 'at most'} {plain(row.measured)}, as was measured"
