"""Texts of policies that are being written."""

import uuid

from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, KeyField, key_constraint
from evaluations.kernel.models import Fact


class PolicyDraft(Fact):
    """Fact. One saved text of a policy that is being written; the newest of a policy is its draft, until it is proposed.

    It need not compile. Whoever saved one has written a part of what is proposed after it.
    """

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    policy_name = KeyField(help_text="The policy that it is a draft of, which may not be registered yet.")
    text = models.BinaryField()
    digest = DigestField()
    edited_by = models.CharField(max_length=200)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        constraints = [key_constraint("policy_name", "policy_draft_name_is_ascii")]
        indexes = [models.Index(fields=["policy_name", "-id"], name="policy_draft_by_name")]

    def __str__(self) -> str:
        return f"{self.policy_name} draft"
