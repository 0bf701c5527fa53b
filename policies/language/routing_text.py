"""From the bytes of a gateway's configuration to plain values with their lines: YAML 1.2, read strictly where it decides who answers.

Unlike a policy, such a file is written for somebody else and holds much that is none of our business: scalars are kept as they are
written and judged only where they are used. What could be read in two ways is refused: duplicate keys, anchors, aliases, tags,
directives, second documents, and nesting that is too deep.

Files of this kind hold keys and passwords, and a slip makes anything of them: no message repeats a word of the text, only its place.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from evaluations.kernel.errors import InputRefused, Problem

MAX_BYTES = 1024 * 1024
MAX_NESTING = 16
MAX_PROBLEMS = 50
_EMPTY = frozenset({"", "~", "null", "Null", "NULL"})
_SWITCHES = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class Text(str):
    """A scalar as it is written. `line` is where it stands (from 1)."""

    __slots__ = ("line",)
    line: int


class Items(list[Any]):
    """A list, with the line where it begins."""

    line: int = 0


class Members(dict[str, Any]):
    """A mapping, with the line where it begins, and of each key the line in `lines`."""

    line: int = 0
    lines: Mapping[str, int]


class Switch:
    """`true` or `false`, not in quotes."""

    def __init__(self, *, on: bool, line: int) -> None:
        self.on, self.line = on, line


def read_text(text: bytes, *, filename: str = "") -> Members:
    """Return the mapping that a text is. Raises `InputRefused` naming every line with what stands there and is not read."""
    if len(text) > MAX_BYTES:
        raise InputRefused([Problem(f"it has {len(text)} bytes; at most {MAX_BYTES} are read", filename, code="too_long")])
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise InputRefused([Problem("it is not UTF-8 text", filename, line, code="encoding", hint="save it as UTF-8")]) from None
    reader = _Reader(decoded.removeprefix("\ufeff"), filename)
    root = reader.read()
    if not reader.problems and not isinstance(root, Members):
        reader.note(1, "it is no mapping of keys to values", "shape", "begin with `model_list:` or `openrouter_routes:`")
    if reader.problems or not isinstance(root, Members):
        raise InputRefused(reader.problems)
    return root


class _Stop(Exception):
    """Reading cannot go on; the problem is already noted."""


class _Reader:
    def __init__(self, text: str, filename: str) -> None:
        self._text = text
        self._filename = filename
        self.problems: list[Problem] = []

    def note(self, line: int, message: str, code: str, hint: str = "") -> None:
        self.problems.append(Problem(message, self._filename, line, code=code, hint=hint))
        if len(self.problems) >= MAX_PROBLEMS:
            raise _Stop

    def read(self) -> Any:
        try:
            return self._document(iter(YAML(typ="rt", pure=True).parse(self._text)))
        except _Stop:
            return None
        except ReaderError as error:
            self._broken(self._text.count("\n", 0, error.position) + 1)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._broken(1 if mark is None else mark.line + 1)
        except (YAMLError, RecursionError, ValueError):
            self._broken(1)
        return None

    def _broken(self, line: int) -> None:
        # What the scanner says may quote the text, and the text may be a password.
        hint = "look at this line and the one before"
        self.problems.append(Problem("this is not YAML", self._filename, line, code="yaml", hint=hint))

    def _document(self, events: Iterator[Any]) -> Any:
        root: Any = None
        documents = 0
        for event in events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.note(event.start_mark.line + 1, "a second document begins here", "documents", "write one a file")
                    return root
                if event.version is not None or event.tags:
                    self.note(1, "directives such as `%YAML` are not read", "directive", "leave it out")
            elif isinstance(event, ScalarEvent | AliasEvent | MappingStartEvent | SequenceStartEvent):
                root = self._node(event, events, 1)
        return root

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Any:
        line = event.start_mark.line + 1
        if isinstance(event, AliasEvent):
            self.note(line, "an alias is not read", "alias", "write the value out")
            return None
        if event.anchor is not None:
            self.note(line, "an anchor is not read", "anchor", "write the value out where it is used")
        if event.tag is not None:
            self.note(line, "a tag is not read", "tag", "leave it out")
        if isinstance(event, ScalarEvent):
            return _scalar(event, line)
        if depth > MAX_NESTING:
            self.note(line, f"more than {MAX_NESTING} levels of nesting", "nesting", "such a file needs fewer")
            raise _Stop
        if isinstance(event, SequenceStartEvent):
            items = Items()
            items.line = line
            while not isinstance(inner := next(events), SequenceEndEvent):
                items.append(self._node(inner, events, depth + 1))
            return items
        return self._mapping(events, depth, line)

    def _mapping(self, events: Iterator[Any], depth: int, line: int) -> Members:
        members, lines = Members(), dict[str, int]()
        members.line, members.lines = line, lines
        while not isinstance(event := next(events), MappingEndEvent):
            at = event.start_mark.line + 1
            self._node(event, events, depth + 1)
            value = self._node(next(events), events, depth + 1)
            if not isinstance(event, ScalarEvent):
                self.note(at, "a key is a name, not a list or a mapping", "key")
                continue
            name = str(event.value)
            if name in lines:
                hint = f"it is already in line {lines[name]}; keep one of the two"
                self.note(at, "a key stands here for the second time", "duplicate_key", hint)
                continue
            lines[name], members[name] = at, value
        return members


def _scalar(event: ScalarEvent, line: int) -> Any:
    text = str(event.value)
    if event.style is None:
        if text in _EMPTY:
            return None
        if text in _SWITCHES:
            return Switch(on=_SWITCHES[text], line=line)
    found = Text(text)
    found.line = line
    return found
