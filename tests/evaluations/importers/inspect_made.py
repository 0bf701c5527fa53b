"""Inspect logs made up for tests, in both forms, and profiles that say what their scores mean."""

import io
import json
import zipfile
from typing import Any

from evaluations.importers import profiles
from evaluations.importers.base import Profile

MEASURE: dict[str, Any] = {
    "of": "match",
    "metric": "infeasible_refusal_rate",
    "better": "higher",
    "level": "task",
    "unit": "fraction",
}
HARM: dict[str, Any] = {**MEASURE, "metric": "harmful_completion_rate", "better": "lower", "level": "outcome"}


def profile(*measures: dict[str, Any], task: str = "writes", **changes: Any) -> Profile:
    made = {
        "format": "writegate-profile/1",
        "name": "writes",
        "importer": "inspect",
        "benchmark": "writes",
        "version": "1",
        "task": task,
        "measures": list(measures) or [MEASURE],
        **changes,
    }
    return profiles.read_profile(json.dumps(made).encode(), name="profile.json")


def sample(number: int, value: object = "C", *, score: str = "match", epoch: int = 1, **changes: Any) -> dict[str, Any]:
    """One sample; `...` as value leaves it without a score."""
    scores = {} if value is ... else {score: {"value": value}}
    return {"id": f"t{number}", "epoch": epoch, "input": "", "target": "", "scores": scores, **changes}


def log(samples: list[dict[str, Any]], *, figure: object = ..., **changes: Any) -> dict[str, Any]:
    """A log of these samples; `figure` is the accuracy that it states. `eval_`, `results_` and others are laid over their parts."""
    epochs = max((each["epoch"] for each in samples), default=1)
    score = {"name": "match", "scorer": "match", "params": {}, "metrics": {"accuracy": {"name": "accuracy", "value": figure}}}
    results = {
        "total_samples": len(samples),
        "completed_samples": sum("error" not in each for each in samples),
        "scores": [] if figure is ... else [score],
    }
    spec = {
        "run_id": "r",
        "task_id": "t",
        "created": "2026-11-01T00:00:00+00:00",
        "task": "writes",
        "task_version": 0,
        "dataset": {"name": "writes", "samples": len(samples) // epochs},
        "model": "mockllm/model",
        "config": {"epochs": epochs},
        "packages": {"inspect_ai": "0.3.285"},
    }
    return {
        "version": changes.pop("version", 2),
        "status": changes.pop("status", "success"),
        "eval": {**spec, **changes.pop("eval_", {})},
        "plan": {"name": "plan", "steps": [], "config": changes.pop("config", {})},
        "results": {**results, **changes.pop("results_", {})},
        "stats": {"started_at": "2026-11-01T00:00:00+00:00", "completed_at": "2026-11-01T01:00:00+00:00"},
        **changes,
        "samples": samples,
    }


def as_json(made: dict[str, Any]) -> bytes:
    return json.dumps(made).encode()


def as_eval(made: dict[str, Any], *, left_out: tuple[str, ...] = (), method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The archive of a log; `left_out` names members that it lacks."""
    header = {key: value for key, value in made.items() if key != "samples"}
    start = {key: header[key] for key in ("version", "eval", "plan")}
    members = {
        "_journal/start.json": start,
        **{f"samples/{each['id']}_epoch_{each['epoch']}.json": each for each in made["samples"]},
        "_journal/summaries/1.json": made["samples"],
        "summaries.json": made["samples"],
        "header.json": header,
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, value in members.items():
            if name not in left_out:
                archive.writestr(name, json.dumps(value))
    return out.getvalue()
