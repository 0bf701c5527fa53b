"""Benchmarks with their versions, and the metric registry."""

from typing import Any

from rest_framework import serializers

from compliance.api.fields import Digest, Exact, Instant, Words
from compliance.api.parameters import flag, key, word
from compliance.api.views import DetailView, ListView, key_in_path
from compliance.selectors import registry
from evaluations.vocabulary import Better, Exposure, Level, MetricFamily, Unit


class BenchmarkVersionSerializer(serializers.Serializer[Any]):
    """One fixed form of a test."""

    version = serializers.CharField()
    harness = serializers.CharField()
    split = serializers.CharField()
    exposure = Words(Exposure, help_text="Whether the tasks of the split lie open.")
    metrics = serializers.ListField(
        child=serializers.CharField(),
        help_text="The metrics it carries, by key; empty where that is not stated: it may carry any.",
    )
    tasks = serializers.IntegerField(allow_null=True)
    data_digest = serializers.CharField(help_text="Digest of the test's data; empty where it is not known.")
    notes = serializers.CharField()
    sign_off_request = serializers.UUIDField(
        allow_null=True, help_text="The request whose signatures carry it; null for what comes with the product."
    )
    registered_at = Instant()


class BenchmarkSerializer(serializers.Serializer[Any]):
    """A test, with every version of it. Results of two versions are never mixed."""

    key = serializers.CharField()
    title = serializers.CharField()
    publisher = serializers.CharField()
    url = serializers.CharField()
    description = serializers.CharField()
    registered_at = Instant()
    versions = BenchmarkVersionSerializer(many=True)


class MetricSerializer(serializers.Serializer[Any]):
    """A registered measure. A changed definition is a new row with the same key; the newest counts."""

    key = serializers.CharField()
    current = serializers.BooleanField(help_text="True for the newest definition of its key.")
    title = serializers.CharField()
    unit = Words(Unit)
    better = Words(Better)
    level = Words(Level)
    family = Words(MetricFamily)
    population = serializers.CharField()
    definition = serializers.CharField()
    minimum = Exact()
    maximum = Exact(allow_null=True)
    digest = Digest()
    sign_off_request = serializers.UUIDField(
        allow_null=True, help_text="The request whose signatures carry it; null for what comes with the product."
    )
    recorded_at = Instant()


class BenchmarkList(ListView):
    """Benchmarks, oldest first. A version of one's own is asked for, and signed, as a request of the kind `benchmark`."""

    find = staticmethod(registry.find_benchmarks)
    serializer_class = BenchmarkSerializer
    oldest_first = True


class BenchmarkDetail(DetailView):
    """One benchmark."""

    find = staticmethod(registry.get_benchmark)
    path_parameters = (key_in_path("key", "The benchmark's key."),)
    serializer_class = BenchmarkSerializer


class MetricList(ListView):
    """Metric definitions, oldest first; those replaced by newer ones too, unless `current=true`.

    A metric of one's own is asked for, and signed, as a request of the kind `metric`.
    """

    find = staticmethod(registry.find_metrics)
    filters = (
        key("metric", "Only definitions of the metric with this key."),
        word("family", MetricFamily, "Only metrics of this family."),
        word("level", Level, "Only metrics of this level."),
        flag("current", "Only the newest definition of each key, or only the replaced ones."),
    )
    serializer_class = MetricSerializer
    oldest_first = True


class MetricDetail(DetailView):
    """The newest definition of one metric."""

    find = staticmethod(registry.get_metric)
    path_parameters = (key_in_path("key", "The metric's key."),)
    serializer_class = MetricSerializer
