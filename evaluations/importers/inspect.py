"""Inspect AI logs, `.eval` and `.json`; how they are read as bytes stands in `inspect_log.py`.

Status comes first. `started`, `cancelled` and `error` runs, and logs that were invalidated, are kept with their status and never
qualify, whatever scores they carry; nor does a `success` without scores, or one over a part of the data set (`partial`).

- n = planned samples, repeats = epochs: `results.total_samples`, else the data set with its limit. Inspect's own figure leaves out
  samples that errored or have no score, so that 12 right of 14 scored of 20 read 0.857; here they count against the subject: 60.
- Where the log holds its samples the rate is counted from them (`recounted`), and Inspect's figure is kept as the value as written. A
  figure that its own samples contradict is refused. Without samples it is a `claim`: n is given, and no k, so no bound can clear.
- Over epochs k is the mean. Other reducers (mode, pass_at_k, …) are other measures: they are told in the note.
- What a score means stands in no log: `accuracy` may be a refusal rate or an exploit rate. A profile for `inspect` says it:

      "task": "acme_refusals", "task_version": "2", "tasks": 120, "subject_is": "model",
      "measures": [{"of": "refusal_judge", "values": {"Yes": "1", "No": "0", "I": "unscored"}, "judge": "subject", …}]

  `of` is the score's name in `results.scores`; where the results name a scorer that gives several, `scorer` is its name and `of` the
  key. `headline` is the metric to hold against the samples, by default accuracy or mean. `task` is the log's, at the top or in a
  measure; `task_version`, where given, must be the log's. `tasks` says how many samples the benchmark version has, where that is not
  the whole data set. `values` reads a scorer's words, each as 0 to 1 or `unscored`; without it C, I, P, N, yes, no, true, false and
  numbers are read as Inspect reads them. `whole` counts nothing but 1 as a hit, for grades with partial credit. `unless` names another
  key of the scorer: where that is above 0.5 a 1 is contradicted and unscored (a refusal that did the task). `judge` names who graded
  where the log does not: `subject`, or a model; `judge_arg` the argument of the task that says it.
- The subject as written is the model asked for with the settings that make it another one: "openai/gpt-5 (reasoning_effort=high)".
  Who answered, fallbacks included, is kept beside it with the same settings, and must be the same by alias.
- A scorer that asks a model is judged by the one it names, else by the role `grader`, else by the model under test.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, BinaryIO, NamedTuple

from evaluations.importers import profiles
from evaluations.importers.archives import looks_like_zip
from evaluations.importers.base import EvidenceDraft, Intake, Pair, Problems, refuse
from evaluations.importers.fields import Faults, NumberText, count_of, shown
from evaluations.importers.inspect_identity import ended_at, harness, judge_of, settings
from evaluations.importers.inspect_log import Log
from evaluations.importers.inspect_scores import UNSCORED, Plan, Reading, Tally, Watch
from evaluations.importers.making import Maker, On, against
from evaluations.importers.names import name_of
from evaluations.importers.numbers import exact_text
from evaluations.importers.profiles import Measure

NAME = "inspect"
VERSION = 1
GROUP = False
TAKES_PROFILE = True
READS_MARK = True
"""Other people's editors put a byte order mark before their JSON; it says nothing, and is passed over."""

FIELDS = ("task", "task_version", "tasks", "subject_is")
OF_A_MEASURE = ("task", "scorer", "headline", "values", "whole", "unless", "judge", "judge_arg")
STATUS = {"started": "running", "success": "complete", "cancelled": "cancelled", "error": "error"}
HEADLINES = ("accuracy", "mean")
_TOLERANCE = Decimal("0.000001")


class Graded(NamedTuple):
    """One score of the log's results: its place, and its entry."""

    place: str
    entry: Mapping[str, Any]

    def written(self, measure: Measure) -> str:
        """Return the figure that Inspect prints for a measure, or ""."""
        metrics, named = self.entry.get("metrics"), measure.own.get("headline")
        for metric in (named,) if isinstance(named, str) else HEADLINES:
            held = metrics.get(metric) if isinstance(metrics, dict) else None
            value = held.get("value") if isinstance(held, dict) else None
            if isinstance(value, NumberText):
                return str(value)
        return ""


def sniff(head: bytes, name: str) -> bool:
    """An archive that begins as Inspect writes it, or the object of a log."""
    if looks_like_zip(head):
        return b"_journal/start.json" in head or (b"samples/" in head and b"_epoch_" in head)
    return head.lstrip()[:1] == b"{" and b'"eval"' in head and b'"task_id"' in head and b'"run_id"' in head


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Yield the pairs of each log. Raises `InputRefused` with every problem."""
    for name, stream in files.items():
        problems = Problems(name)
        maker = Maker(problems, registry=intake.registry, source=intake.source)
        if intake.subject is not None:
            problems.add("the log names its model", field="subject", hint="leave the subject out")
        _read(Log(stream, name=name), maker, intake)
        problems.raise_any()
        yield from maker.pairs


def _read(log: Log, maker: Maker, intake: Intake) -> None:
    spec = log.header["eval"]
    graded = _graded(log)
    faults: Faults = []
    task = name_of(spec, "task", faults)
    maker.report(faults, place=("eval",))
    told = ", ".join(shown(name) for name in graded) or "none"
    why = f"what the scores of the task {shown(task)} mean is not said in the log; its scores: {told}"
    profile = profiles.required(intake.profile, NAME, file=log.name, why=why)
    measures = profiles.read_measures(profile, intake.registry, fields=FIELDS, also=OF_A_MEASURE)
    chosen = [each for each in measures if (each.own.get("task") or profile.fields.get("task")) == task]
    if not chosen:
        raise refuse(
            f"the profile has no measure for the task {shown(task)}",
            file=log.name,
            field="eval.task",
            code="unknown_task",
            hint=f"name it as `task` in the profile; the log's scores are {told}",
        )
    readings = [_reading(each, graded, maker) for each in chosen]
    planned_version = profile.fields.get("task_version")
    found_version = str(spec.get("task_version", ""))
    if planned_version is not None and str(planned_version) != found_version:
        message = f"the task has version {shown(found_version)}, the profile is for {shown(str(planned_version))}"
        maker.problems.add(message, field="eval.task_version", code="other_version", hint="versions never mix: make it a profile")
    if maker.problems:
        return
    watch = Watch(log.name)
    config = spec.get("config")
    epochs = str(config.get("epochs", 1) if isinstance(config, dict) else 1) not in ("1", "None")
    tallies = [Tally(reading, epochs=epochs) for reading in readings]
    for row in log.rows():
        watch.add(row)
        for tally in tallies:
            tally.add(row)
    _make(log, maker, intake, list(zip(chosen, tallies, strict=True)), graded, watch)


def _graded(log: Log) -> dict[str, list[Graded]]:
    """Return the results by score name: one for each reducer. Version 1 has a single scorer."""
    results = log.header.get("results")
    results = results if isinstance(results, dict) else {}
    listed = results.get("scores")
    if not isinstance(listed, list) and isinstance(results.get("scorer"), dict):
        listed = [{**results["scorer"], "metrics": results.get("metrics")}]
    found: dict[str, list[Graded]] = {}
    for index, entry in enumerate(listed if isinstance(listed, list) else ()):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            raise refuse(
                "it is no score", file=log.name, field=f"results.scores[{index}]", code="malformed", hint="fetch it again"
            )
        found.setdefault(name, []).append(Graded(f"results.scores[{index}]", entry))
    return found


def _reading(measure: Measure, graded: Mapping[str, list[Graded]], maker: Maker) -> Reading:
    """Return how a measure's score is read, after checking the profile's words for its values."""
    given = measure.own.get("values", {})
    values: dict[str, Decimal | None] = {}
    for word, worth in given.items() if isinstance(given, dict) else ():
        number = exact_text(str(worth)) if isinstance(worth, str) else None
        if worth != UNSCORED and (number is None or not 0 <= number <= 1):
            hint = 'write "1", "0", a fraction as text, or "unscored"'
            maker.problems.add(f"{shown(worth)} is no worth", field=f"values.{word}"[:120], code="not_a_number", hint=hint)
        values[word] = number
    if not isinstance(given, dict):
        maker.problems.add("it is no object", field="values", hint='write {"Yes": "1", "No": "0", "I": "unscored"}')
    if measure.unit != "fraction":
        message = f"scores are 0 to 1, the profile says {measure.unit}"
        maker.problems.add(message, field="unit", code="wrong_unit", hint="write fraction")
    entries = graded.get(_named(measure), [])
    scorer = measure.own.get("scorer") or (entries[0].entry.get("scorer") if entries else None)
    if graded and not entries:
        known = ", ".join(shown(name) for name in graded)
        maker.problems.add(
            f"the log has no score {shown(_named(measure))}", field="results.scores", code="unknown_score", hint=f"it has {known}"
        )
    whole, unless = measure.own.get("whole") is True, measure.own.get("unless", "")
    return Reading(measure.of, scorer if isinstance(scorer, str) and scorer != measure.of else "", values, whole, str(unless))


def _named(measure: Measure) -> str:
    """Return the name under which the results hold a measure."""
    return str(measure.own.get("scorer", measure.of))


def _make(
    log: Log,
    maker: Maker,
    intake: Intake,
    measured: list[tuple[Measure, Tally]],
    graded: Mapping[str, list[Graded]],
    watch: Watch,
) -> None:
    spec, status = log.header["eval"], STATUS[log.header["status"]]
    plan, whole_set, trimmed = _plan(log, maker, intake, watch)
    faults: Faults = []
    model = name_of(spec, "model", faults)
    maker.report(faults, place=("eval",))
    suffix = settings(log)
    answered = {f"{name}{suffix}" for name in (*watch.answered, *log.answered())}
    for name in answered:
        name_of({"output.model": name}, "output.model", faults)
    maker.report(faults)
    if maker.problems:
        return
    notes = _notes(log, plan, watch, graded, measured, trimmed=trimmed)
    updates = log.header.get("log_updates")
    if log.header.get("invalidated") is True:
        status, notes = "error", [*notes, "the log was invalidated after the run"]
    if isinstance(updates, list) and updates:
        notes.append(f"edited after the run, {len(updates)} times")
    scores = any(graded.values()) or any(tally.scored for _, tally in measured)
    if status == "complete" and not scores:
        status = "unscored"
    elif status == "complete" and whole_set is not None and plan.tasks < whole_set:
        status = "partial"
        notes.append(f"limited: {plan.tasks} samples of a data set of {whole_set}")
    evidence = maker.evidence(
        f"{model}{suffix}",
        provenance="claim" if trimmed else "recounted",
        run_status=status,
        harness=harness(spec),
        run_ended_at=ended_at(log, maker),
        published_at=intake.published_at,
        answered=answered,
        about=intake.profile.fields.get("subject_is", "model") if intake.profile else "model",
        locator=f"{spec['task']} {spec.get('run_id', '')}".strip(),
        notes=[*notes, profiles.told(intake.profile) if intake.profile else ""],
    )
    if evidence.about not in ("model", "agent"):
        maker.problems.add(f"{shown(evidence.about)} is neither model nor agent", field="subject_is", hint="write model or agent")
    for measure, tally in measured:
        _observe(log, maker, evidence, measure, tally, graded.get(_named(measure), []), plan, trimmed=trimmed)


def _observe(
    log: Log,
    maker: Maker,
    evidence: EvidenceDraft,
    measure: Measure,
    tally: Tally,
    entries: list[Graded],
    plan: Plan,
    *,
    trimmed: bool,
) -> None:
    """Add one measure's observation: counted from the rows where they are there, else as the log states it."""
    definition, on = measure.definition, On(measure.benchmark, measure.version, measure.slice)
    headline = next((each for each in entries if each.entry.get("reducer") in (None, "mean")), None)
    shown_by = headline or (entries[0] if entries else None)
    judge = judge_of(log, measure, shown_by.entry if shown_by else {}, maker)
    better = definition.better
    errored: int | None
    said = headline.written(measure) if headline is not None else ""
    place, stated = headline.place if headline is not None else "results.scores", exact_text(said)
    if not trimmed:
        if stated is not None and not (tally.reading.whole and plan.epochs > 1):  # Inspect takes the mean of epochs first
            _compare(stated, place, tally, maker)
        if maker.problems:
            return
        counts = tally.counts(plan, better=better)
        if not tally.fractional:
            maker.rate(evidence, counts, definition, on=on, judge=judge, said=said)
            return
        errored, unscored = counts.errored, counts.unscored
        value = against(tally.mean(plan, better=better) * 100, better)
    else:
        if headline is None or stated is None or not 0 <= stated <= 1:
            message = f"the score {shown(measure.of)} has no samples, and {shown(said) if said else 'none'} as its figure"
            hint = "give the log with its samples"
            maker.problems.add(message, field=place, code="not_a_number", hint=hint)
            return
        lost = _lost(log, headline, plan, maker)
        mean = (stated * (plan.runs - lost) + (lost if better == "lower" else 0)) / plan.runs
        value = against(mean * 100, better)
        errored, unscored = None, -(-lost // plan.epochs)
    if maker.problems:
        return
    repeats, missing = plan.epochs if plan.epochs > 1 else None, (errored, unscored)
    written = said or f"{tally.total} of {plan.runs}"
    maker.value(evidence, value, written, definition, on=on, n=plan.tasks, repeats=repeats, missing=missing, judge=judge)


def _compare(stated: Decimal, place: str, tally: Tally, maker: Maker) -> None:
    """Refuse a figure that is not the mean of its own samples."""
    mean = tally.mean_as_stated()
    if mean is None or abs(mean - stated) > _TOLERANCE:
        maker.problems.add(
            f"the log states {stated}, its samples give {f'{mean:.6f}' if mean is not None else 'no score'}",
            field=place,
            code="contradicts_counts",
            hint="the log was edited, or its figure is no mean: give the log as Inspect wrote it, or name another `headline`",
        )


def _lost(log: Log, headline: Graded, plan: Plan, maker: Maker) -> int:
    """Return how many planned runs are not in the figure of a log that has no samples."""
    faults: Faults = []
    scored = count_of(headline.entry, "scored_samples", faults)
    results = log.header.get("results")
    completed = count_of(results if isinstance(results, dict) else {}, "completed_samples", faults)
    maker.report(faults, place=(headline.place,))
    counted = scored * plan.epochs if scored is not None else completed if completed is not None else plan.runs
    return max(plan.runs - counted, 0)


def _plan(log: Log, maker: Maker, intake: Intake, watch: Watch) -> tuple[Plan, int | None, bool]:
    """Return the plan, the size of the whole set where it is known, and whether samples were trimmed from the log after the run."""
    spec, results = log.header["eval"], log.header.get("results")
    results = results if isinstance(results, dict) else {}
    faults: Faults = []
    config = spec.get("config") if isinstance(spec.get("config"), dict) else {}
    dataset = spec.get("dataset") if isinstance(spec.get("dataset"), dict) else {}
    epochs = count_of(config, "epochs", faults, minimum=1) or max(watch.highest_epoch, 1)
    samples = count_of(dataset, "samples", faults)
    total = count_of(results, "total_samples", faults)
    completed = count_of(results, "completed_samples", faults) or 0
    limit = count_of(config, "limit", faults) if isinstance(config.get("limit"), NumberText) else None
    maker.report(faults, place=("eval",))
    tasks = -(-total // epochs) if total else min(samples, limit or samples) if samples else limit or 0
    stated = intake.profile.fields.get("tasks") if intake.profile else None
    whole = int(stated) if isinstance(stated, NumberText) and stated.isdigit() and len(stated) < 9 else samples
    if watch.rows > tasks * epochs or len(watch.tasks) > tasks:
        if log.header["status"] == "success" and total:
            message = f"it holds {watch.rows} samples, and says that {total} were planned"
            maker.problems.add(message, field="results.total_samples", code="contradicts_counts", hint="fetch the log again")
        tasks = max(len(watch.tasks), -(-watch.rows // epochs))
    if not tasks:
        maker.problems.add(
            "how many samples were planned is not known", field="results", code="missing", hint="fetch the log again"
        )
        tasks = 1
    return Plan(tasks, epochs, watch.errored, watch.limited, watch.rows), whole, watch.rows < completed or not watch.rows


def _notes(
    log: Log,
    plan: Plan,
    watch: Watch,
    graded: Mapping[str, list[Graded]],
    measured: list[tuple[Measure, Tally]],
    *,
    trimmed: bool,
) -> list[str]:
    """Return what people should know: what is missing, other reducers, and what the log says beside its scores."""
    notes = [f"status {log.header['status']}"]
    if trimmed:
        notes.append(f"the log holds {watch.rows} of its samples, so its figure cannot be counted again")
    else:
        notes.append(f"{plan.runs} runs planned, {plan.seen} in the log, {plan.errored} errored")
    notes.extend([f"{plan.limited} stopped by a limit"] if plan.limited else [])
    for measure, tally in measured:
        words = ", ".join(f"{word} {count}" for word, count in sorted(tally.by_word.items()))
        unscored = plan.missing(tally.scored)
        if not trimmed:
            notes.append(f"{measure.of}: {tally.scored} scored, {unscored} not" + (f" ({words})" if words else ""))
            notes.extend(
                [f"{tally.contradicted} of {measure.of} contradicted by {tally.reading.unless}"] if tally.contradicted else []
            )
        others = [each for each in graded.get(_named(measure), []) if each.entry.get("reducer") not in (None, "mean")]
        notes.extend(f"{measure.of} by {each.entry['reducer']}: {each.written(measure)}" for each in others)
    unread = sorted(set(graded) - {_named(measure) for measure, _ in measured})
    notes.extend([f"scores not read: {', '.join(unread)[:200]}"] if unread else [])
    revision = log.header["eval"].get("revision")
    if isinstance(revision, dict):
        notes.append(
            f"revision {revision.get('commit', '')}" + (" with uncommitted changes" if revision.get("dirty") is True else "")
        )
    return [note for note in notes if note.isprintable()]
