"""From where and how often a source is refreshed, each run of that, and when a host may be asked again."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, choice_constraint
from evaluations.kernel.models import State
from evaluations.models.sources import Source
from evaluations.vocabulary import Connector, RefreshCause, RefreshOutcome


class SourceSchedule(State):
    """State. From where and how often a source is refreshed, and how that has gone. `set_by` vouches for the address: what is fetched
    from there is her submission.

    `key_name` names a variable of the environment; the key itself is in no table. `marks` is what the last whole refresh saw at each
    address or in each file, so that the next one can ask whether it has changed.
    """

    source = models.OneToOneField(Source, on_delete=models.PROTECT, related_name="schedule")
    connector = models.CharField(max_length=20, choices=Connector.choices)
    address = models.CharField(max_length=1000, blank=True)
    format = models.CharField(max_length=60, blank=True)
    profile = models.CharField(max_length=120, blank=True)
    subject = models.CharField(max_length=300, blank=True)
    key_name = models.CharField(max_length=120, blank=True)
    interval_minutes = models.PositiveIntegerField()
    paused_at = models.DateTimeField(null=True, blank=True)
    set_by = models.CharField(max_length=200)
    set_at = models.DateTimeField(default=now)
    due_at = models.DateTimeField(default=now)
    queued_until = models.DateTimeField(null=True, blank=True)
    marks = models.JSONField(default=dict, blank=True)
    failed_runs = models.PositiveIntegerField(default=0)
    succeeded_at = models.DateTimeField(null=True, blank=True)
    alarmed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["source__key"]
        constraints = [
            choice_constraint("connector", Connector, "schedule_connector_is_known"),
            models.CheckConstraint(condition=models.Q(interval_minutes__gte=1), name="schedule_interval_is_positive"),
        ]
        indexes = [models.Index(fields=["due_at"], condition=models.Q(paused_at=None), name="schedule_by_due_at")]

    def __str__(self) -> str:
        return f"{self.source.key} by {self.get_connector_display()}"


class RefreshRun(State):
    """State. One attempt to bring a source up to date: what was fetched, what became of its rows, and why it ended so.

    A source has at most one open run, `queued` or `running`. One whose worker died is ended as `interrupted` by the next.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="refresh_runs")
    asked_by = models.CharField(max_length=200)
    forced = models.BooleanField(default=False)
    outcome = models.CharField(max_length=12, choices=RefreshOutcome.choices)
    cause = models.CharField(max_length=20, choices=RefreshCause.choices, blank=True)
    detail = models.CharField(max_length=500, blank=True)
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    requests = models.PositiveIntegerField(default=0)
    bytes_received = models.BigIntegerField(default=0)
    documents = ArrayField(DigestField(), default=list, blank=True)
    evidence = models.PositiveIntegerField(default=0)
    taken = models.PositiveIntegerField(default=0)
    held = models.PositiveIntegerField(default=0)
    repeated = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    problems = models.JSONField(default=list, blank=True)
    etag = models.CharField(max_length=300, blank=True)
    last_modified = models.CharField(max_length=100, blank=True)
    asked_at = models.DateTimeField(default=now)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            choice_constraint("outcome", RefreshOutcome, "refresh_outcome_is_known"),
            models.CheckConstraint(
                condition=models.Q(cause="") | models.Q(cause__in=RefreshCause.values), name="refresh_cause_is_known"
            ),
            models.CheckConstraint(
                name="refresh_run_ends_with_a_cause",
                condition=models.Q(outcome__in=["queued", "running"], ended_at=None, cause="")
                | (~models.Q(outcome__in=["queued", "running"]) & models.Q(ended_at__isnull=False) & ~models.Q(cause="")),
            ),
            models.UniqueConstraint(fields=["source"], condition=models.Q(ended_at=None), name="one_open_run_a_source"),
        ]
        indexes = [models.Index(fields=["source", "-id"], name="refresh_run_by_source")]

    def __str__(self) -> str:
        return f"{self.source.key}: {self.get_outcome_display()}"


class HostPace(State):
    """State. When a host may be asked next, over all workers. Decides nothing, and is not audited."""

    host = models.CharField(max_length=300, unique=True)
    next_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.host
