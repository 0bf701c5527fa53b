"""`writegate push` and `writegate request`: against a real service, and against servers that misbehave."""

import json
import re
from collections.abc import Iterator
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
from compliance.models import SignOffRequest
from compliance.services.people import create_token
from compliance.vocabulary import RequestKind, Role
from evaluations.kernel.clock import now
from evaluations.models import Document, Evidence
from tests.compliance.client.test_cli import run
from tests.compliance.client.test_register import answering, hang_up, reply
from tests.support import signing, world

TOKEN = "wg_very-secret"
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
    def server(self, committed_db: object, run_tasks_inline: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
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
        assert f"{first}: 1 evidence with 1 observations recorded, 0 known already" in out
        assert Evidence.objects.filter(source__key="lab").count() == 2
        assert Document.objects.filter(digest=f"sha256:{sha256(first.read_bytes()).hexdigest()}").exists()
        again = run("push", first, second, "--source", "lab")
        assert again == (code, out, err), "a retry gets the first answer"
        assert Evidence.objects.count() == 2

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
        assert f"{good}: 1 evidence" in out
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


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (reply(500), 1, "status 500"),
        (reply(429, {"detail": "slower"}), 1, "slower"),
        (hang_up, 1, "does not answer"),
        (reply(307, Location="http://127.0.0.1:1/"), 1, "not followed"),
        (reply(200, b"<html>"), 1, "none of a Writegate service"),
        (reply(201, {"recorded": True, "repeated": 0, "observations": 1}), 1, "none of a Writegate service"),
        (
            reply(201, {"recorded": 1, "repeated": 0, "observations": 1, "document": "sha256:0"}),
            1,
            "something other than this file",
        ),
        (reply(401, {"detail": "unknown\x1b[2J"}), 2, "unknown�[2J"),
        (reply(422, {"problems": [{"line": 3, "field": "x", "message": "no"}]}), 2, "one.json, line 3, `x`: no"),
    ],
)
def test_a_push_that_did_not_work_says_so(tmp_path: Path, token: Path, given: Any, code: int, said: str) -> None:
    files = [evidence(tmp_path / "one.json"), evidence(tmp_path / "two.json", "85")]
    with answering(given) as (server, seen):
        got, out, err = run("push", *files, "--source", "lab", "--server", server, "--token-file", token)
    assert (got, out) == (code, "")
    assert said in err
    assert TOKEN not in err
    keys = {one["idempotency-key"] for one in seen}
    assert len(keys) == (1 if code == 1 else 2), "trouble ends it, a refusal of one file does not"
    assert (f"not sent: {files[1]}" in err) is (code == 1)


def test_the_key_is_that_of_the_content(tmp_path: Path, token: Path) -> None:
    with answering(hang_up, reply(500)) as (server, seen):
        for value in ("84", "84", "85"):
            run("push", evidence(tmp_path / "one.json", value), "--source", "lab", "--server", server, "--token-file", token)
    keys = [one["idempotency-key"] for one in seen]
    assert len(keys) == 9
    assert len(set(keys)) == 2
    assert keys[0] == f"push-{sha256(evidence(tmp_path / 'one.json').read_bytes()).hexdigest()}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        (b"", "no JSON"),
        (b"a,b\n1,2\n", "import_evidence"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "none of our evidence files"),
        (b'{"format": "other"}', "none of our evidence files"),
        (b'{"format": "writegate-evidence/1", "source": "labor"}', "names the source `labor`, not `lab`"),
        (b'{"format": "writegate-evidence/1", "source": null}', "names an empty source"),
        (b'{"format": "writegate-evidence/1", "source": ["lab"]}', "names the source"),
        (b'{"format": "writegate-evidence/1"}' + b" " * 1000, "more than 1000 bytes"),
    ],
)
def test_nothing_is_sent_while_any_file_cannot_be(
    tmp_path: Path, token: Path, content: bytes | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "MAX_FILE_BYTES", 1000 if said.startswith("more") else 10**6)
    bad = tmp_path / "bad.json"
    if content is not None:
        bad.write_bytes(content)
    with answering(reply(500)) as (server, seen):
        code, out, err = run(
            "push", evidence(tmp_path / "a.json"), bad, "--source", "lab", "--server", server, "--token-file", token
        )
    assert (code, out, seen) == (2, "", [])
    assert said in err
    assert "nothing was sent" in err


def test_a_source_goes_in_without_moving_a_line_or_a_number(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_bytes(b' \n{ "format": "writegate-evidence/1",\n  "x": 80.00 }\n')
    assert (
        push.read_file(path, "l\u00e4b").body
        == b' \n{"source": "l\\u00e4b",  "format": "writegate-evidence/1",\n  "x": 80.00 }\n'
    )


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
