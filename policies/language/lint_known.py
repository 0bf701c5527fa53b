"""The names that a lint away from the service knows, read from a file: what a repository of policies keeps beside them.

One JSON object. `metrics` is a list as the service registers them (`key`, `unit`, `better`, `level`, `family`, `minimum`,
`maximum`); `benchmarks` maps a benchmark to the list of its versions; `roles` is a list. Optional: `values` maps a variable of
conditions to the list of all it can hold, `trust` a source to its tier.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.numbers import NotADecimal, parse_decimal
from policies.language.conditions import WHEN_VARIABLES
from policies.language.lint import Known
from policies.language.names import Names
from policies.language.results import TRUST_TIERS

_KEYS = ("metrics", "benchmarks", "roles", "values", "trust")
_REQUIRED = ("metrics", "benchmarks", "roles")
_METRIC_WORDS: Mapping[str, tuple[str, ...]] = {
    "unit": ("percent", "usd", "count"),
    "better": ("higher", "lower"),
    "level": ("task", "outcome", "step"),
    "family": ("refusal", "harm", "capability", "cost"),
}


class KnownMetric(NamedTuple):
    """A registered measure, as far as compiling and linting need it."""

    unit: str
    better: str
    level: str
    family: str
    minimum: Decimal
    maximum: Decimal | None


class _Refused(ValueError):
    """What stands in the file is not what is meant; the text says where and what."""


def read_known(text: bytes, *, filename: str = "") -> tuple[Names, Known]:
    """Return what a file says is known. Raises `InputRefused`."""
    try:
        read = json.loads(text, parse_float=str, parse_int=str)
        return _known(read)
    except (ValueError, RecursionError) as error:
        message = str(error) if isinstance(error, _Refused) else f"this is not JSON: {error}"
        problem = Problem(message, filename, hint="`manage.py policy lint --help` shows what the file holds")
        raise InputRefused([problem]) from None


def _known(read: Any) -> tuple[Names, Known]:
    if not isinstance(read, dict):
        raise _Refused("the file holds no JSON object")
    unknown, missing = sorted(read.keys() - set(_KEYS)), [key for key in _REQUIRED if key not in read]
    if unknown:
        raise _Refused(f"unknown key `{unknown[0]}`; known: {', '.join(f'`{key}`' for key in _KEYS)}")
    if missing:
        raise _Refused(f"`{missing[0]}` is missing")
    if not isinstance(read["metrics"], list):
        raise _Refused("`metrics` is no list")
    metrics = dict(_metric(item, place) for place, item in enumerate(read["metrics"]))
    benchmarks = {name: frozenset(_texts(held, f"benchmarks.{name}")) for name, held in _mapping(read, "benchmarks").items()}
    values = {name: frozenset(_texts(held, f"values.{name}")) for name, held in _mapping(read, "values").items()}
    strange = sorted(name for name in values if WHEN_VARIABLES.get(name) not in {"string", "list<string>"} or not values[name])
    if strange:
        raise _Refused(f"`values.{strange[0]}` is no list of what a text of conditions can hold")
    trust = _mapping(read, "trust")
    for source, tier in trust.items():
        if tier not in TRUST_TIERS:
            raise _Refused(f"`trust.{source}` is none of {', '.join(f'`{word}`' for word in TRUST_TIERS)}")
    roles = frozenset(_texts(read["roles"], "roles"))
    names = Names(metrics=metrics, benchmarks=benchmarks, roles=roles, sources=frozenset(trust) if "trust" in read else None)
    return names, Known(metrics=metrics, values=values, trust=trust)


def _metric(item: Any, place: int) -> tuple[str, KnownMetric]:
    where = f"metrics[{place}]"
    if not isinstance(item, dict) or not isinstance(item.get("key"), str):
        raise _Refused(f"`{where}` is no object with a `key`")
    for name, words in _METRIC_WORDS.items():
        if item.get(name) not in words:
            raise _Refused(f"`{where}.{name}` is none of {', '.join(f'`{word}`' for word in words)}")
    maximum = item.get("maximum")
    lowest = _number(item.get("minimum"), f"{where}.minimum")
    highest = None if maximum is None else _number(maximum, f"{where}.maximum")
    return item["key"], KnownMetric(item["unit"], item["better"], item["level"], item["family"], lowest, highest)


def _number(value: Any, where: str) -> Decimal:
    try:
        return parse_decimal(value if isinstance(value, str) else "", field=where)
    except NotADecimal as error:
        raise _Refused(str(error)) from None


def _mapping(read: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    held = read.get(key, {})
    if not isinstance(held, dict):
        raise _Refused(f"`{key}` is no object")
    return held


def _texts(held: Any, where: str) -> list[str]:
    if not isinstance(held, list) or not all(isinstance(item, str) for item in held):
        raise _Refused(f"`{where}` is no list of texts")
    return held
