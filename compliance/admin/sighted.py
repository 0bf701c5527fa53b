"""The lists of which each person sees her own part, and the ways that pages which ask, sign and stop have in common."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, cast

from django import forms
from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.timesince import timeuntil

from compliance.admin.trail import INSTANTS
from compliance.models.signing_in import session_digest
from compliance.selectors.actors import actor_names
from compliance.selectors.sight import Sight, sight_of
from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.clock import now
from evaluations.kernel.display import ActorReference
from evaluations.kernel.errors import DomainError, InputRefused

_SIGHT = "_writegate_sight"
MAX_REASON = 4_000

View = Callable[..., HttpResponseBase]


class UtcField(forms.DateTimeField):
    """An instant in UTC, as a browser's own picker writes it. UTC has no hour twice and none left out."""

    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"}, format=INSTANTS[0])
        super().__init__(input_formats=INSTANTS, widget=widget, **options)


class AskingForm(forms.Form):
    """A form whose refusals by a service are shown beside the fields they are about."""

    def add_refusal(self, refused: DomainError) -> None:
        if not isinstance(refused, InputRefused):
            self.add_error(None, sentence_of(refused.detail))
            return
        for problem in refused.problems:
            said = f"{problem.message}; {problem.hint}" if problem.hint else problem.message
            self.add_error(problem.field if problem.field in self.fields else None, sentence_of(said))


def reason_field(label: str = "Reason", *, note: str = "Stands in the trail, for whoever asks later") -> forms.CharField:
    """Return the field for a reason, which everything that is asked, signed or stopped needs."""
    return forms.CharField(label=label, max_length=MAX_REASON, help_text=note, widget=forms.Textarea(attrs={"rows": 3}))


class ReasonedForm(AskingForm):
    reason = reason_field()


class SightedAdmin(ReadOnlyAdmin):
    """A read-only list of which each person sees what `selectors.sight` gives her; the rest is not there for her."""

    def visible(self, sight: Sight) -> QuerySet[Any]:
        """Return the rows that somebody may see; every list says that for its own."""
        raise ImproperlyConfigured(f"{type(self).__name__} does not say what {sight.person} may see")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return self.visible(sight(request)).order_by(*self.ordering)

    def found(self, request: HttpRequest, pk: int) -> Any:
        """Return one row that the signed-in person sees. Raises `Http404` for any other."""
        row = self.get_queryset(request).filter(pk=pk).first()
        if row is None or not self.has_view_permission(request, row):
            raise Http404(f"no {self.opts.verbose_name} `{pk}`")
        return row

    def own_path(self, route: str, view: View, name: str) -> URLPattern:
        """Return the address of a page of our own inside the frame."""
        return path(route, self.admin_site.admin_view(view), name=f"{self.opts.app_label}_{self.opts.model_name}_{name}")

    def page(self, request: HttpRequest, template: str, title: str, *, status: int = 200, **context: Any) -> HttpResponse:
        """Render a page of our own inside the frame."""
        request.current_app = self.admin_site.name
        whole = {**self.admin_site.each_context(request), "opts": self.opts, "title": title, **context}
        return TemplateResponse(request, template, whole, status=status)

    def form_page(
        self,
        request: HttpRequest,
        form: forms.Form,
        *,
        title: str,
        lead: str,
        about: str,
        button: str,
        back: str,
        status: int = 200,
        **more: Any,
    ) -> HttpResponse:
        """Render a form that asks for one act, and says what follows from it."""
        context = {"form": form, "lead": lead, "about": about, "button": button, "back": back, **more}
        return self.page(request, "writegate/asking.html", title, status=status, **context)


def sight(request: HttpRequest) -> Sight:
    """Return what the signed-in person sees; looked up once a request."""
    known = getattr(request, _SIGHT, None)
    if known is None:
        user: Any = request.user
        known = sight_of(user.person_id, at=now())
        setattr(request, _SIGHT, known)
    return cast("Sight", known)


def session_of(request: HttpRequest) -> str:
    """Return the digest under which facts cite the session of the signed-in person."""
    return session_digest(request.session.session_key or "")


def sentence_of(detail: str) -> str:
    """Spell a refusal as a sentence: errors are written without a capital and without a stop."""
    return f"{detail[:1].upper()}{detail[1:]}{'' if detail.endswith(('.', '!', '?')) else '.'}"


def time_left(moment: datetime, at: datetime) -> str:
    """Spell how much time is left until an instant."""
    return f"{timeuntil(moment, at, depth=2)} left" if moment > at else "its time is over"


def person_reference(person_id: object) -> ActorReference:
    return ActorReference(f"person:{person_id}")


def name_people(references: Iterable[ActorReference]) -> None:
    """Give each reference the name of its person, by two queries at most."""
    wanted = list(references)
    names: Mapping[str, str] = actor_names(set(wanted)) if wanted else {}
    for reference in wanted:
        reference.name = names.get(reference, "")
