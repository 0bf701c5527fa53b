"""Sources, the trust in them, and captured documents: every write."""

import hashlib
from collections.abc import Iterator
from typing import Any, BinaryIO
from uuid import UUID

from django.db import connection

from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import DIGEST_PREFIX
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.names import check_key
from evaluations.models import AliasAssignment, Document, Evidence, Source, TrustAssignment
from evaluations.services.benchmarks import apply_hold_registry, cited
from evaluations.services.subjects import apply_mark_changed
from evaluations.vocabulary import TrustTier

PART_BYTES = 1024 * 1024


def apply_register_source(*, actor: Actor, key: str, title: str, publisher: str = "", url: str = "", notes: str = "") -> Source:
    """Register a source inside an open service transaction; a known key returns what is there. It starts without trust."""
    check_key(key, field="source")
    apply_hold_registry()
    source, made = Source.objects.get_or_create(
        key=key, defaults={"title": title, "publisher": publisher, "url": url, "notes": notes}
    )
    if made:
        audit.record(
            audit.Event(action="source.registered", actor=actor, target=("source", key), new={"title": title, "url": url})
        )
    return source


def apply_assign_trust(
    *, actor: Actor, source: Source, tier: str, reason: str, sign_off_request: UUID | None = None
) -> TrustAssignment:
    """Say how far a source is trusted from here on, inside an open service transaction. Stating what already stands adds no row.

    `sign_off_request` is the request whose signatures carry it. Without one the database takes a source's first trust alone, from that
    service which loads what comes with the product.
    """
    apply_hold_registry()
    if tier not in TrustTier.values:
        raise InputRefused([Problem(f"`{tier}` is no trust tier", field="tier", hint=f"one of {', '.join(TrustTier.values)}")])
    before = source.trust_assignments.order_by("-id").first()
    if before is not None and before.tier == tier:
        return before
    assignment = TrustAssignment(
        source=source, tier=tier, reason=reason, assigned_by=actor.reference, sign_off_request=sign_off_request
    )
    assignment.save()
    audit.record(
        audit.Event(
            action="trust.assigned",
            actor=actor,
            target=("source", source.key),
            old={"tier": before.tier} if before else None,
            new={"tier": tier, "reason": reason, "sign_off_request": cited(sign_off_request)},
        )
    )
    names = Evidence.objects.filter(source=source).values("subject_as_written")
    meant = AliasAssignment.objects.filter(name_as_written__in=names, subject_version__isnull=False)
    apply_mark_changed(meant.values_list("subject_version_id", flat=True).distinct())
    return assignment


def read_parts(stream: BinaryIO) -> Iterator[bytes]:
    """Yield a stream in parts of at most one mebibyte."""
    while part := stream.read(PART_BYTES):
        yield part


def digest_stream(stream: BinaryIO) -> tuple[str, int]:
    """Return digest and size of a seekable stream, and rewind it."""
    stream.seek(0)
    hasher, size = hashlib.sha256(), 0
    for part in read_parts(stream):
        hasher.update(part)
        size += len(part)
    stream.seek(0)
    return DIGEST_PREFIX + hasher.hexdigest(), size


def apply_capture_document(
    *, actor: Actor, stream: BinaryIO, file_name: str, media_type: str, request_id: str = "", **about: Any
) -> Document:
    """Keep a stream's bytes inside an open service transaction; the same bytes are kept once, under their first name."""
    digest, size = digest_stream(stream)
    with connection.cursor() as cursor:
        # Two imports of the same bytes at once: the second waits here and then finds them kept.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [digest])
    existing = Document.objects.filter(digest=digest).first()
    if existing is not None:
        return existing
    document = Document(
        digest=digest, size=size, file_name=file_name, media_type=media_type, received_by=actor.reference, **about
    )
    document.save()
    with connection.cursor() as cursor:
        for ordinal, part in enumerate(read_parts(stream)):
            cursor.execute(
                "INSERT INTO evaluations_documentpart (document_id, ordinal, content) VALUES (%s, %s, %s)",
                [document.pk, ordinal, part],
            )
    stream.seek(0)
    audit.record(
        audit.Event(
            action="document.captured",
            actor=actor,
            target=("document", digest),
            new={"file_name": file_name, "size": size, "media_type": media_type},
            digests={"document": digest},
            request_id=request_id,
        )
    )
    return document
