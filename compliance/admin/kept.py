"""The pages of things that some people keep: read as everybody reads them, with what those who keep them may do to one.

Each act is a page or a button of its own, for the services open their own transactions, which the admin's change view already holds.
"""

from collections.abc import Callable
from typing import Any

from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.display import Custom, Record


class KeptAdmin(ReadOnlyAdmin):
    """Stands before the page of a model, and says who may act on a row, and what others are told."""

    why_not: str
    acts: tuple[str, str]
    """The heading of the section with the acts, and its template."""

    def may_act(self, request: HttpRequest, row: Any) -> bool:
        """True when the signed-in person keeps the row, now. Nobody does unless the page says who."""
        return False

    def act_data(self, row: Any) -> dict[str, Any]:
        """Return what the section with the acts shows."""
        return {}

    def describe(self, row: Any, request: HttpRequest) -> Record:
        record = super().describe(row, request)
        if not self.may_act(request, row):
            return record
        acts = Custom(*self.acts, self.act_data(row))
        return Record(lead=record.lead, mark=record.mark, sections=[acts, *record.sections], target=record.target)

    def act_path(self, word: str, view: Callable[[HttpRequest, Any], HttpResponseBase]) -> URLPattern:
        """Return the address of an act on one row, for those alone who keep it."""

        def guarded(request: HttpRequest, pk: int) -> HttpResponseBase:
            row = self.model._default_manager.filter(pk=pk).first()
            if row is None:
                raise Http404
            return view(request, row) if self.may_act(request, row) else self._turn_away(request, row)

        return path(f"<int:pk>/{word}/", self.admin_site.admin_view(guarded), name=self._name(word))

    def act_address(self, word: str, row: Model) -> str:
        """Return where an act on one row is."""
        return reverse(f"admin:{self._name(word)}", args=[row.pk])

    def act_page(self, request: HttpRequest, row: Model, form: Any, **words: str) -> HttpResponseBase:
        """Render a form of an act: `title`, `lead`, `about`, `button`, and where the way back leads to where that is not the system."""
        context = {**self._frame(request, row), "form": form, **words}
        return TemplateResponse(request, "writegate/system_form.html", context, status=422 if form.errors else 200)

    def _name(self, word: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{word}"

    def _turn_away(self, request: HttpRequest, row: Model) -> HttpResponse:
        context = {**self._frame(request, row), "title": "Another role is needed", "why": self.why_not}
        return TemplateResponse(request, "writegate/refused.html", context, status=403)

    def _frame(self, request: HttpRequest, row: Model) -> dict[str, Any]:
        request.current_app = self.admin_site.name
        back = self.act_address("change", row)
        return {**self.admin_site.each_context(request), "opts": self.opts, "original": row, "back": back}
