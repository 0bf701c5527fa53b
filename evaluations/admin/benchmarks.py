"""Benchmarks, their versions, and the metric registry."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.display import Cell, Fields, Record, Table, instant, link, number, outside, said, whole_digest, words
from evaluations.models import Benchmark, BenchmarkVersion, Metric
from evaluations.vocabulary import Exposure

SHOWN = 50
EXPOSURE_WORDS: dict[str, str] = {
    Exposure.PUBLIC: "its tasks are public",
    Exposure.PRIVATE: "its tasks are private",
    Exposure.UNKNOWN: "public or private: not stated",
}


@admin.register(Benchmark)
class BenchmarkAdmin(ReadOnlyAdmin):
    about = "The tests whose results are accepted as evidence."
    list_display = ("key", "title", "publisher", "registered")
    search_fields = ("key", "title", "publisher")
    ordering = ("key",)

    @admin.display(description="registered", ordering="registered_at")
    def registered(self, row: Benchmark) -> Cell:
        return instant(row.registered_at)

    def describe(self, row: Benchmark, request: HttpRequest) -> Record:
        return Record(
            lead=row.title,
            target=("benchmark", row.key),
            sections=[
                Fields(
                    "Benchmark",
                    [
                        ("Key", row.key),
                        ("Title", row.title),
                        ("Publisher", said(row.publisher)),
                        ("Address", outside(row.url)),
                        ("Description", said(row.description)),
                        ("Registered", instant(row.registered_at)),
                    ],
                ),
                Table(
                    "Versions",
                    ("Version", "Tasks", "Harness", "Split", "Exposure", "Registered"),
                    [
                        [
                            link(version, version.version),
                            number(version.tasks),
                            said(version.harness),
                            said(version.split),
                            version.get_exposure_display(),
                            instant(version.registered_at),
                        ]
                        for version in row.versions.order_by("-id")[:SHOWN]
                    ],
                    empty="No version is registered: no result of this test can be recorded yet.",
                ),
            ],
        )


@admin.register(BenchmarkVersion)
class BenchmarkVersionAdmin(ReadOnlyAdmin):
    about = "Fixed forms of the tests. Results of two versions are never mixed."
    list_display = ("shown", "tasks", "harness", "split", "exposure", "registered")
    list_filter = (("benchmark", AutocompleteSelectFilter), "exposure")
    list_select_related = ("benchmark",)
    search_fields = ("benchmark__key", "version")
    ordering = ("benchmark__key", "version")

    @admin.display(description="version", ordering="version")
    def shown(self, row: BenchmarkVersion) -> str:
        return str(row)

    @admin.display(description="registered", ordering="registered_at")
    def registered(self, row: BenchmarkVersion) -> Cell:
        return instant(row.registered_at)

    def describe(self, row: BenchmarkVersion, request: HttpRequest) -> Record:
        return Record(
            lead=f"One fixed form of {row.benchmark.title}.",
            target=("benchmark_version", f"{row.benchmark.key}@{row.version}"),
            sections=[
                Fields(
                    "Benchmark version",
                    [
                        ("Benchmark", link(row.benchmark)),
                        ("Version", row.version),
                        ("Tasks", number(row.tasks)),
                        ("Harness", said(row.harness)),
                        ("Split", said(row.split)),
                        ("Exposure", row.get_exposure_display()),
                        ("Metrics", words(row.metrics, empty="not stated: it may carry any")),
                        ("Data", whole_digest(row.data_digest)),
                        ("Notes", said(row.notes, empty="none")),
                        ("Registered", instant(row.registered_at)),
                    ],
                )
            ],
        )


@admin.register(Metric)
class MetricAdmin(ReadOnlyAdmin):
    about = "What is counted, in which unit, and which direction is better. The newest definition of a key counts."
    list_display = ("key", "title", "unit", "better", "level", "family", "recorded")
    list_filter = ("unit", "better", "level", "family")
    search_fields = ("key", "title", "population")
    ordering = ("key", "id")

    @admin.display(description="recorded", ordering="recorded_at")
    def recorded(self, row: Metric) -> Cell:
        return instant(row.recorded_at)

    def describe(self, row: Metric, request: HttpRequest) -> Record:
        definitions: Any = Metric.objects.filter(key=row.key).order_by("-id")[:SHOWN]
        return Record(
            lead=row.title,
            target=("metric", row.key),
            sections=[
                Fields(
                    "Metric",
                    [
                        ("Key", row.key),
                        ("Unit", row.get_unit_display()),
                        ("Direction", row.get_better_display()),
                        ("Level", row.get_level_display()),
                        ("Family", row.get_family_display()),
                        ("Population", row.population),
                        ("Definition", row.definition),
                        ("Smallest value", number(row.minimum, row.unit)),
                        ("Largest value", number(row.maximum, row.unit, empty="no limit")),
                        ("Definition digest", whole_digest(row.digest)),
                        ("Recorded", instant(row.recorded_at)),
                    ],
                ),
                Table(
                    "Definitions of this key, newest first",
                    ("Title", "Recorded", "Counts"),
                    [
                        [link(item, item.title), instant(item.recorded_at), "yes" if place == 0 else "no: replaced"]
                        for place, item in enumerate(definitions)
                    ],
                    empty="None.",
                ),
            ],
        )
