"""Signs of life of the background services."""

from django.db import models

from evaluations.kernel.models import State


class ServiceBeat(State):
    """State. When a background service was last heard of, or a check last ran; not audited, since it decides nothing."""

    name = models.CharField(max_length=40, unique=True)
    beat_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
