"""Refreshing a source: what lies at its address is fetched, imported whole or not at all, and the run of it kept with its cause.

A run is carried out by whoever holds the source's lock, which goes with the worker that held it: so a run that is still open for
the next one is that of a worker who is gone. Nothing of it was half done: what was fetched is imported, and the run ended, in one
transaction.

That a source says "not modified" (304), or sends the same bytes again, confirms that it still publishes what it did. It says nothing of
when that was measured, so no evidence gets younger by it: its age is counted from the end of its run, or from its publication. The
schedule keeps when the source last confirmed (`succeeded_at`), by which a dead one is noticed.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction

from evaluations.importers.profiles import load_profile
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor, ActorKind, from_reference, system_job
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service, service_transaction
from evaluations.models import Evidence, RefreshRun, Source, SourceSchedule
from evaluations.selectors.refreshing import due_schedules, open_run, schedule_of
from evaluations.services.connectors import gather, key_of
from evaluations.services.evidence import Imported, apply_import_files
from evaluations.services.fetching import UNKNOWN, Fetcher, FetchFailed, Validators
from evaluations.services.gathering import Batch, Gathered
from evaluations.services.import_results import ImportResult, problem_values, result_of
from evaluations.services.pacing import session_lock
from evaluations.signals import refresh_wanted
from evaluations.vocabulary import RefreshCause, RefreshOutcome

logger = logging.getLogger("evaluations.refresh")

JOB = "refresh"
QUEUED_FOR = timedelta(minutes=5)
"""So long nobody is sent to a source again by the clock: the message is on its way."""
FIRST_PAUSE = timedelta(minutes=5)
"""After a run that failed; twice as long after each further one, never longer than the interval."""
POISON = 3
"""After so many runs in a row without success one that lost its worker waits its pause, for its payload may be what ends workers."""
DEFERRING = (RefreshCause.ASKED_TO_WAIT, RefreshCause.HOST_BUSY)
DEFERRED_FOR = timedelta(seconds=10)
MAX_DETAIL = 500


class NotScheduled(DomainError):
    """The source has no schedule, so nobody knows where to ask."""

    code = "not_scheduled"
    kind = ErrorKind.CONFLICT


class RunLost(DomainError):
    """The run was ended by another, who took this one for gone."""

    code = "run_lost"
    kind = ErrorKind.CONFLICT


class Ending(NamedTuple):
    """How a run ended. `wait` is how long the host asks to stay away; without `marks` what was seen before stays as it is."""

    outcome: RefreshOutcome
    cause: RefreshCause
    detail: str = ""
    http_status: int | None = None
    wait: timedelta = timedelta(0)
    result: ImportResult = ImportResult()
    marks: Mapping[str, Any] | None = None
    validators: Validators = UNKNOWN


@service(refused="refresh_run.refused")
def request_refresh(*, actor: Actor, source: Source, forced: bool = False, request_id: str = "") -> RefreshRun:
    """Ask for a source to be refreshed now, and have a worker woken. See `apply_request_refresh`."""
    return apply_request_refresh(actor=actor, source=source, forced=forced, request_id=request_id)


def apply_request_refresh(*, actor: Actor, source: Source, forced: bool = False, request_id: str = "") -> RefreshRun:
    """Ask inside an open service transaction; return the run, which is the open one where there is one. Raises `NotScheduled`."""
    Source.objects.select_for_update().get(pk=source.pk)
    if schedule_of(source.pk) is None:
        raise NotScheduled(f"the source `{source.key}` has no schedule: state from where it is refreshed first")
    run = open_run(source.pk)
    if run is None:
        run = _open(actor, source, RefreshOutcome.QUEUED, forced=forced, request_id=request_id)
    SourceSchedule.objects.filter(source=source).update(queued_until=now() + QUEUED_FOR)
    transaction.on_commit(lambda: refresh_wanted.send_robust(sender=RefreshRun, source_id=source.pk), robust=True)
    return run


def claim_due(*, limit: int, at: datetime | None = None) -> list[int]:
    """Return the sources that are due, by row id, each claimed for a while so that nobody is sent to it twice."""
    moment = at or now()
    with service_transaction("claim_due"):
        rows = list(due_schedules(at=moment).select_for_update(skip_locked=True, of=("self",))[:limit])
        SourceSchedule.objects.filter(pk__in=[row.pk for row in rows]).update(queued_until=moment + QUEUED_FOR)
    return [row.source_id for row in rows]


def refresh_source(
    source_id: int, *, asked_by: Actor | None = None, forced: bool = False, task_id: str = ""
) -> RefreshRun | None:
    """Refresh a source if it is due, asked for, or asked for now by `asked_by`; return the run that ended.

    None where nothing is to be done, or where another worker is at it. Needs to be outside of any transaction.
    """
    with session_lock(f"refresh:{source_id}") as alone:
        if not alone:
            return None
        job = system_job(JOB, on_behalf_of=asked_by, task_id=task_id)
        run = begin_run(actor=job, source_id=source_id, is_asked=asked_by is not None, forced=forced)
        return _carry_out(run, job) if run is not None else None


@service(refused="refresh_run.refused")
def begin_run(*, actor: Actor, source_id: int, is_asked: bool = False, forced: bool = False) -> RefreshRun | None:
    """Begin the run of a source whose lock is held, or say by None that there is none to begin."""
    schedule = schedule_of(source_id)
    if schedule is None:
        return None
    run = open_run(source_id)
    if run is not None and run.outcome == RefreshOutcome.RUNNING:
        gone = Ending(RefreshOutcome.INTERRUPTED, RefreshCause.WORKER_GONE, "the worker that carried it out ended before it did")
        apply_end_run(actor=actor, run=run, schedule=schedule, ending=gone)
        schedule = schedule.reload()
        run = None
        if schedule.failed_runs < POISON:
            is_asked = True
    if run is None:
        due = schedule.paused_at is None and schedule.due_at <= now()
        if not (due or is_asked):
            return None
        run = _open(actor, schedule.source, RefreshOutcome.RUNNING, forced=forced)
    moved_to = {"outcome": RefreshOutcome.RUNNING, "started_at": now()}
    RefreshRun.claim(run.pk, expected={"ended_at": None}, moved_to=moved_to)
    return run.reload()


@service(refused="evidence.refused")
def finish_run(
    *, actor: Actor, run: RefreshRun, schedule: SourceSchedule, gathered: Gathered, counts: Mapping[str, int]
) -> RefreshRun:
    """Import what was gathered, batch by batch, each whole or not at all, and end the run. Raises `RunLost`."""
    imported: list[Imported] = []
    refused: list[Problem] = []
    marks = dict(gathered.marks)
    for batch in gathered.batches:
        try:
            with transaction.atomic():
                imported += _import(actor, schedule, batch, gathered.published_at)
        except InputRefused as refusal:
            refused += refusal.problems
        else:
            marks.update(batch.marks)
    result = result_of(imported)._replace(refused=tuple(refused))
    outcome, cause = _judge(result, gathered)
    detail = str(refused[0])[:MAX_DETAIL] if refused else ""
    ending = Ending(outcome, cause, detail, gathered.http_status, result=result, marks=marks, validators=gathered.validators)
    apply_end_run(actor=actor, run=run, schedule=schedule, ending=ending, counts=counts)
    return run.reload()


@service(refused="refresh_run.refused")
def fail_run(
    *, actor: Actor, run: RefreshRun, schedule: SourceSchedule, failed: FetchFailed, counts: Mapping[str, int]
) -> RefreshRun:
    """End a run that brought nothing in. Raises `RunLost`."""
    outcome = RefreshOutcome.DEFERRED if failed.cause in DEFERRING else RefreshOutcome.FAILED
    ending = Ending(outcome, failed.cause, failed.detail, failed.http_status, failed.wait)
    apply_end_run(actor=actor, run=run, schedule=schedule, ending=ending, counts=counts)
    return run.reload()


def apply_end_run(
    *, actor: Actor, run: RefreshRun, schedule: SourceSchedule, ending: Ending, counts: Mapping[str, int] | None = None
) -> None:
    """End a run and move its source's schedule on, inside an open service transaction. Raises `RunLost`."""
    moment, result = now(), ending.result
    told = {
        "outcome": ending.outcome,
        "cause": ending.cause,
        "detail": ending.detail,
        "documents": list(dict.fromkeys(result.documents)),
        "evidence": result.evidence,
        "taken": result.taken,
        "held": result.held_count,
        "repeated": result.repeated,
        "refused": len(result.refused),
    }
    moved_to = {
        **told,
        **(counts or {}),
        "http_status": ending.http_status,
        "problems": problem_values(result.refused),
        "etag": ending.validators.etag,
        "last_modified": ending.validators.last_modified[:100],
        "ended_at": moment,
    }
    if not RefreshRun.claim(run.pk, expected={"outcome": RefreshOutcome.RUNNING, "ended_at": None}, moved_to=moved_to):
        raise RunLost("the run was ended by another worker")
    recovered = _move_on(schedule, ending, moment)
    new = {"source": schedule.source.key, **told}
    events = [audit.Event(action="refresh_run.ended", actor=actor, target=("refresh_run", str(run.uid)), new=new)]
    if recovered:
        events.append(audit.Event(action="source.recovered", actor=actor, target=("source", schedule.source.key)))
    audit.record(*events)


def _open(actor: Actor, source: Source, outcome: RefreshOutcome, *, forced: bool, request_id: str = "") -> RefreshRun:
    asked_by = actor.asked_by or actor
    run = RefreshRun(source=source, asked_by=asked_by.reference, forced=forced, outcome=outcome)
    run.save()
    new = {"source": source.key, "forced": forced}
    target = ("refresh_run", str(run.uid))
    audit.record(audit.Event(action="refresh_run.opened", actor=actor, target=target, new=new, request_id=request_id))
    return run


def _carry_out(run: RefreshRun, job: Actor) -> RefreshRun:
    schedule = SourceSchedule.objects.select_related("source").get(source=run.source_id)
    with Fetcher() as fetcher:
        try:
            fetcher.key = key_of(schedule)
            gathered = gather(schedule, fetcher, forced=run.forced)
            return finish_run(actor=job, run=run, schedule=schedule, gathered=gathered, counts=fetcher.counts())
        except FetchFailed as failed:
            return fail_run(actor=job, run=run, schedule=schedule, failed=failed, counts=fetcher.counts())
        except RunLost:
            return run.reload()
        except Exception as error:
            logger.exception("the refresh of %s failed", schedule.source.key)
            ours = FetchFailed(RefreshCause.OUR_FAULT, type(error).__name__)
            return fail_run(actor=job, run=run, schedule=schedule, failed=ours, counts=fetcher.counts())


def _import(job: Actor, schedule: SourceSchedule, batch: Batch, published_at: datetime | None) -> list[Imported]:
    # Who set the schedule vouches for what lies at its address: it is her submission, on which she does not sign.
    voucher = from_reference(schedule.set_by)
    actor = voucher if voucher.kind is ActorKind.SYSTEM_JOB else voucher.for_task(job.task_id)
    imported = apply_import_files(
        actor=actor,
        files=batch.files,
        format_name=schedule.format or None,
        source=schedule.source.key,
        subject=schedule.subject or None,
        published_at=published_at,
        profile=load_profile(schedule.profile) if schedule.profile else None,
        max_bytes=settings.EVIDENCE_MAX_FILE_BYTES,
    )
    for each in imported:
        foreign = Evidence.objects.filter(document=each.document, importer=each.importer).exclude(source=schedule.source).first()
        if foreign is not None:
            message = f"the document speaks for the source `{foreign.source.key}`"
            hint = f"a schedule brings in evidence of its own source alone, `{schedule.source.key}`"
            raise InputRefused([Problem(message, file=each.document.file_name, field="source", code="foreign_source", hint=hint)])
    return imported


def _judge(result: ImportResult, gathered: Gathered) -> tuple[RefreshOutcome, RefreshCause]:
    if result.refused:
        return RefreshOutcome.FAILED, RefreshCause.SHAPE_REFUSED
    if result.evidence:
        return RefreshOutcome.TAKEN, RefreshCause.NEW_EVIDENCE
    return RefreshOutcome.UNCHANGED, gathered.cause


def _move_on(schedule: SourceSchedule, ending: Ending, moment: datetime) -> bool:
    """Note how it went and when it is due again; return whether a source that was alarmed of is well again."""
    interval = timedelta(minutes=schedule.interval_minutes)
    rows = SourceSchedule.objects.filter(pk=schedule.pk)
    if ending.marks is not None:
        # Of the address that was asked: not of one that was stated meanwhile.
        rows.filter(set_at=schedule.set_at).update(marks=ending.marks)
    if ending.outcome in (RefreshOutcome.TAKEN, RefreshOutcome.UNCHANGED):
        rows.update(due_at=moment + interval, queued_until=None, failed_runs=0, succeeded_at=moment, alarmed_at=None)
        return schedule.alarmed_at is not None
    if ending.outcome == RefreshOutcome.DEFERRED:
        rows.update(due_at=moment + max(ending.wait, DEFERRED_FOR), queued_until=None)
        return False
    failures = schedule.failed_runs + 1
    pause = min(interval, FIRST_PAUSE * 2 ** min(failures - 1, 10))
    rows.update(due_at=moment + pause, queued_until=None, failed_runs=failures)
    return False
