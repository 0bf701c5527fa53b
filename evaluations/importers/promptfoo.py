"""promptfoo results: the JSON or JSON Lines that `promptfoo eval --output` writes.

Source of the format: repository promptfoo/promptfoo (MIT), `src/types/index.ts`; `results.version` 3.

    {"evalId", "results": {"version": 3, "timestamp", "results": [row], "stats": {"successes", "failures", "errors"}}, "metadata"}
    row = {"testIdx", "promptIdx", "provider": {"id", "label"}, "success", "failureReason": 0 none | 1 assertion | 2 error,
           "namedScores": {metric: score}, "gradingResult": {"namedScoreWeights"} | null, "response": {"output"},
           "testCase": {"assert": [{"type", "metric"}]}}

JSON Lines holds one row a line. A profile is required (`profiles.py`): `of` is the `metric` that assertions carry, and "counts" says
whether their "passes" (the default) or their "failures" are what our metric counts. "providers"* maps each provider's label (its id
where it has none) to the model's name: an id is often a script's path, and one id may stand for two models.

- n = the tests that carry an assertion of the metric, run or not; repeats and prompts are repeats of a test. An errored row has no
  named score, and is counted as errored. A test without such an assertion passes by itself and is no evidence.
- A row whose model said nothing is unscored, whatever its assertions made of it: `not-contains` passes on silence.
- A score between 0 and the weight of its assertions is neither a pass nor a failure: unscored.
- Where the file states how many rows succeeded, failed and erred, and its rows say otherwise, it is refused.
- JSON Lines has no mark of completion: the run's status is `unknown`. CSV, XML and YAML are refused, and the JSON asked for: a CSV does
  not say which assertions an errored test carries, and the YAML is full of aliases.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from evaluations.importers import outcomes, profiles
from evaluations.importers.base import Intake, Pair, Problems, Profile, Registry, refuse
from evaluations.importers.decoding import decode_text, read_bounded
from evaluations.importers.fields import Fault, Faults, NumberText, count_of, instant_of, shown
from evaluations.importers.jsontext import kind_of, parse
from evaluations.importers.making import Maker, On
from evaluations.importers.numbers import exact_text
from evaluations.importers.outcomes import Attempt
from evaluations.importers.profiles import Measure
from evaluations.kernel.names import foreign

NAME = "promptfoo"
VERSION = 1
GROUP = False
TAKES_PROFILE = True

MAX_BYTES = 32 * 1024 * 1024
COUNTED = {"passes": frozenset({outcomes.TASK_DONE}), "failures": frozenset({outcomes.TASK_FAILED})}

_HINT = "give the file as promptfoo wrote it"


class Found(NamedTuple):
    """What a file holds: its rows with their places, the stated counts, and what it says of the run."""

    rows: list[tuple[str, dict[str, Any]]]
    stats: Mapping[str, Any]
    about: Mapping[str, Any]
    whole: bool


def sniff(head: bytes, name: str) -> bool:
    """Results in any of promptfoo's forms; those that are not read are refused with the form to give."""
    if head.lstrip()[:1] == b"{":
        return (b'"evalId"' in head and b'"results"' in head) or (b'"promptIdx"' in head and b'"testCase"' in head)
    return head.startswith((b"evalId:", b"<promptfoo")) or (b",Status,Score,Named Scores," in head)


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Yield the pairs of one file. Raises `InputRefused` with every problem."""
    ((name, stream),) = files.items()
    problems = Problems(name)
    maker = Maker(problems, registry=intake.registry, source=intake.source)
    if intake.subject is not None:
        problems.add("the profile names the models", field="subject", code="not_taken", hint="leave the subject out")
    found = open_results(read_bounded(stream, name=name, limit=MAX_BYTES, hint="export fewer tests a file"), problems)
    problems.raise_any()
    metrics = sorted({metric for _, row in found.rows for metric in _asserted(row)})
    why = "an assertion's metric does not say what it measures: " + (", ".join(map(shown, metrics[:8])) or "no test has one")
    profile = profiles.required(intake.profile, NAME, file=name, why=why)
    measures = read_plan(profile, intake.registry)
    providers = profiles.names_map(profile, "providers", problems)
    _check_stats(found, problems)
    by_provider: dict[str, list[dict[str, Any]]] = {}
    for place, row in found.rows:
        key = _provider(row, place, problems)
        if key and key not in providers and key not in by_provider:
            hint = f'say which model it is in the profile, under "providers": {{{shown(key)[1:-1]!r}: "…"}}'
            problems.add(f"the provider {shown(key)} is not mapped", field=f"{place}.provider", code="unmapped_name", hint=hint)
        by_provider.setdefault(key, []).append(row)
    problems.raise_any()
    for key, rows in by_provider.items():
        _make(providers[key], key, rows, measures, found, maker, intake, profiles.told(profile))
    if not maker.pairs and not problems:
        hint = f"the file has {', '.join(map(shown, metrics[:8])) or 'none'}: correct `of` in the profile"
        problems.add("no test carries an assertion of the profile's metrics", code="empty", hint=hint)
    problems.raise_any()
    yield from maker.pairs


def read_plan(profile: Profile, registry: Registry) -> tuple[Measure, ...]:
    """Return the measures. Raises `InputRefused` with what is wrong in the profile."""
    measures = profiles.read_measures(profile, registry, fields=("providers",), also=("counts",))
    problems, faults = Problems(profile.file), Faults()
    if "providers" not in profile.fields:
        faults.append(Fault("providers", "it is missing", 'write {"label of a provider": "name of its model"}', "missing"))
    for index, measure in enumerate(measures):
        if measure.own.get("counts", "passes") not in COUNTED:
            faults.append(
                Fault(f"measures.{index}.counts", f"it is {kind_of(measure.own['counts'])}", "write passes or failures")
            )
        if measure.unit != "percent":
            faults.append(Fault(f"measures.{index}.unit", f"{shown(measure.unit)} is no unit of counted tests", "write percent"))
    profiles.report(profile, faults, problems)
    problems.raise_any()
    return measures


def open_results(data: bytes, problems: Problems) -> Found:
    """Return the rows of a file in any of the forms that are read."""
    name = problems.file
    if data.startswith((b"<promptfoo", b"evalId:")) or b",Status,Score,Named Scores," in data[:65536]:
        hint = "export the same evaluation as JSON, with --output results.json"
        raise refuse("of promptfoo's forms only its JSON and JSON Lines are read", file=name, code="unknown_shape", hint=hint)
    text = decode_text(data, name=name)
    first = text.lstrip().partition("\n")[0]
    if '"promptIdx"' not in first or '"evalId"' in first[:200]:
        return _whole(parse(text, problems), problems)
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            rows.append((f"line {number}", parse(line.strip(), problems, line=number)))
    return Found(_rows(rows, problems), {}, {}, whole=False)


def _whole(value: Any, problems: Problems) -> Found:
    results = value.get("results") if isinstance(value, dict) else None
    listed = results.get("results") if isinstance(results, dict) else None
    stats = results.get("stats") if isinstance(results, dict) else None
    if not isinstance(value, dict) or not isinstance(listed, list) or not listed or not isinstance(stats, dict):
        hint = "export it anew with a newer promptfoo; older exports hold counts and no rows"
        message = "there are no rows in `results.results`, or no `results.stats`"
        raise refuse(message, file=problems.file, code="unknown_shape", hint=hint)
    about = value.get("metadata")
    rows = _rows([(f"results.results[{index}]", row) for index, row in enumerate(listed)], problems)
    return Found(rows, stats, about if isinstance(about, dict) else {}, whole=True)


def _rows(rows: list[tuple[str, Any]], problems: Problems) -> list[tuple[str, dict[str, Any]]]:
    """Return the rows that have the shape of rows; others are problems."""
    kept = []
    for place, row in rows:
        case = row.get("testCase") if isinstance(row, dict) else None
        named = row.get("namedScores") if isinstance(row, dict) else None
        if not isinstance(case, dict) or not isinstance(named, dict) or not isinstance(row.get("success"), bool):
            problems.add(f"it is no row, but {kind_of(row)}", field=place, code="unknown_shape", hint=_HINT)
            continue
        reason = row.get("failureReason")
        if not isinstance(reason, NumberText) or str(reason) not in ("0", "1", "2") or row["success"] != (str(reason) == "0"):
            message = f"success {row['success']} and failure reason {shown(reason)} contradict each other"
            problems.add(message, field=f"{place}.failureReason", code="contradicts_counts", hint=_HINT)
            continue
        faults: Faults = []
        for field in ("testIdx", "promptIdx"):
            if count_of(row, field, faults) is None and not faults:
                faults.append(Fault(field, "it is missing", _HINT, "missing"))
        for fault in faults:
            problems.add(fault.message, field=f"{place}.{fault.field}", code=fault.code, hint=fault.hint)
        kept.append((place, row))
    return kept


def _check_stats(found: Found, problems: Problems) -> None:
    """Refuse a headline that its own rows contradict."""
    if not found.whole:
        return
    counted = Counter(str(row["failureReason"]) for _, row in found.rows)
    faults: Faults = []
    for field, reason in (("successes", "0"), ("failures", "1"), ("errors", "2")):
        stated = count_of(found.stats, field, faults)
        if stated is not None and stated != counted[reason]:
            message = f"{stated} are stated, and the rows hold {counted[reason]}"
            faults.append(Fault(field, message, "export the whole evaluation", "contradicts_counts"))
    for fault in faults:
        problems.add(fault.message, field=f"results.stats.{fault.field}", code=fault.code, hint=fault.hint)


def _provider(row: dict[str, Any], place: str, problems: Problems) -> str:
    provider = row.get("provider")
    named = (provider.get("label") or provider.get("id")) if isinstance(provider, dict) else None
    if isinstance(named, str) and not isinstance(named, NumberText) and named and not foreign(named):
        return named
    problems.add("the row names no provider in ASCII", field=f"{place}.provider", code="missing", hint=_HINT)
    return ""


def _asserted(row: Mapping[str, Any]) -> frozenset[str]:
    """Return the metrics that the assertions of a row's test carry, those of assertion sets included."""
    listed = row["testCase"].get("assert")
    found: set[str] = set()
    for each in listed if isinstance(listed, list) else []:
        inner = each.get("assert") if isinstance(each, dict) else None
        for one in (each, *(inner if isinstance(inner, list) else ())):
            metric = one.get("metric") if isinstance(one, dict) else None
            if isinstance(metric, str) and not isinstance(metric, NumberText):
                found.add(metric)
    return frozenset(found)


def outcome(row: Mapping[str, Any], metric: str) -> str:
    """Say what became of a row under the assertions of one metric."""
    grading = row.get("gradingResult")
    if str(row["failureReason"]) == "2" or not isinstance(grading, dict):
        return outcomes.ERROR
    if not _said(row):
        return outcomes.UNSCORED
    weights = grading.get("namedScoreWeights")
    score, weight = (
        exact_text(str(each)) if isinstance(each, NumberText) else None
        for each in (row["namedScores"].get(metric), weights.get(metric) if isinstance(weights, dict) else None)
    )
    if score is None or weight is None or weight <= 0:
        return outcomes.UNSCORED
    return outcomes.TASK_DONE if score == weight else outcomes.TASK_FAILED if score == 0 else outcomes.UNSCORED


def _make(
    subject: str,
    provider: str,
    rows: list[dict[str, Any]],
    measures: tuple[Measure, ...],
    found: Found,
    maker: Maker,
    intake: Intake,
    told: str,
) -> None:
    version = found.about.get("promptfooVersion")
    faults: Faults = []
    created = instant_of(found.about, "evaluationCreatedAt", faults)
    maker.report(faults, place=("metadata",))
    silent = sum(str(row["failureReason"]) != "2" and not _said(row) for row in rows)
    evidence = maker.evidence(
        subject,
        provenance="recounted",
        run_status="complete" if found.whole else "unknown",
        harness=f"promptfoo {version}"
        if isinstance(version, str) and version.isprintable() and len(version) < 40
        else "promptfoo",
        run_ended_at=created,
        published_at=intake.published_at,
        locator=f"provider {provider}",
        notes=[told, f"{silent} rows without any output" if silent else "", "" if found.whole else "no mark of completion"],
    )
    for measure in measures:
        repeats: Counter[str] = Counter()
        attempts = []
        for row in rows:
            if measure.of in _asserted(row):
                test = str(row["testIdx"])
                attempts.append(Attempt(test, repeats[test], outcome(row, measure.of)))
                repeats[test] += 1
        hits = COUNTED[str(measure.own.get("counts", "passes"))]
        on = On(measure.benchmark, measure.version, measure.slice)
        maker.attempts(evidence, attempts, metric=measure.definition.key, hits=hits, on=on)


def _said(row: Mapping[str, Any]) -> bool:
    response = row.get("response")
    said = response.get("output") if isinstance(response, dict) else None
    return bool(said.strip()) if isinstance(said, str) else bool(said)
