"""What the importers and the policy compiler must know of the registry, as plain values."""

from collections import defaultdict

from evaluations.importers.base import MetricDefinition, Registry
from evaluations.models import BenchmarkVersion, Metric, Source


def current_metrics() -> dict[str, Metric]:
    """Return the newest definition of each metric, by key."""
    return {metric.key: metric for metric in Metric.objects.order_by("id")}


def metric_definitions() -> dict[str, MetricDefinition]:
    """Return the newest definitions as the pure shapes that importers and compiler take."""
    return {
        key: MetricDefinition(key, metric.unit, metric.better, metric.level, metric.family, metric.minimum, metric.maximum)
        for key, metric in current_metrics().items()
    }


def benchmark_versions() -> dict[str, frozenset[str]]:
    """Return the known versions of each benchmark, by key."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    for key, version in BenchmarkVersion.objects.values_list("benchmark__key", "version"):
        known[key].add(version)
    return {key: frozenset(versions) for key, versions in known.items()}


def carried_metrics() -> dict[tuple[str, str], frozenset[str]]:
    """Return the metrics that a benchmark's version carries, by (benchmark, version), of those that say so."""
    rows = BenchmarkVersion.objects.exclude(metrics=[]).values_list("benchmark__key", "version", "metrics")
    return {(key, version): frozenset(metrics) for key, version, metrics in rows}


def exposures() -> dict[tuple[str, str], str]:
    """Return whether the tasks of each benchmark version lie open (a word of `Exposure`), by (benchmark, version)."""
    rows = BenchmarkVersion.objects.values_list("benchmark__key", "version", "exposure")
    return {(key, version): exposure for key, version, exposure in rows}


def importer_registry() -> Registry:
    """Return the names that an importer may meet."""
    return Registry(
        metrics=metric_definitions(),
        benchmarks=benchmark_versions(),
        sources=frozenset(Source.objects.values_list("key", flat=True)),
        carried=carried_metrics(),
    )
