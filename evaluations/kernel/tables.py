"""Plain tables for terminals, and cells that no spreadsheet will run."""

from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import wrap

_RUNS = ("=", "+", "-", "@", "\t", "\r", "\n")
MIN_LAST_COLUMN = 30


def safe_cell(text: str) -> str:
    """Return text that a spreadsheet shows instead of running: a quote goes before whatever begins like a formula."""
    return f"'{text}" if text.startswith(_RUNS) else text


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Return an aligned table; the last column is wrapped to the terminal's width."""
    room = width or get_terminal_size((120, 24)).columns
    columns = list(zip(header, *rows, strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    left = sum(widths[:-1]) + 2 * (len(widths) - 1)
    last = max(MIN_LAST_COLUMN, room - left)
    lines = []
    for row in (header, *rows):
        parts = wrap(row[-1], last) or [""]
        for place, part in enumerate(parts):
            cells = [cell if place == 0 else "" for cell in row[:-1]]
            padded = "  ".join(cell.ljust(size) for cell, size in zip(cells, widths, strict=False))
            lines.append(f"{padded}  {part}".rstrip())
    return "\n".join(lines)
