"""The dossiers of definitions: a metric of one's own or the wording of a known one, and a benchmark's version."""

from datetime import datetime
from typing import Any

from compliance.models import SignOffRequest
from compliance.selectors.dossiers.base import Built, Obstacle, close_dossier, excluded_people, floor_quorum, read_requester
from compliance.selectors.proposals import BenchmarkProposal, MetricProposal
from evaluations.models import Benchmark, BenchmarkVersion, Metric, Observation
from policies.models import Policy
from policies.selectors.policies import policies_reading

FIXED = ("unit", "better", "level", "minimum", "maximum")
"""What a key measures: numbers recorded and policies signed under it read these, so they never change."""


def build_metric_dossier(request: SignOffRequest, *, at: datetime) -> Built:
    """Build the dossier of a metric: the definition, the one it replaces, and who reads it."""
    proposal = MetricProposal.read(bytes(request.proposal))
    rows = Metric.objects.filter(key=proposal.key).order_by("-id")
    before = rows.first()
    obstacles = []
    changed = [] if before is None else [name for name in FIXED if getattr(before, name) != getattr(proposal, name)]
    if changed:
        told = f"what `{proposal.key}` measures stays ({', '.join(changed)}): register another key for another measure"
        obstacles.append(Obstacle("measure_changes", told))
    if rows.filter(digest=proposal.digest).exists():
        obstacles.append(
            Obstacle("already_registered", f"`{proposal.key}` was registered with these very words: nothing would change")
        )
    reading = policies_reading(proposal.key) if before is not None else []
    body = {
        "question": {
            "metric": proposal.key,
            "digest": proposal.digest,
            "replaces": None if before is None else before.digest,
        },
        "metric": _words(proposal),
        "metric_before": None if before is None else _words(before),
        "measured": before is not None and Observation.objects.filter(metric__key=proposal.key).exists(),
        "read_by": sorted(Policy.objects.filter(pk__in=reading).values_list("name", flat=True)),
    }
    return _close(request, body, obstacles, at)


def build_benchmark_dossier(request: SignOffRequest, *, at: datetime) -> Built:
    """Build the dossier of a benchmark's version: what it is, of which metrics, and which versions there are."""
    proposal = BenchmarkProposal.read(bytes(request.proposal))
    benchmark = Benchmark.objects.filter(key=proposal.benchmark).first()
    versions = [] if benchmark is None else list(BenchmarkVersion.objects.filter(benchmark=benchmark).order_by("version"))
    obstacles = []
    if any(row.version == proposal.version for row in versions):
        told = f"version `{proposal.version}` of `{proposal.benchmark}` is registered and stays as it is: give yours another name"
        obstacles.append(Obstacle("already_registered", told))
    if benchmark is not None:
        about = ("title", "publisher", "url", "description")
        other = [name for name in about if getattr(proposal, name) not in ("", getattr(benchmark, name))]
        if other:
            told = f"`{benchmark.key}` is registered with another {' and '.join(other)}: ask anew without it"
            obstacles.append(Obstacle("benchmark_differs", told))
    asked = proposal._asdict()
    body = {
        "question": {"benchmark": proposal.benchmark, "version": proposal.version},
        "benchmark": {
            "registered": benchmark is not None,
            **{name: getattr(benchmark or proposal, name) for name in ("title", "publisher", "url", "description")},
        },
        "benchmark_version": {name: asked[name] for name in _VERSION},
        "metrics": [
            {"key": row.key, "digest": row.digest}
            for row in Metric.objects.filter(key__in=proposal.metrics).order_by("key", "-id").distinct("key")
        ],
        "versions": [row.version for row in versions],
    }
    return _close(request, body, obstacles, at)


_VERSION = ("version", "harness", "split", "exposure", "tasks", "data_digest", "metrics", "notes")
_METRIC = ("key", "title", "unit", "better", "level", "family", "population", "definition", "minimum", "maximum", "digest")


def _words(metric: MetricProposal | Metric) -> dict[str, Any]:
    return {name: getattr(metric, name) for name in _METRIC}


def _close(request: SignOffRequest, body: dict[str, Any], obstacles: list[Obstacle], at: datetime) -> Built:
    quorum = floor_quorum(request.kind)
    requester, gone = read_requester(request, at=at)
    return close_dossier(
        request,
        body,
        quorum=quorum,
        excluded=excluded_people(request, quorum),
        asks=[{"requester": requester, "action": {"name": str(request.kind)}, "now": at}],
        obstacles=[*gone, *obstacles],
    )
