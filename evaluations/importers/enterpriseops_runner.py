"""Result files of a third party's EnterpriseOps-Gym runner: one object a run over a range of one domain's tasks.

    {"domain", "range": "2-9", "timestamp", "tasks_run", "tasks_passed", "tasks_total", "verifiers_passed",
     "verifiers_failed", "verifiers_total", "pass_rate": "100.0%", "task_pass_rate": "100.0%",
     "results": [{"index", "task_id", "domain", "passed", "failed", "total", "verifiers": [{"name", "passed", …}], …}]}

Seen in repository satish860/EnterpriseOps-Gym (no licence stated; its files are not part of this project).

Traps, each handled here: `task_pass_rate` is over the tasks that were run, so 2 of 2 run tasks print 100.0% where 8 were
planned; we count k over `tasks_total`, the tasks not run as unscored, and call the run `partial`. The range includes both
ends. Rates are percent strings. The file names no model, and its time no zone: the model is given with the command, and
the evidence has no date but the one given. Tool mode and harness are not stated either, so the benchmark version is
`third-party-runner`, which no official result shares.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from evaluations.importers.base import DOMAIN_ALIASES, DOMAINS, EvidenceDraft, ObservationDraft, Pair, Problems, Registry
from evaluations.importers.drafts import target_of
from evaluations.importers.fields import Faults, count_of, shown, text_of
from evaluations.importers.jsontext import kind_of
from evaluations.importers.worth import rate_from_counts

BENCHMARK = "enterpriseops-gym"
BENCHMARK_VERSION = "third-party-runner"

_RANGE = re.compile(r"([0-9]{1,5})-([0-9]{1,5})\Z")
_COUNTS = ("tasks_run", "tasks_passed", "tasks_total", "verifiers_passed", "verifiers_total")


def is_runner_file(head: bytes) -> bool:
    """Whether the first bytes look like this shape."""
    return b'"tasks_total"' in head and b'"task_pass_rate"' in head


def runner_pairs(
    name: str,
    value: Any,
    problems: Problems,
    *,
    registry: Registry,
    source: str,
    subject: str | None,
    published_at: datetime | None,
) -> Iterator[Pair]:
    """Yield the pairs of one file, or add what is wrong with it to `problems`."""
    if not isinstance(value, dict) or "tasks_total" not in value:
        problems.add(
            f"it is no result file of EnterpriseOps-Gym, but {kind_of(value)}",
            file=name,
            code="unknown_shape",
            hint="give files with `benchmark_config` and `runs`",
        )
        return
    faults: Faults = []
    counts = {field: count_of(value, field, faults) for field in _COUNTS}
    written = text_of(value, "domain", faults, required=True)
    domain = DOMAIN_ALIASES.get(written, written)
    for fault in faults:
        problems.add(fault.message, file=name, field=fault.field, code=fault.code, hint=fault.hint)
    if domain not in DOMAINS:
        hint = f"known: {', '.join(DOMAINS)}"
        problems.add(f"unknown domain {shown(written)}", file=name, field="domain", code="unknown_domain", hint=hint)
    if subject is None:
        problems.add(
            "the file names no model", file=name, field="subject", code="missing", hint="name the subject with the command"
        )
    if faults or subject is None or domain not in DOMAINS:
        return
    found = _recount(name, value, counts, problems)
    if found is None:
        return
    k, n, ran, passed, checks = found
    evidence = EvidenceDraft(
        subject_as_written=subject,
        source=source,
        provenance="recounted",
        run_status="complete" if ran == n else "partial",
        harness="",
        run_ended_at=None,
        published_at=published_at,
        answered_as_written=(),
        about="model",
        locator=f"tasks {value.get('range', '')}"[:300],
        note=f"local time as written: {value.get('timestamp', '')}; tasks planned {n}, run {ran}"[:500],
        supersedes="",
    )
    rates = [("task_completion_rate", k, n, n - ran)]
    if ran == n and checks:
        # The checks of tasks that were not run are unknown, so a partial run has no rate over them.
        rates.append(("verifier_pass_rate", passed, checks, 0))
    for metric, good, total, unscored in rates:
        raw = {"metric": metric, "benchmark": BENCHMARK, "version": BENCHMARK_VERSION, "unit": "percent"}
        faults = []
        target_of(raw, registry=registry, faults=faults)
        for fault in faults:
            problems.add(fault.message, file=name, field=fault.field, code=fault.code, hint=fault.hint)
        yield (
            evidence,
            ObservationDraft(
                metric=metric,
                benchmark=BENCHMARK,
                benchmark_version=BENCHMARK_VERSION,
                slice=domain,
                value=rate_from_counts(Decimal(good), total, better="higher"),
                value_as_written=f"{good} of {total}",
                k=Decimal(good),
                n=total,
                repeats=None,
                errored=0,
                unscored=unscored,
                judge=None,
                locator=metric,
            ),
        )


def _recount(
    name: str, value: dict[str, Any], counts: dict[str, int | None], problems: Problems
) -> tuple[int, int, int, int, int] | None:
    """Return (tasks passed, planned, run, checks passed, checks), after comparing the stated counts with the rows."""
    results = value.get("results")
    rows = [row for row in results if isinstance(row, dict)] if isinstance(results, list) else []
    before = len(problems.found)
    passed = checks = k = 0
    seen: set[object] = set()
    for index, row in enumerate(rows):
        each = row.get("verifiers")
        marks = [mark.get("passed") is True for mark in each if isinstance(mark, dict)] if isinstance(each, list) else []
        passed += sum(marks)
        checks += len(marks)
        k += bool(marks) and all(marks)
        task = row.get("task_id")
        if not isinstance(task, str) or task in seen:
            problems.add(
                "the task is missing or given twice",
                file=name,
                field=f"results[{index}].task_id",
                code="duplicate",
                hint="give each task of a run once",
            )
        else:
            seen.add(task)
    recounted = {"tasks_run": len(rows), "tasks_passed": k, "verifiers_passed": passed, "verifiers_total": checks}
    span = _RANGE.match(value["range"]) if isinstance(value.get("range"), str) else None
    if span is not None:
        recounted["tasks_total"] = int(span[2]) - int(span[1]) + 1
    for field, number in recounted.items():
        if counts[field] != number:
            problems.add(
                f"it states {counts[field]}, its rows show {number}",
                file=name,
                field=field,
                code="contradicts_counts",
                hint="fetch the file again",
            )
    n = counts["tasks_total"]
    if not n or n < len(rows):
        problems.add(f"{len(rows)} tasks were run of {n} planned", file=name, field="tasks_total", hint="fetch the file again")
    if len(problems.found) > before or not n:
        return None
    return k, n, len(rows), passed, checks
