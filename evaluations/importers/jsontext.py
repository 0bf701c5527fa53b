"""JSON read strictly: numbers keep their text, duplicate keys are refused, and any place can be found again by line.

The standard library's parser does the work. Where something is wrong, a slow second walk over the text (`locate`) finds
the lines, so that the usual file pays nothing for good messages.
"""

import contextlib
import json
import re
from collections.abc import Iterable
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from evaluations.importers.base import Problems
from evaluations.importers.fields import NumberText, shown

MAX_DEPTH = 32

Path = tuple[str | int, ...]

_TOKEN = re.compile(r"[^ \t\r\n]")
_SCALAR_END = re.compile(r"[\s,\]}]|\Z")
_LONGEST_NUMBER = 400


class Located(NamedTuple):
    """The lines of the values of a JSON text by path, and its duplicate keys as (path, line, first line)."""

    lines: dict[Path, int]
    duplicates: list[tuple[Path, int, int]]


def parse(text: str, problems: Problems, *, line: int = 1) -> Any:
    """Return the value of a JSON text whose first line is line `line` of the file.

    Numbers, and the words NaN and Infinity, come as `NumberText`. Raises `InputRefused` for what is no JSON (naming
    line and column), for duplicate keys (each with both lines), and for nesting beyond the parser's depth.
    """
    value: Any = None
    doubled = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # The hook does not know where it is, and what follows may be no JSON yet: places are looked up afterwards.
        nonlocal doubled
        made = dict(pairs)
        doubled = doubled or len(made) != len(pairs)
        return made

    try:
        value = json.loads(
            text,
            object_pairs_hook=members,
            parse_float=NumberText,
            parse_int=NumberText,
            parse_constant=NumberText,
        )
    except JSONDecodeError as error:
        broken_off = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        message = "the JSON breaks off" if broken_off else f"this is no JSON: {_lower(error.msg)}"
        hint = "the file looks truncated: fetch it again" if broken_off else "correct it"
        problems.add(message, line=error.lineno + line - 1, column=error.colno, code="malformed", hint=hint)
    except RecursionError:
        problems.add("the JSON is nested too deeply", line=line, code="malformed", hint="no form of ours is nested so")
    problems.raise_any()
    if doubled:
        _report_duplicates(text, problems, line)
    problems.raise_any()
    return value


def locate(text: str) -> Located:
    """Return the line of every value down to `MAX_DEPTH`, and the duplicate keys, of a text that is valid JSON."""
    lines: dict[Path, int] = {}
    duplicates: list[tuple[Path, int, int]] = []
    with contextlib.suppress(RecursionError):  # nested beyond sense; what was found so far is right
        _Walker(text, lines, duplicates).value(())
    return Located(lines, duplicates)


def line_of(path: Path, located: Located) -> int:
    """Return the line of a value, or of the nearest value around it where it is absent."""
    while path and path not in located.lines:
        path = path[:-1]
    return located.lines.get(path, 1)


def path_text(path: Iterable[str | int]) -> str:
    """Return a path as people write it: `evidence[3].observations[0].value`."""
    parts: list[str] = []
    for step in path:
        parts.append(f"[{step}]" if isinstance(step, int) else f".{step}" if parts else step)
    return "".join(parts)[:200]


def _report_duplicates(text: str, problems: Problems, line: int) -> None:
    for path, second, first in locate(text).duplicates:
        problems.add(
            f"the key stands twice, first on line {first + line - 1}",
            line=second + line - 1,
            field=path_text(path),
            code="duplicate_key",
            hint="keep one of them",
        )
    if not problems:  # too deep to be found again
        problems.add("a key stands twice in one object", line=line, code="duplicate_key", hint="keep one of them")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


class _Walker:
    def __init__(self, text: str, lines: dict[Path, int], duplicates: list[tuple[Path, int, int]]) -> None:
        self.text = text
        self.lines = lines
        self.duplicates = duplicates
        self.at = 0
        self.line = 1
        self.counted = 0

    def here(self) -> int:
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def space(self) -> str:
        """Skip white space; return the next character."""
        found = _TOKEN.search(self.text, self.at)
        self.at = found.start() if found else len(self.text)
        return self.text[self.at : self.at + 1]

    def value(self, path: Path) -> None:
        first = self.space()
        if len(path) <= MAX_DEPTH:
            self.lines[path] = self.here()
        if first == "{":
            self.members(path)
        elif first == "[":
            self.items(path)
        elif first == '"':
            _, self.at = scanstring(self.text, self.at + 1, True)
        else:
            end = _SCALAR_END.search(self.text, self.at)
            self.at = end.start() if end else len(self.text)

    def members(self, path: Path) -> None:
        self.at += 1
        seen: dict[str, int] = {}
        while self.space() != "}":
            if self.text[self.at] == ",":
                self.at += 1
                self.space()
            line = self.here()
            key, self.at = scanstring(self.text, self.at + 1, True)
            if key in seen:
                self.duplicates.append(((*path, key), line, seen[key]))
            else:
                seen[key] = line
            self.space()
            self.at += 1  # the colon
            self.value((*path, key))
        self.at += 1

    def items(self, path: Path) -> None:
        self.at += 1
        index = 0
        while self.space() != "]":
            if self.text[self.at] == ",":
                self.at += 1
            self.value((*path, index))
            index += 1
        self.at += 1


def kind_of(value: object) -> str:
    """Name the kind of a parsed value, for a message."""
    if isinstance(value, NumberText):
        return f"the number {shown(str(value)[:_LONGEST_NUMBER])}"
    if isinstance(value, str):
        return f"the text {shown(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return "a list" if isinstance(value, list) else "an object"
