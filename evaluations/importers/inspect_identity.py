"""Who was tested by an Inspect log, with what, when, and who graded.

Two runs of one model with another effort, quantisation or system message are runs of two models: the settings are part of its name.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from evaluations.importers.fields import Faults, is_absent
from evaluations.importers.inspect_log import Log
from evaluations.importers.localtime import earliest_instant
from evaluations.importers.making import Maker
from evaluations.importers.names import name_of
from evaluations.importers.profiles import Measure

NO_IDENTITY = frozenset(
    {
        "adaptive_connections",
        "attempt_timeout",
        "batch",
        "cache",
        "cache_prompt",
        "extra_headers",
        "logprobs",
        "max_connections",
        "max_retries",
        "prompt_logprobs",
        "seed",
        "stream_idle_timeout",
        "timeout",
        "top_logprobs",
    }
)
"""Settings of a request that leave the model the same; every other one becomes part of the name as written."""

JUDGES = ("model", "grader_model", "judge_model", "judge", "grader")
"""Parameters under which scorers name the model that they ask."""

_MAX_SETTINGS = 100
_PLAIN = re.compile(r"[A-Za-z0-9._/:-]{1,40}\Z")


def settings(log: Log) -> str:
    """Return what makes the model another one, as " (reasoning_effort=high, …)"; a long list ends in a digest of the whole.

    The settings are those of the model, and over them those of the run, which stand in the plan.
    """
    spec, plan = log.header["eval"], log.header.get("plan")
    of_run = plan.get("config") if isinstance(plan, dict) else None
    held = [each for each in (spec.get("model_args"), spec.get("model_generate_config"), of_run) if isinstance(each, dict)]
    given = {key: value for each in held for key, value in each.items() if not is_absent(value)}
    parts: list[str] = []
    for key, value in sorted(given.items()):
        if key in NO_IDENTITY:
            continue
        plain = isinstance(value, str) and _PLAIN.match(value) and "key" not in key.lower()
        text = value if plain else str(value).lower() if isinstance(value, bool) else f"sha256:{_digest(value)}"
        parts.append(f"{key[:40].encode('ascii', 'backslashreplace').decode()}={text}")
    told = ", ".join(parts)
    if len(told) > _MAX_SETTINGS:
        told = f"{told[: _MAX_SETTINGS - 24]}… sha256:{_digest(parts)}".replace("…", "...")
    return f" ({told})" if told else ""


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def harness(spec: Mapping[str, Any]) -> str:
    """Return the harness with its version, and the task with its own."""
    packages = spec.get("packages")
    version = packages.get("inspect_ai") if isinstance(packages, dict) else None
    told = f"Inspect {version}" if isinstance(version, str) and version.isprintable() else "Inspect"
    return f"{told}, task {spec['task']} {spec.get('task_version', '')}".strip()


def ended_at(log: Log, maker: Maker) -> datetime | None:
    """Return the end of the run, or its beginning where it has none. A time without an offset is read as the earliest it can mean."""
    stats = log.header.get("stats")
    for holder, field in ((stats, "completed_at"), (stats, "started_at"), (log.header["eval"], "created")):
        if not isinstance(holder, dict) or is_absent(holder.get(field)):
            continue
        faults: Faults = []
        moment = earliest_instant(holder, field, faults)
        maker.report(faults, place=("stats",))
        return moment
    return None


def judge_of(log: Log, measure: Measure, graded: Mapping[str, Any], maker: Maker) -> dict[str, Any] | None:
    """Return who graded: the model that the profile, the task or the scorer names, else the role `grader`, else the model under test.

    `graded` is the score's entry in the results. None where the scorer asks no model.
    """
    spec = log.header["eval"]
    model = spec.get("model")
    arguments = spec.get("task_args")
    argument = arguments.get(measure.own.get("judge_arg")) if isinstance(arguments, dict) else None
    named = measure.own.get("judge") or _model_name(argument) or None
    if named == "subject":
        named = model
    elif not isinstance(named, str):
        params = graded.get("params")
        params = params if isinstance(params, dict) else {}
        named = next((_model_name(params[key]) for key in JUDGES if key in params), "")
        scorer = str(graded.get("scorer", measure.of))
        if not (named or scorer.startswith("model_graded") or "grade_pattern" in params or "grader_template" in params):
            return None
        roles = spec.get("model_roles")
        named = named or _model_name(roles.get("grader") if isinstance(roles, dict) else None) or model
    faults: Faults = []
    judge = name_of({"judge": named}, "judge", faults)
    maker.report(faults)
    return {"models": [judge], "is_subject": judge == model} if judge else None


def _model_name(given: object) -> str:
    if isinstance(given, list) and given:
        given = given[0]
    if isinstance(given, dict):
        given = given.get("model")
    return given if isinstance(given, str) else ""
