"""What those who manage a system do to it: change what is stated, and switch its open incident. Each is a page that calls one service.

The services open their own transactions, which the admin's change view would already hold.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.html import format_html

from compliance.admin.kept import KeptAdmin
from compliance.admin.rights import actor_of, reads_trail
from compliance.models import LedgerEntry
from compliance.selectors.offline import stored_bundle
from compliance.selectors.systems import known_teams, may_manage_system, roles_held
from compliance.services.offline import HANDED_OUT, MADE
from evaluations.importers.fields import MAX_COUNT
from evaluations.kernel.clock import now
from evaluations.kernel.display import Cell, Fields, Section, instant, list_link, whole_digest
from evaluations.kernel.errors import DomainError, InputRefused
from evaluations.kernel.numbers import NotADecimal, parse_decimal, plain
from evaluations.vocabulary import Domain
from policies.admin.systems import SystemAdmin
from policies.models import System
from policies.selectors.systems import FIELDS, system_digest
from policies.services.systems import (
    MAX_REASON,
    MAX_TITLE,
    SystemChanged,
    set_open_incident,
    update_system,
)
from policies.vocabulary import Environment

UNKNOWN = "Empty where not known: the worst is taken"
YES_NO = (("yes", "yes"), ("no", "no"))
BY_BUNDLE = (
    "By it an enforcement point decides while the gate is down. One that was handed out counts to its end, whatever happens."
)
KNOWN_WORDS = {"yes": True, "no": False, "": None}


class ReasonForm(forms.Form):
    """A reason, and what the page showed when it was given."""

    seen = forms.CharField(widget=forms.HiddenInput)
    reason = forms.CharField(label="Reason", max_length=MAX_REASON, help_text="Stands in the trail, for whoever asks later")

    def add_problems(self, refused: DomainError) -> None:
        """Show what the service refuses beside the fields it is about."""
        for problem in refused.problems if isinstance(refused, InputRefused) else ():
            said = f"{problem.message}; {problem.hint}" if problem.hint else problem.message
            self.add_error(problem.field if problem.field in self.fields else None, said)
        if not isinstance(refused, InputRefused):
            self.add_error(None, refused.detail)


class IncidentForm(ReasonForm):
    link = forms.CharField(
        label="Where more is told", max_length=MAX_REASON, required=False, help_text="An http or https address; may be empty"
    )


class SystemForm(ReasonForm):
    """Everything that is stated about a system."""

    title = forms.CharField(label="Title", max_length=MAX_TITLE)
    domain = forms.ChoiceField(label="Domain", choices=Domain.choices)
    environment = forms.ChoiceField(label="Environment", choices=Environment.choices)
    reversible = forms.ChoiceField(label="Writes can be taken back", choices=YES_NO)
    owner = forms.ChoiceField(label="Owning team", required=False)
    people_affected = forms.IntegerField(
        label="People affected", required=False, min_value=0, max_value=MAX_COUNT, help_text=UNKNOWN
    )
    writes_per_day = forms.IntegerField(label="Writes a day", required=False, min_value=0, max_value=MAX_COUNT, help_text=UNKNOWN)
    holds_personal_data = forms.ChoiceField(
        label="Personal data", choices=(("", "not known"), *YES_NO), required=False, help_text="Not known counts as the worst"
    )
    money_at_stake_usd = forms.CharField(
        label="Money at stake in one write, US$", required=False, max_length=20, help_text=UNKNOWN
    )
    field_order = (*FIELDS, "reason")

    def __init__(self, *args: Any, owner: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        # The team that stands there stays a choice, even where it is none that is registered.
        keys = sorted({*known_teams(), *([owner] if owner else [])})
        field: Any = self.fields["owner"]
        field.choices = [("", "nobody"), *((key, key) for key in keys)]

    def clean_reversible(self) -> bool:
        return bool(KNOWN_WORDS[self.cleaned_data["reversible"]])

    def clean_holds_personal_data(self) -> bool | None:
        return KNOWN_WORDS[self.cleaned_data["holds_personal_data"]]

    def clean_money_at_stake_usd(self) -> Decimal | None:
        text = str(self.cleaned_data["money_at_stake_usd"]).strip()
        try:
            return parse_decimal(text, field="money") if text else None
        except NotADecimal as error:
            raise forms.ValidationError(str(error)) from error


class ManagedSystemAdmin(KeptAdmin, SystemAdmin):
    """The page of a system, with what those who manage it may do."""

    why_not = (
        "This needs the role system owner of the system's own team, security or administrator, now. An administrator gives roles."
    )
    acts = ("Manage", "writegate/sections/manage.html")

    def may_act(self, request: HttpRequest, row: System) -> bool:
        person_id: Any = getattr(request.user, "person_id", None)
        return person_id is not None and may_manage_system(roles_held(person_id=person_id, at=now()), row)

    def act_data(self, row: System) -> dict[str, Any]:
        return {"edit": self.act_address("edit", row), "incident": self.act_address("incident", row), "open": row.open_incident}

    def get_urls(self) -> list[URLPattern]:
        return [
            self.act_path("edit", self.edit_view),
            self.act_path("incident", self.incident_view),
            *super().get_urls(),
        ]

    def edit_view(self, request: HttpRequest, row: System) -> HttpResponseBase:
        """Show what is stated as a form; on POST change it, as long as it is still what the form showed."""
        if request.method == "POST":
            form = SystemForm(request.POST, owner=row.owner)
            if form.is_valid():
                stated = form.cleaned_data
                changes = {field: stated[field] for field in FIELDS}
                change: Callable[[], System] = lambda: update_system(  # noqa: E731 - read where the form is at hand
                    actor=actor_of(request),
                    system=row,
                    changes=changes,
                    reason=stated["reason"],
                    expected_digest=stated["seen"],
                )
                if self._done(form, change):
                    messages.success(request, "What is stated about the system was changed.")
                    return redirect("admin:policies_system_change", row.pk)
        else:
            shown = {field: _shown(getattr(row, field)) for field in FIELDS}
            form = SystemForm(initial={**shown, "seen": system_digest(row)}, owner=row.owner)
        about = "Policies, approvers and the gate read this. Old and new values are recorded with your name and reason."
        return self.act_page(
            request, row, form, title="Change", lead=f"Change what is stated about {row.title}", about=about, button="Change"
        )

    def incident_view(self, request: HttpRequest, row: System) -> HttpResponseBase:
        """Ask for a reason; on POST open the incident, or close the open one."""
        if request.method == "POST":
            form = IncidentForm(request.POST)
            if form.is_valid():
                given = form.cleaned_data
                # What the page showed decides which way the switch goes, so that two clicks do not undo each other.
                is_open = given["seen"] != "open"
                switch: Callable[[], System] = lambda: set_open_incident(  # noqa: E731 - likewise
                    actor=actor_of(request), system=row, is_open=is_open, reason=given["reason"], link=given["link"]
                )
                if self._done(form, switch):
                    messages.success(request, "The system has an open incident now." if is_open else "The incident is closed.")
                    return redirect("admin:policies_system_change", row.pk)
        else:
            form = IncidentForm(initial={"seen": "open" if row.open_incident else "closed"})
        words = "Close the incident" if row.open_incident else "Open an incident"
        about = (
            "Policies can deny writes while an incident is open. Closing one brings back nothing that was suspended meanwhile."
        )
        return self.act_page(request, row, form, title=words, lead=f"{words} of {row.title}", about=about, button=words)

    def _done(self, form: ReasonForm, act: Callable[[], object]) -> bool:
        try:
            act()
        except SystemChanged:
            form.add_error(None, "The system was changed since this page was opened: open it again to see what stands now.")
        except DomainError as refused:
            form.add_problems(refused)
        else:
            return True
        return False


def _shown(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return plain(value) if isinstance(value, Decimal) else "" if value is None else value


@SystemAdmin.add_section
def offline_of(row: System, request: HttpRequest) -> Section:
    """Show the newest offline bundle, and where it stands who was handed one."""
    held = stored_bundle(row)
    rows: list[tuple[str, Cell]] = []
    if held is not None:
        left = "" if held.expires_at > now() else ", which is past"
        rows = [
            ("Newest made", instant(held.issued_at)),
            ("Counts until", format_html("{}{}", instant(held.expires_at), left)),
            ("Lists", f"{held.lines} that may act" if held.lines else "nobody"),
            ("Serial number", str(held.serial)),
            ("Digest", whole_digest(held.digest)),
        ]
        if reads_trail(request):
            about: dict[str, str | int] = {"target_kind": "system", "target_id": row.key}
            rows.append(("Made", list_link(LedgerEntry, "every bundle that was made", **about, action=MADE)))
            rows.append(
                ("Handed out", list_link(LedgerEntry, "every time one was handed out, and to whom", **about, action=HANDED_OUT))
            )
    return Fields("Offline bundle", rows, note=BY_BUNDLE if held is not None else "None was ever asked for.")


# Sections that other pages add to a system's page stand on this one too.
ManagedSystemAdmin.further = SystemAdmin.further
admin.site.unregister(System)
admin.site.register(System, ManagedSystemAdmin)
