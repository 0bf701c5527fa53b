"""Shapes of what a gateway's configuration holds: names, lists and mappings, each refused with its place and no word of the file."""

from abc import ABC, abstractmethod
from typing import Any

from evaluations.kernel.errors import InputRefused, Problem
from policies.language.routing_text import MAX_PROBLEMS, Items, Members, Switch, Text

MAX_NAME = 300
NAME_HINT = f"write one line of at most {MAX_NAME} printable characters"


def is_name(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= MAX_NAME and text.isprintable() and text == text.strip()


def line_of(value: object) -> int:
    return int(getattr(value, "line", 0)) if isinstance(value, Text | Items | Members | Switch) else 0


class ShapeReader(ABC):
    """Checks shapes, and keeps what a form's `document` does. What is wrong is noted with its place, never with a word of the file.

    `_names` counts what stands in all lists together.
    """

    def __init__(self, filename: str) -> None:
        self._filename = filename
        self._names = 0
        self.problems: list[Problem] = []

    def strip(self, root: Members) -> dict[str, Any]:
        """Return the stripped document of a text that is read. Raises `InputRefused` with lines."""
        document = self.document(root)
        if self.problems:
            raise InputRefused(self.problems)
        return document

    @abstractmethod
    def document(self, root: Members) -> dict[str, Any]:
        """Return what is kept of a text; what is wrong with it is noted."""

    def note(self, line: int, field: str, message: str, hint: str = "", code: str = "shape") -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(message, self._filename, line or None, field=field, code=code, hint=hint))

    def name(self, item: Members, member: str, field: str, *, line: int = 0) -> str:
        given = item.get(member)
        if isinstance(given, str) and is_name(given):
            return str(given)
        at = item.lines.get(member, 0) if item else 0
        what = "it is missing" if given is None else "it is no name"
        self.note(at or item.line or line, f"{field}.{member}", what, NAME_HINT, "missing" if given is None else "shape")
        return ""

    def mapping(self, item: Members, member: str, field: str) -> Members:
        given = item.get(member)
        if isinstance(given, Members):
            return given
        if given is not None:
            self.note(item.lines[member], field, "it is no mapping of keys to values")
        empty = Members()
        empty.line, empty.lines = item.line, {}
        return empty

    def sequence(self, item: Members, member: str, field: str) -> Items:
        given = item.get(member)
        if isinstance(given, Items):
            return given
        if given is not None:
            self.note(item.lines[member], field, "it is no list", "write one `- ` line for each")
        return Items()

    def items(self, item: Members, member: str, field: str) -> list[tuple[int, Any]]:
        return list(enumerate(self.sequence(item, member, f"{field}.{member}")))
