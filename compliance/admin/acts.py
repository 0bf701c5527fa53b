"""What administrators do to accounts, roles and holds: each act a page of its own that asks, says what follows, and calls one service.

The services open their own transactions, which the admin's change view would already hold; they also decide who may act, so a page
that was reached by hand is refused like a stranger's call.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from compliance.admin.rights import actor_of
from compliance.models import Person, RoleMembership, ServiceToken, SigningHold, Team, User
from compliance.selectors.access import holds_any_role
from compliance.services.accounts import (
    deactivate_account,
    end_token,
    lift_signing_hold,
    reactivate_account,
    register_person,
    register_team,
    reset_factors,
    reset_password,
)
from compliance.services.roles import end_role, give_role
from compliance.vocabulary import Role
from evaluations.kernel.actor import Actor
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused
from evaluations.kernel.names import KEY_MAX_LENGTH

PASSWORD_BYTES = 15


class ReasonForm(forms.Form):
    reason = forms.CharField(label="Reason", max_length=500, help_text="Stands in the trail, for whoever asks later")


class OptionalReasonForm(forms.Form):
    reason = forms.CharField(label="Reason", max_length=500, required=False, help_text="Stands in the trail")


class RoleForm(forms.Form):
    role = forms.ChoiceField(label="Role", choices=Role.choices)
    team = forms.ModelChoiceField(
        label="For the team", queryset=Team.objects.order_by("key"), required=False, empty_label="every team"
    )
    ends_at = forms.DateTimeField(
        label="Until", required=False, help_text="In UTC, as 2027-03-01 12:00; empty for a role without an end"
    )


class PersonForm(forms.Form):
    name = forms.CharField(label="Name", max_length=200)
    email = forms.EmailField(label="E-mail address", help_text="She signs in by it")
    team = forms.ModelChoiceField(label="Team", queryset=Team.objects.order_by("key"), required=False, empty_label="none")


class TeamForm(forms.Form):
    key = forms.CharField(label="Key", max_length=KEY_MAX_LENGTH, help_text="Systems name their owner by it; it never changes")
    title = forms.CharField(label="Title", max_length=200)


class ConfirmForm(forms.Form):
    """Nothing to fill in: the page only asks whether it is meant."""


Call = Callable[[Actor, Any, dict[str, Any]], object]


@dataclass(frozen=True)
class Act:
    """One act: on what, under which words, by which form and service; `done` is said on the person's page afterwards."""

    key: str
    model: type[Any]
    title: str
    follows: str
    button: str
    done: str
    call: Call
    form: type[forms.Form] = field(default=ReasonForm)
    route: ClassVar[str] = "<str:person>/{key}/<str:pk>/"

    @property
    def url_name(self) -> str:
        return f"compliance_person_{self.key.replace('-', '_')}"

    def address(self, person: Person, row: Any) -> str:
        return reverse(f"admin:{self.url_name}", args=[person.pk, row.pk])


def _one_time_password(actor: Actor, user: User, given: dict[str, Any]) -> str:
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    reset_password(actor=actor, user=user, password=password)
    return password


HOLD_FOLLOWS = "Her signatures do not count until another administrator than you has confirmed it."
ACTS = {
    act.key: act
    for act in (
        Act(
            "give-role",
            Person,
            "Give a role",
            "She holds the role from now on. Nobody gives one to herself.",
            "Give the role",
            "The role is given.",
            lambda actor, person, given: give_role(actor=actor, person=person, **given),
            RoleForm,
        ),
        Act(
            "end-role",
            RoleMembership,
            "End a role",
            "She no longer holds the role. What she did under it stays on record.",
            "End the role",
            "The role has ended.",
            lambda actor, membership, given: end_role(actor=actor, membership=membership, **given),
            OptionalReasonForm,
        ),
        Act(
            "deactivate",
            User,
            "Close an account",
            "Nobody signs in by it any more, and its sessions end with their next request.",
            "Close the account",
            "The account is closed.",
            lambda actor, user, given: deactivate_account(actor=actor, user=user, **given),
        ),
        Act(
            "reactivate",
            User,
            "Open an account again",
            "It opens with the password and the factors that it had.",
            "Open the account",
            "The account is open.",
            lambda actor, user, given: reactivate_account(actor=actor, user=user, **given),
        ),
        Act(
            "reset-password",
            User,
            "Reset a password",
            f"A one-time password is made and shown to you once; her sessions end. {HOLD_FOLLOWS}",
            "Reset the password",
            "The password is reset.",
            _one_time_password,
            ConfirmForm,
        ),
        Act(
            "reset-factors",
            User,
            "Reset second factors",
            f"Her authenticator app, keys and recovery codes are gone; she sets up new ones. {HOLD_FOLLOWS}",
            "Take away second factors",
            "Her second factors are gone.",
            lambda actor, user, given: reset_factors(actor=actor, user=user, **given),
        ),
        Act(
            "revoke-token",
            ServiceToken,
            "Revoke a token",
            "Whoever holds it is refused from this moment on. It does not come back: make another one.",
            "Revoke the token",
            "The token is revoked.",
            lambda actor, token, given: end_token(actor=actor, token=token, **given),
        ),
        Act(
            "lift-hold",
            SigningHold,
            "Confirm a reset",
            "You say that the reset was asked for by her. Her signatures count again, once no other hold stands.",
            "Lift the hold",
            "The hold is lifted.",
            lambda actor, hold, given: lift_signing_hold(actor=actor, hold=hold),
            ConfirmForm,
        ),
    )
}


def is_administrator(request: HttpRequest) -> bool:
    """True when the signed-in person holds the role now."""
    person_id: Any = getattr(request.user, "person_id", None)
    return person_id is not None and holds_any_role(person_id=person_id, roles=[Role.ADMINISTRATOR], at=now())


class ActingPages:
    """The acting pages of a person, for the admin that shows people."""

    admin_site: Any
    opts: Any

    def acting_urls(self) -> list[URLPattern]:
        """Return an address for each act."""
        return [
            path("register/", self.admin_site.admin_view(self.register_view), name="compliance_person_register"),
            *(
                path(act.route.format(key=key), self.admin_site.admin_view(self._view_of(act)), name=act.url_name)
                for key, act in ACTS.items()
            ),
        ]

    def register_view(self, request: HttpRequest) -> HttpResponseBase:
        """Ask for a name and an address; register the person, and show her one-time password once."""
        act = {"title": "Register a person", "button": "Register", "follows": "She gets an account and a one-time password."}
        if not is_administrator(request):
            return self._page(request, "writegate/administrator_needed.html", act, status=403)
        form = PersonForm(request.POST or None)
        if request.method != "POST" or not form.is_valid():
            return self._page(request, "writegate/act.html", act, status=422 if form.errors else 200, form=form)
        password = secrets.token_urlsafe(PASSWORD_BYTES)
        try:
            user = register_person(actor=actor_of(request), password=password, **form.cleaned_data)
        except DomainError as refused:
            form.add_error("email", refused.detail)
            return self._page(request, "writegate/act.html", act, status=409, form=form)
        return self._page(request, "writegate/one_time_password.html", act, user.person, password=password)

    def register_team_view(self, request: HttpRequest) -> HttpResponseBase:
        """Ask for a key and a title, and register the team."""
        act = {"title": "Register a team", "button": "Register", "follows": "People belong to it, and systems are owned by it."}
        back: dict[str, Any] = {"back": reverse("admin:compliance_team_changelist"), "to": "all teams"}
        if not is_administrator(request):
            return self._page(request, "writegate/administrator_needed.html", act, status=403, **back)
        form = TeamForm(request.POST or None)
        status = 422 if form.errors else 200
        if request.method == "POST" and form.is_valid():
            try:
                team = register_team(actor=actor_of(request), **form.cleaned_data)
            except InputRefused as refused:
                for problem in refused.problems:
                    form.add_error("key", f"{problem.message}; {problem.hint}")
                status = 422
            except DomainError as refused:
                form.add_error("key", refused.detail)
                status = 409
            else:
                messages.success(request, "The team is registered.")
                return redirect("admin:compliance_team_change", team.pk)
        return self._page(request, "writegate/act.html", act, status=status, form=form, **back)

    def _view_of(self, act: Act) -> Callable[..., HttpResponseBase]:
        def view(request: HttpRequest, person: str, pk: str) -> HttpResponseBase:
            return self._act(request, act, person, pk)

        return view

    def _act(self, request: HttpRequest, act: Act, person_id: str, pk: str) -> HttpResponseBase:
        person, row = _found(act, person_id, pk)
        if not is_administrator(request):
            return self._page(request, "writegate/administrator_needed.html", act, person, status=403)
        if request.method != "POST":
            return self._page(request, "writegate/act.html", act, person, form=act.form(), row=_words(row))
        form = act.form(request.POST)
        status = 422
        if form.is_valid():
            try:
                result = act.call(actor_of(request), row, form.cleaned_data)
            except InputRefused as refused:
                for problem in refused.problems:
                    form.add_error(problem.field if problem.field in form.fields else None, problem.message)
            except DomainError as refused:
                form.add_error(None, refused.detail)
                status = 403 if refused.kind is ErrorKind.FORBIDDEN else 409
            else:
                if isinstance(result, str):
                    # Shown in the answer itself, which no browser keeps: a message would lie in a cookie until the next page.
                    return self._page(request, "writegate/one_time_password.html", act, person, password=result)
                messages.success(request, act.done)
                return redirect(_page_of(person))
        return self._page(request, "writegate/act.html", act, person, status=status, form=form, row=_words(row))

    def _page(
        self, request: HttpRequest, template: str, act: Any, person: Person | None = None, *, status: int = 200, **more: Any
    ) -> HttpResponse:
        request.current_app = self.admin_site.name
        title = act["title"] if isinstance(act, dict) else act.title
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": title,
            "act": act,
            "to": person or "everybody",
            "back": _page_of(person) if person else reverse("admin:compliance_person_changelist"),
        }
        return TemplateResponse(request, template, {**context, **more}, status=status)


def _found(act: Act, person_id: str, pk: str) -> tuple[Person, Any]:
    """Return the person and the row that is acted on, which must be hers."""
    try:
        person = Person.objects.get(pk=person_id)
        own = {"pk": person.pk} if act.model is Person else {"person": person}
        row = act.model.objects.filter(**own).get(pk=pk)
    except (ValueError, TypeError, LookupError, forms.ValidationError, Person.DoesNotExist, act.model.DoesNotExist) as error:
        raise Http404("no such row") from error
    return person, row


def _words(row: Any) -> str:
    """Say in a word what is acted on."""
    if isinstance(row, RoleMembership):
        return str(row.get_role_display())
    return str(row.get_cause_display() if isinstance(row, SigningHold) else row)


def _page_of(person: Person) -> str:
    return reverse("admin:compliance_person_change", args=[person.pk])
