"""Tables of the evaluations app."""

from evaluations.models.benchmarks import Benchmark, BenchmarkVersion, Metric
from evaluations.models.evidence import Evidence, Observation, Ruling
from evaluations.models.refreshing import HostPace, RefreshRun, SourceSchedule
from evaluations.models.sources import Document, DocumentPart, Source, TrustAssignment
from evaluations.models.subjects import AliasAssignment, Subject, SubjectVersion, SubjectVersionMember

__all__ = [
    "AliasAssignment",
    "Benchmark",
    "BenchmarkVersion",
    "Document",
    "DocumentPart",
    "Evidence",
    "HostPace",
    "Metric",
    "Observation",
    "RefreshRun",
    "Ruling",
    "Source",
    "SourceSchedule",
    "Subject",
    "SubjectVersion",
    "SubjectVersionMember",
    "TrustAssignment",
]
