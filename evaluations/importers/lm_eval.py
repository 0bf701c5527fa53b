"""Results of the lm-evaluation-harness, of four generations, alone or with their samples.

Source of the format: repository EleutherAI/lm-evaluation-harness (MIT), `lm_eval/loggers/evaluation_tracker.py`.

    results_<time>.json           {"results": {task: {"acc,none", "acc_stderr,none", …}}, "groups", "group_subtasks", "versions",
                                   "n-shot", "n-samples": {task: {"original", "effective"}}, "config", "date", "lm_eval_version", …}
    samples_<task>_<time>.jsonl   one row a document and filter: {"doc_id", "filter", "acc": 1.0, …}

To 2023 a key was `acc` alone, and n and date stood nowhere; a fork of 2022 has results.<task>.<time>.acc; in 0.4 a key is
"metric,filter", and two filters of one task are two measures; from 0.4.13 `model_args` is an object.

- What a task's `acc` means the file does not say. A profile for `lm-eval-harness` does, for each measure by `of` (the metric), `task`
  and `filter` (`none` where left out). `binary` says that every document counts 0 or 1: then k = value x n, which must be whole.
  `task_version` and `n_shot`, where given, must be the file's. `unit` is fraction unless the task prints percent.
- n = `n-samples.effective`, the documents that were run. Fewer than `original`, or a `limit`, make the run `partial`.
- With all samples of a measure the rate is counted from them, and must be what the results say. Fewer rows than n are not counted.
- **A group is an average over tasks**, repeated among the tasks: it is read only where the measure says `"group": true`, and then has
  no n. A task of the same name is never taken for it, nor it for a task.
- The subject is `pretrained` or `model` of the arguments, with revision, quantisation and other settings. `model_name` may be random,
  and a local path or nothing is no name: the subject is then given with the command.
- A `stderr` may be "N/A", or 0 for a score between 0 and 1 by a known defect; it is never used.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from evaluations.importers import profiles
from evaluations.importers.base import EvidenceDraft, Intake, Pair, Problems, refuse
from evaluations.importers.decoding import decode_text, read_bounded
from evaluations.importers.fields import Faults, NumberText, count_of, is_absent, shown
from evaluations.importers.jsontext import kind_of, parse
from evaluations.importers.lm_eval_samples import Rows, read_rows
from evaluations.importers.making import Maker, On, against
from evaluations.importers.names import name_of
from evaluations.importers.numbers import exact_text
from evaluations.importers.outcomes import counts_over
from evaluations.importers.profiles import Measure

NAME = "lm-eval-harness"
VERSION = 1
GROUP = True
TAKES_PROFILE = True

OF_A_MEASURE = ("task", "filter", "group", "binary", "task_version", "n_shot")
NO_IDENTITY = frozenset(
    {
        "api_key",
        "base_url",
        "batch_size",
        "device",
        "max_batch_size",
        "num_concurrent",
        "max_retries",
        "parallelize",
        "trust_remote_code",
    }
)

_LIMIT = 64 * 1024 * 1024
_SAMPLES = re.compile(r"samples_(.+)_\d{4}-\d\d-\d\dT[0-9.:-]+\.jsonl\Z")
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)")
_TOLERANCE = Decimal("0.000001")


def sniff(head: bytes, name: str) -> bool:
    """Results, or a samples file of them."""
    first = head.split(b"\n", 1)[0]
    if b'"doc_id"' in first and b'"filtered_resps"' in first:
        return True
    start = head.lstrip()[:40]
    return start.startswith(b"{") and b'"results"' in start and b'"name"' not in start and b'"version": 3' not in head[:200]


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Yield the pairs of one results file, with whatever samples are given beside it. Raises `InputRefused` with every problem."""
    found: list[tuple[str, dict[str, Any]]] = []
    samples: dict[str, Rows] = {}
    for name, stream in files.items():
        if named := _SAMPLES.match(PurePosixPath(name).name):
            if named[1] in samples:
                raise refuse(
                    f"samples of {shown(named[1])} are given twice", file=name, code="duplicate", hint="give one run's files"
                )
            samples[named[1]] = read_rows(stream, name)
            continue
        value = parse(decode_text(read_bounded(stream, name=name, limit=_LIMIT), name=name), Problems(name))
        if not isinstance(value, dict) or not isinstance(value.get("results"), dict) or not value["results"]:
            raise refuse(
                f"it is no results file, but {kind_of(value)}",
                file=name,
                code="unknown_shape",
                hint="give results_<time>.json; numbers without task, model and harness are no evidence",
            )
        found.append((name, value))
    if len(found) != 1:
        raise refuse(
            f"{len(found)} results files are given",
            file=next(iter(files), ""),
            code="duplicate" if found else "empty",
            hint="give one results file, and the samples of its tasks beside it",
        )
    ((name, value),) = found
    maker = Maker(Problems(name), registry=intake.registry, source=intake.source, subject=intake.subject)
    _read(name, value, samples, maker, intake)
    maker.problems.raise_any()
    yield from maker.pairs


def _read(name: str, value: dict[str, Any], samples: Mapping[str, Rows], maker: Maker, intake: Intake) -> None:
    results = value["results"]
    told = ", ".join(shown(task) for task in list(results)[:5])
    profile = profiles.required(
        intake.profile, NAME, file=name, why=f"what the numbers of its tasks mean is not said; the first are {told}"
    )
    measures = profiles.read_measures(profile, intake.registry, fields=("task", "filter"), also=OF_A_MEASURE)
    for measure in measures:
        if not isinstance(measure.own.get("task", profile.fields.get("task")), str):
            raise refuse(
                "a measure names no task", file=profile.file, field="measures.task", code="missing", hint="name its `task`"
            )
    subject = _subject(value, maker, intake)
    unmatched = [task for task in samples if task not in results]
    for task in unmatched:
        maker.problems.add(
            f"the results have no task {shown(task)}",
            file=samples[task].name,
            code="unknown_task",
            hint="give the files of one run",
        )
    if maker.problems:
        return
    fork = all(
        isinstance(held, dict) and held and all(isinstance(each, dict) for each in held.values()) for held in results.values()
    )
    stamps = sorted({stamp for held in results.values() for stamp in held}) if fork else [""]
    for stamp in stamps:
        one = {task: held[stamp] for task, held in results.items() if stamp in held} if fork else results
        _run(one, value, samples, measures, maker, intake, subject=subject, stamp=stamp)
    if not maker.pairs and not maker.problems:
        wanted = ", ".join(shown(str(measure.own.get("task", profile.fields.get("task")))) for measure in measures[:5])
        maker.problems.add(
            f"the results have none of the profile's tasks: {wanted}",
            field="results",
            code="unknown_task",
            hint=f"they have {told}",
        )


def _run(
    results: Mapping[str, Any],
    value: Mapping[str, Any],
    samples: Mapping[str, Rows],
    measures: tuple[Measure, ...],
    maker: Maker,
    intake: Intake,
    *,
    subject: str,
    stamp: str,
) -> None:
    """Add the observations of one run: one evidence for each task, since each may be whole or limited by itself."""
    profile = intake.profile
    by_task: dict[str, list[Measure]] = {}
    for measure in measures:
        task = str(measure.own.get("task", profile.fields.get("task") if profile else ""))
        if task in results:
            by_task.setdefault(task, []).append(measure)
    for task, mine in by_task.items():
        held = results[task]
        if not isinstance(held, dict):
            maker.problems.add(f"it is {kind_of(held)}", field=f"results.{task}", code="unknown_shape", hint="fetch it again")
            continue
        planned, original = _sizes(value, task, maker)
        limited = (planned is not None and original is not None and planned < original) or not is_absent(
            _config(value).get("limit")
        )
        rows = samples.get(task)
        counted = rows is not None and planned is not None and set(rows.documents.values()) == {planned}
        parts = _parts(value, task)
        versions, shots = value.get("versions"), value.get("n-shot")
        evidence = maker.evidence(
            subject,
            provenance="recounted" if counted else "run_log",
            run_status="partial" if limited else "complete",
            harness=_harness(value),
            run_ended_at=_date(value, stamp),
            published_at=intake.published_at,
            locator=f"results.{task}" + (f".{stamp}" if stamp else ""),
            notes=[
                f"limited: {planned} of {original} documents" if limited else "",
                f"{sum(rows.documents.values())} samples, of {planned} documents a filter: not counted"
                if rows and not counted
                else "",
                f"an average over the tasks {', '.join(parts)}"[:300] if parts else "",
                f"task version {versions[task]}" if isinstance(versions, dict) and task in versions else "",
                f"{shots[task]} examples shown" if isinstance(shots, dict) and task in shots else "",
                f"weights {sha}" if isinstance(sha := _config(value).get("model_sha"), str) else "",
                profiles.told(profile) if profile else "",
            ],
        )
        for measure in mine:
            _measure(task, held, measure, evidence, maker, rows if counted else None, value, n=planned, group=bool(parts))


def _measure(
    task: str,
    held: Mapping[str, Any],
    measure: Measure,
    evidence: EvidenceDraft,
    maker: Maker,
    rows: Rows | None,
    value: Mapping[str, Any],
    *,
    n: int | None,
    group: bool,
) -> None:
    filtered = str(measure.own.get("filter", "none"))
    key = f"{measure.of},{filtered}"
    if key not in held and filtered == "none" and measure.of in held:
        key = measure.of  # to 2023
    place = f"results.{task}.{key}"[:200]
    if group is not (measure.own.get("group") is True):
        message = "it is an average over a group of tasks" if group else "it is a task, and the profile says a group"
        maker.problems.add(message, field=place, code="group", hint="say `group` in the measure where the average is meant")
        return
    for field, part in (("task_version", "versions"), ("n_shot", "n-shot")):
        wanted, stated = measure.own.get(field), value.get(part)
        stated = stated.get(task) if isinstance(stated, dict) else None
        if wanted is not None and (stated is None or str(stated) != str(wanted)):
            message = f"{part} is {shown(stated)}, the profile is for {shown(str(wanted))}"
            maker.problems.add(
                message, field=f"{part}.{task}", code="other_version", hint="versions never mix: make it a profile"
            )
            return
    written = held.get(key)
    number = exact_text(str(written)) if isinstance(written, NumberText) else None
    if number is None:
        hint = (
            f"the task has {', '.join(shown(each) for each in held if ',' in each)[:200]}" if key not in held else "run it again"
        )
        maker.problems.add(f"{shown(written)} is no finite number", field=place, code="not_a_number", hint=hint)
        return
    mixed = profiles.mix_of_units([(place, number)], measure)
    if mixed is not None or number < 0:
        message = mixed[1] if mixed else f"{number} is below 0"
        maker.problems.add(message, field=place, code="unit_mix", hint="correct the profile's unit")
        return
    definition, on = measure.definition, On(measure.benchmark, measure.version, measure.slice)
    worth = measure.in_our_unit(number)
    if rows is not None and n is not None and not group:
        held_key = measure.of, filtered
        if held_key not in rows.sums:
            message = f"the samples have no {shown(measure.of)}"
            maker.problems.add(message, file=rows.name, code="unknown_score", hint="give all of them")
            return
        unscored = rows.unscored.get(held_key, 0)
        mean = rows.sums[held_key] / n if not unscored else rows.sums[held_key] / max(n - unscored, 1)
        if min(abs(mean - number), abs(rows.sums[held_key] / n - number)) > _TOLERANCE and definition.unit == "percent":
            message = f"the results say {written}, the samples give {mean:.6f}"
            maker.problems.add(message, field=place, code="contradicts_counts", hint="give the samples of this very run")
            return
        if rows.whole[held_key] and definition.unit == "percent":
            total = int(rows.sums[held_key])
            counts = counts_over(total, n, repeats=1, errored=0, unscored=unscored, better=definition.better)
            maker.rate(evidence, counts, definition, on=on, said=str(written))
            return
    if measure.own.get("binary") is True and n is not None and not group:
        successes = (number if measure.unit == "fraction" else number / 100) * n
        whole = successes.to_integral_value()
        if abs(successes - whole) > _TOLERANCE * n:
            maker.problems.add(
                f"{written} of {n} is no whole count", field=place, code="contradicts_counts", hint="leave out `binary`"
            )
            return
        counts = counts_over(int(whole), n, repeats=1, errored=0, unscored=0, better=definition.better)
        maker.rate(evidence, counts, definition, on=on, said=str(written))
        return
    maker.value(evidence, against(worth, definition.better), str(written), definition, on=on, n=None if group else n)


def _sizes(value: Mapping[str, Any], task: str, maker: Maker) -> tuple[int | None, int | None]:
    """Return how many documents of a task were run, and how many it has; None where the file does not say."""
    listed = value.get("n-samples")
    held = listed.get(task) if isinstance(listed, dict) else None
    faults: Faults = []
    held = held if isinstance(held, dict) else {}
    sizes = count_of(held, "effective", faults, minimum=1), count_of(held, "original", faults, minimum=1)
    maker.report(faults, place=("n-samples", task))
    return sizes


def _parts(value: Mapping[str, Any], task: str) -> list[str]:
    """Return the tasks that a group is an average over; empty for a task."""
    subtasks, groups = value.get("group_subtasks"), value.get("groups")
    found = subtasks.get(task) if isinstance(subtasks, dict) else None
    if isinstance(found, list) and found:
        return [str(each) for each in found]
    return ["unnamed"] if isinstance(groups, dict) and task in groups else []


def _config(value: Mapping[str, Any]) -> Mapping[str, Any]:
    config = value.get("config")
    return config if isinstance(config, dict) else {}


def _subject(value: Mapping[str, Any], maker: Maker, intake: Intake) -> str:
    """Return the model with its settings, or the subject given where the file names none."""
    config = _config(value)
    given = config.get("model_args")
    arguments: dict[str, str] = {}
    if isinstance(given, dict):
        held = {key: each for key, each in given.items() if not is_absent(each)}
        arguments = {key: str(each).lower() if isinstance(each, bool) else str(each) for key, each in held.items()}
    elif isinstance(given, str):
        arguments = {key: each for key, sign, each in (part.partition("=") for part in given.split(",")) if sign}
    named = arguments.pop("pretrained", "") or arguments.pop("model", "")
    if not named or named.startswith(("/", ".", "~")) or "\\" in named:
        if intake.subject is None:
            maker.problems.add(
                f"{shown(named or str(value.get('model_name', '')))} is no model's name: a path, or made up by the harness",
                field="config.model_args",
                code="missing",
                hint="name the subject with the command",
            )
        return intake.subject or ""
    instruction = value.get("system_instruction_sha")
    if isinstance(instruction, str) and instruction:
        arguments["system_instruction"] = f"sha256:{instruction[:12]}"
    kept = [f"{key}={each}" for key, each in sorted(arguments.items()) if key not in NO_IDENTITY]
    told = ", ".join(kept)
    subject = f"{named} ({told})" if told else named
    faults: Faults = []
    name_of({"model_args": subject}, "model_args", faults)
    maker.report(faults, place=("config",))
    if intake.subject is not None and intake.subject != subject:
        maker.problems.add(
            f"the file says {shown(subject)}, the command says {shown(intake.subject)}",
            field="config.model_args",
            code="other_subject",
            hint="leave the subject out",
        )
    return subject


def _harness(value: Mapping[str, Any]) -> str:
    version, commit = value.get("lm_eval_version"), value.get("git_hash")
    told = "lm-evaluation-harness"
    for each in (version, commit):
        if isinstance(each, str) and each.isprintable() and each.isascii() and len(each) <= 40:
            told += f" {each}"
    return told


def _date(value: Mapping[str, Any], stamp: str) -> datetime | None:
    """Return the instant that the file states: seconds since 1970, or the day in the key of a fork. Names of files are not read."""
    written = value.get("date")
    number = exact_text(str(written)) if isinstance(written, NumberText) else None
    if number is not None and 0 < number < 10**11:
        return datetime.fromtimestamp(int(number), tz=UTC)
    found = _STAMP.match(stamp)
    try:
        return datetime.fromisoformat(found[1]).replace(tzinfo=UTC) if found else None
    except ValueError:
        return None
