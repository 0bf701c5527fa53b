"""Artificial Analysis: pages of its API, the payload of its evaluation page, and records of the two.

Its API's reference (v2): `GET /language/models`, header `x-api-key`. An answer is an envelope {tier, pagination{page, page_size,
total_pages, has_more}, data[]}, a record {id, slug, name, release_date, model_creator, evaluations{…}}. Its pages carry
`enterpriseOpsGym` for each model, before July 2026 `enterprise_ops_gym`, with a breakdown beside it. Attribution is required, and
redistribution of the data is not licensed: read them, keep the bytes, do not publish them.

Three shapes are read: the envelope, a bare list of records, and an object with `models` or `scores`. In a record the score stands
under one of `FIELDS`, at its top or in `evaluations`; turns and success rate under their own names.

- `task_completion_rate` of `enterpriseops-gym-aa`: the field is a fraction, 0 to 1, on the word of this profile; a value above 1
  among them is a mix of two units and is refused, never scaled.
- A field that is null was not evaluated, and is never zero. Where no record has any known field the payload has changed its
  shape, and is refused; so are an answer of status 401 or 429, an error body, and one page of several whose others are missing.
- The name as written is the long one: it says effort, reasoning mode and fallback ("… Max Effort, Opus 4.8 Fallback"). The slug
  is only noted: it is re-pointed to new releases.
- Which tasks were counted is not published. 1,150 are announced, and the fractions are whole counts over 3,351 = 1,117 x 3, so n
  is not stated and no bound can clear; the note says which denominator the fractions agree with.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, BinaryIO, NamedTuple

from evaluations.importers.base import Intake, Pair, Problems, refuse
from evaluations.importers.decoding import decode_text, read_bounded
from evaluations.importers.fields import Fault, Faults, NumberText, count_of, instant_of, is_absent, shown, text_of
from evaluations.importers.jsontext import kind_of, parse
from evaluations.importers.making import Maker, On, against
from evaluations.importers.names import name_of
from evaluations.importers.numbers import exact

NAME = "artificial-analysis"
VERSION = 1
GROUP = True

BENCHMARK = "enterpriseops-gym-aa"
BENCHMARK_VERSION = "2026-07"
HARNESS = "Stirrup"
FIELDS = ("enterpriseOpsGym", "enterprise_ops_gym", "enterprise_ops_gym_aa", "enterpriseOpsGymAA")
BREAKDOWNS = ("enterpriseOpsGymBreakdown", "enterprise_ops_gym_breakdown")
RATES = ("successRate", "success_rate")
TURNS = ("enterpriseOpsGymAvgConversationTurns", "enterprise_ops_gym_avg_conversation_turns")
ANNOUNCED_TASKS, COUNTED_TASKS, REPEATS = 1150, 1117, 3

_LIMIT = 64 * 1024 * 1024
_STATUSES: Mapping[str, str] = {
    "401": "the key was not accepted: ask for the page again with a good key",
    "403": "the key may not read this: ask for the page again with a good key",
    "429": "the limit of requests was reached: wait as long as Retry-After says, then ask again",
}


class Page(NamedTuple):
    """The records of one file, where it stands among pages, and when it was captured."""

    name: str
    records: list[tuple[str, dict[str, Any]]]
    captured_at: datetime | None
    has_place: bool


def sniff(head: bytes, name: str) -> bool:
    """The envelope of the API, a record's field, or an error body of its."""
    if head.lstrip()[:1] not in (b"{", b"["):
        return False
    if any(b'"' + field.encode() in head for field in (*FIELDS, *BREAKDOWNS)):
        return True
    return b'"artificial_analysis_intelligence_index' in head or (b'"tier"' in head and b'"pagination"' in head)


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Yield the pairs of all models on all pages. Raises `InputRefused` with every problem.

    `published_at` dates values for which the payload has no date of capture.
    """
    problems = Problems(next(iter(files), ""))
    maker = Maker(problems, registry=intake.registry, source=intake.source)
    if intake.subject is not None:
        problems.add("the records name their models", field="subject", hint="leave the subject out")
    pages: list[Page] = []
    numbers: dict[int, str] = {}
    totals: set[int] = set()
    for name, stream in files.items():
        data = read_bounded(stream, name=name, limit=_LIMIT)
        value = parse(decode_text(data, name=name), Problems(name))
        refuse_errors(value, name=name)
        pages.append(_page(value, name, maker))
        _place(value, name, numbers, totals, maker)
    for total in totals:
        if missing := sorted(set(range(1, total + 1)) - set(numbers)):
            problems.add(
                f"pages are missing: {', '.join(map(str, missing[:10]))} of {total}",
                field="pagination.total_pages",
                code="incomplete",
                hint="give all pages together, so that no model is left out by chance",
            )
    if len(totals) > 1:
        problems.add("the pages are of different lists", field="pagination.total_pages", code="incomplete", hint="give one list")
    _make(pages, maker, intake.published_at)
    problems.raise_any()
    yield from maker.pairs


def refuse_errors(value: Any, *, name: str) -> None:
    """Refuse an answer that is an error: whatever else stands in it, it holds no numbers to trust."""
    if not isinstance(value, dict):
        return
    given = [value.get(field) for field in ("status", "status_code", "statusCode", "code")]
    inner = value.get("error")
    if isinstance(inner, dict):
        given += [inner.get(field) for field in ("status", "code")]
    status = next((str(each) for each in given if isinstance(each, str) and str(each) in _STATUSES), "")
    bad = next((str(each) for each in given if isinstance(each, NumberText) and str(each) not in ("200", "0")), "")
    said = inner if isinstance(inner, str) else inner.get("message") if isinstance(inner, dict) else value.get("message")
    if status or bad or not is_absent(inner):
        raise refuse(
            f"the answer is an error{f' with status {status or bad}' if status or bad else ''}: {shown(said)}",
            file=name,
            field="status" if status or bad else "error",
            code="error_answer",
            hint=_STATUSES.get(status, "ask for the page again; an error holds no evidence"),
        )


def _page(value: Any, name: str, maker: Maker) -> Page:
    """Return the records of one answer, each with its place."""
    for field in ("data", "models", "scores"):
        if isinstance(value, dict) and isinstance(value.get(field), list):
            listed, prefix = value[field], field
            break
    else:
        listed, prefix = value, ""
    if not isinstance(listed, list) or not listed or not all(isinstance(each, dict) for each in listed):
        raise refuse(
            f"it is no list of models, but {kind_of(value)}",
            file=name,
            code="shape_changed",
            hint="the answer has `data`, a list of objects; ask again, or have the importer taught the new shape",
        )
    faults: Faults = []
    captured = value.get("captured_by") if isinstance(value, dict) else None
    written = captured.get("captured_at") if isinstance(captured, dict) else None
    moment = None
    if isinstance(written, str):
        # Captured in a local time that nobody states; its date alone is read, at its first instant.
        moment = instant_of({"captured_at": written[:10]}, "captured_at", faults)
    unit = value.get("unit") if isinstance(value, dict) else None
    if unit not in (None, "fraction"):
        faults.append(Fault("unit", f"{shown(unit)} is not the unit of these fields", "the fields are fractions", "wrong_unit"))
    maker.report(faults, file=name)
    records = [(f"{prefix}[{index}]", each) for index, each in enumerate(listed)]
    return Page(name, records, moment, isinstance(value, dict) and "pagination" in value)


def _place(value: Any, name: str, numbers: dict[int, str], totals: set[int], maker: Maker) -> None:
    """Note which page of how many the file is."""
    place = value.get("pagination") if isinstance(value, dict) else None
    if not isinstance(place, dict):
        return
    faults: Faults = []
    number, total = count_of(place, "page", faults, minimum=1), count_of(place, "total_pages", faults, minimum=1)
    if number is None or total is None or total > 10_000 or number > total:
        if not faults:
            faults.append(Fault("page", f"page {number} of {total}", "fetch it again", "invalid"))
    else:
        if number in numbers:
            faults.append(Fault("page", f"page {number} is given twice", "give each page once", "duplicate"))
        numbers[number] = name
        totals.add(total)
    maker.report(faults, file=name, place=("pagination",))


def score_of(record: Mapping[str, Any]) -> tuple[str, object] | None:
    """Return (field, value) of a record's score, under its new name or its old; None where it has no such field."""
    inner = record.get("evaluations")
    for holder in (record, inner if isinstance(inner, dict) else {}):
        for field in FIELDS:
            if field in holder:
                return field, holder[field]
        for field in BREAKDOWNS:
            summary = holder[field].get("summary") if isinstance(holder.get(field), dict) else None
            for rate in RATES:
                if isinstance(summary, dict) and rate in summary:
                    return f"{field}.summary.{rate}", summary[rate]
    return None


def whole_counts(fractions: list[Decimal], denominator: int) -> bool:
    """Whether every fraction is a whole count over the denominator, to the last digit it was written with."""
    for value in fractions:
        count = (value * denominator).to_integral_value()
        places = max(-int(value.as_tuple().exponent), 0)
        # A float prints 17 digits, the last of which may be off by a few.
        tolerance = Fraction(1, 10 ** min(places, 15)) if places >= 16 else Fraction(1, 2 * 10**places)
        if abs(Fraction(value) - Fraction(int(count), denominator)) > tolerance:
            return False
    return bool(fractions)


def _make(pages: list[Page], maker: Maker, published_at: datetime | None) -> None:
    problems = maker.problems
    on = On(BENCHMARK, BENCHMARK_VERSION)
    definition = maker.metric("task_completion_rate", on)
    turns_definition = maker.metric("turns_per_task", on, unit="count")
    found: list[tuple[Page, str, dict[str, Any], str, Decimal, str]] = []
    known_field = False
    seen: dict[str, str] = {}
    for page in pages:
        for place, record in page.records:
            score = score_of(record)
            if score is None:
                continue
            known_field = True
            field, value = score
            if is_absent(value):
                continue
            faults: Faults = []
            number = exact({field: value}, field, faults)
            name = name_of(record, "name", faults)
            if number is not None and not 0 <= number <= 1:
                hint = "the field is a fraction; a table with both units is not scaled, but fetched again"
                message = f"{shown(value)} is no fraction, so the table mixes units or has changed its unit"
                faults.append(Fault(field, message, hint, "unit_mix"))
            if name in seen:
                faults.append(Fault("name", f"{shown(name)} stands at {seen[name]} already", "give each model once", "duplicate"))
            good = not faults
            maker.report(faults, file=page.name, place=(place,))
            if good and number is not None:
                seen[name] = place
                found.append((page, place, record, name, number, str(value)))
    if not known_field:
        problems.add(
            "no record has a known field of EnterpriseOps-Gym-AA: the payload has changed its shape, or the tier does not show it",
            file=pages[0].name if pages else None,
            code="shape_changed",
            hint=f"known fields: {', '.join(FIELDS)}; the free tier has none of them",
        )
    elif not found and not problems:
        problems.add("every score is null: no model was evaluated", code="empty", hint="null is never read as zero")
    if problems or definition is None or turns_definition is None:
        return
    counted = _denominator([number for *_, number, _ in found])
    for page, place, record, name, number, written in found:
        faults = []
        slug = text_of(record, "slug", faults)
        released = text_of(record, "release_date", faults)
        turns_field = next((field for field in TURNS if not is_absent(record.get(field))), "")
        turns = exact(record, turns_field, faults) if turns_field else None
        maker.report(faults, file=page.name, place=(place,))
        evidence = maker.evidence(
            name,
            provenance="reported",
            run_status="complete",
            harness=HARNESS,
            published_at=page.captured_at or published_at,
            about="model",
            locator=place,
            notes=[
                f"slug {slug}" if slug else "",
                f"released {released}" if released else "",
                counted,
                "Source: Artificial Analysis, https://artificialanalysis.ai/",
            ],
        )
        maker.value(
            evidence, against(number * 100, definition.better), written, definition, on=on, repeats=REPEATS, locator=place
        )
        if turns is not None and turns > 0:
            maker.value(
                evidence,
                against(turns, turns_definition.better),
                str(record[turns_field]),
                turns_definition,
                on=on,
                locator=place,
            )


def _denominator(fractions: list[Decimal]) -> str:
    """Return which number of attempts the fractions are whole counts over."""
    announced, counted = ANNOUNCED_TASKS * REPEATS, COUNTED_TASKS * REPEATS
    if whole_counts(fractions, announced):
        return f"fractions are whole counts over {announced}"
    if whole_counts(fractions, counted):
        told = f"{counted} ({COUNTED_TASKS} tasks x {REPEATS})"
        return f"fractions are whole counts over {told}, not over the {ANNOUNCED_TASKS} announced"
    return "the number of tasks is not stated"
