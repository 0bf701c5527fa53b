"""`writegate register` against a real server on this machine, and against servers that misbehave."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from pytest_django.live_server_helper import LiveServer

from compliance.client import http
from compliance.client.fingerprint import fingerprint
from compliance.services.people import create_person, create_token
from compliance.vocabulary import Role
from evaluations.models import SubjectVersion
from evaluations.selectors.subjects import pinned_parts
from tests.compliance.client.test_cli import run
from tests.compliance.client.test_fingerprint import agent
from tests.support import world


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return agent(tmp_path / "agent")


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PAUSE_SECONDS", 0)
    for variable in ("WRITEGATE_TOKEN", "WRITEGATE_SERVER"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.slow
class TestServer:
    @pytest.fixture
    def server(self, committed_db: object) -> Iterator[str]:
        live = LiveServer("127.0.0.1")
        yield live.url
        live.stop()
        connections.close_all()

    @pytest.fixture
    def token(self, server: str, tmp_path: Path) -> Path:
        world.register("model-a", "model-b")
        user = create_person(actor=world.ACTOR, name="Ann", email="ann@example.org", roles=[Role.REQUESTER])
        made = create_token(actor=world.ACTOR, name="ci", scopes=["register"], person=user.person)
        path = tmp_path / "token"
        path.write_text(f"{made.secret}\n")
        return path

    def test_the_server_pins_what_the_client_computed(self, server: str, token: Path, directory: Path) -> None:
        code, out, err = run("register", directory, "--server", server, "--token-file", token)
        assert (code, err) == (0, "")
        assert out.startswith("hr-agent v1 (new)\n")
        version = SubjectVersion.objects.get(subject__key="hr-agent")
        found = fingerprint(directory)
        assert pinned_parts(version) == found.pin
        assert version.digest == found.version_digest(one.member.digest for one in version.members.select_related("member"))
        assert version.digest in out

        assert run("register", directory, "--server", server, "--token-file", token)[1].startswith("hr-agent v1 (known)\n")
        (directory / "prompts" / "system.md").write_bytes(b"You help more.")
        assert run("register", directory, "--server", server, "--token-file", token)[1].startswith("hr-agent v2 (new)\n")

    def test_a_refusal_names_what_to_mend_and_shows_no_token(
        self, server: str, token: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = directory / "writegate.toml"
        settings.write_text(settings.read_text().replace("model-a@1", "model-c"))
        code, out, err = run("register", directory, "--server", server, "--token-file", token)
        assert (code, out) == (2, "")
        assert "`models[1]`: no model `model-c`; did you mean `model-" in err
        assert "request-body" not in err
        monkeypatch.setenv("WRITEGATE_TOKEN", "wg_wrong")
        code, out, err = run("register", directory, "--server", server)
        assert (code, out) == (2, "")
        assert "unknown, expired or revoked (status 401)" in err
        assert "wg_" not in err


Reply = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(*replies: Reply) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that gives these answers in turn, the last one ever after; with the headers of what it was sent, and its digest."""
    seen: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            told = {name.lower(): text for name, text in self.headers.items()}
            seen.append({**told, "body-digest": sha256(body).hexdigest()})
            replies[min(len(seen), len(replies)) - 1](self)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reply(status: int, body: bytes | dict[str, Any] = b"", **headers: str) -> Reply:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def give(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, text in headers.items():
            handler.send_header(name, text)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return give


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("wg_secret")
    return path


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (reply(500), 1, "status 500"),
        (reply(503, {"detail": "the database does not answer"}), 1, "the database does not answer"),
        (reply(429), 1, "status 429"),
        (reply(302, Location="http://127.0.0.1:1/"), 1, "redirect (302), which is not followed"),
        (reply(200, b"<html>"), 1, "none of a Writegate service"),
        (reply(200, {"reaches": []}), 1, "none of a Writegate service"),
        (reply(200, b"x" * (1024 * 1024 + 1)), 1, "longer than"),
        (hang_up, 1, "does not answer"),
        (reply(403, {"detail": "the token lacks \x1b[31mthe scope", "problems": 7}), 2, "the token lacks �[31mthe scope"),
        (reply(404, b"["), 2, "no reason was given (status 404)"),
    ],
)
def test_a_server_in_trouble_ends_with_1_and_a_refusal_with_2(
    directory: Path, token: Path, given: Reply, code: int, said: str
) -> None:
    with answering(given) as (server, seen):
        got, out, err = run("register", directory, "--server", server, "--token-file", token)
    assert (got, out) == (code, "")
    assert said in err
    assert "wg_secret" not in err
    assert len({one["idempotency-key"] for one in seen}) == 1


def made(directory: Path, **changes: Any) -> dict[str, Any]:
    reaches = [{"subject": "model-a", "number": 1, "digest": "sha256:" + "0" * 64}]
    digest = fingerprint(directory).version_digest([reaches[0]["digest"]])
    return {"subject": "hr-agent", "number": 3, "digest": digest, "reaches": reaches, "is_new": True, **changes}


def test_trouble_that_passes_is_tried_again_under_the_same_key(directory: Path, token: Path) -> None:
    with answering(hang_up, reply(503), reply(201, made(directory))) as (server, seen):
        code, out, _ = run("register", directory, "--server", server, "--token-file", token)
    assert (code, len(seen)) == (0, 3)
    assert out.startswith("hr-agent v3 (new)\n")
    assert len({one["idempotency-key"] for one in seen}) == 1
    assert seen[0]["authorization"] == "Bearer wg_secret"


def test_a_run_of_a_pipeline_has_a_key_of_its_own(directory: Path, token: Path) -> None:
    with answering(reply(201, made(directory))) as (server, seen):
        for run_id in ("1", "1", "2", "", ""):
            assert run("register", directory, "--server", server, "--token-file", token, "--run-id", run_id)[0] == 0
    keys = [one["idempotency-key"] for one in seen]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4


def test_a_server_that_pins_something_else_is_found_out(directory: Path, token: Path) -> None:
    with answering(reply(201, made(directory, digest="sha256:" + "f" * 64))) as (server, _):
        code, out, err = run("register", directory, "--server", server, "--token-file", token)
    assert (code, out) == (1, "")
    assert "pinned something other" in err


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("http://gate.example.org", "--allow-http"),
        ("http://localhost.example.org", "--allow-http"),
        ("https://user:pass@gate.example.org", "no user"),
        ("https://gate.example.org/?x=1", "no user, query"),
        ("ftp://gate.example.org", "no address"),
        ("gate.example.org", "no address"),
        ("https://gate.example.org:port", "no address"),
        ("https://gаte.example.org", "plain ASCII"),
    ],
)
def test_a_token_goes_to_no_doubtful_address(directory: Path, token: Path, server: str, said: str) -> None:
    code, _, err = run("register", directory, "--server", server, "--token-file", token)
    assert code == 2
    assert said in err


def test_nothing_is_sent_without_a_token_or_in_a_dry_run(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = "http://127.0.0.1:1"
    (tmp_path / "odd").write_text("wg_a\nwg_b")
    for arguments in ((), ("--token-file", tmp_path / "nothing"), ("--token-file", tmp_path / "odd")):
        code, _, err = run("register", directory, "--server", server, *arguments)
        assert code == 2
        assert "token" in err
    code, out, _ = run("register", directory, "--server", server, "--dry-run")
    assert code == 0
    assert json.loads(out.partition("\n")[2]) == fingerprint(directory).request()
    monkeypatch.setenv("WRITEGATE_TOKEN", "wg_x")
    code, _, err = run("register", directory, "--server", server)
    assert (code, "does not answer" in err) == (1, True)


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("verify", "check", "fingerprint", "register", "push", "request"):
        with pytest.raises(SystemExit) as ended:
            run(command, "--help")
        assert ended.value.code == 0
        shown = capsys.readouterr().out
        assert "examples:" in shown
        assert "exit codes:" in shown
    for wrong in (
        ("register",),
        ("register", "x", "--timeout", "0"),
        ("register", "x", "--timeout", "nan"),
        ("register", "x", "--dry"),
    ):
        with pytest.raises(SystemExit) as ended:
            run(*wrong)
        assert ended.value.code == 2
