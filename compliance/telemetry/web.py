"""A span for each request of the REST API and of the gate: method, route, status, and what was decided.

No path, query, header or body is in it but for the ids, answers and reason codes of decisions: what a caller sends may be anything.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import orjson
from django.urls import Resolver404, resolve
from opentelemetry import propagate
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

API = "/api/"
MAX_IDS = 100
"""So many decisions of one request are named by their ids."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER = "_OTHER"
_PART = re.compile(r"<[^>]*>")
_SERVER_ERROR = 500


class TracedApplication:
    """Goes round an application. A span ends when the answer begins: a long download is sent after it.

    What is odd about a span is never the caller's trouble: the application is called, and its answer given, whatever comes of it.
    """

    def __init__(self, application: WSGIApplication, tracer: Tracer, *, prefix: str, doors: Collection[str]) -> None:
        self._application, self._tracer = application, tracer
        self._prefix = prefix
        self._doors = [(_pattern(f"{prefix}{door}"), f"{prefix}{door}") for door in doors]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if not path.startswith((self._prefix, API)):
            return self._application(environ, start_response)
        with self._tracer.start_as_current_span(
            "HTTP",
            context=_context_of(environ),
            kind=SpanKind.SERVER,
            # What an exception says may quote anything.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            lines: list[str] = []

            def started(status: str, headers: list[tuple[str, str]], *failure: Any) -> Any:
                lines.append(status)
                return start_response(status, headers, *failure)

            try:
                content = self._application(environ, started)
            except BaseException as error:
                with suppress(Exception):
                    self._describe(span, environ, path)
                    _fail(span, type(error).__name__)
                raise
            with suppress(Exception):
                self._describe(span, environ, path)
                _tell_status(span, lines[-1])
                if path.startswith(self._prefix):
                    _tell_decisions(span, content)
            return content

    def _describe(self, span: Span, environ: WSGIEnvironment, path: str) -> None:
        method = environ["REQUEST_METHOD"]
        method = method if method in _METHODS else _OTHER
        route = self._route(path)
        span.set_attribute("http.request.method", method)
        if route:
            span.set_attribute("http.route", route)
        span.update_name(" ".join(part for part in ("HTTP" if method == _OTHER else method, route) if part))

    def _route(self, path: str) -> str:
        """Return the pattern that an address follows, "" where it follows none."""
        if path.startswith(self._prefix):
            return next((door for pattern, door in self._doors if pattern.fullmatch(path)), "")
        try:
            return f"/{resolve(path).route}"
        except Resolver404:
            return ""


def _pattern(address: str) -> re.Pattern[str]:
    """Return what matches an address whose parts in `<…>` may be anything."""
    return re.compile("[^/]+".join(re.escape(part) for part in _PART.split(address)))


def _context_of(environ: WSGIEnvironment) -> Context:
    """Return the trace that a caller says this belongs to, an empty context where it says nothing that can be read."""
    carrier = {name: environ[key] for name in propagate.get_global_textmap().fields if (key := _variable(name)) in environ}
    with suppress(Exception):
        return propagate.extract(carrier, context=Context())
    return Context()


def _variable(header: str) -> str:
    return f"HTTP_{header.upper().replace('-', '_')}"


def _tell_status(span: Span, line: str) -> None:
    status = int(line.partition(" ")[0])
    span.set_attribute("http.response.status_code", status)
    if status >= _SERVER_ERROR:
        _fail(span, str(status))


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


def _tell_decisions(span: Span, content: Iterable[bytes]) -> None:
    """Note what was decided, as it was answered: one decision, or a list of them."""
    if not isinstance(content, tuple):
        return
    answer = orjson.loads(b"".join(content))
    if isinstance(answer.get("decision"), bool):
        context: Mapping[str, Any] = answer.get("context", {})
        span.set_attribute("writegate.decision.allowed", answer["decision"])
        for name, member in (("id", "evaluation_id"), ("code", "reason")):
            if member in context:
                span.set_attribute(f"writegate.decision.{name}", context[member])
    elif "evaluations" in answer:
        decisions = answer["evaluations"]
        ids = [one["context"]["evaluation_id"] for one in decisions if "evaluation_id" in one["context"]]
        codes = {one["context"]["reason"] for one in decisions if "reason" in one["context"]}
        span.set_attribute("writegate.decisions.count", len(decisions))
        span.set_attribute("writegate.decisions.allowed", sum(one["decision"] for one in decisions))
        span.set_attribute("writegate.decisions.ids", ids[:MAX_IDS])
        span.set_attribute("writegate.decisions.codes", sorted(codes))
