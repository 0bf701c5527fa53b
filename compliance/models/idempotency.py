"""What was answered to a keyed request, so that a retry gets the first answer."""

from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField
from evaluations.kernel.models import State


class IdempotencyKey(State):
    """State. One key of one caller, claimed in the transaction of its act; `request_digest` tells a retry from another body."""

    caller = models.CharField(max_length=200)
    key = models.CharField(max_length=200)
    request_digest = DigestField()
    reference = models.CharField(max_length=200, help_text="What the first request made.")
    created_at = models.DateTimeField(default=now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["caller", "key"], name="idempotency_key_is_unique")]
