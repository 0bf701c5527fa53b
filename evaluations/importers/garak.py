"""garak reports: `<prefix>.report.jsonl`, one object a line, of a scan of one model.

Source of the format: repository NVIDIA/garak (Apache-2.0), `garak/report.py` and `garak/evaluators/base.py`; versions 0.13 to 0.17.

    {"entry_type": "start_run setup", "plugins.target_type", "plugins.target_name", …}      model_type and model_name before 0.14
    {"entry_type": "init", "garak_version", "start_time", "run", "orig_start_time"?}
    {"entry_type": "attempt", "status": 1 | 2, "probe_classname", "outputs": [text | {"text"} | null],
     "detector_results": {detector: [score]}}
    {"entry_type": "eval", "probe", "detector", "passed", "fails", "nones", "total_evaluated", "total_processed", "confidence_…"}
    {"entry_type": "completion", "end_time"}

- **`passed` counts attacks that failed.** `attack_success_rate` has the slice `<probe>.<detector>`, since two detectors on the same
  outputs are two measures; the benchmark's version is garak's.
- **A dead model passes no probe.** An output that is empty, blank or null resisted nothing: it is unscored, and counts against the
  subject. So is a score that is null, which garak takes out of its denominator.
- Where the report holds every attempt of an eval line (those of status 2), the rate is recounted from them: n = distinct prompts,
  generations are repeats, a score of 0.5 or more is a hit. What the eval line says is kept as written, and told where it differs.
  Where attempts were left out the eval line is all there is, and says how many outputs; then they are n.
- A scan without a `completion` line did not finish: `partial`. A report without eval lines, and a hit log, which has hits and no
  denominator, are refused.
- Times are local to the scanner and carry no offset: the end of the run is the earliest instant that they can mean.

Nothing of the prompts or outputs is kept: attempts are read one line at a time and only counted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, BinaryIO, NamedTuple

from evaluations.importers.base import Intake, Pair, Problems
from evaluations.importers.decoding import text_lines
from evaluations.importers.fields import Fault, Faults, NumberText, count_of, is_absent, shown
from evaluations.importers.jsontext import kind_of, parse
from evaluations.importers.localtime import local_instant
from evaluations.importers.making import Maker, On
from evaluations.importers.names import name_of, slice_key
from evaluations.importers.numbers import exact_text
from evaluations.importers.outcomes import counts_over
from evaluations.kernel.errors import InputRefused

NAME = "garak"
VERSION = 1
GROUP = False

BENCHMARK = "garak"
METRIC = "attack_success_rate"
MAX_LINE_BYTES = 8 * 1024 * 1024
"""Longest line: a report of 0.17 repeats its whole set-up in one."""
MAX_EVALS = 5_000
HIT = Decimal("0.5")
"""A detector's score from which garak counts a hit (`run.eval_threshold`)."""

_HITLOG = ("attempt_id", "generator", "detector", "score")
_COUNTS = ("passed", "fails", "nones", "total_evaluated", "total_processed")

Key = tuple[str, str]


class Eval(NamedTuple):
    """One eval line: counts of outputs. `interval` is the one of attack success as printed, "" where there is none."""

    probe: str
    detector: str
    passed: int
    total: int
    nones: int
    processed: int
    interval: str

    @property
    def hits(self) -> int:
        return self.total - self.passed


class Rows:
    """What the attempts of one probe and detector hold: prompts, the most outputs of one, hits, and outputs that tell nothing."""

    __slots__ = ("hits", "outputs", "prompts", "repeats", "unscored")

    def __init__(self) -> None:
        self.prompts = self.repeats = self.outputs = self.hits = self.unscored = 0


class Report:
    """What a scan of the lines found."""

    def __init__(self) -> None:
        self.version = ""
        self.target = ""
        self.started_at: datetime | None = None
        self.ended_at: datetime | None = None
        self.completed = False
        self.judged = 0
        self.threshold = HIT
        self.evals: dict[Key, Eval] = {}
        self.rows: dict[Key, Rows] = {}


def sniff(head: bytes, name: str) -> bool:
    """A report or a hit log."""
    first = head.lstrip()[:1] == b"{"
    return first and (
        b'"entry_type"' in head[:4096] or (b'"attempt_id"' in head and b'"generator"' in head and b'"detector"' in head)
    )


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Yield the pairs of one report. Raises `InputRefused` with every problem."""
    ((name, stream),) = files.items()
    problems = Problems(name)
    maker = Maker(problems, registry=intake.registry, source=intake.source, subject=intake.subject)
    try:
        report = scan(text_lines(stream, name=name, max_line=MAX_LINE_BYTES), problems)
    except InputRefused as error:
        problems.absorb(error)
    problems.raise_any()
    subject = intake.subject or report.target
    if not subject:
        hint = "name the model with --subject, as it is written elsewhere"
        problems.add("the report does not name its target", field="plugins.target_type", code="missing", hint=hint)
    if not report.version:
        hint = "give the whole report, with its first lines"
        problems.add("the report does not state garak's version", field="garak_version", code="missing", hint=hint)
    if not report.evals and not problems:
        hint = "a scan that ended before its first evaluation measured nothing: run it again"
        problems.add("there is no eval line", code="empty", hint=hint)
    problems.raise_any()
    _make(subject, report, maker, intake)
    problems.raise_any()
    yield from maker.pairs


def scan(lines: Iterable[str], problems: Problems) -> Report:
    """Read the lines of a report, holding counts alone. What is wrong goes to the problems, with its line."""
    report = Report()
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            value = parse(text.strip(), Problems(problems.file), line=number)
        except InputRefused as refused:
            problems.keep(refused)
            continue
        if not isinstance(value, dict):
            hint = "give the report as garak wrote it"
            problems.add(f"the line is {kind_of(value)}", line=number, code="unknown_shape", hint=hint)
            continue
        faults: Faults = []
        _entry(value, report, faults)
        for fault in faults:
            problems.add(
                fault.message,
                line=number,
                field=fault.field,
                code=fault.code,
                hint=fault.hint or "give the report as garak wrote it",
            )
        if any(fault.code == "no_denominator" for fault in faults):
            break
    return report


def _entry(value: dict[str, Any], report: Report, faults: Faults) -> None:
    kind = value.get("entry_type")
    if kind == "attempt":
        _attempt(value, report, faults)
    elif kind == "eval":
        _eval(value, report, faults)
    elif kind == "start_run setup":
        _setup(value, report, faults)
    elif kind == "init":
        report.version = name_of(value, "garak_version", faults)
        report.started_at = local_instant(value, "orig_start_time", faults) or local_instant(value, "start_time", faults)
        if is_absent(value.get("orig_start_time")) is False:
            report.ended_at = report.started_at
    elif kind == "completion":
        report.completed = True
        report.ended_at = local_instant(value, "end_time", faults)
    elif kind is None and all(field in value for field in _HITLOG):
        hint = "import the report beside it, <prefix>.report.jsonl"
        faults.append(Fault("", "this is a hit log: hits, and nowhere how many attempts there were", hint, "no_denominator"))
    elif not isinstance(kind, str):
        faults.append(Fault("entry_type", "the line says no kind of entry", "", "unknown_shape"))


def _setup(value: dict[str, Any], report: Report, faults: Faults) -> None:
    parts = []
    for new, old in (("plugins.target_type", "plugins.model_type"), ("plugins.target_name", "plugins.model_name")):
        field = new if not is_absent(value.get(new)) else old
        parts.append(name_of(value, field, faults, required=False))
    report.target = " ".join(part for part in parts if part)
    written = value.get("run.eval_threshold")
    if not is_absent(written):
        threshold = exact_text(str(written)) if isinstance(written, NumberText) else None
        if threshold is None or not 0 < threshold <= 1:
            faults.append(Fault("run.eval_threshold", f"{shown(written)} is no threshold from 0 to 1"))
        else:
            report.threshold = threshold


def _attempt(value: dict[str, Any], report: Report, faults: Faults) -> None:
    """Count one judged attempt. Attempts of other states stand once more, judged, further down."""
    status = value.get("status")
    if not isinstance(status, NumberText) or str(status) not in ("0", "1", "2"):
        faults.append(Fault("status", f"{shown(status)} is none of 0, 1 and 2"))
        return
    if str(status) != "2":
        return
    report.judged += 1
    probe = name_of(value, "probe_classname", faults)
    outputs, results = value.get("outputs"), value.get("detector_results")
    if not isinstance(outputs, list) or not isinstance(results, dict):
        faults.append(Fault("outputs", "a judged attempt has no list of outputs, or no results", "", "unknown_shape"))
        return
    usable = [_usable(output) for output in outputs]
    for detector, scores in results.items():
        if not isinstance(scores, list) or len(scores) != len(outputs):
            message = f"{shown(detector)} does not have one score for each of {len(outputs)} outputs"
            faults.append(Fault("detector_results", message, "", "contradicts_counts"))
            continue
        if len(report.rows) >= MAX_EVALS and (probe, detector) not in report.rows:
            faults.append(Fault("detector_results", f"there are more than {MAX_EVALS} probes and detectors", "", "too_large"))
            return
        rows = report.rows.setdefault((probe, detector), Rows())
        rows.prompts += 1
        rows.outputs += len(scores)
        rows.repeats = max(rows.repeats, len(scores))
        for score, has_text in zip(scores, usable, strict=True):
            number = exact_text(str(score)) if isinstance(score, NumberText) else None
            if score is not None and number is None:
                faults.append(Fault("detector_results", f"{shown(score)} is no score", "", "not_a_number"))
            elif number is not None and number >= report.threshold:
                rows.hits += 1
            elif number is None or not has_text:
                rows.unscored += 1


def _usable(output: object) -> bool:
    """Whether a model said anything at all."""
    text = output.get("text") if isinstance(output, dict) else output
    return isinstance(text, str) and bool(text.strip())


def _eval(value: dict[str, Any], report: Report, faults: Faults) -> None:
    before = len(faults)
    probe, detector = name_of(value, "probe", faults), name_of(value, "detector", faults)
    detector = detector.removeprefix("detector.")
    raw = dict(value)
    if is_absent(raw.get("total_evaluated")):
        raw["total_evaluated"] = raw.get("total")  # before 0.13
    counts = {field: count_of(raw, field, faults) for field in _COUNTS}
    passed, total = counts["passed"], counts["total_evaluated"]
    for field in ("passed", "total_evaluated"):
        if counts[field] is None and len(faults) == before:
            faults.append(Fault(field, "it is missing", "", "missing"))
    if len(faults) > before or passed is None or total is None:
        return
    nones = counts["nones"] or 0
    processed = counts["total_processed"] if counts["total_processed"] is not None else total + nones
    fails = counts["fails"]
    if passed > total or (fails is not None and passed + fails != total) or processed != total + nones:
        faults.append(Fault("passed", "passed, fails, nones and totals do not add up", "", "contradicts_counts"))
        return
    if not processed:
        hint = "a detector that judged nothing measured nothing: run the probe again"
        faults.append(Fault("total_processed", "nothing was judged", hint, "no_sample"))
        return
    if (probe, detector) in report.evals:
        faults.append(Fault("probe", f"{shown(probe)} with {shown(detector)} is evaluated twice", "keep one scan", "duplicate"))
        return
    if len(report.evals) >= MAX_EVALS:
        faults.append(Fault("probe", f"there are more than {MAX_EVALS} eval lines", "", "too_large"))
        return
    ends = [value.get(field) for field in ("confidence_lower", "confidence_upper")]
    printed = all(isinstance(end, NumberText) for end in ends)
    interval = f"{ends[0]} to {ends[1]}"[:60] if printed else ""
    report.evals[probe, detector] = Eval(probe, detector, passed, total, nones, processed, interval)


def _make(subject: str, report: Report, maker: Maker, intake: Intake) -> None:
    slices = Counter(slice_key(one.probe, one.detector) for one in report.evals.values())
    for key, one in report.evals.items():
        name = slice_key(one.probe, one.detector)
        if slices[name] > 1:
            maker.problems.add(f"two probes have the slice {shown(name)}", code="duplicate", hint="import them one by one")
            return
        rows = report.rows.get(key)
        whole = rows is not None and rows.outputs == one.processed
        on = On(BENCHMARK, report.version, name)
        definition = maker.metric(METRIC, on)
        if definition is None:
            return
        if rows is not None and whole:
            counts = counts_over(
                rows.hits, rows.prompts, repeats=rows.repeats, errored=0,
                unscored=rows.unscored + rows.prompts * rows.repeats - rows.outputs, better=definition.better,
            )  # fmt: skip
        else:
            counts = counts_over(one.hits, one.processed, repeats=1, errored=0, unscored=one.nones, better=definition.better)
        differs = rows is not None and whole and rows.hits != one.hits
        evidence = maker.evidence(
            subject,
            provenance="recounted" if whole else "reported",
            run_status="complete" if report.completed else "partial",
            harness=f"garak {report.version}",
            run_ended_at=report.ended_at or report.started_at,
            published_at=intake.published_at,
            locator=f"{one.probe} {one.detector}",
            notes=[
                f"the eval line states {one.hits} hits, its attempts have {rows.hits if rows else 0}" if differs else "",
                f"{rows.unscored} outputs were empty or had no score" if rows is not None and whole and rows.unscored else "",
                "" if whole else "the report does not hold every attempt, so empty outputs may be among those that passed",
                f"95 % interval as printed {one.interval}" if one.interval else "",
                "" if report.completed else "the scan has no completion line",
                "end of run: local time of the scanner, read as the earliest instant it can mean",
            ],
        )
        maker.rate(evidence, counts, definition, on=on, said=f"{one.hits} of {one.total} evaluated")
