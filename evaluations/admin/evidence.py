"""Evidence as written, with its observations and the rulings on it."""

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from evaluations.admin.benchmarks import EXPOSURE_WORDS
from evaluations.admin.sources import tier_chip
from evaluations.admin.subjects import ALIAS_COLUMNS, alias_rows
from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Fields,
    Mark,
    Record,
    Table,
    anchor,
    chip,
    instant,
    link,
    number,
    outside,
    said,
    whole_digest,
    words,
    yes_no,
)
from evaluations.models import AliasAssignment, BenchmarkVersion, Evidence, Observation, Ruling, TrustAssignment
from evaluations.selectors.evidence import is_self_judged
from evaluations.vocabulary import RulingKind

OBSERVATIONS_A_PAGE = 100
OBSERVATIONS_PAGE = "observations"
RULING_MARKS = {
    RulingKind.DISPUTED: Mark("disputed", "contested", "compare_arrows"),
    RulingKind.DISPUTE_DISMISSED: Mark("dispute dismissed"),
    RulingKind.DISPUTE_UPHELD: Mark("dispute upheld", "contested", "compare_arrows"),
    RulingKind.RETRACTED: Mark("retracted", "fail", "undo"),
}


def ruling_chip(kind: str | None) -> Cell:
    return chip(RULING_MARKS[RulingKind(kind)]) if kind in RulingKind.values else "none"


class RulingFilter(admin.SimpleListFilter):
    title = "ruling"
    parameter_name = "ruling"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("none", "none"), *((str(kind.value), str(kind.label)) for kind in RulingKind)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value == "none":
            return queryset.filter(ruling=None)
        return queryset.filter(ruling=value) if value else queryset


@admin.register(Evidence)
class EvidenceAdmin(ReadOnlyAdmin):
    about = "What sources submitted, as they wrote it. It is never edited: disputes and retractions are recorded beside it."
    list_display = (
        "subject_as_written",
        "in_source",
        "provenance",
        "run_status",
        "standing_ruling",
        "ended",
        "in_document",
        "recorded",
    )
    list_filter = (("source", AutocompleteSelectFilter), "provenance", "run_status", "about", RulingFilter)
    list_select_related = ("source", "document")
    search_fields = ("subject_as_written", "^uid", "source__key")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        newest = Ruling.objects.filter(evidence=OuterRef("pk")).order_by("-id").values("kind")[:1]
        queryset: QuerySet[Any] = super().get_queryset(request).annotate(ruling=Subquery(newest))
        return queryset

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup in {"subject_as_written", "document__id__exact"} or bool(super().lookup_allowed(lookup, value, request))

    @admin.display(description="source", ordering="source__key")
    def in_source(self, row: Evidence) -> Cell:
        return link(row.source)

    @admin.display(description="ruling", ordering="ruling")
    def standing_ruling(self, row: Any) -> Cell:
        return ruling_chip(row.ruling)

    @admin.display(description="run ended or published")
    def ended(self, row: Evidence) -> Cell:
        return instant(row.run_ended_at or row.published_at)

    @admin.display(description="document")
    def in_document(self, row: Evidence) -> Cell:
        return link(row.document, row.document.file_name)

    @admin.display(description="recorded", ordering="recorded_at")
    def recorded(self, row: Evidence) -> Cell:
        return instant(row.recorded_at)

    def describe(self, row: Any, request: HttpRequest) -> Record:
        trust = TrustAssignment.objects.filter(source=row.source).order_by("-id").values_list("tier", flat=True).first()
        names = AliasAssignment.objects.filter(name_as_written=row.subject_as_written)
        return Record(
            lead=f"{row.source} wrote of “{row.subject_as_written}” in {row.document.file_name}.",
            mark=ruling_chip(row.ruling) if row.ruling else "",
            target=("evidence", str(row.uid)),
            sections=[
                _observations(row, request),
                Table(
                    "Rulings, newest first",
                    ("Ruling", "Reason", "Link", "By", "Recorded"),
                    [
                        [
                            ruling_chip(item.kind),
                            item.reason,
                            outside(item.link),
                            ActorReference(item.ruled_by),
                            instant(item.recorded_at),
                        ]
                        for item in row.rulings.order_by("-id")[:50]
                    ],
                    empty="Nobody has disputed or retracted this evidence.",
                ),
                Fields(
                    "Evidence",
                    [
                        ("Subject as written", row.subject_as_written),
                        ("Answered as written", words(row.answered_as_written, empty=NOBODY_ELSE)),
                        ("About", row.get_about_display()),
                        ("Source", link(row.source)),
                        ("Trust in the source now", tier_chip(trust)),
                        ("Provenance", row.get_provenance_display()),
                        ("Attested", yes_no(row.attested)),
                        ("Run", row.get_run_status_display()),
                        ("Harness", said(row.harness)),
                        ("Run ended", instant(row.run_ended_at)),
                        ("Published", instant(row.published_at)),
                        ("Document", link(row.document)),
                        ("Place in the document", said(row.locator)),
                        ("Supersedes", said(row.supersedes, empty="nothing")),
                        ("Note", said(row.note, empty="none")),
                    ],
                ),
                Table(
                    "What the name means, newest statement first",
                    ALIAS_COLUMNS,
                    alias_rows(names),
                    empty="Nobody has assigned this name: the evidence counts for no subject.",
                ),
                Fields(
                    "Record",
                    [
                        ("Identifier", str(row.uid)),
                        ("Digest", whole_digest(row.digest)),
                        ("Read by", f"{row.importer} {row.importer_version}"),
                        ("Submitted by", ActorReference(row.submitted_by)),
                        ("Recorded", instant(row.recorded_at)),
                    ],
                ),
            ],
        )


NOBODY_ELSE = "not stated: taken to be the subject itself"
_COLUMNS = (
    "Metric",
    "Value",
    "n",
    "k",
    "Benchmark",
    "Slice",
    "Repeats",
    "Errored",
    "Unscored",
    "As written",
    "Judged by",
    "Place",
)


def _test(version: BenchmarkVersion) -> Cell:
    return format_html('{} <span class="wg-quiet">{}</span>', link(version), EXPOSURE_WORDS[version.exposure])


def _observations(row: Evidence, request: HttpRequest) -> Table:
    """Return the evidence's observations, a page at a time: one file can hold very many."""
    asked = request.GET.get(OBSERVATIONS_PAGE, "1")
    page = int(asked) if asked.isascii() and asked.isdigit() and 0 < len(asked) < 8 else 1
    start = max(page - 1, 0) * OBSERVATIONS_A_PAGE
    observations: QuerySet[Observation] = row.observations.select_related("metric", "benchmark_version__benchmark").order_by(
        "ordinal"
    )
    found = list(observations[start : start + OBSERVATIONS_A_PAGE + 1])
    rows: list[list[Cell]] = [
        [
            link(item.metric),
            number(item.value, item.metric.unit),
            number(item.n),
            number(item.k),
            _test(item.benchmark_version),
            item.slice,
            number(item.repeats),
            number(item.errored),
            number(item.unscored),
            said(item.value_as_written),
            _judged_by(item.judge, {row.subject_as_written, *row.answered_as_written}),
            said(item.locator),
        ]
        for item in found[:OBSERVATIONS_A_PAGE]
    ]
    more = anchor(f"?{OBSERVATIONS_PAGE}={page + 1}", "Next observations") if len(found) > OBSERVATIONS_A_PAGE else ""
    note = f"From observation {start + 1} on." if start else ""
    return Table(
        "Observations", _COLUMNS, rows, empty="No observation." if not start else "No further observation.", note=note, more=more
    )


SELF_JUDGED = Mark("self-judged", "contested", "gavel")


def _judged_by(judge: dict[str, Any] | None, names: set[str]) -> Cell:
    """Say who judged the answers and how well that agrees with people; mark a subject that judged itself."""
    if not judge:
        return "not stated"
    parts = [", ".join(judge.get("models", ())), judge.get("rule", "")]
    if "agreement" in judge:
        of = f" of {judge['agreement_n']}" if "agreement_n" in judge else ""
        parts.append(f"agreement {judge['agreement']} %{of}")
    parts.append(f"kappa {judge['kappa']}" if "kappa" in judge else "kappa not stated")
    told = " · ".join(part for part in parts if part)
    return format_html("{} {}", chip(SELF_JUDGED), told) if is_self_judged(judge, names) else told
