"""What evidence stewards do to a source: state from where it is refreshed, and have it refreshed now. Each is a page or a button that
calls one service, which opens its own transaction.
"""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern

from compliance.admin.kept import KeptAdmin
from compliance.admin.rights import actor_of
from compliance.selectors.access import holds_any_role
from compliance.vocabulary import KEEPS_SOURCES
from evaluations.admin.sources import SourceAdmin
from evaluations.importers.profiles import bundled_profiles
from evaluations.importers.registry import names
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, InputRefused
from evaluations.models import Source
from evaluations.selectors.refreshing import FIELDS, schedule_digest, schedule_of
from evaluations.services.refresh import request_refresh
from evaluations.services.schedules import (
    MAX_ADDRESS,
    MAX_INTERVAL_MINUTES,
    MAX_KEY_NAME,
    MAX_SUBJECT,
    ScheduleChanged,
    ScheduleWish,
    set_schedule,
)
from evaluations.vocabulary import Connector


class ScheduleForm(forms.Form):
    """What a schedule states, and what the page showed when it was filled in."""

    seen = forms.CharField(widget=forms.HiddenInput)
    connector = forms.ChoiceField(label="Fetched by", choices=Connector.choices)
    address = forms.CharField(
        label="From",
        required=False,
        max_length=MAX_ADDRESS,
        help_text=(
            "An https address · a folder below the watched one · datasets/owner/name@revision:path on Hugging Face · "
            "owner/name@revision:path on GitHub · empty for the usual address of Artificial Analysis"
        ),
    )
    interval_minutes = forms.IntegerField(label="Every so many minutes", min_value=1, max_value=MAX_INTERVAL_MINUTES)
    format = forms.ChoiceField(label="Format", required=False)
    profile = forms.ChoiceField(label="Profile", required=False, help_text="What the numbers mean, where the files do not say it")
    subject = forms.CharField(
        label="Subject as written", required=False, max_length=MAX_SUBJECT, help_text="Where the format names no model"
    )
    key_name = forms.CharField(
        label="Name of the key",
        required=False,
        max_length=MAX_KEY_NAME,
        help_text="The variable of the service's environment that holds it, such as WRITEGATE_SOURCE_KEY_AA; never the key itself",
    )
    paused = forms.BooleanField(label="Paused: refreshed by hand alone", required=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        formats: Any = self.fields["format"]
        formats.choices = [("", "recognised from the files"), *((name, name) for name in names())]
        profiles: Any = self.fields["profile"]
        profiles.choices = [("", "none"), *((name, name) for name in bundled_profiles())]

    def wish(self) -> ScheduleWish:
        """Return what is asked for. The form is valid."""
        return ScheduleWish(**{field: self.cleaned_data[field] for field in (*FIELDS, "paused")})

    def add_problems(self, refused: DomainError) -> None:
        """Show what the service refuses beside the fields it is about."""
        for problem in refused.problems if isinstance(refused, InputRefused) else ():
            said = f"{problem.message}; {problem.hint}" if problem.hint else problem.message
            self.add_error(problem.field if problem.field in self.fields else None, said)
        if not isinstance(refused, InputRefused):
            self.add_error(None, refused.detail)


class KeptSourceAdmin(KeptAdmin, SourceAdmin):
    """The page of a source, with what those who keep evidence may do."""

    why_not = "This needs the role evidence steward or administrator, now. An administrator gives roles."
    acts = ("Refresh", "writegate/sections/refresh.html")

    def may_act(self, request: HttpRequest, row: Source) -> bool:
        person_id: Any = getattr(request.user, "person_id", None)
        return person_id is not None and holds_any_role(person_id=person_id, roles=KEEPS_SOURCES, at=now())

    def act_data(self, row: Source) -> dict[str, Any]:
        return {
            "schedule": self.act_address("schedule", row),
            "refresh": self.act_address("refresh", row) if schedule_of(row.pk) is not None else "",
        }

    def get_urls(self) -> list[URLPattern]:
        return [
            self.act_path("schedule", self.schedule_view),
            self.act_path("refresh", self.refresh_view),
            *super().get_urls(),
        ]

    def schedule_view(self, request: HttpRequest, row: Source) -> HttpResponseBase:
        """Show the schedule as a form; on POST state it, as long as it is still what the form showed."""
        schedule = schedule_of(row.pk)
        if request.method == "POST":
            form = ScheduleForm(request.POST)
            if form.is_valid() and self._stated(request, row, form):
                messages.success(request, "The schedule stands. Its first run begins within a minute, unless it is paused.")
                return redirect("admin:evaluations_source_change", row.pk)
        else:
            shown = {field: getattr(schedule, field) for field in FIELDS} if schedule is not None else {"interval_minutes": 1440}
            paused = schedule is not None and schedule.paused_at is not None
            form = ScheduleForm(initial={**shown, "paused": paused, "seen": schedule_digest(schedule)})
        return self.act_page(
            request,
            row,
            form,
            title="Schedule",
            lead=f"From where is {row.title} refreshed?",
            about=(
                "What comes from there counts as evidence that you handed in: you will not sign for what rests on it. "
                "Old and new schedule are recorded with your name."
            ),
            button="State the schedule",
            back_to="the source",
        )

    def refresh_view(self, request: HttpRequest, row: Source) -> HttpResponseBase:
        """Ask for a run on POST, and lead to it."""
        if request.method != "POST":
            return redirect("admin:evaluations_source_change", row.pk)
        try:
            run = request_refresh(actor=actor_of(request), source=row)
        except DomainError as refused:
            messages.error(request, f"Nothing was asked: {refused.detail}.")
            return redirect("admin:evaluations_source_change", row.pk)
        messages.success(request, "The source is asked by a worker now. Open this page again in a moment.")
        return redirect("admin:evaluations_refreshrun_change", run.pk)

    def _stated(self, request: HttpRequest, row: Source, form: ScheduleForm) -> bool:
        try:
            set_schedule(actor=actor_of(request), source=row, wish=form.wish(), expected_digest=form.cleaned_data["seen"])
        except ScheduleChanged:
            form.add_error(None, "The schedule was changed since this page was opened: open it again to see what stands now.")
        except DomainError as refused:
            form.add_problems(refused)
        else:
            return True
        return False


# Sections that other pages add to a source's page stand on this one too.
KeptSourceAdmin.further = SourceAdmin.further
KeptSourceAdmin.leads_to = SourceAdmin.leads_to
admin.site.unregister(Source)
admin.site.register(Source, KeptSourceAdmin)
