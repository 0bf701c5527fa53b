"""Notices and webhooks: where each notice stands, and what an administrator may do about it.

Acting is a POST view of its own: the service opens its own transaction. Auditors see the pages without the buttons.
"""

import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from django import forms
from django.contrib import admin, messages
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, reverse
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from compliance.admin.rights import TrailAdmin, actor_of
from compliance.models import OutboxMessage, WebhookEndpoint
from compliance.selectors.access import holds_any_role
from compliance.services.outbox import EVERY_EVENT, replay_message
from compliance.services.outgoing import MAX_URL
from compliance.services.webhooks import MAX_TITLE, NewSecret, disable_webhook, open_webhook, rotate_secret
from compliance.vocabulary import NoticeKind, NoticeStatus, Role
from evaluations.kernel.clock import now
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Custom,
    Fields,
    Mark,
    Record,
    Texts,
    chip,
    code,
    instant,
    link,
    list_link,
    readable_json,
    said,
    shortened,
    words,
)
from evaluations.kernel.errors import DomainError, InputRefused

MARKS = {
    NoticeStatus.WAITING: Mark("waiting", "stale", "schedule"),
    NoticeStatus.SENT: Mark("sent", "pass", "check_circle"),
    NoticeStatus.DEAD: Mark("dead", "fail", "cancel"),
}


class Act(NamedTuple):
    """A button of a page: what it does, where it is sent, and what it means."""

    label: str
    address: str
    note: str


class WebhookForm(forms.Form):
    """What to register. `key` makes sending the form twice harmless."""

    title = forms.CharField(label="Title", max_length=MAX_TITLE, help_text="Whose it is, for people")
    url = forms.CharField(
        label="Address",
        max_length=MAX_URL,
        help_text="https://…, outside of private networks unless the operator allows its host and port",
    )
    every = forms.BooleanField(label="Every event, also of kinds to come", required=False)
    events = forms.MultipleChoiceField(
        label="Events", required=False, choices=NoticeKind.choices, widget=forms.CheckboxSelectMultiple
    )
    key = forms.UUIDField(widget=forms.HiddenInput)

    def wish(self) -> dict[str, Any]:
        """Return the arguments of `open_webhook`. The form is valid."""
        asked = self.cleaned_data
        events = [EVERY_EVENT] if asked["every"] else asked["events"]
        return {"url": asked["url"], "title": asked["title"], "events": events, "idempotency_key": str(asked["key"])}

    def add_problems(self, refused: InputRefused) -> None:
        """Show what the service refuses beside the fields it is about."""
        for problem in refused.problems:
            said_so = f"{problem.message}; {problem.hint}" if problem.hint else problem.message
            self.add_error(problem.field if problem.field in self.fields else None, said_so)


class OutboxAdmin(TrailAdmin):
    """Base of both pages: read by those who read the trail, acted on by administrators."""

    def acting_path(self, route: str, view: Callable[..., HttpResponseBase], name: str) -> URLPattern:
        """Return the address of something that only an administrator does."""

        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not _administers(request):
                return self.page(request, "writegate/administrator_needed.html", "Another role is needed", status=403)
            return view(request, *args, **kwargs)

        return self.trail_path(route, guarded, name)

    def found(self, pk: int) -> Any:
        """Return the row, or raise 404."""
        return get_object_or_404(self.model, pk=pk)

    def carry_out(self, request: HttpRequest, row: Model, act: Callable[[], Any], done: str) -> HttpResponseBase:
        """Call a service on POST, say what came of it, and lead back to the row's page."""
        if request.method == "POST":
            try:
                act()
            except DomainError as refused:
                messages.error(request, f"Nothing was changed: {refused.detail}.")
            else:
                messages.success(request, done)
        return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", row.pk)


@admin.register(OutboxMessage)
class OutboxMessageAdmin(OutboxAdmin):
    about = "What was told to whom, over mail, chat or a webhook. A dead notice was given up, after 18 hours at the latest."
    empty_sentence = "Nobody has been told anything yet."
    list_display = ("told", "title_shown", "standing", "channel", "recipient_shown", "tries", "error")
    list_filter = ("status", "kind", "channel", ("endpoint", AutocompleteSelectFilter))
    list_select_related = ("endpoint",)
    search_fields = ("^uid", "title", "subject")
    ordering = ("-id",)

    def prepare_rows(self, rows: Any) -> None:
        for row in rows:
            row.shown_recipient = _recipient(row)
        self.name_actors([row.shown_recipient for row in rows if isinstance(row.shown_recipient, ActorReference)])

    @admin.display(description="queued", ordering="id")
    def told(self, row: OutboxMessage) -> Cell:
        return instant(row.created_at)

    @admin.display(description="notice", ordering="title")
    def title_shown(self, row: OutboxMessage) -> Cell:
        return shortened(row.title, most=70)

    @admin.display(description="state", ordering="status")
    def standing(self, row: OutboxMessage) -> Cell:
        return chip(MARKS[NoticeStatus(row.status)])

    @admin.display(description="to")
    def recipient_shown(self, row: Any) -> Cell:
        return row.shown_recipient.__html__() if isinstance(row.shown_recipient, ActorReference) else row.shown_recipient

    @admin.display(description="attempts", ordering="attempts")
    def tries(self, row: OutboxMessage) -> str:
        return str(row.attempts)

    @admin.display(description="last error")
    def error(self, row: OutboxMessage) -> Cell:
        return shortened(row.last_error, most=60) or "none"

    def get_urls(self) -> list[URLPattern]:
        return [self.acting_path("<int:pk>/replay/", self.replay_view, "replay"), *super().get_urls()]

    def replay_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Send a dead notice once more."""
        row = self.found(pk)
        return self.carry_out(
            request, row, lambda: replay_message(actor=actor_of(request), message=row), "The notice waits to be sent again."
        )

    def describe(self, row: OutboxMessage, request: HttpRequest) -> Record:
        dead = row.status == NoticeStatus.DEAD
        replay = Act(
            "Send it again",
            reverse("admin:compliance_outboxmessage_replay", args=[row.pk]),
            "From its first attempt on; recorded",
        )
        return Record(
            lead=row.title,
            mark=chip(MARKS[NoticeStatus(row.status)]),
            target=("notice", str(row.uid)),
            sections=[
                *_acts(request, [replay] if dead else []),
                Fields(
                    "Delivery",
                    [
                        ("Over", row.get_channel_display()),
                        ("To", _recipient(row)),
                        ("Attempts", str(row.attempts)),
                        ("Last error", said(row.last_error, empty="none")),
                        ("Due", instant(row.due_at) if row.status == NoticeStatus.WAITING else "no more"),
                        ("Queued", instant(row.created_at)),
                        ("Sent", instant(row.sent_at, empty="not yet" if not dead else "no")),
                    ],
                ),
                Fields(
                    "Event",
                    [
                        ("Kind", row.get_kind_display()),
                        ("Type", code(row.event_type)),
                        ("About", code(row.subject)),
                        ("Event", code(str(row.event_id))),
                        ("Identifier", code(str(row.uid))),
                    ],
                ),
                Texts(
                    "Content",
                    [
                        ("What a machine reads", readable_json(row.data)),
                        *([("What a person reads", row.text)] if row.text else []),
                    ],
                ),
            ],
        )


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(OutboxAdmin):
    about = (
        "Other systems that are told of events: as CloudEvents, each signed by the endpoint's secret as Standard Webhooks says."
    )
    empty_sentence = "No webhook is registered."
    change_list_template = "writegate/webhook_list.html"
    list_display = ("title", "standing", "place", "events_shown", "by", "since")
    search_fields = ("^uid", "title", "url")
    ordering = ("-id",)

    def prepare_rows(self, rows: Any) -> None:
        for row in rows:
            row.shown_actor = ActorReference(row.created_by)
        self.name_actors([row.shown_actor for row in rows])

    @admin.display(description="state", ordering="disabled_at")
    def standing(self, row: WebhookEndpoint) -> Cell:
        return webhook_chip(row)

    @admin.display(description="address", ordering="url")
    def place(self, row: WebhookEndpoint) -> Cell:
        return shortened(row.url, most=50)

    @admin.display(description="events")
    def events_shown(self, row: WebhookEndpoint) -> Cell:
        return _events(row)

    @admin.display(description="registered by", ordering="created_by")
    def by(self, row: Any) -> Cell:
        return row.shown_actor.__html__()

    @admin.display(description="registered", ordering="id")
    def since(self, row: WebhookEndpoint) -> Cell:
        return instant(row.created_at)

    def get_urls(self) -> list[URLPattern]:
        return [
            self.acting_path("register/", self.register_view, "register"),
            self.acting_path("<int:pk>/disable/", self.disable_view, "disable"),
            self.acting_path("<int:pk>/rotate/", self.rotate_view, "rotate"),
            *super().get_urls(),
        ]

    def register_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show the form; on POST register the endpoint and show its secret, once."""
        if request.method != "POST":
            return self._form_page(request, WebhookForm(initial={"key": uuid.uuid4()}))
        form = WebhookForm(request.POST)
        if form.is_valid():
            try:
                return self._secret_page(request, open_webhook(actor=actor_of(request), **form.wish()))
            except InputRefused as refused:
                form.add_problems(refused)
            except DomainError as refused:
                form.add_error(None, refused.detail)
        return self._form_page(request, form, status=422)

    def disable_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Tell an endpoint nothing more."""
        row = self.found(pk)
        return self.carry_out(
            request, row, lambda: disable_webhook(actor=actor_of(request), endpoint=row), "The webhook is told nothing more."
        )

    def rotate_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Give an endpoint a new secret and show it, once."""
        row = self.found(pk)
        if request.method != "POST":
            return redirect("admin:compliance_webhookendpoint_change", row.pk)
        try:
            made = rotate_secret(actor=actor_of(request), endpoint=row, idempotency_key=request.POST.get("key") or None)
        except DomainError as refused:
            messages.error(request, f"Nothing was changed: {refused.detail}.")
            return redirect("admin:compliance_webhookendpoint_change", row.pk)
        return self._secret_page(request, made)

    def _form_page(self, request: HttpRequest, form: WebhookForm, *, status: int = 200) -> HttpResponse:
        return self.page(request, "writegate/webhook_register.html", "Register a webhook", status=status, form=form)

    def _secret_page(self, request: HttpRequest, made: NewSecret) -> HttpResponse:
        return self.page(request, "writegate/webhook_secret.html", "The webhook's secret", row=made.endpoint, secret=made.secret)

    def describe(self, row: WebhookEndpoint, request: HttpRequest) -> Record:
        acts = []
        if row.disabled_at is None:
            rotate, disable = (reverse(f"admin:compliance_webhookendpoint_{act}", args=[row.pk]) for act in ("rotate", "disable"))
            acts = [
                Act("Make a new secret", rotate, "Shown once; the old one signs too for 24 hours"),
                Act("Disable", disable, "For good; what waits for it becomes a dead letter"),
            ]
        return Record(
            lead=row.title,
            mark=webhook_chip(row),
            target=("webhook", str(row.uid)),
            sections=[
                *_acts(request, acts),
                Fields(
                    "Webhook",
                    [
                        ("Address", code(row.url)),
                        ("Events", _events(row)),
                        ("Secret", "not shown: it was, once, when it was made"),
                        ("Old secret signs until", instant(row.previous_until, empty="there is none")),
                        ("Registered by", ActorReference(row.created_by)),
                        ("Registered", instant(row.created_at)),
                        ("Disabled by", ActorReference(row.disabled_by) if row.disabled_by else "nobody"),
                        ("Disabled", instant(row.disabled_at, empty="no")),
                        ("Notices", list_link(OutboxMessage, "Notices to this webhook", endpoint__id__exact=row.pk)),
                        ("Identifier", code(str(row.uid))),
                    ],
                ),
            ],
        )


def webhook_chip(row: WebhookEndpoint) -> Cell:
    """Say whether an endpoint is told of events."""
    return chip(Mark("disabled", "fail", "block") if row.disabled_at is not None else Mark("active", "pass", "check_circle"))


def _events(row: WebhookEndpoint) -> Cell:
    return "every event" if row.events == [EVERY_EVENT] else words(row.events)


def _recipient(row: OutboxMessage) -> Cell:
    if row.endpoint is not None:
        return link(row.endpoint)
    return ActorReference(row.recipient) if row.person_id is not None else code(row.recipient)


def _administers(request: HttpRequest) -> bool:
    person_id: Any = getattr(request.user, "person_id", None)
    return person_id is not None and holds_any_role(person_id=person_id, roles=(Role.ADMINISTRATOR,), at=now())


def _acts(request: HttpRequest, acts: list[Act]) -> list[Custom]:
    """Return the section with the buttons, for those alone who may press them."""
    if not acts or not _administers(request):
        return []
    return [Custom("What you can do", "writegate/sections/acts.html", {"acts": acts, "key": str(uuid.uuid4())})]
