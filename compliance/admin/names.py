"""Names that wait, one at a time: what they may mean, what saying so would touch, and a steward's word for it.

The statement is posted back with the digest of what was shown; the service refuses it where anything has moved since.
"""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode

from compliance.admin.grants import STATUS_MARKS
from compliance.admin.rights import actor_of
from compliance.admin.sighted import sight
from compliance.selectors.access import holds_any_role
from compliance.selectors.grants import standing_of
from compliance.selectors.naming import SHOWN_EVIDENCE, Touched, grants_seen, touched_by
from compliance.selectors.registry import get_subject_version_named
from compliance.services.naming import STEWARDS, NameMoved, settle_name
from evaluations.admin.subjects import ALIAS_COLUMNS, AliasAssignmentAdmin, alias_rows
from evaluations.importers.likeness import CLOSE, LOOKS_ALIKE, SAME_BUT_PARTS, SAME_LETTERS
from evaluations.kernel.clock import now
from evaluations.kernel.display import Cell, Record, Section, Table, anchor, chip, code, instant, link
from evaluations.kernel.errors import DomainError, InputRefused
from evaluations.models import AliasAssignment, Source, SubjectVersion
from evaluations.selectors.names import find_waiting_names, get_waiting_name, suggestions_for
from evaluations.services.subjects import MAX_NAME
from policies.admin.marks import domain_words, result_chip

SHOWN = 50
NOBODY = "nobody"
WAYS = {
    SAME_LETTERS: "the same letters and digits",
    LOOKS_ALIKE: "looks alike: a digit stands for a letter",
    SAME_BUT_PARTS: "the same but for parts of its identity",
    CLOSE: "close, letter by letter",
}


class ChoiceForm(forms.Form):
    """What a name would mean, and where."""

    name = forms.CharField(widget=forms.HiddenInput, max_length=MAX_NAME, strip=False)
    means = forms.CharField(
        label="It means",
        max_length=140,
        help_text="A subject version as key@number, a key for its newest version, or the word nobody",
    )
    source = forms.ModelChoiceField(
        label="Where it is written so",
        queryset=Source.objects.order_by("key"),
        to_field_name="key",
        required=False,
        empty_label="in any source",
    )

    def clean_means(self) -> SubjectVersion | None:
        given = str(self.cleaned_data["means"]).strip()
        if given == NOBODY:
            return None
        version = get_subject_version_named(given)
        if version is None:
            raise forms.ValidationError("No subject version is called so: register it first.")
        return version


class StatementForm(ChoiceForm):
    """The statement itself, with what was shown."""

    seen = forms.CharField(widget=forms.HiddenInput)
    reason = forms.CharField(
        label="Reason", max_length=500, required=False, help_text="Stands in the trail; needed where the name means nobody"
    )


class NamingAdmin(AliasAssignmentAdmin):
    """The list of assignments, with the queue of names that have none."""

    change_list_template = "writegate/alias_list.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("waiting/", view(self.waiting_view), name="evaluations_aliasassignment_waiting"),
            path("name/", view(self.name_view), name="evaluations_aliasassignment_name"),
            *super().get_urls(),
        ]

    def describe(self, row: AliasAssignment, request: HttpRequest) -> Record:
        record = super().describe(row, request)
        return Record(
            lead=record.lead,
            target=record.target,
            sections=record.sections,
            downloads=[("Move or withdraw this name", address_of(row.name_as_written))],
        )

    def waiting_view(self, request: HttpRequest) -> HttpResponseBase:
        """List the names that wait, newest first."""
        rows = find_waiting_names()[: SHOWN + 1]
        suggested = suggestions_for([row.name for row in rows], close=False)
        shown: list[list[Cell]] = [
            [
                anchor(address_of(row.name), row.name),
                f"{row.evidence:,}" if row.asked else f"{row.evidence:,}, as who answered",
                ", ".join(row.sources),
                instant(row.first_seen_at),
                instant(row.last_seen_at),
                code(str(suggested[row.name][0].version)) if suggested[row.name] else "nothing like it is known",
            ]
            for row in rows[:SHOWN]
        ]
        section = Table(
            "Names",
            ("Name as written", "Evidence that waits", "Sources", "First seen", "Last seen", "May mean"),
            shown,
            empty="No name waits: whatever was handed in is about a subject version that is known.",
            note=f"The newest {SHOWN}; settle these, and the next ones follow." if len(rows) > SHOWN else "",
        )
        return self._page(request, "writegate/names_waiting.html", "Names that wait", section=section)

    def name_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show a name and what it may mean; with a choice, what that touches; on POST take the statement."""
        given = request.POST if request.method == "POST" else request.GET
        name = given.get("name", "")
        if not name:
            return redirect("admin:evaluations_aliasassignment_waiting")
        if request.method == "POST":
            return self._settle(request, name)
        choice = ChoiceForm(request.GET) if "means" in request.GET else ChoiceForm(initial={"name": name})
        if choice.is_bound and choice.is_valid():
            return self._show(request, name, choice, touched=_touched(choice))
        return self._show(request, name, choice, status=422 if choice.is_bound else 200)

    def _settle(self, request: HttpRequest, name: str) -> HttpResponseBase:
        form = StatementForm(request.POST)
        if not form.is_valid():
            return self._show(request, name, form, status=422)
        given = form.cleaned_data
        try:
            settled = settle_name(
                actor=actor_of(request),
                name=name,
                means=given["means"],
                source=given["source"],
                reason=given["reason"],
                seen=given["seen"],
            )
        except NameMoved:
            form.add_error(None, "Something under this name has moved since it was shown. Below is what stands now.")
            return self._show(request, name, form, touched=_touched(form), status=409)
        except InputRefused as refused:
            for problem in refused.problems:
                form.add_error(problem.field if problem.field in form.fields else None, str(problem._replace(field="")))
            return self._show(request, name, form, touched=_touched(form), status=422)
        except DomainError as refused:
            form.add_error(None, refused.detail)
            return self._show(request, name, form, touched=_touched(form), status=403)
        means = settled.assignment.subject_version or NOBODY
        messages.success(request, f"“{name}” means {means} from now on. What it touches is being judged anew.")
        return redirect("admin:evaluations_aliasassignment_waiting")

    def _show(
        self, request: HttpRequest, name: str, form: ChoiceForm, *, touched: Touched | None = None, status: int = 200
    ) -> HttpResponseBase:
        waiting = get_waiting_name(name)
        statement = None
        if touched is not None:
            means = f"{touched.means.subject.key}@{touched.means.number}" if touched.means else NOBODY
            source = touched.source.key if touched.source else ""
            reason = form.data.get("reason", "")
            first = {"name": name, "means": means, "source": source, "seen": touched.digest, "reason": reason}
            statement = StatementForm(initial=first, auto_id="state_%s")
        context = {
            "name": name,
            "waiting": waiting,
            "choice": form,
            "statement": statement,
            "touched": touched,
            "means": (touched.means or NOBODY) if touched is not None else None,
            "steward": _is_steward(request),
            "sections": self._sections(request, name, touched),
        }
        return self._page(request, "writegate/name.html", "Whom a name means", status=status, **context)

    def _sections(self, request: HttpRequest, name: str, touched: Touched | None) -> Sequence[Section]:
        known = AliasAssignment.objects.filter(name_as_written=name)
        now_means = Table("What it means now, newest statement first", ALIAS_COLUMNS, alias_rows(known), empty="Nobody has said.")
        found = [now_means] if touched is None else [*_touched_sections(request, touched), now_means]
        self.name_actors([cell for section in found for cell in section.cells() if hasattr(cell, "name")])
        return found if touched is not None else [_suggested(name), *found]

    def _page(self, request: HttpRequest, template: str, title: str, *, status: int = 200, **context: Any) -> HttpResponse:
        request.current_app = self.admin_site.name
        whole = {**self.admin_site.each_context(request), "opts": self.opts, "title": title, **context}
        return TemplateResponse(request, template, whole, status=status)


def address_of(name: str, **more: str) -> str:
    """Return the address of a name's page."""
    return f"{reverse('admin:evaluations_aliasassignment_name')}?{urlencode({'name': name, **more})}"


def _suggested(name: str) -> Table:
    rows: list[list[Cell]] = []
    for one in suggestions_for([name])[name]:
        cited = f"{one.version.subject.key}@{one.version.number}"
        differs = "; ".join(
            f"{part} {own or 'not stated'} here, {known or 'not stated'} there" for part, own, known in one.likeness.differs
        )
        rows.append(
            [anchor(address_of(name, means=cited), one.version), one.likeness.known, WAYS[one.likeness.way], differs or "nothing"]
        )
    return Table(
        "What it may mean",
        ("Subject version", "Known as", "How alike", "What differs"),
        rows,
        empty="Nothing that is known is like it.",
        note="None of these is taken by itself. What differs is part of an identity: another effort or snapshot is another version."
        if rows
        else "",
    )


def _touched_sections(request: HttpRequest, touched: Touched) -> list[Section]:
    evidence: list[list[Cell]] = [
        [
            link(row, str(row.uid)[:8]),
            link(row.source),
            instant(row.run_ended_at or row.published_at),
            row.get_run_status_display(),
            f"{row.seen:,}",  # type: ignore[attr-defined]  # annotated
            link(row.document, row.document.file_name),
        ]
        for row in touched.evidence[:SHOWN_EVIDENCE]
    ]
    verdicts: list[list[Cell]] = [
        [
            link(row.subject_version),
            link(row.policy_version),
            domain_words(row.domain),
            link(row.verdict, result_chip(row.verdict.result)),
        ]
        for row in touched.standings[:SHOWN]
    ]
    seen, at = grants_seen(touched, sight(request)), now()
    grants: list[list[Cell]] = [
        [
            link(row, str(row.uid)[:8]),
            link(row.subject_version),
            chip(STATUS_MARKS[standing_of(row, at=at).status]),
            instant(row.ends_at),
        ]
        for row in seen[:SHOWN]
    ]
    hidden = len(touched.grants) - len(seen)
    return [
        Table(
            f"Evidence that lands: {touched.landing:,}",
            ("Evidence", "Source", "Run ended or published", "Run", "Observations", "Document"),
            evidence,
            empty="No evidence is about this name.",
            note=f"The newest {SHOWN_EVIDENCE}." if touched.landing > SHOWN_EVIDENCE else "",
        ),
        Table(
            f"Grants that are reviewed after it: {len(touched.grants):,}",
            ("Grant", "For", "Stands", "Ends"),
            grants,
            empty="No grant is touched." if not touched.grants else "None that you may see.",
            note=f"{hidden} of them you may not see." if hidden and seen else "",
        ),
        Table(
            f"Verdicts that are judged anew: {len(touched.standings):,}",
            ("Subject version", "Policy version", "Domain", "Now"),
            verdicts,
            empty="Nothing has been judged yet that this touches.",
            note=f"The first {SHOWN}." if len(touched.standings) > SHOWN else "",
        ),
    ]


def _touched(form: ChoiceForm) -> Touched:
    given = form.cleaned_data
    return touched_by(name=given["name"], source=given["source"], means=given.get("means"))


def _is_steward(request: HttpRequest) -> bool:
    person_id: Any = getattr(request.user, "person_id", None)
    return person_id is not None and holds_any_role(person_id=person_id, roles=STEWARDS, at=now())


# Sections that other pages add to an assignment's page stand on this one too.
NamingAdmin.further = AliasAssignmentAdmin.further
admin.site.unregister(AliasAssignment)
admin.site.register(AliasAssignment, NamingAdmin)
