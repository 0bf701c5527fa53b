"""Notices: queued in the transaction of what they tell of, one message per recipient and cause, whatever runs twice.

They go to those who can act: the caller says who. Data holds ids and never names of people.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from compliance.models import OutboxMessage, User, WebhookEndpoint
from compliance.services.idempotency import apply_first_time
from compliance.services.messengers import chats
from compliance.signals import notices_queued
from compliance.vocabulary import NoticeChannel, NoticeKind, NoticeStatus
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import canonical_bytes, digest
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service

MAX_DATA_BYTES = 64 * 1024
MAX_TITLE = 200
EVERY_EVENT = "*"
_BATCH = 1000
_EVENTS = uuid.UUID("5a0e4c0e-6f0a-5c5e-9d67-0f6d3a1d1b7e")


class NoticeNotDead(DomainError):
    code = "notice_not_dead"
    kind = ErrorKind.CONFLICT


class WebhookDisabled(DomainError):
    code = "webhook_disabled"
    kind = ErrorKind.CONFLICT


@dataclass(frozen=True)
class Notice:
    """One event to tell of. `subject_ref` is (kind, id) as entries name targets; `link` a path of the console; `data` holds canonical
    values; `cause` is what makes this event another than the last one of its kind about this subject, such as an event's uid.
    """

    kind: NoticeKind
    subject_ref: tuple[str, str]
    title: str
    cause: str
    lines: Sequence[str] = ()
    link: str = ""
    data: Mapping[str, Any] | None = None
    people: Iterable[UUID] = ()


def event_type(kind: str) -> str:
    """Return the CloudEvents type: `grant_suspended` is `org.writegate.grant.suspended.v1`."""
    noun, _, happened = str(kind).rpartition("_")
    return f"{settings.NOTICE_EVENT_PREFIX}.{noun}.{happened}.v1"


def apply_notify(
    *,
    kind: NoticeKind,
    subject_ref: tuple[str, str],
    title: str,
    lines: Sequence[str],
    link: str,
    data: Mapping[str, Any],
    people: Iterable[UUID],
    cause: str,
    at: datetime | None = None,
) -> int:
    """Queue the messages of one event inside an open service transaction; return how many are new. See `apply_notify_all`."""
    notice = Notice(kind, subject_ref, title, cause, lines=lines, link=link, data=data, people=people)
    return apply_notify_all([notice], at=at)


def apply_notify_all(notices: Sequence[Notice], *, at: datetime | None = None) -> int:
    """Queue the messages of events inside an open service transaction, in a few statements however many; return how many are new.

    A mail to each person with an active account, a message to each configured chat, one to each webhook that wants the event.
    Raises `InputRefused` for data beyond 64 KiB.
    """
    moment = at or now()
    wanted = [(notice, tuple(dict.fromkeys(notice.people))) for notice in notices]
    reachable = _reachable({person for _, people in wanted for person in people})
    endpoints = list(WebhookEndpoint.objects.filter(disabled_at=None).order_by("id"))
    marks = tuple(chats())
    messages: list[OutboxMessage] = []
    for notice, people in wanted:
        make = _Maker(notice, moment)
        messages += [make.message(NoticeChannel.MAIL, person_id=each) for each in people if each in reachable]
        messages += [make.message(NoticeChannel.CHAT, destination=mark) for mark in marks]
        messages += [
            make.message(NoticeChannel.WEBHOOK, endpoint=endpoint)
            for endpoint in endpoints
            if endpoint.events == [EVERY_EVENT] or notice.kind in endpoint.events
        ]
    queued = 0
    for start in range(0, len(messages), _BATCH):
        batch = messages[start : start + _BATCH]
        # Another transaction may be queueing the same: the unique key decides, and the rows that are ours are counted.
        OutboxMessage.objects.bulk_create(batch, ignore_conflicts=True)
        queued += OutboxMessage.objects.filter(uid__in=[message.uid for message in batch]).count()
    if queued:
        apply_announce()
    return queued


def apply_announce() -> None:
    """Have the worker woken after commit, once a transaction however many messages it queues."""
    if not any(waiting[1] is _announce for waiting in connection.run_on_commit):
        transaction.on_commit(_announce, robust=True)


def _announce() -> None:
    notices_queued.send_robust(sender=OutboxMessage)


@service(refused="notice.refused")
def replay_message(
    *,
    actor: Actor,
    message: OutboxMessage,
    idempotency_key: str | None = None,
    request_id: str = "",
    at: datetime | None = None,
) -> OutboxMessage:
    """Send a dead letter once more, from its first attempt on. Raises `NoticeNotDead`, `WebhookDisabled`."""
    if not apply_first_time(actor=actor, key=idempotency_key, act=f"notice.replayed {message.uid}"):
        return message.reload()
    if message.endpoint is not None and message.endpoint.disabled_at is not None:
        raise WebhookDisabled("the webhook of this notice is disabled: register it anew to be told of what comes")
    expected = {"status": NoticeStatus.DEAD}
    moved_to = {"status": NoticeStatus.WAITING, "attempts": 0, "due_at": at or now(), "claimed_until": None}
    if not OutboxMessage.claim(message.pk, expected=expected, moved_to=moved_to):
        raise NoticeNotDead("only a dead notice is replayed; this one is sent or still tried")
    audit.record(
        audit.Event(
            action="notice.replayed",
            actor=actor,
            target=("notice", str(message.uid)),
            old={"attempts": message.attempts, "status": NoticeStatus.DEAD},
            new={"status": NoticeStatus.WAITING},
            request_id=request_id,
        )
    )
    apply_announce()
    return message.reload()


def apply_bury(*, actor: Actor, messages: Sequence[OutboxMessage], reason: str, request_id: str = "") -> int:
    """Make waiting messages dead letters inside an open service transaction, and record each; return how many were moved."""
    buried = [
        message
        for message in messages
        if OutboxMessage.claim(
            message.pk,
            expected={"status": NoticeStatus.WAITING, "attempts": message.attempts},
            moved_to={"status": NoticeStatus.DEAD, "claimed_until": None, "last_error": reason},
        )
    ]
    if buried:
        audit.record(
            *(
                audit.Event(
                    action="notice.dead",
                    actor=actor,
                    target=("notice", str(message.uid)),
                    new={
                        "attempts": message.attempts,
                        "channel": message.channel,
                        "event": str(message.event_id),
                        "kind": message.kind,
                        "reason": reason,
                        "recipient": message.recipient,
                    },
                    request_id=request_id,
                )
                for message in buried
            )
        )
    return len(buried)


def apply_disable_webhook(*, actor: Actor, endpoint: WebhookEndpoint, reason: str, request_id: str = "") -> bool:
    """Disable a webhook inside an open service transaction and bury what waits for it; False where it was disabled before."""
    moved_to = {"disabled_at": now(), "disabled_by": actor.reference}
    if not WebhookEndpoint.claim(endpoint.pk, expected={"disabled_at": None}, moved_to=moved_to):
        return False
    waiting = OutboxMessage.objects.select_related("endpoint").filter(endpoint=endpoint, status=NoticeStatus.WAITING)
    apply_bury(actor=actor, messages=list(waiting.order_by("id")), reason="the webhook is disabled", request_id=request_id)
    audit.record(
        audit.Event(
            action="webhook.disabled",
            actor=actor,
            target=("webhook", str(endpoint.uid)),
            new={"reason": reason},
            request_id=request_id,
        )
    )
    return True


class _Maker:
    """Makes the messages of one event: alike but for channel and recipient."""

    def __init__(self, notice: Notice, moment: datetime) -> None:
        kind, identity = notice.subject_ref
        self.event = [str(notice.kind), kind, identity, notice.cause]
        title = " ".join(notice.title.split())[:MAX_TITLE]
        link = f"{settings.NOTICE_ORIGIN}{notice.link}" if notice.link else ""
        details = {"details": dict(notice.data or {}), "link": link, "title": title}
        content = canonical_bytes(details)
        if len(content) > MAX_DATA_BYTES:
            hint = f"at most {MAX_DATA_BYTES} bytes: name ids, and let the reader look the rest up"
            raise InputRefused([Problem(f"a notice with {len(content)} bytes of data", field="data", hint=hint)])
        self.text = "\n".join([*notice.lines, *(["", link] if link else [])])
        self.shared: dict[str, Any] = {
            "kind": notice.kind,
            "event_id": uuid.uuid5(_EVENTS, json.dumps(self.event)),
            "event_type": event_type(notice.kind),
            "source": settings.NOTICE_ORIGIN,
            "subject": f"{kind}/{identity}",
            "title": title,
            "data": content.decode(),
            "due_at": moment,
            "created_at": moment,
        }

    def message(
        self,
        channel: NoticeChannel,
        *,
        person_id: UUID | None = None,
        endpoint: WebhookEndpoint | None = None,
        destination: str = "",
    ) -> OutboxMessage:
        recipient = destination or str(endpoint.uid if endpoint is not None else person_id)
        return OutboxMessage(
            **self.shared,
            channel=channel,
            person_id=person_id,
            endpoint=endpoint,
            destination=destination,
            text="" if channel == NoticeChannel.WEBHOOK else self.text,
            dedupe_key=digest([*self.event, str(channel), recipient]),
        )


def _reachable(people: set[UUID]) -> set[UUID]:
    if not people or not settings.NOTICE_MAIL_URL:
        return set()
    return set(User.objects.filter(person__in=people, is_active=True).values_list("person_id", flat=True))
