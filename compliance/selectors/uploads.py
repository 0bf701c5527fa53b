"""Uploads as doors list them."""

import uuid

from django.db.models import QuerySet

from compliance.models import Upload


def find_uploads(*, status: str | None = None, digest: str | None = None) -> QuerySet[Upload]:
    """Return uploads, unordered, each with its document."""
    given = {"status": status, "file_digest": digest}
    return Upload.objects.select_related("document").filter(**{name: value for name, value in given.items() if value is not None})


def was_handed_in_by(reference: str, *, uid: uuid.UUID) -> bool:
    """Return whether this upload was handed in by the actor with this reference."""
    return Upload.objects.filter(uid=uid, submitted_by=reference).exists()


def get_upload(*, uid: uuid.UUID) -> Upload | None:
    return find_uploads().filter(uid=uid).first()
