"""The trail: the ledger's entries as a list that can be searched, and each entry with its change, its place and its proof."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html

from compliance.admin import log
from compliance.admin.entry import PENDING_CHIP, describe_entry, proof_name
from compliance.admin.people import PersonAdmin, ServiceTokenAdmin
from compliance.admin.rights import TrailAdmin
from compliance.admin.trail import TrailChangeList, TrailPaginator
from compliance.ledger.note import encode_hash
from compliance.ledger.stored import LedgerDamaged, NotSealedYet, proof_file
from compliance.models import LedgerEntry, LedgerLeaf, Person, ServiceToken
from compliance.selectors.trail import TrailWanted, narrowed
from evaluations.kernel.actor import ActorKind
from evaluations.kernel.admin import BoundedPaginator
from evaluations.kernel.display import ActorReference, Cell, Fields, Record, Section, instant, list_link, shortened

SHOWN_HASH = 10
SHOWN_TARGET = 20
TRY_AGAIN_SECONDS = 5


@admin.register(LedgerEntry)
class LedgerEntryAdmin(TrailAdmin):
    about = "What was done, by whom, to what. Entries are written in the same transaction as the change they tell of."
    empty_sentence = "Nothing has been done yet."
    change_list_template = "writegate/trail_list.html"
    list_display = ("place", "action", "target", "by", "recorded", "leaf_hash")
    list_select_related = ("leaf",)
    search_fields = ("action", "target_id", "actor", "uid")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        queryset: QuerySet[Any] = super().get_queryset(request).select_related("leaf")
        match = request.resolver_match
        return queryset.defer("content") if match and (match.url_name or "").endswith("_changelist") else queryset

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[TrailChangeList]:
        return TrailChangeList

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        text = search_term.strip()
        return (narrowed(queryset, TrailWanted(text=text)) if text else queryset), False

    def get_paginator(self, request: HttpRequest, queryset: Any, per_page: int, *args: Any, **options: Any) -> BoundedPaginator:
        found = super().get_paginator(request, queryset, per_page, *args, **options)
        return TrailPaginator(queryset, per_page, counted=found.counted)

    def prepare_rows(self, rows: Any) -> None:
        for row in rows:
            row.shown_actor = ActorReference(row.actor)
        self.name_actors([row.shown_actor for row in rows])

    @admin.display(description="index")
    def place(self, row: LedgerEntry) -> Cell:
        leaf = leaf_of(row)
        return PENDING_CHIP if leaf is None else str(leaf.index)

    @admin.display(description="actor")
    def by(self, row: Any) -> Cell:
        return row.shown_actor.__html__()

    @admin.display(description="target")
    def target(self, row: LedgerEntry) -> Cell:
        kind = row.target_kind.replace("_", " ")
        return format_html('<span class="wg-kind">{}</span> {}', kind, shortened(row.target_id, most=SHOWN_TARGET))

    @admin.display(description="recorded")
    def recorded(self, row: LedgerEntry) -> Cell:
        return instant(row.recorded_at)

    @admin.display(description="leaf hash")
    def leaf_hash(self, row: LedgerEntry) -> Cell:
        leaf = leaf_of(row)
        if leaf is None:
            return "not sealed yet"
        whole = encode_hash(bytes(leaf.leaf_hash))
        return format_html('<code class="wg-digest" title="{}">{}…</code>', whole, whole[:SHOWN_HASH])

    def get_urls(self) -> list[URLPattern]:
        return [
            self.trail_path("<int:pk>/proof/", self.proof_view, "proof"),
            *log.addresses(self),
            *super().get_urls(),
        ]

    def proof_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Answer with the entry's `.tlog-proof` as a file; where it has no index yet, say so and when to try again."""
        entry = LedgerEntry.objects.select_related("leaf").filter(pk=pk).first()
        if entry is None:
            raise Http404(f"no entry `{pk}`")
        back = reverse("admin:compliance_ledgerentry_change", args=[pk])
        leaf = leaf_of(entry)
        try:
            if leaf is None:
                raise NotSealedYet("this entry has no index yet")
            content = proof_file(leaf.index)
        except NotSealedYet:
            answer = self.page(
                request, "writegate/not_sealed.html", "Not sealed yet", status=409, back=back, seconds=TRY_AGAIN_SECONDS
            )
            answer["Retry-After"] = str(TRY_AGAIN_SECONDS)
            return answer
        except LedgerDamaged as error:
            return self.page(request, "writegate/damaged.html", "No proof", status=503, back=back, why=error.detail)
        return log.attachment(content, proof_name(leaf.index))

    def describe(self, row: LedgerEntry, request: HttpRequest) -> Record:
        return describe_entry(row, leaf_of(row))


def leaf_of(row: Any) -> LedgerLeaf | None:
    """Return an entry's leaf, None while it is not sealed; the row was read together with it."""
    return getattr(row, "leaf", None)


@PersonAdmin.add_section
def done_by_person(row: Person, request: HttpRequest) -> Section:
    return _done_by(f"{ActorKind.PERSON.value}:{row.pk}", "What this person did")


@ServiceTokenAdmin.add_section
def done_by_token(row: ServiceToken, request: HttpRequest) -> Section:
    return _done_by(f"{ActorKind.SERVICE.value}:{row.pk}", "What this token did")


def _done_by(reference: str, text: str) -> Fields:
    return Fields("In the trail", [("As the actor", list_link(LedgerEntry, text, actor=reference))])
