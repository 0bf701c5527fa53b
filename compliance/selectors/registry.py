"""What is registered, as the API lists it: subjects, benchmarks, metrics, sources and documents.

Every `find_…` returns an unordered queryset (the page orders it) whose rows carry all that an answer shows; every `get_…` returns
one such row, or None.
"""

from collections.abc import Iterator
from typing import Any

from django.db.models import BooleanField, Exists, IntegerField, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.expressions import ExpressionWrapper

from evaluations.models import (
    Benchmark,
    BenchmarkVersion,
    Document,
    DocumentPart,
    Metric,
    Source,
    Subject,
    SubjectVersion,
    SubjectVersionMember,
    TrustAssignment,
)

MOST_DIGITS = 9


def find_subjects(*, kind: str | None = None, provider: str | None = None, candidate: bool | None = None) -> QuerySet[Any]:
    """Return subjects, each with `latest_version` (a number, or None)."""
    newest = SubjectVersion.objects.filter(subject=OuterRef("pk")).order_by("-number").values("number")[:1]
    rows = Subject.objects.annotate(latest_version=Subquery(newest, output_field=IntegerField()))
    return rows.filter(**_given(kind=kind, provider=provider, candidate=candidate))


def get_subject(*, key: str) -> Subject | None:
    return find_subjects().filter(key=key).first()


def find_subject_versions(*, key: str) -> QuerySet[Any]:
    """Return the versions of the subject with this key, each with the versions it can reach."""
    reached = SubjectVersionMember.objects.select_related("member__subject").order_by("member__subject__key", "member_id")
    return (
        SubjectVersion.objects.filter(subject__key=key).select_related("subject").prefetch_related(Prefetch("members", reached))
    )


def get_subject_version(*, key: str, number: int) -> SubjectVersion | None:
    return find_subject_versions(key=key).filter(number=number).first()


def get_subject_version_named(name: str) -> SubjectVersion | None:
    """Return the version that `key@number` names, or the newest of `key`, else None. A key may hold an `@` itself."""
    rows = SubjectVersion.objects.select_related("subject").order_by("-number")
    found = rows.filter(subject__key=name).first()
    key, _, number = name.rpartition("@")
    if found is None and number.isascii() and number.isdigit() and len(number) < MOST_DIGITS:
        found = rows.filter(subject__key=key, number=int(number)).first()
    return found


def find_benchmarks() -> QuerySet[Any]:
    """Return benchmarks, each with its versions."""
    return Benchmark.objects.prefetch_related(Prefetch("versions", BenchmarkVersion.objects.order_by("id")))


def get_benchmark(*, key: str) -> Benchmark | None:
    return find_benchmarks().filter(key=key).first()


def find_metrics(
    *, metric: str | None = None, family: str | None = None, level: str | None = None, current: bool | None = None
) -> QuerySet[Any]:
    """Return metric definitions, each with `current`: whether it is the newest one of its key."""
    newer = Metric.objects.filter(key=OuterRef("key"), pk__gt=OuterRef("pk"))
    rows = Metric.objects.annotate(current=ExpressionWrapper(~Exists(newer), output_field=BooleanField()))
    return rows.filter(**_given(key=metric, family=family, level=level, current=current))


def get_metric(*, key: str) -> Metric | None:
    """Return the newest definition of a metric."""
    return find_metrics(metric=key, current=True).first()


def find_sources(*, tier: str | None = None) -> QuerySet[Any]:
    """Return sources, each with `newest_trust`: a list of the assignment in force, or of none."""
    newest = TrustAssignment.objects.order_by("source_id", "-id").distinct("source_id")
    rows = Source.objects.prefetch_related(Prefetch("trust_assignments", newest, to_attr="newest_trust"))
    if tier is not None:
        in_force = TrustAssignment.objects.filter(source=OuterRef("pk")).order_by("-id").values("tier")[:1]
        rows = rows.alias(tier=Subquery(in_force)).filter(tier=tier)
    return rows


def get_source(*, key: str) -> Source | None:
    return find_sources().filter(key=key).first()


def find_documents(*, media_type: str | None = None, file_name: str | None = None) -> QuerySet[Any]:
    """Return what is known about captured documents, without their bytes."""
    return Document.objects.filter(**_given(media_type=media_type, file_name=file_name))


def get_document(*, digest: str) -> Document | None:
    return Document.objects.filter(digest=digest).first()


def read_document(document: Document) -> Iterator[bytes]:
    """Yield a document's bytes, one part in memory at a time."""
    place = -1
    while True:
        part = DocumentPart.objects.filter(document=document, ordinal__gt=place).order_by("ordinal").first()
        if part is None:
            return
        place = part.ordinal
        yield bytes(part.content)


def _given(**filters: Any) -> dict[str, Any]:
    return {name: value for name, value in filters.items() if value is not None}
