"""The short way to the doors of AuthZEN: no session, no cookie, no form guard, no static files on it."""

from collections.abc import Callable, Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse

from compliance.api.authzen.answers import text_answer
from compliance.api.authzen.urls import PREFIX, VIEWS

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


class LeanPathMiddleware:
    """Answers what lies under `/access/v1/` itself; everything else goes on. First of all middleware.

    The host is checked and the headers are set that the middleware behind it would have seen to.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(PREFIX):
            return self.get_response(request)
        return _framed(request)


class LeanApplication:
    """The same way from the web server on: what lies under `/access/v1/` does not even start Django's handler.

    Its signals would hand the thread's database connection back and fetch it again for each answer. It stays with the thread here;
    `decide` makes a new one where it broke.
    """

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not environ.get("PATH_INFO", "").startswith(PREFIX):
            return self._application(environ, start_response)
        response = _framed(WSGIRequest(environ))
        start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
        return (response.content,)


def _framed(request: HttpRequest) -> HttpResponse:
    """Return the answer with the headers that the middleware behind would have seen to."""
    response = _answer(request)
    for name, value in _HEADERS.items():
        response.headers[name] = value
    if settings.SECURE_HSTS_SECONDS and request.is_secure():
        response.headers["Strict-Transport-Security"] = f"max-age={settings.SECURE_HSTS_SECONDS}"
    response.headers["Content-Length"] = str(len(response.content))
    return response


def _answer(request: HttpRequest) -> HttpResponse:
    try:
        request.get_host()
    except DisallowedHost:
        return text_answer("this host is not served here", status=400)
    view = VIEWS.get(request.path_info.removeprefix(PREFIX))
    return text_answer("there is nothing at this address", status=404) if view is None else view(request)
