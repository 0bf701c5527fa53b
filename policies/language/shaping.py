"""Shape problems in our words: pydantic finds them, this module says them, with the place in the text."""

import difflib
import typing
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from evaluations.kernel.errors import Problem
from policies.language.document import BROKEN, Node, shown
from policies.language.leaves import kind_of
from policies.language.shapes import PolicyShape

Place = tuple[str | int, ...]
AnyShape = TypeVar("AnyShape", bound=BaseModel)


def plain_tree(node: Node) -> Any:
    """Return the values of a tree without their places."""
    if isinstance(node.value, dict):
        return {name: plain_tree(item) for name, item in node.value.items()}
    if isinstance(node.value, list):
        return [plain_tree(item) for item in node.value]
    return node.value


def shape(root: Node, filename: str) -> tuple[PolicyShape | None, list[Problem]]:
    """Return the policy as shaped (None where it has problems) and every shape problem."""
    return shape_as(PolicyShape, root, filename)


def shape_as(kind: type[AnyShape], root: Node, filename: str) -> tuple[AnyShape | None, list[Problem]]:
    """Return a tree as shaped by a model (None where it has problems) and every shape problem."""
    try:
        return kind.model_validate(plain_tree(root)), []
    except ValidationError as error:
        found = (_problem(kind, root, dict(item), filename) for item in error.errors(include_url=False))
        return None, [problem for problem in found if problem is not None]


def _problem(shape_: type[BaseModel], root: Node, error: dict[str, Any], filename: str) -> Problem | None:
    if error.get("input") is BROKEN and error["type"] != "extra_forbidden":
        return None
    place: Place = tuple(part for part in error["loc"] if part != "[key]")
    field = dotted(place)
    node, line, column = locate(root, place)
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        known = _known_keys(shape_, place[:-1])
        near = difflib.get_close_matches(str(place[-1]), known, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(known)}"
        return Problem(f"unknown key {shown(str(place[-1]))}", filename, line, column, field=field, code="unknown_key", hint=hint)
    if kind == "missing":
        where = f" in `{dotted(place[:-1])}`" if len(place) > 1 else ""
        return Problem(
            f"`{place[-1]}` is missing{where}; it has no default", filename, line, column, field=field, code="missing_key"
        )
    if kind in {"model_type", "dict_type", "model_attributes_type"}:
        return _wrong_kind(node, "a mapping of keys to values", field, filename, line, column)
    if kind == "list_type":
        return _wrong_kind(node, "a list", field, filename, line, column, "write `[…]`, or one `- ` line for each")
    if kind == "too_short":
        hint = "an empty list would require nothing, and what requires nothing approves nothing"
        return Problem("the list is empty", filename, line, column, field=field, code="empty_list", hint=hint)
    message, hint = context.get("message", error["msg"]), context.get("hint", "")
    return Problem(message, filename, line, column, field=field, code=kind, hint=hint)


def _wrong_kind(node: Node | None, wanted: str, field: str, filename: str, line: int, column: int, hint: str = "") -> Problem:
    held = "something else" if node is None else kind_of(node.value)
    return Problem(f"{held} stands where {wanted} is meant", filename, line, column, field=field, code="shape", hint=hint)


def dotted(place: Sequence[str | int]) -> str:
    """Return a place as people write it: `spec.rules[0].id`."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def locate(root: Node, place: Place) -> tuple[Node | None, int, int]:
    """Return the node at a place and where it stands; the key's or the parent's place where there is no such node."""
    node: Node = root
    line, column = node.line, node.column
    for part in place:
        inner: Node | None = None
        if isinstance(node.value, dict) and isinstance(part, str):
            inner = node.value.get(part)
            line, column = node.keys.get(part, (line, column))
        elif isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
            inner = node.value[part]
        if inner is None:
            return None, line, column
        node = inner
        if not isinstance(node.value, dict | list) or isinstance(part, int):
            line, column = node.line, node.column
    return node, line, column


def _known_keys(shape_: type[BaseModel], place: Place) -> list[str]:
    """Return the keys that may stand in the mapping at a place, by walking the shapes along it."""
    kind: Any = shape_
    for part in place:
        kind = _unwrapped(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            fields = {item.alias or name: item.annotation for name, item in kind.model_fields.items()}
            kind = fields.get(str(part))
        else:
            kind = (typing.get_args(kind) or (None,))[-1]
    kind = _unwrapped(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [item.alias or name for name, item in kind.model_fields.items()]
    return []


def _unwrapped(kind: Any) -> Any:
    """Return a type without `Annotated` and `| None`."""
    while True:
        arguments = typing.get_args(kind)
        if typing.get_origin(kind) is typing.Annotated:
            kind = arguments[0]
        elif type(None) in arguments:
            kind = next(item for item in arguments if item is not type(None))
        else:
            return kind
