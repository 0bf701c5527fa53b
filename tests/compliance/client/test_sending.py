"""`writegate push` and `writegate request`: against a real service, and against servers that misbehave."""

import json
import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from pytest_django.live_server_helper import LiveServer

from compliance.client import http, push
from compliance.client.ask import read_end
from compliance.client.outcome import Refused
from compliance.models import SignOffRequest, Upload
from compliance.services.people import create_token
from compliance.vocabulary import RequestKind, Role
from evaluations.kernel.clock import now
from evaluations.models import Document, Evidence
from tests.compliance.client.test_cli import run
from tests.compliance.client.test_register import answering, hang_up, reply
from tests.support import signing, world
from tests.support.sources import source, table

TOKEN = "wg_very-secret"
UID = "3b0a1f5e-6f7c-4a7e-9a8e-111111111111"
ASK = (
    "request",
    "--subject",
    "model-a@1",
    "--system",
    "hr-prod",
    "--until",
    "2099-12-31",
    "--reason",
    "the nightly sync needs it",
)


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PAUSE_SECONDS", 0.001)
    for variable in ("WRITEGATE_TOKEN", "WRITEGATE_SERVER"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    return path


def evidence(path: Path, value: str = "84", **changes: Any) -> Path:
    """Write an evidence file spread over lines, as people do; a change to None leaves a member out."""
    whole = world.submission("model-a", world.observation(value)) | changes
    path.write_text(json.dumps({name: held for name, held in whole.items() if held is not None}, indent=2))
    return path


@pytest.mark.slow
class TestServer:
    @pytest.fixture
    def server(
        self, committed_db: object, run_tasks_inline: None, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
    ) -> Iterator[str]:
        settings.UPLOAD_DIR = tmp_path / "uploads"
        live = LiveServer("127.0.0.1")
        monkeypatch.setenv("WRITEGATE_SERVER", live.url)
        yield live.url
        live.stop()
        connections.close_all()

    def give(self, monkeypatch: pytest.MonkeyPatch, person: Any, *scopes: str) -> None:
        made = create_token(actor=world.ACTOR, name="ci", scopes=scopes, person=person)
        monkeypatch.setenv("WRITEGATE_TOKEN", made.secret)

    def test_files_are_recorded_whole_and_once(self, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        world.register("model-a")
        self.give(monkeypatch, signing.human("Edda Evidence", Role.EVIDENCE_STEWARD).person, "submit_evidence")
        first = evidence(tmp_path / "first.json")
        second = evidence(tmp_path / "second.json", "85", source=None)
        code, out, err = run("push", first, second, "--source", "lab")
        assert (code, err) == (0, "")
        assert f"{first}: 1 observation taken in 1 piece of evidence, 0 of them held, 0 pieces known already" in out
        assert Evidence.objects.filter(source__key="lab").count() == 2
        assert Document.objects.filter(digest=f"sha256:{sha256(first.read_bytes()).hexdigest()}").exists()
        code, out, err = run("push", first, second, "--source", "lab")
        assert (code, out.count("0 observations taken"), out.count("1 piece known already")) == (0, 2, 2)
        assert Evidence.objects.count() == 2

    def test_a_repeated_run_gets_the_first_answer(self, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        world.register("model-a")
        self.give(monkeypatch, signing.human("Edda Evidence", Role.EVIDENCE_STEWARD).person, "submit_evidence")
        push_it = ("push", evidence(tmp_path / "first.json"), "--source", "lab", "--run-id", "7")
        assert run(*push_it) == run(*push_it)
        assert Upload.objects.count() == 1

    def test_any_format_is_taken_and_names_that_nobody_knows_wait(
        self, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.register("m")
        self.give(monkeypatch, signing.human("Edda Evidence", Role.EVIDENCE_STEWARD).person, "submit_evidence")
        path = tmp_path / "results.csv"
        path.write_bytes(table(m=84, stranger=12))
        source("lab")
        code, out, err = run("push", path, "--source", "lab")
        assert (code, err) == (0, "")
        assert "2 observations taken in 2 pieces of evidence, 1 of them held" in out
        assert "1 until somebody says whom `stranger` means" in out
        code, out, err = run("push", path, "--source", "press")
        assert (code, Evidence.objects.count()) == (2, 2)
        assert "unknown source" in err

    def test_a_refusal_names_file_line_and_field(self, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        world.register("model-a")
        self.give(monkeypatch, signing.human("Edda Evidence", Role.EVIDENCE_STEWARD).person, "submit_evidence")
        good = evidence(tmp_path / "good.json")
        bad = evidence(tmp_path / "bad.json", source=None)
        bad.write_text(bad.read_text().replace('"84"', '"84 %"'))
        line = next(place for place, text in enumerate(bad.read_text().splitlines(), 1) if "84 %" in text)
        code, out, err = run("push", bad, good, "--source", "lab")
        assert code == 2
        assert f"{bad}, line {line}, `evidence[0].observations[0].value`:" in err
        assert "84 %" in err
        assert f"{good}: 1 observation taken in 1 piece of evidence" in out
        assert Evidence.objects.count() == 1
        self.give(monkeypatch, signing.human("Rita Reader").person, "read")
        code, out, err = run("push", good, "--source", "lab")
        assert (code, out) == (2, "")
        assert "status 403" in err

    def test_a_request_is_filed_once_a_run(self, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
        ground = signing.ground()
        self.give(monkeypatch, ground.asker.person, "request")
        until = f"{now() + timedelta(days=20):%Y-%m-%d}"
        ask = ("request", "--subject", "model-a@1", "--system", "hr-prod", "--until", until, "--reason", "the sync needs it")
        code, out, err = run(*ask, "--run-id", "7")
        assert (code, err) == (0, "")
        made = SignOffRequest.objects.get(kind=RequestKind.GRANT)
        assert f"request {made.uid} is open\n  {server}/api/v1/requests/{made.uid}\n" in out
        assert (made.reason, made.requester_id) == ("the sync needs it", ground.asker.person_id)
        assert run(*ask, "--run-id", "7")[1] == out
        assert SignOffRequest.objects.filter(kind=RequestKind.GRANT).count() == 1

    def test_a_request_that_could_never_be_signed_says_why(self, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
        ground = signing.ground("20")
        self.give(monkeypatch, ground.asker.person, "request")
        until = f"{now() + timedelta(days=20):%Y-%m-%d}"
        for changed, said in (("model-a@1", "status 4"), ("model-b@1", "`subject`")):
            code, out, err = run(
                "request", "--subject", changed, "--system", "hr-prod", "--until", until, "--reason", "the sync needs it"
            )
            assert (code, out) == (2, "")
            assert said in err
        assert not SignOffRequest.objects.filter(kind=RequestKind.GRANT).exists()


def upload(path: Path, **changes: Any) -> dict[str, Any]:
    """Return what the service tells of a file that it has read."""
    own = f"sha256:{sha256(path.read_bytes()).hexdigest()}"
    read = {"status": "done", "percent": 100, "evidence": 1, "taken": 1, "repeated": 0, "held": [], "refused": [], "failure": ""}
    return {"uid": UID, "file_digest": own, "document": own, **read, **changes}


FINDING = {"line": 3, "field": "x", "message": "no"}
RUNNING = {"status": "running", "percent": 40, "document": None}


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (500, 1, "status 500"),
        (429, 1, "slower"),
        (None, 1, "does not answer"),
        (307, 1, "not followed"),
        ({"status": 200}, 2, "status 200"),
        ({"taken": True}, 1, "none of a Writegate service"),
        ({"uid": "../../people"}, 1, "none of a Writegate service"),
        ({"held": [1]}, 1, "none of a Writegate service"),
        ({"document": "sha256:0"}, 1, "something other than this file"),
        ({"document": None}, 1, "something other than this file"),
        ({**RUNNING, "file_digest": "sha256:0"}, 1, "something other than this file"),
        (RUNNING, 1, "it is still read (40 %): ask http"),
        ({**RUNNING, "status": "failed", "failure": "the worker was lost\x1b"}, 1, "it was not read: the worker was lost�"),
        (401, 2, "unknown�[2J"),
        (422, 2, "one.json, line 3, `x`: no"),
        ({"status": "refused", "document": None, "failure": "no", "refused": [FINDING]}, 2, "one.json, line 3, `x`: no"),
        ({"status": "refused", "document": None, "failure": "the date"}, 2, "one.json was recorded: the date"),
    ],
)
def test_a_push_that_did_not_work_says_so(tmp_path: Path, token: Path, given: Any, code: int, said: str) -> None:
    files = [evidence(tmp_path / "one.json"), evidence(tmp_path / "two.json", "85")]
    bodies = {429: {"detail": "slower"}, 401: {"detail": "unknown\x1b[2J"}, 422: {"problems": [FINDING]}}
    answers = [hang_up]
    if isinstance(given, int):
        answers = [reply(given, bodies.get(given, {}), **({"Location": "http://127.0.0.1:1/"} if given == 307 else {}))]
    elif given is not None:
        status = given.pop("status") if isinstance(given.get("status"), int) else 202
        # Where the first file is not followed to its end there is no second one, but a second look.
        answers = [
            reply(status, upload(files[0], **given)),
            reply(status if code == 2 else 200, upload(files[code - 1], **given)),
        ]
    ask = ("push", *files, "--source", "lab", "--wait", "0.01")
    with answering(*answers) as (server, seen):
        got, out, err = run(*ask, "--server", server, "--token-file", token)
    assert (got, "taken" in out) == (code, False)
    assert said in err
    assert TOKEN not in err
    keys = {one["idempotency-key"] for one in seen if "idempotency-key" in one}
    assert len(keys) == (1 if code == 1 else 2), "trouble ends it, a refusal of one file does not"
    assert (f"not sent: {files[1]}" in err) is (code == 1)


def test_the_key_is_that_of_the_content_and_the_run(tmp_path: Path, token: Path) -> None:
    with answering(hang_up, reply(500)) as (server, seen):
        for value, *more in (("84", "--run-id", "7"), ("84", "--run-id", "7"), ("85", "--run-id", "7"), ("84", "--run-id", "8")):
            path = evidence(tmp_path / "one.json", value)
            run("push", path, "--source", "lab", *more, "--server", server, "--token-file", token)
    keys = [one["idempotency-key"] for one in seen]
    assert len(keys) == 12
    assert [keys.count(key) for key in dict.fromkeys(keys)] == [6, 3, 3]


def test_it_follows_how_far_a_file_is_read(tmp_path: Path, token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push, "FIRST_LOOK_SECONDS", 0.001)
    path = evidence(tmp_path / "one.json")
    waiting = {"status": "queued", "percent": 0, "document": None}
    held = [{"name": f"m\x1b{number}", "observations": 2} for number in range(22)]
    looks = [waiting, RUNNING, RUNNING, RUNNING | {"percent": 45}, RUNNING | {"percent": 60}, {"taken": 50, "held": held}]
    with answering(*(reply(200 if place else 202, upload(path, **look)) for place, look in enumerate(looks))) as (server, seen):
        code, out, err = run("push", path, "--source", "lab", "--server", server, "--token-file", token)
    assert (code, err, len(seen)) == (0, "", len(looks))
    assert [line for line in out.splitlines() if "% read" in line] == [f"{path}: 40 % read", f"{path}: 60 % read"]
    assert "50 observations taken in 1 piece of evidence, 44 of them held, 0 pieces known already" in out
    assert "2 until somebody says whom `m�0` means" in out
    assert "those of 2 further names" in out


def test_a_file_is_read_while_it_is_sent_and_anew_for_each_attempt(tmp_path: Path, token: Path) -> None:
    path = tmp_path / "big.csv"
    path.write_bytes(b"x" * 3_000_000)
    with answering(hang_up, reply(503), reply(202, upload(path))) as (server, seen):
        code, _, err = run("push", path, "--source", "lab", "--server", server, "--token-file", token)
    assert (code, err) == (0, "")
    assert {one["content-length"] for one in seen} == {"3000000"}
    assert len({one["body-digest"] for one in seen[1:]}) == 1
    assert seen[-1]["body-digest"] == sha256(path.read_bytes()).hexdigest()


def test_a_server_that_wants_no_file_is_heard_before_all_of_it_is_sent(tmp_path: Path, token: Path) -> None:
    path = tmp_path / "big.csv"
    path.write_bytes(b"x" * 30_000_000)
    with refusing_early(b"HTTP/1.1 413 Content Too Large", {"detail": "the file is larger than 1 MiB: split it"}) as server:
        code, out, err = run("push", path, "--source", "lab", "--server", server, "--token-file", token)
    assert (code, out) == (2, "")
    assert "split it (status 413)" in err


@contextmanager
def refusing_early(line: bytes, body: dict[str, Any]) -> Iterator[str]:
    """A server that answers once it has the headers, and takes no more of the body than has come by then."""
    text = json.dumps(body).encode()

    class Refusing(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(b"%s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (line, len(text), text))
            self.request.shutdown(socket.SHUT_WR)
            # What lies unread when a socket is closed makes it a reset, which may overtake the answer.
            self.request.settimeout(5)
            for _ in range(20):
                if not self.request.recv(65536):
                    break

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cannot be read"), (b"", "is empty"), (b" " * 1001, "more than 1000 bytes")]
)
def test_nothing_is_sent_while_any_file_cannot_be(
    tmp_path: Path, token: Path, content: bytes | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = evidence(tmp_path / "a.json"), tmp_path / "bad.json"
    monkeypatch.setattr(push, "MAX_FILE_BYTES", 1000)
    assert good.stat().st_size <= 1000
    if content is not None:
        bad.write_bytes(content)
    with answering(reply(500)) as (server, seen):
        code, out, err = run("push", good, bad, "--source", "lab", "--server", server, "--token-file", token)
        folder = run("push", good, tmp_path, "--source", "lab", "--server", server, "--token-file", token)
    assert (code, out, folder[0], seen) == (2, "", 2, [])
    assert said in err
    assert "nothing was sent" in err


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("2026-12-31", "2026-12-31T00:00:00Z"),
        ("2026-12-31T18:00:00Z", "2026-12-31T18:00:00Z"),
        ("2026-12-31T18:00+02:00", "2026-12-31T16:00:00Z"),
    ],
)
def test_an_end_is_a_date_or_a_time_with_its_offset(text: str, end: str) -> None:
    assert read_end(text) == end


@pytest.mark.parametrize("text", ["", "tomorrow", "2026-13-01", "2026-12-31T18:00:00", "31.12.2026", "0001-01-01T00:00:00+14:00"])
def test_an_end_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Refused, match=re.escape(f"`{text}`")):
        read_end(text)


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (reply(503, {"detail": "the database does not answer"}), 1, "could not file the request: the database"),
        (hang_up, 1, "does not answer"),
        (reply(200, {"uid": "x"}), 2, "status 200"),
        (reply(201, {"uid": "x", "status": "open"}), 1, "none of a Writegate service"),
        (reply(201, b"[]"), 1, "none of a Writegate service"),
        (reply(409, {"detail": "no policy covers it"}), 2, "no policy covers it"),
    ],
)
def test_a_request_that_was_not_filed_says_so(token: Path, given: Any, code: int, said: str) -> None:
    with answering(given) as (server, seen):
        got, out, err = run(*ASK, "--server", server, "--token-file", token)
    assert (got, out) == (code, "")
    assert said in err
    assert TOKEN not in err
    assert len({one["idempotency-key"] for one in seen}) == 1


def test_wrong_arguments_end_with_2(token: Path) -> None:
    code, _, err = run(*ASK[:-4], "--until", "tomorrow", "--reason", "x", "--server", "http://127.0.0.1:1", "--token-file", token)
    assert (code, "is no time" in err) == (2, True)
    assert run(*ASK)[0] == 2
    assert run("push", token, "--source", "lab")[0] == 2
    for wrong in (ASK[:-2], (*ASK[:-1], " "), ("push", "--source", "lab"), ("push", "x"), (*ASK, "--token", "x")):
        with pytest.raises(SystemExit) as ended:
            run(*wrong)
        assert ended.value.code == 2
