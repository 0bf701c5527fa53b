"""Response headers of our own."""

from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse

_SELF_ONLY = {
    "default-src": "'self'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
# The console's theme (django-unfold) runs Alpine.js, which builds functions from attributes, hence 'unsafe-eval'; it writes style
# attributes and one style element. It has no inline script: a browser test opens every page under this policy.
_CONSOLE = _SELF_ONLY | {"script-src": "'self' 'unsafe-eval'", "style-src": "'self' 'unsafe-inline'"}
# The schema browser writes style attributes; its script is served as a file.
_DOCS = _SELF_ONLY | {"style-src": "'self' 'unsafe-inline'"}
_NOTHING = {"default-src": "'none'", "frame-ancestors": "'none'"}


def _entrance() -> dict[str, str]:
    """Nothing but our own files; where the company's sign-in is configured, its form leads there by redirection."""
    if not settings.OIDC_ISSUER:
        return _SELF_ONLY
    issuer = urlsplit(settings.OIDC_ISSUER)
    return _SELF_ONLY | {"form-action": f"'self' {issuer.scheme}://{issuer.netloc}"}


def _header(directives: dict[str, str]) -> str:
    return "; ".join(f"{name} {sources}" for name, sources in directives.items())


class ContentSecurityPolicyMiddleware:
    """Sends a Content-Security-Policy with every answer, the strictest that its part of the site can live with.

    Django 5.2 has none of its own. A view that sets the header itself keeps its own.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith("/admin/"):
            policy = _CONSOLE
        elif request.path.startswith("/accounts/"):
            policy = _entrance()
        elif request.path.startswith("/api/docs/"):
            policy = _DOCS
        else:
            policy = _NOTHING if "json" in response.get("Content-Type", "") else _SELF_ONLY
        response.headers.setdefault("Content-Security-Policy", _header(policy))
        return response
