"""From policy bytes to a tree with places: the one reader of policy texts, YAML 1.2 and (being part of it) JSON.

A scanner cuts the text into events; this module builds the tree and resolves scalars itself, because a gate must not be read in
two ways:

- numbers are taken exactly from their text as `Decimal`, never through a float;
- only `true`, `false` and plain decimals are anything but text; a plain scalar that some reader of YAML would take for
  something else than its letters (`off`, `1_000`, `1:30`, `0x1F`, `1e3`, `.nan`, `~`, a date) is refused unless quoted;
- duplicate keys, anchors, aliases, tags, directives and second documents are refused.

Every problem is collected, with the line and column (from 1) where it stands.

`ruamel.yaml` is the scanner that decides. It is written in Python, so a text is first tried with libyaml's, some ten times as fast:
where a plain text without text blocks (which the two read differently) has no problem at all there, its tree is taken, and in every
other case ruamel's answer. Both build by the same code; tests hold the two against each other.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml import events as ruamel_events
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError
from yaml import events as libyaml_events
from yaml.error import YAMLError as LibyamlError

from evaluations.kernel.errors import Problem
from evaluations.kernel.numbers import NotADecimal, parse_decimal

try:
    CParser: Any = import_module("yaml._yaml").CParser
except ImportError:  # PyYAML built without libyaml
    CParser = None

MAX_BYTES = 256 * 1024
MAX_FAST_BYTES = 32 * 1024
"""A longer text is nobody's policy, and reading it twice would cost more than its refusal may."""
MAX_NESTING = 16
MAX_VALUES = 5_000
"""Keys, values, lists and mappings of one text, at most: some tenths of a second of reading."""

_SHOWN = 60

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?\Z")
_NUMBER_ALONE = "write a number alone, as in `at_least: 80`; `at_least` and `at_most` say the side"
_SWITCHES = frozenset({"yes", "no", "on", "off", "true", "false", "null"})
# What other readers take for numbers, times or dates. Versions such as 2026-07 are text for all of them.
_SURPRISING = re.compile(
    r"""[-+]?(
        0[0-7_]+ | 0o[0-7_]+ | 0x[0-9a-f_]+ | 0b[01_]+                  # other bases
      | [0-9][0-9_]*(\.[0-9_]*)?([e][-+]?[0-9]+)?                       # signs, underscores, exponents, a bare point
      | \.[0-9_]+([e][-+]?[0-9]+)?
      | [0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?                         # base 60
      | \.(inf|nan)
    )\Z
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?\Z                      # dates""",
    re.VERBOSE | re.IGNORECASE,
)
_BEGINNINGS = frozenset("+-.0123456789")
"""What numbers, times and dates begin with, surprising ones too: most scalars need no closer look."""
# What the two scanners are known to take alike: printable, with plain line breaks, no tab, and no mark of a directive or a document.
_PLAIN = re.compile(r"[\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff]*\Z")
_MARKS = re.compile(r"^(%|---|\.\.\.)", re.MULTILINE)


@dataclass(slots=True)
class Node:
    """One place of the text. `value` is str, bool or `Decimal` for a scalar, a dict of name → Node for a mapping, a list
    of Node for a sequence, and `BROKEN` where a problem was already reported. `inline` is true where a scalar stands in
    one line as written, so that places inside it can be named; `lead` is the width of its opening quote."""

    value: Any
    line: int
    column: int
    inline: bool = False
    lead: int = 0
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)


class _Broken:
    """Stands where a value was refused, so that one mistake is reported once."""

    def __repr__(self) -> str:
        return "BROKEN"


BROKEN = _Broken()


def read_document(text: bytes, *, filename: str = "") -> tuple[Node | None, list[Problem]]:
    """Return the tree of a policy text (None where there is none) and every problem found on the way."""
    if len(text) > MAX_BYTES:
        return None, [Problem(f"the text has {len(text)} bytes; at most {MAX_BYTES} are read", filename, 1, 1, code="too_long")]
    if text.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        problem = Problem(
            "the text begins with a byte order mark", filename, 1, 1, code="encoding", hint="save it as UTF-8 without one"
        )
        return None, [problem]
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - (text.rfind(b"\n", 0, error.start) + 1) + 1
        return None, [
            Problem(
                f"byte 0x{text[error.start]:02x} is not UTF-8",
                filename,
                line,
                column,
                code="encoding",
                hint="save the text as UTF-8",
            )
        ]
    root = _read_fast(text, decoded)
    if root is not None:
        return root, []
    return read_exactly(decoded, filename)


def read_exactly(text: str, filename: str = "") -> tuple[Node | None, list[Problem]]:
    """Return the tree and every problem as the scanner gives them that decides."""
    builder = _Builder(text, filename, ruamel_events)
    return builder.build(), builder.problems


def _read_fast(text: bytes, decoded: str) -> Node | None:
    """Return the tree of a plain text without any problem, None for every other one."""
    if CParser is None or len(text) > MAX_FAST_BYTES or not _PLAIN.match(decoded) or _MARKS.search(decoded):
        return None
    builder = _Builder(decoded, "", libyaml_events)
    parser = CParser(text)
    try:
        root = builder.read(iter(parser.get_event, None))
    except (_Stop, LibyamlError, RecursionError, ValueError):
        return None
    finally:
        parser.dispose()
    return None if builder.problems else root


def shown(text: str) -> str:
    """Return user input for a message: in back-ticks, in one line, shortened."""
    line = " ".join(text.split())
    return f"`{line if len(line) <= _SHOWN else line[: _SHOWN - 1] + '…'}`"


class _Stop(Exception):
    """Reading cannot go on; the problem is already noted."""


class _Builder:
    """Builds the tree. `kinds` is the module of the scanner's events: both name them alike."""

    def __init__(self, text: str, filename: str, kinds: Any) -> None:
        self.text = text
        self.filename = filename
        self.kinds = kinds
        self.problems: list[Problem] = []
        self.values = 0

    def note(self, place: Any, message: str, code: str, hint: str = "") -> None:
        line, column = (place.line + 1, place.column + 1) if hasattr(place, "line") else place
        self.problems.append(Problem(message, self.filename, line, column, code=code, hint=hint))

    def build(self) -> Node | None:
        if self.text.lstrip().startswith("%"):
            self.note((1, 1), "directives such as `%YAML` are not read", "directive", "begin with `apiVersion: writegate/v1`")
            return None
        try:
            return self.read(iter(YAML(typ="rt", pure=True).parse(self.text)))
        except _Stop:
            return None
        except ReaderError as error:
            line = self.text.count("\n", 0, error.position) + 1
            column = error.position - (self.text.rfind("\n", 0, error.position) + 1) + 1
            self.note((line, column), f"the character U+{ord(self.text[error.position]):04X} may not stand in YAML", "yaml")
        except MarkedYAMLError as error:
            self._note_syntax(error)
        except (YAMLError, RecursionError, ValueError) as error:
            self.note((1, 1), f"this is not YAML: {error}", "yaml")
        return None

    def _note_syntax(self, error: MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark is not None else (0, 0)
        lines = self.text.splitlines() or [""]
        source = lines[min(line, len(lines) - 1)].strip()
        what = (error.problem or "unreadable").replace("\n", " ")
        if "block scalar" in (error.context or ""):
            what = f"{shown(source)} begins a text block where a value is meant"
            self.note((line + 1, column + 1), what, "yaml", _NUMBER_ALONE)
            return
        hint = _NUMBER_ALONE if line < len(lines) and lines[line][column : column + 1] == ">" else ""
        self.note((line + 1, column + 1), f"this is not YAML: {what}, at {shown(source)}", "yaml", hint)

    def read(self, events: Iterator[Any]) -> Node | None:
        """Return the tree that the events give. Raises `_Stop`, and what the scanner raises."""
        kinds = self.kinds
        root: Node | None = None
        documents = 0
        for event in events:
            if isinstance(event, kinds.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.note(event.start_mark, "a second document begins here", "documents", "write one policy a file")
                    return root
            elif isinstance(event, kinds.NodeEvent):
                root = self._node(event, events, 1)
            elif isinstance(event, kinds.StreamStartEvent):
                continue
        if root is None:
            self.note((1, 1), "the text is empty", "empty", "begin with `apiVersion: writegate/v1`")
        return root

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        mark = event.start_mark
        place = (mark.line + 1, mark.column + 1)
        self.values += 1
        if self.values > MAX_VALUES:
            self.note(mark, f"more than {MAX_VALUES} keys and values stand in this text", "too_long", "split the policy")
            raise _Stop
        if isinstance(event, self.kinds.AliasEvent):
            self.note(mark, f"the alias `*{event.anchor}` is not read", "alias", "write the value out")
            return Node(BROKEN, *place)
        if event.anchor is not None:
            self.note(mark, f"the anchor `&{event.anchor}` is not read", "anchor", "write the value out where it is used")
        if event.tag is not None:
            self.note(mark, f"the tag `{event.tag}` is not read", "tag", "leave it out")
        if isinstance(event, self.kinds.ScalarEvent):
            return self._scalar(event, place)
        if depth > MAX_NESTING:
            self.note(mark, f"more than {MAX_NESTING} levels of nesting", "nesting", "a policy needs fewer")
            raise _Stop
        if isinstance(event, self.kinds.SequenceStartEvent):
            items: list[Node] = []
            while not isinstance(inner := next(events), self.kinds.SequenceEndEvent):
                items.append(self._node(inner, events, depth + 1))
            return Node(items, *place)
        return self._mapping(events, depth, place)

    def _mapping(self, events: Iterator[Any], depth: int, place: tuple[int, int]) -> Node:
        entries: dict[str, Node] = {}
        node = Node(entries, *place)
        while not isinstance(inner := next(events), self.kinds.MappingEndEvent):
            key = self._node(inner, events, depth + 1)
            name = self._key(key, inner)
            inner = next(events)
            if isinstance(inner, self.kinds.ScalarEvent) and not inner.value and not inner.style:
                # Noted at its key: an empty value has no place of its own.
                self.note(
                    (key.line, key.column), f"{shown(name or '')} has no value", "no_value", "write one, or leave the key out"
                )
                value = Node(BROKEN, key.line, key.column)
            else:
                value = self._node(inner, events, depth + 1)
            if name is None:
                continue
            if name in entries:
                first = node.keys[name][0]
                self.note(
                    (key.line, key.column),
                    f"the key {shown(name)} stands here for the second time; it is already in line {first}",
                    "duplicate_key",
                    "keep one of the two",
                )
                continue
            entries[name] = value
            node.keys[name] = (key.line, key.column)
        return node

    def _key(self, key: Node, event: Any) -> str | None:
        if isinstance(key.value, str):
            return key.value
        if isinstance(event, self.kinds.ScalarEvent) and key.value is not BROKEN:
            return str(event.value)  # a number or `true` as a key: known by its text, and unknown to every shape
        if key.value is not BROKEN:
            self.note((key.line, key.column), "a key is a name, not a list or a mapping", "key")
        return None

    def _scalar(self, event: Any, place: tuple[int, int]) -> Node:
        text: str = event.value
        start, end = event.start_mark, event.end_mark
        inline = start.line == end.line and end.column - start.column - len(text) in {0, 2}
        if event.style:
            if event.style in "|>" and self.kinds is libyaml_events:
                raise _Stop
            return Node(self._quoted(text, event), *place, inline=inline and event.style in "'\"", lead=1)
        if text in {"true", "false"}:
            return Node(text == "true", *place)
        if text == "":
            self.note(place, "there is no value here", "no_value", "write one, or leave the key out")
            return Node(BROKEN, *place)
        begins_as_number = text[0] in _BEGINNINGS
        if begins_as_number and _NUMBER.match(text):
            return Node(self._number(text, place), *place)
        if text == "~" or text.lower() in _SWITCHES:
            self.note(
                place,
                f"{shown(text)} is read as a switch by some and as text by others",
                "surprising_scalar",
                f'write `true` or `false`, or "{text}" in quotes',
            )
            return Node(BROKEN, *place)
        if begins_as_number and _SURPRISING.match(text):
            self.note(
                place,
                f"{shown(text)} is read as a number or a time by some and as text by others",
                "surprising_scalar",
                f'write plain digits such as 1000 or 80.5, or "{text}" in quotes',
            )
            return Node(BROKEN, *place)
        return Node(text, *place, inline=inline)

    def _number(self, text: str, place: tuple[int, int]) -> Decimal | _Broken:
        try:
            return parse_decimal(text, field="number")
        except NotADecimal as error:
            self.note(place, str(error).replace("`number` is ", "the number ", 1), "number")
            return BROKEN

    def _quoted(self, text: str, event: Any) -> str | _Broken:
        try:
            # JSON writes characters beyond U+FFFF as two escapes, which the scanner leaves as two halves.
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            self.note(
                event.start_mark, "half of a surrogate pair stands alone in this text", "encoding", "write the character itself"
            )
            return BROKEN
