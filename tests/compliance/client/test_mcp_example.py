"""The MCP gateway example, between a client and a real server process: a tool runs while the gate allows it, and never otherwise."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from pytest_django.live_server_helper import LiveServer

from compliance.services.stopping import suspend_grant
from tests.compliance.client.test_cli import ROOT
from tests.support import grants, signing
from tests.support.asking import ask_token
from tests.support.gate_answers import DIGEST, ODD, SLOW, right, wrong
from tests.support.gate_server import gate_server

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "compliance" / "client" / "examples" / "mcp_gateway.py"
SERVER = ROOT / "tests" / "support" / "mcp_server.py"
WRITE = {"name": "write_record", "arguments": {"text": "x"}}


class Agent:
    """An agent's host: it speaks JSON-RPC over the gateway's stdio. `store` is what the server's tools write to."""

    def __init__(self, process: subprocess.Popen[str], store: Path) -> None:
        self.process, self._store, self._key = process, store, 0

    @property
    def written(self) -> list[str]:
        return self._store.read_text().split() if self._store.exists() else []

    def send(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the gateway ended"
        return json.loads(line)

    def ask(self, method: str, **params: Any) -> Any:
        self._key += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._key, "method": method, "params": params}))
        answer = self.receive()
        assert answer["id"] == self._key
        return answer

    def call(self, tool: str) -> Any:
        return self.ask("tools/call", name=tool, arguments={})


@contextmanager
def session(tmp_path: Path, url: str, token: str = "wg_very-secret", *options: str, subject: str = "hr-agent") -> Iterator[Agent]:
    """Start the gateway before the server, as an agent's host does; the fingerprint is the one that the made-up gate knows."""
    store = tmp_path / "records"
    process = subprocess.Popen(
        [sys.executable, EXAMPLE, "--subject", subject, "--system", "hr-prod", *options, "--", sys.executable, SERVER, store],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "WRITEGATE_SERVER": url, "WRITEGATE_TOKEN": token},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Agent(process, store)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        ended = process.wait(30)
        assert process.stdout is not None
        process.stdout.close()
    assert ended == 0


def error_of(answer: Any) -> tuple[int, str, str]:
    """Return code, first reason and next action of a refusal."""
    error = answer["error"]
    return error["code"], error["data"]["reasons"][0]["code"], error["data"]["next_action"]


FAST = ("--fingerprint", DIGEST, "--timeout", "5", "--retries", "0")


def test_a_tool_runs_when_the_gate_allows_it_and_the_question_says_what_it_does(tmp_path: Path) -> None:
    with gate_server(right) as gate, session(tmp_path, gate.url, "wg_very-secret", *FAST) as agent:
        begun = agent.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
        assert begun["result"]["serverInfo"]["sees"] == [], "the server sees neither token nor gate"
        agent.send('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        agent.call("read_record")
        assert len(agent.ask("tools/list")["result"]["tools"]) == 5
        assert not gate.questions[1:], "only calls are asked about"
        for tool in ("read_record", "write_record", "plain_record", "odd_record", "said_record", "unheard_of"):
            assert agent.call(tool)["result"]["isError"] is False
        assert agent.written == ["write_record", "plain_record", "odd_record", "said_record", "unheard_of"]
        asked = [one.value for one in gate.questions]
    # Before its annotations were seen it might have been anything.
    assert [one["action"]["name"] for one in asked] == ["write", "read", *["write"] * 5]
    assert asked[1] == {
        "subject": {"type": "agent", "id": "hr-agent", "properties": {"fingerprint": DIGEST}},
        "action": {"name": "read"},
        "resource": {"type": "system", "id": "hr-prod"},
    }


def test_a_tool_that_once_wrote_stays_one_that_writes(tmp_path: Path) -> None:
    with gate_server(right) as gate, session(tmp_path, gate.url, "wg_very-secret", *FAST) as agent:
        agent.ask("tools/list")
        agent.ask("tools/list", cursor="turned")
        agent.call("write_record")
        agent.call("read_record")
        assert [one.value["action"]["name"] for one in gate.questions] == ["write", "read"]


def test_a_denial_says_why_and_what_to_do_next(tmp_path: Path) -> None:
    with gate_server(wrong) as gate, session(tmp_path, gate.url, "wg_very-secret", *FAST) as agent:
        answer = agent.ask("tools/call", **WRITE)
        assert error_of(answer) == (-32001, "no_grant", "none"), "this gate says nothing of what comes next"
        assert answer["error"]["message"] == "hr-agent may not write at hr-prod: because of no_grant"
        uid = answer["error"]["data"]["evaluation_id"]
        assert f"{gate.url}/api/v1/decisions/{uid} explains" in answer["error"]["data"]["next_step"]
        assert agent.ask("ping")["result"] == {}, "the session goes on"
        assert agent.written == []


def test_whatever_else_a_gate_answers_the_tool_does_not_run(tmp_path: Path) -> None:
    names = list(ODD)
    with gate_server(*ODD.values(), right) as gate, session(tmp_path, gate.url, "wg_very-secret", *FAST) as agent:
        for name in names:
            answer = agent.ask("tools/call", **WRITE)
            code, reason, action = error_of(answer)
            assert code == (-32001 if name.startswith("deny") else -32603), name
            assert (bool(reason), action) == (True, "none" if name.startswith("deny") else "retry"), name
            assert agent.written == [], name
        assert len(gate.questions) == len(names)
        assert "result" in agent.ask("tools/call", **WRITE)
        assert agent.written == ["write_record"]


@pytest.mark.parametrize("name", SLOW)
def test_a_gate_that_does_not_answer_in_time_refuses(name: str, tmp_path: Path) -> None:
    with (
        gate_server(SLOW[name], right) as gate,
        session(tmp_path, gate.url, "wg_very-secret", *FAST[:2], "--timeout", "0.5") as agent,
    ):
        began = time.monotonic()
        assert error_of(agent.ask("tools/call", **WRITE)) == (-32603, "no_answer", "retry")
        assert time.monotonic() - began < 5
        assert agent.written == []


def test_a_gate_that_is_down_refuses_and_one_that_is_back_does_not(tmp_path: Path) -> None:
    with gate_server(right) as gone:
        url = gone.url
    with session(tmp_path, url, "wg_very-secret", *FAST) as agent:
        answer = agent.ask("tools/call", **WRITE)
        assert error_of(answer) == (-32603, "no_answer", "retry")
        assert "nothing was done" in answer["error"]["data"]["next_step"]
        assert agent.written == []


CALL = '"method": "tools/call", "params": {"name": "write_record"}'
SMUGGLED = {
    "a batch": (f'[{{"jsonrpc": "2.0", "id": 1, {CALL}}}]', -32600, None),
    "two methods": (f'{{"jsonrpc": "2.0", "id": 1, "method": "ping", {CALL}}}', -32700, None),
    "an answer that is a call": (f'{{"jsonrpc": "2.0", "id": 1, "result": {{}}, {CALL}}}', -32600, None),
    "a call to be": (f'{{"jsonrpc": "2.0", "id": 1, {CALL.replace("tools/call", "tools/call_later")}}}', -32001, 1),
    "a notification that is none": (f'{{"jsonrpc": "2.0", "id": 1, {CALL.replace("tools/call", "notifications/x")}}}', -32001, 1),
    "an odd id": (f'{{"jsonrpc": "2.0", "id": [1], {CALL}}}', -32600, None),
    "no tool": ('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ["write_record"]}', -32600, 1),
    "a method that is none": ('{"jsonrpc": "2.0", "id": 1, "method": ["tools/call"]}', -32600, None),
    "no JSON": ("{", -32700, None),
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_nothing_gets_past_by_being_written_otherwise(name: str, tmp_path: Path) -> None:
    line, code, key = SMUGGLED[name]
    with gate_server(wrong) as gate, session(tmp_path, gate.url, "wg_very-secret", *FAST) as agent:
        agent.send(line)
        answer = agent.receive()
        assert (answer["error"]["code"], answer["id"]) == (code, key)
        agent.ask("ping")
        assert (agent.written, gate.questions) == ([], [])


def test_a_call_without_an_id_is_asked_about_too(tmp_path: Path) -> None:
    line = f'{{"jsonrpc": "2.0", {CALL}}}'
    with gate_server(wrong, right) as gate, session(tmp_path, gate.url, "wg_very-secret", *FAST) as agent:
        agent.send(line)
        agent.ask("ping")
        assert (agent.written, len(gate.questions)) == ([], 1)
        agent.send(line)
        agent.ask("ping")
        assert (agent.written, len(gate.questions)) == (["write_record"], 2)


@pytest.mark.parametrize(
    ("url", "token"), [("", "wg_very-secret"), ("http://gate.example.org", "wg_x"), ("https://gate.example.org", "")]
)
def test_it_does_not_begin_without_a_gate_to_ask(url: str, token: str, tmp_path: Path) -> None:
    marker = tmp_path / "began"
    got = subprocess.run(
        [sys.executable, EXAMPLE, "--subject", "a", "--system", "s", "--", "touch", marker],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "WRITEGATE_SERVER": url, "WRITEGATE_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (got.returncode, marker.exists()) == (2, False)
    assert "set WRITEGATE_SERVER and WRITEGATE_TOKEN" in got.stderr


def test_against_the_service_itself_a_grant_that_is_stopped_stops_the_next_call(
    tmp_path: Path, committed_db: object, run_tasks_inline: None
) -> None:
    land = signing.ground()
    version = grants.agent(land)
    live = LiveServer("127.0.0.1")
    try:
        options = ("--fingerprint", version.digest, "--timeout", "30")
        with session(tmp_path, live.url, ask_token(land.asker), *options) as agent:
            agent.ask("tools/list")
            refused = agent.call("write_record")
            assert error_of(refused) == (-32001, "no_grant", "request")
            assert refused["error"]["data"]["access_request"]["template"] == "grant", "where a request is filed about it"
            grant = signing.granted(land._replace(version=version))
            assert agent.call("write_record")["result"]["isError"] is False
            # What may be written may not for that be read: the grant is for `write`.
            assert error_of(agent.call("read_record"))[0] == -32001
            suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="odd")
            refused = agent.call("write_record")
            assert error_of(refused) == (-32001, "grant_suspended", "none")
            assert agent.written == ["write_record"]
            grants.back(land, grant.reload())
            assert agent.call("write_record")["result"]["isError"] is False
        assert agent.written == ["write_record"] * 2
        with session(tmp_path, live.url, ask_token(land.asker), "--fingerprint", DIGEST, "--timeout", "30") as agent:
            assert error_of(agent.call("write_record")) == (-32001, "unknown_fingerprint", "none")
    finally:
        live.stop()
        connections.close_all()
