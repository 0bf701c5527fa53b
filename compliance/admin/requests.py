"""Requests for signatures: the list, and the page on which people read a dossier and sign it.

Every act is a view of its own that calls one service: nothing is signed by a list, a selection or a link.
"""

from contextlib import suppress
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.http import urlencode

from compliance.admin.dossier import earlier_dossier, read_dossier, shown_changes, shown_dossier
from compliance.admin.rights import actor_of
from compliance.admin.sighted import (
    ReasonedForm,
    SightedAdmin,
    name_people,
    person_reference,
    sight,
    time_left,
)
from compliance.admin.signatures import (
    offered_meanings,
    references_of,
    shown_comments,
    shown_factors,
    shown_quorum,
    shown_sign_offs,
    sign_offs_of,
    why_not,
)
from compliance.admin.signing import KEPT, CommentForm, Shown, SignForm, SigningPages
from compliance.admin.tightening import TighteningPages
from compliance.models import Dossier, Grant, SignOffRequest
from compliance.selectors.access_tasks import Origin, origin_of
from compliance.selectors.dossiers.build import build_dossier
from compliance.selectors.proposals import plain_value
from compliance.selectors.requests import find_requests, status_at
from compliance.selectors.sight import Sight, visible_requests
from compliance.selectors.signers import read_quorum
from compliance.services.many import OneAtATime, sign_many
from compliance.services.notices import question_of
from compliance.vocabulary import RequestKind, RequestStatus
from evaluations.kernel.clock import now
from evaluations.kernel.display import ActorReference, Cell, Mark, chip, digest, instant, link, ticked

ABOUT = ("dossier", "subject_version__subject", "policy", "policy_version__policy", "evidence", "grant__dossier")
STATUS_MARKS = {
    RequestStatus.OPEN: Mark("open", "stale", "hourglass_top"),
    RequestStatus.COMPLETED: Mark("signed", "pass", "check_circle"),
    RequestStatus.REJECTED: Mark("rejected", "fail", "cancel"),
    RequestStatus.WITHDRAWN: Mark("withdrawn", "missing", "undo"),
    RequestStatus.EXPIRED: Mark("expired", "missing", "schedule"),
}

BY_MACHINE = Mark("asked by a machine", "neutral", "smart_toy")
EMERGENCY = Mark("an emergency, says the caller", "stale", "priority_high")


class StatusFilter(admin.SimpleListFilter):
    title = "status"
    parameter_name = "standing"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(word), mark.word) for word, mark in STATUS_MARKS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in RequestStatus.values:
            return queryset
        return queryset.filter(pk__in=find_requests(sight(request), at=now(), status=self.value()).values("pk"))


class MineFilter(admin.SimpleListFilter):
    title = "who it concerns"
    parameter_name = "for"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("me", "waiting for my signature"), ("mine", "asked for by me")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in ("me", "mine"):
            return queryset
        only = True if self.value() == "me" else None
        found = find_requests(sight(request), at=now(), waiting_for_me=only, mine=True if only is None else None)
        return queryset.filter(pk__in=found.values("pk"))


@admin.register(SignOffRequest)
class SignOffRequestAdmin(SigningPages, TighteningPages, SightedAdmin):
    about = (
        "What no one person may do: each is a dossier that the right people sign, one by one. Nothing is approved from a list."
    )
    empty_sentence = "Nobody has asked for anything that you may see."
    list_display = ("asked_for", "about_what", "on_systems", "stands", "by", "time", "filed")
    list_display_links = ("asked_for",)
    list_filter = ("kind", StatusFilter, MineFilter)
    search_fields = (
        "subject_version__subject__key",
        "about_systems__system__key",
        "about_systems__system__title",
        "policy__name",
        "^uid",
    )
    ordering = ("-id",)

    def visible(self, sight: Sight) -> QuerySet[SignOffRequest]:
        return find_requests(sight, at=now())

    def prepare_rows(self, rows: Any) -> None:
        at = now()
        for row in rows:
            row.shown_person, row.shown_status, row.shown_at = person_reference(row.requester_id), status_at(row, at), at
        name_people(row.shown_person for row in rows)

    @admin.display(description="asked for", ordering="kind")
    def asked_for(self, row: SignOffRequest) -> str:
        return row.get_kind_display()

    @admin.display(description="about")
    def about_what(self, row: SignOffRequest) -> str:
        return about_words(row)

    @admin.display(description="systems")
    def on_systems(self, row: SignOffRequest) -> str:
        return ", ".join(item.system.key for item in row.about_systems.all()) or "none"

    @admin.display(description="status", ordering="status")
    def stands(self, row: Any) -> Cell:
        return status_chip(row.shown_status)

    @admin.display(description="asked by")
    def by(self, row: Any) -> Cell:
        by = row.shown_person.__html__()
        return by if by_herself(row) else format_html('<span>{} <span class="wg-quiet">by a machine</span></span>', by)

    @admin.display(description="time to sign", ordering="expires_at")
    def time(self, row: Any) -> str:
        return time_left(row.expires_at, row.shown_at) if row.shown_status == RequestStatus.OPEN else "closed"

    @admin.display(description="filed", ordering="id")
    def filed(self, row: SignOffRequest) -> Cell:
        return instant(row.created_at)

    def get_urls(self) -> list[URLPattern]:
        return [
            *self.signing_urls(),
            self.own_path("<int:pk>/dossier.json", self.document_view, "dossier"),
            *self.asking_urls(),
            *super().get_urls(),
        ]

    # --- reading ------------------------------------------------------------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if request.method == "POST":
            # The list offers no act on many: who posts one has made it up, and the attempt stands in the trail.
            with suppress(OneAtATime):
                sign_many(actor=actor_of(request))
        return super().changelist_view(request, extra_context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not object_id.isascii() or not object_id.isdigit() or len(object_id) > 18:
            raise Http404(f"no request `{object_id[:80]}`")
        if request.method not in ("GET", "HEAD"):
            return self._refuse(request, self.found(request, int(object_id)))
        return self.show(request, self.read(request, int(object_id)))

    def document_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Answer with the very bytes that are signed."""
        row = self.found(request, pk)
        dossier = row.dossier
        if dossier is None:
            raise Http404(f"request `{pk}` has no dossier")
        response = HttpResponse(bytes(dossier.content), content_type="application/json")
        response["Content-Disposition"] = f'attachment; filename="dossier-{row.uid}-{dossier.number}.json"'
        response["X-Content-Type-Options"] = "nosniff"
        return response

    def read(self, request: HttpRequest, pk: int) -> Shown:
        row = visible_requests(sight(request)).select_related(*ABOUT).filter(pk=pk).first()
        if row is None or row.dossier is None:
            raise Http404(f"no request `{pk}`")
        at = now()
        dossier = row.dossier
        status = status_at(row, at)
        if status != RequestStatus.OPEN:
            return Shown(row, dossier, read_dossier(dossier), status, None, None)
        built = build_dossier(row, at=at)
        return Shown(row, dossier, read_dossier(dossier), status, built, read_quorum(row, built, dossier, at=at))

    def show(
        self,
        request: HttpRequest,
        shown: Shown,
        *,
        status: int = 200,
        form: SignForm | None = None,
        comment: CommentForm | None = None,
        withdrawal: ReasonedForm | None = None,
        before: tuple[str, list[dict[str, Any]]] | None = None,
    ) -> HttpResponse:
        row, state, person_id = shown.row, shown.state, sight(request).person
        built = shown.built
        mine = row.requester_id == person_id
        offered = self.offered(shown, person_id)
        if form is None:
            form = self._fresh_form(request, shown, offered)
        given = state.sign_offs if state else sign_offs_of(row)
        # The first dossier is at hand; only a request whose dossier changed has others.
        numbered = [shown.dossier] if shown.dossier.number == 1 else list(Dossier.objects.filter(request=row).order_by("number"))
        earlier, named = earlier_dossier(row, numbered, {item.dossier_id for item in given})
        context = {
            "original": row,
            "row": row,
            "question": question_of(shown.value),
            "kind": row.get_kind_display(),
            "chip": status_chip(shown.status),
            "is_open": shown.status == RequestStatus.OPEN,
            "deadline": instant(row.expires_at),
            "left": time_left(row.expires_at, now()),
            "number": shown.dossier.number,
            "digest": digest(shown.dossier.digest),
            "dossier": shown_dossier(row, shown.value, built.systems if built else None),
            "requester": person_reference(row.requester_id),
            "filed": instant(row.created_at),
            "filed_by": "" if by_herself(row) else ActorReference(row.requested_by),
            "origin": shown_origin(origin_of(sight(request), row)),
            "closed": instant(row.closed_at) if row.closed_at else "",
            "sign_offs": shown_sign_offs(row, given, numbered, state),
            "factors": shown_factors(row, shown.value, state),
            "quorum": shown_quorum(state) if state else None,
            "comments": shown_comments(row),
            "moved": shown_changes(shown.value, built.value) if built and shown.moved else None,
            "told_before": before,
            "earlier": (named, shown_changes(read_dossier(earlier), shown.value)) if earlier else None,
            "form": form if offered and not shown.moved else None,
            "blocked": [ticked(item.sentence) for item in built.obstacles] if built else [],
            "why_not": "" if state is None or offered else why_not(state, person_id),
            "minutes": built.quorum.reauthenticate_within_minutes if built else None,
            "may_complete": state is not None and state.assessment.met and not shown.moved,
            "comment_form": comment or CommentForm(auto_id="comment_%s"),
            "withdraw_form": (withdrawal or ReasonedForm(auto_id="withdraw_%s")) if mine else None,
            "grant": Grant.objects.filter(request=row).first() if shown.status == RequestStatus.COMPLETED else row.grant,
            "sealed": reverse("admin:compliance_ledgerentry_changelist")
            + "?"
            + urlencode({"target_kind": "request", "target_id": str(row.uid)}),
        }
        name_people(references_of(*context.values()))
        return self.page(request, "writegate/request.html", str(row), status=status, **context)

    def offered(self, shown: Shown, person_id: Any) -> list[tuple[str, str]]:
        if shown.built is None:
            return []
        return offered_meanings(shown.state, person_id, risk=shown.built.risk_accepted, obstacles=bool(shown.built.obstacles))

    def _fresh_form(self, request: HttpRequest, shown: Shown, offered: list[tuple[str, str]]) -> SignForm:
        """Return the form as the page first shows it: empty, or with what was typed before its writer proved that it is she."""
        initial = {"digest": shown.dossier.digest}
        kept = request.session.get(KEPT) or {}
        if kept.get("request") == str(shown.row.uid):
            initial["reason"] = kept["reason"]
            if kept["digest"] == shown.dossier.digest:
                # She ticked it herself, on this very dossier.
                initial["meaning"] = kept["meaning"]
        return SignForm(offered=offered, initial=initial)


def about_words(row: SignOffRequest) -> str:
    """Say what a request is about, without reading its dossier."""
    if row.evidence is not None:
        return f"evidence {str(row.evidence.uid)[:8]}"
    if row.subject_version is not None:
        return str(row.subject_version)
    if row.kind in (RequestKind.METRIC, RequestKind.BENCHMARK, RequestKind.SOURCE):
        asked = plain_value(bytes(row.proposal))
        return str(f"{asked['benchmark']} {asked['version']}" if row.kind == RequestKind.BENCHMARK else asked["key"])
    if row.policy_version is not None:
        return str(row.policy_version)
    return row.policy.name if row.policy is not None else RequestKind(row.kind).label


def by_herself(row: SignOffRequest) -> bool:
    """True where a person filed a request, and no machine of hers."""
    return row.requested_by == f"person:{row.requester_id}"


def shown_origin(found: Origin | None) -> dict[str, Any] | None:
    """Return what the page shows of the denial that a machine filed a request about."""
    if found is None:
        return None
    chips = [chip(BY_MACHINE), *([chip(EMERGENCY)] if found.emergency else [])]
    words = f"decision {found.denial}"
    return {"chips": chips, "denial": words if found.decision is None else link(found.decision, words)}


def status_chip(word: str) -> Cell:
    return chip(STATUS_MARKS[RequestStatus(word)])


def request_link(row: SignOffRequest) -> Cell:
    return link(row, f"{row.get_kind_display()}: {about_words(row)}")
