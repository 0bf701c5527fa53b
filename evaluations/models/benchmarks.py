"""Benchmarks and the metric registry."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import (
    DigestField,
    ExactDecimalField,
    KeyField,
    choice_constraint,
    finite_constraint,
    key_constraint,
)
from evaluations.kernel.models import Fact, State
from evaluations.kernel.names import KEY_MAX_LENGTH
from evaluations.vocabulary import Better, Exposure, Level, MetricFamily, Unit


class Benchmark(State):
    """State. A test by its key."""

    key = KeyField(unique=True)
    title = models.CharField(max_length=200)
    publisher = models.CharField(max_length=200, blank=True)
    url = models.CharField(max_length=500, blank=True)
    description = models.TextField(blank=True)
    registered_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["key"]
        constraints = [key_constraint("key", "benchmark_key_is_ascii")]

    def __str__(self) -> str:
        return self.key


class BenchmarkVersion(Fact):
    """Fact. One fixed form of a test: split, harness, data, metrics. Results of two versions are never mixed.

    `metrics` are the keys of those it carries, empty where that is not stated: then it may carry any. `exposure` says whether the tasks
    of the split lie open. `sign_off_request` names the request whose signatures carry it, null for what comes with the product.
    """

    benchmark = models.ForeignKey(Benchmark, on_delete=models.PROTECT, related_name="versions")
    version = models.CharField(max_length=80)
    harness = models.CharField(max_length=200, blank=True)
    split = models.CharField(max_length=80, blank=True)
    exposure = models.CharField(max_length=8, choices=Exposure.choices, default=Exposure.UNKNOWN)
    metrics = ArrayField(models.CharField(max_length=KEY_MAX_LENGTH), default=list, blank=True)
    tasks = models.PositiveIntegerField(null=True, blank=True)
    data_digest = DigestField(blank=True)
    notes = models.TextField(blank=True)
    sign_off_request = models.UUIDField(null=True, blank=True, unique=True)
    registered_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["benchmark_id", "version"]
        constraints = [
            models.UniqueConstraint(fields=["benchmark", "version"], name="benchmark_version_is_unique"),
            choice_constraint("exposure", Exposure, "benchmark_version_exposure_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.benchmark.key} {self.version}"


class Metric(Fact):
    """Fact. A registered measure; a changed definition is a new row with the same key, and the newest one known counts.

    Unit, direction, level and bounds of a key stay for ever (a trigger holds them): what was measured and judged reads them.
    `sign_off_request` names the request whose signatures carry the definition, null for what comes with the product.
    """

    key = KeyField()
    title = models.CharField(max_length=200)
    unit = models.CharField(max_length=8, choices=Unit.choices)
    better = models.CharField(max_length=8, choices=Better.choices)
    level = models.CharField(max_length=8, choices=Level.choices)
    family = models.CharField(max_length=12, choices=MetricFamily.choices)
    population = models.CharField(max_length=300)
    definition = models.TextField()
    minimum = ExactDecimalField()
    maximum = ExactDecimalField(null=True, blank=True)
    digest = DigestField(unique=True)
    sign_off_request = models.UUIDField(null=True, blank=True, unique=True)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["key", "id"]
        constraints = [
            key_constraint("key", "metric_key_is_ascii"),
            choice_constraint("unit", Unit, "metric_unit_is_known"),
            choice_constraint("better", Better, "metric_better_is_known"),
            choice_constraint("level", Level, "metric_level_is_known"),
            choice_constraint("family", MetricFamily, "metric_family_is_known"),
            finite_constraint("minimum", "metric_minimum_is_finite"),
            finite_constraint("maximum", "metric_maximum_is_finite"),
        ]

    def __str__(self) -> str:
        return self.key
