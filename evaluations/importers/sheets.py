"""Tables as rows of text: CSV and its kin in several encodings, and XLSX. What a cell means is not decided here.

Text: UTF-8 with or without a byte order mark, UTF-16 with one; another encoding or separator is read only where the layout says so.
XLSX: values as the file holds them, read as a stream by openpyxl; no formula is ever computed. Rows are numbered as in a spreadsheet.

Refused: what is larger, longer or wider than the limits below; a workbook that expands more than a hundredfold, holds a document
type, or whose members lead out of it; cells merged below the header; and, until the layout says what to do with them, hidden sheets,
rows and columns, and formulas.
"""

import csv
import io
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple
from xml.parsers import expat

from openpyxl import load_workbook
from openpyxl.utils import get_column_letter, range_boundaries
from openpyxl.utils.cell import column_index_from_string, coordinate_from_string

from evaluations.importers.archives import BROKEN, MAX_EXPANSION, checked_members, looks_like_zip
from evaluations.importers.base import refuse
from evaluations.importers.decoding import read_bounded
from evaluations.importers.fields import shown
from evaluations.kernel.errors import InputRefused

MAX_TABLE_BYTES = 20 * 1024 * 1024
MAX_ROWS = 200_000
MAX_COLUMNS = 64
MAX_FORMULAS = 10_000
MAX_CELL = 32_767
"""What a spreadsheet's cell can hold."""
ENCODINGS = ("utf-8", "utf-16", "cp1252", "latin-1")
WORKBOOK = "xl/workbook.xml"

_SHEET_BYTES = 128 * 1024 * 1024
_STRINGS_BYTES = 16 * 1024 * 1024
_PART_BYTES = 1024 * 1024
_DEPTH = 24
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_PROBES = (b"<!DOCTYPE", b"<!ENTITY")


class Layout(NamedTuple):
    """How a table is to be read. Where `hidden` is false, hidden rows, columns and sheets are refused, else they are passed over.

    Where `formulas` is true, the value that a formula had when the file was saved is read.
    """

    encoding: str = ""
    delimiter: str = ""
    header_row: int = 1
    sheet: str = ""
    hidden: bool = False
    formulas: bool = False


class Row(NamedTuple):
    """The cells of a row as text. `percent` holds the columns shown as percent over a fraction, `unread` why a cell cannot be read."""

    number: int
    cells: list[str]
    percent: frozenset[int] = frozenset()
    unread: tuple[tuple[int, str], ...] = ()


class Sheet(NamedTuple):
    """A table: the sheet's title ("" for text) and its rows from the header on. Iterating may raise `InputRefused`."""

    title: str
    rows: Iterator[Row]

    def place(self, row: int, column: int) -> str:
        """Return the name of a cell, its column counted from 0: `B7`, or `Leaderboard!B7`."""
        cell = f"{get_column_letter(column + 1)}{row}"
        return f"{self.title}!{cell}" if self.title else cell


def is_workbook(stream: BinaryIO) -> bool:
    """Whether a seekable stream is a zip that holds a workbook."""
    stream.seek(0)
    head = stream.read(4)
    stream.seek(0)
    if not looks_like_zip(head):
        return False
    try:
        with zipfile.ZipFile(stream) as archive:
            return WORKBOOK in archive.namelist()
    except BROKEN:
        return False
    finally:
        stream.seek(0)


def open_sheet(stream: BinaryIO, *, name: str, layout: Layout) -> Sheet:
    """Return the table in a file. Raises `InputRefused`, here or while its rows are iterated."""
    if is_workbook(stream):
        return _open_workbook(stream, name=name, layout=layout)
    hint = "split it, or write it in our own CSV, which is read as a stream"
    data = read_bounded(stream, name=name, limit=MAX_TABLE_BYTES, hint=hint)
    return Sheet("", _text_rows(_decoded(data, name, layout), name=name, layout=layout))


def _decoded(data: bytes, name: str, layout: Layout) -> str:
    if not data:
        raise refuse("the file is empty", file=name, code="empty", hint="give a file with a header and at least one row")
    encoding = layout.encoding or ("utf-16" if data.startswith(_UTF16) else "utf-8")
    if encoding == "utf-16" and not data.startswith(_UTF16):
        raise refuse("it has no byte order mark of UTF-16", file=name, line=1, code="encoding", hint="export it as UTF-8")
    try:
        text = data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        hint = f"export it as UTF-8, or name its encoding in the profile: {', '.join(ENCODINGS)}"
        raise refuse(
            f"the byte at offset {error.start} is not {encoding}", file=name, line=line, code="encoding", hint=hint
        ) from None
    zero = text.find("\x00")
    if zero >= 0:
        line = text.count("\n", 0, zero) + 1
        raise refuse("it holds a zero byte", file=name, line=line, code="encoding", hint="export it again as UTF-8")
    return text


def _text_rows(text: str, *, name: str, layout: Layout) -> Iterator[Row]:
    delimiter = layout.delimiter or ("\t" if name.lower().endswith(".tsv") else ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for number, cells in enumerate(reader, 1):
            if number < layout.header_row:
                continue
            if number > MAX_ROWS + layout.header_row:
                raise refuse(f"it has more than {MAX_ROWS} rows", file=name, code="too_large", hint="split it")
            if len(cells) > MAX_COLUMNS:
                message = f"row {number} has {len(cells)} cells, more than {MAX_COLUMNS}"
                raise refuse(
                    message, file=name, line=reader.line_num, code="too_large", hint="leave out columns that are not needed"
                )
            if cells:
                yield Row(number, cells)
    except csv.Error as error:
        hint = "put cells with separators, quotes or line breaks in double quotes, and double a quote inside"
        raise refuse(f"the table breaks off: {error}", file=name, line=reader.line_num, code="malformed", hint=hint) from None


class _Facts:
    """What openpyxl's stream does not tell of a sheet: hidden rows and columns, merged ranges, formulas."""

    def __init__(self) -> None:
        self.hidden_rows: set[int] = set()
        self.hidden_columns: set[int] = set()
        self.merged: list[str] = []
        self.formulas: dict[int, dict[int, bool]] = {}
        """By row and column (from 0): whether the formula's value was saved with it."""


class _Scan:
    """Reads a sheet's part once, holding nothing of it but facts, and refuses what would make openpyxl hold or skip too much."""

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.title = title
        self.facts = _Facts()
        self.row = 0
        self.column = -1
        self.others = 0
        self.depth = 0
        self.letters = 0
        self.in_value = False

    def run(self, opened: Any) -> _Facts:
        parser = expat.ParserCreate()
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.text
        parser.ParseFile(opened)
        return self.facts

    def refuse(
        self, message: str, place: str, *, code: str = "too_large", hint: str = "export the table as CSV in UTF-8"
    ) -> InputRefused:
        return refuse(message, file=self.name, field=f"{self.title}!{place}"[:60], code=code, hint=hint)

    def here(self) -> str:
        return f"{get_column_letter(max(self.column, 0) + 1)}{max(self.row, 1)}"

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        self.depth += 1
        self.letters = 0
        self.in_value = tag == "v"
        self.others += tag not in ("row", "c", "v", "f", "is", "t")
        if self.depth > _DEPTH or self.others > MAX_ROWS:
            raise self.refuse("the sheet is nested too deeply, or holds too many parts", self.here())
        hidden = attributes.get("hidden") in ("1", "true")
        if tag == "row":
            number = int(attributes.get("r") or self.row + 1)
            if number <= self.row:
                raise self.refuse(f"row {number} stands after row {self.row}", f"A{number}", code="malformed")
            if number > MAX_ROWS:
                raise self.refuse(f"it has more than {MAX_ROWS} rows", f"A{number}", hint="split it")
            self.row, self.column = number, -1
            if hidden:
                self.facts.hidden_rows.add(number)
        elif tag == "c":
            self.cell(attributes.get("r"))
        elif tag == "f":
            self.facts.formulas.setdefault(self.row, {}).setdefault(self.column, False)
            if len(self.facts.formulas) > MAX_FORMULAS:
                raise self.refuse(
                    f"it has formulas in more than {MAX_FORMULAS} rows", self.here(), code="formula", hint="give values"
                )
        elif tag == "col" and hidden:
            first, last = int(attributes.get("min") or 1), int(attributes.get("max") or 1)
            self.facts.hidden_columns.update(range(first - 1, min(last, MAX_COLUMNS)))
        elif tag == "mergeCell":
            self.facts.merged.append(attributes.get("ref") or "")

    def cell(self, reference: str | None) -> None:
        column = self.column + 1
        if reference is not None:
            letters, row = coordinate_from_string(reference)
            column = column_index_from_string(letters) - 1
            if row != self.row:
                raise self.refuse(f"the cell {reference} stands in row {self.row}", self.here(), code="malformed")
        if column <= self.column:
            raise self.refuse("the cells of a row are not in their order", self.here(), code="malformed")
        self.column = column
        if column >= MAX_COLUMNS:
            hint = "leave out columns that are not needed"
            raise self.refuse(f"a cell lies beyond the {MAX_COLUMNS}. column", self.here(), hint=hint)

    def end(self, _tag: str) -> None:
        self.depth -= 1
        self.in_value = False

    def text(self, letters: str) -> None:
        self.letters += len(letters)
        if self.letters > MAX_CELL:
            raise self.refuse(f"a cell holds more than {MAX_CELL} characters", self.here())
        formulas = self.facts.formulas.get(self.row)
        if self.in_value and formulas and self.column in formulas and letters.strip():
            formulas[self.column] = True


def _open_workbook(stream: BinaryIO, *, name: str, layout: Layout) -> Sheet:
    """Check the archive, choose the sheet, scan it, and return its rows."""
    stream.seek(0, io.SEEK_END)
    if stream.tell() > MAX_TABLE_BYTES:
        raise refuse(f"the file is larger than {MAX_TABLE_BYTES // 2**20} MiB", file=name, code="too_large", hint="split it")
    stream.seek(0)
    try:
        with zipfile.ZipFile(stream) as archive:
            _check_parts(name, archive)
            with warnings.catch_warnings():
                # It warns of drawings and the like that it passes over.
                warnings.simplefilter("ignore")
                book = load_workbook(stream, read_only=True, data_only=True, keep_links=False)
            sheet = _chosen(name, book, layout)
            # Hidden rows, merged cells and formulas are told of only by the sheet's own part.
            part = sheet._worksheet_path  # noqa: SLF001
            with archive.open(part) as opened:
                facts = _Scan(name, sheet.title).run(opened)
    except InputRefused:
        raise
    except Exception as error:  # a damaged workbook makes openpyxl raise whatever its parsing meets
        raise _broken(name, error) from None
    _check_facts(name, sheet.title, facts, layout)
    return Sheet(sheet.title, _sheet_rows(name, sheet, facts, layout))


def _broken(name: str, error: Exception) -> InputRefused:
    told = " ".join(str(error).split())[:100] or type(error).__name__
    return refuse(
        f"the workbook cannot be read: {told}",
        file=name,
        code="broken_workbook",
        hint="save it again, or export it as CSV in UTF-8",
    )


def _check_parts(name: str, archive: zipfile.ZipFile) -> None:
    """Refuse bombs and document types. A member never gives more bytes than it states, so what it states can be believed."""
    members = checked_members(name, archive)
    packed, total = sum(member.compress_size for member in members), sum(member.file_size for member in members)
    if total > max(packed * MAX_EXPANSION, _PART_BYTES):
        message = f"the workbook expands from {packed} to {total} bytes"
        raise refuse(message, file=name, code="expansion", hint="export the table as CSV in UTF-8")
    for member in members:
        path = member.filename.lower()
        limit = _SHEET_BYTES if "/worksheets/" in path else _STRINGS_BYTES if path.endswith("sharedstrings.xml") else _PART_BYTES
        if not path.endswith((".xml", ".rels")):
            continue
        if member.file_size > limit:
            message = f"the part {shown(member.filename)} has {member.file_size} bytes, more than {limit}"
            raise refuse(message, file=name, code="too_large", hint="export the table as CSV in UTF-8")
        with archive.open(member) as opened:
            before = b""
            while chunk := opened.read(256 * 1024):
                seen = before + chunk
                if any(probe in seen for probe in _PROBES) or (not before and chunk.startswith(_UTF16)):
                    message = f"the part {shown(member.filename)} holds a document type, or is no UTF-8"
                    raise refuse(message, file=name, code="unsafe_workbook", hint="export the table as CSV in UTF-8")
                before = chunk[-16:]


def _chosen(name: str, book: Any, layout: Layout) -> Any:
    """Return the sheet that the layout names, or the only visible one."""
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    hidden = [title for title, sheet in sheets.items() if sheet.sheet_state != "visible"]
    if hidden and not layout.hidden:
        hint = 'say "hidden": "skip" in the profile when they are to be passed over'
        raise refuse(f"it has hidden sheets: {', '.join(map(shown, hidden[:5]))}", file=name, code="hidden", hint=hint)
    visible = [title for title in sheets if title not in hidden]
    wanted = layout.sheet or (visible[0] if len(visible) == 1 else "")
    if wanted not in visible:
        listed = ", ".join(shown(title) for title in visible[:10]) or "none"
        message = f"there is no visible sheet {shown(wanted)}" if wanted else f"it has {len(visible)} sheets"
        raise refuse(message, file=name, field="sheet", code="sheet", hint=f"name one in the profile; visible are {listed}")
    return sheets[wanted]


def _check_facts(name: str, title: str, facts: _Facts, layout: Layout) -> None:
    for merged in facts.merged:
        last_row = range_boundaries(merged)[3]
        if last_row is None or last_row >= layout.header_row:
            place = f"{title}!{merged}"[:60]
            hint = "a value of merged cells belongs to none of them: split them, or say in the profile which row is the header"
            raise refuse("these cells are merged", file=name, field=place, code="merged", hint=hint)
    if facts.hidden_columns and not layout.hidden:
        letters = ", ".join(get_column_letter(column + 1) for column in sorted(facts.hidden_columns)[:5])
        hint = 'show them, or say "hidden": "skip" in the profile when they are to be passed over'
        raise refuse(f"hidden columns: {letters}", file=name, field=title, code="hidden", hint=hint)
    if not layout.hidden:
        for number in sorted(facts.hidden_rows):
            if number >= layout.header_row:
                hint = 'show it, or say "hidden": "skip" in the profile when hidden rows are to be passed over'
                raise refuse(f"row {number} is hidden", file=name, field=f"{title}!A{number}", code="hidden", hint=hint)


def _sheet_rows(name: str, sheet: Any, facts: _Facts, layout: Layout) -> Iterator[Row]:
    rows = sheet.iter_rows(min_row=layout.header_row, max_row=MAX_ROWS, max_col=MAX_COLUMNS)
    number = layout.header_row - 1
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row = next(rows, None)
        except Exception as error:  # as above
            raise _broken(name, error) from None
        if row is None:
            return
        number += 1
        if number in facts.hidden_rows:
            continue
        made = _row_of(number, row, facts, layout)
        if any(made.cells) or made.unread:
            yield made


def _row_of(number: int, row: Any, facts: _Facts, layout: Layout) -> Row:
    cells: list[str] = []
    percent: set[int] = set()
    unread: list[tuple[int, str]] = []
    formulas = facts.formulas.get(number, {})
    for column, cell in enumerate(row):
        value = cell.value
        if column in facts.hidden_columns:
            value = None
        elif column in formulas and not (layout.formulas and formulas[column]):
            kept = "its value was not saved with it" if not formulas[column] else "its value may be an old one"
            unread.append((column, f"it is a formula, and {kept}"))
        elif isinstance(value, bool) or cell.data_type == "e":
            unread.append((column, f"it is {shown(str(value).upper())}, no number and no text"))
        elif isinstance(value, int | float) and "%" in (cell.number_format or ""):
            percent.add(column)
        cells.append(_text_of(value))
    while cells and not cells[-1]:
        cells.pop()
    return Row(number, cells, frozenset(percent), tuple(unread))


def _text_of(value: Any) -> str:
    """Return a value as text: numbers in their shortest exact spelling, dates as ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 10**15:
        return str(int(value))
    if hasattr(value, "isoformat"):
        text: str = value.isoformat()
        return text.removesuffix("T00:00:00")
    return str(value)[:MAX_CELL]
