"""Decisions as a list that can be searched, each with a page that explains it; and how often a grant is used, for its page."""

import uuid
from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html

from compliance.admin import log
from compliance.admin.decision import answer_chip, code_words, curl, describe_decision
from compliance.admin.sighted import SightedAdmin, sight
from compliance.admin.trail import LONGEST, InstantField, SearchedChangeList
from compliance.deciding.codes import Code
from compliance.ledger.stored import LedgerDamaged, NotSealedYet, proof_file_of
from compliance.models import Decision, Grant
from compliance.selectors.decisions import (
    Day,
    DecisionsWanted,
    decisions_by_day,
    entry_of,
    find_decisions,
    narrowed,
    replay_decision,
)
from compliance.selectors.sight import Sight
from evaluations.kernel.admin import BoundedPaginator
from evaluations.kernel.clock import now
from evaluations.kernel.display import ActorReference, Cell, Custom, Record, instant, list_link, shortened

DAYS = 30
TRY_AGAIN_SECONDS = 5
SHOWN_WORD = 40
_REPLAY, _PROOF = "replay", "proof"
_YES_NO = {"": None, "yes": True, "no": False}


class DecisionSearch(forms.Form):
    """What to look for. Its words stand in the page's address, so a search can be kept and sent."""

    q = forms.CharField(
        label="Find",
        required=False,
        max_length=LONGEST,
        help_text="The identifier of an answer, of its entry or of its request",
        widget=forms.TextInput(attrs={"type": "search"}),
    )
    answer = forms.ChoiceField(label="Answer", required=False, choices=[("", "any answer"), ("yes", "allowed"), ("no", "denied")])
    code = forms.ChoiceField(
        label="Reason",
        required=False,
        choices=[("", "any reason"), *((word.value, code_words(word.value)) for word in Code)],
        help_text="Among the reasons of a denial",
    )
    system = forms.CharField(label="System", required=False, max_length=LONGEST, help_text="Its key, also of one not registered")
    subject = forms.CharField(label="Subject", required=False, max_length=LONGEST, help_text="Its key, or the name asked about")
    observed = forms.ChoiceField(
        label="Whoever asked",
        required=False,
        choices=[("", "acted on it or not"), ("no", "acted on the answer"), ("yes", "only looked on")],
    )
    since = InstantField(label="From (UTC)")
    until = InstantField(label="Until before (UTC)")
    grant = forms.UUIDField(label="Grant", required=False, help_text="Its identifier")

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__({name: given.get(name, "") for name in self.base_fields})

    def wanted(self) -> DecisionsWanted | None:
        """Return what is asked for; None where the form cannot be read, which finds nothing rather than everything."""
        if not self.is_valid():
            return None
        asked = self.cleaned_data
        return DecisionsWanted(
            system=asked["system"] or None,
            subject=asked["subject"] or None,
            grant=asked["grant"],
            code=asked["code"] or None,
            allowed=_YES_NO[asked["answer"]],
            observed=_YES_NO[asked["observed"]],
            since=asked["since"],
            until=asked["until"],
        )


def called(text: str) -> Q:
    """Return the condition for what a machine's log may hold of an answer: its id, its entry's, or its request's."""
    try:
        identity = uuid.UUID(text)
    except ValueError:
        return Q(request_id=text)
    return Q(uid=identity) | Q(entry=identity) | Q(request_id=text)


class DecisionPaginator(BoundedPaginator):
    """Counts what is found; the way to older decisions is a cursor, not a page number."""

    template_name = "writegate/decision_pages.html"


class DecisionChangeList(SearchedChangeList):
    """The decisions that are asked for."""

    form = DecisionSearch

    def narrow(self, rows: QuerySet[Any], wanted: DecisionsWanted) -> QuerySet[Any]:
        return narrowed(rows, wanted)

    def asks(self, wanted: DecisionsWanted) -> bool:
        return any(part is not None for part in wanted)


@admin.register(Decision)
class DecisionAdmin(SightedAdmin):
    about = "What tooling asked, and what the gate answered: each answer was on record before it left."
    empty_sentence = "Nobody has asked yet about a system that you see."
    change_list_template = "writegate/decision_list.html"
    list_display = ("answer", "who", "may", "on_system", "because", "by", "when")
    search_fields = ("uid", "entry", "request_id")
    ordering = ("-id",)

    def visible(self, sight: Sight) -> QuerySet[Decision]:
        return find_decisions(sight)

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[DecisionChangeList]:
        return DecisionChangeList

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        text = search_term.strip()
        return (queryset.filter(called(text)) if text else queryset), False

    def get_paginator(self, request: HttpRequest, queryset: Any, per_page: int, *args: Any, **options: Any) -> BoundedPaginator:
        found = super().get_paginator(request, queryset, per_page, *args, **options)
        return DecisionPaginator(queryset, per_page, counted=found.counted)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"asking": curl(request), **(extra_context or {})})

    def prepare_rows(self, rows: Any) -> None:
        for row in rows:
            row.shown_actor = ActorReference(f"service:{row.token}") if row.token else None
        self.name_actors([row.shown_actor for row in rows if row.shown_actor is not None])

    @admin.display(description="answer")
    def answer(self, row: Decision) -> Cell:
        return answer_chip(row)

    @admin.display(description="asked about")
    def who(self, row: Decision) -> Cell:
        return shortened(row.subject, most=SHOWN_WORD)

    @admin.display(description="to")
    def may(self, row: Decision) -> Cell:
        return shortened(row.action, most=SHOWN_WORD)

    @admin.display(description="on")
    def on_system(self, row: Decision) -> Cell:
        return shortened(row.resource, most=SHOWN_WORD)

    @admin.display(description="because")
    def because(self, row: Decision) -> Cell:
        if not row.codes:
            return "the conformance profile" if row.conformance else "a grant stands"
        more = len(row.codes) - 1
        first = code_words(row.codes[0])
        return format_html('{} <span class="wg-quiet">and {} more</span>', first, more) if more else first

    @admin.display(description="asked by")
    def by(self, row: Any) -> Cell:
        return "nobody that is known" if row.shown_actor is None else row.shown_actor.__html__()

    @admin.display(description="when")
    def when(self, row: Decision) -> Cell:
        return instant(row.at)

    # --- one decision -------------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        return [
            self.own_path("<int:pk>/replay/", self.replay_view, _REPLAY),
            self.own_path("<int:pk>/proof/", self.proof_view, _PROOF),
            *super().get_urls(),
        ]

    def replay_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show the decision's page with what came of judging it once more. It reads alone, so it is a page to be opened."""
        return self.change_view(request, str(pk))

    def describe(self, row: Decision, request: HttpRequest) -> Record:
        match = request.resolver_match
        again = match is not None and (match.url_name or "").endswith(f"_{_REPLAY}")
        return describe_decision(row, request, replay_decision(row) if again else None)

    def proof_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Answer with the `.tlog-proof` of the decision's entry as a file: whoever sees the decision may prove it."""
        row: Decision = self.found(request, pk)
        back = reverse("admin:compliance_decision_change", args=[pk])
        entry = entry_of(row)
        try:
            if entry is None:
                raise LedgerDamaged("the entry of this decision is not there")
            content = proof_file_of(entry)
        except NotSealedYet:
            answer = self.page(
                request, "writegate/not_sealed.html", "Not sealed yet", status=409, back=back, seconds=TRY_AGAIN_SECONDS
            )
            answer["Retry-After"] = str(TRY_AGAIN_SECONDS)
            return answer
        except LedgerDamaged as error:
            return self.page(request, "writegate/damaged.html", "No proof", status=503, back=back, why=error.detail)
        return log.attachment(content, f"decision-{row.uid}.tlog-proof")


# --- on the page of a grant -------------------------------------------------------------------------------------------------


def decisions_section(request: HttpRequest, grant: Grant) -> Custom:
    """Return how often a grant was used, and refused by, on each of the last days, as far as the signed-in person sees it."""
    found = decisions_by_day(sight(request), grant, days=DAYS, at=now())
    most = max(max(day.allowed, day.denied) for day in found.days)
    data = {
        "days": DAYS,
        "allowed": sum(day.allowed for day in found.days),
        "denied": sum(day.denied for day in found.days),
        "bars": [_bar(place, day, most) for place, day in enumerate(found.days)] if most else [],
        "most": most,
        "first": found.days[0].day.isoformat(),
        "counted_from": None if found.counted_from is None else instant(found.counted_from),
        "all": list_link(Decision, "The decisions that name it", grant=str(grant.uid)),
    }
    return Custom("Decisions by day", "writegate/sections/decisions.html", data)


def _bar(place: int, day: Day, most: int) -> dict[str, Any]:
    """Return where a day's bars stand: allows above the line, denials below it; what is not nothing is always seen."""
    up, down = (max(20 * number / most, 1.0) if number else 0.0 for number in (day.allowed, day.denied))
    return {
        "x": place * 10 + 1,
        "up": f"{up:.2f}",
        "top": f"{21 - up:.2f}",
        "down": f"{down:.2f}",
        "words": f"{day.day.isoformat()}: {day.allowed:,} allowed, {day.denied:,} denied",
        "any": bool(day.allowed or day.denied),
    }
