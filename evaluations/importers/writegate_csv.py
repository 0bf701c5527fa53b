"""Our own evidence format as CSV: one observation a row, for large tables.

UTF-8 without a byte order mark, comma as separator, double quotes where a cell needs them (RFC 4180), a header row with
column names in any order. Columns:

    evidence      subject* source provenance* run_status run_ended_at published_at answered_by about harness note supersedes
    measured      metric* benchmark* version* slice unit*
    number        value k n repeats errored unscored as_written
    judged by     judge_models judge_rule judge_is_subject judge_agreement judge_agreement_n judge_kappa

Those with * are required; `source` is required in the file or with the command; each row needs `value`, or `k` and `n`.
A blank cell is absent. Several names in `answered_by` or `judge_models` are separated by `|`. Numbers are plain decimals
with a point; instants are as in the JSON form. Rows are numbered as in a spreadsheet: the header is row 1. Empty lines
are skipped. Cells are never evaluated.

A file states one value per (subject, source, about, harness, run_ended_at, published_at) and (metric, benchmark,
version, slice). A second row for the same is refused as a duplicate, whatever its value.

Memory is constant but for eight bytes a row, which find the duplicates at the end.
"""

import csv
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, BinaryIO

from evaluations.importers.base import EvidenceDraft, MetricDefinition, ObservationDraft, Pair, Problems, Registry, refuse
from evaluations.importers.decoding import text_lines
from evaluations.importers.drafts import (
    Numbers,
    evidence_of,
    judge_of,
    numbers_of,
    run_identity,
    target_of,
    value_of,
)
from evaluations.importers.fields import Fault, Faults, closest, instant_of, is_clean_line, shown
from evaluations.importers.names import name_of
from evaluations.kernel.errors import InputRefused

NAME = "writegate-csv"
VERSION = 1
GROUP = False

EVIDENCE_COLUMNS = (
    "subject",
    "source",
    "provenance",
    "run_status",
    "run_ended_at",
    "published_at",
    "answered_by",
    "about",
    "harness",
    "note",
    "supersedes",
)
TARGET_COLUMNS = ("metric", "benchmark", "version", "slice", "unit")
NUMBER_COLUMNS = ("value", "k", "n", "repeats", "errored", "unscored", "as_written")
JUDGE_COLUMNS = ("judge_models", "judge_rule", "judge_is_subject", "judge_agreement", "judge_agreement_n", "judge_kappa")
COLUMNS = EVIDENCE_COLUMNS + TARGET_COLUMNS + NUMBER_COLUMNS + JUDGE_COLUMNS
REQUIRED_COLUMNS = ("subject", "provenance", "metric", "benchmark", "version", "unit")

# Repeated cells are parsed once. The caches are emptied when full, so that a file of distinct values needs no more memory.
_CACHED = 4096

_FLAGS = {"true": True, "false": False}


def sniff(head: bytes, name: str) -> bool:
    """A first line that names our columns, with whatever separator (the message then says which); else a `.csv` name."""
    first = head.split(b"\n", 1)[0].lower()
    if first.lstrip()[:1] in (b"{", b"[") or head[:2] == b"PK":
        return False
    return (b"subject" in first and b"metric" in first) or name.lower().endswith((".csv", ".tsv"))


def read(stream: BinaryIO, *, name: str, registry: Registry, source: str | None) -> Iterator[Pair]:
    """Yield one pair a row; raise `InputRefused` with every problem at the end, or at the fiftieth."""
    problems = Problems(name)
    reader = csv.reader(text_lines(stream, name=name), strict=True)
    try:
        yield from _Table(_header(reader, name, source), registry, source, problems).pairs(reader)
    except csv.Error as error:
        problems.add(
            f"the CSV breaks off: {error}",
            line=reader.line_num,
            code="malformed",
            hint="put cells with commas, quotes or line breaks in double quotes, and double a quote inside",
        )
        problems.raise_any()
    except InputRefused as error:
        problems.absorb(error)


def _header(reader: Iterator[list[str]], name: str, source: str | None) -> list[str]:
    """Return the column names, or raise with everything that is wrong with them."""
    header = next(reader, None)
    if not header:
        hint = "give a header row and at least one row"
        raise refuse("the first row is empty", file=name, line=1, code="header_missing", hint=hint)
    problems = Problems(name)
    if len(header) == 1:
        for separator, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if separator in header[0]:
                hint = "export it with commas between cells and a point in decimals"
                problems.add(f"the cells are separated by {word}", row=1, code="separator", hint=hint)
                problems.raise_any()
    if not set(header) & set(COLUMNS):
        problems.add(
            f"the first row is no header: it begins with {shown(header[0])}",
            row=1,
            code="header_missing",
            hint=f"begin with a row of column names, among them {', '.join(REQUIRED_COLUMNS)}",
        )
        problems.raise_any()
    seen: set[str] = set()
    for number, column in enumerate(header, 1):
        if column in seen:
            problems.add("the column stands twice", row=1, field=column, code="column_repeated", hint="remove one")
        elif column not in COLUMNS:
            hint = closest(column, COLUMNS, what="columns")
            problems.add(f"unknown column {shown(column)}, the {number}. of the header", row=1, code="column_unknown", hint=hint)
        seen.add(column)
    needed = list(REQUIRED_COLUMNS) + ([] if source is not None else ["source"])
    if "value" not in seen and not {"k", "n"} <= seen:
        needed.append("value")
    for column in needed:
        if column not in seen:
            hint = f"add the column `{column}`"
            if column == "source":
                hint += ", or give the source with the command"
            problems.add("the column is missing", row=1, field=column, code="column_missing", hint=hint)
    problems.raise_any()
    return header


class _Table:
    """The parsing of one file: getters of its columns, caches, and the hashes that find duplicates."""

    def __init__(self, header: Sequence[str], registry: Registry, source: str | None, problems: Problems) -> None:
        self.header = header
        self.registry = registry
        self.source = source
        self.problems = problems
        self.columns = {part: [c for c in part if c in header] for part in (EVIDENCE_COLUMNS, TARGET_COLUMNS, NUMBER_COLUMNS)}
        # Per cells of evidence but subject and end of run: the first draft made of them, and the hash of the rest.
        evidence_columns = self.columns[EVIDENCE_COLUMNS]
        self.ended_at = evidence_columns.index("run_ended_at") if "run_ended_at" in evidence_columns else 0
        context = [i for i, c in enumerate(evidence_columns) if c not in ("subject", "run_ended_at")]
        self.get_context: Callable[[Sequence[str]], Any] = itemgetter(*context)
        self.contexts: dict[Any, tuple[EvidenceDraft, int]] = {}
        # Per metric and cells of numbers but the value: numbers made of them, where they hold no `k`.
        self.counts: dict[Any, Numbers] = {}
        self.judge_columns = [c for c in JUDGE_COLUMNS if c in header]

    def _getter(self, columns: Sequence[str]) -> Callable[[Sequence[str]], Any]:
        return itemgetter(*(self.header.index(column) for column in columns))

    def pairs(self, reader: Iterator[list[str]]) -> Iterator[Pair]:
        """Yield the pairs of all rows. The loop is written for speed: a million rows go through it."""
        evidence_columns, target_columns, number_columns = self.columns.values()
        get_evidence = self._getter(evidence_columns)
        get_target = self._getter(target_columns)
        get_numbers = self._getter(number_columns)
        get_judge = self._getter(self.judge_columns) if self.judge_columns else None
        # Per raw evidence cells: the draft and the hash of its identity. Per raw target cells: the four names, their
        # hash, the definition, and the metric's own cache of numbers.
        evidences: dict[Any, tuple[EvidenceDraft, int]] = {}
        targets: dict[Any, Any] = {}
        judges: dict[Any, Any] = {}
        hashes = array("q")
        width = len(self.header)
        new = tuple.__new__
        problems = self.problems
        rows = 0
        for row_number, row in enumerate(reader, 2):
            if len(row) != width:
                if row:
                    rows += 1
                    self._wrong_width(row, row_number)
                hashes.append(0)
                continue
            rows += 1
            raw_evidence = get_evidence(row)
            evidence = evidences.get(raw_evidence)
            if evidence is None:
                evidence = self._evidence(evidence_columns, raw_evidence, row_number)
                if evidence is not None:
                    if len(evidences) >= _CACHED:
                        evidences.clear()
                    evidences[raw_evidence] = evidence
            raw_target = get_target(row)
            target = targets.get(raw_target)
            if target is None:
                target = self._target(target_columns, raw_target, row_number)
                if target is not None:
                    if len(targets) >= _CACHED:
                        targets.clear()
                    targets[raw_target] = target
            judge = None
            if get_judge is not None:
                raw_judge = get_judge(row)
                if raw_judge in judges:
                    judge = judges[raw_judge]
                else:
                    judge = self._judge(raw_judge, row_number)
                    if len(judges) >= _CACHED:
                        judges.clear()
                    judges[raw_judge] = judge
            if target is None:
                hashes.append(0)
                continue
            names, target_hash, definition, cache = target
            raw_numbers = get_numbers(row)
            numbers = cache.get(raw_numbers)
            if numbers is None:
                numbers = self._numbers(number_columns, raw_numbers, definition, row_number)
                if numbers is not None:
                    if len(cache) >= _CACHED:
                        cache.clear()
                    cache[raw_numbers] = numbers
            if evidence is None:
                hashes.append(0)
                continue
            draft, evidence_hash = evidence
            hashes.append(hash((evidence_hash, target_hash)) or 1)
            if numbers is not None and not problems.found:
                yield draft, new(ObservationDraft, names + numbers + (judge, f"row {row_number}"))
        if not rows:
            problems.add("the file has a header and no rows", row=1, code="empty", hint="give at least one row")
        self._duplicates(hashes)
        problems.raise_any()

    def _report(self, faults: Faults, row_number: int, prefix: str = "") -> None:
        for fault in faults:
            field = fault.field if fault.field.startswith(prefix) else prefix + fault.field
            self.problems.add(fault.message, row=row_number, field=field, code=fault.code, hint=fault.hint)

    def _evidence(self, columns: Sequence[str], cells: Any, row_number: int) -> tuple[EvidenceDraft, int] | None:
        """Return the draft and its hash. What differs least is cached apart from the subject and the end of its run."""
        subject, ended, context = cells[0], cells[self.ended_at], self.get_context(cells)
        known = self.contexts.get(context)
        if known is not None and is_clean_line(subject):
            faults: Faults = []
            instant = instant_of({"run_ended_at": ended}, "run_ended_at", faults) if self.ended_at else None
            self._report(faults, row_number)
            if faults:
                return None
            draft = tuple.__new__(EvidenceDraft, (subject, *known[0][1:5], instant, *known[0][6:]))
            return draft, hash((subject, instant, known[1]))
        raw = _present(columns, cells)
        faults = []
        answered = names_in_cell(raw, "answered_by", faults)
        made = evidence_of(raw, answered=answered, registry=self.registry, source=self.source, locator="", faults=faults)
        self._report(faults, row_number)
        if made is None or faults:
            return None
        if len(self.contexts) >= _CACHED:
            self.contexts.clear()
        run = hash(run_identity(made))
        self.contexts[context] = made, run
        return made, hash((subject, made.run_ended_at, run))

    def _target(self, columns: Sequence[str], cells: Any, row_number: int) -> Any:
        faults: Faults = []
        target = target_of(_present(columns, cells), registry=self.registry, faults=faults)
        self._report(faults, row_number)
        if target is None:
            return None
        names = (target.definition.key, target.benchmark, target.version, target.slice)
        return names, hash(names), target.definition, {}

    def _numbers(self, columns: Sequence[str], cells: Any, definition: MetricDefinition, row_number: int) -> Any:
        """Return the numbers of a row. Counts without `k` are checked once: then only the value differs from row to row."""
        if len(columns) == 1:
            cells = (cells,)
        faults: Faults = []
        counts = None
        if columns[0] == "value" and cells[0]:
            counts = definition.key, cells[1:]
            known = self.counts.get(counts)
            if known is not None:
                value = value_of(cells[0], definition, faults)
                self._report(faults, row_number)
                return None if value is None else tuple.__new__(Numbers, (value, cells[0], *known[2:]))
        raw = _present(columns, cells)
        numbers = numbers_of(raw, definition, faults)
        self._report(faults, row_number)
        if numbers is not None and counts is not None and numbers.k is None and "as_written" not in raw:
            if len(self.counts) >= _CACHED:
                self.counts.clear()
            self.counts[counts] = numbers
        return numbers

    def _judge(self, cells: Any, row_number: int) -> dict[str, Any] | None:
        columns = self.judge_columns
        raw = _present(columns, (cells,) if len(columns) == 1 else cells)
        faults: Faults = []
        models = names_in_cell(raw, "judge_models", faults)
        parts = {c.removeprefix("judge_"): v for c, v in raw.items() if c != "judge_models"}
        flag = parts.get("is_subject")
        if isinstance(flag, str):
            parts["is_subject"] = _FLAGS.get(flag, flag)
        judge = judge_of(parts, models=models, faults=faults)
        self._report(faults, row_number, "judge_")
        return judge

    def _wrong_width(self, row: list[str], row_number: int) -> None:
        hint = "give each column its cell, blank where absent"
        if len(row) > len(self.header):
            hint = "put cells that hold a comma in double quotes, and write decimals with a point"
        elif len(row) == 1 and ";" in row[0]:
            hint = "separate the cells by commas"
        message = f"it has {len(row)} cells, the header has {len(self.header)}"
        self.problems.add(message, row=row_number, code="cells", hint=hint)

    def _duplicates(self, hashes: "array[int]") -> None:
        """Report rows of one 64-bit hash. By chance that happens to unlike rows once in 36 million files of a million rows."""
        ordered = sorted(hashes)
        repeated = {a for a, b in pairwise(ordered) if a == b and a}
        del ordered
        if not repeated:
            return
        first: dict[int, int] = {}
        for row_number, value in enumerate(hashes, 2):
            if value not in repeated:
                continue
            if value in first:
                self.problems.add(
                    f"it repeats row {first[value]}: the same subject, source, run, metric, benchmark version and slice",
                    row=row_number,
                    code="duplicate",
                    hint="keep one of them; repeats of a run are counted in `repeats`, other runs differ in `run_ended_at`",
                )
            else:
                first[value] = row_number


def _present(columns: Sequence[str], cells: Sequence[str]) -> dict[str, object]:
    """Return the cells that are not empty, by column."""
    return {column: cell for column, cell in zip(columns, cells, strict=True) if cell}


def names_in_cell(raw: dict[str, object], field: str, faults: Faults) -> list[str]:
    """Return the names in a cell, separated by `|`."""
    cell = raw.get(field)
    if not isinstance(cell, str) or not cell.strip():
        return []
    names = [part.strip() for part in cell.split("|")]
    for part in names:
        if not part or not part.isprintable() or len(part) > 200:
            faults.append(Fault(field, f"{shown(cell)} is no list of names", "write names separated by `|`"))
            return []
        if not name_of({field: part}, field, faults):
            return []
    return names
