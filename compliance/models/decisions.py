"""Decisions: what was asked, what was answered, and what the answer was read from."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField
from evaluations.kernel.models import Fact
from evaluations.models import SubjectVersion
from policies.models import System


class DecisionBody(Fact):
    """Fact. The canonical bytes of what one or many decisions were read from and what they say: facts, judgement, semantics."""

    digest = DigestField(unique=True)
    content = models.BinaryField()
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        verbose_name_plural = "decision bodies"


class Decision(Fact):
    """Fact. The recorded answer to one question. `body` holds why; no allow leaves before its row is committed.

    `subject_version`, `system` and `grant` are row ids, null where nothing was found; without a foreign key, since the answer was
    read from rows that nobody can delete, and the checks would lock them once more. `entry` is the ledger entry's id.
    """

    uid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    allowed = models.BooleanField()
    observed = models.BooleanField(default=False, help_text="Asked by a client that only looks on: a denial stops nobody there.")
    conformance = models.BooleanField(
        default=False, help_text="Answered by the conformance profile, which rests on nothing: it clears nobody."
    )
    codes = ArrayField(models.CharField(max_length=40), default=list)
    subject = models.CharField(max_length=300, help_text="As asked.")
    action = models.CharField(max_length=200, help_text="As asked.")
    resource = models.CharField(max_length=300, help_text="As asked.")
    subject_version = models.ForeignKey(
        SubjectVersion, on_delete=models.PROTECT, null=True, related_name="+", db_constraint=False, db_index=False
    )
    system = models.ForeignKey(System, on_delete=models.PROTECT, null=True, related_name="+", db_constraint=False, db_index=False)
    grant = models.ForeignKey(
        "compliance.Grant", on_delete=models.PROTECT, null=True, related_name="decisions", db_constraint=False, db_index=False
    )
    body = models.ForeignKey(
        DecisionBody, on_delete=models.PROTECT, related_name="decisions", db_constraint=False, db_index=False
    )
    entry = models.UUIDField()
    token = models.UUIDField(null=True)
    request_id = models.CharField(max_length=128, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(name="decision_says_why_not", condition=models.Q(allowed=True) | ~models.Q(codes=[])),
            models.CheckConstraint(
                name="allowed_decision_rests_on_a_grant",
                condition=models.Q(allowed=False)
                | models.Q(codes=[], grant__isnull=False, subject_version__isnull=False)
                | models.Q(codes=[], conformance=True, grant__isnull=True),
            ),
        ]
        indexes = [
            models.Index(fields=["system", "-id"], name="decision_by_system"),
            models.Index(fields=["grant", "-id"], name="decision_by_grant", condition=models.Q(grant__isnull=False)),
            BrinIndex(fields=["at"], name="decision_by_time", pages_per_range=32, autosummarize=True),
        ]

    def __str__(self) -> str:
        return f"{'allow' if self.allowed else 'deny'} {self.subject} {self.action} {self.resource}"
