"""EnterpriseOps-Gym result files, as its harness writes them, one or many, or a zip of its `results/` tree.

Source of the format: repository ServiceNow/EnterpriseOps-Gym (Apache-2.0), `benchmark/executor.py` and `evaluate.py`.

    results/<orchestrator>/<model>/<domain>/<mode>/run_<i>/results_<mode>__<domain>__<task id>.json

One file is one task and its runs; mode, domain and task stand in its name alone, the folder of the run and the
orchestrator in its path, where it has one. What is read of a file: `benchmark_config.model`, and of each of `runs`:
`run_number`, `started_at`, `execution_time_ms`, `conversation_flow[].type`, `verification_results.<name>.passed`,
`verification_summary`, `overall_success`, `error`. `statistics` is only compared with the recount.

Files of one model, orchestrator, mode and domain make one evidence, with the domain as slice:

- `task_completion_rate`: n = distinct tasks, k = mean number of tasks completed over the repeats. A run that errored, a run
  without a check, and a run that is missing beside the others of the set are failures. (The publisher's README says errors
  are excluded; its own score counts them as failures, too.)
- `verifier_pass_rate` (step level): n = checks. The harness keys results by the check's name and drops all but one of a name. Where
  the tasks are given beside the results (`enterpriseops_tasks.py`) the dropped ones are counted, as not passed, and their task is not
  completed; without the tasks nothing shows them. Left out where a task is not given and has no run that shows its checks.
- `turns_per_task`: mean number of the model's messages over the runs that were recorded.

No file says how many tasks were planned, so the run is `complete` only when the distinct tasks are exactly as many as the
public split has in that domain, each with all repeats; else it is `partial`, and can satisfy nothing. A single file is a
partial run with n = 1. The tool mode is part of the benchmark version (`public-oracle`, `public-plus_5_tools`, …).

No file says which tasks are infeasible, so no refusal rate is made. A third party's runner writes another shape with percent
strings; `enterpriseops_runner.py` reads it.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from evaluations.importers.archives import looks_like_zip, small_files
from evaluations.importers.base import DOMAIN_ALIASES, DOMAINS, EvidenceDraft, Intake, ObservationDraft, Pair, Problems, Registry
from evaluations.importers.decoding import decode_text
from evaluations.importers.drafts import source_of, target_of
from evaluations.importers.enterpriseops_runner import is_runner_file, runner_pairs
from evaluations.importers.enterpriseops_tasks import ResultSet, Run, add_task, is_task, is_task_file
from evaluations.importers.fields import Fault, Faults, count_of, instant_of, shown, text_of
from evaluations.importers.jsontext import parse, path_text
from evaluations.importers.worth import mean_successes, rate_from_counts
from evaluations.kernel.errors import InputRefused

NAME = "enterpriseops-gym"
VERSION = 1
GROUP = True

BENCHMARK = "enterpriseops-gym"
MODES = ("oracle", "plus_5_tools", "plus_10_tools", "plus_15_tools")
PUBLIC_TASKS: Mapping[str, int] = {
    "calendar": 61,
    "customer_service": 103,
    "drive": 64,
    "email": 67,
    "hr": 102,
    "hybrid": 88,
    "it_service_management": 103,
    "teams": 61,
}
"""Tasks of the public split by domain (data set card; 649 in all)."""

_FILE = re.compile(r"results_(?P<mode>[a-z0-9_+]+?)__(?P<domain>[a-z_]+)__(?P<task>[^/]+)\.json\Z")
_RUN = re.compile(r"run_([0-9]{1,4})\Z")
_LIMIT = 64 * 1024 * 1024


class SetKey(NamedTuple):
    """What makes files one evidence."""

    model: str
    orchestrator: str
    mode: str
    domain: str


def sniff(head: bytes, name: str) -> bool:
    """A result file of the harness or of the third party's runner, a task, or a zip with result files."""
    if looks_like_zip(head):
        return re.search(rb"results_[\w+]+__[a-z_]+__[^/]+\.json", head) is not None
    return b'"benchmark_config"' in head or is_task_file(head) or is_runner_file(head)


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Yield the pairs of every set among the files. Raises `InputRefused` with every problem.

    `subject` names the model for files of the third party's runner, which do not; the harness's own files name theirs.
    """
    problems = Problems(next(iter(files), ""))
    faults: Faults = []
    key = source_of({}, registry=intake.registry, source=intake.source, faults=faults)
    for fault in faults:
        problems.add(fault.message, field=fault.field, code=fault.code, hint=fault.hint)
    sets: dict[SetKey, ResultSet] = {}
    planned: dict[str, int] = {}
    pairs: list[Pair] = []
    try:
        for name, data in small_files(files, limit=_LIMIT):
            if not name.lower().endswith(".json"):
                problems.add("it is no result file", file=name, code="not_evidence", hint="give results_….json files alone")
                continue
            try:
                value = parse(decode_text(data, name=name), Problems(name))
            except InputRefused as error:
                problems.keep(error)
                continue
            if isinstance(value, dict) and "benchmark_config" in value:
                _collect(name, value, sets, problems)
            elif is_task(value):
                add_task(name, PurePosixPath(name).stem, value, planned, problems)
            else:
                pairs += runner_pairs(
                    name,
                    value,
                    problems,
                    registry=intake.registry,
                    source=key,
                    subject=intake.subject,
                    published_at=intake.published_at,
                )
    except InputRefused as error:
        problems.absorb(error)
    if sets and intake.subject is not None and {each.model for each in sets} != {intake.subject}:
        problems.add("the result files name their model", field="subject", hint="leave the subject out")
    if planned and not sets:
        problems.add("a task holds no result", code="no_numbers", hint="give it together with the result files")
    for each in sorted(sets):
        sets[each].hold_against(planned, problems)
        pairs += _pairs(each, sets[each], problems, registry=intake.registry, source=key, published_at=intake.published_at)
    problems.raise_any()
    yield from pairs


def _collect(name: str, value: dict[str, Any], sets: dict[SetKey, ResultSet], problems: Problems) -> None:
    """Read one file into its set."""
    path = PurePosixPath(name)
    found = _FILE.match(path.name)
    if found is None:
        problems.add(
            "the file's name does not say mode, domain and task, and nothing inside does",
            file=name,
            code="file_name",
            hint="keep the harness's name, results_<mode>__<domain>__<task id>.json",
        )
        return
    mode = re.sub(r"^\+", "plus_", found["mode"])
    domain = DOMAIN_ALIASES.get(found["domain"], found["domain"])
    if mode not in MODES or domain not in DOMAINS:
        what, known = (found["mode"], MODES) if mode not in MODES else (found["domain"], DOMAINS)
        problems.add(f"unknown mode or domain {shown(what)}", file=name, code="file_name", hint=f"known: {', '.join(known)}")
        return
    faults: Faults = []
    config = value["benchmark_config"]
    model = text_of(config if isinstance(config, dict) else {}, "model", faults, required=True)
    _report(faults, name, ("benchmark_config",), problems)
    runs = value.get("runs")
    if not isinstance(runs, list) or not runs:
        problems.add("it has no runs", file=name, field="runs", code="empty", hint="fetch the file again")
        return
    if not model:
        return
    parts = path.parts
    folder = _RUN.match(parts[-2]) if len(parts) > 1 else None
    orchestrator = parts[-6] if folder is not None and len(parts) > 5 else ""
    results = sets.setdefault(SetKey(model, orchestrator, mode, domain), ResultSet())
    task = results.tasks.setdefault(found["task"], {})
    before = len(problems.found)
    succeeded = 0
    for index, each in enumerate(runs):
        place = ("runs", index)
        if not isinstance(each, dict):
            problems.add("a run is no object", file=name, field=path_text(place), hint="fetch the file again")
            continue
        number = count_of(each, "run_number", faults, minimum=1) or index + 1
        at = (int(folder[1]) if folder is not None else 0, number)
        if at in task:
            problems.add(
                f"run {number} of task {shown(found['task'])} is given twice",
                file=name,
                field=path_text(place),
                code="duplicate",
                hint="give each result once; repeats lie in folders run_1, run_2, …",
            )
            continue
        task[at] = run = _run(name, each, place, results.answered, problems)
        succeeded += run.succeeded
    statistics = value.get("statistics")
    stated = statistics.get("successful_runs") if isinstance(statistics, dict) else None
    if isinstance(stated, str) and stated != str(succeeded) and len(problems.found) == before:
        problems.add(
            f"it states {shown(stated)} successful runs, its runs show {succeeded}",
            file=name,
            field="statistics.successful_runs",
            code="contradicts_counts",
            hint="fetch the file again; a result that was edited, or that checked nothing, is no evidence",
        )


def _run(name: str, raw: dict[str, Any], place: tuple[str | int, ...], answered: set[str], problems: Problems) -> Run:
    """Count one run's checks, and compare them with its own summary."""
    faults: Faults = []
    started = instant_of(raw, "started_at", faults)
    lasted = count_of(raw, "execution_time_ms", faults)
    ended = started + timedelta(milliseconds=lasted or 0) if started is not None else None
    checks = raw.get("verification_results")
    if raw.get("error") or not isinstance(checks, dict):
        _report(faults, name, place, problems)
        return Run(True, False, 0, 0, None, ended)
    passed = sum(1 for each in checks.values() if isinstance(each, dict) and each.get("passed") is True)
    succeeded = bool(checks) and passed == len(checks)
    if bool(checks) and raw.get("overall_success") is not succeeded:
        faults.append(
            Fault(
                "overall_success",
                f"{passed} of {len(checks)} checks passed, which contradicts it",
                "fetch the file again",
                "contradicts_counts",
            )
        )
    stated = raw.get("verification_summary")
    summary: dict[str, Any] = stated if isinstance(stated, dict) else {}
    for field, shows in (("total", len(checks)), ("passed", passed)):
        if field in summary and count_of(summary, field, faults) not in (None, shows):
            told = f"its summary states {shown(summary[field])}, its results show {shows}"
            faults.append(Fault(f"verification_summary.{field}", told, "fetch the file again", "contradicts_counts"))
    flow = raw.get("conversation_flow")
    turns = None
    if isinstance(flow, list):
        messages = [each for each in flow if isinstance(each, dict) and each.get("type") == "ai_message"]
        turns = len(messages) or None
        for message in messages:
            said = message.get("response_metadata")
            who = said.get("model_name") if isinstance(said, dict) else None
            if isinstance(who, str) and who.isprintable() and 0 < len(who) <= 200:
                answered.add(who)
    _report(faults, name, place, problems)
    return Run(False, succeeded, passed, len(checks), turns, ended)


def _report(faults: Faults, name: str, place: tuple[str | int, ...], problems: Problems) -> None:
    for fault in faults:
        field = path_text((*place, fault.field))
        problems.add(fault.message, file=name, field=field, code=fault.code, hint=fault.hint)


def _pairs(
    key: SetKey, results: ResultSet, problems: Problems, *, registry: Registry, source: str, published_at: datetime | None
) -> list[Pair]:
    """Return the pairs of one set."""
    tasks = results.tasks
    n = len(tasks)
    repeats = max(len(runs) for runs in tasks.values())
    every = [run for runs in tasks.values() for run in runs.values()]
    if not every:  # each of its runs was refused, and is among the problems
        return []
    missing_runs = n * repeats - len(every)
    planned = PUBLIC_TASKS[key.domain]
    if n > planned:
        problems.add(
            f"{n} tasks of {key.domain} are given, the public split has {planned}",
            code="unknown_split",
            hint="give the results of one model, mode and split",
        )
    complete = n == planned and not missing_runs
    ends = [run.ended_at for run in every if run.ended_at is not None]
    notes = [] if complete else [f"{n} of {planned} tasks of the public split, {missing_runs} runs missing among them"]
    notes += results.notes
    evidence = EvidenceDraft(
        subject_as_written=key.model,
        source=source,
        provenance="recounted",
        run_status="complete" if complete else "partial",
        harness=f"EnterpriseOps-Gym {key.orchestrator}".strip(),
        run_ended_at=max(ends, default=None),
        published_at=published_at,
        answered_as_written=tuple(sorted(results.answered)),
        about="model",
        locator="/".join(part for part in (key.orchestrator, key.model, key.domain, key.mode) if part)[:300],
        note="; ".join(notes),
        supersedes="",
    )
    errored = -(-sum(run.errored for run in every) // repeats)
    unscored_runs = missing_runs + sum(not run.errored and not run.is_whole for run in every)
    unscored = min(-(-unscored_runs // repeats), n - errored)
    made = [
        _rate("task_completion_rate", sum(run.succeeded for run in every), n, repeats, errored, unscored, key),
        _checks(results, repeats, key),
        _turns(every, n, repeats, key),
    ]
    pairs: list[Pair] = []
    for observation in made:
        if observation is None:
            continue
        unit = "count" if observation.k is None else "percent"
        raw = {"metric": observation.metric, "benchmark": BENCHMARK, "version": _version(key), "unit": unit}
        faults: Faults = []
        target_of(raw, registry=registry, faults=faults)
        for fault in faults:
            problems.add(fault.message, field=fault.field, code=fault.code, hint=fault.hint)
        pairs.append((evidence, observation))
    return pairs


def _version(key: SetKey) -> str:
    return f"public-{key.mode}"


def _rate(metric: str, total: int, n: int, repeats: int, errored: int, unscored: int, key: SetKey) -> ObservationDraft:
    """Return a rate of `total` successes over n times repeats; higher is better for both rates made here."""
    k = mean_successes(total, repeats)
    return ObservationDraft(
        metric=metric,
        benchmark=BENCHMARK,
        benchmark_version=_version(key),
        slice=key.domain,
        value=rate_from_counts(k, n, better="higher"),
        value_as_written=f"{total} of {n} x {repeats}",
        k=k,
        n=n,
        repeats=repeats,
        errored=errored,
        unscored=unscored,
        judge=None,
        locator=metric,
    )


def _checks(results: ResultSet, repeats: int, key: SetKey) -> ObservationDraft | None:
    """Return the rate of single checks, or None where nothing says how many some task has."""
    n = passed = errored = unscored = 0
    for task, runs in results.tasks.items():
        checks = results.checks[task]
        if not checks:
            return None
        n += checks
        passed += sum(run.passed for run in runs.values())
        errored += checks * sum(run.errored for run in runs.values())
        unscored += checks * (repeats - len(runs)) + sum(checks - run.checks for run in runs.values() if not run.errored)
    errored = -(-errored // repeats)
    return _rate("verifier_pass_rate", passed, n, repeats, errored, min(-(-unscored // repeats), n - errored), key)


def _turns(every: list[Run], n: int, repeats: int, key: SetKey) -> ObservationDraft | None:
    """Return the mean number of the model's messages a run, rounded up to six decimals, or None where none is recorded."""
    turns = [run.turns for run in every if run.turns is not None]
    if not turns:
        return None
    value = Decimal(-(-sum(turns) * 1_000_000 // len(turns))).scaleb(-6)
    return ObservationDraft(
        metric="turns_per_task",
        benchmark=BENCHMARK,
        benchmark_version=_version(key),
        slice=key.domain,
        value=value,
        value_as_written=f"{sum(turns)} in {len(turns)} runs",
        k=None,
        n=n,
        repeats=repeats,
        errored=None,
        unscored=None,
        judge=None,
        locator="turns_per_task",
    )
