"""Spans of Celery's tasks: one where a message is sent, one where it is carried out, in the trace of whoever sent it.

A message carries the trace in its headers, as W3C Trace Context writes it. Arguments are in no span, nor what an exception says.
"""

from contextvars import Token
from typing import Any, NamedTuple

from celery.signals import (
    beat_init,
    before_task_publish,
    task_failure,
    task_postrun,
    task_prerun,
    worker_process_init,
    worker_process_shutdown,
)
from opentelemetry import context, propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from compliance.telemetry.provider import begin, flush, tracer


class _Running(NamedTuple):
    span: Span
    token: Token[context.Context]


_running: dict[str, _Running] = {}
"""What is carried out now, by the ids of messages."""


def connect() -> None:
    """Hear what Celery does in this process. Spans are sent from workers' own processes and from the scheduler."""
    before_task_publish.connect(_sent)
    task_prerun.connect(_began)
    task_failure.connect(_failed)
    task_postrun.connect(_ended)
    # A thread does not live through a fork: each process of a pool has its own.
    worker_process_init.connect(_begin)
    beat_init.connect(_begin)
    worker_process_shutdown.connect(_flush)


def _begin(**_: Any) -> None:
    begin()


def _flush(**_: Any) -> None:
    flush()


def _sent(sender: Any = None, headers: dict[str, Any] | None = None, **_: Any) -> None:
    """Note that a message is sent, at once: whether and when it arrives is told by nobody."""
    if headers is None:
        return
    span = tracer().start_span(
        f"send {sender}", kind=SpanKind.PRODUCER, attributes=_attributes("send", sender, headers.get("id"))
    )
    propagate.inject(headers, context=trace.set_span_in_context(span))
    span.end()


def _began(task_id: str = "", task: Any = None, **_: Any) -> None:
    told = {name: value for name in propagate.get_global_textmap().fields if isinstance(value := task.request.get(name), str)}
    sent = propagate.extract(told, context=context.Context())
    attributes = _attributes("process", task.name, task_id)
    span = tracer().start_span(f"process {task.name}", context=sent, kind=SpanKind.CONSUMER, attributes=attributes)
    _running[task_id] = _Running(span, context.attach(trace.set_span_in_context(span, sent)))


def _failed(task_id: str = "", exception: BaseException | None = None, **_: Any) -> None:
    if task_id in _running:
        span = _running[task_id].span
        span.set_attribute("error.type", type(exception).__name__)
        span.set_status(Status(StatusCode.ERROR))


def _ended(task_id: str = "", **_: Any) -> None:
    running = _running.pop(task_id, None)
    if running is not None:
        running.span.end()
        context.detach(running.token)


def _attributes(does: str, task: object, message: object) -> dict[str, str]:
    return {
        "messaging.system": "celery",
        "messaging.operation.type": does,
        "messaging.operation.name": str(task),
        "messaging.message.id": str(message),
    }
