"""Tables of others: nothing is read that a profile does not explain, and every refusal names its cell."""

import csv
import io
import json
import zipfile
from decimal import Decimal
from typing import Any

import openpyxl
import pytest

from evaluations.importers import table
from evaluations.importers.base import Pair, Profile
from evaluations.importers.profiles import load_profile
from evaluations.importers.registry import pick, read_files
from evaluations.importers.sheets import Layout, open_sheet
from evaluations.kernel.errors import InputRefused, Problem
from tests.evaluations.importers.helpers import only
from tests.evaluations.importers.profiled import REGISTRY, measure, profile
from tests.support.evidence_files import evidence_bytes

EXPECTED = json.loads(evidence_bytes("csv-leaderboards/expected.json"))["files"]
LLM = [name for name in EXPECTED if name.startswith("open-llm")]
ALIASES = {
    f"{name}({shots}-shot)": f"{name} ({shots}-shot)"
    for name, shots in (("ARC", 25), ("HellaSwag", 10), ("MMLU", 5), ("TruthfulQA", 0))
}
BOOK = "derived/percent-cells-merged-header.xlsx"
LAYOUTS = {
    "derived/decimal-comma-cp1252.csv": Layout(encoding="cp1252", delimiter=";"),
    "derived/utf16-tab.txt": Layout(delimiter="\t"),
}


def data(name: str) -> bytes:
    return evidence_bytes(f"csv-leaderboards/{name}")


def read(content: bytes, given: Profile | None, *, name: str = "t.csv") -> list[Pair]:
    importer = pick(table.NAME, content[:65536], name)
    return list(read_files(importer, {name: io.BytesIO(content)}, registry=REGISTRY, source="lab", profile=given))


def refused(content: bytes, given: Profile | None, *, name: str = "t.csv") -> list[Problem]:
    with pytest.raises(InputRefused) as caught:
        read(content, given, name=name)
    for problem in caught.value.problems:
        assert problem.file
        assert problem.hint, problem
    return list(caught.value.problems)


def of_table(*measures: dict[str, Any], **changes: Any) -> Profile:
    return profile(table.NAME, *measures, **{"subject": "Model", "provenance": "reported", "run_status": "complete", **changes})


def llm(**changes: Any) -> Profile:
    asked = [measure(of, "answers_right", slice=of.split(" ")[0].lower()) for of in ALIASES.values()]
    return of_table(*asked, **{"aliases": ALIASES, "ignored": ["Average", "Parameters", "URL"], **changes})


def book(rows: list[list[Any]], **formats: str) -> bytes:
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "Results"
    for row in rows:
        sheet.append(row)
    for place, style in formats.items():
        sheet[place].number_format = style
    return saved(made)


def saved(made: Any) -> bytes:
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


SIMPLE = of_table(measure("Refused"))
FRACTION = of_table(measure("Refused", unit="fraction"))


@pytest.mark.parametrize("name", [name for name, right in EXPECTED.items() if "header" in right])
def test_a_real_table_has_its_header_rows_and_first_row(name):
    right = EXPECTED[name]
    rows = list(open_sheet(io.BytesIO(data(name)), name=name, layout=Layout()).rows)
    assert rows[0].cells == right["header"]
    assert len(rows) - 1 == right["rows"]
    assert dict(zip(rows[0].cells, rows[1].cells, strict=True)) == right["first_row"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_another_encoding_separator_and_decimal_comma_are_read_as_the_profile_says(name):
    right = EXPECTED[name]
    rows = list(open_sheet(io.BytesIO(data(name)), name=name, layout=LAYOUTS[name]).rows)
    assert len(rows) - 1 == right["data_rows"] + right.get("total_rows", 0)
    said = (
        {"delimiter": "semicolon", "encoding": "cp1252", "decimal": ",", "skip": ["Summe"]}
        if "comma" in name
        else {"delimiter": "tab"}
    )
    model, average, *others = rows[0].cells
    given = of_table(measure(average, "answers_right"), subject=model, ignored=others, **said)
    pairs = read(data(name), given, name=name)
    assert len(pairs) == right["data_rows"]
    draft, seen = pairs[0]
    assert (draft.subject_as_written, seen.value) == (right["first"]["model"], Decimal(str(right["first"]["average"])))


@pytest.mark.parametrize("name", LLM[:2])
def test_a_source_that_changed_its_header_is_read_by_the_aliases_of_one_profile(name):
    right = EXPECTED[name]
    pairs = read(data(name), llm(), name=name)
    rows = list(csv.DictReader(io.StringIO(data(name).decode("utf-8-sig"))))
    stated = sum(bool(row[title]) for row in rows for title in right["header"][2:6])
    assert len(pairs) == stated
    first = {seen.slice: seen.value for draft, seen in pairs if draft.subject_as_written == right["first_row"]["Model"]}
    assert first == {title.split("(")[0].strip().lower(): Decimal(right["first_row"][title]) for title in right["header"][2:6]}
    assert all(draft.note.startswith("read with the profile mine (sha256:") for draft, _ in pairs)


def test_a_header_that_the_profile_does_not_know_stops_the_import():
    problems = refused(data(LLM[1]), llm(aliases={}), name=LLM[1])
    assert {problem.code for problem in problems} == {"column_unknown", "column_missing"}
    assert problems[0].field == "C1"
    assert "ARC (25-shot)" in problems[0].hint


def test_a_model_that_stands_twice_is_refused_with_both_rows():
    problems = refused(data(LLM[2]), llm(), name=LLM[2])
    duplicates = [problem for problem in problems if problem.code == "duplicate"]
    assert len(duplicates) == len(EXPECTED[LLM[2]]["duplicate_models"])
    for name in EXPECTED[LLM[2]]["duplicate_models"]:
        assert any(f"`{name}` stands twice, first in A" in problem.message for problem in duplicates)


def test_names_that_differ_in_case_alone_are_refused():
    right = EXPECTED["lmarena_text.csv"]
    others = [title for title in right["header"] if title not in ("model", "votes")]
    given = of_table(measure("votes", "turns_per_task", "count"), subject="model", ignored=others)
    problem = only(refused(data("lmarena_text.csv"), given))
    assert problem.code == "duplicate"
    assert right["names_that_differ_only_in_case"][0] in problem.message.lower()
    problem = only(refused(b"Model,Refused\nYi-34B,80\nyi-34b,81\n", SIMPLE))
    assert (problem.field, "differs from `Yi-34B` in case alone, first in A2" in problem.message) == ("A3", True)


def test_the_real_workbook_is_read_once_the_profile_says_which_header_rows_and_unit_are_meant():
    measures = [measure("Safe refusal", unit="fraction"), measure("Harmful completion", "harmful_completion_rate", "fraction")]
    given = {"header_row": 3, "hidden": "skip", "skip": ["Average"], "ignored": ["n"]}
    pairs = read(data(BOOK), of_table(*measures, **given), name="b.xlsx")
    right = EXPECTED[BOOK]
    assert [place for place in range(4, 10) if place not in right["hidden_rows"]] == sorted(
        {int(draft.locator.partition("!")[2]) for draft, _ in pairs}
    )
    found = {(draft.subject_as_written, seen.metric): seen.value for draft, seen in pairs}
    for place, (model, refusal, harm, _) in enumerate(right["rows"], right["header_row"] + 1):
        for metric, value in (("infeasible_refusal_rate", refusal), ("harmful_completion_rate", harm)):
            stated = None if value is None or place in right["hidden_rows"] else Decimal(str(value)).scaleb(2)
            assert found.get((model, metric)) == stated
    counted = [measure("Safe refusal", unit="fraction", n="n")]
    problem = refused(data(BOOK), of_table(*counted, **{**given, "ignored": ["Harmful completion"]}), name="b.xlsx")[0]
    assert (problem.field, "it is 0" in problem.message) == ("Leaderboard!D8", True)
    percent = [measure("Safe refusal"), measure("Harmful completion", "harmful_completion_rate")]
    problem = refused(data(BOOK), of_table(*percent, **given), name="b.xlsx")[0]
    assert (problem.code, problem.field) == ("mixed_units", "Leaderboard!B4")


def test_the_real_workbook_is_refused_for_each_thing_that_nobody_explained():
    measures = [measure("Safe refusal", unit="fraction"), measure("Harmful completion", "harmful_completion_rate", "fraction")]
    for said, code, place in (
        ({}, "hidden", ""),
        ({"hidden": "skip"}, "merged", "Leaderboard!A1:D1"),
        ({"hidden": "skip", "header_row": 3, "ignored": ["n"]}, "unread_cell", "Leaderboard!B10"),
    ):
        problem = refused(data(BOOK), of_table(*measures, **said), name="b.xlsx")[0]
        assert (problem.code, problem.field) == (code, place)


def test_511_and_0511_in_one_column_are_refused_as_a_mix_and_never_scaled():
    text = b"Model,Refused\na,51.1\nb,0.511\n"
    problem = only(refused(text, SIMPLE))
    assert (problem.code, problem.row, problem.field) == ("mixed_units", 3, "B3")
    problem = only(refused(text, FRACTION))
    assert (problem.code, problem.row, problem.field) == ("mixed_units", 2, "B2")
    content = book([["Model", "Refused"], ["a", 51.1], ["b", 0.511]])
    assert only(refused(content, SIMPLE, name="t.xlsx")).field == "Results!B3"
    pairs = read(text, of_table(measure("Refused", below_one=True)))
    assert [seen.value for _, seen in pairs] == [Decimal("51.1"), Decimal("0.511")]
    assert [seen.value_as_written for _, seen in pairs] == ["51.1", "0.511"]


def test_the_unit_is_the_profiles_and_the_written_text_is_kept():
    (_, first), (_, second) = read(b"Model,Refused\na,0.5111906893464637\nb,1\n", FRACTION)
    assert (first.value, first.value_as_written) == (Decimal("51.119068"), "0.5111906893464637")
    assert second.value == 100
    ((_, seen),) = read(b"Model,Refused\na,53.9 %\n", SIMPLE)
    assert (seen.value, seen.value_as_written) == (Decimal("53.9"), "53.9 %")
    assert only(refused(b"Model,Refused\na,53.9%\n", FRACTION)).code == "mixed_units"


def test_a_published_375_against_8_of_16_in_its_own_row_is_refused():
    text = "Model,Score,Resolved,Total\na,{},8,16\n"
    given = of_table(measure("Score", "task_completion_rate", k="Resolved", n="Total"))
    problem = only(refused(text.format("37.5").encode(), given))
    assert (problem.code, problem.field) == ("contradicts_counts", "B2")
    assert "8 of 16 is 50" in problem.message
    ((_, seen),) = read(text.format("50.0").encode(), given)
    assert (seen.k, seen.n, seen.value) == (8, 16, 50)


def test_a_column_of_counts_makes_the_rate_with_errors_against_the_subject():
    given = of_table(measure("Hits", "harmful_completion_rate", "count", k="Hits", n="Runs", errored="Errors"))
    problem = only(refused(b"Model,Hits,Runs,Errors\na,1,10,2\n", given))
    assert problem.code == "wrong_unit"
    given = of_table(measure("Hits", "harmful_completion_rate", k="Hits", n="Runs", errored="Errors"))
    ((_, seen),) = read(b"Model,Hits,Runs,Errors\na,1,10,2\n", given)
    assert (seen.k, seen.n, seen.errored, seen.value) == (1, 10, 2, 30)
    assert only(refused(b"Model,Hits,Runs,Errors\na,11,10,0\n", given)).field == "B2"
    assert only(refused(b'Model,Hits,Runs,Errors\na,1,"1,000",0\n', given)).field == "C2"


@pytest.mark.parametrize("empty", ["", "n/a", "-", "NaN", "N/A", "None"])
def test_an_empty_cell_is_missing_and_never_zero(empty):
    pairs = read(f"Model,Refused\na,{empty}\nb,0\n".encode(), SIMPLE)
    assert [(draft.subject_as_written, seen.value) for draft, seen in pairs] == [("b", 0)]
    assert only(refused(f"Model,Refused\na,{empty}\n".encode(), SIMPLE)).code == "empty"


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        (">80", "bound_not_value"),
        ("80.0 ± 4.1", "not_a_decimal"),
        ("+5/-5", "not_a_decimal"),
        ("\u221280", "not_a_decimal"),
        ("=1+1", "not_a_decimal"),
        ('"53,9"', "not_a_decimal"),
        ("101", "out_of_range"),
        ("-1", "out_of_range"),
        ("80 of 100", "not_a_decimal"),
        ("١٢", "not_a_decimal"),
    ],
)
def test_what_is_no_number_is_refused_with_its_cell(cell, code):
    problem = only(refused(f"Model,Refused\na,80\nb,{cell}\n".encode(), SIMPLE))
    assert (problem.code, problem.field, problem.row) == (code, "B3", 3)
    assert "column `Refused`" in problem.message


def test_a_decimal_comma_is_read_only_where_the_profile_says_so():
    text = b"Model;Refused\na;53,9\n"
    given = of_table(measure("Refused"), delimiter="semicolon")
    assert '"decimal": ","' in only(refused(text, given)).hint
    comma = of_table(measure("Refused"), delimiter="semicolon", decimal=",")
    assert read(text, comma)[0][1].value == Decimal("53.9")
    for cell in (b"53.9", b"1.053,9", b"5,3,9"):
        assert only(refused(text.replace(b"53,9", cell), comma)).field == "B2"


@pytest.mark.parametrize("content", [b"Model,Accuracy\na,80\n", b"model\tscore\na\t0.8\n", book([["Model", "mean"], ["a", 0.5]])])
def test_a_bare_score_without_a_profile_is_refused_and_told_what_to_write(content):
    name = "t.xlsx" if content[:2] == b"PK" else "t.tsv" if b"\t" in content else "t.csv"
    assert pick(None, content, name) is table
    problem = only(refused(content, None, name=name))
    assert problem.code == "profile_missing"
    assert "--profile" in problem.hint
    assert any(word in problem.message for word in ("`Accuracy`", "`score`", "`mean`"))


def test_cells_that_a_spreadsheet_would_run_are_kept_as_text():
    pairs = read(data("derived/formula-injection.csv"), of_table(measure("Safe refusal (%)")))
    assert [draft.subject_as_written for draft, _ in pairs] == ['=HYPERLINK("https://example.org","x")', "@SUM(1+1)", "+1-1"]


def test_a_zip_of_tables_is_read_and_one_that_leads_out_of_itself_is_refused_whole():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.csv", "Model,Refused\na,80\n")
        archive.writestr("b.csv", "Model,Refused\na,81\n")
    assert [seen.value for _, seen in read(out.getvalue(), SIMPLE, name="t.zip")] == [80, 81]
    problem = only(refused(data("derived/two-months-and-a-path-escape.zip"), llm(), name="t.zip"))
    assert (problem.code, "../escape.csv" in problem.message) == ("unsafe_archive", True)
    name = "derived/lmarena_text.csv.gz"
    others = [title for title in EXPECTED["lmarena_text.csv"]["header"] if title not in ("model", "arena_score")]
    given = of_table(measure("arena_score", "turns_per_task", "count"), subject="model", skip=["Yi-34B-Chat"], ignored=others)
    assert len(read(data(name), given)) == len(read(data("lmarena_text.csv"), given)) == 264


def test_rows_are_chosen_by_a_column_and_dates_read_from_one():
    text = b"Model,Attack,Refused,Date\na,direct,80,2026-01-02\na,none,70,2026-01-03\n"
    given = of_table(measure("Refused"), where={"Attack": "direct"}, published_at="Date")
    ((draft, seen),) = read(text, given)
    assert (seen.value, draft.published_at.date().isoformat(), draft.locator, seen.locator) == (80, "2026-01-02", "row 2", "C2")
    runs = of_table(measure("Refused"), ignored=["Attack"], run_ended_at="Date")
    assert len(read(text, runs)) == 2
    assert only(refused(text.replace(b"2026-01-02", b"yesterday"), runs)).field == "D2"


def test_a_name_that_looks_like_another_is_mapped_by_the_profile_or_refused():
    text = "Model,Refused\nm\u043edel,80\n".encode()
    assert "U+043E" in only(refused(text, SIMPLE)).message
    ((draft, _),) = read(text, of_table(measure("Refused"), names={"m\u043edel": "model"}))
    assert draft.subject_as_written == "model"


def test_the_bundled_profile_reads_the_public_split_and_leaves_its_averages_out():
    content = evidence_bytes("enterpriseops-gym/leaderboard-readme-public-split.csv")
    pairs = read(content, load_profile("enterpriseops-gym-public-split"))
    assert len(pairs) == 14 * 8
    found = {(draft.subject_as_written, seen.slice): (seen.value, seen.n) for draft, seen in pairs}
    assert found["Claude Opus 4.5", "it_service_management"] == (Decimal("28.2"), 103)
    assert {seen.slice for _, seen in pairs}.isdisjoint({"overall", "avg"})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"subject": None}, "subject"),
        ({"provenance": None}, "provenance"),
        ({"delimiter": ","}, "delimiter"),
        ({"encoding": "cp1250"}, "encoding"),
        ({"hidden": "show"}, "hidden"),
        ({"skip": "Total"}, "skip"),
        ({"aliases": ["a"]}, "aliases"),
        ({"header_row": 0}, "header_row"),
        ({"columns": {}}, "columns"),
        ({"measures": [measure("Refused", k=3)]}, "measures[0].k"),
        ({"measures": [measure("Refused", repeats="three")]}, "measures[0].repeats"),
    ],
)
def test_a_profile_that_cannot_be_right_is_refused_with_its_own_line(changes, field):
    given = of_table(measure("Refused"), **changes)
    problem = refused(b"Model,Refused\na,80\n", given)[0]
    assert (problem.file, problem.field) == ("mine.json", field)
    assert problem.line
