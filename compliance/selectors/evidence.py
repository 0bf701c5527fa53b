"""Evidence as the API lists it: who said what about whom, with the first observations of each."""

import uuid
from typing import Any

from django.db.models import Exists, F, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from evaluations.models import AliasAssignment, Evidence, Observation, Ruling

SHOWN_OBSERVATIONS = 50
"""How many observations travel inside their evidence; the rest is a list of its own."""


def find_evidence(
    *,
    subject: str | None = None,
    name: str | None = None,
    source: str | None = None,
    benchmark: str | None = None,
    metric: str | None = None,
    provenance: str | None = None,
    run_status: str | None = None,
    document: str | None = None,
) -> QuerySet[Any]:
    """Return evidence with its source, document, rulings and first observations (one more than is shown, to tell of the rest).

    `subject` is a key: found is what counts for one of that subject's versions, by what its name means now. `name` is the name as
    written. `benchmark` and `metric` must hold for one and the same observation.
    """
    rows: QuerySet[Any] = Evidence.objects.select_related("source", "document").prefetch_related(
        Prefetch("observations", find_observations().filter(ordinal__lte=SHOWN_OBSERVATIONS + 1).order_by("ordinal")),
        Prefetch("rulings", Ruling.objects.order_by("id")),
    )
    given = {
        "subject_as_written": name,
        "source__key": source,
        "provenance": provenance,
        "run_status": run_status,
        "document__digest": document,
    }
    rows = rows.filter(**{field: value for field, value in given.items() if value is not None})
    if subject is not None:
        rows = _about(rows, subject)
    if benchmark is not None or metric is not None:
        measured = {"benchmark_version__benchmark__key": benchmark, "metric__key": metric}
        seen = Observation.objects.filter(**{field: value for field, value in measured.items() if value is not None})
        rows = rows.filter(Exists(seen.filter(evidence=OuterRef("pk"))))
    return rows


def get_evidence(*, uid: uuid.UUID) -> Evidence | None:
    return find_evidence().filter(uid=uid).first()


def find_observations(*, uid: uuid.UUID | None = None) -> QuerySet[Any]:
    """Return observations with metric and benchmark; those of one evidence where `uid` is given."""
    rows = Observation.objects.select_related("metric", "benchmark_version__benchmark", "evidence")
    return rows if uid is None else rows.filter(evidence__uid=uid)


def uids_in_document(*, document_id: int, importer: str) -> list[str]:
    """Return the ids of all evidence that an importer read from a document, in the document's order."""
    rows = Evidence.objects.filter(document_id=document_id, importer=importer).order_by("id")
    return [str(uid) for uid in rows.values_list("uid", flat=True)]


def _about(rows: QuerySet[Any], subject: str) -> QuerySet[Any]:
    """Keep the evidence whose name means a version of this subject: the rule of `evaluations.selectors.evidence`, as of now."""
    names = AliasAssignment.objects.filter(subject_version__subject__key=subject).values("name_as_written")
    meaning = (
        AliasAssignment.objects.filter(name_as_written=OuterRef("subject_as_written"))
        .filter(Q(source=OuterRef("source")) | Q(source=None))
        .filter(
            Q(effective_from=None)
            | Q(effective_from__lte=Coalesce(OuterRef("run_ended_at"), OuterRef("published_at"), OuterRef("recorded_at")))
        )
        .order_by(F("source").asc(nulls_last=True), F("effective_from").desc(nulls_last=True), "-id")
        .values("subject_version__subject__key")[:1]
    )
    kept: QuerySet[Any] = rows.filter(subject_as_written__in=names).alias(meant=Subquery(meaning)).filter(meant=subject)
    return kept
