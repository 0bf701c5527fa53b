"""The short way to the doors: from the web server on and through the middleware, the answers are the same."""

import io
import json
from typing import Any

import pytest
from django.test import Client

from compliance.api.authzen.doors import PREFIX
from compliance.api.authzen.lean import LeanApplication
from compliance.models import Grant
from tests.compliance.api.authzen.doors import Doors, question
from tests.support import signing
from tests.support.asking import ask_token

BODY = json.dumps(question()).encode()
_VARYING = ("X-Request-ID", "Content-Length")


class Server:
    """A web server's call of the application, over an environment by PEP 3333."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.passed_on: list[str] = []
        self.application = LeanApplication(self._elsewhere)

    def send(self, path: str = "evaluation", body: bytes = BODY, **environ: Any) -> tuple[int, dict[str, str], bytes]:
        """POST to a door, and return status, headers and body."""
        told: list[tuple[str, list[tuple[str, str]]]] = []
        parts = self.application(
            {
                "REQUEST_METHOD": "POST",
                "PATH_INFO": f"{PREFIX}{path}",
                "SERVER_NAME": "127.0.0.1",
                "HTTP_HOST": "localhost:8000",
                "HTTP_AUTHORIZATION": f"Bearer {self.token}",
                "CONTENT_TYPE": "application/json",
                "CONTENT_LENGTH": str(len(body)),
                "REMOTE_ADDR": "127.0.0.1",
                "wsgi.url_scheme": "http",
                "wsgi.input": io.BytesIO(body),
                **environ,
            },
            lambda status, headers, _=None: told.append((status, headers)) or (lambda _: None),
        )
        ((status, headers),) = told
        return int(status.split()[0]), dict(headers), b"".join(parts)

    def _elsewhere(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        self.passed_on.append(environ["PATH_INFO"])
        start_response("200 OK", [])
        return [b"elsewhere"]


@pytest.fixture
def server(doors: Doors) -> Server:
    return Server(doors.token)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [("evaluation", BODY, 200), ("evaluation", b"{", 400), ("search/spaceship", BODY, 404), ("", BODY, 404)],
)
def test_both_ways_answer_alike(server: Server, doors: Doors, path: str, body: bytes, status: int) -> None:
    got, headers, content = server.send(path, body)
    other = doors.send(path, body)
    assert got == other.status_code == status
    assert int(headers["Content-Length"]) == len(content)
    assert {name: value for name, value in headers.items() if name not in _VARYING} == {
        name: value for name, value in other.headers.items() if name not in _VARYING
    }
    if status == 200:
        assert json.loads(content)["decision"] is other.json()["decision"] is True
    else:
        assert content == other.content


def test_what_lies_elsewhere_goes_on(server: Server) -> None:
    _, _, content = server.send(PATH_INFO="/healthz")
    assert (content, server.passed_on) == (b"elsewhere", ["/healthz"])
    assert Client().get("/healthz").status_code == 200


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST."])
def test_a_host_of_ours_is_served(server: Server, host: str) -> None:
    assert server.send(HTTP_HOST=host)[0] == 200


@pytest.mark.parametrize("host", ["gate.example.org", "localhost.example.org", "", "local host", "localhost:port", "[::1"])
def test_another_host_is_not(server: Server, doors: Doors, host: str) -> None:
    assert server.send(HTTP_HOST=host)[::2] == (400, b"this host is not served here\n")
    assert doors.send("evaluation", BODY, Host=host or " ").content == b"this host is not served here\n"


def test_without_a_host_the_servers_own_name_counts(server: Server) -> None:
    environ = {"SERVER_NAME": "elsewhere.example.org"}
    server.application = _without_host(server.application)
    assert server.send()[0] == 200
    assert server.send(**environ)[0] == 400


def _without_host(application: Any) -> Any:
    def called(environ: dict[str, Any], start_response: Any) -> Any:
        del environ["HTTP_HOST"]
        return application(environ, start_response)

    return called


def test_a_body_that_breaks_off_is_no_question(server: Server, granted: signing.Ground) -> None:
    status, _, content = server.send(CONTENT_LENGTH=str(len(BODY) + 1))
    assert (status, content) == (400, b"the body broke off\n")


def test_a_body_that_comes_in_pieces_is_read_whole(server: Server) -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(7, size or 0))

    status, _, content = server.send(**{"wsgi.input": Slow(BODY)})
    assert status == 200
    assert json.loads(content)["decision"] is True


@pytest.mark.parametrize(
    ("scheme", "stated", "told"),
    [
        ("https", None, True),
        ("http", None, False),
        ("http", "https", True),
        ("http", "https, http", True),
        ("https", "http", False),
    ],
)
def test_https_is_promised_where_the_question_came_by_it(
    server: Server, settings: Any, scheme: str, stated: str | None, told: bool
) -> None:
    settings.SECURE_HSTS_SECONDS = 60
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    environ = {"wsgi.url_scheme": scheme} | ({} if stated is None else {"HTTP_X_FORWARDED_PROTO": stated})
    _, headers, _ = server.send(**environ)
    assert headers.get("Strict-Transport-Security") == ("max-age=60" if told else None)


def test_a_task_is_looked_at_and_a_denial_asked_about_from_the_web_server_on(granted: signing.Ground) -> None:
    server = Server(ask_token(granted.asker, "decide", "request"))
    uid = Grant.objects.get().request.uid
    got, headers, content = server.send(f"requests/{uid}", b"", REQUEST_METHOD="GET")
    assert (got, json.loads(content)["task"]["status"]) == (200, "approved")
    assert (headers["Content-Type"], int(headers["Content-Length"])) == ("application/json", len(content))
    for path, status in (("requests/x", 405), ("requests/x/cancel", 404), ("requests", 400), ("requests/x/y", 404)):
        got, headers, content = server.send(path)
        assert got == status, path
        kind = "text/plain; charset=utf-8" if path.endswith("/y") else "application/problem+json"
        assert headers["Content-Type"] == kind, path
    assert not server.passed_on
