"""Evidence in: files become documents, evidence and observations, all or nothing; and rulings on evidence."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple
from uuid import UUID

from evaluations.importers import in_toto
from evaluations.importers.archives import largest
from evaluations.importers.base import DocumentDraft, Importer, Profile, too_large
from evaluations.importers.registry import HEAD_BYTES, describe, pick, read_files
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import canonical_bytes
from evaluations.kernel.dsse import Verify
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.services import service
from evaluations.models import Document, Evidence, Ruling
from evaluations.selectors.registry import importer_registry
from evaluations.services.loading import EvidenceLoader
from evaluations.services.sources import apply_capture_document, digest_stream
from evaluations.services.subjects import apply_mark_names_changed
from evaluations.vocabulary import RulingKind

MAX_FILE_NAME = 200
MAX_TITLE, MAX_URL, MAX_LICENCE = 300, 1000, 200
MEDIA_TYPES = {
    ".csv": "text/csv",
    ".eval": "application/zip",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zip": "application/zip",
}


class NoEvidence(InputRefused):
    code = "no_evidence"


class Imported(NamedTuple):
    """What one import recorded; `repeated` counts evidence that was there already, from the same bytes."""

    document: Document
    importer: str
    evidence: int
    observations: int
    repeated: int
    names: tuple[str, ...]


@service(refused="evidence.refused")
def import_files(
    *,
    actor: Actor,
    files: Mapping[str, BinaryIO],
    format_name: str | None = None,
    source: str | None = None,
    subject: str | None = None,
    published_at: datetime | None = None,
    profile: Profile | None = None,
    trusted_keys: Mapping[str, Verify] | None = None,
    max_bytes: int,
    request_id: str = "",
) -> list[Imported]:
    """Import seekable streams, by name: every file, or none. Raises `InputRefused` naming file, line or row, and field.

    Files of a group format are one document set; of any other format each is a document of its own.
    """
    return apply_import_files(
        actor=actor,
        files=files,
        format_name=format_name,
        source=source,
        subject=subject,
        published_at=published_at,
        profile=profile,
        trusted_keys=trusted_keys,
        max_bytes=max_bytes,
        request_id=request_id,
    )


@service(refused="ruling.refused")
def dispute_evidence(*, actor: Actor, evidence: Evidence, reason: str, link: str = "") -> Ruling:
    """Dispute evidence. One person is enough, and it denies at once; dismissing or upholding it takes a quorum."""
    return apply_rule_on_evidence(actor=actor, evidence=evidence, kind=RulingKind.DISPUTED, reason=reason, link=link)


def apply_import_files(
    *,
    actor: Actor,
    files: Mapping[str, BinaryIO],
    format_name: str | None = None,
    source: str | None = None,
    subject: str | None = None,
    published_at: datetime | None = None,
    profile: Profile | None = None,
    trusted_keys: Mapping[str, Verify] | None = None,
    max_bytes: int,
    request_id: str = "",
) -> list[Imported]:
    """Import inside an open service transaction."""
    files, attestations = _apart(files, trusted_keys or {}, format_name)
    importer = _pick_one(files, format_name or (profile.importer if profile is not None else None), max_bytes)
    told = _Told(source, subject, published_at, profile, request_id, attestations)
    if profile is not None:
        # What the numbers mean is part of what was read: its bytes are kept as those of the files are.
        _capture(actor, BytesIO(profile.data), profile.file, DocumentDraft(title=f"profile {profile.name}"), told)
    for name, stream in attestations.envelopes.items():
        stream.seek(0)
        _capture(actor, stream, name, DocumentDraft(title="attestation"), told)
    if importer.GROUP:
        return [_import_group(actor, importer, files, told)]
    return [_import_alone(actor, importer, name, stream, told) for name, stream in files.items()]


def apply_rule_on_evidence(
    *, actor: Actor, evidence: Evidence, kind: str, reason: str, link: str = "", sign_off_request: UUID | None = None
) -> Ruling:
    """Record a ruling inside an open service transaction. Repeating the newest dispute word for word adds no row.

    Whatever is not a dispute names the completed request whose signatures carry it; the database refuses it otherwise.
    """
    if not reason.strip():
        raise InputRefused([Problem("a ruling needs a reason", field="reason")])
    before = evidence.rulings.order_by("-id").first()
    if sign_off_request is None and before is not None and (before.kind, before.reason) == (kind, reason):
        return before
    ruling = Ruling(
        evidence=evidence, kind=kind, reason=reason, link=link, sign_off_request=sign_off_request, ruled_by=actor.reference
    )
    ruling.save()
    audit.record(
        audit.Event(
            action=f"evidence.{kind}",
            actor=actor,
            target=("evidence", str(evidence.uid)),
            old={"ruling": before.kind} if before else None,
            new={"ruling": kind, "reason": reason, "link": link},
            digests={"evidence": evidence.digest},
        )
    )
    apply_mark_names_changed([evidence.subject_as_written], urgent=True)
    return ruling


class _Attestations(NamedTuple):
    """The envelopes among the files, and what attests each other file, by its name; "" where nothing does."""

    envelopes: Mapping[str, BinaryIO]
    by_file: Mapping[str, str]


def _apart(
    files: Mapping[str, BinaryIO], trusted: Mapping[str, Verify], format_name: str | None
) -> tuple[Mapping[str, BinaryIO], _Attestations]:
    """Return the files that hold evidence, and what trusted keys attest of them. An envelope about none of them is refused."""
    envelopes: dict[str, BinaryIO] = {}
    if len(files) > 1 and format_name is None:
        for name, stream in files.items():
            stream.seek(0)
            if in_toto.sniff(stream.read(HEAD_BYTES), name):
                envelopes[name] = stream
            stream.seek(0)
    if not envelopes or len(envelopes) == len(files):
        return files, _Attestations({}, {})
    rest = {name: stream for name, stream in files.items() if name not in envelopes}
    digests = {name: digest_stream(stream)[0].removeprefix("sha256:") for name, stream in rest.items()}
    by_file: dict[str, str] = {}
    for name, stream in envelopes.items():
        data = stream.read(in_toto.MAX_BYTES + 1)
        if len(data) > in_toto.MAX_BYTES:
            raise too_large(name, limit=in_toto.MAX_BYTES)
        for attestation in in_toto.read_attestations(data, name=name, trusted=trusted):
            about = [each for each, digest in digests.items() if digest in attestation.statement.subjects]
            if not about:
                hint = "give the very file that was signed for: its SHA-256 is in the statement"
                raise InputRefused([Problem("it is about none of the files given", file=name, code="other_subject", hint=hint)])
            by_file.update(dict.fromkeys(about, attestation.told))
    return rest, _Attestations(envelopes, by_file)


def _pick_one(files: Mapping[str, BinaryIO], format_name: str | None, max_bytes: int) -> Importer:
    """Return the one importer for all files; a mixture is refused, so that no half is read by the wrong one."""
    chosen: Importer | None = None
    for name, stream in files.items():
        stream.seek(0)
        head = stream.read(HEAD_BYTES)
        limit = largest(head, max_bytes)
        if stream.seek(0, 2) > limit:
            raise too_large(name, limit=limit)
        stream.seek(0)
        importer = pick(format_name, head, name)
        if chosen is not None and importer is not chosen:
            raise InputRefused(
                [Problem(f"is {importer.NAME}, while the file before is {chosen.NAME}", file=name, hint="import them one by one")]
            )
        chosen = importer
    if chosen is None:
        raise InputRefused([Problem("no file was given", field="file")])
    return chosen


class _Told(NamedTuple):
    """What the caller says beside the files."""

    source: str | None
    subject: str | None
    published_at: datetime | None
    profile: Profile | None
    request_id: str
    attestations: _Attestations


def _import_alone(actor: Actor, importer: Importer, name: str, stream: BinaryIO, told: _Told) -> Imported:
    document = _capture(actor, stream, name, describe(importer, stream, name=name), told)
    return _load(actor, importer, {name: stream}, document, told)


def _import_group(actor: Actor, importer: Importer, files: Mapping[str, BinaryIO], told: _Told) -> Imported:
    """Import several files as one set. Its document is a manifest that cites each file's document by digest."""
    if len(files) == 1:
        ((name, stream),) = files.items()
        return _import_alone(actor, importer, name, stream, told)
    members = [
        {"digest": _capture(actor, stream, name, DocumentDraft(), told).digest, "name": _shorten(name)}
        for name, stream in sorted(files.items())
    ]
    manifest = BytesIO(canonical_bytes({"files": members, "kind": "writegate-document-set/1"}))
    document = _capture(actor, manifest, f"{importer.NAME}-set.json", DocumentDraft(), told)
    return _load(actor, importer, files, document, told)


def _capture(actor: Actor, stream: BinaryIO, name: str, about: DocumentDraft, told: _Told) -> Document:
    return apply_capture_document(
        actor=actor,
        stream=stream,
        file_name=_shorten(name),
        media_type=MEDIA_TYPES.get(Path(name).suffix.lower(), "application/octet-stream"),
        title=about.title[:MAX_TITLE],
        url=about.url[:MAX_URL],
        licence=about.licence[:MAX_LICENCE],
        request_id=told.request_id,
    )


def _load(actor: Actor, importer: Importer, files: Mapping[str, BinaryIO], document: Document, told: _Told) -> Imported:
    for stream in files.values():
        stream.seek(0)
    pairs = read_files(
        importer,
        files,
        registry=importer_registry(),
        source=told.source,
        subject=told.subject,
        published_at=told.published_at,
        profile=told.profile,
    )
    # A set is attested where each of its files is.
    attested = [told.attestations.by_file.get(name, "") for name in files]
    loader = EvidenceLoader(
        actor=actor,
        document=document,
        importer=importer,
        request_id=told.request_id,
        attestation=attested[0] if all(attested) else "",
    )
    loaded = loader.load(pairs)
    if not loaded.evidence and not loaded.repeated:
        raise NoEvidence([Problem("holds no observation", file=document.file_name, code="empty")])
    apply_mark_names_changed(loaded.names)
    return Imported(document, importer.NAME, loaded.evidence, loaded.observations, loaded.repeated, tuple(sorted(loaded.names)))


def open_paths(paths: Sequence[Path]) -> Iterator[tuple[str, BinaryIO]]:
    """Open files for import, by name. Raises `InputRefused` for what is no readable file."""
    for path in paths:
        if path.is_dir():
            raise InputRefused([Problem("is a directory", file=str(path), hint="name the files in it")])
        try:
            yield str(path), path.open("rb")
        except OSError as error:
            raise InputRefused([Problem(f"cannot be read: {error.strerror}", file=str(path))]) from error


def _shorten(name: str) -> str:
    return Path(name).name[-MAX_FILE_NAME:] or "document"
