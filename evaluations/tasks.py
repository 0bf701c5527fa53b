"""Celery entry points of the evaluations app: load ids, call one service. Each can run twice without harm."""

from typing import Any

from celery import shared_task

from evaluations.services.refresh import claim_due
from evaluations.services.refresh import refresh_source as refresh_one

DUE_AT_ONCE = 500


@shared_task
def refresh_due() -> int:
    """Find the sources that are due, and send a worker to each. Returns how many; those beyond come with the next run."""
    found = claim_due(limit=DUE_AT_ONCE)
    for source_id in found:
        refresh_source.delay(source_id)
    return len(found)


@shared_task(bind=True)
def refresh_source(self: Any, source_id: int) -> None:
    """Refresh one source, if it is due or asked for and nobody is at it."""
    refresh_one(source_id, task_id=str(self.request.id or ""))
