"""`writegate check`: 0 only where the gate allows, and never a word of the token."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from pytest_django.live_server_helper import LiveServer

from compliance.client import http
from compliance.client.fingerprint import fingerprint
from compliance.client.gate import Gate, Question
from compliance.models import LedgerEntry
from compliance.services.people import create_token
from compliance.services.stopping import revoke_grant
from tests.compliance.client.test_cli import ROOT, run
from tests.compliance.client.test_fingerprint import agent
from tests.support import signing, world
from tests.support.gate_answers import DIGEST, ODD, SLOW, allow, answering, deny, hanging_up, right, wrong
from tests.support.gate_server import GateServer, gate_server
from tests.support.process import clean_environment

TOKEN = "wg_very-secret"
QUESTION = ("--subject", "hr-agent", "--system", "hr-prod")


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PAUSE_SECONDS", 0.001)
    for variable in ("WRITEGATE_TOKEN", "WRITEGATE_SERVER"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


def check(server: GateServer, token: Path, *arguments: object) -> tuple[int, str, str]:
    code, out, err = run("check", *QUESTION, "--server", server.url, "--token-file", token, "--timeout", "5", *arguments)
    assert TOKEN not in out + err
    return code, out, err


def test_an_allow_ends_with_0(token: Path) -> None:
    with gate_server() as server:
        code, out, err = check(server, token)
        assert server.asked[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert (code, err) == (0, "")
    assert out.startswith("allow  hr-agent@1 may write at hr-prod, until 20")
    assert "evaluation  " in out
    assert "entry  " in out


def test_a_deny_ends_with_1_and_says_every_reason_and_where_it_is_explained(token: Path) -> None:
    with gate_server(answering(lambda question: deny(question, "no_grant", "verdict_failed"))) as server:
        code, out, err = check(server, token)
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert lines[:2] == ["DENY  no_grant: because of no_grant", "DENY  verdict_failed: because of verdict_failed"]
    evaluation = next(line.split()[1] for line in lines if "evaluation" in line)
    assert f"  explain it  {server.url}/api/v1/decisions/{evaluation}" in lines


@pytest.mark.parametrize("name", ODD)
def test_nothing_odd_ends_with_0(name: str, token: Path) -> None:
    with gate_server(ODD[name]) as server:
        code, out, _ = check(server, token, "--fingerprint", DIGEST, "--retries", 1)
    assert code == (1 if name.startswith("deny") else 2)
    assert out.startswith("DENY  ")
    assert "allow  " not in out


@pytest.mark.parametrize(
    "name", ["deny", "cut after 20 bytes", 'decision "true"', "a page", "redirect with an allow", "503 with an allow"]
)
def test_the_command_itself_ends_with_it(name: str, token: Path) -> None:
    with gate_server(ODD[name]) as server:
        done = writegate("check", *QUESTION, "--server", server.url, "--retries", "0", WRITEGATE_TOKEN=TOKEN)
    assert done.returncode == (1 if name == "deny" else 2), done.stderr
    assert done.stdout.startswith("DENY  ")
    assert TOKEN not in done.stdout + done.stderr


def test_the_command_itself_allows(token: Path) -> None:
    with gate_server() as server:
        for more, settings in (("--token-file", str(token)), {}), ((), {"WRITEGATE_TOKEN": TOKEN}):
            done = writegate("check", *QUESTION, *more, WRITEGATE_SERVER=server.url, **settings)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.startswith("allow  ")


def test_a_server_that_does_not_end_is_not_waited_for(token: Path) -> None:
    with gate_server(*SLOW.values()) as server:
        began = time.monotonic()
        done = writegate("check", *QUESTION, "--timeout", "1", WRITEGATE_SERVER=server.url, WRITEGATE_TOKEN=TOKEN)
        assert time.monotonic() - began < 10
    assert done.returncode == 2
    assert "no_answer" in done.stdout


def test_the_token_is_in_no_argument_of_the_process(token: Path) -> None:
    with gate_server(SLOW["slow"]) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "compliance.client", "check", *QUESTION, "--server", server.url, "--token-file", str(token)],
            cwd=ROOT,
            env=clean_environment(),
            stdout=subprocess.DEVNULL,
        )
        try:
            while not server.asked:
                assert process.poll() is None
                time.sleep(0.02)
            assert TOKEN.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        finally:
            process.kill()
            process.wait()
    with pytest.raises(SystemExit):
        run("check", *QUESTION, "--token", TOKEN)


def test_observing_ends_with_0_and_is_loud(token: Path) -> None:
    for odd in (ODD["deny"], hanging_up, ODD["a page"]):
        with gate_server(odd) as server:
            code, out, err = check(server, token, "--observe", "--retries", 0)
            assert all(one.value["context"] == {"observe": True} for one in server.questions)
        assert code == 0
        assert out.startswith("DENY  ")
        assert "WOULD DENY" in err
    with gate_server() as server:
        code, out, err = check(server, token, "--observe", "--quiet")
    assert (code, out, err) == (0, "", "")
    code, out, err = run("check", *QUESTION, "--observe")
    assert code == 0, "also where nothing could be asked"
    assert "WOULD DENY" in err
    with pytest.raises(SystemExit) as ended:
        run("check", *QUESTION, "--observe", "--sytem", "x")
    assert ended.value.code == 2


def test_the_answer_can_be_had_as_json_or_not_at_all(token: Path) -> None:
    with gate_server() as server:
        code, out, _ = check(server, token, "--json")
        told = json.loads(out)
        assert (code, told["allowed"], told["certain"]) == (0, True, True)
        assert told["subject"] == {"key": "hr-agent", "version": 1, "digest": DIGEST}
        assert told["entry"]["leaf_hash"]
        assert check(server, token, "--quiet") == (0, "", "")
    with gate_server(wrong) as server:
        code, out, _ = check(server, token, "--json")
        told = json.loads(out)
        assert (code, told["allowed"], told["certain"], told["reason"]) == (1, False, True, "no_grant")
        assert check(server, token, "--quiet") == (1, "", "")
    with gate_server(ODD["a page"]) as server:
        code, out, _ = check(server, token, "--json")
        assert (code, json.loads(out)["certain"], json.loads(out)["reason"]) == (2, False, "not_understood")


def test_what_a_server_says_moves_no_cursor_and_makes_no_markup(token: Path, tmp_path: Path) -> None:
    nasty = [{"code": "x\x1b[2J", "message": "<img src=x> **a** | \u202e\r\n# head \ud800", "detail": {}}]
    with gate_server(answering(lambda question: {**allow(question, reasons=nasty), "decision": False})) as server:
        code, out, _ = check(server, token, "--summary", tmp_path / "summary")
        assert code == 1
        assert not {"\x1b", "\r", "\u202e", "\ud800"} & set(out)
        assert len(out.splitlines()) == 5
        done = writegate("check", *QUESTION, WRITEGATE_SERVER=server.url, WRITEGATE_TOKEN=TOKEN, PYTHONIOENCODING="ascii")
        assert done.returncode == 1, done.stderr
    told = (tmp_path / "summary").read_text()
    assert r"\<img src=x\> \*\*a\*\* \|" in told
    assert "\n# head" not in told


def test_a_summary_is_added_to_what_is_there(token: Path, tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n\n")
    with gate_server(right, wrong, wrong) as server:
        assert check(server, token, "--summary", file)[0] == 0
        assert check(server, token, "--summary", file)[0] == 1
        assert check(server, token, "--summary", file, "--observe")[0] == 0
        code, _, err = check(server, token, "--summary", tmp_path)
        assert code == 1, "a summary that cannot be written changes no answer"
        assert "summary cannot be written" in err
    told = file.read_text()
    assert told.startswith("before\n\n### Writegate: allow\n")
    assert "### Writegate: DENY\n" in told
    assert "### Writegate: WOULD DENY\n" in told
    assert r"- **no\_grant** because of no\_grant" in told


def test_the_fingerprint_is_computed_from_the_agent_s_files(token: Path, tmp_path: Path) -> None:
    directory = agent(tmp_path / "agent")
    with gate_server() as server:
        wanted = fingerprint(directory).version_digest(server.models.values())
        assert check(server, token, "--fingerprint-of", directory)[0] == 0
        assert server.questions[0].value["subject"]["properties"] == {"fingerprint": wanted}
        quiet = run("register", directory, "--server", server.url, "--token-file", token, "--quiet")
        assert quiet == (0, f"{wanted}\n", "")
        assert [one.path for one in server.asked[:2]] == [
            "/api/v1/subjects/model-a/versions/1",
            "/api/v1/subjects/model-b/versions?page_size=1",
        ]
        del server.models["model-b@1"]
        code, out, _ = check(server, token, "--fingerprint-of", directory)
        assert (code, len(server.questions)) == (2, 1)
        assert "DENY  refused: the service knows no model `model-b`" in out
    with gate_server(
        answering(lambda question: allow(question, subject={"key": "hr-agent", "version": 1, "digest": DIGEST}))
    ) as server:
        code, out, _ = check(server, token, "--fingerprint-of", directory)
    assert code == 2
    assert "mismatch" in out


def test_a_directory_of_another_agent_or_of_none_is_refused(token: Path, tmp_path: Path) -> None:
    directory = agent(tmp_path / "agent")
    settings = directory / "writegate.toml"
    settings.write_text(settings.read_text().replace("hr-agent", "crm-agent"))
    with gate_server() as server:
        code, out, _ = check(server, token, "--fingerprint-of", directory)
        assert (code, "states the agent `crm-agent`" in out) == (2, True)
        code, out, _ = check(server, token, "--fingerprint-of", tmp_path)
        assert (code, "writegate.toml" in out) == (2, True)
        assert not server.asked


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "no server"),
        ({"WRITEGATE_SERVER": "http://gate.example.org", "WRITEGATE_TOKEN": TOKEN}, "--allow-http"),
        ({"WRITEGATE_SERVER": "https://gate.example.org"}, "no token"),
        ({"WRITEGATE_SERVER": "https://gate.example.org", "WRITEGATE_TOKEN": "two words"}, "no token"),
    ],
)
def test_without_a_server_or_a_token_nobody_can_tell(
    settings: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    code, out, err = run("check", *QUESTION)
    assert code == 2
    assert said in out
    assert TOKEN not in out + err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--subject", "hr-agent"),
        ("--subject", "", "--system", "hr-prod"),
        ("--subject", "hr-agent", "--system", " "),
        (*QUESTION, "--action", ""),
        (*QUESTION, "--fingerprint", "sha256:ABC"),
        (*QUESTION, "--fingerprint", ""),
        (*QUESTION, "--fingerprint", DIGEST, "--fingerprint-of", "."),
        (*QUESTION, "--type", "person"),
        (*QUESTION, "--timeout", "0"),
        (*QUESTION, "--timeout", "inf"),
        (*QUESTION, "--retries", "-1"),
        (*QUESTION, "--obs"),
        (*QUESTION, "extra"),
    ],
)
def test_wrong_arguments_end_with_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("check", *arguments)
    assert ended.value.code == 2


@pytest.mark.slow
class TestServer:
    """The same against the service itself."""

    @pytest.fixture
    def land(self, committed_db: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[signing.Ground]:
        live = LiveServer("127.0.0.1")
        land = signing.ground()
        made = create_token(actor=world.ACTOR, name="ci", scopes=["decide:hr-prod", "read"], person=land.asker.person)
        monkeypatch.setenv("WRITEGATE_SERVER", live.url)
        monkeypatch.setenv("WRITEGATE_TOKEN", made.secret)
        yield land
        live.stop()
        connections.close_all()

    def ask(self, *arguments: object) -> tuple[int, dict[str, Any]]:
        code, out, err = run(
            "check", "--subject", "model-a@1", "--type", "model", "--system", "hr-prod", "--json", "--retries", "0", *arguments
        )
        assert err == "" or "--observe" in arguments
        return code, json.loads(out)

    def test_it_allows_while_the_grant_holds_and_denies_once_it_does_not(self, land: signing.Ground) -> None:
        code, told = self.ask()
        assert (code, told["reason"], told["certain"]) == (1, "no_grant", True)
        grant = signing.granted(land)
        code, told = self.ask("--fingerprint", land.version.digest)
        assert (code, told["allowed"]) == (0, True), told
        assert told["subject"] == {"key": "model-a", "version": 1, "digest": land.version.digest}
        assert LedgerEntry.objects.filter(uid=told["entry"]["id"]).exists()
        code, told = self.ask("--fingerprint", DIGEST)
        assert (code, told["reason"]) == (1, "unknown_fingerprint")
        revoke_grant(actor=signing.actor_of(land.security), grant=grant, reason="enough")
        code, told = self.ask()
        assert (code, told["reason"], told["certain"]) == (1, "grant_revoked", True)
        assert self.ask("--observe")[0] == 0

    def test_many_are_asked_at_once(self, land: signing.Ground) -> None:
        signing.granted(land)
        gate = Gate(os.environ["WRITEGATE_SERVER"], token=os.environ["WRITEGATE_TOKEN"])
        answers = gate.check_all(
            [Question("model-a", "hr-prod", type="model"), Question("model-z", "hr-prod", type="model"), Question("", "hr-prod")]
        )
        assert [(one.allowed, one.certain) for one in answers] == [(True, True), (False, True), (False, False)], answers

    def test_a_token_for_nothing_of_it_can_tell_nothing(self, land: signing.Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        made = create_token(actor=world.ACTOR, name="reader", scopes=["read"], person=land.asker.person)
        for secret in (made.secret, "wg_unknown"):
            monkeypatch.setenv("WRITEGATE_TOKEN", secret)
            code, told = self.ask()
            assert (code, told["reason"], told["certain"]) == (2, "refused", False)


def writegate(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "compliance.client", *arguments],
        cwd=ROOT,
        env=clean_environment(PATH=os.environ["PATH"], **settings),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
