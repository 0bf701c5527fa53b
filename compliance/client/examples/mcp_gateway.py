"""Stands between an agent and an MCP server, and lets a tool be called only while the gate allows it.

    WRITEGATE_SERVER=https://gate.example.org WRITEGATE_TOKEN=… \\
        python mcp_gateway.py --subject hr-agent --fingerprint sha256:… --system hr-prod -- python hr_server.py

The agent's host starts this in place of the server, and speaks MCP to it over stdio; the server behind it never sees the token. Each
`tools/call` is one AuthZEN evaluation: the subject is the agent as whoever starts this names it, with the digest of the version that
runs; the action is `read` where the tool's annotations say `readOnlyHint`, and else `write`; the resource is the system that the
server writes to. The tool runs only on a clear allow, asked for anew each time: a grant that is stopped stops the next call. Everything
else answers the call with an error (codes of COAZ-MCP, draft 1): -32001 the gate says no, -32603 there is no answer to rely on, each
with the reasons and what to do next. What can only read passes; a method that is not known here may do anything, and is refused.

What a server declares as `x-authzen-mapping` is not followed: it is the server's word about itself, and the system is the operator's.
"""  # noqa: INP001 - a file to copy, and no part of a package

import argparse
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from compliance.client.answers import Answer
from compliance.client.gate import AddressRefused, Gate
from compliance.client.http import parse_json
from compliance.client.options import SERVER_VARIABLE, TOKEN_VARIABLE

INVALID_REQUEST, PARSE_ERROR, DENIED, NO_ANSWER = -32600, -32700, -32001, -32603
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
CALL, LIST = "tools/call", "tools/list"
READING = frozenset(
    {
        *("initialize", "ping", LIST, "prompts/list", "prompts/get", "resources/list", "resources/read"),
        *("resources/templates/list", "resources/subscribe", "resources/unsubscribe", "completion/complete", "logging/setLevel"),
    }
)
STEPS = {
    "request": "ask a person to sign this: until then the answer stays no",
    "retry": "nothing was done; try again later, with growing waits",
    "none": "do not try again, and ask nobody to sign: a person has to mend what the reasons name",
}
"""What the gate says comes next (`next_action` of AuthZEN's draft on access requests), for the agent to read."""

Message = dict[str, Any]


class Gateway:
    """One session of an agent with one server. `subject`, `fingerprint` and `system` are what each call is asked about."""

    def __init__(self, gate: Gate, *, subject: str, fingerprint: str | None, system: str, server: str) -> None:
        self._gate = gate
        self._subject, self._fingerprint, self._system, self._server = subject, fingerprint, system, server
        self._asked: set[str] = set()
        self._reads: set[str] = set()
        self._writes: set[str] = set()

    def take(self, line: bytes) -> tuple[Message | None, Message | None]:
        """Return what goes on to the server, and what goes back to the agent, of one line that the agent sent."""
        try:
            # A member that is named twice would mean one thing here and another to the server.
            message = parse_json(line)
        except ValueError:
            return None, _error(None, PARSE_ERROR, "this is no JSON in UTF-8 with each member named once")
        if not isinstance(message, dict):
            return None, _error(None, INVALID_REQUEST, "send one message a line: batches are not read")
        if "method" not in message:
            # The agent's answer to what the server asked of it.
            return (message, None) if "id" in message and ("result" in message or "error" in message) else (None, None)
        method, key = message["method"], message.get("id")
        if not isinstance(method, str) or "result" in message or isinstance(key, bool | list | dict):
            return None, _error(None, INVALID_REQUEST, "this is no request")
        if method == CALL:
            refusal = self._refuse(message)
            # A call without an id is obeyed by some servers, and answered by none.
            return (message, None) if refusal is None else (None, refusal if "id" in message else None)
        if method in READING or (method.startswith("notifications/") and "id" not in message):
            if method == LIST and "id" in message:
                self._asked.add(json.dumps(key))
            return message, None
        return None, _error(
            key, DENIED, "this method is not known here, so nobody can say what it does"
        ) if "id" in message else None

    def learn(self, line: bytes) -> None:
        """Note what a server's answer says of its tools. One that once could write stays one that writes."""
        try:
            message = parse_json(line)
        except ValueError:
            return
        if not isinstance(message, dict) or "method" in message or json.dumps(message.get("id")) not in self._asked:
            return
        self._asked.discard(json.dumps(message.get("id")))
        result = message.get("result")
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else []:
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                notes = tool.get("annotations")
                reads = isinstance(notes, dict) and notes.get("readOnlyHint") is True and notes.get("destructiveHint") is not True
                (self._reads if reads else self._writes).add(tool["name"])

    def action_of(self, tool: object) -> str:
        """Return what calling a tool does to the system; one that nobody listed may write."""
        return "read" if isinstance(tool, str) and tool in self._reads - self._writes else "write"

    def _refuse(self, message: Message) -> Message | None:
        """Ask the gate about a call; return why not, None where it may go on."""
        params = message.get("params")
        tool = params.get("name") if isinstance(params, dict) else None
        if not isinstance(tool, str):
            return _error(message.get("id"), INVALID_REQUEST, "the call names no tool")
        answer = self._gate.check(self._subject, self._system, self.action_of(tool), self._fingerprint)
        return None if answer else _error(message.get("id"), *self._explain(answer))

    def _explain(self, answer: Answer) -> tuple[int, str, Mapping[str, Any]]:
        asked = answer.question
        told = "; ".join(reason.message or reason.code for reason in answer.reasons)
        said = f"{asked.subject} may not {asked.action} at {asked.system}: {told}"
        context = answer.raw.get("context", {}) if answer.certain else {}
        action = context.get("next_action", "none") if answer.certain else "retry"
        step = STEPS.get(action, STEPS["none"])
        if answer.certain:
            step += f"; {self._server.rstrip('/')}/api/v1/decisions/{answer.evaluation_id} explains the answer"
        data = {
            "reasons": [{"code": reason.code, "message": reason.message} for reason in answer.reasons],
            "evaluation_id": answer.evaluation_id,
            "next_action": action,
            "next_step": step,
            # Until when to wait, or where a request for a grant is filed about this very denial.
            **{member: context[member] for member in ("retry_after", "access_request") if member in context},
        }
        return DENIED if answer.certain else NO_ANSWER, said, data


def _error(key: object, code: int, message: str, data: Mapping[str, Any] | None = None) -> Message:
    return {"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": message, **({"data": data} if data else {})}}


class Pipe:
    """A stream that several threads write whole lines to."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._lock = stream, threading.Lock()

    def send(self, line: bytes) -> None:
        with self._lock:
            self._stream.write(line.rstrip(b"\r\n") + b"\n")
            self._stream.flush()


def run(gateway: Gateway, command: Sequence[str]) -> int:
    """Run the server and carry messages both ways until one side ends; returns the server's exit code."""
    kept = {name: text for name, text in os.environ.items() if name not in (TOKEN_VARIABLE, SERVER_VARIABLE)}
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=kept)  # noqa: S603 - the operator's
    if server.stdin is None or server.stdout is None:
        raise RuntimeError("the server has no pipes")
    to_server, to_agent = Pipe(server.stdin), Pipe(sys.stdout.buffer)  # type: ignore[arg-type]
    answers = server.stdout

    def carry_back() -> None:
        for line in answers:
            gateway.learn(line)
            to_agent.send(line)
        # The server is gone: nobody answers any more, and the agent's host sees the end.
        os._exit(server.wait())

    threading.Thread(target=carry_back, daemon=True).start()
    while line := sys.stdin.buffer.readline(MAX_MESSAGE_BYTES + 1):
        if len(line) > MAX_MESSAGE_BYTES:
            print(f"a message is longer than {MAX_MESSAGE_BYTES} bytes", file=sys.stderr)
            break
        if not line.strip():
            continue
        # One after the other: what cancels a call must not come before it.
        onward, back = gateway.take(line)
        if back is not None:
            to_agent.send(json.dumps(back, ensure_ascii=False).encode())
        if onward is not None:
            # Written anew: what goes on is what was read, and no other reading of the same bytes.
            to_server.send(json.dumps(onward).encode())
    server.stdin.close()
    return server.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description="Let an agent call a server's tools only while the gate allows it.")
    parser.add_argument("--subject", required=True, metavar="KEY", help="the agent, as it is registered")
    parser.add_argument(
        "--fingerprint", metavar="DIGEST", help="of the version that runs: `writegate register --quiet` prints it"
    )
    parser.add_argument("--system", required=True, metavar="KEY", help="the system that the server's tools write to")
    parser.add_argument("--timeout", type=float, default=10.0, metavar="SECONDS", help="for one question; default: %(default)g")
    parser.add_argument("--retries", type=int, default=1, metavar="NUMBER", help="after the first attempt; default: %(default)s")
    parser.add_argument("server", nargs="+", metavar="SERVER", help="the command that starts the MCP server, after `--`")
    given = parser.parse_args()
    address, token = (os.environ.get(name, "").strip() for name in (SERVER_VARIABLE, TOKEN_VARIABLE))
    try:
        gate = Gate(address, token=token, timeout=given.timeout, retries=given.retries)
    except (AddressRefused, ValueError) as refused:
        parser.error(f"{refused}: set {SERVER_VARIABLE} and {TOKEN_VARIABLE}")
    named = {"subject": given.subject, "fingerprint": given.fingerprint, "system": given.system}
    return run(Gateway(gate, **named, server=address), given.server)


if __name__ == "__main__":
    sys.exit(main())
