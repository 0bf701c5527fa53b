"""The read-only base of every console list. Knows no domain noun.

Nothing is added, changed or deleted through the admin: facts are immutable, and state is moved by services that record who did it and
why. The base removes every such door, also for superusers, and the page that answers a try says so. Templates come with the console.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from django.contrib.admin import ShowFacets
from django.contrib.admin.utils import unquote
from django.core.exceptions import ImproperlyConfigured
from django.core.paginator import Paginator
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.admin import ModelAdmin
from unfold.views import ChangeList

from evaluations.kernel.display import NOT_STATED, ActorReference, Record, Section, references_in, url_of

COUNTED = 10_000
WHY = (
    "Nothing is added, changed or deleted here. Facts stay as they were recorded, and everything else is moved by the service"
    " that records who did it and why."
)


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # not subscriptable at run time
    """Counts a little way past the page that is asked for: counting a large table in full costs more than showing the page."""

    template_name = "writegate/pagination.html"

    def __init__(self, *args: Any, counted: int = COUNTED, **options: Any) -> None:
        super().__init__(*args, **options)
        self.counted = counted

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[: self.counted + 1].count())

    @property
    def cut(self) -> bool:
        """True when there are more rows than were counted."""
        return self.count > self.counted


class ReadOnlyChangeList(ChangeList):  # type: ignore[misc]
    """A list that lets its admin look up, once for the page's rows, what their cells need."""

    result_list: Any

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not self.query and not self.get_filters_params():
            # Nothing is narrowed, so the frame need not offer to show everything.
            self.full_result_count = self.result_count
        self.result_list = list(self.result_list)
        self.model_admin.prepare_rows(self.result_list)


FurtherSection = Callable[[Any, HttpRequest], Section | None]


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]
    """A list with search, filters and pages, and for each row a page that explains it.

    Subclasses set the usual list options and give `describe`. An app above adds sections to a page by `add_section`.
    """

    actions = None
    list_per_page = 50
    empty_value_display = NOT_STATED
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_filter_submit = True
    paginator = BoundedPaginator
    record_template: ClassVar[str] = "writegate/record.html"
    refused_template: ClassVar[str] = "writegate/refused.html"
    further: ClassVar[list[FurtherSection]] = []
    leads_to: ClassVar[list[tuple[str, str]]] = []
    """Pages that act, which the list leads to: the words, and the name of the address. Apps above add theirs."""
    empty_sentence: ClassVar[str] = "Nothing has been recorded yet."
    about: ClassVar[str] = ""
    """One sentence above the list: what its rows are."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.further = []
        cls.leads_to = []

    @classmethod
    def add_section(cls, function: FurtherSection) -> FurtherSection:
        """Show one more section on each record's page: a decorator for apps above, called with the row and the request.

        It returns None for a record about which it has nothing to say.
        """
        cls.further.append(function)
        return function

    # --- who may do what: staff read, nobody writes -------------------------------------------------------------------------

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_module_permission(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and getattr(request.user, "is_staff", False))

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {}

    def save_model(self, request: HttpRequest, obj: Model, form: Any, change: Any) -> None:
        raise TypeError(WHY)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        raise TypeError(WHY)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        raise TypeError(WHY)

    # --- the list -----------------------------------------------------------------------------------------------------------

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ReadOnlyChangeList]:
        return ReadOnlyChangeList

    def get_paginator(
        self,
        request: HttpRequest,
        queryset: Any,
        per_page: int,
        orphans: int = 0,
        allow_empty_first_page: bool = True,  # noqa: FBT001, FBT002 - Django's own signature
    ) -> BoundedPaginator:
        asked = request.GET.get("p", "")
        page = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 1
        return BoundedPaginator(queryset, per_page, orphans, allow_empty_first_page, counted=page * per_page + COUNTED)

    def prepare_rows(self, rows: Sequence[Any]) -> None:
        """Look up, once for all rows of a page, what their cells need; to be overridden."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return self._refuse(request)
        ways = [(label, reverse(name)) for label, name in self.leads_to]
        context = {"title": self.opts.verbose_name_plural, "about": self.about, "ways": ways}
        response: HttpResponse = super().changelist_view(request, {**context, **(extra_context or {})})
        return response

    # --- one record ---------------------------------------------------------------------------------------------------------

    def describe(self, row: Any, request: HttpRequest) -> Record:
        """Return what the record's page shows: each list says that for its own records."""
        raise ImproperlyConfigured(f"{type(self).__name__} does not describe its records")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        if row is None or not self.has_view_permission(request, row):
            raise Http404(f"no {self.opts.verbose_name} `{object_id[:80]}`")
        if request.method not in ("GET", "HEAD"):
            return self._refuse(request, row)
        record = self.describe(row, request)
        further = (function(row, request) for function in self.further)
        sections = [*record.sections, *(section for section in further if section is not None)]
        self.name_actors(references_in(sections))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "title": str(row),
            "record": record,
            "sections": sections,
            **(extra_context or {}),
        }
        return TemplateResponse(request, self.record_template, context)

    def name_actors(self, references: Sequence[ActorReference]) -> None:
        """Give each reference its name, as far as the site can tell it: who a person is, a floor above this one knows."""
        names_of: Callable[[Any], Mapping[str, str]] | None = getattr(self.admin_site, "actor_names", None)
        if names_of is None or not references:
            return
        names = names_of(set(references))
        for reference in references:
            reference.name = names.get(reference, "")

    # --- doors that are not there -------------------------------------------------------------------------------------------

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return self._refuse(request)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return self._refuse(request, self.get_object(request, unquote(object_id)))

    def history_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Django's own history holds what the admin did, which is nothing: the record's page links to its audit entries."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        return HttpResponseRedirect(url_of(row, self.admin_site.name))

    def _refuse(self, request: HttpRequest, row: Model | None = None) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "title": "Read only",
            "why": WHY,
            "back": url_of(row, self.admin_site.name) if row is not None else "",
        }
        return TemplateResponse(request, self.refused_template, context, status=403)
