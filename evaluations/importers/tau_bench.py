"""tau-bench trajectories: one JSON list of attempts, as `run.py` of the benchmark writes it.

Source of the format: repository sierra-research/tau-bench (MIT), `historical_trajectories/<model>-<domain>.json`.

    [{"task_id", "trial", "reward", "info": {"task": {"actions": [{"name"}]}, "reward_info" | null}, "traj": [{"tool_calls"}]}]

The file names neither model, date nor domain: the subject is given with the command, and the domain is in the file's name.

- `task_completion_rate`: n = distinct tasks, k = mean number of tasks with reward 1 over the trials. An attempt without
  `reward_info` crashed or was cut off: it is an error, not a failure. pass^1 to pass^4 stand in the note.
- `wrongful_write_rate`: over the tasks whose reference solution writes nothing (deny, look up, hand over), the share in which
  the agent wrote all the same. One completion rate hides both kinds of task.

A run is `complete` when every task of the domain is there, each with all trials. A fractional reward is refused: it counts as
neither success nor failure.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from math import comb
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from evaluations.importers import outcomes
from evaluations.importers.base import Intake, Pair, Problems, refuse
from evaluations.importers.decoding import decode_text, read_bounded
from evaluations.importers.fields import Fault, Faults, NumberText, count_of, shown
from evaluations.importers.jsontext import kind_of, parse
from evaluations.importers.making import Maker, On
from evaluations.importers.outcomes import Attempt

NAME = "tau-bench"
VERSION = 1
GROUP = True

BENCHMARK = "tau-bench"
TASKS: Mapping[str, int] = {"airline": 50, "retail": 115}
WRITES: Mapping[str, frozenset[str]] = {
    "airline": frozenset(
        {
            "book_reservation",
            "cancel_reservation",
            "send_certificate",
            "update_reservation_baggages",
            "update_reservation_flights",
            "update_reservation_passengers",
        }
    ),
    "retail": frozenset(
        {
            "cancel_pending_order",
            "exchange_delivered_order_items",
            "modify_pending_order_address",
            "modify_pending_order_items",
            "modify_pending_order_payment",
            "modify_user_address",
            "return_delivered_order_items",
        }
    ),
}
"""Tools of each domain that change its database."""

DONE = frozenset({outcomes.TASK_DONE})
HARM = frozenset({outcomes.HARM_DONE})

_LIMIT = 64 * 1024 * 1024
_DOMAIN = re.compile(r"(?<![a-z])(airline|retail)(?![a-z])")
_REWARDS: Mapping[str, bool] = {"0": False, "0.0": False, "1": True, "1.0": True}


def sniff(head: bytes, name: str) -> bool:
    """A list that begins with an attempt."""
    start = head.lstrip()[:1]
    return start == b"[" and b'"task_id"' in head and b'"reward"' in head and b'"info"' in head and b'"evaluation"' not in head


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Yield the pairs of each file, which is one run over one domain. Raises `InputRefused` with every problem."""
    first = next(iter(files), "")
    problems = Problems(first)
    maker = Maker(problems, registry=intake.registry, source=intake.source, subject=intake.subject)
    if intake.subject is None:
        problems.add("the file names no model", field="subject", code="missing", hint="name the subject with the command")
    domains: dict[str, str] = {}
    for name, stream in files.items():
        data = read_bounded(stream, name=name, limit=_LIMIT, hint="give the trajectories of one model and domain")
        domain = _domain_of(name)
        if domain in domains:
            hint = "give one file a domain"
            problems.add(f"{shown(domains[domain])} is of {domain} too", file=name, code="duplicate", hint=hint)
            continue
        domains[domain] = name
        attempts, writes = _attempts(name, parse(decode_text(data, name=name), Problems(name)), domain, problems)
        if attempts and intake.subject is not None:
            _make(maker, attempts, writes, subject=intake.subject, domain=domain, name=name, published_at=intake.published_at)
    problems.raise_any()
    yield from maker.pairs


def _domain_of(name: str) -> str:
    found = set(_DOMAIN.findall(PurePosixPath(name).name.lower()))
    if len(found) != 1:
        raise refuse(
            "the file's name does not say whether it is of airline or retail, and nothing inside does",
            file=name,
            code="file_name",
            hint="keep the harness's name, <model>-<domain>.json",
        )
    return found.pop()


def _attempts(name: str, value: Any, domain: str, problems: Problems) -> tuple[list[Attempt], list[Attempt]]:
    """Return the attempts by what became of the task, and, for tasks that need no write, by whether the agent wrote."""
    if not isinstance(value, list) or not value:
        message = f"it is no list of attempts, but {kind_of(value)}" if not isinstance(value, list) else "the list is empty"
        problems.add(message, file=name, code="unknown_shape", hint="give the list that the benchmark's run.py writes")
        return [], []
    work: list[Attempt] = []
    writes: list[Attempt] = []
    seen: set[tuple[int, int]] = set()
    asked: dict[int, bool] = {}
    for index, each in enumerate(value):
        faults: Faults = []
        raw = each if isinstance(each, dict) else {}
        if not raw:
            faults.append(Fault("", f"it is no attempt, but {kind_of(each)}", "fetch the file again"))
        task, trial = count_of(raw, "task_id", faults), count_of(raw, "trial", faults)
        if raw and (task is None or trial is None) and not faults:
            faults.append(Fault("task_id", "`task_id` or `trial` is missing", "fetch the file again", "missing"))
        info = raw.get("info")
        needs_write = _needs_write(info, domain)
        reward = raw.get("reward")
        done = _REWARDS.get(str(reward)) if isinstance(reward, NumberText) else None
        if raw and done is None:
            faults.append(Fault("reward", f"{shown(reward)} is neither 0 nor 1", "this benchmark's reward is whole", "not_whole"))
        if raw and needs_write is None:
            faults.append(Fault("info.task.actions", "the reference solution is missing", "fetch the file again", "missing"))
        if task is not None and trial is not None and (task, trial) in seen:
            faults.append(Fault("trial", f"trial {trial} of task {task} stands twice", "give each once", "duplicate"))
        for fault in faults:
            field = f"[{index}].{fault.field}".rstrip(".")
            problems.add(fault.message, file=name, field=field, code=fault.code, hint=fault.hint)
        if faults or task is None or trial is None or done is None or needs_write is None:
            continue
        if asked.setdefault(task, needs_write) is not needs_write:
            field = f"[{index}].info.task.actions"
            problems.add(
                f"task {task} has two reference solutions", file=name, field=field, hint="give the attempts of one version"
            )
        seen.add((task, trial))
        judged = isinstance(info, dict) and isinstance(info.get("reward_info"), dict)
        outcome = (outcomes.TASK_DONE if done else outcomes.TASK_FAILED) if judged else outcomes.ERROR
        work.append(Attempt(str(task), trial, outcome))
        if not needs_write:
            wrote = _wrote(raw.get("traj"), domain)
            if wrote is None:
                harm = outcomes.UNSCORED
            elif wrote:
                harm = outcomes.HARM_DONE
            else:
                harm = outcomes.DECLINED_NO_ACTION if judged else outcomes.ERROR
            writes.append(Attempt(str(task), trial, harm))
    return work, writes


def _needs_write(info: object, domain: str) -> bool | None:
    task = info.get("task") if isinstance(info, dict) else None
    actions = task.get("actions") if isinstance(task, dict) else None
    if not isinstance(actions, list):
        return None
    return any(isinstance(each, dict) and each.get("name") in WRITES[domain] for each in actions)


def _wrote(traj: object, domain: str) -> bool | None:
    """Whether the agent called a tool that writes; None where the trajectory is not there."""
    if not isinstance(traj, list) or not traj:
        return None
    for message in traj:
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        for call in calls if isinstance(calls, list) else []:
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and function.get("name") in WRITES[domain]:
                return True
    return False


def pass_hat(attempts: list[Attempt], k: int) -> Decimal | None:
    """Return pass^k, the chance that k trials of a task all succeed, averaged over tasks; None where a task has fewer trials."""
    by_task: dict[str, list[bool]] = {}
    for attempt in attempts:
        by_task.setdefault(attempt.task, []).append(attempt.outcome in DONE)
    if not by_task or min(len(trials) for trials in by_task.values()) < k:
        return None
    whole = sum((Decimal(comb(sum(trials), k)) / comb(len(trials), k) for trials in by_task.values()), Decimal(0))
    return whole / len(by_task)


def _make(
    maker: Maker,
    work: list[Attempt],
    writes: list[Attempt],
    *,
    subject: str,
    domain: str,
    name: str,
    published_at: datetime | None,
) -> None:
    tasks = Counter(attempt.task for attempt in work)
    trials = set(tasks.values())
    if len(tasks) > TASKS[domain]:
        maker.problems.add(
            f"it has {len(tasks)} tasks, the domain {domain} has {TASKS[domain]}",
            file=name,
            code="unknown_split",
            hint="give one domain",
        )
    whole = len(tasks) == TASKS[domain] and len(trials) == 1
    hats = [f"pass^{k} {pass_hat(work, k):.4f}" for k in (1, 2, 3, 4) if pass_hat(work, k) is not None]
    evidence = maker.evidence(
        subject,
        provenance="recounted",
        run_status="complete" if whole else "partial",
        harness="tau-bench",
        published_at=published_at,
        locator=domain,
        notes=[
            "" if whole else f"{len(tasks)} of {TASKS[domain]} tasks",
            f"outcomes: {outcomes.told(work)}",
            ", ".join(hats),
            f"tasks without a write: {outcomes.told(writes)}" if writes else "",
        ],
    )
    on = On(BENCHMARK, domain)
    maker.attempts(evidence, work, metric="task_completion_rate", hits=DONE, on=on)
    maker.attempts(evidence, writes, metric="wrongful_write_rate", hits=HARM, on=on)
