"""Policies and their immutable versions."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, KeyField, key_constraint
from evaluations.kernel.models import Fact, State


class Policy(State):
    """State. The name under which versions are kept."""

    name = KeyField(unique=True)
    title = models.CharField(max_length=300)
    registered_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "policies"
        constraints = [key_constraint("name", "policy_name_is_ascii")]

    def __str__(self) -> str:
        return self.name


class PolicyVersion(Fact):
    """Fact. One numbered text: the exact bytes given, and the resolved form with defaults filled in, each with its digest."""

    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=300)
    text = models.BinaryField()
    digest = DigestField()
    resolved = models.BinaryField()
    resolved_digest = DigestField()
    semantics = models.PositiveSmallIntegerField()
    proposed_by = models.CharField(max_length=200)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["policy_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["policy", "number"], name="policy_version_number_is_unique"),
            models.UniqueConstraint(fields=["policy", "digest"], name="policy_version_digest_is_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.policy.name} v{self.number}"


class PolicyActivation(Fact):
    """Fact. From here on this version is the one in force. It is written only by the quorum of signatures, never by a command."""

    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="activations")
    version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="activations")
    activated_by = models.CharField(max_length=200)
    sign_off_request = models.UUIDField(
        unique=True, help_text="Id of the completed request whose signatures carry it; a value from the floor above."
    )
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.version} active"


class UnreadableVersion(Fact):
    """Fact. The stored text of this version could not be read while it was in force: an incident, noted once for each text found.

    `codes` holds what is wrong with the text, as a compiler's problems name it; `found_digest` is that of the text as it was found.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="unreadable")
    found_digest = DigestField()
    codes = ArrayField(models.CharField(max_length=40))
    found_by = models.CharField(max_length=200)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["version", "found_digest"], name="unreadable_version_is_noted_once"),
            models.CheckConstraint(name="unreadable_version_has_codes", condition=~models.Q(codes=[])),
        ]

    def __str__(self) -> str:
        return f"{self.version} unreadable"


class Binding(Fact):
    """Fact. A signed tightening of a policy's parameters, for a system or a domain; the newest of its place counts.

    `params` holds the canonical bytes of {parameter: decimal text} under `digest`.
    """

    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="bindings")
    system = models.ForeignKey("policies.System", on_delete=models.PROTECT, null=True, blank=True, related_name="bindings")
    domain = models.CharField(max_length=40, blank=True)
    params = models.BinaryField()
    digest = DigestField()
    bound_by = models.CharField(max_length=200)
    sign_off_request = models.UUIDField(
        unique=True, help_text="Id of the completed request whose signatures carry it; a value from the floor above."
    )
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="binding_has_one_place",
                condition=models.Q(system__isnull=False, domain="") | (models.Q(system__isnull=True) & ~models.Q(domain="")),
            )
        ]
