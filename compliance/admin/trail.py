"""Searching the trail: one form for what was done, by whom, to what and when, and a list that new entries never move."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.http import urlencode

from compliance.selectors.trail import TrailWanted, known_actions, known_target_kinds, narrowed
from evaluations.kernel.admin import BoundedPaginator, ReadOnlyChangeList

BEFORE = "before"
INSTANTS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d")
LONGEST = 200


class InstantField(forms.DateTimeField):
    """An instant in UTC, as a browser's own picker writes it."""

    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"}, format=INSTANTS[0])
        super().__init__(required=False, input_formats=INSTANTS, widget=widget, **options)


class WordField(forms.ChoiceField):
    """One word among those that occur; another one that is asked for in the address is shown, and finds nothing."""

    def valid_value(self, value: str) -> bool:
        return len(value) <= LONGEST and "\x00" not in value


class SearchForm(forms.Form):
    """What to look for. Its words stand in the page's address, so a search can be kept and sent."""

    q = forms.CharField(
        label="Find",
        required=False,
        max_length=LONGEST,
        help_text="An index, an identifier, a name, or part of an action",
        widget=forms.TextInput(attrs={"type": "search"}),
    )
    actor = forms.CharField(label="Actor", required=False, max_length=LONGEST, help_text="Part of a name, or kind:id")
    action = WordField(label="Action", required=False)
    target_kind = WordField(label="Kind of target", required=False)
    target_id = forms.CharField(label="Target", required=False, max_length=LONGEST, help_text="Its whole key or identifier")
    since = InstantField(label="From (UTC)")
    until = InstantField(label="Until before (UTC)")

    def __init__(self, given: Mapping[str, Any], *, words: bool = True) -> None:
        super().__init__({name: given.get(name, "") for name in self.base_fields})
        if words:
            self._offer("action", known_actions(), "any action")
            self._offer("target_kind", known_target_kinds(), "any kind")

    def _offer(self, name: str, found: Iterable[str], anything: str) -> None:
        offered = list(found)
        asked = self.data[name]
        if asked and asked not in offered:
            offered.append(asked)
        field: Any = self.fields[name]
        field.choices = [("", anything), *((word, word) for word in offered)]

    def wanted(self) -> TrailWanted | None:
        """Return what is asked for; None where the form cannot be read, which finds nothing rather than everything."""
        if not self.is_valid():
            return None
        asked = self.cleaned_data
        return TrailWanted(**{word: asked["q" if word == "text" else word] for word in TrailWanted._fields})

    def as_query(self) -> str:
        """Return what is asked for as it stands in an address."""
        return urlencode({name: value for name, value in self.data.items() if value})


def asked_before(request: HttpRequest) -> int | None:
    """Return the cursor of the page: entries older than this one are shown."""
    asked = request.GET.get(BEFORE, "")
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 19 else None


class TrailPaginator(BoundedPaginator):
    """Counts what is found; the way to older entries is a cursor, not a page number."""

    template_name = "writegate/trail_pages.html"


class SearchedChangeList(ReadOnlyChangeList):
    """The newest rows that a form of our own asks for, or those before a given one: what is added meanwhile moves no page."""

    form: ClassVar[type[forms.Form]]
    search: Any
    """The form as it was sent, with `wanted()`: what is asked for, None where it cannot be read."""
    older = newest = ""

    def __init__(self, request: HttpRequest, *args: Any, **options: Any) -> None:
        self.search = self.form(request.GET)
        super().__init__(request, *args, **options)

    def narrow(self, rows: QuerySet[Any], wanted: Any) -> QuerySet[Any]:
        """Return the rows that are asked for; every list says that for its own."""
        raise ImproperlyConfigured(f"{type(self).__name__} does not say how {wanted} is found")

    def asks(self, wanted: Any) -> bool:
        """True where anything at all is asked for."""
        return any(wanted)

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        """Return what is left for the frame's own filters: nothing of ours."""
        found: dict[str, Any] = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name != BEFORE and name not in self.form.base_fields}

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        wanted = self.search.wanted()
        self.has_active_filters = wanted is None or self.asks(wanted)
        if wanted is None:
            return rows.none()
        rows = self.narrow(rows, wanted)
        before = asked_before(request)
        return rows if before is None else rows.filter(pk__lt=before)

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        shown = self.result_list
        if shown and self.result_count > self.page_num * self.list_per_page:
            self.older = self.get_query_string({BEFORE: shown[-1].pk, "p": None})
        if asked_before(request) is not None or self.page_num > 1:
            self.newest = self.get_query_string({BEFORE: None, "p": None})


class TrailChangeList(SearchedChangeList):
    """The entries that are asked for."""

    form = SearchForm

    def narrow(self, rows: QuerySet[Any], wanted: TrailWanted) -> QuerySet[Any]:
        # The free text is the frame's own search, which has been applied.
        return narrowed(rows, wanted._replace(text=""))
