"""Entry points for the worker: load, call one service."""

from datetime import datetime
from typing import Any

from celery import Task, shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings

from compliance.selectors.drift import policies_of
from compliance.selectors.replays import sampled_verdict_ids
from compliance.selectors.reviewing import subject_versions_at, subject_versions_of
from compliance.selectors.routing import ROUTE_CHECK
from compliance.services import delivery, drift, exports, reminders, replays, sealing, silence, sweeping, unreadable, uploads
from compliance.services.beats import record_beat
from compliance.services.routing import reconcile_routes as hold_routes_against_grants
from compliance.vocabulary import ExportStatus
from evaluations.kernel.actor import Actor, from_value, system_job
from evaluations.kernel.clock import now

SEAL_SECONDS = 20.0
REPLAY_SECONDS = 20.0
READ_SECONDS = 30 * 60
"""So long a file may take to be read. Its message comes again meanwhile, and whoever takes it finds the file in hand."""


@shared_task(bind=True)
def beat(self: "Task[Any, None]") -> None:
    """Say that the worker runs, and that the scheduler ran when it sent this (the message carries that instant)."""
    record_beat(name="worker", beat_at=now())
    sent_at = (self.request.headers or {}).get("sent_at")
    if sent_at:
        record_beat(name="scheduler", beat_at=datetime.fromisoformat(sent_at))


@shared_task
def seal() -> int:
    """Give waiting entries their index; leaves at once where another sealer works."""
    return sealing.seal(wait=False, seconds=SEAL_SECONDS).entries


@shared_task(bind=True)
def ledger_beat(self: "Task[Any, None]") -> None:
    """Append the log's hourly sign of life, and seal it: so silence shows."""
    sealing.record_ledger_beat(actor=system_job("ledger-beat", task_id=str(self.request.id or "")))
    sealing.seal(seconds=SEAL_SECONDS)


@shared_task
def resume_audit_exports() -> int:
    """Ask again for exports that nobody has worked on for a while: a message was lost, or a worker died. Returns how many."""
    waiting = exports.stalled_exports()
    for uid in waiting:
        advance_audit_export.delay(str(uid))
    return len(waiting)


@shared_task(bind=True)
def advance_audit_export(self: "Task[Any, None]", uid: str) -> None:
    """Work on an export for one slice, and ask for the next one while it is not whole."""
    job = exports.advance_export(uid, task_id=str(self.request.id or ""))
    if job.status in (ExportStatus.QUEUED, ExportStatus.RUNNING):
        advance_audit_export.apply_async((uid,), countdown=1)


@shared_task(bind=True, soft_time_limit=READ_SECONDS, time_limit=READ_SECONDS + 60)
def read_upload(self: "Task[Any, None]", uid: str) -> None:
    """Read an evidence file that was handed in, whole or not at all."""
    task_id = str(self.request.id or "")
    try:
        uploads.read_upload(uid, task_id=task_id)
    except SoftTimeLimitExceeded:
        uploads.give_up_upload(uid, reason=f"it took longer than {READ_SECONDS // 60} minutes to read: split it", task_id=task_id)


@shared_task
def resume_uploads() -> int:
    """Ask again for uploads that nobody reads: a message was lost, or a worker died. Returns how many."""
    waiting = uploads.stalled_uploads()
    for uid in waiting:
        read_upload.delay(str(uid))
    return len(waiting)


@shared_task(bind=True)
def deliver_notices(self: "Task[Any, None]") -> None:
    """Send the notices that are due, for a while; ask for another run where more are left."""
    if delivery.deliver_due(task_id=str(self.request.id or "")).more:
        deliver_notices.delay()


@shared_task(bind=True)
def sweep_grants(self: "Task[Any, dict[str, int]]") -> dict[str, int]:
    """Write down what the clock has decided about grants and requests, and begin those whose start has come."""
    return sweeping.sweep(task_id=str(self.request.id or ""))._asdict()


@shared_task(bind=True)
def watch_sources(self: "Task[Any, int]") -> int:
    """Tell evidence stewards of sources that have fallen silent. Returns of how many."""
    return silence.watch_sources(task_id=str(self.request.id or ""))


@shared_task(bind=True)
def watch_policies(self: "Task[Any, int]") -> int:
    """Note policies in force whose texts cannot be read, and tell of them. Returns how many are new."""
    return unreadable.watch_policies(task_id=str(self.request.id or ""))


@shared_task(bind=True)
def send_reminders(self: "Task[Any, int]") -> int:
    """Remind of what comes upon grants in 14, 7 and 1 days, and of reviews that are due. Returns how many messages are new."""
    return reminders.send_reminders(task_id=str(self.request.id or ""))


@shared_task(bind=True)
def review_grants(
    self: Any,
    subject_version_ids: list[int],
    on_behalf_of: dict[str, Any] | None = None,
    policy_ids: list[int] | None = None,
    after: int = 0,
) -> dict[str, int]:
    """Review the standing grants of these subject versions, one slice now and the next by a message of its own, and refresh the open
    requests about them and about these policies."""
    if not after:
        refresh_requests.delay(subject_version_ids, policy_ids or [], on_behalf_of)
    done, last = drift.review_slice(actor=_drift_check(self, on_behalf_of), subject_version_ids=subject_version_ids, after=after)
    if last is not None:
        review_grants.delay(subject_version_ids, on_behalf_of, policy_ids, last)
    return done._asdict()


@shared_task
def review_after_verdicts(
    subject_version_ids: list[int], verdict_uids: list[str], on_behalf_of: dict[str, Any] | None = None
) -> None:
    """Have the grants of these subject versions reviewed after new verdicts, and the open requests that rest on them refreshed."""
    review_grants.delay(subject_version_ids, on_behalf_of, policies_of(verdict_uids))


@shared_task
def review_grants_of_subject(subject_id: int) -> None:
    """Have the grants of every version of a subject reviewed: another one of them runs now."""
    review_grants.delay(subject_versions_of(subject_id))


@shared_task
def review_grants_at_system(system_id: int) -> None:
    """Have the grants that reach a system reviewed: what policies read of it has changed."""
    review_grants.delay(subject_versions_at(system_id))


@shared_task(bind=True)
def review_due_grants(self: Any, after: int = 0) -> dict[str, int]:
    """Find by query what a lost message or the clock left unreviewed: one slice now, the next by a message of its own."""
    done, last = drift.review_due_grants(actor=_drift_check(self), after=after)
    if last is not None:
        review_due_grants.delay(last)
    return done._asdict()


@shared_task(bind=True)
def reconcile_routes(self: Any) -> int:
    """Hold what gateways serve against what is cleared now. Returns of how many paths people were told."""
    return hold_routes_against_grants(actor=system_job(ROUTE_CHECK, task_id=str(self.request.id or ""))).told


@shared_task(bind=True)
def refresh_requests(
    self: Any,
    subject_version_ids: list[int],
    policy_ids: list[int],
    on_behalf_of: dict[str, Any] | None = None,
    after: int = 0,
) -> int:
    """Refresh the open dossiers about these subject versions and policies: one slice now, the next by a message of its own."""
    done = drift.refresh_requests(
        actor=_drift_check(self, on_behalf_of), subject_version_ids=subject_version_ids, policy_ids=policy_ids, after=after
    )
    if done.last is not None:
        refresh_requests.delay(subject_version_ids, policy_ids, on_behalf_of, done.last)
    return done.done


@shared_task(bind=True)
def replay_verdicts(self: Any, verdict_ids: list[int] | None = None) -> int:
    """Judge a sample of verdicts once more: one slice now, the next by a message of its own. Returns how many are left.

    The message names what is left, so that another worker goes on where one died.
    """
    wanted = sampled_verdict_ids(settings.REPLAY_SAMPLE, at=now()) if verdict_ids is None else verdict_ids
    actor = system_job("replay-verdicts", task_id=str(self.request.id or ""))
    left = replays.replay_slice(actor=actor, verdict_ids=wanted, seconds=REPLAY_SECONDS)
    if left:
        replay_verdicts.delay(left)
    else:
        record_beat(name="verdict-replay", beat_at=now())
    return len(left)


def _drift_check(task: Any, on_behalf_of: dict[str, Any] | None = None) -> Actor:
    behalf = from_value(on_behalf_of) if on_behalf_of else None
    return system_job("drift-check", on_behalf_of=behalf, task_id=str(task.request.id or ""))
