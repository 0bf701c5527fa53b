"""The one place that knows HTTP: refusals become problem details (RFC 9457), whoever raised them.

Members: `type` (`urn:problem-type:writegate:` and the code), `title`, `status`, `detail`, `code`, `request_id`, and `problems`,
which is empty or lists every finding about the input: `message`, `file`, `line`, `column`, `row`, `field`, `code`, `hint`.
"""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from rest_framework import exceptions
from rest_framework.response import Response

from compliance.api.requests import request_id_of, stamp
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem

PROBLEM_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:problem-type:writegate:"

STATUS: Mapping[ErrorKind, int] = {
    ErrorKind.INVALID: HTTPStatus.BAD_REQUEST,
    ErrorKind.UNPROCESSABLE: HTTPStatus.UNPROCESSABLE_ENTITY,
    ErrorKind.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorKind.FORBIDDEN: HTTPStatus.FORBIDDEN,
    ErrorKind.CONFLICT: HTTPStatus.CONFLICT,
    ErrorKind.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ErrorKind.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}

logger = logging.getLogger("compliance.api")


class BodyTooLarge(DomainError):
    """The request body has more bytes than we read."""

    code = "too_large"
    kind = ErrorKind.TOO_LARGE


class LengthRequired(exceptions.APIException):
    """A body came without its length, as a chunked upload does."""

    status_code = HTTPStatus.LENGTH_REQUIRED
    default_detail = "send the body with a Content-Length"
    default_code = "length_required"


def problem_handler(exc: Exception, context: Mapping[str, Any]) -> Response | None:
    """Render an exception of a view. What is not ours stays an error: `server_error` answers it, after it was logged."""
    shape = _shape_of(exc, context)
    if shape is None:
        return None
    status, code, detail, problems = shape
    request = context["request"]
    headers: dict[str, str] = {}
    challenge = getattr(exc, "auth_header", None)
    if challenge:
        headers["WWW-Authenticate"] = challenge
    wait = getattr(exc, "wait", None)
    if wait:
        headers["Retry-After"] = str(int(wait))
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        logger.error("unavailable", exc_info=exc)
    body = problem_body(request._request, status, code, detail, problems)
    return Response(body, status=status, headers=headers, content_type=PROBLEM_TYPE)


def problem_body(request: HttpRequest, status: int, code: str, detail: str, problems: Sequence[Problem] = ()) -> dict[str, Any]:
    """Return the members of one problem document."""
    return problem_value(request_id_of(request), status, code, detail, problems)


def problem_value(request_id: str, status: int, code: str, detail: str, problems: Sequence[Problem] = ()) -> dict[str, Any]:
    """Return the members of one problem document about the request of an id."""
    return {
        "type": TYPE_PREFIX + code,
        "title": code.replace("_", " ").capitalize(),
        "status": int(status),
        "detail": detail,
        "code": code,
        "request_id": request_id,
        "problems": [problem._asdict() for problem in problems],
    }


def problem_response(request: HttpRequest, status: int, code: str, detail: str) -> HttpResponse:
    """Return a problem document as a plain Django answer, for what never reaches a view."""
    response = JsonResponse(problem_body(request, status, code, detail), status=status, content_type=PROBLEM_TYPE)
    stamp(request, response)
    return response


def _shape_of(exc: Exception, context: Mapping[str, Any]) -> tuple[int, str, str, Sequence[Problem]] | None:
    """Return status, code, detail and problems, or None for what nobody foresaw."""
    if isinstance(exc, InputRefused):
        return STATUS[exc.kind], exc.code, exc.detail, exc.problems
    if isinstance(exc, DomainError):
        return STATUS[exc.kind], exc.code, exc.detail, ()
    if isinstance(exc, Http404):
        return HTTPStatus.NOT_FOUND, "not_found", NOTHING_HERE, ()
    if isinstance(exc, PermissionDenied):
        return HTTPStatus.FORBIDDEN, "permission_denied", str(exc) or "you may not do this", ()
    if isinstance(exc, RequestDataTooBig):
        return STATUS[ErrorKind.TOO_LARGE], "too_large", "the body is larger than we read", ()
    if isinstance(exc, exceptions.NotAuthenticated):
        return exc.status_code, exc.default_code, "send a token (Authorization: Bearer wg_…), or sign in at the console", ()
    if isinstance(exc, exceptions.UnsupportedMediaType):
        return exc.status_code, exc.default_code, _unread(context), ()
    if isinstance(exc, exceptions.MethodNotAllowed):
        view, method = context["view"], context["request"].method
        return exc.status_code, exc.default_code, f"{method} is not served here; what is: {', '.join(view.allowed_methods)}", ()
    if isinstance(exc, exceptions.APIException):
        code = exc.get_codes()
        return exc.status_code, code if isinstance(code, str) else exc.default_code, _first_text(exc.detail), ()
    if isinstance(exc, OperationalError | InterfaceError):
        return HTTPStatus.SERVICE_UNAVAILABLE, "database_unavailable", "the database does not answer; try again", ()
    return None


def _unread(context: Mapping[str, Any]) -> str:
    taken = sorted({parser.media_type for parser in context["view"].get_parsers()})
    return f"send the body as {' or '.join(taken)}, and say so by Content-Type" if taken else "no body is read here: leave it out"


def _first_text(detail: Any) -> str:
    while isinstance(detail, list | dict):
        detail = next(iter(detail.values() if isinstance(detail, dict) else detail), "")
    return str(detail)


# What Django itself answers, outside of every view: unknown paths, hosts it does not serve, errors nobody foresaw. A person at the
# console gets a page.

# Where machines ask, and an answer is a problem document whoever asks.
MACHINES = ("/api/", "/access/", "/ledger/", "/.well-known/", "/healthz", "/readyz", "/metrics")
NOTHING_HERE = "there is nothing at this address"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400. The exception's text may repeat what the caller sent, so it is not shown."""
    return _failed(request, HTTPStatus.BAD_REQUEST, "bad_request", "the request is not well formed")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler403."""
    return _failed(request, HTTPStatus.FORBIDDEN, "permission_denied", "you may not do this")


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that was not sent from one of our pages, or from one that is older than the session."""
    hint = "load the page anew and send it again"
    if reason.startswith("Origin checking failed"):
        hint = "an operator must name the address that browsers reach the service under in WRITEGATE_ORIGINS"
    said = f"this form was not taken, and nothing was changed: {hint}"
    return _failed(request, HTTPStatus.FORBIDDEN, "form_refused", said)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404."""
    said = NOTHING_HERE if _asks_as_machine(request) else f"{NOTHING_HERE}, or nothing that you may see"
    return _failed(request, HTTPStatus.NOT_FOUND, "not_found", said)


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500. Django logs the traceback; the line written here ties it to the answer, which shows nothing of it."""
    known = request_id_of(request)
    logger.error("a request broke: %s %s", request.method, request.path, extra={"request_id": known})
    detail = f"something broke on our side; the log has it under request {known}"
    return _failed(request, HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", detail)


def _failed(request: HttpRequest, status: int, code: str, detail: str) -> HttpResponse:
    if _asks_as_machine(request):
        return problem_response(request, status, code, detail)
    told = {"title": code.replace("_", " ").capitalize(), "detail": f"{detail[0].upper()}{detail[1:]}."}
    # Without the request: what the frame would look up about it may be what broke.
    response = HttpResponse(render_to_string("writegate/failed.html", told), status=status)
    stamp(request, response)
    return response


def _asks_as_machine(request: HttpRequest) -> bool:
    """Browsers name HTML in what they accept; programs that take anything do not."""
    return request.path.startswith(MACHINES) or "text/html" not in request.headers.get("Accept", "")
