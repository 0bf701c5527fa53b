"""The short way to the doors of AuthZEN: no session, no cookie, no form guard, no static files on it."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host

from compliance.api.authzen.doors import DOORS, PREFIX
from compliance.api.authzen.frame import Incoming, Outgoing, text_answer
from compliance.api.authzen.requesting import task_door

HOSTS_REMEMBERED = 64
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
_STATUS = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class LeanPathMiddleware:
    """Answers what lies under `/access/v1/` itself; everything else goes on. First of all middleware.

    The host is checked and the headers are set that the middleware behind it would have seen to.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(PREFIX):
            return self.get_response(request)
        scheme = request.scheme or ""
        answer = _answer(Incoming(request.method or "", request.path_info, request.META, request.read))
        return HttpResponse(answer.content, status=answer.status, headers=_headers(answer, request.META, scheme))


class LeanApplication:
    """The same way from the web server on: what lies under `/access/v1/` does not even start Django's handler.

    Its signals would hand the thread's database connection back and fetch it again for each answer. It stays with the thread here;
    `decide` makes a new one where it broke.
    """

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if not path.startswith(PREFIX):
            return self._application(environ, start_response)
        answer = _answer(Incoming(environ["REQUEST_METHOD"], path, environ, environ["wsgi.input"].read))
        start_response(_STATUS[answer.status], list(_headers(answer, environ, environ["wsgi.url_scheme"]).items()))
        return (answer.content,)


def _answer(incoming: Incoming) -> Outgoing:
    meta = incoming.meta
    if not _is_served(meta.get("HTTP_HOST", meta.get("SERVER_NAME", "")), tuple(settings.ALLOWED_HOSTS)):
        return text_answer("this host is not served here", status=400)
    path = incoming.path.removeprefix(PREFIX)
    door = DOORS.get(path) or task_door(path)
    return text_answer("there is nothing at this address", status=404) if door is None else door(incoming)


@lru_cache(maxsize=HOSTS_REMEMBERED)
def _is_served(host: str, allowed: tuple[str, ...]) -> bool:
    """Tell whether a `Host` names this service, as `HttpRequest.get_host` tells it."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, allowed)


def _headers(answer: Outgoing, meta: Mapping[str, Any], scheme: str) -> dict[str, str]:
    """Return all headers of an answer: its own, and those that the middleware behind would have seen to."""
    headers = {**answer.headers, **_HEADERS, "Content-Length": str(len(answer.content))}
    if settings.SECURE_HSTS_SECONDS and _is_secure(meta, scheme):
        headers["Strict-Transport-Security"] = f"max-age={settings.SECURE_HSTS_SECONDS}"
    return headers


def _is_secure(meta: Mapping[str, Any], scheme: str) -> bool:
    """Tell whether the request came by HTTPS, as `HttpRequest.is_secure` tells it: a proxy of ours has the first word."""
    name, value = getattr(settings, "SECURE_PROXY_SSL_HEADER", None) or ("", "")
    stated = meta.get(name)
    return scheme == "https" if stated is None else str(stated).split(",", 1)[0].strip() == value
