"""Asking that a policy's parameters are tightened at a system: a form, what it would change, and then the request for signatures."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django import forms
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, reverse

from compliance.admin.asking import FOLLOWS, FileForm, file_asked, fresh_key
from compliance.admin.defining import DefiningPages
from compliance.admin.dossier import OWN
from compliance.admin.rights import actor_of
from compliance.selectors.tightening import ParamChange, Place, places_to_tighten
from compliance.services.filing import request_binding
from evaluations.kernel.display import Cell, Table, anchor, code, link
from evaluations.kernel.errors import DomainError
from evaluations.kernel.numbers import NotADecimal, parse_decimal, plain
from policies.language.compiled import Param
from policies.models import System
from policies.services.bindings import check_binding

PARAM = "param:"
"""Fields for numbers are called by this, then the parameter."""
HERE, DOMAIN = "system", "domain"
ABOUT = "Stricter alone: a floor may only go up, a ceiling only down. What stands is judged by it once it is signed."
OTHER = "Something else was shown than what was sent, or it has moved since. Below is what changes now."
SAME = "These are the numbers that are bound already: nothing would change."


class TighteningForm(FileForm):
    """A number for each parameter of a policy, and where they bind. `seen` is the digest of the change that was shown, if one was."""

    seen = forms.CharField(widget=forms.HiddenInput, required=False, max_length=100)
    where = forms.ChoiceField(label="Where it binds", widget=forms.RadioSelect)
    field_order: Sequence[str] = ("key", "seen", "where")

    def __init__(self, *args: Any, place: Place, **options: Any) -> None:
        super().__init__(*args, **options)
        domain = place.system.get_domain_display()
        where: Any = self.fields["where"]
        where.choices = [(HERE, f"at {place.system.title} alone"), (DOMAIN, f"at every system of the domain {domain}")]
        for name, param in place.compiled.params.items():
            self.fields[PARAM + name] = forms.CharField(label=name, required=False, max_length=40, help_text=_limits(param))
        self.order_fields([*self.field_order, *(PARAM + name for name in place.compiled.params), "reason"])

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        for field in [name for name in self.fields if name.startswith(PARAM)]:
            text = str(given.get(field, "")).strip()
            try:
                given[field] = parse_decimal(text, field="the number") if text else None
            except NotADecimal as error:
                self.add_error(field, str(error))
        return given

    def numbers(self) -> dict[str, Decimal]:
        """Return the numbers that are given, by parameter. The form is valid."""
        given = ((name, self.cleaned_data[name]) for name in self.fields if name.startswith(PARAM))
        return {name.removeprefix(PARAM): number for name, number in given if number is not None}

    def show_again(self, seen: str) -> None:
        """Have the form carry the digest of what is shown now."""
        self.data = {**self.data.dict(), "seen": seen}  # type: ignore[attr-defined]  # it is what was posted


class TighteningPages(DefiningPages):
    """The pages that ask for a binding, beside those that ask for everything else."""

    def asking_urls(self) -> list[URLPattern]:
        return [
            *super().asking_urls(),
            self.own_path("ask/binding/<int:pk>/", self.choose_policy_view, "ask_binding_at"),
            self.own_path("ask/binding/<int:pk>/<int:policy>/", self.binding_view, "ask_binding"),
        ]

    def choose_policy_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """List the policies in force whose parameters can be tightened at a system."""
        system = _system(pk)
        rows: list[list[Cell]] = []
        for place in places_to_tighten(system):
            params = ", ".join(f"{name} {plain(param.value)}" for name, param in place.compiled.params.items())
            address = reverse("admin:compliance_signoffrequest_ask_binding", args=[pk, place.version.policy_id])
            rows.append([link(place.version), params, anchor(address, f"Tighten {place.version.policy.name}")])
        empty = "No policy in force has parameters: their numbers stand in their rules alone."
        section = Table("Policies in force", ("Policy", "Its own numbers", "Here"), rows, empty=empty)
        return self.form_page(
            request,
            forms.Form(),
            title="Tighten a policy",
            lead=f"Which policy shall be stricter at {system.title}?",
            about=ABOUT,
            button="",
            back=_page_of(system),
            sections=[section],
            nothing="What binds outlives the version it was signed for, and never makes a policy looser.",
        )

    def binding_view(self, request: HttpRequest, pk: int, policy: int) -> HttpResponseBase:
        """Ask for numbers; on POST show what they would change, and once that was shown, ask for signatures."""
        system = _system(pk)
        place = next(iter(places_to_tighten(system, policy_id=policy)), None)
        if place is None:
            raise Http404(f"no policy in force with parameters `{policy}`")
        page: dict[str, Any] = {
            "title": "Tighten a policy",
            "lead": f"Tighten {place.version.policy.name} v{place.version.number} at {system.title}",
            "about": f"{ABOUT} {FOLLOWS}",
            "button": "Show what changes",
            "back": reverse("admin:compliance_signoffrequest_ask_binding_at", args=[pk]),
        }
        if request.method != "POST":
            stated = {f"{PARAM}{name}": plain(number) for name, number in place.stated("").items()}
            form = TighteningForm(place=place, initial={**stated, "where": HERE, "key": fresh_key()})
            return self.form_page(request, form, **page)
        form = TighteningForm(request.POST, place=place)
        if not form.is_valid():
            return self.form_page(request, form, status=422, **page)
        domain = system.domain if form.cleaned_data["where"] == DOMAIN else ""
        asked: dict[str, Any] = {"policy": place.version.policy, "params": form.numbers(), "domain": domain}
        asked["system"] = None if domain else system
        try:
            numbers = check_binding(**asked)
        except DomainError as refused:
            form.add_refusal(refused)
            return self.form_page(request, form, status=422, **page)
        shown, changes = place.digest_with(domain, numbers), place.changes(domain, numbers)
        if not changes:
            form.add_error(None, SAME)
            return self.form_page(request, form, status=422, **page)
        if form.cleaned_data["seen"] == shown:
            done = file_asked(request, form, lambda: request_binding(actor=actor_of(request), **asked, **form.filed_by()))
            if done is not None:
                return done
        elif form.cleaned_data["seen"]:
            form.add_error(None, OTHER)
        form.show_again(shown)
        page |= {"button": "Ask for signatures", "sections": [_changes_table(changes, system)]}
        return self.form_page(request, form, status=422 if form.errors else 200, **page)


def _changes_table(changes: Sequence[ParamChange], system: System) -> Table:
    rows: list[list[Cell]] = [
        [
            code(change.name),
            plain(change.own),
            f"{_stated(change.bound)} → {_stated(change.asked)}",
            f"{plain(change.here)} → {plain(change.then)}"
            if change.here != change.then
            else f"{plain(change.here)}, as until now",
        ]
        for change in changes
    ]
    columns = ("Parameter", "The policy's own", "Bound there, until now → then", f"Counts at {system.title}, now → then")
    note = "One that is left empty is the policy's own again. Of a system's binding and its domain's, the stricter counts."
    return Table("What it would change", columns, rows, empty="Nothing.", note=note)


def _stated(number: Decimal | None) -> str:
    return OWN if number is None else plain(number)


def _limits(param: Param) -> str:
    bound = param.maximum if param.floor else param.minimum
    side = "up" if param.floor else "down"
    until = f", to {plain(bound)}" if bound is not None else ""
    return f"The policy's own is {plain(param.value)}: it may only go {side}{until}. Empty: the policy's own"


def _system(pk: int) -> System:
    system = System.objects.filter(pk=pk).first()
    if system is None:
        raise Http404(f"no system `{pk}`")
    return system


def _page_of(system: System) -> str:
    return reverse("admin:policies_system_change", args=[system.pk])
