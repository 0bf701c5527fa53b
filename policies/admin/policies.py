"""Policies and their versions: text and meaning side by side."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Max, QuerySet
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
    whole_digest,
)
from evaluations.kernel.errors import DomainError
from policies.admin.marks import state_chip
from policies.admin.meaning import changes_section, directions_of, tests_section, text_section
from policies.models import Policy, PolicyActivation, PolicyVersion, Standing, UnreadableVersion, Verdict
from policies.selectors.drafts import open_draft
from policies.selectors.linting import check_version
from policies.selectors.policies import compile_version
from policies.vocabulary import VersionState

SHOWN = 50


def states_of(versions: Iterable[PolicyVersion]) -> Mapping[int, VersionState]:
    """Return where each version stands in its life, by two queries for all of them."""
    found = list(versions)
    policies = {version.policy_id for version in found}
    newest = PolicyActivation.objects.filter(policy__in=policies).order_by().values("policy").annotate(newest=Max("pk"))
    active = set(PolicyActivation.objects.filter(pk__in=newest.values("newest")).values_list("version_id", flat=True))
    once = set(PolicyActivation.objects.filter(version__in=found).values_list("version_id", flat=True).distinct())
    return {
        version.pk: VersionState.ACTIVE
        if version.pk in active
        else VersionState.RETIRED
        if version.pk in once
        else VersionState.PROPOSED
        for version in found
    }


def version_table(title: str, versions: QuerySet[PolicyVersion]) -> Table:
    """Return the newest versions of one policy, each with its state and in which directions it differs from the one before."""
    # One more than is shown, to compare the last one with.
    newest = list(versions.select_related("policy").order_by("-number")[: SHOWN + 1])
    found, directions = newest[:SHOWN], directions_of(newest)
    states = states_of(found)
    return Table(
        title,
        ("Version", "State", "Against the one before", "Title", "Text digest", "Meaning digest", "Proposed by", "Recorded"),
        [
            [
                link(version, f"v{version.number}"),
                state_chip(states[version.pk]),
                directions[version.pk],
                version.title,
                digest(version.digest),
                digest(version.resolved_digest),
                ActorReference(version.proposed_by),
                instant(version.recorded_at),
            ]
            for version in found
        ],
        empty="No version has been proposed.",
    )


@admin.register(Policy)
class PolicyAdmin(ReadOnlyAdmin):
    about = "What counts as good enough. Each policy is a name under which numbered, immutable versions are kept."
    list_display = ("name", "title", "newest_version", "in_force", "registered")
    search_fields = ("name", "title")
    ordering = ("name",)

    def prepare_rows(self, rows: Any) -> None:
        newest: dict[int, PolicyVersion] = {}
        for version in PolicyVersion.objects.filter(policy__in=rows).defer("text", "resolved").order_by("number"):
            newest[version.policy_id] = version
        active = {
            activation.policy_id: activation.version
            for activation in PolicyActivation.objects.filter(policy__in=rows).select_related("version__policy").order_by("pk")
        }
        for row in rows:
            row.shown_newest, row.shown_active = newest.get(row.pk), active.get(row.pk)

    @admin.display(description="newest version")
    def newest_version(self, row: Any) -> Cell:
        version = row.shown_newest
        return link(version, f"v{version.number}") if version else "none"

    @admin.display(description="in force")
    def in_force(self, row: Any) -> Cell:
        version = row.shown_active
        return link(version, f"v{version.number}") if version else "none: it answers no decision"

    @admin.display(description="registered", ordering="registered_at")
    def registered(self, row: Policy) -> Cell:
        return instant(row.registered_at)

    def describe(self, row: Policy, request: HttpRequest) -> Record:
        activations = row.activations.select_related("version__policy").order_by("-id")[:SHOWN]
        return Record(
            lead=row.title,
            target=("policy", row.name),
            sections=[
                Fields("Policy", [("Name", row.name), ("Title", row.title), ("Registered", instant(row.registered_at))]),
                _draft_section(row),
                version_table("Versions, newest first", row.versions.all()),
                Table(
                    "Activations, newest first",
                    ("Version", "Activated by", "Recorded"),
                    [
                        [
                            link(item.version, f"v{item.version.number}"),
                            ActorReference(item.activated_by),
                            instant(item.recorded_at),
                        ]
                        for item in activations
                    ],
                    empty="No version was ever activated: the policy answers no decision, and its verdicts are for information.",
                ),
                Table(
                    "Bindings, newest first",
                    ("Place", "Parameters", "Bound by", "Recorded"),
                    [
                        [
                            link(item.system) if item.system else item.domain,
                            readable_json(bytes(item.params)),
                            ActorReference(item.bound_by),
                            instant(item.recorded_at),
                        ]
                        for item in row.bindings.select_related("system").order_by("-id")[:SHOWN]
                    ],
                    empty="No system or domain tightens its parameters.",
                ),
            ],
        )


def _draft_section(row: Policy) -> Section:
    """Return the draft that waits to be proposed, and who saved it."""
    draft = open_draft(row.name)
    if draft is None:
        return Table("Draft", (), [], empty="Nothing is being written: each text saved for this policy is a version.")
    rows: list[tuple[str, Cell]] = [
        ("Saved by", ActorReference(draft.edited_by)),
        ("Saved", instant(draft.recorded_at)),
        ("Text digest", whole_digest(draft.digest)),
    ]
    return Fields("Draft", rows, note="It binds nobody until it is proposed, and its activation asked for and signed.")


@admin.register(PolicyVersion)
class PolicyVersionAdmin(ReadOnlyAdmin):
    about = "Numbered, immutable policy texts, each stored as the exact bytes given and as their resolved meaning."
    list_display = ("shown", "title", "state", "fingerprint", "recorded")
    list_filter = (("policy", AutocompleteSelectFilter),)
    list_select_related = ("policy",)
    search_fields = ("policy__name", "title", "^digest")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> Any:
        queryset = super().get_queryset(request)
        # The texts are for the version's own page; a list of fifty need not carry them.
        match = request.resolver_match
        return queryset.defer("text", "resolved") if match and (match.url_name or "").endswith("_changelist") else queryset

    def prepare_rows(self, rows: Any) -> None:
        states = states_of(rows)
        for row in rows:
            row.shown_state = states[row.pk]

    @admin.display(description="version", ordering="policy__name")
    def shown(self, row: PolicyVersion) -> str:
        return str(row)

    @admin.display(description="state")
    def state(self, row: Any) -> Cell:
        return state_chip(row.shown_state)

    @admin.display(description="text digest")
    def fingerprint(self, row: PolicyVersion) -> Cell:
        return digest(row.digest)

    @admin.display(description="recorded", ordering="recorded_at")
    def recorded(self, row: PolicyVersion) -> Cell:
        return instant(row.recorded_at)

    def describe(self, row: PolicyVersion, request: HttpRequest) -> Record:
        state = states_of([row])[row.pk]
        return Record(
            lead=row.title,
            mark=state_chip(state),
            target=("policy_version", f"{row.policy.name}@{row.number}"),
            sections=[
                *_incidents(list(row.unreadable.all()[:SHOWN])),
                *_explained(row, request),
                Fields(
                    "Policy version",
                    [
                        ("Policy", link(row.policy)),
                        ("Number", str(row.number)),
                        ("State", state_chip(state)),
                        ("Text digest", whole_digest(row.digest)),
                        ("Meaning digest", whole_digest(row.resolved_digest)),
                        ("Semantics", str(row.semantics)),
                        ("Proposed by", ActorReference(row.proposed_by)),
                        ("Recorded", instant(row.recorded_at)),
                        ("Standings", list_link(Standing, "What it says now", policy_version__id__exact=row.pk)),
                        ("Verdicts", list_link(Verdict, "Every verdict by it", policy_version__id__exact=row.pk)),
                    ],
                ),
            ],
        )


def _explained(row: PolicyVersion, request: HttpRequest) -> list[Section]:
    """Return what a version changes, its text and meaning with the lint's findings, and its tests; else why it cannot be read."""
    resolved = readable_json(bytes(row.resolved))
    try:
        # Held against its digest before it is shown as what was signed.
        compile_version(row)
        checked = check_version(row)
        return [changes_section(row, request), text_section(row, checked, resolved), tests_section(checked)]
    except (DomainError, ValueError) as error:
        texts = [("Text, as stored", bytes(row.text).decode("utf-8", "replace")), ("Meaning, as stored", resolved)]
        return [Texts("Text and meaning", texts, note=f"The stored text cannot be read: {error}")]


def _incidents(noted: Sequence[UnreadableVersion]) -> list[Section]:
    """Return when a version in force was found unreadable, and in which text; nothing where it never was."""
    if not noted:
        return []
    table = Table(
        "Found unreadable, newest first",
        ("Found", "What is wrong", "Digest of the text found", "Found by"),
        [
            [instant(item.recorded_at), ", ".join(item.codes), digest(item.found_digest), ActorReference(item.found_by)]
            for item in noted
        ],
        empty="It was always read.",
        note="While it is in force, the gate denies until its text is back, byte for byte as it was signed.",
    )
    return [table]
