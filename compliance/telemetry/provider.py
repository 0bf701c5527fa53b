"""Where spans go: into a bounded queue, and from there in batches to the collector, by a thread that nobody waits for."""

import atexit
import os
import threading
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

NAME = "writegate"
FLUSH_SECONDS = 2.0
"""So long the end of a process waits for the last spans to go."""

_ROOT = Path(__file__).resolve().parents[2]


def begin() -> trace.Tracer:
    """Begin to send spans from this process, once, and return what makes them.

    Queue, batch, delay and the time limit of one request to the collector are the SDK's, by its variables (2,048 spans, 512 spans,
    5 s, 10 s). When the queue is full, spans are dropped.
    """
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        # Its own end of the process would wait for a collector that hangs.
        provider = TracerProvider(resource=resource(), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
        if "OTEL_PROPAGATORS" not in os.environ:
            # Baggage is whatever a caller puts there, and would lie in our queues.
            propagate.set_global_textmap(TraceContextTextMapPropagator())
        atexit.register(flush)
    return tracer()


@cache
def tracer() -> trace.Tracer:
    """Return what makes spans; in a process that did not begin to send them they go nowhere."""
    return trace.get_tracer(NAME, _version())


def flush() -> None:
    """Send what waits, for a moment."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        sender = threading.Thread(target=provider.force_flush, daemon=True)
        sender.start()
        sender.join(FLUSH_SECONDS)


def resource() -> Resource:
    """Return who makes these spans: name and version, where the environment does not say otherwise."""
    told = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    named = bool(os.environ.get("OTEL_SERVICE_NAME")) or f"{SERVICE_NAME}=" in told
    own = {SERVICE_VERSION: _version()} if f"{SERVICE_VERSION}=" not in told else {}
    return Resource.create(own if named else {**own, SERVICE_NAME: NAME})


@cache
def _version() -> str:
    try:
        return version(NAME)
    except PackageNotFoundError:
        # A checkout, as in our image, is not installed as a package.
        project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return str(project["version"])
