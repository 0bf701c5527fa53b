"""Signing a request and what lies beside it: each act is a view that calls one service, and comes back to the request's page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.http import urlencode

from compliance.admin.dossier import read_dossier, shown_changes
from compliance.admin.rights import actor_of
from compliance.admin.sighted import AskingForm, ReasonedForm, reason_field, sentence_of, session_of, sight
from compliance.models import Dossier, SignOffRequest
from compliance.selectors.dossiers.base import Built
from compliance.selectors.signers import QuorumState
from compliance.services.comments import comment_on_request
from compliance.services.proofs import ReauthenticationNeeded
from compliance.services.sign_offs import DossierChanged, complete_request, refresh_dossier, sign, withdraw_request
from evaluations.kernel.errors import DomainError

KEPT = "writegate_unsigned"
"""Where a session keeps what somebody typed while she proves once more that it is she."""


class SignForm(AskingForm):
    """A meaning, a reason, and the digest of what was shown. No meaning is ticked before somebody ticks it."""

    digest = forms.CharField(widget=forms.HiddenInput, max_length=100)
    meaning = forms.ChoiceField(label="What your signature says", widget=forms.RadioSelect)
    reason = reason_field("Why", note="What you looked at, and why you decide so; it stands in the trail")

    def __init__(self, *args: Any, offered: list[tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **{"auto_id": "sign_%s", **options})
        field: Any = self.fields["meaning"]
        field.choices = offered


class CommentForm(AskingForm):
    text = forms.CharField(label="Say something about it", max_length=4_000, widget=forms.Textarea(attrs={"rows": 2}))
    change_requested = forms.BooleanField(
        label="I ask for a change", required=False, help_text="It is no signature, and ends nothing; the requester is told"
    )


@dataclass(frozen=True)
class Shown:
    """A request as its page shows it: its document, and where it stands now where it is open."""

    row: SignOffRequest
    dossier: Dossier
    value: Mapping[str, Any]
    status: str
    built: Built | None
    state: QuorumState | None

    @property
    def moved(self) -> bool:
        """True where the dossier that was recorded is not what would be recorded now."""
        return self.built is not None and self.built.digest != self.dossier.digest


class SigningPages:
    """The acts on a request, for the admin that shows it by `read` and `show`."""

    own_path: Callable[..., URLPattern]
    found: Callable[..., SignOffRequest]
    read: Callable[[HttpRequest, int], Shown]
    show: Callable[..., HttpResponse]
    offered: Callable[..., list[tuple[str, str]]]

    def signing_urls(self) -> list[URLPattern]:
        return [
            self.own_path("<int:pk>/sign/", self.sign_view, "sign"),
            self.own_path("<int:pk>/comment/", self.comment_view, "comment"),
            self.own_path("<int:pk>/withdraw/", self.withdraw_view, "withdraw"),
            self.own_path("<int:pk>/refresh/", self.refresh_view, "refresh"),
            self.own_path("<int:pk>/complete/", self.complete_view, "complete"),
        ]

    def sign_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Record what the signed-in person says of the dossier that she was shown."""
        if request.method != "POST":
            return redirect("admin:compliance_signoffrequest_change", pk)
        row = self.found(request, pk)
        account: Any = request.user
        meaning, reason, shown_digest = (request.POST.get(name, "") for name in ("meaning", "reason", "digest"))
        if not meaning or not reason.strip():
            shown = self.read(request, pk)
            form = SignForm(request.POST, offered=self.offered(shown, sight(request).person))
            return self.show(request, shown, status=422, form=form)
        # Whether this meaning may be signed now, the service decides: what is not offered is refused there, and recorded.
        try:
            signed = sign(
                actor=actor_of(request),
                request=row,
                account=account,
                session=session_of(request),
                meaning=meaning,
                reason=reason,
                digest=shown_digest,
            )
        except ReauthenticationNeeded:
            request.session[KEPT] = {
                "request": str(row.uid),
                "meaning": meaning,
                "reason": reason[:4_000],
                "digest": shown_digest,
            }
            back = reverse("admin:compliance_signoffrequest_change", args=[pk]) + "#decide"
            return redirect(f"{reverse('account_reauthenticate')}?{urlencode({'next': back})}")
        except DossierChanged:
            return self._changed(request, pk, shown_digest, reason)
        except DomainError as refused:
            shown = self.read(request, pk)
            form = SignForm(request.POST, offered=self.offered(shown, sight(request).person))
            form.full_clean()
            form.add_refusal(refused)
            return self.show(request, shown, status=409, form=form)
        request.session.pop(KEPT, None)
        told = "It is signed, and what was asked is done." if signed.completed else "Your word is recorded."
        messages.success(request, told)
        return redirect("admin:compliance_signoffrequest_change", pk)

    def _changed(self, request: HttpRequest, pk: int, shown_digest: str, reason: str) -> HttpResponse:
        """Show the dossier as it stands now, with what is different from the one that was shown, and the reason as it was typed."""
        shown = self.read(request, pk)
        was = Dossier.objects.filter(request=shown.row, digest=shown_digest).first()
        changes = shown_changes(read_dossier(was), shown.value) if was else []
        named = f"dossier {was.number}, which you were shown" if was else "a dossier that is none of this request"
        form = SignForm(
            offered=self.offered(shown, sight(request).person), initial={"digest": shown.dossier.digest, "reason": reason}
        )
        return self.show(request, shown, status=409, form=form, before=(named, changes))

    # --- beside signing -----------------------------------------------------------------------------------------------------

    def comment_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        if request.method != "POST":
            return redirect("admin:compliance_signoffrequest_change", pk)
        row = self.found(request, pk)
        form = CommentForm(request.POST, auto_id="comment_%s")
        if form.is_valid():
            try:
                comment_on_request(actor=actor_of(request), request=row, **form.cleaned_data)
            except DomainError as refused:
                form.add_refusal(refused)
            else:
                return redirect("admin:compliance_signoffrequest_change", pk)
        return self.show(request, self.read(request, pk), status=422, comment=form)

    def withdraw_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        if request.method != "POST":
            return redirect("admin:compliance_signoffrequest_change", pk)
        row = self.found(request, pk)
        form = ReasonedForm(request.POST, auto_id="withdraw_%s")
        if form.is_valid():
            try:
                withdraw_request(actor=actor_of(request), request=row, **form.cleaned_data)
            except DomainError as refused:
                form.add_refusal(refused)
            else:
                messages.success(request, "Your request is taken back.")
                return redirect("admin:compliance_signoffrequest_change", pk)
        return self.show(request, self.read(request, pk), status=422, withdrawal=form)

    def refresh_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Record the dossier as it stands now; earlier signatures are void, and those who may sign are told."""
        return self._plain_act(request, pk, refresh_dossier, "The dossier as it stands now is what is signed from here on.")

    def complete_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Complete a request whose signatures are enough already, such as after a role came back."""
        return self._plain_act(request, pk, complete_request, "What was asked is done.")

    def _plain_act(self, request: HttpRequest, pk: int, act: Any, done: str) -> HttpResponseBase:
        row = self.found(request, pk)
        if request.method == "POST":
            try:
                act(actor=actor_of(request), request=row)
            except DomainError as refused:
                messages.error(request, sentence_of(refused.detail))
            else:
                messages.success(request, done)
        return redirect("admin:compliance_signoffrequest_change", pk)
