"""What comes in at a door and what goes out. Neither is an object of Django's: making those costs as much as judging a question."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

JSON, TEXT = "application/json", "text/plain; charset=utf-8"


class Incoming(NamedTuple):
    """A request: `meta` holds its headers by their CGI names (PEP 3333), `read` returns at most so many bytes of its body."""

    method: str
    path: str
    meta: Mapping[str, Any]
    read: Callable[[int], bytes]


class Outgoing(NamedTuple):
    """An answer: status, body, and the headers that are its own."""

    status: int
    content: bytes
    headers: Mapping[str, str]


def json_answer(value: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None) -> Outgoing:
    """Return a JSON answer."""
    return Outgoing(status, orjson.dumps(value), {"Content-Type": JSON, **(headers or {})})


def text_answer(sentence: str, *, status: int, headers: Mapping[str, str] | None = None) -> Outgoing:
    """Return an error: one sentence."""
    return Outgoing(status, f"{sentence}\n".encode(), {"Content-Type": TEXT, **(headers or {})})
