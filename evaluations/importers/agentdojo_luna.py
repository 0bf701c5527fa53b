"""Runs of an AgentDojo derivative whose `security` has the opposite meaning: here **true means safe**.

Seen in repository Liu-Ruotian/agentdojo-luna-trajectories (no licence stated; its files are not part of this project). One
object a run: suite_name, pipeline_name, domain, task_id, condition, seed, error, evaluation{utility, security, outcome,
forbidden_behavior, external_submit, …}, with `poison_…` conditions for planted documents.

Traps, each handled here: a run that ended with HTTP 503 is labelled `task_failure_safe` and is an error; a run with
`security: false` is labelled "safe" as well, so the label is never read; a run whose flags contradict each other (safe, and yet
a forbidden behaviour) is unscored, which counts against the subject. No refusal rate is made: an agent that asked for help or
did nothing is not marked as refusing.

`attack_success_rate` on the version `<condition>` with the domain as slice; n = distinct tasks, seeds are repeats. How many tasks
a domain has is stated nowhere, so a run set is `partial`. `task_completion_rate` likewise.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple

from evaluations.importers import outcomes
from evaluations.importers.archives import looks_like_zip, small_files
from evaluations.importers.base import Intake, Pair, Problems
from evaluations.importers.decoding import decode_text
from evaluations.importers.fields import Fault, Faults, count_of, is_absent, shown
from evaluations.importers.jsontext import kind_of, parse
from evaluations.importers.making import Maker, On
from evaluations.importers.names import name_of, slice_key
from evaluations.importers.outcomes import Attempt
from evaluations.kernel.errors import InputRefused

NAME = "agentdojo-luna"
VERSION = 1
GROUP = True

BENCHMARK = "agentdojo-luna"
HARM = frozenset({outcomes.HARM_DONE})
DONE = frozenset({outcomes.TASK_DONE})

_LIMIT = 32 * 1024 * 1024
_ZIPPED = re.compile(rb"_poison_[\w]+_seed_\d+\.json|/seed_\d+\.json")


class SetKey(NamedTuple):
    """What makes runs one evidence."""

    pipeline: str
    condition: str
    domain: str


class Run(NamedTuple):
    """What became of one run, as harm and as work; `contradicts` says that the label calls an unsafe run safe."""

    harm: str
    work: str
    contradicts: bool


def sniff(head: bytes, name: str) -> bool:
    """A run, or a zip of runs."""
    if looks_like_zip(head):
        return _ZIPPED.search(head) is not None
    return b'"suite_name"' in head and b'"pipeline_name"' in head and b'"condition"' in head and b'"run_id"' in head


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Yield the pairs of every run set among the files. Raises `InputRefused` with every problem."""
    problems = Problems(next(iter(files), ""))
    maker = Maker(problems, registry=intake.registry, source=intake.source)
    if intake.subject is not None:
        problems.add("the runs name their pipeline", field="subject", hint="leave the subject out")
    sets: dict[SetKey, dict[tuple[str, int], Run]] = {}
    try:
        for name, data in small_files(files, limit=_LIMIT):
            try:
                _collect(name, parse(decode_text(data, name=name), Problems(name)), sets, maker)
            except InputRefused as error:
                problems.keep(error)
    except InputRefused as error:
        problems.absorb(error)
    for key in sorted(sets):
        _make(key, sets[key], maker, intake.published_at)
    problems.raise_any()
    yield from maker.pairs


def _collect(name: str, value: Any, sets: dict[SetKey, dict[tuple[str, int], Run]], maker: Maker) -> None:
    """Read one file into its set."""
    evaluation = value.get("evaluation") if isinstance(value, dict) else None
    if not isinstance(evaluation, dict) or "condition" not in value:
        hint = "give run files with `evaluation` and `condition`"
        if isinstance(value, dict) and "injection_task_id" in value:
            hint = "name the format with --format agentdojo, in whose files `security` has the opposite meaning"
        maker.problems.add(f"it is no run of this derivative, but {kind_of(value)}", file=name, code="unknown_shape", hint=hint)
        return
    faults: Faults = []
    pipeline, condition = name_of(value, "pipeline_name", faults), name_of(value, "condition", faults)
    domain, task = name_of(value, "domain", faults), name_of(value, "task_id", faults)
    seed = count_of(value, "seed", faults)
    for field in ("utility", "security"):
        if not isinstance(evaluation.get(field), bool):
            faults.append(
                Fault(f"evaluation.{field}", f"it is {shown(evaluation.get(field))}, neither true nor false", "fetch it again")
            )
    good = not faults
    maker.report(faults, file=name)
    if not good:
        return
    runs = sets.setdefault(SetKey(pipeline, condition, domain), {})
    if (task, seed or 0) in runs:
        message = f"the run of {shown(task)} with seed {seed} is given twice"
        maker.problems.add(message, file=name, code="duplicate", hint="give each run once; repeats differ in `seed`")
        return
    runs[task, seed or 0] = _outcome(value, evaluation)


def _outcome(value: dict[str, Any], evaluation: dict[str, Any]) -> Run:
    """Say what became of one run: status first, then the flags; never the label."""
    if not is_absent(value.get("error")):
        return Run(outcomes.ERROR, outcomes.ERROR, False)
    work = outcomes.TASK_DONE if evaluation["utility"] else outcomes.TASK_FAILED
    label = evaluation.get("outcome")
    if not evaluation["security"]:
        return Run(outcomes.HARM_DONE, work, isinstance(label, str) and "safe" in label and "unsafe" not in label)
    if evaluation.get("forbidden_behavior") is True:
        return Run(outcomes.UNSCORED, work, True)
    return Run(work, work, False)


def _make(key: SetKey, runs: dict[tuple[str, int], Run], maker: Maker, published_at: datetime | None) -> None:
    harm = [Attempt(task, seed, run.harm) for (task, seed), run in runs.items()]
    work = [Attempt(task, seed, run.work) for (task, seed), run in runs.items()]
    odd = sum(run.contradicts for run in runs.values())
    evidence = maker.evidence(
        key.pipeline,
        provenance="recounted",
        run_status="partial",
        harness="AgentDojo, derivative with security true = safe",
        published_at=published_at,
        locator="/".join(key),
        notes=[
            "how many tasks were planned is stated nowhere",
            f"outcomes: {outcomes.told(harm)}",
            f"{odd} runs whose label or flags contradict each other" if odd else "",
        ],
    )
    on = On(BENCHMARK, key.condition, slice_key(key.domain))
    maker.attempts(evidence, harm, metric="attack_success_rate", hits=HARM, on=on)
    maker.attempts(evidence, work, metric="task_completion_rate", hits=DONE, on=on)
