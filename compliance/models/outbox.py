"""Notices on their way out, and the addresses that other systems gave us to be told at."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models

from compliance.vocabulary import NoticeChannel, NoticeKind, NoticeStatus
from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, choice_constraint
from evaluations.kernel.models import State


class WebhookEndpoint(State):
    """State. An address that is told of events. The secrets lie here readable, since each message is signed anew; no answer, log
    line or entry repeats them. `previous_secret` signs beside the present one until `previous_until`.

    `events` holds words of `NoticeKind`, or `*` alone.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    title = models.CharField(max_length=120)
    url = models.CharField(max_length=1000)
    events = ArrayField(models.CharField(max_length=40))
    secret = models.CharField(max_length=100)
    previous_secret = models.CharField(max_length=100, blank=True)
    previous_until = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=now)
    disabled_by = models.CharField(max_length=200, blank=True)
    disabled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = "webhook"
        constraints = [models.CheckConstraint(condition=~models.Q(events=[]), name="webhook_wants_an_event")]

    def __str__(self) -> str:
        return self.title


class OutboxMessage(State):
    """State. One notice to one recipient over one channel, queued in the transaction of what it tells of.

    `event_id` is shared by all messages of one event. `dedupe_key` is the digest of event, channel and recipient: whatever runs
    twice queues once. A worker holds a message until `claimed_until`; `attempts` counts the times one took it.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=40, choices=NoticeKind.choices)
    event_id = models.UUIDField()
    event_type = models.CharField(max_length=200)
    source = models.CharField(max_length=300)
    subject = models.CharField(max_length=300, help_text="What it is about, as kind/id.")
    title = models.CharField(max_length=200)
    text = models.TextField(blank=True, help_text="What a person reads.")
    data = models.TextField(help_text="What a machine reads: canonical JSON without names of people.")
    channel = models.CharField(max_length=10, choices=NoticeChannel.choices)
    person = models.ForeignKey("compliance.Person", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.PROTECT, null=True, blank=True, related_name="messages")
    destination = models.CharField(max_length=40, blank=True, help_text="The mark of a configured chat, which keeps its address.")
    dedupe_key = DigestField(unique=True)
    status = models.CharField(max_length=10, choices=NoticeStatus.choices, default=NoticeStatus.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(default=now)
    claimed_until = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(default=now)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = "notice"
        constraints = [
            choice_constraint("kind", NoticeKind, "notice_kind_is_known"),
            choice_constraint("channel", NoticeChannel, "notice_channel_is_known"),
            choice_constraint("status", NoticeStatus, "notice_status_is_known"),
            models.CheckConstraint(
                name="notice_has_its_recipient",
                condition=models.Q(channel="mail", person__isnull=False, endpoint=None, destination="")
                | models.Q(channel="webhook", person=None, endpoint__isnull=False, destination="")
                | (models.Q(channel="chat", person=None, endpoint=None) & ~models.Q(destination="")),
            ),
            models.CheckConstraint(
                name="notice_is_sent_at_an_instant",
                condition=models.Q(status="sent", sent_at__isnull=False) | (~models.Q(status="sent") & models.Q(sent_at=None)),
            ),
        ]
        indexes = [
            models.Index(fields=["due_at", "id"], condition=models.Q(status="waiting"), name="notice_by_due"),
            models.Index(fields=["status", "-id"], name="notice_by_status"),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def recipient(self) -> str:
        """Return who is told, as `person:…`, `webhook:…` or `chat:…`."""
        if self.person_id is not None:
            return f"person:{self.person_id}"
        return f"webhook:{self.endpoint.uid}" if self.endpoint is not None else f"chat:{self.destination}"
