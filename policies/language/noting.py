"""Noting problems with their places, and reading a tree that may lack anything."""

import difflib
from collections.abc import Iterable

from evaluations.kernel.errors import Problem
from policies.language.document import Node, shown

Place = tuple[int, int]


class Notes:
    """Collects the problems of one text, in the order found."""

    def __init__(self, root: Node, filename: str) -> None:
        self.root = root
        self.filename = filename
        self.problems: list[Problem] = []

    def note(self, place: Node | Place, message: str, code: str, hint: str = "", field: str = "") -> None:
        line, column = (place.line, place.column) if isinstance(place, Node) else place
        self.problems.append(Problem(message, self.filename, line, column, field=field, code=code, hint=hint))

    def unknown(self, node: Node, kind: str, name: str, known: Iterable[str], code: str = "unknown_name") -> None:
        listed = sorted(known)
        near = difflib.get_close_matches(name, listed, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(f'`{item}`' for item in listed) or 'none'}"
        self.note(node, f"unknown {kind} {shown(name)}", code, hint)

    def own_id(self, node: Node, seen: dict[str, int], what: str, key: str = "id") -> None:
        named = child(node, key)
        name = text_of(named)
        if named is None or not name:
            return
        if name in seen:
            self.note(
                named, f"the {what} {shown(name)} is already named in line {seen[name]}", "duplicate_id", "write another name"
            )
        seen.setdefault(name, named.line)

    def unique(self, nodes: list[Node], what: str) -> None:
        seen: set[str] = set()
        for node in nodes:
            if isinstance(node.value, str):
                if node.value in seen:
                    self.note(node, f"the {what} {shown(node.value)} stands here twice", "duplicate_item", "keep one")
                seen.add(node.value)

    def key_place(self, node: Node | None, key: str) -> Place:
        if node is None:
            return (1, 1)
        return node.keys.get(key, (node.line, node.column))


def child(node: Node | None, key: str) -> Node | None:
    """Return the value under a key, None where there is none."""
    return entries(node).get(key)


def entries(node: Node | None) -> dict[str, Node]:
    """Return a mapping's entries, none where the node is no mapping."""
    return node.value if node is not None and isinstance(node.value, dict) else {}


def items(node: Node | None) -> list[Node]:
    """Return a list's items, none where the node is no list."""
    return node.value if node is not None and isinstance(node.value, list) else []


def text_of(node: Node | None) -> str | None:
    """Return a node's text, None where it has none."""
    return node.value if node is not None and isinstance(node.value, str) else None
