"""Our own evidence format as JSON and as JSON Lines. Its JSON Schema is `evaluations/data/evidence.schema.json`.

**JSON**: one object.

    {"format": "writegate-evidence/1",
     "document": {"title", "url", "publisher", "licence", "published_at", "retrieved_at"},
     "source": "<source key>",
     "provenance": "claim | reported | run_log | recounted",
     "evidence": [
       {"subject": "name as written", "answered_by": ["name", …], "about": "model | agent",
        "run": {"status": "complete | partial | cancelled | error | running | unscored | unknown", "ended_at"},
        "published_at", "harness": {"name", "version"}, "note", "supersedes": "<evidence uid>",
        "observations": [
          {"metric", "benchmark", "version", "slice", "value", "unit", "k", "n", "repeats", "errored", "unscored",
           "as_written", "judge": {"models": […], "rule", "is_subject", "agreement", "agreement_n", "kappa"}}]}]}

Required: `format`, `source` (in the file or with the command), `provenance`, `subject`, `metric`, `benchmark`, `version`,
`unit`, and `value` or `k` and `n`. `source`, `provenance` and `published_at` (of `document`) hold for all evidence; an
evidence may state its own. A field that is absent, null or blank is the same.

**JSON Lines**: one evidence object a line, each with `format`, `source` and `provenance`, or after a first line that
holds the header alone (`format`, `document`, `source`, `provenance`). Blank lines are skipped.

Numbers are JSON numbers in plain form or plain decimal text (`80.0`, `"80.0"`), at most six decimals. Values are in the
metric's registered unit, which every observation states; rates are percent, 0 to 100. With `k` and `n` the value is the
exact rate, errors and unscored tasks against the subject; a `value` beside them must agree to half a unit of its last
written digit. Instants are `2026-11-01T12:00:00Z`, or with an offset, or a date alone (its first instant in UTC).

A file states one value per subject, source, about, harness, run end, publication, benchmark version, slice and metric.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeVar

from evaluations.importers import drafts
from evaluations.importers.base import DocumentDraft, EvidenceDraft, MetricDefinition, ObservationDraft, Pair, Problems, Registry
from evaluations.importers.decoding import Rejoined, check_encoding, decode_text, read_bounded, text_lines
from evaluations.importers.drafts import JUDGE_FIELDS, Numbers, Target, evidence_of, judge_of, run_identity, target_of
from evaluations.importers.fields import Fault, Faults, NumberText, Raw, instant_of, is_absent, shown, text_of, unknown_fields
from evaluations.importers.jsontext import Located, Path, kind_of, line_of, locate, parse, path_text
from evaluations.importers.names import name_of
from evaluations.kernel.errors import InputRefused

T = TypeVar("T")

NAME = "writegate-json"
VERSION = 1
GROUP = False

FORMAT = "writegate-evidence/1"
MAX_JSON_BYTES = 32 * 1024 * 1024
"""Largest file in the JSON form, which is parsed as a whole; JSON Lines and CSV are streamed and may be larger."""

HEADER_FIELDS = ("format", "document", "source", "provenance")
DOCUMENT_FIELDS = ("title", "url", "publisher", "licence", "published_at", "retrieved_at")
EVIDENCE_FIELDS = (
    "subject",
    "source",
    "provenance",
    "answered_by",
    "about",
    "run",
    "published_at",
    "harness",
    "note",
    "supersedes",
    "observations",
)
OBSERVATION_FIELDS = (
    "metric",
    "benchmark",
    "version",
    "slice",
    "value",
    "unit",
    "k",
    "n",
    "repeats",
    "errored",
    "unscored",
    "as_written",
    "judge",
)
TARGET_FIELDS = ("metric", "benchmark", "version", "slice", "unit")
NUMBER_FIELDS = ("value", "k", "n", "repeats", "errored", "unscored", "as_written")
MAX_KNOWN = 4_096
"""So many different benchmarks' metrics, and of each metric so many different numbers, are kept ready."""
RUN_FIELDS = ("status", "ended_at")
HARNESS_FIELDS = ("name", "version")

_HEAD_BYTES = 256 * 1024

# Flat names of the drafts → where they stand in this form, for messages.
_PLACES: dict[str, Path] = {"run_status": ("run", "status"), "run_ended_at": ("run", "ended_at")}


def sniff(head: bytes, name: str) -> bool:
    """An object that speaks of our format, or a file named as JSON Lines."""
    return b"writegate-evidence/" in head or name.lower().endswith((".jsonl", ".ndjson"))


def describe(stream: BinaryIO, *, name: str) -> DocumentDraft:
    """Return what `document` says (on the first line, in JSON Lines), or an empty draft where that is refused.

    It raises nothing about the content: `read` does, with all other problems of the file.
    """
    problems = Problems(name)
    try:
        kind, payload = _open(stream, name)
        text = payload if kind == "json" else next((line for line in payload if line.strip()), "")
        value = parse(text, problems)
        reader = _Reader(Registry({}, {}, frozenset()), None, problems, None if kind == "lines" else text)
        draft = reader.document(value.get("document") if isinstance(value, dict) else None, ("document",), 1)
        problems.raise_any()
    except InputRefused:
        return DocumentDraft()
    return draft


def read(stream: BinaryIO, *, name: str, registry: Registry, source: str | None) -> Iterator[Pair]:
    """Yield a pair for each observation; raise `InputRefused` with every problem at the end, or at the fiftieth."""
    problems = Problems(name)
    try:
        kind, payload = _open(stream, name)
        if kind == "json":
            value = parse(payload, problems)
            yield from _Reader(registry, source, problems, payload).document_pairs(value)
        else:
            yield from _Reader(registry, source, problems, None).line_pairs(payload)
    except InputRefused as error:
        problems.absorb(error)
    problems.raise_any()


def _open(stream: BinaryIO, name: str) -> tuple[str, Any]:
    """Return ("json", text) or ("lines", iterator of lines).

    It is JSON Lines when the name ends so, or when the first line is a whole object without a list of `evidence`.
    """
    if name.lower().endswith((".jsonl", ".ndjson")):
        return "lines", text_lines(stream, name=name)
    head = stream.read(_HEAD_BYTES)
    check_encoding(head, name)
    first, found, _ = head.partition(b"\n")
    rejoined = Rejoined(head, stream)
    if (found or len(head) < _HEAD_BYTES) and first.strip().endswith(b"}"):
        try:
            value = json.loads(first)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and not isinstance(value.get("evidence"), list):
            return "lines", text_lines(rejoined, name=name)  # type: ignore[arg-type]
    data = read_bounded(
        rejoined,  # type: ignore[arg-type]
        name=name,
        limit=MAX_JSON_BYTES,
        hint="write JSON Lines or CSV, which are read as a stream",
    )
    return "json", decode_text(data, name=name)


_Known = dict[tuple[tuple[object, ...], tuple[type, ...]], T]
_SCALARS = frozenset({type(None), str, NumberText})


def _recall(known: _Known[T], raw: Raw, fields: tuple[str, ...], read: Callable[[], T | None]) -> T | None:
    """Return what an object says in some fields, as it was read before: a large file says the same over and over.

    A number in the place of a text is not the text like it, and is read, and refused, anew.
    """
    values = tuple(map(raw.get, fields))
    kinds = tuple(map(type, values))
    if not _SCALARS.issuperset(kinds):
        return read()
    found = known.get((values, kinds))
    if found is None:
        found = read()
        if found is not None and len(known) < MAX_KNOWN:
            known[values, kinds] = found
    return found


class _Reader:
    """The reading of one file; `text` is the whole JSON text where lines must be looked up, None for JSON Lines."""

    def __init__(self, registry: Registry, source: str | None, problems: Problems, text: str | None) -> None:
        self.registry = registry
        self.source = source
        self.problems = problems
        self.text = text
        self.located: Located | None = None
        self.seen: dict[int, str] = {}
        self.targets: _Known[Target] = {}
        self.numbers: defaultdict[str, _Known[Numbers]] = defaultdict(dict)

    def add(self, fault: Fault, path: Path, line: int) -> None:
        if self.text is not None:
            self.located = self.located or locate(self.text)
            line = line_of(path, self.located)
        self.problems.add(fault.message, line=line, field=path_text(path), code=fault.code, hint=fault.hint)

    def report(self, faults: Faults, base: Path, line: int) -> None:
        for fault in faults:
            steps = _PLACES.get(fault.field, tuple(fault.field.split(".")))
            self.add(fault, (*base, *steps), line)

    def object_at(self, value: object, known: tuple[str, ...], path: Path, line: int) -> dict[str, Any]:
        """Return an object with known fields only; {} where absent or refused."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.add(Fault("", f"it is {kind_of(value)}", f"write an object with {', '.join(known)}"), path, line)
            return {}
        faults: Faults = []
        unknown_fields(value, known, faults)
        self.report(faults, path, line)
        return value

    def list_at(self, value: object, what: str, path: Path, line: int) -> list[Any]:
        """Return a list that is not empty; [] where refused."""
        if isinstance(value, list) and value:
            return value
        found = "an empty list" if value == [] else "missing" if value is None else kind_of(value)
        self.add(Fault("", f"it is {found}", f"write a list of {what}"), path, line)
        return []

    def document_pairs(self, value: object) -> Iterator[Pair]:
        """Yield the pairs of the JSON form."""
        if not isinstance(value, dict):
            self.add(Fault("", f"it is {kind_of(value)}", "write an object with format, source and evidence"), (), 1)
            return
        header = self.object_at(value, (*HEADER_FIELDS, "evidence"), (), 1)
        document = self.header(header, 1)
        for index, item in enumerate(self.list_at(header.get("evidence"), "evidence objects", ("evidence",), 1)):
            yield from self.evidence_pairs(item, header, document, ("evidence", index), 1, f"evidence[{index}]")

    def line_pairs(self, lines: Iterator[str]) -> Iterator[Pair]:
        """Yield the pairs of the JSON Lines form."""
        header: dict[str, Any] | None = None
        document = DocumentDraft()
        count = 0
        for number, text in enumerate(lines, 1):
            if not text.strip():
                continue
            count += 1
            try:
                value = parse(text.rstrip(), Problems(self.problems.file), line=number)
            except InputRefused as error:
                self.problems.keep(error)
                continue
            if not isinstance(value, dict):
                self.add(Fault("", f"it is {kind_of(value)}", "write one evidence object a line"), (), number)
                continue
            if count == 1 and "subject" not in value and "observations" not in value:
                header = self.object_at(value, HEADER_FIELDS, (), number)
                document = self.header(header, number)
                count = 0
                continue
            own = self.object_at(value, (*HEADER_FIELDS, *EVIDENCE_FIELDS), (), number)
            if header is None or "format" in own:
                self.check_format(own, number)
            named = document if "document" not in own else self.document(own["document"], ("document",), number)
            evidence = {key: item for key, item in own.items() if key not in ("format", "document")}
            yield from self.evidence_pairs(evidence, header or {}, named, (), number, f"line {number}")
        if not count:
            self.problems.add("there is no evidence", line=1, code="empty", hint="give at least one evidence object")

    def header(self, header: dict[str, Any], line: int) -> DocumentDraft:
        self.check_format(header, line)
        return self.document(header.get("document"), ("document",), line)

    def check_format(self, header: dict[str, Any], line: int) -> None:
        stated = header.get("format")
        if stated != FORMAT:
            found = "it is missing" if is_absent(stated) else f"it is {kind_of(stated)}"
            self.add(Fault("format", found, f"write `{FORMAT}`", "unknown_format"), ("format",), line)

    def document(self, value: object, path: Path, line: int) -> DocumentDraft:
        raw = self.object_at(value, DOCUMENT_FIELDS, path, line)
        faults: Faults = []
        draft = DocumentDraft(
            title=text_of(raw, "title", faults, limit=500),
            url=text_of(raw, "url", faults, limit=2000),
            publisher=text_of(raw, "publisher", faults),
            licence=text_of(raw, "licence", faults),
            published_at=instant_of(raw, "published_at", faults),
            retrieved_at=instant_of(raw, "retrieved_at", faults),
        )
        if draft.url and not draft.url.startswith(("https://", "http://")):
            faults.append(Fault("url", f"{shown(draft.url)} is no web address", "write https://…, or leave it out"))
        self.report(faults, path, line)
        return draft

    def evidence_pairs(
        self, value: object, header: Raw, document: DocumentDraft, path: Path, line: int, locator: str
    ) -> Iterator[Pair]:
        """Yield the pairs of one evidence object."""
        if not isinstance(value, dict):
            self.add(Fault("", f"it is {kind_of(value)}", "write an evidence object"), path, line)
            return
        own = self.object_at(value, EVIDENCE_FIELDS, path, line)
        draft = self.evidence(own, header, document, path, line, locator)
        observations = self.list_at(own.get("observations"), "observations", (*path, "observations"), line)
        run = hash((draft.subject_as_written, draft.run_ended_at, *run_identity(draft))) if draft is not None else 0
        for index, item in enumerate(observations):
            place = (*path, "observations", index)
            observation = self.observation(item, place, line, f"{locator}.observations[{index}]")
            if draft is None or observation is None:
                continue
            self.refuse_duplicate(run, observation, place, line)
            if not self.problems:
                yield draft, observation

    def evidence(
        self, own: dict[str, Any], header: Raw, document: DocumentDraft, path: Path, line: int, locator: str
    ) -> EvidenceDraft | None:
        run = self.object_at(own.get("run"), RUN_FIELDS, (*path, "run"), line)
        harness = self.object_at(own.get("harness"), HARNESS_FIELDS, (*path, "harness"), line)
        faults: Faults = []
        names = [text_of(harness, field, faults) for field in HARNESS_FIELDS]
        if names[1] and not names[0]:
            faults.append(Fault("name", "it is missing", "name the harness whose version this is", "missing"))
        self.report(faults, (*path, "harness"), line)
        flat = {key: own.get(key) for key in ("subject", "about", "published_at", "note", "supersedes")}
        for key in ("source", "provenance"):
            flat[key] = own.get(key) if not is_absent(own.get(key)) else header.get(key)
        flat |= {"run_status": run.get("status"), "run_ended_at": run.get("ended_at")}
        flat["harness"] = " ".join(name for name in names if name)
        faults = []
        draft = evidence_of(
            flat,
            answered=self.names(own.get("answered_by"), (*path, "answered_by"), line),
            registry=self.registry,
            source=self.source,
            locator=locator,
            faults=faults,
        )
        self.report(faults, path, line)
        if draft is not None and draft.published_at is None and document.published_at is not None:
            draft = draft._replace(published_at=document.published_at)
        return draft

    def names(self, value: object, path: Path, line: int) -> list[str]:
        """Return a list of names; [] where absent."""
        if value is None or value == []:
            return []
        names: list[str] = []
        for index, item in enumerate(self.list_at(value, "names", path, line)):
            faults: Faults = []
            name = name_of({"name": item}, "name", faults)
            for fault in faults:
                self.add(fault, (*path, index), line)
            names.append(name)
        return names

    def observation(self, value: object, path: Path, line: int, locator: str) -> ObservationDraft | None:
        if not isinstance(value, dict):
            self.add(Fault("", f"it is {kind_of(value)}", "write an observation object"), path, line)
            return None
        raw = self.object_at(value, OBSERVATION_FIELDS, path, line)
        faults: Faults = []
        target = _recall(self.targets, raw, TARGET_FIELDS, lambda: target_of(raw, registry=self.registry, faults=faults))
        numbers = self.numbers_of(raw, target.definition, faults) if target is not None else None
        self.report(faults, path, line)
        judge = self.judge(raw["judge"], (*path, "judge"), line) if raw.get("judge") is not None else None
        if target is None or numbers is None:
            return None
        return ObservationDraft(target.definition.key, target.benchmark, target.version, target.slice, *numbers, judge, locator)

    def numbers_of(self, raw: Raw, definition: MetricDefinition, faults: Faults) -> Numbers | None:
        known = self.numbers[definition.key]
        return _recall(known, raw, NUMBER_FIELDS, lambda: drafts.numbers_of(raw, definition, faults))

    def judge(self, value: object, path: Path, line: int) -> dict[str, Any] | None:
        given = self.object_at(value, JUDGE_FIELDS, path, line)
        faults: Faults = []
        models = self.names(given.get("models"), (*path, "models"), line)
        judge = judge_of(given, models=models, faults=faults)
        self.report(faults, path, line)
        return judge

    def refuse_duplicate(self, run: int, observation: ObservationDraft, path: Path, line: int) -> None:
        first = self.seen.setdefault(hash((run, *observation[:4])), observation.locator)
        if first != observation.locator:
            message = f"it repeats {first}: the same subject, source, run, metric, benchmark version and slice"
            hint = "keep one of them; repeats of a run are counted in `repeats`, other runs differ in `run.ended_at`"
            self.add(Fault("", message, hint, "duplicate"), path, line)
