"""Profiles for tests: small ones of a made-up benchmark, as objects to be changed."""

import json
from typing import Any

from evaluations.importers.base import MetricDefinition, Profile, Registry
from evaluations.importers.profiles import FORMAT, read_profile
from tests.evaluations.importers.foreign import REGISTRY as FOREIGN
from tests.evaluations.importers.helpers import REGISTRY as OWN

ANSWERS = MetricDefinition(
    "answers_right", "percent", "higher", "task", "capability", OWN.metrics["task_completion_rate"].minimum, None
)
REGISTRY = Registry(
    metrics={**OWN.metrics, "answers_right": ANSWERS},
    benchmarks={**OWN.benchmarks, **FOREIGN.benchmarks},
    sources=frozenset({"lab"}),
)


def measure(of: str, metric: str = "infeasible_refusal_rate", unit: str = "percent", **changes: Any) -> dict[str, Any]:
    """Return a measure whose polarity and level are those of its metric."""
    known = REGISTRY.metrics[metric]
    made = {"of": of, "metric": metric, "better": known.better, "level": known.level, "unit": unit, **changes}
    return {key: value for key, value in made.items() if value is not None}


def profile(importer: str, *measures: dict[str, Any], **changes: Any) -> Profile:
    """Return a profile on the made-up benchmark; a change to None leaves the field out."""
    made = {
        "format": FORMAT,
        "name": "mine",
        "importer": importer,
        "benchmark": "bench",
        "version": "1",
        "measures": list(measures),
    }
    whole = {key: value for key, value in {**made, **changes}.items() if value is not None}
    return read_profile(json.dumps(whole, indent=1, ensure_ascii=False).encode(), name="mine.json")
