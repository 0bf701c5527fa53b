"""Exports of the trail as jobs: asked for, written in slices that can be interrupted, whole or not there at all.

What the ledger says of an export is that it was asked for, and that it ended; its progress is bookkeeping on the way.
"""

import fcntl
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from django.conf import settings

from compliance.ledger.exporter import Exporter, ExportOrder, filter_value
from compliance.ledger.stored import LedgerDamaged
from compliance.models import AuditExport
from compliance.selectors.ledger import EVERYTHING, EntryFilter, checkpoint_covering, count_filtered, leaf_count
from compliance.services.sealing import seal
from compliance.vocabulary import ExportFormat, ExportStatus
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor, ActorKind, system_job
from evaluations.kernel.canonical import DIGEST_PREFIX
from evaluations.kernel.clock import now, parse_instant
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, NotFound, Problem
from evaluations.kernel.services import service

JOB = "export-audit"
SLICE_SECONDS = 20.0
STALLED_AFTER = timedelta(minutes=2)
_OPEN = (ExportStatus.QUEUED, ExportStatus.RUNNING)


class ExportFailed(DomainError):
    """An export ended without its file."""

    code = "audit_export_failed"
    kind = ErrorKind.CONFLICT


@service(refused="audit_export.refused")
def request_export(
    *,
    actor: Actor,
    format: str = ExportFormat.JSONL,  # noqa: A002  (the word of the command and of the API)
    wanted: EntryFilter = EVERYTHING,
    to_index: int | None = None,
    path: Path | None = None,
    with_names: bool = True,
    consistent_with: Sequence[int] = (),
    request_id: str = "",
) -> AuditExport:
    """Record an order in a transaction of its own; see `apply_request_export`."""
    return apply_request_export(
        actor=actor,
        format=format,
        wanted=wanted,
        to_index=to_index,
        path=path,
        with_names=with_names,
        consistent_with=consistent_with,
        request_id=request_id,
    )


def apply_request_export(
    *,
    actor: Actor,
    format: str = ExportFormat.JSONL,  # noqa: A002  (the word of the command and of the API)
    wanted: EntryFilter = EVERYTHING,
    to_index: int | None = None,
    path: Path | None = None,
    with_names: bool = True,
    consistent_with: Sequence[int] = (),
    request_id: str = "",
) -> AuditExport:
    """Record, inside an open service transaction, an order for the entries from 0 to `to_index` that match `wanted`.

    Without `to_index`, to the last one that is sealed now: that is before the order's own entry, so the same range asked for
    twice is the same file. `path` is where the file shall lie, by default in the export directory. Seal before. Raises
    `InputRefused`.
    """
    sealed = leaf_count()
    end = sealed - 1 if to_index is None else to_index
    checkpoint = checkpoint_covering(end) if end >= 0 else None
    problems = []
    if checkpoint is None:
        known = f"0 to {sealed - 1} are sealed" if sealed else "nothing is sealed yet"
        problems.append(Problem(f"`{end}` is not in the log", field="to_index", hint=known))
    if format not in ExportFormat.values:
        problems.append(Problem(f"`{format}` is no format", field="format", hint=f"known: {', '.join(ExportFormat.values)}"))
    if checkpoint is not None and any(not 0 < size <= checkpoint.size for size in consistent_with):
        problems.append(Problem(f"sizes go from 1 to {checkpoint.size}", field="consistent_with"))
    if wanted.target and (not wanted.target.partition(":")[0]):
        problems.append(Problem(f"`{wanted.target}` has no kind", field="target", hint="write kind:id, or a kind alone"))
    if wanted.actor and not wanted.actor.partition(":")[2]:
        problems.append(Problem(f"`{wanted.actor}` is no actor", field="actor", hint="write kind:id, such as person:…"))
    if problems or checkpoint is None:
        raise InputRefused(problems)
    job = AuditExport(
        format=format,
        filters=filter_value(wanted),
        with_names=with_names,
        consistent_with=sorted(set(consistent_with)),
        to_index=end,
        checkpoint=checkpoint,
        requested_by=actor.reference,
        total=_total(wanted, end, with_csv=format == ExportFormat.CSV),
    )
    job.path = str((path or Path(settings.AUDIT_EXPORT_DIR) / f"{job.uid}.zip").absolute())
    job.save()
    audit.record(
        audit.Event(
            action="audit_export.requested",
            actor=actor,
            target=("audit_export", str(job.uid)),
            new={
                "checkpoint_size": checkpoint.size,
                "filters": job.filters,
                "format": format,
                "to_index": end,
                "with_names": with_names,
            },
            request_id=request_id,
        )
    )
    return job


def start_export(*, actor: Actor, **order: object) -> AuditExport:
    """Seal what waits, and record the order: what every door calls. Arguments and errors are those of `request_export`."""
    seal()
    return request_export(actor=actor, **order)  # type: ignore[arg-type]


def advance_export(uid: UUID | str, *, seconds: float = SLICE_SECONDS, task_id: str = "") -> AuditExport:
    """Work on an export for about `seconds`; returns the job as it then stands. Safe to call again, from anywhere, at any time.

    Only one caller works on a file at a time; another one returns at once. A failure ends the job, takes its draft away, and
    raises `ExportFailed`.
    """
    job = AuditExport.objects.select_related("checkpoint").filter(uid=uid).first()
    if job is None:
        raise NotFound(f"there is no export {uid}")
    if job.status not in _OPEN:
        return job
    draft = draft_of(job)
    try:
        draft.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("ab"), draft.open("r+b") as stream:
            if not _own(stream, draft):
                return job
            _work(job.reload(), stream, draft, seconds=seconds, task_id=task_id)
    except (LedgerDamaged, OSError) as error:
        # Not a name of ours goes into the file system's message but the path, which the job shows anyway.
        reason = str(error) if isinstance(error, LedgerDamaged) else f"{error.strerror or error}: {draft.parent}"
        _end_failed(actor=_actor(job, task_id), job=job, reason=reason)
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise ExportFailed(f"the export was not made: {reason}") from error
    return job.reload()


def stalled_exports() -> list[UUID]:
    """Return the exports that are open though nothing has moved in them for `STALLED_AFTER`: their file tells when it last grew."""
    stalled = []
    limit = now() - STALLED_AFTER
    for job in AuditExport.objects.filter(status__in=_OPEN, requested_at__lt=limit):
        try:
            touched = datetime.fromtimestamp(draft_of(job).stat().st_mtime, tz=UTC)
        except OSError:
            touched = job.requested_at
        if touched < limit:
            stalled.append(job.uid)
    return stalled


def abandon_export(*, actor: Actor, job: AuditExport) -> None:
    """End an export that nobody waits for any more, and take its draft away."""
    _end_failed(actor=actor, job=job, reason="abandoned")
    draft_of(job).unlink(missing_ok=True)


def draft_of(job: AuditExport) -> Path:
    """Return where an export's file is written before it is whole: beside its place, so that renaming it is one step."""
    path = Path(job.path)
    return path.with_name(f".{path.name}.{job.uid}.part")


def _own(stream: BinaryIO, draft: Path) -> bool:
    """Lock the draft; False where another works on it, or has just finished. The kernel drops the lock of whoever dies."""
    with suppress(BlockingIOError):
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return draft.exists()
    return False


def _work(job: AuditExport, stream: BinaryIO, draft: Path, *, seconds: float, task_id: str) -> None:
    if job.status not in _OPEN:
        draft.unlink(missing_ok=True)
        return
    until = time.monotonic() + seconds
    resume = job.resume or None
    if resume and draft.stat().st_size < resume["archive"]["end"]:
        # The draft is gone or cut off, as after a crash of the machine: from the start.
        resume = None
    exporter = Exporter(_order(job), stream, resume)
    more = True
    while more:
        more = exporter.step()
        if more and time.monotonic() >= until:
            stream.flush()
            _note_progress(actor=_actor(job, task_id), job=job, exporter=exporter)
            return
    stream.flush()
    stream.seek(0)
    digest = sha256()
    while data := stream.read(1 << 20):
        digest.update(data)
    size = stream.tell()
    if job.reload().status not in _OPEN:
        draft.unlink(missing_ok=True)
        return
    draft.chmod(0o640)
    # The file first: whoever dies between these two lines leaves a job that is done again, to the same bytes.
    draft.replace(job.path)
    _end_done(actor=_actor(job, task_id), job=job, exporter=exporter, digest=DIGEST_PREFIX + digest.hexdigest(), size=size)


@service(refused="audit_export.refused")
def _note_progress(*, actor: Actor, job: AuditExport, exporter: Exporter) -> None:
    AuditExport.objects.filter(pk=job.pk, status__in=_OPEN).update(
        status=ExportStatus.RUNNING, done=exporter.done, resume=exporter.resume
    )


@service(refused="audit_export.refused")
def _end_done(*, actor: Actor, job: AuditExport, exporter: Exporter, digest: str, size: int) -> None:
    moved = AuditExport.objects.filter(pk=job.pk, status__in=_OPEN).update(
        status=ExportStatus.DONE,
        done=exporter.done,
        total=exporter.done,
        resume={},
        entries=exporter.entries,
        file_bytes=size,
        file_digest=digest,
        ended_at=now(),
    )
    if moved != 1:
        raise ExportFailed("it was ended meanwhile")
    audit.record(
        audit.Event(
            action="audit_export.completed",
            actor=actor,
            target=("audit_export", str(job.uid)),
            new={"entries": exporter.entries, "bytes": size},
            digests={"file": digest},
        )
    )


@service(refused="audit_export.refused")
def _end_failed(*, actor: Actor, job: AuditExport, reason: str) -> None:
    moved = AuditExport.objects.filter(pk=job.pk, status__in=_OPEN).update(
        status=ExportStatus.FAILED, resume={}, failure=reason[:500], ended_at=now()
    )
    if moved:
        audit.record(
            audit.Event(
                action="audit_export.failed",
                actor=actor,
                target=("audit_export", str(job.uid)),
                new={"reason": reason[:500]},
            )
        )


def _order(job: AuditExport) -> ExportOrder:
    return ExportOrder(
        to_index=job.to_index,
        checkpoint=job.checkpoint,
        wanted=filter_of(job.filters),
        with_csv=job.format == ExportFormat.CSV,
        with_names=job.with_names,
        consistent_with=tuple(job.consistent_with),
    )


def filter_of(value: dict[str, str]) -> EntryFilter:
    """Return the filter that `filter_value` has written down."""
    return EntryFilter(
        **{word: parse_instant(text, field=word) if word in ("since", "until") else text for word, text in value.items()}  # type: ignore[arg-type]
    )


def _total(wanted: EntryFilter, to_index: int, *, with_csv: bool) -> int:
    entries = to_index + 1 if wanted.is_empty else count_filtered(wanted, end=to_index + 1)
    return entries * (1 + with_csv + (not wanted.is_empty))


def _actor(job: AuditExport, task_id: str) -> Actor:
    kind, _, identity = job.requested_by.partition(":")
    return system_job(JOB, on_behalf_of=Actor(ActorKind(kind), identity), task_id=task_id)
