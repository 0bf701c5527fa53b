"""Verdicts and standings: from the answer to its rules, their evidence and the documents behind."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from evaluations.admin.benchmarks import EXPOSURE_WORDS
from evaluations.admin.subjects import SubjectAdmin, SubjectVersionAdmin
from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Custom,
    Fields,
    Record,
    Section,
    Table,
    code,
    instant,
    link,
    list_link,
    ticked,
    whole_digest,
    words,
)
from evaluations.models import Evidence, Subject, SubjectVersion
from evaluations.selectors.registry import exposures
from evaluations.vocabulary import Domain, Exposure
from policies.admin.marks import NOTE_WORDS, domain_words, reason_words, result_chip
from policies.admin.reading import Reading, RuleView, read_verdict
from policies.models import Standing, Verdict
from policies.vocabulary import ANY_DOMAIN, Outcome

Exposures = Mapping[tuple[str, str], str]

SHOWN = 50
NEWEST = 20
_NAMED = ("policy_version__policy", "subject_version__subject")
# The bytes of policies and judgements are for a verdict's own page: a list of fifty need not carry them.
_HEAVY = ("core", "policy_version__text", "policy_version__resolved", "subject_version__pin")


class DomainFilter(admin.SimpleListFilter):
    title = "domain"
    parameter_name = "domain"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(ANY_DOMAIN, "any"), *((str(item.value), str(item.label)) for item in Domain)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(domain=self.value()) if self.value() else queryset


@admin.register(Verdict)
class VerdictAdmin(ReadOnlyAdmin):
    about = "Every judgement, newest first. The same facts write no new verdict, and a newer one never changes an older one."
    list_display = ("about_subject", "by_policy", "domain_shown", "chip", "judged", "recorded")
    list_filter = ("result", "outcome", DomainFilter, ("policy_version", AutocompleteSelectFilter))
    list_select_related = _NAMED
    search_fields = ("subject_version__subject__key", "policy_version__policy__name", "^uid")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> Any:
        queryset = super().get_queryset(request).select_related(*_NAMED, "facts" if _is_record(request) else "policy_version")
        return queryset if _is_record(request) else queryset.defer(*_HEAVY)

    @admin.display(description="subject version", ordering="subject_version__subject__key")
    def about_subject(self, row: Verdict) -> str:
        return str(row.subject_version)

    @admin.display(description="policy version", ordering="policy_version__policy__name")
    def by_policy(self, row: Verdict) -> Cell:
        return link(row.policy_version)

    @admin.display(description="domain", ordering="domain")
    def domain_shown(self, row: Verdict) -> str:
        return domain_words(row.domain)

    @admin.display(description="result", ordering="result")
    def chip(self, row: Verdict) -> Cell:
        return result_chip(row.result)

    @admin.display(description="as of", ordering="as_of")
    def judged(self, row: Verdict) -> Cell:
        return instant(row.as_of)

    @admin.display(description="recorded", ordering="recorded_at")
    def recorded(self, row: Verdict) -> Cell:
        return instant(row.recorded_at)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<int:pk>/facts.json", view(self.facts_view), name="policies_verdict_facts"),
            path("<int:pk>/core.json", view(self.core_view), name="policies_verdict_core"),
            *super().get_urls(),
        ]

    def facts_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        verdict = self._found(request, pk)
        return _bytes(bytes(verdict.facts.content), f"verdict-{verdict.uid}-facts.json")

    def core_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        verdict = self._found(request, pk)
        return _bytes(bytes(verdict.core), f"verdict-{verdict.uid}-core.json")

    def _found(self, request: HttpRequest, pk: int) -> Verdict:
        verdict = Verdict.objects.select_related("facts").filter(pk=pk).first()
        if verdict is None or not self.has_view_permission(request, verdict):
            raise Http404(f"no verdict `{pk}`")
        return verdict

    def describe(self, row: Verdict, request: HttpRequest) -> Record:
        reading = read_verdict(row)
        standing = Standing.objects.filter(verdict=row).first()
        return Record(
            lead=_question(row),
            mark=result_chip(row.result),
            target=("verdict", str(row.uid)),
            downloads=[
                ("Facts document", reverse("admin:policies_verdict_facts", args=[row.pk])),
                ("Judgement core", reverse("admin:policies_verdict_core", args=[row.pk])),
            ],
            sections=[
                Custom("Rule by rule", "writegate/sections/rules.html", _rules(row, reading)),
                Fields(
                    "Verdict",
                    [
                        ("Outcome", row.get_outcome_display()),
                        ("Stands now", _stands(row, standing)),
                        ("Subject version", link(row.subject_version)),
                        ("Policy version", link(row.policy_version)),
                        ("Domain", domain_words(row.domain)),
                        ("Rules no waiver can cover", words(row.blocking)),
                        ("Rules a waiver could cover", words(row.waivable)),
                        ("Parameters", words(f"{name} = {value}" for name, value in reading.params.items())),
                        ("As of", instant(row.as_of)),
                        ("Known at", instant(row.known_at)),
                        ("Time alone can change it at", instant(reading.due_at, empty="never")),
                        ("Judged again from what is stored", _replayed(reading)),
                    ],
                ),
                Table(
                    "Names that were read as this subject",
                    ("Name as written", "In source"),
                    [[alias["written"], alias["source"] or "any source"] for alias in reading.aliases],
                    empty="No name in any source was read as this subject version: nothing measured could count.",
                ),
                Fields(
                    "Digests",
                    [
                        ("Judgement core", whole_digest(row.core_digest)),
                        ("Facts document", whole_digest(row.facts.digest)),
                        ("Policy text", whole_digest(row.policy_version.digest)),
                        ("Parameters", whole_digest(row.params_digest)),
                        ("Subject version", whole_digest(row.subject_version.digest)),
                        ("Identifier", code(str(row.uid))),
                        ("Semantics", str(row.semantics)),
                        ("Judged by", ActorReference(row.judged_by)),
                        ("Recorded", instant(row.recorded_at)),
                    ],
                ),
            ],
        )


@admin.register(Standing)
class StandingAdmin(ReadOnlyAdmin):
    about = "The verdict that stands now for each subject version, policy version and domain."
    list_display = ("about_subject", "by_policy", "domain_shown", "chip", "checked", "due")
    list_filter = ("verdict__result", DomainFilter, ("policy_version", AutocompleteSelectFilter))
    list_select_related = (*_NAMED, "verdict")
    search_fields = ("subject_version__subject__key", "policy_version__policy__name")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> Any:
        heavy = [name for name in _HEAVY if name != "core"]
        return super().get_queryset(request).select_related(*_NAMED, "verdict").defer("verdict__core", *heavy)

    @admin.display(description="subject version", ordering="subject_version__subject__key")
    def about_subject(self, row: Standing) -> str:
        return str(row.subject_version)

    @admin.display(description="policy version", ordering="policy_version__policy__name")
    def by_policy(self, row: Standing) -> Cell:
        return link(row.policy_version)

    @admin.display(description="domain", ordering="domain")
    def domain_shown(self, row: Standing) -> str:
        return domain_words(row.domain)

    @admin.display(description="verdict", ordering="verdict__result")
    def chip(self, row: Standing) -> Cell:
        return link(row.verdict, result_chip(row.verdict.result))

    @admin.display(description="checked", ordering="checked_at")
    def checked(self, row: Standing) -> Cell:
        return instant(row.checked_at)

    @admin.display(description="time alone can change it at", ordering="due_at")
    def due(self, row: Standing) -> Cell:
        return instant(row.due_at, empty="never")

    def describe(self, row: Standing, request: HttpRequest) -> Record:
        return Record(
            lead=f"What {row.policy_version} says about {row.subject_version} now.",
            mark=result_chip(row.verdict.result),
            target=("verdict", str(row.verdict.uid)),
            sections=[
                Fields(
                    "Standing",
                    [
                        ("Verdict", link(row.verdict, "The verdict that stands, rule by rule")),
                        ("Subject version", link(row.subject_version)),
                        ("Policy version", link(row.policy_version)),
                        ("Domain", domain_words(row.domain)),
                        ("Checked", instant(row.checked_at)),
                        ("Time alone can change it at", instant(row.due_at, empty="never")),
                    ],
                )
            ],
        )


@SubjectAdmin.add_section
def standings_of_subject(row: Subject, request: HttpRequest) -> Section:
    return _standings(Standing.objects.filter(subject_version__subject=row))


@SubjectAdmin.add_section
def verdicts_over_time(row: Subject, request: HttpRequest) -> Section:
    """Show the newest judgements of every version of a subject: each stays as it was made."""
    found = Verdict.objects.filter(subject_version__subject=row).select_related(
        "policy_version__policy", "subject_version__subject"
    )
    light = found.defer("core", "policy_version__text", "policy_version__resolved", "subject_version__pin")
    return Table(
        "Verdicts over time",
        ("Recorded", "Verdict", "Policy version", "Version", "Domain", "As of"),
        [
            [
                instant(item.recorded_at),
                link(item, result_chip(item.result)),
                link(item.policy_version),
                link(item.subject_version, f"v{item.subject_version.number}"),
                domain_words(item.domain),
                instant(item.as_of),
            ]
            for item in light.order_by("-id")[:NEWEST]
        ],
        empty="No policy has judged it yet.",
        note=f"The newest {NEWEST} at most. The same facts make no new verdict.",
        more=list_link(Verdict, "All verdicts", q=row.key),
    )


@SubjectVersionAdmin.add_section
def standings_of_version(row: SubjectVersion, request: HttpRequest) -> Section:
    return _standings(Standing.objects.filter(subject_version=row))


def _standings(standings: QuerySet[Standing]) -> Table:
    found = standings.select_related(*_NAMED, "verdict").defer("verdict__core", *_HEAVY[1:]).order_by("-id")[:SHOWN]
    return Table(
        "What the policies say now",
        ("Verdict", "Policy version", "Version", "Domain", "Checked"),
        [
            [
                link(item.verdict, result_chip(item.verdict.result)),
                link(item.policy_version),
                link(item.subject_version, f"v{item.subject_version.number}"),
                domain_words(item.domain),
                instant(item.checked_at),
            ]
            for item in found
        ],
        empty="No policy has judged it yet.",
    )


def _is_record(request: HttpRequest) -> bool:
    match = request.resolver_match
    return bool(match and (match.url_name or "").endswith("_change"))


def _question(row: Verdict) -> str:
    subject, policy = row.subject_version, row.policy_version
    where = "" if row.domain == ANY_DOMAIN else f" in {domain_words(row.domain)}"
    answer = "yes" if row.outcome == Outcome.PASS else "no"
    asked = (
        f"Does {subject.subject.key} (version {subject.number}) satisfy {policy.policy.name} (version {policy.number}){where}?"
    )
    return f"{asked} The answer is {answer}."


def _stands(row: Verdict, standing: Standing | None) -> Cell:
    if standing is not None:
        return "yes"
    now = Standing.objects.filter(
        policy_version=row.policy_version, params_digest=row.params_digest, subject_version=row.subject_version, domain=row.domain
    ).select_related("verdict")
    newer = now.first()
    return link(newer.verdict, "no: a newer verdict stands") if newer else "no"


def _replayed(reading: Reading) -> str:
    return "gives the same bytes" if reading.replayed else f"does not agree: {reading.trouble}"


def _rules(row: Verdict, reading: Reading) -> dict[str, Any]:
    """Return the context of the rules' template. All evidence is looked up at once."""
    found = {
        str(item.uid): item for item in Evidence.objects.filter(uid__in=reading.evidence).select_related("document", "source")
    }
    stated = exposures() if found else {}
    return {"rules": [_rule(view, found, stated) for view in reading.rules], "trouble": reading.trouble}


def _rule(view: RuleView, found: dict[str, Evidence], stated: Exposures) -> dict[str, Any]:
    result = view.result
    return {
        "view": view,
        "id": result.id or f"evidence {result.clause}",
        "chip": result_chip(result.result),
        "enforcement": result.enforcement,
        "sentence": ticked(view.sentence or f"{reason_words(result.reason)}.".capitalize()),
        "flips": [ticked(told) for told in view.flips],
        # The sentence tells of a note by itself; where none could be made, the note stands alone.
        "note": "" if view.sentence else NOTE_WORDS.get(result.note, ""),
        "clause": result.clause,
        "model": result.model,
        "candidates": [_candidate(item, found, stated) for item in view.candidates],
        "children": [_rule(child, found, stated) for child in view.children],
    }


def _candidate(item: Any, found: dict[str, Evidence], stated: Exposures) -> dict[str, Any]:
    fact = item.fact
    evidence = found.get(fact["evidence"])
    return {
        "value": item.value,
        "written": fact["subject_as_written"],
        "evidence": link(evidence, fact["subject_as_written"], empty=fact["subject_as_written"]),
        "document": link(evidence.document, evidence.document.file_name) if evidence else "not kept",
        "source": link(evidence.source) if evidence else fact["source"],
        "trust": fact["trust"] or "none",
        "provenance": str(fact["provenance"]).replace("_", " "),
        "age": item.age,
        "model": item.model,
        "slice": fact["slice"],
        "version": f"{fact['benchmark']} {fact['version']}",
        "exposure": EXPOSURE_WORDS[stated.get((fact["benchmark"], fact["version"]), Exposure.UNKNOWN)],
        "reason": ticked(item.why or reason_words(fact["reason"])),
        "counts": fact["reason"] == "",
        "decides": item.decides,
    }


def _bytes(content: bytes, name: str) -> HttpResponse:
    """Answer with stored bytes, exactly, as a file to keep."""
    response = HttpResponse(content, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
