"""Benchmarks, their versions and the metric registry: every write."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.names import check_key
from evaluations.models import Benchmark, BenchmarkVersion, Evidence, Metric
from evaluations.services.subjects import apply_mark_names_changed
from evaluations.signals import metric_redefined

METRIC_FIELDS = ("key", "title", "unit", "better", "level", "family", "population", "definition", "minimum", "maximum")


def apply_hold_registry() -> None:
    """Wait for whoever else defines a metric or a version, inside an open service transaction: what is read from here on stays."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('registry', 2))")


def apply_register_benchmark(
    *, actor: Actor, key: str, title: str, publisher: str = "", url: str = "", description: str = ""
) -> Benchmark:
    """Register a benchmark inside an open service transaction; a known key returns what is there."""
    check_key(key, field="benchmark")
    benchmark, made = Benchmark.objects.get_or_create(
        key=key, defaults={"title": title, "publisher": publisher, "url": url, "description": description}
    )
    if made:
        audit.record(
            audit.Event(action="benchmark.registered", actor=actor, target=("benchmark", key), new={"title": title, "url": url})
        )
    return benchmark


def apply_register_benchmark_version(*, actor: Actor, benchmark: Benchmark, version: str, **facts: Any) -> BenchmarkVersion:
    """Register a version inside an open service transaction; a known one returns what is there, whatever `facts` say now.

    `sign_off_request` among the facts is the request whose signatures carry it. Without one the database takes it from that service
    alone which loads what comes with the product.
    """
    apply_hold_registry()
    existing = BenchmarkVersion.objects.filter(benchmark=benchmark, version=version).first()
    if existing is not None:
        return existing
    row = BenchmarkVersion(benchmark=benchmark, version=version, **{**facts, "metrics": list(facts.get("metrics", ()))})
    row.save()
    audit.record(
        audit.Event(
            action="benchmark_version.registered",
            actor=actor,
            target=("benchmark_version", f"{benchmark.key}@{version}"),
            new={
                "harness": row.harness,
                "split": row.split,
                "exposure": str(row.exposure),
                "tasks": row.tasks,
                "metrics": row.metrics,
                "sign_off_request": cited(row.sign_off_request),
            },
        )
    )
    return row


def metric_digest(definition: Mapping[str, Any]) -> str:
    """Return the digest of a metric's definition: its fields, canonically."""
    return digest({name: definition[name] for name in METRIC_FIELDS})


def apply_register_metric(*, actor: Actor, definition: Mapping[str, Any], sign_off_request: UUID | None = None) -> Metric:
    """Register a metric definition inside an open service transaction; the same definition returns what is there.

    `sign_off_request` is the request whose signatures carry it. Without one the database takes it from that service alone which loads
    what comes with the product.
    """
    apply_hold_registry()
    missing = [name for name in METRIC_FIELDS if name not in definition]
    if missing:
        raise InputRefused([Problem(f"the metric lacks `{name}`", field=name) for name in missing])
    check_key(definition["key"], field="key")
    if definition["maximum"] is not None and Decimal(definition["maximum"]) <= Decimal(definition["minimum"]):
        raise InputRefused([Problem("the maximum is not above the minimum", field="maximum")])
    own = metric_digest(definition)
    existing = Metric.objects.filter(digest=own).first()
    if existing is not None:
        return existing
    redefined = Metric.objects.filter(key=definition["key"]).exists()
    row = Metric(digest=own, sign_off_request=sign_off_request, **{name: definition[name] for name in METRIC_FIELDS})
    row.save()
    audit.record(
        audit.Event(
            action="metric.registered",
            actor=actor,
            target=("metric", row.key),
            new={
                "unit": row.unit,
                "better": row.better,
                "level": row.level,
                "family": row.family,
                "sign_off_request": cited(sign_off_request),
            },
            digests={"metric": own},
        )
    )
    if redefined:
        _apply_announce_redefinition(row.key)
    return row


def cited(uid: UUID | None) -> str | None:
    """Return a request's id as ledger entries write it."""
    return None if uid is None else str(uid)


def _apply_announce_redefinition(key: str) -> None:
    """Mark the subjects that were measured by a metric, and announce after commit that it has another definition."""
    measured = Evidence.objects.filter(observations__metric__key=key)
    apply_mark_names_changed(measured.values_list("subject_as_written", flat=True).distinct())

    def announce() -> None:
        metric_redefined.send_robust(sender=Metric, metric=key)

    transaction.on_commit(announce, robust=True)
