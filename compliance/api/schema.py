"""The published description of the API (OpenAPI), made from the views themselves, and the two pages that serve it."""

from collections.abc import Mapping
from typing import Any, Literal

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import serializers
from rest_framework.request import Request

from compliance.api.errors import PROBLEM_TYPE
from compliance.api.parameters import Parameter
from compliance.api.requests import stamp

_EVERYWHERE: Mapping[str, str] = {
    "400": "The request is refused; `problems` says what in it.",
    "401": "Nobody is signed in, or the token does not hold.",
    "403": "The scope or the role is missing.",
    "503": "The database does not answer.",
}


class FindingSerializer(serializers.Serializer[Any]):
    """One finding about an input: where it is, what is wrong, what to write instead."""

    message = serializers.CharField()
    file = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    column = serializers.IntegerField(allow_null=True)
    row = serializers.IntegerField(allow_null=True)
    field = serializers.CharField()
    code = serializers.CharField()
    hint = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """Problem details, RFC 9457. `code` is the stable word for machines, `detail` the sentence for people."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    request_id = serializers.CharField()
    problems = FindingSerializer(many=True)


class Schema(AutoSchema):
    """Reads what our views declare: `parameters`, `headers`, `path_parameters` and `problems`."""

    view: Any

    def get_override_parameters(self) -> list[Any]:
        path = [_described(parameter, "path") for parameter in self.view.path_parameters]
        query = [_described(each, "query") for each in self.view.parameters_of(self.method)]
        header = [_described(each, "header") for each in self.view.headers_of(self.method)]
        return [*path, *query, *header]

    def _get_pagination_parameters(self) -> list[Any]:
        return []  # among `parameters_of`

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        problem = self.resolve_serializer(ProblemSerializer(), "response")
        for status, description in {**_EVERYWHERE, **self.view.problems_of(self.method)}.items():
            content = {PROBLEM_TYPE: {"schema": problem.ref}}
            operation["responses"].setdefault(status, {"description": description, "content": content})
        return operation


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes `TokenAuthentication`."""

    target_class = "compliance.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A service token, `wg_…`."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes `SessionAuthentication`."""

    target_class = "compliance.api.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME, "description": "The console's session."}


class SchemaView(SpectacularAPIView):
    """`/api/schema/`: YAML, or JSON with `?format=json` or by the Accept header. Open to everybody."""

    authentication_classes = ()

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        return _stamped(request, super().finalize_response(request, response, *args, **kwargs))


class DocsView(SpectacularSwaggerSplitView):
    """`/api/docs/`: the description as a page to try things on. Its script is a second answer, as the content policy wants it."""

    authentication_classes = ()
    url_name = "api-schema"

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        return _stamped(request, super().finalize_response(request, response, *args, **kwargs))


def _stamped(request: Request, response: Any) -> Any:
    stamp(request._request, response)
    return response


def _described(parameter: Parameter, location: Literal["path", "query", "header"]) -> OpenApiParameter:
    return OpenApiParameter(
        name=parameter.name,
        type=dict(parameter.schema),
        location=location,
        description=parameter.description,
        required=location == "path" or parameter.required,
    )
