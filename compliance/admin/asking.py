"""Asking for what takes signatures: access, its renewal and return, a policy's activation, a ruling. Each page calls one service."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, reverse

from compliance.admin.rights import actor_of
from compliance.admin.sighted import AskingForm, UtcField, reason_field, sentence_of, sight
from compliance.models import SignOffRequest
from compliance.selectors.dossiers.access import Judged, judge_access, rule_core
from compliance.selectors.proposals import AskedWaiver
from compliance.selectors.resting import read_resting, versions_meant
from compliance.selectors.sight import visible_grants
from compliance.services.filing import (
    request_activation,
    request_grant,
    request_recertification,
    request_reinstatement,
    request_renewal,
    request_ruling,
    request_waiver,
)
from compliance.services.requests import NotCleared
from evaluations.admin.evidence import EvidenceAdmin
from evaluations.admin.subjects import SubjectVersionAdmin
from evaluations.kernel.clock import now
from evaluations.kernel.display import Custom, Section
from evaluations.kernel.errors import DomainError
from evaluations.models import Evidence, SubjectVersion
from evaluations.selectors.subjects import current_versions
from evaluations.services.evidence import dispute_evidence
from evaluations.vocabulary import RulingKind
from policies.models import PolicyVersion, System

WAIVE = "waive:"
"""Fields that ask for a waiver are called by this, then policy, rule and system."""
FOLLOWS = "The right people are told, and sign what you ask one by one; whoever asks signs nothing of it."
AT_ONCE = "A dispute opens nothing: it counts at once, and a ruling that others sign settles it."


class KeyedForm(AskingForm):
    """A form that files once, however often it is sent."""

    key = forms.CharField(widget=forms.HiddenInput, max_length=100)

    def filed_by(self) -> dict[str, Any]:
        return {"reason": self.cleaned_data["reason"], "idempotency_key": self.cleaned_data["key"]}


class FileForm(KeyedForm):
    reason = reason_field("Why it is needed", note="Those who sign read it")


class WaivableForm(FileForm):
    """A form beside which soft rules that fail are listed: a reason typed beside one asks to waive it."""

    def __init__(self, *args: Any, waivable: Sequence[tuple[str, str]] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        named = {name for name, _ in waivable}
        told = [*waivable, *((name, "") for name in self.data if name.startswith(WAIVE) and name not in named)]
        for name, note in told:
            _, policy, rule, system = [*name.split(":", 3), "", "", ""][:4]
            self.fields[name] = forms.CharField(
                label=f"Waive {rule} of {policy} on {system}, because",
                required=False,
                max_length=4_000,
                help_text=note or "Empty: it is not asked for",
                widget=forms.Textarea(attrs={"rows": 2}),
            )

    def waivers(self) -> list[AskedWaiver]:
        found = []
        for name, text in self.cleaned_data.items():
            parts = name.split(":", 3)
            if name.startswith(WAIVE) and len(parts) == 4 and text.strip():
                found.append(AskedWaiver(policy=parts[1], rule=parts[2], system=parts[3], reason=text.strip()))
        return found


class AccessForm(WaivableForm):
    """Which subject may do what, where, until when."""

    subject_version = forms.ModelChoiceField(label="Subject", queryset=SubjectVersion.objects.none(), empty_label="choose one")
    systems = forms.ModelMultipleChoiceField(
        label="Systems",
        queryset=System.objects.order_by("title", "key"),
        widget=forms.CheckboxSelectMultiple,
        help_text="Exactly these: an empty choice grants nothing",
    )
    actions = forms.CharField(label="Actions", max_length=800, initial="write", help_text="Words such as write, by commas")
    starts_at = UtcField(label="From (UTC)", required=False, help_text="Empty: as soon as it is signed")
    ends_at = UtcField(label="Until (UTC)")
    field_order: Sequence[str] = ("key", "subject_version", "systems", "actions", "starts_at", "ends_at", "reason")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field: Any = self.fields["subject_version"]
        current = [version.pk for version in current_versions(known_at=now())]
        field.queryset = SubjectVersion.objects.filter(pk__in=current).select_related("subject").order_by("subject__key")
        systems: Any = self.fields["systems"]
        systems.label_from_instance = lambda system: f"{system.title} ({system.key})"

    def clean_actions(self) -> list[str]:
        return [word for word in str(self.cleaned_data["actions"]).replace(",", " ").split() if word]


class RenewalForm(WaivableForm):
    ends_at = UtcField(label="Until (UTC)")
    field_order = ("key", "ends_at", "reason")


class WaiverForm(WaivableForm):
    ends_at = UtcField(label="Waived until (UTC)", help_text="No later than the grant's own end")
    field_order = ("key", "ends_at", "reason")


class RulingForm(FileForm):
    kind = forms.ChoiceField(
        label="Which ruling",
        choices=[choice for choice in RulingKind.choices if choice[0] != RulingKind.DISPUTED],
        widget=forms.RadioSelect,
    )
    link = forms.CharField(label="Where more is told", max_length=1_000, required=False, help_text="An address; may be empty")
    field_order = ("key", "kind", "link", "reason")


class DisputeForm(AskingForm):
    reason = reason_field("What is wrong with it", note="From now on it counts for nobody, until the dispute is ruled on")
    link = forms.CharField(label="Where more is told", max_length=1_000, required=False, help_text="An address; may be empty")


OF_GRANTS: Mapping[str, tuple[str, type[WaivableForm] | type[FileForm], Callable[..., SignOffRequest]]] = {
    "renewal": ("Ask for a renewal", RenewalForm, request_renewal),
    "reinstatement": ("Ask that it comes back", FileForm, request_reinstatement),
    "recertification": ("Ask for a new certification", FileForm, request_recertification),
    "waiver": ("Ask for a waiver", WaiverForm, request_waiver),
}
"""What can be asked for a grant: the words, the form, the service."""
NOTHING_TO_WAIVE = "No soft rule of its policies fails without a waiver: there is nothing to ask for."
_ABOUT_GRANTS = {
    "renewal": "A successor takes over without a gap once it is signed. Its dossier shows what is different from the one before.",
    "reinstatement": "It comes back on a fresh dossier, until the end that it always had.",
    "recertification": "It is looked at anew, on a fresh dossier, and stands until its next date.",
    "waiver": "A failing soft rule is accepted for a time. It goes on showing as failed.",
}


class AskingPages:
    """The pages that ask, for the admin of requests."""

    own_path: Callable[..., URLPattern]
    form_page: Callable[..., HttpResponse]

    def asking_urls(self) -> list[URLPattern]:
        return [
            self.own_path("ask/access/", self.access_view, "ask_access"),
            *(self.own_path(f"ask/{word}/<int:pk>/", self._grant_view(word), f"ask_{word}") for word in OF_GRANTS),
            self.own_path("ask/activation/<int:pk>/", self.activation_view, "ask_activation"),
            self.own_path("ask/ruling/<int:pk>/", self.ruling_view, "ask_ruling"),
            self.own_path("ask/dispute/<int:pk>/", self.dispute_view, "ask_dispute"),
        ]

    def access_view(self, request: HttpRequest) -> HttpResponseBase:
        """Ask that a subject may act on systems; failing soft rules are listed once the request meets them."""
        page = {
            "title": "Ask for access",
            "lead": "Ask that a subject may act on systems",
            "about": FOLLOWS,
            "button": "Ask",
            "back": reverse("admin:compliance_grant_changelist"),
        }
        if request.method != "POST":
            initial = {"key": fresh_key(), "subject_version": request.GET.get("subject_version", "")}
            return self.form_page(request, AccessForm(initial=initial), **page)
        form = AccessForm(request.POST)
        if form.is_valid():
            asked = form.cleaned_data
            terms = {name: asked[name] for name in ("subject_version", "systems", "actions", "starts_at", "ends_at")}
            terms["systems"] = list(terms["systems"])
            ask = lambda: request_grant(actor=actor_of(request), **terms, waivers=form.waivers(), **form.filed_by())  # noqa: E731
            filed = file_asked(request, form, ask)
            if filed is not None:
                return filed
            form = _with_waivable(form, AccessForm, request, asked["subject_version"], terms["systems"], asked["actions"])
        return self.form_page(request, form, status=422, **page)

    def _grant_view(self, word: str) -> Callable[..., HttpResponseBase]:
        def view(request: HttpRequest, pk: int) -> HttpResponseBase:
            return self._ask_for_grant(request, word, pk)

        return view

    def _ask_for_grant(self, request: HttpRequest, word: str, pk: int) -> HttpResponseBase:
        grant = visible_grants(sight(request)).select_related("subject_version__subject").filter(pk=pk).first()
        if grant is None:
            raise Http404(f"no grant `{pk}`")
        title, kind, ask = OF_GRANTS[word]
        systems = list(System.objects.filter(grant_systems__grant=grant).order_by("key"))
        page = {
            "title": title,
            "lead": f"{title}: {grant.subject_version} on {', '.join(system.title for system in systems)}",
            "about": f"{_ABOUT_GRANTS[word]} {FOLLOWS}",
            "button": "Ask",
            "back": reverse("admin:compliance_grant_change", args=[grant.pk]),
        }
        waives = word in ("renewal", "waiver")
        if request.method != "POST":
            options: dict[str, Any] = {"initial": {"key": fresh_key()}}
            if word == "waiver":
                options["waivable"] = waivable_rules(request, grant.subject_version, systems, grant.actions)
                page["nothing"] = "" if options["waivable"] else NOTHING_TO_WAIVE
            return self.form_page(request, kind(**options), **page)
        form = kind(request.POST)
        if form.is_valid():
            terms: dict[str, Any] = {}
            if isinstance(form, WaivableForm):
                terms = {"ends_at": form.cleaned_data["ends_at"], "waivers": form.waivers()}
            filed = file_asked(request, form, lambda: ask(actor=actor_of(request), grant=grant, **terms, **form.filed_by()))
            if filed is not None:
                return filed
            if waives:
                form = _with_waivable(form, kind, request, grant.subject_version, systems, grant.actions)
        return self.form_page(request, form, status=422, **page)

    def activation_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        version = PolicyVersion.objects.select_related("policy").filter(pk=pk).first()
        if version is None:
            raise Http404(f"no policy version `{pk}`")
        page = {
            "title": "Ask for activation",
            "lead": f"Ask that {version.policy.name} v{version.number} comes into force",
            "about": f"It then answers in place of the version before. {FOLLOWS}",
            "button": "Ask",
            "back": reverse("admin:policies_policyversion_change", args=[pk]),
        }
        return self.ask_simply(
            request, FileForm, page, lambda form: request_activation(actor=actor_of(request), version=version, **form.filed_by())
        )

    def ruling_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        evidence = _evidence(pk)
        page = {**_evidence_page(evidence), "title": "Ask for a ruling", "button": "Ask"}
        page |= {"lead": f"Ask for a ruling on what {evidence.source} wrote of “{evidence.subject_as_written}”", "about": FOLLOWS}

        def ask(form: Any) -> SignOffRequest:
            given = {name: form.cleaned_data[name] for name in ("kind", "link")}
            return request_ruling(actor=actor_of(request), evidence=evidence, **given, **form.filed_by())

        return self.ask_simply(request, RulingForm, page, ask)

    def ask_simply(
        self,
        request: HttpRequest,
        kind: type[KeyedForm],
        page: Mapping[str, Any],
        ask: Callable[[Any], SignOffRequest],
        *,
        initial: Mapping[str, Any] | None = None,
    ) -> HttpResponseBase:
        if request.method != "POST":
            return self.form_page(request, kind(initial={**(initial or {}), "key": fresh_key()}), **page)
        form = kind(request.POST)
        if form.is_valid():
            filed = file_asked(request, form, lambda: ask(form))
            if filed is not None:
                return filed
        return self.form_page(request, form, status=422, **page)

    def dispute_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Dispute evidence: one person may, since it only takes access away."""
        evidence = _evidence(pk)
        page = {**_evidence_page(evidence), "title": "Dispute", "button": "Dispute it"}
        page |= {
            "lead": f"Dispute what {evidence.source} wrote of “{evidence.subject_as_written}”",
            "about": f"{_resting_words(evidence, request)} {AT_ONCE}",
        }
        form = DisputeForm(request.POST or None)
        if request.method != "POST":
            return self.form_page(request, form, **page)
        if form.is_valid():
            try:
                dispute_evidence(actor=actor_of(request), evidence=evidence, **form.cleaned_data)
            except DomainError as refused:
                form.add_refusal(refused)
            else:
                messages.success(request, "It is disputed.")
                return redirect("admin:evaluations_evidence_change", pk)
        return self.form_page(request, form, status=422, **page)


def file_asked(request: HttpRequest, form: Any, ask: Callable[[], SignOffRequest]) -> HttpResponseBase | None:
    """File what is asked and lead to its page; None where it is refused, which the form then says."""
    try:
        filed = ask()
    except NotCleared as refused:
        obstacles: Any = refused.facts["obstacles"]
        for item in obstacles:
            form.add_error(None, sentence_of(item["sentence"]))
    except DomainError as refused:
        form.add_refusal(refused)
    else:
        messages.success(request, "It is asked for: those who may sign are told.")
        return redirect("admin:compliance_signoffrequest_change", filed.pk)
    return None


def _with_waivable(
    form: Any, kind: Any, request: HttpRequest, version: SubjectVersion, systems: Sequence[System], actions: Sequence[str]
) -> Any:
    """Return the form with a field for each soft rule that fails, keeping what was typed and what was refused."""
    waivable = waivable_rules(request, version, systems, actions)
    if not waivable:
        return form
    again = kind(request.POST, waivable=waivable)
    again.is_valid()
    for name, problems in form.errors.as_data().items():
        again.add_error(None if name == NON_FIELD_ERRORS else name, problems)
    return again


def waivable_rules(
    request: HttpRequest, version: SubjectVersion, systems: Sequence[System], actions: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the soft rules that fail and that no waiver covers: the field's name, and what was measured."""
    judged = judge_access(version, systems, actions, requester={"key": str(sight(request).person)}, at=now())
    return [field for item in judged for field in _waivable(item)]


def _waivable(item: Judged) -> list[tuple[str, str]]:
    found = []
    for rule in item.core["waivable"] if item.core else ():
        if rule in item.waived or item.core is None:
            continue
        core = rule_core(item.core, rule)
        name = f"{WAIVE}{item.applied.version.policy.name}:{rule}:{item.applied.system.key}"
        found.append((name, f"Measured {core['measured']}, the bar is {core['bar']}; empty: it is not asked for"))
    return found


def fresh_key() -> str:
    return uuid.uuid4().hex


def _evidence(pk: int) -> Evidence:
    evidence = Evidence.objects.select_related("source").filter(pk=pk).first()
    if evidence is None:
        raise Http404(f"no evidence `{pk}`")
    return evidence


def _resting_words(evidence: Evidence, request: HttpRequest) -> str:
    """Say how much rests on evidence, before somebody rules on it; its page lists what."""
    verdicts = sum(item.rests for item in read_resting(evidence, at=now()).verdicts)
    grants = visible_grants(sight(request)).filter(subject_version__in=versions_meant(evidence), ends_at__gt=now()).count()
    return f"Verdicts that it decides now: {verdicts}. Grants of yours to see that may fall with it: {grants}."


def _evidence_page(evidence: Evidence) -> dict[str, str]:
    return {"back": reverse("admin:evaluations_evidence_change", args=[evidence.pk])}


# --- where the pages are reached from -------------------------------------------------------------------------------------------


@SubjectVersionAdmin.add_section
def ask_from_version(row: SubjectVersion, request: HttpRequest) -> Section:
    address = f"{reverse('admin:compliance_signoffrequest_ask_access')}?subject_version={row.pk}"
    return links_section("Access", [("Ask for access", address)])


@EvidenceAdmin.add_section
def ask_from_evidence(row: Evidence, request: HttpRequest) -> Section:
    return links_section(
        "If it is wrong",
        [
            ("Dispute it", reverse("admin:compliance_signoffrequest_ask_dispute", args=[row.pk])),
            ("Ask for a ruling", reverse("admin:compliance_signoffrequest_ask_ruling", args=[row.pk])),
        ],
    )


def links_section(title: str, links: Sequence[tuple[str, str]], note: str = "") -> Custom:
    """Return a section of links to pages that act."""
    return Custom(title, "writegate/sections/links.html", {"links": links, "note": note})
