"""`writegate check`: ask the gate before a deployment, and end with 0 only where it allows."""

import argparse
import json
import re
import time
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from compliance.client.access_requests import denied_value, file_request
from compliance.client.answers import Answer, Question, cannot_tell, numbered_key
from compliance.client.ask import file_and_wait, read_end
from compliance.client.bundle import ask_bundle
from compliance.client.fingerprint import fingerprint
from compliance.client.gate import Gate
from compliance.client.http import AddressRefused, NoAnswer, Server
from compliance.client.options import read_token, server_address
from compliance.client.outcome import Refused, plain
from compliance.client.versions import version_digest

ALLOWED, DENIED, CANNOT_TELL = 0, 1, 2
DECISION_PATH = "/api/v1/decisions/"
OBSERVED = 0
"""What observing ends with, whatever the answer."""

_NEXT = {
    "request": "people can sign this: ask them with --request",
    "retry": "ask the gate again",
    "none": "neither a request nor waiting would change this",
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|<>&~-])")


def run_check(given: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Ask the gate and tell what it answered; returns the exit code."""
    question = Question(given.subject, given.system, given.action, given.fingerprint, given.observe, given.type)
    url = ""
    try:
        if given.offline is not None:
            answer = ask_bundle(given, question)
        else:
            server = Server(server_address(given), read_token(given.token_file))
            url = server.url
            answer = _ask(given, server, question)
            if given.request:
                answer = _request(given, server, answer, err)
    except (Refused, AddressRefused) as refused:
        answer = cannot_tell(question, "refused", str(refused))
    except NoAnswer as failure:
        answer = cannot_tell(question, "no_answer", str(failure))
    if given.json:
        print(json.dumps(_as_value(answer, url), indent=2), file=out)
    elif not given.quiet:
        _print(answer, url, out)
    if given.summary is not None:
        _summarise(given.summary, answer, url, err)
    if given.observe:
        _tell_observer(answer, err)
        return OBSERVED
    if answer.allowed:
        return ALLOWED
    return DENIED if answer.certain else CANNOT_TELL


def _ask(given: argparse.Namespace, server: Server, question: Question) -> Answer:
    """Return the gate's answer, all within one time limit. Raises `Refused`, `NoAnswer`."""
    until = time.monotonic() + given.timeout
    if given.fingerprint_of is not None:
        question = _with_fingerprint(given.fingerprint_of, server, question, until, given.retries)
    left = until - time.monotonic()
    if left <= 0:
        raise NoAnswer("the time limit was reached before the gate was asked")
    gate = Gate(server.url, token=server.token, timeout=left, retries=given.retries, allow_http=given.allow_http)
    asked = asdict(question)
    return gate.check(**asked)


def _request(given: argparse.Namespace, server: Server, answer: Answer, err: TextIO) -> Answer:
    """Ask people for what was denied, and return the gate's answer after that; the first one, where nothing came of it.

    Raises `Refused`, `NoAnswer`.
    """
    if answer.allowed or not answer.certain:
        return answer
    if answer.requestable_until is None:
        after = f": ask again in {answer.retry_after} seconds" if answer.retry_after is not None else ""
        print(f"no request was filed: none would change this answer{after}", file=err)
        return answer
    until = None if given.until is None else datetime.fromisoformat(read_end(given.until))
    value = denied_value(answer, justification=given.reason, until=until)
    task = file_and_wait(given, server, lambda: file_request(server, value, timeout=given.timeout, retries=given.retries), err)
    if isinstance(task, int) or not task.is_approved:
        return answer
    return _ask(given, server, replace(answer.question, approval=task.approval))


def _with_fingerprint(directory: Path, server: Server, question: Question, until: float, retries: int) -> Question:
    """Return the question with the digest of the version that a directory states, as the service would pin it now."""
    found = fingerprint(directory)
    if question.type != "alias" and found.key not in (question.subject, numbered_key(question.subject)):
        raise Refused(f"`{directory}` states the agent `{found.key}`, not `{question.subject}`")
    digest = version_digest(server, found, until=until, retries=retries)
    return replace(question, fingerprint=digest)


def _lines(answer: Answer) -> list[str]:
    """Return what was answered, a line a reason."""
    asked = answer.question
    if answer.allowed and answer.subject is not None and answer.valid_until is not None:
        named = plain(f"{answer.subject.key}@{answer.subject.version}")
        return [
            f"allow  {named} may {plain(asked.action)} at {plain(asked.system)}, until {answer.valid_until:%Y-%m-%dT%H:%M:%SZ}"
        ]
    return [f"DENY  {one.code}: {one.message}" if one.message else f"DENY  {one.code}" for one in answer.reasons]


def _facts(answer: Answer, url: str) -> list[tuple[str, str]]:
    """Return what finds the answer again, as words and texts."""
    rows = []
    if not answer.allowed and not answer.certain:
        rows.append(("undecided", "there is no answer to rely on, which counts as a deny"))
    if answer.evaluation_id:
        rows.append(("evaluation", answer.evaluation_id))
    if answer.entry is not None:
        rows.append(("entry", answer.entry.id))
    if answer.evaluation_id and not answer.allowed:
        rows.append(("explain it", f"{url}{DECISION_PATH}{answer.evaluation_id}"))
    if answer.request_id:
        rows.append(("request id", answer.request_id))
    if answer.next_action:
        again = f" in {answer.retry_after} seconds" if answer.retry_after is not None else ""
        rows.append(("next", f"{_NEXT[answer.next_action]}{again}"))
    return rows


def _print(answer: Answer, url: str, out: TextIO) -> None:
    for line in _lines(answer):
        print(line, file=out)
    for word, text in _facts(answer, url):
        print(f"  {word.ljust(10)}  {text}", file=out)


def _as_value(answer: Answer, url: str) -> dict[str, Any]:
    asked = answer.question
    found: dict[str, Any] = {
        "allowed": answer.allowed,
        "certain": answer.certain,
        "reason": answer.reason,
        "reasons": [{"code": one.code, "message": one.message, "detail": dict(one.detail)} for one in answer.reasons],
        "subject": asked.subject if answer.subject is None else answer.subject._asdict(),
        "system": asked.system,
        "action": asked.action,
        "fingerprint": asked.fingerprint,
        "observe": asked.observe,
        "evaluation_id": answer.evaluation_id,
        "evaluated_at": answer.evaluated_at,
        "valid_until": answer.valid_until.isoformat() if answer.valid_until is not None else "",
        "entry": answer.entry._asdict() if answer.entry is not None else None,
        "request_id": answer.request_id,
        "next_action": answer.next_action,
        "retry_after": answer.retry_after,
        "access_request": denied_value(answer) if answer.requestable_until is not None else None,
        "server": url,
    }
    return {name: value for name, value in found.items() if value not in (None, "")}


def _tell_observer(answer: Answer, err: TextIO) -> None:
    if answer.allowed:
        return
    print("=" * 72, file=err)
    print("WOULD DENY: without --observe this step would have failed", file=err)
    for line in _lines(answer):
        print(f"  {line}", file=err)
    print("=" * 72, file=err)


def _summarise(file: Path, answer: Answer, url: str, err: TextIO) -> None:
    """Append the answer to a file as Markdown. That it cannot be written changes no answer."""
    asked = answer.question
    head = "allow" if answer.allowed else "WOULD DENY" if asked.observe else "DENY"
    lines = [f"### Writegate: {head}", "", f"{_shown(asked.subject)} to {_shown(asked.action)} at {_shown(asked.system)}", ""]
    if answer.allowed:
        lines += [f"- {_shown(line)}" for line in _lines(answer)]
    lines += [f"- **{_shown(one.code)}** {_shown(one.message)}".rstrip() for one in answer.reasons]
    lines += [f"- {word}: {_shown(text)}" for word, text in _facts(answer, url)]
    try:
        with file.open("a", encoding="utf-8", errors="replace") as stream:
            stream.write("\n".join(lines) + "\n\n")
    except OSError as error:
        print(f"the summary cannot be written to {file}: {error.strerror}", file=err)


def _shown(text: str) -> str:
    """Return a text as Markdown that shows it letter by letter."""
    return _MARKDOWN.sub(r"\\\1", plain(text))
