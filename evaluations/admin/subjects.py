"""Subjects, their versions, and the names that mean them."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Fields,
    Record,
    Section,
    Table,
    Texts,
    digest,
    instant,
    link,
    list_link,
    readable_json,
    said,
    whole_digest,
    yes_no,
)
from evaluations.models import AliasAssignment, Evidence, Subject, SubjectVersion
from evaluations.selectors.subjects import newest_version, pinned_parts
from evaluations.vocabulary import SubjectKind

SHOWN = 50
ALIAS_COLUMNS = ("Name as written", "In source", "Means", "From", "Assigned by", "Recorded")


def alias_rows(assignments: QuerySet[AliasAssignment]) -> list[list[Cell]]:
    """Return table rows under `ALIAS_COLUMNS` of the newest assignments."""
    return [
        [
            link(item, item.name_as_written),
            link(item.source, empty="any source"),
            link(item.subject_version, empty="nobody"),
            instant(item.effective_from, empty="ever since"),
            ActorReference(item.assigned_by),
            instant(item.recorded_at),
        ]
        for item in assignments.select_related("source", "subject_version__subject").order_by("-id")[:SHOWN]
    ]


def made_of(version: SubjectVersion) -> list[Section]:
    """Return the sections that show what a version of an agent or route is made of; none for a model, whose pin says it all."""
    if version.subject.kind == SubjectKind.MODEL:
        return []
    parts = pinned_parts(version)
    members = list(version.members.select_related("member__subject").order_by("member__subject__key", "member_id")[: SHOWN + 1])
    harness = parts.get("harness")
    rows: list[tuple[str, Cell]] = [
        ("Fingerprint", whole_digest(version.digest)),
        ("Reach is closed", yes_no(version.closed) if version.closed else "no: no verdict is possible"),
    ]
    if version.subject.kind == SubjectKind.AGENT:
        rows += [
            ("Prompts", whole_digest(str(parts.get("prompt_digest") or ""))),
            ("Tool manifest", whole_digest(str(parts.get("tool_manifest_digest") or ""))),
            ("Harness", f"{harness.get('name')} {harness.get('version')}" if isinstance(harness, dict) else said(harness)),
        ]
    return [
        Fields(f"What v{version.number} is made of", rows, note="A change of any part is another version."),
        Table(
            "Models that its route can reach",
            ("Model version", "Fingerprint"),
            [[link(item.member), digest(item.member.digest)] for item in members[:SHOWN]],
            empty="The route reaches no model, so nothing can be judged.",
            note=f"The first {SHOWN}." if len(members) > SHOWN else "",
        ),
    ]


@admin.register(Subject)
class SubjectAdmin(ReadOnlyAdmin):
    about = "The models and agents that the gate is about. Candidates are those for which somebody wants write access."
    list_display = ("key", "kind", "title", "provider", "is_candidate", "version_count", "changed")
    list_filter = ("kind", "candidate")
    search_fields = ("key", "title", "provider")
    ordering = ("key",)

    def prepare_rows(self, rows: Any) -> None:
        counts = SubjectVersion.objects.filter(subject__in=rows).order_by().values_list("subject").annotate(n=Count("pk"))
        found = dict(counts)
        for row in rows:
            row.shown_versions = found.get(row.pk, 0)

    @admin.display(description="candidate", ordering="candidate")
    def is_candidate(self, row: Subject) -> str:
        return yes_no(row.candidate)

    @admin.display(description="versions")
    def version_count(self, row: Any) -> int:
        return int(row.shown_versions)

    @admin.display(description="last changed", ordering="changed_at")
    def changed(self, row: Subject) -> Cell:
        return instant(row.changed_at)

    def describe(self, row: Subject, request: HttpRequest) -> Record:
        versions = row.versions.order_by("-number")[:SHOWN]
        names = AliasAssignment.objects.filter(subject_version__subject=row)
        newest = newest_version(row)
        return Record(
            lead=f"{row.title} is {'an' if row.kind == SubjectKind.AGENT else 'a'} {row.get_kind_display()}"
            + (f" of {row.provider}." if row.provider else "."),
            target=("subject", row.key),
            sections=[
                Fields(
                    "Subject",
                    [
                        ("Key", row.key),
                        ("Version that runs now", link(newest, empty="none yet")),
                        ("Fingerprint", whole_digest(newest.digest if newest else "")),
                        ("Title", row.title),
                        ("Kind", row.get_kind_display()),
                        ("Provider", said(row.provider)),
                        ("Candidate", yes_no(row.candidate)),
                        ("Registered", instant(row.registered_at)),
                        ("Last changed by a fact", instant(row.changed_at)),
                    ],
                ),
                *(made_of(newest) if newest is not None else ()),
                Table(
                    "Versions",
                    ("Version", "Fingerprint", "Reach is closed", "Registered", "By"),
                    [
                        [
                            link(version, f"v{version.number}"),
                            digest(version.digest),
                            yes_no(version.closed),
                            instant(version.registered_at),
                            ActorReference(version.registered_by),
                        ]
                        for version in versions
                    ],
                    empty="No version is registered, so nothing can be judged.",
                    more=list_link(SubjectVersion, "All versions", subject__id__exact=row.pk),
                ),
                Table(
                    "Names that mean it", ALIAS_COLUMNS, alias_rows(names), empty="No source's name is assigned to this subject."
                ),
            ],
        )


@admin.register(SubjectVersion)
class SubjectVersionAdmin(ReadOnlyAdmin):
    about = "Exact configurations, each pinned by its digest. A verdict is about one of these."
    list_display = ("shown", "kind", "fingerprint", "is_closed", "registered")
    list_filter = (("subject", AutocompleteSelectFilter), "closed")
    list_select_related = ("subject",)
    search_fields = ("subject__key", "^digest")
    ordering = ("-id",)

    @admin.display(description="version", ordering="subject__key")
    def shown(self, row: SubjectVersion) -> str:
        return str(row)

    @admin.display(description="kind")
    def kind(self, row: SubjectVersion) -> str:
        return str(row.subject.get_kind_display())

    @admin.display(description="fingerprint")
    def fingerprint(self, row: SubjectVersion) -> Cell:
        return digest(row.digest)

    @admin.display(description="reach is closed", ordering="closed")
    def is_closed(self, row: SubjectVersion) -> str:
        return yes_no(row.closed)

    @admin.display(description="registered", ordering="registered_at")
    def registered(self, row: SubjectVersion) -> Cell:
        return instant(row.registered_at)

    def describe(self, row: SubjectVersion, request: HttpRequest) -> Record:
        names = AliasAssignment.objects.filter(subject_version=row)
        written = list(names.values_list("name_as_written", flat=True).distinct()[:SHOWN])
        sections: list[Section] = [
            Fields(
                "Version",
                [
                    ("Subject", link(row.subject)),
                    ("Number", str(row.number)),
                    ("Fingerprint", whole_digest(row.digest)),
                    ("Reach is closed", yes_no(row.closed) if row.closed else "no: no verdict is possible"),
                    ("Registered", instant(row.registered_at)),
                    ("By", ActorReference(row.registered_by)),
                ],
            ),
            Texts(
                "What is pinned",
                [("The canonical bytes under the fingerprint, spread over lines", readable_json(bytes(row.pin)))],
            ),
        ]
        sections[1:1] = made_of(row)
        sections += [
            Table("Names that mean it", ALIAS_COLUMNS, alias_rows(names), empty="No source's name is assigned to this version."),
            Table(
                "Evidence under these names",
                ("Name as written", "Evidence"),
                [[name, list_link(Evidence, "Evidence under this name", subject_as_written=name)] for name in written],
                empty="Nothing was measured under a name that means this version.",
            ),
        ]
        return Record(
            lead=f"One exact configuration of {row.subject.key}.",
            target=("subject_version", f"{row.subject.key}@{row.number}"),
            sections=sections,
        )


@admin.register(AliasAssignment)
class AliasAssignmentAdmin(ReadOnlyAdmin):
    about = "Which name, as a source writes it, means which subject version. The newest statement counts; withdrawing one means nobody."
    list_display = ("name_as_written", "in_source", "means", "since", "recorded")
    list_filter = (("source", AutocompleteSelectFilter),)
    list_select_related = ("source", "subject_version__subject")
    search_fields = ("name_as_written", "subject_version__subject__key")
    ordering = ("-id",)

    @admin.display(description="in source", ordering="source__key")
    def in_source(self, row: AliasAssignment) -> str:
        return str(row.source or "any source")

    @admin.display(description="means")
    def means(self, row: AliasAssignment) -> Cell:
        return link(row.subject_version, empty="nobody")

    @admin.display(description="from", ordering="effective_from")
    def since(self, row: AliasAssignment) -> Cell:
        return instant(row.effective_from, empty="ever since")

    @admin.display(description="recorded", ordering="recorded_at")
    def recorded(self, row: AliasAssignment) -> Cell:
        return instant(row.recorded_at)

    def describe(self, row: AliasAssignment, request: HttpRequest) -> Record:
        others = AliasAssignment.objects.filter(name_as_written=row.name_as_written)
        where = f"in {row.source}" if row.source else "in any source"
        return Record(
            lead=f"“{row.name_as_written}”, as written {where}, means {row.subject_version or 'nobody'}.",
            target=("alias", row.name_as_written),
            sections=[
                Fields(
                    "Assignment",
                    [
                        ("Name as written", row.name_as_written),
                        ("In source", link(row.source, empty="any source")),
                        ("Means", link(row.subject_version, empty="nobody: evidence under it counts for no subject")),
                        ("From", instant(row.effective_from, empty="ever since")),
                        ("Reason", said(row.reason)),
                        ("Assigned by", ActorReference(row.assigned_by)),
                        ("Recorded", instant(row.recorded_at)),
                        ("Evidence", list_link(Evidence, "Evidence under this name", subject_as_written=row.name_as_written)),
                    ],
                ),
                Table("Every statement about this name, newest first", ALIAS_COLUMNS, alias_rows(others), empty="None."),
            ],
        )
