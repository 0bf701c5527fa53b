"""Subjects: the models and agents the gate is about, pinned by version."""

from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, KeyField, choice_constraint, key_constraint
from evaluations.kernel.models import Fact, State
from evaluations.vocabulary import SubjectKind


class Subject(State):
    """State. A model, agent or route by its key. `changed_at` is moved by every fact that concerns it.

    `late_at` is moved by the database where what concerns it is committed long after the instant at which it was recorded.
    `urgent_at` is moved by rulings and by names that move: from then on no answer rests on an older check, not even for a minute.
    """

    key = KeyField(unique=True)
    kind = models.CharField(max_length=8, choices=SubjectKind.choices)
    title = models.CharField(max_length=200)
    provider = models.CharField(max_length=120, blank=True)
    candidate = models.BooleanField(default=False, help_text="Listed by the gate: somebody wants write access for it.")
    registered_at = models.DateTimeField(default=now)
    changed_at = models.DateTimeField(default=now)
    urgent_at = models.DateTimeField(null=True, blank=True)
    late_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["key"]
        constraints = [
            key_constraint("key", "subject_key_is_ascii"),
            choice_constraint("kind", SubjectKind, "subject_kind_is_known"),
        ]

    def __str__(self) -> str:
        return self.key


class SubjectVersion(Fact):
    """Fact. One exact configuration of a subject; `pin` holds the canonical bytes under `digest`.

    A model's pin names provider, snapshot, effort, quantisation and fallbacks; an agent's names the closed set of models it can reach,
    the prompt digest, the tool manifest digest and the harness.
    """

    subject = models.ForeignKey(Subject, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    pin = models.BinaryField()
    digest = DigestField()
    closed = models.BooleanField(
        default=True, help_text="False when the set of models behind it is open: no verdict is possible."
    )
    registered_at = models.DateTimeField(default=now)
    registered_by = models.CharField(max_length=200)

    class Meta:
        ordering = ["subject_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["subject", "number"], name="subject_version_number_is_unique"),
            models.UniqueConstraint(fields=["subject", "digest"], name="subject_version_digest_is_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.subject.key} v{self.number}"


class SubjectVersionMember(Fact):
    """Fact. One model version that an agent's or route's version can reach."""

    version = models.ForeignKey(SubjectVersion, on_delete=models.PROTECT, related_name="members")
    member = models.ForeignKey(SubjectVersion, on_delete=models.PROTECT, related_name="member_of")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "member"], name="subject_version_member_is_unique"),
            models.CheckConstraint(condition=~models.Q(version=models.F("member")), name="subject_version_member_is_another"),
        ]


class AliasAssignment(Fact):
    """Fact. A dated statement that a name, as written in a source (or in any), means this subject version.

    An empty `subject_version` withdraws the name: evidence under it counts for nobody. `effective_from` empty means "ever since".
    """

    name_as_written = models.CharField(max_length=300)
    source = models.ForeignKey("evaluations.Source", on_delete=models.PROTECT, null=True, blank=True, related_name="aliases")
    subject_version = models.ForeignKey(SubjectVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="aliases")
    effective_from = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    assigned_by = models.CharField(max_length=200)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["name_as_written", "source"], name="alias_by_name"),
            models.Index(fields=["subject_version"], name="alias_by_subject_version"),
        ]

    def __str__(self) -> str:
        return f"{self.name_as_written} → {self.subject_version or 'nobody'}"
