"""The reading copy: an entry as a row of CSV, derived from its bytes alone, with no cell that a spreadsheet would run. Pure."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from evaluations.kernel.tables import safe_cell

HEADER = (
    "index",
    "at",
    "action",
    "actor",
    "on_behalf_of",
    "task_id",
    "target_kind",
    "target_id",
    "old",
    "new",
    "digests",
    "request_id",
    "id",
)

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_special = re.compile(r'[",\r\n]').search


def header_bytes() -> bytes:
    """Return the first row."""
    return (",".join(HEADER) + "\r\n").encode()


def row_bytes(rows: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the rows of (index, entry bytes), as RFC 4180 writes them. Numbers stay numbers, texts are neutralised, values are JSON.

    Raises `ValueError`, `KeyError` or `TypeError` for bytes that are no entry.
    """
    return "".join([_row(index, json.loads(content)) for index, content in rows]).encode()


def _row(index: int, entry: Mapping[str, Any]) -> str:
    actor, target = entry["actor"], entry["target"]
    principal = actor.get("on_behalf_of")
    return (
        f"{index},{_text(entry['at'])},{_text(entry['action'])},{_text(_reference(actor))},"
        f"{_text(_reference(principal)) if principal else ''},{_text(actor.get('task_id', ''))},"
        f"{_text(target['kind'])},{_text(target['id'])},"
        f"{_value(entry['old'])},{_value(entry['new'])},{_value(entry['digests'])},"
        f"{_text(entry['request_id'])},{_text(entry['id'])}\r\n"
    )


def _text(text: str) -> str:
    text = safe_cell(text)
    return _quoted(text) if _special(text) else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _reference(actor: Mapping[str, Any]) -> str:
    return f"{actor['kind']}:{actor['id']}"


def _value(value: Mapping[str, Any] | None) -> str:
    return _quoted(_dumps(value)) if value else ""
