"""Exports of the audit trail, as jobs."""

import uuid

from django.db import models

from compliance.vocabulary import ExportFormat, ExportStatus
from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, choice_constraint
from evaluations.kernel.models import State


class AuditExport(State):
    """State. One export: what was asked for, how far it is, and where its file lies once it is whole.

    It covers the entries from index 0 to `to_index`, under the first stored checkpoint that covers them. `done` and `total` count
    entries read, over all passes. `resume` is what a worker needs to go on where another stopped.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    status = models.CharField(max_length=10, choices=ExportStatus.choices, default=ExportStatus.QUEUED)
    format = models.CharField(max_length=8, choices=ExportFormat.choices)
    filters = models.JSONField(default=dict, blank=True)
    with_names = models.BooleanField(default=True)
    consistent_with = models.JSONField(default=list, blank=True)
    to_index = models.BigIntegerField()
    checkpoint = models.ForeignKey("compliance.Checkpoint", on_delete=models.PROTECT, related_name="+")
    requested_by = models.CharField(max_length=200)
    requested_at = models.DateTimeField(default=now)
    ended_at = models.DateTimeField(null=True, blank=True)
    path = models.CharField(max_length=1000)
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(default=0)
    resume = models.JSONField(default=dict, blank=True)
    entries = models.BigIntegerField(null=True, blank=True)
    file_bytes = models.BigIntegerField(null=True, blank=True)
    file_digest = DigestField(blank=True)
    failure = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-requested_at", "-id"]
        constraints = [
            choice_constraint("status", ExportStatus, "audit_export_status_is_known"),
            choice_constraint("format", ExportFormat, "audit_export_format_is_known"),
        ]

    def __str__(self) -> str:
        return f"export up to {self.to_index}"
