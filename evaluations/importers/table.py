"""Tables of others: CSV, TSV and XLSX, each column with the meaning that a saved profile gives it.

A table says neither metric nor unit nor benchmark, so a profile is required (`profiles.py`). Beside the common fields it has

    "subject"*: the column of the model's name       "provenance"*: claim | reported | run_log | recounted
    "run_status": default unknown                    "harness": text
    "published_at", "run_ended_at": columns of dates
    "aliases": {"header in the file": "column as the profile calls it"}
    "ignored": columns without meaning here          "names": {"name in the file": "name as it goes on record"}
    "where": {"column": "text"}: other rows are passed over
    "skip": subjects whose rows are passed over, such as "Average" for a row of totals
    "missing": texts that mean no value, in place of the usual ones
    "encoding", "delimiter", "decimal": "." or ","   "header_row": 1
    "sheet", "hidden": "skip", "formulas": "saved"   for workbooks

and in a measure `of` is the column of the value, `n` a column or a number of planned tasks, `k`, `errored` and `unscored` columns of
counts, `repeats` a number. Where `k` names the same column as `of`, that column holds counts and the rate is made of them.

Every column is a measure's, or the subject's, or named under `ignored`; an unknown one stops the import, since a source that changed
its header may have changed its meaning. A subject that stands twice, or twice in different case, is refused with both rows. An empty
cell is missing, never 0. `53.9%` is read where the unit is percent. Nothing is scaled by size: 51.1 and 0.511 in one column are a mix,
and are refused. A value that contradicts its own counts is refused.
"""

import io
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, BinaryIO, NamedTuple

from evaluations.importers import profiles
from evaluations.importers.archives import looks_like_zip, small_files
from evaluations.importers.base import PROVENANCES, RUN_STATUSES, EvidenceDraft, Intake, ObservationDraft, Pair, Problems, Profile
from evaluations.importers.drafts import numbers_of
from evaluations.importers.fields import (
    MAX_WRITTEN_LENGTH,
    Fault,
    Faults,
    NumberText,
    closest,
    count_of,
    decimal_of,
    instant_of,
    is_absent,
    shown,
    text_of,
    word_of,
)
from evaluations.importers.jsontext import kind_of
from evaluations.importers.making import Maker, against
from evaluations.importers.names import name_of
from evaluations.importers.numbers import exact_text
from evaluations.importers.profiles import Measure
from evaluations.importers.sheets import ENCODINGS, MAX_TABLE_BYTES, Layout, Row, Sheet, is_workbook, open_sheet
from evaluations.importers.writegate_csv import COLUMNS
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.numbers import plain

NAME = "table"
VERSION = 1
GROUP = False
TAKES_PROFILE = True

FIELDS = (
    "subject", "provenance", "run_status", "harness", "published_at", "run_ended_at", "aliases", "ignored", "names", "where",
    "skip", "missing", "encoding", "delimiter", "decimal", "header_row", "sheet", "hidden", "formulas",
)  # fmt: skip
COUNTS = ("k", "n", "errored", "unscored")
OF_MEASURE = (*COUNTS, "repeats")
MISSING = ("", "-", "–", "—", "n/a", "N/A", "NA", "NaN", "nan", "null", "None")
"""Cells that hold no value where the profile names none."""

_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}


class Plan(NamedTuple):
    """What a profile says of a table, checked."""

    profile: Profile
    measures: tuple[Measure, ...]
    subject: str
    provenance: str
    run_status: str
    harness: str
    dates: Mapping[str, str]
    aliases: Mapping[str, str]
    ignored: tuple[str, ...]
    names: Mapping[str, str]
    where: Mapping[str, str]
    skip: tuple[str, ...]
    missing: tuple[str, ...]
    comma: bool
    layout: Layout


def sniff(head: bytes, name: str) -> bool:
    """A workbook, or a table whose first line is not that of our own CSV."""
    if looks_like_zip(head):
        return b"xl/workbook.xml" in head or name.lower().endswith(".xlsx")
    first = head.split(b"\n", 1)[0].lower()
    own = (b"subject" in first and b"metric" in first) or sum(column.encode() in first for column in COLUMNS) >= 3
    return name.lower().endswith((".csv", ".tsv")) and not own and first.strip()[:1] not in (b"{", b"[")


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Yield the pairs of one FILE: a table, or a zip of tables. Raises `InputRefused` with every problem."""
    (name, stream), *_ = files.items()
    if intake.profile is None:
        profiles.required(None, NAME, file=name, why=_bare(stream, name))
        return
    plan = read_plan(intake.profile, intake)
    stream.seek(0)
    head = stream.read(4)
    stream.seek(0)
    if looks_like_zip(head) and not is_workbook(stream):
        for member, data in small_files({name: stream}, limit=MAX_TABLE_BYTES):
            yield from _read(io.BytesIO(data), member, plan, intake)
        return
    yield from _read(stream, name, plan, intake)


def _bare(stream: BinaryIO, name: str) -> str:
    """Return why a table cannot be read without a profile, naming its columns where they can be seen."""
    try:
        header = next(open_sheet(stream, name=name, layout=Layout(hidden=True)).rows, None)
    except InputRefused:
        header = None
    columns = ", ".join(shown(cell) for cell in header.cells[:8]) if header else "its columns"
    return f"a table does not say what its numbers mean: {columns}"


def read_plan(profile: Profile, intake: Intake) -> Plan:
    """Return what the profile says. Raises `InputRefused` with everything that is wrong in it."""
    profiles.check_importer(profile, NAME)
    measures = profiles.read_measures(profile, intake.registry, fields=FIELDS, also=OF_MEASURE)
    problems = Problems(profile.file)
    raw, faults = profile.fields, Faults()
    subject = text_of(raw, "subject", faults, required=True)
    header_row = count_of(raw, "header_row", faults, minimum=1) or 1
    separator = word_of(raw, "delimiter", tuple(_SEPARATORS), faults, default="none") if "delimiter" in raw else "none"
    encoding = word_of(raw, "encoding", ENCODINGS, faults, default="utf-8") if "encoding" in raw else ""
    plan = Plan(
        profile=profile,
        measures=measures,
        subject=subject,
        provenance=word_of(raw, "provenance", PROVENANCES, faults),
        run_status=word_of(raw, "run_status", RUN_STATUSES, faults, default="unknown"),
        harness=text_of(raw, "harness", faults),
        dates={field: text for field in ("run_ended_at", "published_at") if (text := text_of(raw, field, faults))},
        aliases=_texts(raw, "aliases", faults),
        ignored=_listed(raw, "ignored", faults),
        names={},
        where=_texts(raw, "where", faults),
        skip=_listed(raw, "skip", faults),
        missing=_listed(raw, "missing", faults) if "missing" in raw else MISSING,
        comma=word_of(raw, "decimal", (".", ","), faults, default=".") == ",",
        layout=Layout(
            encoding,
            _SEPARATORS.get(separator, ""),
            header_row,
            text_of(raw, "sheet", faults),
            word_of(raw, "hidden", ("refuse", "skip"), faults, default="refuse") == "skip",
            word_of(raw, "formulas", ("refuse", "saved"), faults, default="refuse") == "saved",
        ),
    )
    for index, measure in enumerate(measures):
        for field, value in measure.own.items():
            number = isinstance(value, NumberText)
            if (number and field in ("n", "repeats")) or (not number and isinstance(value, str) and field in COUNTS):
                continue
            hint = "write a number" if field == "repeats" else "name a column" + (", or write a number" if field == "n" else "")
            faults.append(Fault(f"measures.{index}.{field}", f"it is {kind_of(value)}", hint))
    profiles.report(profile, faults, problems)
    names = profiles.names_map(profile, "names", problems)
    problems.raise_any()
    return plan._replace(names=names)


def _texts(raw: Mapping[str, Any], field: str, faults: Faults) -> dict[str, str]:
    given = raw.get(field, {})
    if isinstance(given, dict) and all(type(each) is str for each in given.values()):
        return dict(given)
    faults.append(Fault(field, f"it is {kind_of(given)}", 'write {"text": "text"}'))
    return {}


def _listed(raw: Mapping[str, Any], field: str, faults: Faults) -> tuple[str, ...]:
    given = raw.get(field, [])
    if isinstance(given, list) and all(type(each) is str for each in given):
        return tuple(given)
    faults.append(Fault(field, f"it is {kind_of(given)}", "write a list of texts"))
    return ()


def _read(stream: BinaryIO, name: str, plan: Plan, intake: Intake) -> Iterator[Pair]:
    problems = Problems(name)
    maker = Maker(problems, registry=intake.registry, source=intake.source)
    if intake.subject is not None:
        problems.add("the table names its subjects", field="subject", code="not_taken", hint="leave the subject out")
    try:
        sheet = open_sheet(stream, name=name, layout=plan.layout)
        rows = sheet.rows
        header = next(rows, None)
        if header is None:
            hint = "give a header row, or say in the profile where it is with `header_row`"
            problems.add("there is no header", row=plan.layout.header_row, code="header_missing", hint=hint)
            problems.raise_any()
            return
        columns = _columns(sheet, header, plan, problems)
        problems.raise_any()
        found = 0
        table = _Table(sheet, columns, plan, maker, intake)
        for row in rows:
            for pair in table.row(row):
                found += 1
                if not problems:
                    yield pair
    except InputRefused as error:
        problems.absorb(error)
    problems.raise_any()
    if not found:
        problems.add("no row holds a value", code="empty", hint="check `where`, `skip` and `header_row` of the profile")
        problems.raise_any()


def _columns(sheet: Sheet, header: Row, plan: Plan, problems: Problems) -> dict[str, int]:
    """Return the place of each column that the profile names, and refuse a header that is not the profile's."""
    wanted = {plan.subject, *plan.where, *plan.dates.values()}
    for measure in plan.measures:
        wanted |= {measure.of, *(value for field, value in measure.own.items() if field in COUNTS and type(value) is str)}
    columns: dict[str, int] = {}
    for index, cell in enumerate(header.cells):
        title = plan.aliases.get(cell.strip(), cell.strip())
        place = sheet.place(header.number, index)
        if title in columns:
            problems.add(f"the column {shown(title)} stands twice", field=place, code="column_repeated", hint="keep one of them")
        elif title in wanted:
            columns[title] = index
        elif title and title not in plan.ignored:
            hint = f"{closest(title, wanted, what='columns')}; map it in the profile, or name it under `ignored`"
            problems.add(f"the profile does not know the column {shown(title)}", field=place, code="column_unknown", hint=hint)
    for title in sorted(wanted - set(columns)):
        hint = f"give it, or name its other spelling under `aliases` of {plan.profile.file}"
        message = f"the column {shown(title)} of the profile is missing"
        problems.add(message, field=sheet.place(header.number, 0), code="column_missing", hint=hint)
    return columns


class _Table:
    """The reading of one table, row by row."""

    def __init__(self, sheet: Sheet, columns: Mapping[str, int], plan: Plan, maker: Maker, intake: Intake) -> None:
        self.sheet = sheet
        self.columns = columns
        self.plan = plan
        self.maker = maker
        self.published_at = intake.published_at
        self.note = profiles.told(plan.profile)
        self.seen: dict[tuple[object, ...], tuple[str, str]] = {}

    def fault(self, row: Row, column: str, fault: Fault) -> None:
        place = self.sheet.place(row.number, self.columns.get(column, 0))
        message = f"{fault.message} (column {shown(column)})"
        hint = fault.hint or "correct the cell"
        self.maker.problems.add(message, row=row.number, field=place, code=fault.code, hint=hint)

    def cell(self, row: Row, column: str) -> str:
        index = self.columns[column]
        return row.cells[index].strip() if index < len(row.cells) else ""

    def row(self, row: Row) -> list[Pair]:
        """Return the pairs of one row; what is wrong with it is added to the problems."""
        subject = self.cell(row, self.plan.subject)
        if subject in self.plan.skip or any(self.cell(row, column) != text for column, text in self.plan.where.items()):
            return []
        if not any(cell.strip() for cell in row.cells) and not row.unread:
            return []
        used = {index: column for column, index in self.columns.items()}
        unread = [(used[index], why) for index, why in row.unread if index in used]
        for column, why in unread:
            hint = "give its value, or say in the profile what to do with such cells (`formulas`, `skip`)"
            self.fault(row, column, Fault(column, why, hint, "unread_cell"))
        evidence = self.evidence(row, subject)
        if evidence is None or unread:
            return []
        made: list[Pair] = []
        for measure in self.plan.measures:
            observation = self.observation(row, measure, evidence)
            if observation is not None:
                made.append((evidence, observation))
        return made

    def evidence(self, row: Row, subject: str) -> EvidenceDraft | None:
        plan, faults = self.plan, Faults()
        name = plan.names.get(subject) or name_of({plan.subject: subject}, plan.subject, faults)
        dates = {}
        for field, column in plan.dates.items():
            mine: Faults = []
            dates[field] = instant_of({column: self.cell(row, column)}, column, mine)
            faults += mine
        for fault in faults:
            self.fault(row, fault.field, fault)
        if faults:
            return None
        place = self.sheet.place(row.number, self.columns[plan.subject])
        key = name.casefold(), dates.get("run_ended_at")
        first = self.seen.setdefault(key, (name, place))
        if first[1] != place:
            twice = "stands twice" if first[0] == name else f"differs from {shown(first[0])} in case alone"
            hint = "keep the row that is meant, or name its subject under `skip` of the profile"
            self.fault(row, plan.subject, Fault("", f"{shown(name)} {twice}, first in {first[1]}", hint, "duplicate"))
            return None
        return self.maker.evidence(
            name,
            provenance=plan.provenance,
            run_status=plan.run_status,
            harness=plan.harness,
            run_ended_at=dates.get("run_ended_at"),
            published_at=dates.get("published_at") or self.published_at,
            locator=f"{self.sheet.title}!{row.number}" if self.sheet.title else f"row {row.number}",
            notes=[self.note],
        )

    def observation(self, row: Row, measure: Measure, evidence: EvidenceDraft) -> ObservationDraft | None:
        """Return the observation of one measure in one row, or None where the cell holds none or is refused."""
        own = measure.own
        raw: dict[str, object] = {}
        before = len(self.maker.problems.found)
        written = self.cell(row, measure.of)
        if own.get("k") != measure.of and written not in self.plan.missing:
            value = self.number(row, measure, written)
            if value is not None:
                raw["value"] = plain(against(value, measure.definition.better))
                raw["as_written"] = written[:MAX_WRITTEN_LENGTH]
        for field in COUNTS:
            column = own.get(field)
            if isinstance(column, NumberText):
                raw[field] = column
            elif isinstance(column, str):
                text = self.cell(row, column)
                if text not in self.plan.missing:
                    faults: Faults = []
                    checked = decimal_of({field: self.plain(text)}, field, faults)
                    for fault in faults:
                        self.fault(row, column, fault)
                    raw[field] = NumberText(plain(checked)) if checked is not None else None
        if "repeats" in own:
            raw["repeats"] = own["repeats"]
        if len(self.maker.problems.found) > before or ("value" not in raw and is_absent(raw.get("k"))):
            return None
        faults = []
        numbers = numbers_of(raw, measure.definition, faults)
        for fault in faults:
            self.fault(row, str(own.get(fault.field, measure.of)), fault)
        if numbers is None:
            return None
        locator = self.sheet.place(row.number, self.columns[measure.of])
        of = measure.definition.key
        return ObservationDraft(of, measure.benchmark, measure.version, measure.slice, *numbers, None, locator)

    def plain(self, text: str) -> str:
        """Return a number with a decimal point where the profile says that the table writes a comma."""
        return text.replace(",", ".") if self.plan.comma and "." not in text else text

    def number(self, row: Row, measure: Measure, written: str) -> Decimal | None:
        """Return the number of a cell in the metric's unit, or None after a fault."""
        text, signed = written, written.endswith("%")
        shown_as_percent = self.columns[measure.of] in row.percent
        fault: Fault | None = None
        if signed and measure.unit == "percent":
            text = written[:-1].rstrip()
        elif signed or (shown_as_percent and measure.unit != "fraction"):
            message = f"{shown(written)} is {'shown as ' if shown_as_percent else ''}percent, and the profile says {measure.unit}"
            hint = "a cell formatted as percent holds a fraction: say `fraction`" if shown_as_percent else "correct the unit"
            fault = Fault("", message, hint, "mixed_units")
        elif self.plan.comma and "." in text:
            fault = Fault(
                "", f"{shown(written)} has a point, and the profile says that the table writes a comma", "", "not_a_decimal"
            )
        if fault is None:
            number = exact_text(self.plain(text))
            if number is None:
                faults: Faults = []
                number = decimal_of({"value": text}, "value", faults)
                fault = faults[0] if faults else None
                if fault is not None and "," in text and not self.plan.comma:
                    fault = fault._replace(hint='write a decimal point, or say "decimal": "," in the profile')
            if fault is None and number is not None:
                mixed = profiles.mix_of_units([("", number)], measure._replace(below_one=measure.below_one or signed))
                if mixed is None:
                    return measure.in_our_unit(number)
                hint = "write all of the column in one unit; where small percents are real, say `below_one` in the profile"
                fault = Fault("", mixed[1], hint, "mixed_units")
        if fault is not None:
            self.fault(row, measure.of, fault)
        return None
