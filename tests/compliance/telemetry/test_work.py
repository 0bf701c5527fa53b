"""Spans of tasks: how one ended and nothing of what it said, and that none is left behind in the thread."""

from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery, signals
from celery.exceptions import Retry
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from compliance.telemetry import work

SECRET = "secret-argument"
HEARD = (signals.before_task_publish, signals.task_prerun, signals.task_failure, signals.task_postrun)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What Celery does in this process leaves its spans here."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(work, "tracer", lambda: provider.get_tracer("t"))
    receivers = (work._sent, work._began, work._failed, work._ended)
    for signal, receiver in zip(HEARD, receivers, strict=True):
        signal.connect(receiver)
    yield kept
    for signal, receiver in zip(HEARD, receivers, strict=True):
        signal.disconnect(receiver)
    assert not work._running
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.fixture
def app() -> Celery:
    made = Celery("made-up", broker="memory://", set_as_current=False)
    made.conf.task_ignore_result = True
    return made


def only(spans: InMemorySpanExporter) -> tuple[ReadableSpan, dict[str, Any]]:
    (span,) = spans.get_finished_spans()
    return span, dict(span.attributes or {})


def test_a_task_that_ends_well_is_a_span_without_its_arguments(app: Celery, spans: InMemorySpanExporter) -> None:
    @app.task(name="made.up", shared=False)
    def task(word: str) -> bool:
        return trace.get_current_span().get_span_context().is_valid

    done = task.apply([SECRET], task_id="an-id")
    assert done.get() is True
    span, attributes = only(spans)
    assert (span.name, span.status.status_code) == ("process made.up", StatusCode.UNSET)
    assert attributes == {
        "messaging.system": "celery",
        "messaging.operation.type": "process",
        "messaging.operation.name": "made.up",
        "messaging.message.id": "an-id",
    }
    assert SECRET not in span.to_json()


def test_a_task_that_breaks_says_by_what_and_not_what_was_said(app: Celery, spans: InMemorySpanExporter) -> None:
    @app.task(name="made.up", shared=False)
    def task(word: str) -> None:
        raise ValueError(word)

    task.apply([SECRET])
    span, attributes = only(spans)
    assert attributes["error.type"] == "ValueError"
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert not span.events
    assert SECRET not in span.to_json()


def test_a_task_that_is_to_be_tried_again_is_no_error(app: Celery, spans: InMemorySpanExporter) -> None:
    @app.task(name="made.up", shared=False, bind=True)
    def task(self: Any) -> None:
        raise Retry(SECRET)

    task.apply()
    span, _ = only(spans)
    assert span.status.status_code is StatusCode.UNSET
    assert SECRET not in span.to_json()


def test_a_message_that_is_sent_carries_the_trace(app: Celery, spans: InMemorySpanExporter) -> None:
    heard: list[dict[str, Any]] = []

    def hear(headers: dict[str, Any], **_: Any) -> None:
        heard.append(headers)

    signals.before_task_publish.connect(hear)
    try:
        app.send_task("made.up", [SECRET])
    finally:
        signals.before_task_publish.disconnect(hear)
    span, attributes = only(spans)
    assert span.context is not None
    assert heard[0]["traceparent"].startswith(f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-")
    assert (span.name, attributes["messaging.message.id"]) == ("send made.up", heard[0]["id"])
    assert SECRET not in span.to_json()


def test_a_message_that_could_not_be_sent_leaves_no_span_open(app: Celery, spans: InMemorySpanExporter) -> None:
    app.conf.broker_url = "redis://127.0.0.1:9/0"
    app.conf.broker_transport_options = {"max_retries": 0, "socket_connect_timeout": 1}
    with pytest.raises(Exception, match="connecting"):
        app.send_task("made.up", retry=False)
    assert only(spans)[0].end_time is not None
