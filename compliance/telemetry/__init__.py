"""Spans for OpenTelemetry, where a collector is named by OpenTelemetry's own variables; else nothing of it is loaded and nothing done.

It is on where `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_TRACES_EXPORTER=otlp` is set, unless
`OTEL_SDK_DISABLED=true` or `OTEL_TRACES_EXPORTER=none`, and the extra `telemetry` is installed. The SDK reads all other variables
itself: sampling, queue and batch, headers, the resource's attributes.

The libraries' own instrumentations are not used. Django's writes addresses, paths and query strings into spans, which hold the tokens
of sign-in links; Celery's writes what an exception says, and leaves its span open where a message could not be sent.
"""

import logging
import os
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from wsgiref.types import WSGIApplication

OTLP, NONE = "otlp", "none"
PROTOCOL = "http/protobuf"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")

logger = logging.getLogger("compliance.telemetry")


def is_asked_for(environment: Mapping[str, str]) -> bool:
    """Tell whether OpenTelemetry's variables ask for spans."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    return exporter != NONE and bool(exporter or any(environment.get(name, "").strip() for name in ENDPOINTS))


def problem_of(environment: Mapping[str, str]) -> str:
    """Return why what is asked for cannot be done, "" where it can."""
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() or OTLP
    if exporter != OTLP:
        return f"OTEL_TRACES_EXPORTER must be {OTLP} or {NONE}"
    protocol = next((environment[name].strip().lower() for name in PROTOCOLS if environment.get(name, "").strip()), PROTOCOL)
    if protocol != PROTOCOL:
        return f"OTEL_EXPORTER_OTLP_PROTOCOL must be {PROTOCOL}"
    missing = not all(_is_installed(name) for name in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"))
    return "the extra `telemetry` is not installed" if missing else ""


def is_on() -> bool:
    """Tell whether spans are made. What cannot be done is told in the log, and stops nothing."""
    if not is_asked_for(os.environ):
        return False
    problem = problem_of(os.environ)
    if problem:
        logger.warning("no spans are made: %s", problem)
    return not problem


def traced(application: WSGIApplication, *, prefix: str, doors: Collection[str]) -> WSGIApplication:
    """Return the web application with a span around each request of its interfaces; the very same application where this is off.

    `doors` are the addresses below `prefix` at which the gate is asked; what stands in `<…>` there may be anything.
    """
    if not is_on():
        return application
    try:
        from compliance.telemetry.provider import begin  # what is not asked for is not loaded
        from compliance.telemetry.web import TracedApplication

        return TracedApplication(application, begin(), prefix=prefix, doors=doors)
    except Exception:  # a variable that the SDK cannot read is no reason to answer nobody
        logger.exception("no spans are made")
        return application


def watch_tasks() -> None:
    """Make spans of what Celery sends and carries out in this process, and let the trace go along with each message; where it is on."""
    if not is_on():
        return
    from compliance.telemetry.work import connect  # likewise

    connect()


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
