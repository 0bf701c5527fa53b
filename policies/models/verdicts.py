"""Verdicts, what they were judged on, and which one stands."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, choice_constraint
from evaluations.kernel.models import Fact, State
from evaluations.models import SubjectVersion
from policies.models.policies import PolicyVersion
from policies.vocabulary import Differing, Outcome, Result


class FactsDocument(Fact):
    """Fact. The canonical bytes of everything one judgement looked at, by digest.

    A digest has one row, and another one only after a replay found a verdict on the first that does not match: what is judged anew
    rests on a sound copy.
    """

    digest = DigestField()
    content = models.BinaryField()
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        indexes = [models.Index(fields=["digest"], name="facts_document_by_digest")]


class Verdict(Fact):
    """Fact. Pass or fail of one policy version on one subject version in one domain.

    `core` holds the canonical bytes of the judgement under `core_digest`; replay rebuilds them from facts document and policy.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    policy_version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="verdicts")
    params_digest = DigestField()
    subject_version = models.ForeignKey(SubjectVersion, on_delete=models.PROTECT, related_name="verdicts")
    domain = models.CharField(max_length=40)
    outcome = models.CharField(max_length=8, choices=Outcome.choices)
    result = models.CharField(max_length=12, choices=Result.choices)
    blocking = ArrayField(models.CharField(max_length=120), default=list)
    waivable = ArrayField(models.CharField(max_length=120), default=list)
    core = models.BinaryField()
    core_digest = DigestField()
    facts = models.ForeignKey(FactsDocument, on_delete=models.PROTECT, related_name="verdicts")
    semantics = models.PositiveSmallIntegerField()
    as_of = models.DateTimeField()
    known_at = models.DateTimeField()
    judged_by = models.CharField(max_length=200)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        constraints = [
            choice_constraint("outcome", Outcome, "verdict_outcome_is_known"),
            choice_constraint("result", Result, "verdict_result_is_known"),
            models.CheckConstraint(
                name="verdict_outcome_agrees",
                condition=models.Q(outcome=Outcome.FAIL) | models.Q(blocking=[], waivable=[]),
            ),
        ]
        indexes = [models.Index(fields=["subject_version", "policy_version", "-id"], name="verdict_by_subject_and_policy")]

    def __str__(self) -> str:
        return f"{self.policy_version} on {self.subject_version}: {self.outcome}"


class VerdictMismatch(Fact):
    """Fact. A replay of this verdict did not match what is stored: an incident, noted once. What stands on it is judged anew.

    `differs` holds words of `Differing`.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    verdict = models.OneToOneField(Verdict, on_delete=models.PROTECT, related_name="mismatch")
    differs = ArrayField(models.CharField(max_length=20))
    found_by = models.CharField(max_length=200)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="verdict_mismatch_is_known",
                condition=models.Q(differs__contained_by=Differing.values) & ~models.Q(differs=[]),
            )
        ]

    def __str__(self) -> str:
        return f"{self.verdict} does not match"


class Standing(State):
    """State. The pointer to the current verdict of a key, when it was last checked, and when ageing could next change it."""

    policy_version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="standings")
    params_digest = DigestField()
    subject_version = models.ForeignKey(SubjectVersion, on_delete=models.PROTECT, related_name="standings")
    domain = models.CharField(max_length=40)
    verdict = models.ForeignKey(Verdict, on_delete=models.PROTECT, related_name="standings")
    checked_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["policy_version", "params_digest", "subject_version", "domain"], name="standing_key_is_unique"
            )
        ]
        indexes = [models.Index(fields=["due_at"], name="standing_by_due_at", condition=models.Q(due_at__isnull=False))]

    def __str__(self) -> str:
        return f"{self.verdict}"
