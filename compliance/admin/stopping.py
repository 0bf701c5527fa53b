"""The stop button and break-glass: one person takes access away at a stroke, or opens it for hours, loudly."""

import uuid
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.http import urlencode

from compliance.admin.asking import AccessForm
from compliance.admin.rights import actor_of
from compliance.admin.sighted import AskingForm, reason_field, sentence_of, session_of
from compliance.models import Grant
from compliance.selectors.grants import grants_in_scope, scope_exists
from compliance.services.break_glass import LEAST_JUSTIFICATION, LEAST_MINUTES, MOST_MINUTES, open_break_glass
from compliance.services.closing import require_stopper
from compliance.services.proofs import ReauthenticationNeeded
from compliance.services.stopping import stop_grants
from compliance.vocabulary import StopScope
from evaluations.kernel.clock import now
from evaluations.kernel.display import Table, instant, link
from evaluations.kernel.errors import DomainError
from policies.models import System

NAMED = 20
KEPT = "writegate_break_glass"
"""Where a session keeps what somebody typed while she proves once more that it is she."""
_KEPT_FIELDS = ("subject_version", "systems", "actions", "minutes", "justification", "key")
LOUD = (
    "This opens access on your word alone. Security, administrators and the systems' owners are told at once, others review it, and"
    " until they have, you open no other."
)


class ScopeForm(AskingForm):
    """What to stop: one subject, system, provider or benchmark with all that it carries, or everything."""

    scope = forms.ChoiceField(label="Stop what rests on", choices=StopScope.choices, widget=forms.RadioSelect)
    key = forms.CharField(
        label="Its key", required=False, max_length=200, help_text="As it is registered; left empty for everything"
    )

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = super().clean() or self.cleaned_data
        scope, key = found.get("scope"), found.get("key", "").strip()
        if scope and not scope_exists(StopScope(scope), key):
            wide = StopScope(scope)
            hint = "leave it empty for everything" if wide is StopScope.ALL else f"no {wide.label} is registered under this key"
            self.add_error("key", sentence_of(hint))
        return {**found, "key": key}


class StopForm(AskingForm):
    scope = forms.CharField(widget=forms.HiddenInput, max_length=20)
    key = forms.CharField(widget=forms.HiddenInput, max_length=200, required=False)
    order = forms.CharField(widget=forms.HiddenInput, max_length=100)
    reason = reason_field()


class BreakGlassForm(AccessForm):
    """What is opened, for how long, and why it cannot wait."""

    reason = None  # type: ignore[assignment]  # Django's way to take an inherited field out
    starts_at = None  # type: ignore[assignment]
    ends_at = None  # type: ignore[assignment]
    minutes = forms.IntegerField(
        label="Open for how many minutes",
        min_value=LEAST_MINUTES,
        max_value=MOST_MINUTES,
        help_text=f"{LEAST_MINUTES} to {MOST_MINUTES}: as short as you can",
    )
    justification = forms.CharField(
        label="What is broken, and why it cannot wait",
        min_length=LEAST_JUSTIFICATION,
        max_length=4_000,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=f"At least {LEAST_JUSTIFICATION} characters; it is sent to everybody who is told",
    )
    field_order = ("key", "subject_version", "systems", "actions", "minutes", "justification")


class StoppingPages:
    """The pages of the stop button and of break-glass, for the admin of grants."""

    own_path: Callable[..., URLPattern]
    page: Callable[..., HttpResponse]
    form_page: Callable[..., HttpResponse]

    def stopping_urls(self) -> list[URLPattern]:
        return [
            self.own_path("stop/", self.stop_view, "stop"),
            self.own_path("break-glass/", self.break_glass_view, "break_glass"),
        ]

    def stop_view(self, request: HttpRequest) -> HttpResponseBase:
        """Ask for the scope; then show what it would stop and ask for a reason; on POST stop it and say how many it was."""
        if request.method == "POST":
            return self._stop(request)
        # A form without a choice comes with its key alone.
        if not {"scope", "key"} & request.GET.keys():
            return self._stop_page(request, scope=ScopeForm())
        scope = ScopeForm(request.GET)
        if not scope.is_valid():
            return self._stop_page(request, scope=scope, status=422)
        wide, key = StopScope(scope.cleaned_data["scope"]), scope.cleaned_data["key"]
        refusal = _may_stop(request, wide, key)
        if refusal:
            scope.add_error(None, refusal)
            return self._stop_page(request, scope=scope, status=403)
        form = StopForm(initial={"scope": str(wide), "key": key, "order": uuid.uuid4().hex}, auto_id="stop_%s")
        return self._stop_page(request, scope=scope, form=form, what=(wide, key))

    def _stop(self, request: HttpRequest) -> HttpResponseBase:
        form = StopForm(request.POST, auto_id="stop_%s")
        if form.is_valid():
            given = form.cleaned_data
            try:
                stopped = stop_grants(
                    actor=actor_of(request),
                    scope=given["scope"],
                    key=given["key"],
                    reason=given["reason"],
                    idempotency_key=given["order"],
                )
            except DomainError as refused:
                form.add_refusal(refused)
            else:
                grants = _named(Grant.objects.filter(uid__in=stopped.uids))
                return self._stop_page(request, scope=ScopeForm(), stopped=stopped.count, grants=grants)
        scope = ScopeForm({name: request.POST.get(name, "") for name in ("scope", "key")})
        known = (StopScope(scope.cleaned_data["scope"]), scope.cleaned_data["key"]) if scope.is_valid() else None
        what = known if known and not _may_stop(request, *known) else None
        return self._stop_page(request, scope=scope, form=form, what=what, status=422)

    def _stop_page(
        self,
        request: HttpRequest,
        *,
        scope: ScopeForm,
        form: StopForm | None = None,
        what: tuple[StopScope, str] | None = None,
        stopped: int | None = None,
        grants: Table | None = None,
        status: int = 200,
    ) -> HttpResponse:
        count = None
        if what is not None:
            found = grants_in_scope(*what, at=now())
            count, grants = found.count(), _named(found)
        context = {
            "scope_form": scope,
            "form": form,
            "count": count,
            "named": None if what is None else _words(*what),
            "stopped": stopped,
            "section": grants,
            "shown": NAMED,
        }
        return self.page(request, "writegate/stop.html", "Stop button", status=status, **context)

    # --- break-glass --------------------------------------------------------------------------------------------------------

    def break_glass_view(self, request: HttpRequest) -> HttpResponseBase:
        """Ask for what is opened and why; on POST open it at once. A proof that it is she comes first, and keeps what was typed."""
        page = {
            "title": "Break-glass",
            "lead": "Break-glass: open access now, for a short while",
            "about": "For an emergency that the ordinary road is too slow for. It goes round no record.",
            "button": "Open it now",
            "back": reverse("admin:compliance_grant_changelist"),
            "loud": LOUD,
        }
        if request.method != "POST":
            kept = request.session.pop(KEPT, None) or {}
            return self.form_page(request, BreakGlassForm(initial={"key": uuid.uuid4().hex, **kept}), **page)
        form = BreakGlassForm(request.POST)
        account: Any = request.user
        if form.is_valid():
            given = form.cleaned_data
            try:
                opened = open_break_glass(
                    actor=actor_of(request),
                    account=account,
                    session=session_of(request),
                    subject_version=given["subject_version"],
                    systems=list(given["systems"]),
                    actions=given["actions"],
                    justification=given["justification"],
                    minutes=given["minutes"],
                    idempotency_key=given["key"],
                )
            except ReauthenticationNeeded:
                typed: dict[str, Any] = {name: request.POST.get(name, "") for name in _KEPT_FIELDS}
                request.session[KEPT] = {**typed, "systems": request.POST.getlist("systems")}
                again = reverse("admin:compliance_grant_break_glass")
                return redirect(f"{reverse('account_reauthenticate')}?{urlencode({'next': again})}")
            except DomainError as refused:
                form.add_refusal(refused)
            else:
                messages.warning(request, "It is open. Everybody concerned is told; revoke it as soon as you are done.")
                return redirect("admin:compliance_grant_change", opened.grant.pk)
        return self.form_page(request, form, status=422, **page)


def _may_stop(request: HttpRequest, scope: StopScope, key: str) -> str:
    """Say why the signed-in person may not stop this, "" where she may: what it would stop is for those who may alone."""
    system = System.objects.filter(key=key).first() if scope is StopScope.SYSTEM else None
    try:
        require_stopper(actor=actor_of(request), system=system, at=now())
    except DomainError as refused:
        return sentence_of(refused.detail)
    return ""


def _words(scope: StopScope, key: str) -> str:
    return "every grant" if scope is StopScope.ALL else f"every grant that rests on the {scope.label} {key}"


def _named(grants: Any) -> Table:
    rows = (
        grants.select_related("subject_version__subject")
        .prefetch_related("grant_systems__system")
        .order_by("ends_at", "id")[:NAMED]
    )
    return Table(
        "Grants",
        ("Grant", "May", "On", "Until"),
        [
            [
                link(row, str(row.subject_version)),
                ", ".join(row.actions),
                ", ".join(item.system.key for item in row.grant_systems.all()),
                instant(row.ends_at),
            ]
            for row in rows
        ],
        empty="None: nothing active rests on it.",
    )
