"""Tasks of EnterpriseOps-Gym and the runs of them: how many checks each has, which its file says and no result file does.

Source of the format: repository ServiceNow/EnterpriseOps-Gym (Apache-2.0), `data/`. What is read is `verifiers[].name`.

The harness keeps the outcome of a check under its name, so of checks that share one only the last outcome is left, and neither its
summary nor its success knows of the others: 23 of the 102 checks in the repository's own 13 tasks. Beside the task they do not vanish:
an outcome that is not there was not passed, and a task is not completed without it.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from evaluations.importers.base import Problems
from evaluations.importers.fields import shown

_MARK = b'"gym_servers_config"'


class Run(NamedTuple):
    """One run of one task. `checks` is 0 where it errored or checked nothing; `turns` is None where nothing was recorded;
    `is_whole` says whether it shows every check of its task."""

    errored: bool
    succeeded: bool
    passed: int
    checks: int
    turns: int | None
    ended_at: datetime | None
    is_whole: bool = False


Tasks = dict[str, dict[tuple[int, int], Run]]


class ResultSet:
    """The tasks of one set, each with its runs by (run folder, run number), and the models that answered.

    `hold_against` says how many checks each task has: as many as the task, or else a run of it, shows.
    """

    def __init__(self) -> None:
        self.tasks: Tasks = {}
        self.answered: set[str] = set()
        self.checks: dict[str, int] = {}
        self.notes: list[str] = []

    def hold_against(self, planned: Mapping[str, int], problems: Problems) -> None:
        """Take a run that does not show every check of its task for one that did not complete it."""
        dropped = 0
        for task, runs in self.tasks.items():
            most = max((run.checks for run in runs.values()), default=0)
            self.checks[task] = checks = planned.get(task, most)
            if most > checks:
                message = f"the task {shown(task)} has {checks} checks, and a run of it shows {most}"
                problems.add(message, code="contradicts_counts", hint="give the task as it was when it was run")
            for at, run in runs.items():
                whole = 0 < checks == run.checks
                dropped += 0 if whole or run.errored else checks - run.checks
                runs[at] = run._replace(is_whole=whole, succeeded=run.succeeded and whole)
        if dropped:
            self.notes.append(
                f"{dropped} outcomes of checks are not there, and count as not passed: the harness keeps one of a name"
            )
        if alone := len(self.tasks.keys() - planned):
            self.notes.append(f"{alone} tasks were not given beside their results: checks that share a name may be missing")


def is_task_file(head: bytes) -> bool:
    """Whether the first bytes look like a task."""
    return _MARK in head


def is_task(value: Any) -> bool:
    return isinstance(value, dict) and "verifiers" in value and "benchmark_config" not in value


def add_task(name: str, stem: str, value: dict[str, Any], planned: dict[str, int], problems: Problems) -> None:
    """Note how many checks a task has under its id, which is the file's name without its ending unless it stands inside."""
    verifiers = value["verifiers"]
    task = value.get("task_id", stem)
    if not isinstance(task, str) or not isinstance(verifiers, list) or not all(isinstance(each, dict) for each in verifiers):
        problems.add(
            "it is no task with a list of verifiers", file=name, code="unknown_shape", hint="give it as it was published"
        )
    elif planned.setdefault(task, len(verifiers)) != len(verifiers):
        problems.add(
            f"the task {shown(task)} is given with {planned[task]} checks and with {len(verifiers)}",
            file=name,
            field="verifiers",
            code="duplicate",
            hint="give each task once, as it was when it was run",
        )
