"""The metric definitions that the benchmark's policy names, read from the package's own registry."""

import json
from decimal import Decimal
from pathlib import Path

from evaluations.importers.base import MetricDefinition

DEFINITIONS = json.loads(
    (Path(__file__).resolve().parents[2] / "evaluations" / "data" / "metrics.json").read_text(encoding="utf-8")
)["metrics"]

METRICS = {
    item["key"]: MetricDefinition(
        item["key"],
        item["unit"],
        item["better"],
        item["level"],
        item["family"],
        Decimal(item["minimum"]),
        None if item["maximum"] is None else Decimal(item["maximum"]),
    )
    for item in DEFINITIONS
}
