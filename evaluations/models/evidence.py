"""Evidence as written, its observations, and the rulings on it."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, ExactDecimalField, choice_constraint, finite_constraint
from evaluations.kernel.models import Fact
from evaluations.models.benchmarks import BenchmarkVersion, Metric
from evaluations.models.sources import Document, Source
from evaluations.vocabulary import OVERALL, About, Provenance, RulingKind, RunStatus


class Evidence(Fact):
    """Fact. One submission about one subject *as written* in one document; alias assignments say which subject version that is.

    `digest` is over document digest, importer, source and the evidence's own fields: the same bytes are recorded once.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    digest = DigestField(unique=True)
    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="evidence")
    locator = models.CharField(max_length=300, blank=True)
    importer = models.CharField(max_length=60)
    importer_version = models.PositiveSmallIntegerField()
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="evidence")
    subject_as_written = models.CharField(max_length=300)
    answered_as_written = ArrayField(models.CharField(max_length=300), default=list, blank=True)
    about = models.CharField(max_length=8, choices=About.choices, default=About.MODEL)
    provenance = models.CharField(max_length=12, choices=Provenance.choices)
    attested = models.BooleanField(default=False)
    run_status = models.CharField(max_length=12, choices=RunStatus.choices)
    harness = models.CharField(max_length=200, blank=True)
    run_ended_at = models.DateTimeField(null=True, blank=True)
    published_at = models.DateTimeField(null=True, blank=True)
    supersedes = models.CharField(max_length=80, blank=True)
    note = models.TextField(blank=True)
    submitted_by = models.CharField(max_length=200)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "evidence"
        constraints = [
            choice_constraint("about", About, "evidence_about_is_known"),
            choice_constraint("provenance", Provenance, "evidence_provenance_is_known"),
            choice_constraint("run_status", RunStatus, "evidence_run_status_is_known"),
        ]
        indexes = [
            models.Index(fields=["subject_as_written"], name="evidence_by_subject"),
            # Who else answered is stated of few; when one of those names moves, whoever it stands beside is found by it.
            GinIndex(fields=["answered_as_written"], name="evidence_by_answered", condition=~models.Q(answered_as_written=[])),
        ]

    def __str__(self) -> str:
        return f"{self.subject_as_written} in {self.document.file_name}"


class Observation(Fact):
    """Fact. One measured value inside evidence. Percent is 0 to 100; `n` counts planned distinct tasks; empty means not stated."""

    # What these three refer to is checked once a statement, by the trigger `evaluations_observation_refers`: a check a row took half
    # of a large import's time. What they refer to are facts, so nothing can vanish under them. Observations are found by evidence.
    evidence = models.ForeignKey(
        Evidence, on_delete=models.PROTECT, related_name="observations", db_constraint=False, db_index=False
    )
    ordinal = models.PositiveIntegerField()
    benchmark_version = models.ForeignKey(
        BenchmarkVersion, on_delete=models.PROTECT, related_name="observations", db_constraint=False, db_index=False
    )
    metric = models.ForeignKey(Metric, on_delete=models.PROTECT, related_name="observations", db_constraint=False, db_index=False)
    slice = models.CharField(max_length=60, default=OVERALL)
    value = ExactDecimalField()
    value_as_written = models.CharField(max_length=60)
    k = ExactDecimalField(null=True, blank=True)
    n = models.PositiveIntegerField(null=True, blank=True)
    repeats = models.PositiveIntegerField(null=True, blank=True)
    errored = models.PositiveIntegerField(null=True, blank=True)
    unscored = models.PositiveIntegerField(null=True, blank=True)
    judge = models.JSONField(null=True, blank=True)
    locator = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["evidence_id", "ordinal"]
        constraints = [
            models.UniqueConstraint(fields=["evidence", "ordinal"], name="observation_ordinal_is_unique"),
            finite_constraint("value", "observation_value_is_finite"),
            finite_constraint("k", "observation_k_is_finite"),
            models.CheckConstraint(condition=models.Q(k__gte=0, k__lte=models.F("n")), name="observation_k_is_within_n"),
        ]

    def __str__(self) -> str:
        return f"{self.metric.key} {self.value}"


class Ruling(Fact):
    """Fact. A recorded judgement on evidence. The newest one known counts; it never edits the evidence.

    One person may dispute. Any other ruling names the completed request whose signatures carry it, a value from a floor above.
    """

    evidence = models.ForeignKey(Evidence, on_delete=models.PROTECT, related_name="rulings")
    kind = models.CharField(max_length=20, choices=RulingKind.choices)
    reason = models.TextField()
    link = models.CharField(max_length=1000, blank=True)
    sign_off_request = models.UUIDField(null=True, blank=True, unique=True)
    ruled_by = models.CharField(max_length=200)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        constraints = [
            choice_constraint("kind", RulingKind, "ruling_kind_is_known"),
            models.CheckConstraint(
                name="ruling_beyond_a_dispute_is_signed",
                condition=models.Q(kind=RulingKind.DISPUTED) | models.Q(sign_off_request__isnull=False),
            ),
        ]
        indexes = [models.Index(fields=["evidence", "-id"], name="ruling_by_evidence")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.evidence}"
