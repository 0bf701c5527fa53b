"""What the commands that talk to a service end with, and how they say why not."""

import re
from collections.abc import Mapping
from typing import Any, TextIO

from compliance.client.http import Reply

DONE, COULD_NOT, REFUSED = 0, 1, 2
SHOWN_PROBLEMS = 50
MAX_SHOWN = 500
BODY_NAME = "request-body.json"
"""What a service calls the body of a request, which whoever runs a command never saw."""


_PART_OF_SECOND = re.compile(r"(?<=\d)\.\d+(?=Z\Z)")


class Refused(Exception):
    """What was given cannot be right, or a directory states no agent; the text says what to mend."""


def explain(reply: Reply, err: TextIO, *, what: str, file: str = "") -> int:
    """Say why a service did not do it; returns the exit code: trouble of the server is `COULD_NOT`, all else `REFUSED`.

    `what` completes "could not …". The findings of a problem document are told one a line, about `file` where it names the body.
    """
    problem: Mapping[str, Any] = reply.value if isinstance(reply.value, dict) else {}
    detail = plain(problem.get("detail") or "no reason was given").removeprefix(f"{BODY_NAME}, ")
    print(f"{f'could not {what}' if reply.is_trouble else 'refused'}: {detail} (status {reply.status})", file=err)
    tell_findings(problem.get("problems"), err, file=file)
    if problem.get("request_id"):
        print(f"  request id {plain(problem['request_id'])}", file=err)
    return COULD_NOT if reply.is_trouble else REFUSED


def tell_findings(findings: object, err: TextIO, *, file: str = "") -> None:
    """Tell a service's findings, one a line, about `file` where it names the body."""
    for finding in (findings if isinstance(findings, list) else [])[:SHOWN_PROBLEMS]:
        if isinstance(finding, dict):
            said = "; ".join(plain(part) for part in (finding.get("message"), finding.get("hint")) if part)
            print("  " + " ".join(part for part in (plain(_place(finding, file)), said) if part), file=err)


def plain(text: object) -> str:
    """Return a server's text fit for a terminal: what cannot be shown could also move the cursor."""
    return "".join(letter if letter.isprintable() else "�" for letter in str(text)[:MAX_SHOWN])


def whole_seconds(text: object) -> str:
    """Return an instant that a server wrote, without the part of a second, which nobody reads."""
    return _PART_OF_SECOND.sub("", plain(text))


def counted(number: int, word: str) -> str:
    """Return a number with its word, in the plural where it is not one."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _place(finding: Mapping[str, Any], file: str) -> str:
    parts = [file] if file else []
    parts += [f"{word} {finding[word]}" for word in ("line", "column", "row") if finding.get(word)]
    parts += [f"`{finding['field']}`"] if finding.get("field") else []
    return f"{', '.join(parts)}:" if parts else ""
