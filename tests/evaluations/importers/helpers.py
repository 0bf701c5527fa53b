"""What the importer tests share: a small registry, and reading that returns pairs or problems."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from evaluations.importers.base import Pair, Registry
from evaluations.importers.bundles import definitions, read_metrics
from evaluations.kernel.errors import InputRefused, Problem

REGISTRY = Registry(
    metrics=definitions(read_metrics()),
    benchmarks={
        "bench": frozenset({"1", "2"}),
        "odcv-bench": frozenset({"7353f1c"}),
        "enterpriseops-gym": frozenset({"public-oracle", "public-plus_5_tools", "third-party-runner"}),
    },
    sources=frozenset({"lab", "press"}),
)

OBSERVATION: dict[str, Any] = {
    "metric": "infeasible_refusal_rate",
    "benchmark": "bench",
    "version": "1",
    "unit": "percent",
    "value": "80.0",
}
EVIDENCE: dict[str, Any] = {
    "subject": "Model A",
    "run": {"status": "complete", "ended_at": "2026-11-01T00:00:00Z"},
    "observations": [OBSERVATION],
}
ROW: dict[str, str] = {
    "subject": "Model A",
    "source": "lab",
    "provenance": "reported",
    "run_status": "complete",
    "run_ended_at": "2026-11-01T00:00:00Z",
    "metric": "infeasible_refusal_rate",
    "benchmark": "bench",
    "version": "1",
    "unit": "percent",
    "value": "80.0",
}


def observation(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**OBSERVATION, **changes}.items() if value is not ...}


def evidence(*observations: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made = {**EVIDENCE, "observations": list(observations) or [OBSERVATION], **changes}
    return {key: value for key, value in made.items() if value is not ...}


def document(*items: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made = {"format": "writegate-evidence/1", "source": "lab", "provenance": "reported", "evidence": list(items) or [EVIDENCE]}
    return {key: value for key, value in {**made, **changes}.items() if value is not ...}


def table(*rows: Mapping[str, str], columns: Sequence[str] = ()) -> str:
    names = list(columns) or list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, names)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def as_bytes(content: object) -> bytes:
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content, indent=1)).encode()


def pairs_of(
    importer: ModuleType, content: object, *, name: str = "given.json", source: str | None = None, registry: Registry = REGISTRY
) -> list[Pair]:
    return list(importer.read(io.BytesIO(as_bytes(content)), name=name, registry=registry, source=source))


def problems_of(importer: ModuleType, content: object, *, name: str = "given.json", source: str | None = None) -> list[Problem]:
    with pytest.raises(InputRefused) as caught:
        pairs_of(importer, content, name=name, source=source)
    for problem in caught.value.problems:
        assert problem.file.startswith(name), f"no file: {problem}"
        assert problem.message, problem
        assert problem.hint, f"what to write instead: {problem}"
        assert "\n" not in str(problem)
    return list(caught.value.problems)


def only(problems: list[Problem]) -> Problem:
    assert len(problems) == 1, [str(problem) for problem in problems]
    return problems[0]


def value_of(importer: ModuleType, content: object, **options: Any) -> Decimal:
    ((_, found),) = pairs_of(importer, content, **options)
    return found.value
