"""What drift looked at, and what it told of without stopping anything."""

import uuid

from django.db import models

from compliance.models.grants import Grant
from compliance.vocabulary import DriftCause
from evaluations.kernel.clock import now
from evaluations.kernel.fields import choice_constraint
from evaluations.kernel.models import Fact, State


class DriftNotice(Fact):
    """Fact. Something moved under a grant that does not suspend it. `key` names what, so that it is told once.

    `detail` holds what fell, from what to what, as the event of a suspension does.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    grant = models.ForeignKey(Grant, on_delete=models.PROTECT, related_name="drift_notices")
    cause = models.CharField(max_length=40, choices=DriftCause.choices)
    key = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)
    actor = models.CharField(max_length=200)
    at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        constraints = [
            choice_constraint("cause", DriftCause, "drift_cause_is_known"),
            models.UniqueConstraint(fields=["grant", "cause", "key"], name="drift_is_noticed_once"),
        ]
        indexes = [models.Index(fields=["-at", "-id"], name="drift_notice_by_time")]

    def __str__(self) -> str:
        return f"{self.grant_id}: {self.cause}"


class GrantReview(State):
    """State. What a grant's last review saw, as a digest; a grant that would show another is due. Decides nothing by itself.

    `unjudged_since` is when a review first found a policy without a verdict: it is given a little time to be judged.
    """

    grant = models.OneToOneField(Grant, on_delete=models.PROTECT, related_name="review")
    seen = models.CharField(max_length=64, blank=True)
    reviewed_at = models.DateTimeField()
    unjudged_since = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"review of {self.grant_id}"
