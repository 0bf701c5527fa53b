"""Reactions to what this app announces: one line each, enqueue a task with ids."""

from typing import Any

from django.dispatch import receiver

from evaluations import tasks
from evaluations.signals import refresh_wanted


@receiver(refresh_wanted)
def refresh_when_asked(*, source_id: int, **_: Any) -> None:
    tasks.refresh_source.delay(source_id)
