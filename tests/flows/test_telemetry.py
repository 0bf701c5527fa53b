"""Spans of a served gate, heard by a real collector: one trace from the caller to the worker; and a collector that is down or hangs."""

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.process import ROOT, await_status, clean_environment, free_port, running, short_directory, stop_with
from tests.support.sinks import HttpSink, http_sink

pytestmark = pytest.mark.slow

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = {"traceparent": f"00-{TRACE}-{PARENT}-01", "baggage": "who=secret-baggage"}
QUESTION = {
    "subject": {"type": "model", "id": "model-a"},
    "action": {"name": "write"},
    "resource": {"type": "system", "id": "hr-prod"},
}
READ, SEAL = "compliance.tasks.read_upload", "compliance.tasks.seal"


class World:
    """An installation with a grant, and a hand on it."""

    def __init__(self, directory: Path, control: "subprocess.Popen[str]") -> None:
        self.directory, self._control = directory, control
        self.token = self.do("world")["token"]
        self.submitter = self.do("token submit_evidence")["token"]

    def do(self, words: str) -> dict[str, Any]:
        assert self._control.stdin is not None
        assert self._control.stdout is not None
        self._control.stdin.write(f"{words}\n")
        self._control.stdin.flush()
        found: dict[str, Any] = json.loads(self._control.stdout.readline())
        return found

    @contextmanager
    def served(self, *service: str, collector: str, **settings: str) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
        """Serve with spans to a collector; yield the address, and the process."""
        port = free_port()
        environment = clean_environment(
            WRITEGATE_DATA_DIR=str(self.directory / "data"),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector,
            OTEL_BSP_SCHEDULE_DELAY="200",
            OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
            **settings,
        )
        command = [sys.executable, "manage.py", "serve", *service, "--port", str(port)]
        with running(command, environment, self.directory / f"serve-{port}.log") as process:
            await_status(f"http://127.0.0.1:{port}/{'healthz' if service else 'readyz'}")
            yield f"http://127.0.0.1:{port}", process


@pytest.fixture(scope="module")
def made() -> Iterator[World]:
    with short_directory() as directory:
        environment = clean_environment(WRITEGATE_DATA_DIR=str(directory / "data"), WRITEGATE_LOG_LEVEL="CRITICAL")
        command = [sys.executable, "-m", "tests.support.gate_control"]
        with (directory / "control.log").open("wb") as log:
            control = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
            try:
                yield World(directory, control)
            finally:
                control.communicate(timeout=30)


def post(url: str, token: str, value: object, headers: Mapping[str, str] | None = None) -> tuple[int, Any, float]:
    """Send JSON; return the status, the answer, and after how many seconds it came."""
    sent = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **(headers or {})}
    began = time.monotonic()
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(value).encode(), sent), timeout=30) as answer:
        return answer.status, json.load(answer), time.monotonic() - began


def ask(address: str, world: World, headers: Mapping[str, str] | None = None) -> tuple[int, Any, float]:
    return post(f"{address}/access/v1/evaluation", world.token, QUESTION, headers)


def exports(collector: HttpSink) -> list[ExportTraceServiceRequest]:
    return [ExportTraceServiceRequest.FromString(heard.body) for heard in list(collector.heard)]


def spans(collector: HttpSink) -> list[Span]:
    return [
        span
        for export in exports(collector)
        for resource in export.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def attributes(holder: Any) -> dict[str, Any]:
    return {
        each.key: getattr(each.value, str(each.value.WhichOneof("value")))
        for each in holder.attributes
        if each.value.ListFields()
    }


def await_span(collector: HttpSink, wanted: Callable[[Span], bool], seconds: float = 30) -> Span:
    until = time.monotonic() + seconds
    while True:
        found = [span for span in spans(collector) if wanted(span)]
        if found:
            return found[0]
        assert time.monotonic() < until, sorted({span.name for span in spans(collector)})
        time.sleep(0.1)


def named(name: str, trace: str = "") -> Callable[[Span], bool]:
    return lambda span: span.name == name and (not trace or span.trace_id.hex() == trace)


def test_a_trace_goes_from_the_caller_to_the_task_and_an_answer_is_a_span(made: World) -> None:
    with http_sink() as collector, made.served(collector=f"http://{collector.place}") as (address, process):
        collector.answers = [(200, {})]
        upload = {
            "format": "writegate-evidence/1",
            "source": "lab",
            "provenance": "reported",
            "evidence": [{"subject": "secret-name", "observations": []}],
        }
        told = {**TRACEPARENT, "X-Forwarded-For": "203.0.113.7", "Content-Type": "application/octet-stream"}
        place = f"{address}/api/v1/evidence/uploads?file_name=secret-file.json&source=lab"
        assert post(place, made.submitter, upload, told)[0] == 202
        request = await_span(collector, named("POST /api/v1/evidence/uploads", TRACE))
        sent = await_span(collector, named(f"send {READ}", TRACE))
        done = await_span(collector, named(f"process {READ}", TRACE))
        assert [request.parent_span_id.hex(), sent.parent_span_id, done.parent_span_id] == [PARENT, request.span_id, sent.span_id]
        assert (request.kind, sent.kind, done.kind) == (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_PRODUCER, Span.SPAN_KIND_CONSUMER)
        assert attributes(sent)["messaging.message.id"] == attributes(done)["messaging.message.id"]
        assert attributes(done)["messaging.operation.name"] == READ
        assert attributes(request)["http.response.status_code"] == 202

        _, answer, _ = ask(address, made, TRACEPARENT)
        decision = await_span(collector, named("POST /access/v1/evaluation", TRACE))
        assert decision.parent_span_id.hex() == PARENT
        assert attributes(decision)["writegate.decision.id"] == answer["context"]["evaluation_id"]
        assert attributes(decision)["writegate.decision.allowed"] is answer["decision"] is True

        # What the clock sends begins a trace of its own, from the scheduler to the worker.
        sealed = await_span(collector, named(f"process {SEAL}"))
        begun = await_span(collector, lambda span: span.span_id == sealed.parent_span_id)
        assert (begun.name, begun.parent_span_id, begun.trace_id) == (f"send {SEAL}", b"", sealed.trace_id)

        resources = [attributes(each.resource) for export in exports(collector) for each in export.resource_spans]
        told = ("service.name", "service.version", "deployment.environment.name")
        assert {tuple(each[name] for name in told) for each in resources} == {("writegate", "0.1.0", "test")}
        assert {heard.path for heard in collector.heard} == {"/v1/traces"}
        held = b"".join(heard.body for heard in collector.heard)
        secrets = (
            made.token,
            made.submitter,
            "secret-name",
            "secret-file",
            "secret-baggage",
            "203.0.113.7",
            "127.0.0.1",
            "hr-prod",
        )
        assert not [secret for secret in secrets if secret.encode() in held]
        assert not [span.name for span in spans(collector) if span.status.code == Status.STATUS_CODE_ERROR]
        assert stop_with(process, signal.SIGINT, seconds=30) < 15
        assert process.returncode == 0


def test_a_collector_that_hangs_changes_no_answer_and_holds_nobody_up(made: World) -> None:
    released = threading.Event()
    # A queue that is full after a moment: what does not fit is dropped.
    small = {"OTEL_BSP_MAX_QUEUE_SIZE": "64", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "32"}
    with http_sink() as collector:
        collector.before = lambda: released.wait(60)
        try:
            with made.served("web", collector=f"http://{collector.place}", **small) as (address, process):
                answers = [ask(address, made) for _ in range(300)]
                assert {(status, answer["decision"]) for status, answer, _ in answers} == {(200, True)}
                assert max(seconds for *_, seconds in answers) < 2
                assert collector.heard, "it was asked, and hangs"
                assert stop_with(process, signal.SIGINT, seconds=30) < 15
                assert process.returncode == 0
        finally:
            released.set()


@pytest.mark.parametrize("answer", [None, 500, 400])
def test_a_collector_that_is_down_or_refuses_changes_no_answer(made: World, answer: int | None) -> None:
    with http_sink() as collector:
        collector.answers = [(answer or 200, {})]
        place = f"127.0.0.1:{free_port()}" if answer is None else collector.place
        with made.served("web", collector=f"http://{place}") as (address, process):
            answers = []
            for _ in range(20):
                answers.append(ask(address, made))
                time.sleep(0.05)
            assert {(status, answered["decision"]) for status, answered, _ in answers} == {(200, True)}
            assert max(seconds for *_, seconds in answers) < 2
            assert bool(collector.heard) is (answer is not None)
            assert stop_with(process, signal.SIGINT, seconds=30) < 15
