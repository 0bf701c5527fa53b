"""Definitions of metrics, benchmark versions and sources that somebody wants to add, read strictly: every problem has its field."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from evaluations.importers.base import TRUST_TIERS, MetricDefinition
from evaluations.importers.bundle_entries import (
    BenchmarkEntry,
    MetricEntry,
    SourceEntry,
    VersionEntry,
    metric_entry,
    version_entry,
)
from evaluations.importers.fields import MAX_NOTE_LENGTH, Fault, Faults, closest, shown, text_of, unknown_fields, word_of
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.names import key_problem
from evaluations.models import Benchmark, Source, TrustAssignment
from evaluations.selectors.registry import current_metrics
from evaluations.vocabulary import Unit

MAX_METRICS = 50
METRIC_MEMBERS = ("title", "population", "definition", *MetricDefinition._fields)
MAX_TRUST_REASON = TrustAssignment._meta.get_field("reason").max_length or 0
SOURCE_MEMBERS = ("key", "title", "publisher", "url", "tier")
BENCHMARK_MEMBERS = ("benchmark", "title", "publisher", "url", "description", *VersionEntry._fields)


def read_metric(given: Mapping[str, Any]) -> MetricEntry:
    """Return the definition of a metric from its members (`METRIC_MEMBERS`; numbers as text). Raises `InputRefused`."""
    faults: Faults = []
    entry = metric_entry(given, faults)
    found = entry.definition
    _check_key(found.key, "key", faults)
    if not faults:
        if found.maximum is not None and found.maximum <= found.minimum:
            faults.append(Fault("maximum", "it is not above the minimum", "leave it out where there is no largest value"))
        if found.unit == Unit.PERCENT and (found.minimum, found.maximum) != (Decimal(0), Decimal(100)):
            faults.append(Fault("maximum", "rates are percent, 0 to 100", "write 0 as `minimum` and 100 as `maximum`"))
    _raise(faults)
    return entry


def read_benchmark_version(given: Mapping[str, Any]) -> BenchmarkEntry:
    """Return one version of a benchmark from its members (`BENCHMARK_MEMBERS`). Raises `InputRefused`.

    A benchmark that is registered has its title already: it may be left out then.
    """
    faults: Faults = []
    unknown_fields(given, BENCHMARK_MEMBERS, faults)
    key = text_of(given, "benchmark", faults, required=True)
    _check_key(key, "benchmark", faults)
    version = version_entry(given, faults)
    _check_key(version.version, "version", faults)
    _check_metrics(version, faults)
    told = {
        "title": text_of(given, "title", faults, required=not Benchmark.objects.filter(key=key).exists()),
        "publisher": text_of(given, "publisher", faults),
        "url": text_of(given, "url", faults, limit=500),
        "description": text_of(given, "description", faults, limit=MAX_NOTE_LENGTH),
    }
    _check_address(told["url"], faults)
    _raise(faults)
    return BenchmarkEntry(key, versions=(version,), **told)


def read_source(given: Mapping[str, Any], *, reason: str) -> SourceEntry:
    """Return a source and how far it is to be trusted from its members (`SOURCE_MEMBERS`). Raises `InputRefused`.

    A source that is registered has its title already: it may be left out then. The reason stands beside the tier for good.
    """
    faults: Faults = []
    unknown_fields(given, SOURCE_MEMBERS, faults)
    key = text_of(given, "key", faults, required=True)
    _check_key(key, "key", faults)
    told = {
        "title": text_of(given, "title", faults, required=not Source.objects.filter(key=key).exists()),
        "publisher": text_of(given, "publisher", faults),
        "url": text_of(given, "url", faults, limit=500),
        "tier": word_of(given, "tier", TRUST_TIERS, faults),
    }
    _check_address(told["url"], faults)
    if len(reason.strip()) > MAX_TRUST_REASON:
        said = f"it has {len(reason.strip())} characters"
        faults.append(Fault("reason", said, f"write at most {MAX_TRUST_REASON}: it is kept with the tier"))
    _raise(faults)
    return SourceEntry(key, notes="", reason=reason.strip(), **told)


def _check_address(address: str, faults: Faults) -> None:
    if address and not address.startswith("https://"):
        faults.append(Fault("url", f"{shown(address)} is no https address", "write one that begins with https://"))


def _check_metrics(version: VersionEntry, faults: Faults) -> None:
    if not 1 <= len(version.metrics) <= MAX_METRICS and not any(fault.field == "metrics" for fault in faults):
        faults.append(Fault("metrics", f"it has {len(version.metrics)} names", f"name the 1 to {MAX_METRICS} metrics it carries"))
    known = current_metrics()
    for name in version.metrics[:MAX_METRICS]:
        if name not in known:
            faults.append(
                Fault("metrics", f"unknown metric {shown(name)}", closest(name, known, what="metrics"), "unknown_metric")
            )


def _check_key(text: str, field: str, faults: Faults) -> None:
    problem = key_problem(text, field=field) if text else None
    if problem is not None:
        faults.append(Fault(field, problem.message, problem.hint, problem.code or "invalid"))


def _raise(faults: Faults) -> None:
    if faults:
        raise InputRefused([Problem(fault.message, field=fault.field, code=fault.code, hint=fault.hint) for fault in faults])
