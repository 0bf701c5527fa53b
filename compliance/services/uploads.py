"""Evidence files handed in: received on disk while they are counted and digested, then read by the worker, whole or not at all.

A worker that dies leaves no row behind, since a file is read in one transaction; its upload is read again by the next one, and fails
for good when that has happened `MOST_ATTEMPTS` times.
"""

import fcntl
import hashlib
import io
import os
import shutil
import time
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any, BinaryIO, NamedTuple
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection
from django.db.models import F, Sum

from compliance.models import Upload
from compliance.services.idempotency import IdempotencyKeyReused, apply_claim_key, apply_use_key
from compliance.vocabulary import UploadStatus
from evaluations.importers.archives import largest
from evaluations.importers.registry import names
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor, from_value, system_job
from evaluations.kernel.canonical import DIGEST_PREFIX, digest
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, NotFound, Problem
from evaluations.kernel.names import check_key
from evaluations.kernel.services import service
from evaluations.services.evidence import apply_import_files
from evaluations.services.import_results import result_of

JOB = "read-upload"
PART_BYTES = 1024 * 1024
PASSES = 3
"""A file is read to be digested, to be kept, and to be understood."""
MOST_ATTEMPTS = 3
STALLED_AFTER = timedelta(minutes=2)
LEFT_BEHIND = timedelta(days=1)
OPEN = (UploadStatus.QUEUED, UploadStatus.RUNNING)
_REFERENCE = "upload "


class UploadTooLarge(DomainError):
    """The file has more bytes than are taken."""

    code = "too_large"
    kind = ErrorKind.TOO_LARGE


class NoRoom(DomainError):
    """The disk, or what may wait on it, is full."""

    code = "no_room"
    kind = ErrorKind.UNAVAILABLE


class UploadFailed(DomainError):
    """An upload could not be read, for a reason that lies with us."""

    code = "upload_failed"
    kind = ErrorKind.CONFLICT


class Told(NamedTuple):
    """What is said beside the bytes: by the format's name, the source's key, the model's name as written and the date."""

    file_name: str = ""
    format_name: str = ""
    source: str = ""
    subject: str = ""
    published_at: datetime | None = None


def receive_upload(
    *, actor: Actor, stream: BinaryIO, length: int, told: Told, idempotency_key: str | None = None, request_id: str = ""
) -> Upload:
    """Write a stream of `length` bytes to disk and record it as an upload; what every door calls. Reading it is the worker's part.

    With a key, the same file again returns the first upload. Raises `UploadTooLarge`, `NoRoom`, `InputRefused` for a body that is
    shorter or too slow, and `IdempotencyKeyReused` for another file under a used key. Whatever is refused leaves no file behind.
    """
    _check_told(told)
    directory = _directory()
    _check_room(directory, length)
    uid = uuid4()
    path = directory / str(uid)
    kept = False
    try:
        own = _write(stream, path, length)
        upload = _record_upload(
            actor=actor,
            uid=uid,
            file_digest=own,
            length=length,
            told=told,
            idempotency_key=idempotency_key,
            request_id=request_id,
        )
        kept = upload.uid == uid
    finally:
        if not kept:
            path.unlink(missing_ok=True)
    return upload


def read_upload(uid: UUID | str, *, task_id: str = "") -> Upload:
    """Read an upload to its end; returns it as it then stands. Safe to call again, from anywhere, at any time.

    Only one caller reads a file at a time; another one returns at once. Raises `UploadFailed` where the file is gone or cannot be read.
    """
    upload = Upload.objects.filter(uid=uid).first()
    if upload is None:
        raise NotFound(f"there is no upload {uid}")
    if upload.status not in OPEN:
        return upload
    job = _job(upload, task_id)
    try:
        # The lock is on a handle of its own: whoever reads the file may close his before what he read is committed.
        with _path(upload).open("rb") as lock:
            if not _own(lock):
                return upload.reload()
            if _begin_reading(actor=job, upload=upload):
                raw = _Counted(_path(upload))
                with io.BufferedReader(raw, PART_BYTES) as stream, closing(_Ticker(upload, raw)):
                    _take_upload(actor=from_value(upload.submitted_as).for_task(task_id), upload=upload, stream=stream)
    except InputRefused as refusal:
        _end_refused(actor=job, upload=upload, refusal=refusal)
    except DomainError as refusal:
        _end_refused(actor=job, upload=upload, refusal=InputRefused([Problem(refusal.detail, code=refusal.code)]))
    except OSError as error:
        _fail(job, upload, f"the file that was handed in cannot be read: {error.strerror or type(error).__name__}")
        raise UploadFailed(f"the upload was not read: {error.strerror}") from error
    _path(upload).unlink(missing_ok=True)
    return upload.reload()


def give_up_upload(uid: UUID | str, *, reason: str, task_id: str = "") -> None:
    """End an upload that took too long, or broke what reads it."""
    upload = Upload.objects.filter(uid=uid).first()
    if upload is not None:
        _fail(_job(upload, task_id), upload, reason)


def stalled_uploads() -> list[UUID]:
    """Return the open uploads that nobody works on, and take files away that belong to none: their message or worker was lost."""
    limit = now() - STALLED_AFTER
    stalled = Upload.objects.filter(status__in=OPEN, touched_at__lt=limit).order_by("id")
    found = list(stalled.values_list("uid", flat=True))
    waiting = {str(uid) for uid in Upload.objects.filter(status__in=OPEN).values_list("uid", flat=True)}
    oldest = time.time() - LEFT_BEHIND.total_seconds()
    for path in _directory().iterdir():
        with suppress(OSError):
            if path.name not in waiting and path.stat().st_mtime < oldest:
                path.unlink()
    return found


@service(refused="upload.refused")
def _record_upload(
    *, actor: Actor, uid: UUID, file_digest: str, length: int, told: Told, idempotency_key: str | None, request_id: str
) -> Upload:
    about = {**told._asdict(), "file": file_digest, "published_at": str(told.published_at or "")}
    claim = {"caller": actor.reference, "key": idempotency_key or "", "request_digest": digest(about)}
    if idempotency_key is not None:
        known = apply_claim_key(**claim)
        if known is not None:
            if not known.startswith(_REFERENCE):
                raise IdempotencyKeyReused("this Idempotency-Key was used for something else; take a new key")
            return Upload.objects.get(uid=known.removeprefix(_REFERENCE))
    upload = Upload(
        uid=uid,
        file_name=safe_name(told.file_name),
        file_digest=file_digest,
        file_bytes=length,
        format_name=told.format_name,
        source=told.source,
        subject=told.subject,
        published_at=told.published_at,
        submitted_by=actor.reference,
        submitted_as=actor.as_value(),
    )
    upload.save()
    if idempotency_key is not None:
        apply_use_key(**claim, reference=f"{_REFERENCE}{uid}")
    audit.record(
        audit.Event(
            action="upload.received",
            actor=actor,
            target=("upload", str(uid)),
            new={"file_name": upload.file_name, "bytes": length, "format": told.format_name, "source": told.source},
            digests={"file": file_digest},
            request_id=request_id,
        )
    )
    return upload


@service(refused="upload.refused")
def _begin_reading(*, actor: Actor, upload: Upload) -> bool:
    """Take an open upload in hand; False where it has ended meanwhile, and where it was lost too often: then it ends here."""
    attempts = upload.reload().attempts + 1
    if upload.status not in OPEN:
        return False
    if attempts > MOST_ATTEMPTS:
        _apply_end(
            actor, upload, UploadStatus.FAILED, failure=f"the worker was lost {MOST_ATTEMPTS} times while it read the file"
        )
        return False
    Upload.objects.filter(pk=upload.pk, status__in=OPEN).update(
        status=UploadStatus.RUNNING, attempts=attempts, bytes_read=0, touched_at=now()
    )
    return True


@service(refused="upload.progress_refused")
def _note_progress(*, actor: Actor, upload: Upload, count: int) -> None:
    Upload.objects.filter(pk=upload.pk, status=UploadStatus.RUNNING).update(bytes_read=count, touched_at=now())


@service(refused="evidence.refused")
def _take_upload(*, actor: Actor, upload: Upload, stream: BinaryIO) -> None:
    """Import the file and end the upload in one transaction: what is taken and that it is done stand together."""
    (imported,) = apply_import_files(
        actor=actor,
        files={upload.file_name: stream},
        format_name=upload.format_name or None,
        source=upload.source or None,
        subject=upload.subject or None,
        published_at=upload.published_at,
        max_bytes=settings.UPLOAD_MAX_BYTES,
    )
    result = result_of([imported])
    _apply_end(
        actor,
        upload,
        UploadStatus.DONE,
        document=imported.document,
        importer=imported.importer,
        evidence=result.evidence,
        taken=result.taken,
        repeated=result.repeated,
        held=dict(result.held),
    )


@service(refused="upload.refused")
def _end_refused(*, actor: Actor, upload: Upload, refusal: InputRefused) -> None:
    problems = [problem._asdict() for problem in refusal.problems]
    _apply_end(actor, upload, UploadStatus.REFUSED, refused=problems, failure=str(refusal)[:500])


@service(refused="upload.refused")
def _end_failed(*, actor: Actor, upload: Upload, reason: str) -> None:
    _apply_end(actor, upload, UploadStatus.FAILED, failure=reason[:500])


def _apply_end(actor: Actor, upload: Upload, status: UploadStatus, **found: Any) -> None:
    """End an open upload inside an open service transaction; nothing where it has ended before."""
    moved = Upload.objects.filter(pk=upload.pk, status__in=OPEN).update(
        status=status, ended_at=now(), touched_at=now(), bytes_read=F("file_bytes") * PASSES, **found
    )
    if moved != 1:
        if status == UploadStatus.DONE:
            raise UploadFailed("it was ended meanwhile")
        return
    new = {"evidence": found.get("evidence", 0), "observations": found.get("taken", 0), "held": len(found.get("held", ()))}
    why = {"reason": found["failure"], "problems": len(found.get("refused", ()))} if found.get("failure") else {}
    audit.record(
        audit.Event(action=f"upload.{_ENDS[status]}", actor=actor, target=("upload", str(upload.uid)), new={**new, **why})
    )


_ENDS = {UploadStatus.DONE: "completed", UploadStatus.REFUSED: "refused", UploadStatus.FAILED: "failed"}


class _Counted(io.FileIO):
    """A file that counts what is read of it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self.count = 0

    def readinto(self, buffer: Any) -> int:
        size = super().readinto(buffer) or 0
        self.count += size
        return size


class _Ticker:
    """Says once a second how far a file is read, over a connection of its own: the one that reads it commits at the end alone."""

    def __init__(self, upload: Upload, raw: _Counted) -> None:
        self._upload, self._raw = upload, raw
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._over.wait(1):
                _note_progress(actor=system_job(JOB), upload=self._upload, count=self._raw.count)
        finally:
            connection.close()


def safe_name(given: str) -> str:
    """Return a file's own name: no folder, nothing that cannot be shown, at most 200 characters."""
    name = given.replace("\\", "/").rpartition("/")[2]
    kept = "".join(letter for letter in name if letter.isascii() and letter.isprintable()).strip(" .")
    return kept[-200:] or "upload"


def _write(stream: BinaryIO, path: Path, length: int) -> str:
    """Write exactly `length` bytes of a stream, and return their digest."""
    until = time.monotonic() + settings.UPLOAD_SECONDS
    hasher, left = hashlib.sha256(), length
    with path.open("xb") as file:
        os.fchmod(file.fileno(), 0o640)
        while left > 0:
            part = stream.read(min(PART_BYTES, left))
            if left == length:
                # What no importer would read is refused by its first bytes, not after it has come and waited to be read.
                _check_size(length, largest(part, settings.UPLOAD_MAX_BYTES))
            if not part:
                raise InputRefused(
                    [Problem(f"the body ended after {length - left} of {length} bytes", code="cut_off", hint="send it again")]
                )
            if time.monotonic() > until:
                raise InputRefused([Problem(f"it took longer than {settings.UPLOAD_SECONDS} seconds", code="too_slow")])
            file.write(part)
            hasher.update(part)
            left -= len(part)
        file.flush()
        os.fsync(file.fileno())
    return DIGEST_PREFIX + hasher.hexdigest()


def _check_told(told: Told) -> None:
    if told.format_name and told.format_name not in names():
        hint = f"known: {', '.join(names())}"
        raise InputRefused([Problem(f"unknown format `{told.format_name}`", field="format", code="unknown_format", hint=hint)])
    if told.source:
        check_key(told.source, field="source")


def _check_room(directory: Path, length: int) -> None:
    if length <= 0:
        raise InputRefused([Problem("the file is empty", code="empty")])
    _check_size(length, settings.UPLOAD_MAX_BYTES)
    waiting = Upload.objects.filter(status__in=OPEN).aggregate(bytes=Sum("file_bytes"))["bytes"] or 0
    if waiting + length > settings.UPLOAD_QUOTA_BYTES:
        raise NoRoom("too much waits to be read: send it later")
    if shutil.disk_usage(directory).free < length + settings.UPLOAD_FREE_BYTES:
        raise NoRoom("there is no room for it on the disk now")


def _check_size(length: int, limit: int) -> None:
    if length > limit:
        beyond = "" if limit == settings.UPLOAD_MAX_BYTES else ", the most of any file that is no zip archive"
        raise UploadTooLarge(f"the file is larger than {limit // 1024**2} MiB{beyond}: split it")


def _directory() -> Path:
    directory = Path(settings.UPLOAD_DIR)
    directory.mkdir(parents=True, exist_ok=True, mode=0o750)
    return directory


def _path(upload: Upload) -> Path:
    return _directory() / str(upload.uid)


def _own(lock: BinaryIO) -> bool:
    """Lock the file; False where another works on it. The kernel drops the lock of whoever dies."""
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _fail(actor: Actor, upload: Upload, reason: str) -> None:
    _end_failed(actor=actor, upload=upload, reason=reason)
    _path(upload).unlink(missing_ok=True)


def _job(upload: Upload, task_id: str) -> Actor:
    return system_job(JOB, on_behalf_of=from_value(upload.submitted_as), task_id=task_id)
