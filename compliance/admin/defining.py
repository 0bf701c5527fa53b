"""Proposing a metric, a benchmark's version or a source. Each page calls one service; nothing counts until somebody else signs."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, reverse

from compliance.admin.asking import AskingPages, FileForm
from compliance.admin.defined import EXPOSURES, TIERS
from compliance.admin.rights import actor_of
from compliance.models import SignOffRequest
from compliance.services.filing import request_benchmark, request_metric, request_source
from evaluations.importers.fields import MAX_NOTE_LENGTH
from evaluations.kernel.errors import DomainError, InputRefused
from evaluations.kernel.names import KEY_MAX_LENGTH
from evaluations.models import Benchmark, Source
from evaluations.selectors.registry import current_metrics
from evaluations.services.benchmarks import METRIC_FIELDS
from evaluations.services.definitions import BENCHMARK_MEMBERS, MAX_TRUST_REASON, SOURCE_MEMBERS
from evaluations.vocabulary import Better, Exposure, Level, MetricFamily, Unit

KEY = "Lower-case ASCII letters, digits and . _ : @ + / -"
UNSIGNED = "It counts for nothing until another evidence steward has signed it"
SIGNED = f"{UNSIGNED}, and is then a fact that stays."


def _text(label: str, *, most: int = 200, rows: int = 0, required: bool = True, note: str = "") -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": rows}) if rows else None
    return forms.CharField(label=label, max_length=most, required=required, help_text=note, widget=widget)


class KeyAsideForm(FileForm):
    """A form about something with a key of its own: `key` is the form's, that of the thing is the field `named`."""

    named = ""

    def add_refusal(self, refused: DomainError) -> None:
        if isinstance(refused, InputRefused):
            found = [item._replace(field=self.named) if item.field == "key" else item for item in refused.problems]
            refused = InputRefused(found)
        super().add_refusal(refused)


class MetricForm(KeyAsideForm):
    """A metric's definition."""

    named = "metric"

    metric = _text("Key", most=KEY_MAX_LENGTH, note=f"{KEY}: policies and files name it so")
    title = _text("Title")
    unit = forms.ChoiceField(label="Unit", choices=Unit.choices, help_text="A rate is percent, 0 to 100")
    better = forms.ChoiceField(label="Direction", choices=Better.choices)
    level = forms.ChoiceField(label="Level", choices=Level.choices, help_text="Whole tasks, single steps, or what came of it")
    family = forms.ChoiceField(label="Family", choices=MetricFamily.choices)
    population = _text("Population", most=300, note="Of what it is measured, such as: harmful assignments")
    definition = _text(
        "Definition",
        most=MAX_NOTE_LENGTH,
        rows=5,
        note="What a success is, and what an errored task counts as",
    )
    minimum = _text("Smallest value", most=20)
    maximum = _text("Largest value", most=20, required=False, note="Empty: there is no limit")
    field_order: Sequence[str] = ("key", "metric", *(name for name in METRIC_FIELDS if name != "key"), "reason")

    def stated(self) -> dict[str, Any]:
        return {"key": self.cleaned_data["metric"], **{name: self.cleaned_data[name] for name in METRIC_FIELDS if name != "key"}}


class BenchmarkForm(FileForm):
    """One version of a benchmark, with what is said of the benchmark itself."""

    benchmark = _text("Benchmark", most=KEY_MAX_LENGTH, note=f"{KEY}. A new one is registered with its first version")
    title = _text("Title", required=False, note="Needed for a new benchmark; a known one keeps its own")
    publisher = _text("Publisher", required=False)
    url = _text("Address", most=500, required=False, note="An https address")
    description = _text("Description", most=MAX_NOTE_LENGTH, rows=3, required=False)
    version = _text("Version", most=80, note="Results of two versions are never mixed")
    harness = _text("Harness", required=False, note="Name and version of what runs it")
    split = _text("Split", most=80, required=False)
    tasks = forms.IntegerField(label="Tasks", required=False, min_value=1)
    data_digest = _text("Digest of its data", most=71, required=False, note="sha256: and 64 hexadecimal digits")
    exposure = forms.ChoiceField(label="Do its tasks lie open?", choices=EXPOSURES.items(), widget=forms.RadioSelect)
    metrics = forms.MultipleChoiceField(
        label="Metrics it carries",
        widget=forms.CheckboxSelectMultiple,
        help_text="Evidence of another metric under this version is refused",
    )
    notes = _text("Notes", most=MAX_NOTE_LENGTH, rows=3, required=False)
    field_order: Sequence[str] = (
        "key",
        *("benchmark", "title", "publisher", "url", "description", "version", "harness", "split", "tasks", "data_digest"),
        *("exposure", "metrics", "notes", "reason"),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        metrics: Any = self.fields["metrics"]
        metrics.choices = [(key, f"{metric.title} ({key})") for key, metric in sorted(current_metrics().items())]

    def stated(self) -> dict[str, Any]:
        told = {name: self.cleaned_data[name] for name in BENCHMARK_MEMBERS}
        # Whole numbers are read as they are written.
        return {**told, "tasks": "" if told["tasks"] is None else str(told["tasks"])}


class SourceForm(KeyAsideForm):
    """A source, and how far it is trusted from the last signature on."""

    named = "source"
    source = _text("Key", most=KEY_MAX_LENGTH, note=f"{KEY}: files name it so")
    title = _text("Title", required=False, note="Needed for a new source; a known one keeps its own")
    publisher = _text("Publisher", required=False)
    url = _text("Address", most=500, required=False, note="An https address")
    tier = forms.ChoiceField(label="Trusted as", choices=TIERS.items(), widget=forms.RadioSelect)
    reason = _text(
        "Why it is trusted so far", most=MAX_TRUST_REASON, rows=3, note="Those who sign read it; it is kept with the tier"
    )
    field_order: Sequence[str] = ("key", "source", "title", "publisher", "url", "tier", "reason")

    def stated(self) -> dict[str, Any]:
        return {"key": self.cleaned_data["source"], **{name: self.cleaned_data[name] for name in SOURCE_MEMBERS if name != "key"}}


class DefiningPages(AskingPages):
    """The pages that propose definitions, beside those that ask for everything else."""

    def asking_urls(self) -> list[URLPattern]:
        return [
            *super().asking_urls(),
            self.own_path("ask/metric/", self.metric_view, "ask_metric"),
            self.own_path("ask/benchmark/", self.benchmark_view, "ask_benchmark"),
            self.own_path("ask/source/", self.source_view, "ask_source"),
        ]

    def metric_view(self, request: HttpRequest) -> HttpResponseBase:
        """Propose a metric; `?metric=` fills in the definition that a known one has now."""
        known = current_metrics().get(request.GET.get("metric", ""))
        initial: dict[str, Any] = {"minimum": "0", "maximum": "100"}
        if known is not None:
            initial = {name: getattr(known, name) for name in METRIC_FIELDS if name != "key"} | {"metric": known.key}
        page = {
            "title": "Propose a metric",
            "lead": "Propose a metric" if known is None else f"Propose another wording of {known.key}",
            "about": f"{SIGNED} Unit, direction, level and bounds of a key never change: another measure gets another key.",
            "button": "Propose",
            "back": reverse("admin:evaluations_metric_changelist"),
        }

        def ask(form: Any) -> SignOffRequest:
            return request_metric(actor=actor_of(request), definition=form.stated(), **form.filed_by())

        return self.ask_simply(request, MetricForm, page, ask, initial=initial)

    def benchmark_view(self, request: HttpRequest) -> HttpResponseBase:
        """Propose a benchmark's version; `?benchmark=` names a known one."""
        known = Benchmark.objects.filter(key=request.GET.get("benchmark", "")).first()
        page = {
            "title": "Propose a benchmark",
            "lead": "Propose a benchmark" if known is None else f"Propose a version of {known.title}",
            "about": SIGNED,
            "button": "Propose",
            "back": reverse("admin:evaluations_benchmark_changelist"),
        }

        def ask(form: Any) -> SignOffRequest:
            return request_benchmark(actor=actor_of(request), version=form.stated(), **form.filed_by())

        initial = {"benchmark": known.key if known else "", "exposure": str(Exposure.UNKNOWN)}
        return self.ask_simply(request, BenchmarkForm, page, ask, initial=initial)

    def source_view(self, request: HttpRequest) -> HttpResponseBase:
        """Propose a source and its trust; `?source=` names a known one, and begins at the tier that it has."""
        known = Source.objects.filter(key=request.GET.get("source", "")).first()
        assigned = None if known is None else known.trust_assignments.order_by("-id").first()
        page = {
            "title": "Propose a source",
            "lead": "Propose a source" if known is None else f"Propose another trust in {known.title}",
            "about": f"{UNSIGNED}. To stop one piece of evidence at once, dispute it.",
            "button": "Propose",
            "back": reverse("admin:evaluations_source_changelist"),
        }

        def ask(form: Any) -> SignOffRequest:
            return request_source(actor=actor_of(request), source=form.stated(), **form.filed_by())

        initial = {"source": known.key if known else "", "tier": str(assigned.tier) if assigned else ""}
        return self.ask_simply(request, SourceForm, page, ask, initial=initial)
