"""Evidence files handed in: received on disk, read by the worker."""

import uuid

from django.db import models

from compliance.vocabulary import UploadStatus
from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, choice_constraint
from evaluations.kernel.models import State
from evaluations.models import Document


class Upload(State):
    """State. One file handed in: what was sent, how far it is read, and what became of its rows.

    Its bytes lie in the upload directory under `uid` until it has ended. `bytes_read` counts over all passes. `held` are
    observations by name as written, and `refused` problems as the errors of the API list them; an upload is taken whole or not at
    all. `submitted_as` is the actor who handed it in.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    status = models.CharField(max_length=10, choices=UploadStatus.choices, default=UploadStatus.QUEUED)
    file_name = models.CharField(max_length=200)
    file_digest = DigestField()
    file_bytes = models.BigIntegerField()
    format_name = models.CharField(max_length=60, blank=True)
    source = models.CharField(max_length=120, blank=True)
    subject = models.CharField(max_length=300, blank=True)
    published_at = models.DateTimeField(null=True, blank=True)
    submitted_by = models.CharField(max_length=200)
    submitted_as = models.JSONField()
    received_at = models.DateTimeField(default=now)
    attempts = models.PositiveSmallIntegerField(default=0)
    touched_at = models.DateTimeField(default=now)
    ended_at = models.DateTimeField(null=True, blank=True)
    bytes_read = models.BigIntegerField(default=0)
    document = models.ForeignKey(Document, on_delete=models.PROTECT, null=True, blank=True, related_name="uploads")
    importer = models.CharField(max_length=60, blank=True)
    evidence = models.PositiveIntegerField(default=0)
    taken = models.PositiveBigIntegerField(default=0)
    repeated = models.PositiveIntegerField(default=0)
    held = models.JSONField(default=dict, blank=True)
    refused = models.JSONField(default=list, blank=True)
    failure = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [choice_constraint("status", UploadStatus, "upload_status_is_known")]
        indexes = [models.Index(fields=["received_at"], name="upload_open", condition=models.Q(status__in=["queued", "running"]))]

    def __str__(self) -> str:
        return self.file_name
