"""A span a request of the REST API and of the gate: what is in it, what is not, and that it never stands in an answer's way."""

import io
import json
from collections.abc import Iterable
from typing import Any

import pytest
from django.core.wsgi import get_wsgi_application
from django.db import connection
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from compliance.api.authzen.doors import DOORS, PREFIX, TASK_ADDRESSES
from compliance.api.authzen.lean import LeanApplication
from compliance.telemetry.web import TracedApplication
from tests.support import signing
from tests.support.asking import ask_token

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PERSONAL = {"HTTP_USER_AGENT": "secret-agent", "REMOTE_ADDR": "203.0.113.7", "HTTP_COOKIE": "sessionid=secret-cookie"}
QUESTION = {
    "subject": {"type": "model", "id": "model-a"},
    "action": {"name": "write"},
    "resource": {"type": "system", "id": "hr-prod"},
}


class Traced:
    """An application with the spans that it leaves."""

    def __init__(self, application: Any) -> None:
        self._spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self._application = TracedApplication(
            application, provider.get_tracer("t"), prefix=PREFIX, doors=(*DOORS, *TASK_ADDRESSES)
        )

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._spans.get_finished_spans())

    def ask(self, method: str, path: str, value: object = None, **more: str) -> tuple[int, bytes]:
        body = b"" if value is None else json.dumps(value).encode()
        path, _, query = path.partition("?")
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "HTTP_HOST": "localhost",
            "wsgi.input": io.BytesIO(body),
            "wsgi.url_scheme": "http",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            **PERSONAL,
            **more,
        }
        lines: list[str] = []
        content: Iterable[bytes] = self._application(environ, lambda status, headers, *failure: lines.append(status))
        return int(lines[0].split()[0]), b"".join(content)

    def attributes(self) -> dict[str, Any]:
        """Return what the only span says."""
        (span,) = self.spans
        assert not span.events
        return dict(span.attributes or {})


@pytest.fixture
def land() -> signing.Ground:
    return signing.ground()


@pytest.fixture
def service(db: None, monkeypatch: pytest.MonkeyPatch) -> Traced:
    # Requests that come over WSGI end by closing the connection, which here is the test's own, with its transaction.
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)
    return Traced(LeanApplication(get_wsgi_application()))


class TestDecisions:
    def test_one_question_is_one_span_with_its_answer(self, service: Traced, land: signing.Ground) -> None:
        signing.granted(land)
        token = ask_token(land.asker)
        status, content = service.ask("POST", "/access/v1/evaluation", QUESTION, HTTP_AUTHORIZATION=f"Bearer {token}")
        answer = json.loads(content)
        assert (status, answer["decision"]) == (200, True)
        assert service.attributes() == {
            "http.request.method": "POST",
            "http.route": "/access/v1/evaluation",
            "http.response.status_code": 200,
            "writegate.decision.allowed": True,
            "writegate.decision.id": answer["context"]["evaluation_id"],
        }
        assert service.spans[0].name == "POST /access/v1/evaluation"

    def test_a_denial_has_its_code_and_is_no_error(self, service: Traced, land: signing.Ground) -> None:
        token = ask_token(land.asker)
        _, content = service.ask("POST", "/access/v1/evaluation", QUESTION, HTTP_AUTHORIZATION=f"Bearer {token}")
        found = service.attributes()
        assert (found["writegate.decision.allowed"], found["writegate.decision.code"]) == (False, "no_grant")
        assert found["writegate.decision.id"] == json.loads(content)["context"]["evaluation_id"]
        assert service.spans[0].status.status_code is StatusCode.UNSET

    def test_many_questions_are_one_span_with_their_number(self, service: Traced, land: signing.Ground) -> None:
        signing.granted(land)
        asked = {"evaluations": [QUESTION, {**QUESTION, "action": {"name": "delete"}}, {"subject": 7}]}
        token = ask_token(land.asker)
        _, content = service.ask("POST", "/access/v1/evaluations", asked, HTTP_AUTHORIZATION=f"Bearer {token}")
        decisions = json.loads(content)["evaluations"]
        found = service.attributes()
        assert found["writegate.decisions.ids"] == tuple(one["context"]["evaluation_id"] for one in decisions[:2])
        assert (found["writegate.decisions.count"], found["writegate.decisions.allowed"]) == (3, 1)
        assert found["writegate.decisions.codes"] == ("action_not_granted",)

    def test_what_is_refused_has_its_status_alone(self, service: Traced) -> None:
        assert service.ask("POST", "/access/v1/evaluation", QUESTION, HTTP_AUTHORIZATION="Bearer wg_secret")[0] == 401
        assert service.attributes() == {
            "http.request.method": "POST",
            "http.route": "/access/v1/evaluation",
            "http.response.status_code": 401,
        }


class TestRequests:
    def test_a_route_stands_for_the_path_and_nothing_of_the_caller_is_told(self, service: Traced) -> None:
        path = "/api/v1/subjects/secret-subject?system=secret-system&email=secret@example.org"
        status, _ = service.ask("GET", path, HTTP_AUTHORIZATION="Bearer wg_secret", HTTP_X_REQUEST_ID="secret-request")
        assert status == 401
        (span,) = service.spans
        said = span.to_json()
        assert span.name.startswith("GET /api/v1/subjects/<")
        assert not [word for word in ("secret", "203.0.113.7") if word in said]

    @pytest.mark.parametrize(("path", "name"), [("/api/v1/nothing/secret", "GET"), ("/access/v1/secret", "GET")])
    def test_what_is_not_there_has_no_route(self, service: Traced, path: str, name: str) -> None:
        assert service.ask("GET", path)[0] == 404
        assert service.spans[0].name == name
        assert "secret" not in service.spans[0].to_json()

    def test_the_name_of_a_task_is_not_told(self, service: Traced) -> None:
        assert service.ask("GET", "/access/v1/requests/secret")[0] == 401
        (span,) = service.spans
        assert span.name == "GET /access/v1/requests/<str:name>"
        assert "secret" not in span.to_json()

    def test_a_method_that_is_none_is_not_repeated(self, service: Traced) -> None:
        service.ask("SECRET", "/access/v1/evaluation")
        assert service.attributes()["http.request.method"] == "_OTHER"
        assert "SECRET" not in service.spans[0].to_json()

    @pytest.mark.parametrize("path", ["/healthz", "/admin/login/", "/accounts/login/?next=/admin/"])
    def test_the_console_and_whoever_looks_whether_it_lives_leave_none(self, service: Traced, path: str) -> None:
        assert service.ask("GET", path)[0] in (200, 302)
        assert service.spans == []


class TestTraces:
    @pytest.mark.parametrize("path", ["/access/v1/evaluation", "/api/v1/grants"])
    def test_the_trace_of_the_caller_goes_on(self, service: Traced, path: str) -> None:
        service.ask("POST", path, HTTP_TRACEPARENT=f"00-{TRACE}-{PARENT}-01")
        (span,) = service.spans
        assert span.context is not None
        assert span.parent is not None
        assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)

    @pytest.mark.parametrize(
        "said", ["", "rubbish", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{PARENT}", "00-" + "x" * 10_000, "\x00é"]
    )
    def test_what_is_no_trace_begins_one(self, service: Traced, said: str) -> None:
        assert service.ask("GET", "/access/v1/evaluation", HTTP_TRACEPARENT=said)[0] == 405
        (span,) = service.spans
        assert span.parent is None


class TestTrouble:
    def test_a_server_error_is_one_and_says_nothing_more(self) -> None:
        def broken(environ: Any, start_response: Any) -> Any:
            start_response("503 Service Unavailable", [])
            return (b'{"decision": false, "context": {"reason": "cannot_judge"}}',)

        traced = Traced(broken)
        assert traced.ask("POST", "/access/v1/evaluation")[0] == 503
        found = traced.attributes()
        assert (found["error.type"], found["writegate.decision.code"]) == ("503", "cannot_judge")
        assert (traced.spans[0].status.status_code, traced.spans[0].status.description) == (StatusCode.ERROR, None)

    def test_an_exception_goes_on_and_what_it_says_stays_here(self) -> None:
        def broken(environ: Any, start_response: Any) -> Any:
            raise RuntimeError("secret")

        traced = Traced(broken)
        with pytest.raises(RuntimeError, match="secret"):
            traced.ask("GET", "/access/v1/evaluation")
        assert traced.attributes()["error.type"] == "RuntimeError"
        assert "secret" not in traced.spans[0].to_json()

    @pytest.mark.parametrize("content", [(b"no JSON",), (b"[]",), (b'{"decision": true, "context": 7}',), (b"7",), (), [b"{}"]])
    def test_an_answer_that_cannot_be_described_is_given_as_it_is(self, content: Any) -> None:
        def odd(environ: Any, start_response: Any) -> Any:
            start_response("200 OK", [])
            return content

        traced = Traced(odd)
        assert traced.ask("POST", "/access/v1/evaluation") == (200, b"".join(content))
        assert len(traced.spans) == 1

    def test_a_second_start_with_what_failed_is_passed_on(self) -> None:
        heard: list[Any] = []

        def again(environ: Any, start_response: Any) -> Any:
            start_response("200 OK", [])
            start_response("500 Internal Server Error", [], ("failure",))
            return []

        application = Traced(again)
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/api/v1/grants"}
        application._application(environ, lambda *given: heard.append(given))
        assert heard == [("200 OK", []), ("500 Internal Server Error", [], ("failure",))]
        assert application.attributes()["http.response.status_code"] == 500
