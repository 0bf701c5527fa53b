"""Workbooks and text tables that were made to hurt: each is refused at once, naming file and place, within little memory."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import openpyxl
import pytest

from evaluations.importers import sheets
from evaluations.importers.sheets import Layout, Row, open_sheet
from evaluations.kernel.errors import InputRefused, Problem
from tests.evaluations.importers.helpers import only

SHEET = "xl/worksheets/sheet1.xml"


def workbook(rows: list[list[Any]] | None = None) -> bytes:
    made = openpyxl.Workbook()
    made.active.title = "Results"
    for row in rows or [["Model", "Refused"], ["a", 80], ["b", 81.5]]:
        made.active.append(row)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def changed(content: bytes, parts: Mapping[str, Any]) -> bytes:
    """Return the workbook with parts replaced: by bytes, or by a function of the bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in {*source.namelist(), *parts}:
            data = source.read(member) if member in source.namelist() else b""
            part = parts.get(member, data)
            archive.writestr(member, part(data) if callable(part) else part)
    return out.getvalue()


def replaced(before: bytes, after: bytes) -> Any:
    def change(data: bytes) -> bytes:
        assert before in data
        return data.replace(before, after, 1)

    return change


def rows(content: bytes, layout: Layout = Layout(), name: str = "t.xlsx") -> list[Row]:  # noqa: B008
    return list(open_sheet(io.BytesIO(content), name=name, layout=layout).rows)


def refused(content: bytes, layout: Layout = Layout(), name: str = "t.xlsx") -> Problem:  # noqa: B008
    with pytest.raises(InputRefused) as caught:
        rows(content, layout, name)
    problem = only(list(caught.value.problems))
    assert problem.file == name
    assert problem.hint
    return problem


def test_a_workbook_gives_its_rows_with_numbers_in_their_shortest_spelling() -> None:
    found = rows(workbook([["Model", "x"], ["a", 0.1 + 0.2], ["b", 80.0], ["c", 1e-7], [], ["d", "80 %"]]))
    assert [(row.number, row.cells) for row in found] == [
        (1, ["Model", "x"]),
        (2, ["a", "0.3"]),
        (3, ["b", "80"]),
        (4, ["c", "1e-07"]),
        (6, ["d", "80 %"]),
    ]


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ({SHEET: replaced(b"<sheetData>", b"<sheetData>" + b"<row/>" * 3_000_000)}, "expansion"),
        ({"xl/styles.xml": b"<styleSheet>" + b"<!-- x -->" * 500_000 + b"</styleSheet>"}, "expansion"),
        ({SHEET: replaced(b"<worksheet", b'<!DOCTYPE x [<!ENTITY a "aaaa">]><worksheet')}, "unsafe_workbook"),
        ({"xl/workbook.xml": b"\xff\xfe<\x00"}, "unsafe_workbook"),
        ({"../evil.xml": b"x"}, "unsafe_archive"),
        ({SHEET: replaced(b"<sheetData>", b"<a>" * 100 + b"</a>" * 100 + b"<sheetData>")}, "too_large"),
        ({SHEET: replaced(b'<row r="2"', b'<row r="200001"')}, "too_large"),
        ({SHEET: replaced(b'<row r="3"', b'<row r="1"')}, "malformed"),
        ({SHEET: replaced(b'<c r="B2"', b'<c r="XFD2"')}, "too_large"),
        ({SHEET: replaced(b'<c r="B2"', b'<c r="A2"')}, "malformed"),
        ({SHEET: replaced(b'<c r="B2"', b'<c r="B9"')}, "malformed"),
        ({SHEET: replaced(b"<v>80</v>", b"<v>" + b"8" * 40_000 + b"</v>")}, "too_large"),
        ({SHEET: replaced(b"</worksheet>", b"")}, "broken_workbook"),
        ({"xl/workbook.xml": b"<workbook/>"}, "sheet"),
        ({SHEET: replaced(b'<row r="2"', b'<row r="2" hidden="1"')}, "hidden"),
        ({SHEET: replaced(b"<sheetData>", b'<cols><col min="2" max="2" hidden="1"/></cols><sheetData>')}, "hidden"),
        (
            {SHEET: replaced(b"</sheetData>", b'</sheetData><mergeCells count="1"><mergeCell ref="A2:B2"/></mergeCells>')},
            "merged",
        ),
    ],
)
def test_a_workbook_that_was_tampered_with_is_refused(parts: Mapping[str, Any], code: str) -> None:
    assert refused(changed(workbook(), parts)).code == code


def test_a_formula_is_read_only_with_the_value_that_was_saved_with_it_and_only_when_asked() -> None:
    saved = changed(workbook(), {SHEET: replaced(b"<v>80</v>", b"<f>40*2</f><v>80</v>")})
    bare = changed(workbook(), {SHEET: replaced(b"<v>80</v>", b"<f>40*2</f>")})
    asked = Layout(formulas=True)
    assert rows(saved)[1].unread == ((1, "it is a formula, and its value may be an old one"),)
    assert (rows(saved, asked)[1].cells, rows(saved, asked)[1].unread) == (["a", "80"], ())
    for layout in (Layout(), asked):
        assert rows(bare, layout)[1].unread == ((1, "it is a formula, and its value was not saved with it"),)


def test_true_and_error_cells_are_neither_text_nor_number() -> None:
    found = rows(workbook([["Model", "x"], ["a", True], ["b", "#DIV/0!"]]))
    assert [row.unread[0][0] for row in found[1:]] == [1, 1]


def test_several_sheets_need_a_name_and_hidden_ones_a_word() -> None:
    made = openpyxl.load_workbook(io.BytesIO(workbook()))
    made.create_sheet("Other").append(["Model"])
    out = io.BytesIO()
    made.save(out)
    assert "`Results`, `Other`" in refused(out.getvalue()).hint
    assert rows(out.getvalue(), Layout(sheet="Other"))[0].cells == ["Model"]
    made["Other"].sheet_state = "veryHidden"
    out = io.BytesIO()
    made.save(out)
    assert refused(out.getvalue()).code == "hidden"
    assert refused(out.getvalue(), Layout(sheet="Other", hidden=True)).code == "sheet"
    assert len(rows(out.getvalue(), Layout(hidden=True))) == 3


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (b"", "empty", None),
        (b"a,b\n\xff\xfe\n", "encoding", 2),
        ("a,b\n".encode("utf-16-le"), "encoding", 1),
        (b'a,"b\n', "malformed", 1),
        (b"a" + b",b" * 64, "too_large", 1),
        (b"a,b\n1,\x00\n", "encoding", 2),
        (b"x" * (sheets.MAX_TABLE_BYTES + 1), "too_large", None),
        (b"x" * 140_000, "malformed", 1),
    ],
)
def test_a_text_that_is_no_table_is_refused(content: bytes, code: str, line: int | None) -> None:
    problem = refused(content, name="t.csv")
    assert (problem.code, problem.line) == (code, line)


def test_a_table_of_too_many_rows_is_refused() -> None:
    assert refused(b"a\n" * (sheets.MAX_ROWS + 2), name="t.csv").code == "too_large"
