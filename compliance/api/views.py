"""The frame of every view of the API: parse, ask one selector or call one service, render."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import Http404
from rest_framework import generics
from rest_framework.mixins import ListModelMixin
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api.authentication import SessionAuthentication, TokenAuthentication
from compliance.api.pagination import CursorPages
from compliance.api.parameters import Parameter, read_parameters
from compliance.api.permissions import HasScope
from compliance.api.requests import stamp
from compliance.api.schema import Schema
from compliance.vocabulary import Scope
from evaluations.kernel.names import KEY_MAX_LENGTH, KEY_PATTERN

KEY_SCHEMA = {"type": "string", "pattern": KEY_PATTERN, "maxLength": KEY_MAX_LENGTH}
READ: Mapping[str, str] = {"GET": Scope.READ}


class OneForm(BaseContentNegotiation):
    """Answers in our one form, whatever `Accept` says: an error about the form of an error helps nobody."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        given = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == given), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        ours = next(iter(renderers))
        return ours, ours.media_type


class ApiView(generics.GenericAPIView):  # type: ignore[type-arg]
    """Base of all views. `scopes` names the scope of each method; what is not named is closed."""

    schema = Schema()
    authentication_classes = (TokenAuthentication, SessionAuthentication)
    permission_classes = (HasScope,)
    content_negotiation_class = OneForm
    renderer_classes = (JSONRenderer,)
    parser_classes: Sequence[type[BaseParser]] = ()
    filter_backends = ()
    pagination_class: Any = None
    http_method_names = ("get", "head", "post")

    scopes: ClassVar[Mapping[str, str]] = READ
    path_parameters: ClassVar[Sequence[Parameter]] = ()

    asked: dict[str, Any]
    """The values of the query parameters that were given."""

    def parameters_of(self, method: str) -> Sequence[Parameter]:
        """Return the query parameters of a method."""
        return ()

    def headers_of(self, method: str) -> Sequence[Parameter]:
        """Return the request headers of a method that are worth a description."""
        return ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        """Return the refusals of a method beyond those that every address has, by status."""
        return {"404": "There is no such thing."} if self.path_parameters else {}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.asked = read_parameters(request.query_params, self.parameters_of(str(request.method).replace("HEAD", "GET")))

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        final = super().finalize_response(request, response, *args, **kwargs)
        stamp(self.request._request, final)
        return final


class DetailView(ApiView):
    """One thing, found by `find(**kwargs)` of its address; `find` returns None where there is no such thing."""

    find: ClassVar[Callable[..., Any]]

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(self.get_serializer(existing(type(self).find, **kwargs)).data)


class ListView(ApiView, ListModelMixin):
    """Many things, found by `find(**filters)`, page by page. `filters` are its query parameters, named as `find` names them."""

    find: ClassVar[Callable[..., QuerySet[Any]]]
    filters: ClassVar[Sequence[Parameter]] = ()
    pagination_class = CursorPages
    page_key: ClassVar[str] = "id"
    oldest_first: ClassVar[bool] = False

    page: dict[str, Any]

    def parameters_of(self, method: str) -> Sequence[Parameter]:
        return (*self.filters, *CursorPages.parameters) if method == "GET" else ()

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        paging = {parameter.name for parameter in CursorPages.parameters}
        self.page = {name: value for name, value in self.asked.items() if name in paging}
        return self.list(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[Any]:
        chosen = {name: value for name, value in self.asked.items() if name not in self.page}
        return type(self).find(**chosen, **self.kwargs)


class NestedListView(ListView):
    """The list of what belongs to one thing; 404 where there is no such thing. `owner(**kwargs)` finds it, or returns None."""

    owner: ClassVar[Callable[..., Any]]

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        existing(type(self).owner, **kwargs)
        return super().get(request, *args, **kwargs)


def existing(find: Callable[..., Any], **named: Any) -> Any:
    """Return what the parts of an address name, or raise 404; what no row could be called is not even looked for."""
    found = find(**named) if all(map(_can_exist, named.values())) else None
    if found is None:
        raise Http404
    return found


def key_in_path(name: str, description: str) -> Parameter:
    """Return the description of a key in an address."""
    return Parameter(name, str, KEY_SCHEMA, description)


def text_in_path(name: str, description: str, **schema: Any) -> Parameter:
    """Return the description of another part of an address."""
    return Parameter(name, str, {"type": "string", **schema}, description)


def number_in_path(name: str, description: str) -> Parameter:
    """Return the description of a number in an address."""
    return Parameter(name, int, {"type": "integer", "minimum": 1}, description)


def _can_exist(part: Any) -> bool:
    if isinstance(part, str):
        return bool(part) and part.isprintable() and len(part) <= 300
    return not isinstance(part, int) or 0 < part < 2**31
