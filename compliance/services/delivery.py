"""Notices on their way: each is claimed for a minute, sent outside any transaction, and settled.

At least once: a worker that dies in between leaves a claim that runs out. Two workers never hold one message at a time.
Retries follow the schedule of Standard Webhooks, then the message is a dead letter, which an administrator can replay.
"""

import json
import logging
import secrets
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from django.db.models import Q
from standardwebhooks.webhooks import Webhook

from compliance.models import OutboxMessage, User, WebhookEndpoint
from compliance.services.messengers import send_chat, send_mail
from compliance.services.outbox import apply_bury, apply_disable_webhook
from compliance.services.outgoing import AddressRefused, Answer, DeliveryFailed, parse_target, post, resolve
from compliance.vocabulary import NoticeChannel, NoticeStatus
from evaluations.kernel.actor import Actor, system_job
from evaluations.kernel.clock import now
from evaluations.kernel.outgoing import MAX_WAIT, retry_after
from evaluations.kernel.services import service, service_transaction

logger = logging.getLogger("compliance.notices")

JOB = "deliver-notices"
LEASE = timedelta(seconds=60)
RUN_SECONDS = 20.0
RUN_LIMIT = 200
LANE_FAILURES = 2
RETRIES = tuple(timedelta(seconds=each) for each in (5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600))
"""How long after each failed attempt the next one is due; after the last there is none."""
JITTER = 0.2
GONE = 410
ASKS_TO_WAIT = (429, 503)
SHOWN_ERROR = 300

_random = secrets.SystemRandom()


class Run(NamedTuple):
    """What one run did. `more`: it stopped for its limits, so another run may find work at once."""

    sent: int
    failed: int
    more: bool


class Outcome(NamedTuple):
    """What became of one attempt. Without `error` it is sent; `final` ends it, `gone` its webhook too."""

    error: str = ""
    wait: timedelta = timedelta(0)
    final: bool = False
    gone: bool = False


def deliver_due(*, limit: int = RUN_LIMIT, seconds: float = RUN_SECONDS, at: datetime | None = None, task_id: str = "") -> Run:
    """Send messages that are due at `at` (by default the present instant, read anew for each) until none is left or a limit is met.

    Safe to run anywhere at any time, by several at once. Needs to be outside of any transaction.
    """
    ends = time.monotonic() + seconds
    actor = system_job(JOB, task_id=task_id)
    counts = {True: 0, False: 0}
    failures: Counter[tuple[str, Any]] = Counter()
    while sum(counts.values()) < limit and time.monotonic() < ends:
        shut = [lane for lane, count in failures.items() if count >= LANE_FAILURES]
        message = claim_next(at=at or now(), without=shut)
        if message is None:
            return Run(counts[True], counts[False], more=False)
        outcome = _attempt(message, at or now())
        settle_message(actor=actor, message=message, outcome=outcome, at=at or now())
        counts[not outcome.error] += 1
        # One that does not answer costs seconds each time: whoever waits behind it goes first, it is asked again in the next run.
        failures[_lane(message)] += bool(outcome.error)
    return Run(counts[True], counts[False], more=True)


def claim_next(*, at: datetime, without: list[tuple[str, Any]] | None = None) -> OutboxMessage | None:
    """Take the message that has been due longest, for `LEASE`; None where nothing is due that nobody holds."""
    free = Q(claimed_until=None) | Q(claimed_until__lte=at)
    due = OutboxMessage.objects.filter(free, status=NoticeStatus.WAITING, due_at__lte=at)
    for channel, which in without or ():
        if channel == NoticeChannel.WEBHOOK:
            due = due.exclude(endpoint_id=which)
        else:
            due = due.exclude(channel=channel, destination=which)
    with service_transaction("claim_next"):
        message: OutboxMessage | None = due.order_by("due_at", "id").select_for_update(skip_locked=True).first()
        if message is not None:
            # Counted when it is taken: so a later worker knows that the claim it settles is still its own.
            message.attempts += 1
            message.claimed_until = at + LEASE
            message.save(update_fields=["attempts", "claimed_until"])
    return message


@service(refused="notice.refused")
def settle_message(*, actor: Actor, message: OutboxMessage, outcome: Outcome, at: datetime) -> None:
    """Record what became of an attempt; without effect where the claim ran out and another worker took the message."""
    expected = {"status": NoticeStatus.WAITING, "attempts": message.attempts}
    if not outcome.error:
        sent = {"status": NoticeStatus.SENT, "sent_at": at, "claimed_until": None, "last_error": ""}
        OutboxMessage.claim(message.pk, expected=expected, moved_to=sent)
        return
    error = outcome.error[:SHOWN_ERROR]
    if outcome.gone or outcome.final or message.attempts > len(RETRIES):
        apply_bury(actor=actor, messages=[message], reason=error)
        if outcome.gone and message.endpoint is not None:
            apply_disable_webhook(actor=actor, endpoint=message.endpoint, reason="it answered 410 Gone")
        return
    due = next_due(attempts=message.attempts, at=at, wait=outcome.wait)
    OutboxMessage.claim(message.pk, expected=expected, moved_to={"due_at": due, "claimed_until": None, "last_error": error})


def next_due(*, attempts: int, at: datetime, wait: timedelta = timedelta(0)) -> datetime:
    """Return when a message is due after its `attempts`-th failure: up to a fifth later than scheduled, never before `wait` is over."""
    pause = RETRIES[attempts - 1] * (1 + JITTER * _random.random())
    return at + max(pause, min(wait, MAX_WAIT))


def event_of(message: OutboxMessage) -> bytes:
    """Return the event as CloudEvents 1.0 in structured JSON: the same bytes however often it is sent, and to whomever."""
    attributes = {
        "specversion": "1.0",
        "id": str(message.event_id),
        "source": message.source,
        "type": message.event_type,
        "subject": message.subject,
        "time": message.created_at.astimezone(UTC),
        "datacontenttype": "application/json",
    }
    return JSONFormat().write(CloudEvent(attributes, json.loads(message.data)))


def signed_headers(endpoint: WebhookEndpoint, *, event_id: str, body: bytes, at: datetime) -> Mapping[str, str]:
    """Return the headers of Standard Webhooks: a signature by the secret, and one by the secret before while that still counts."""
    moment = at.astimezone(UTC)
    held = [endpoint.secret]
    if endpoint.previous_until is not None and at < endpoint.previous_until:
        held.append(endpoint.previous_secret)
    signatures = (Webhook(secret).sign(event_id, moment, body.decode()) for secret in held)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _attempt(message: OutboxMessage, at: datetime) -> Outcome:
    try:
        if message.channel == NoticeChannel.WEBHOOK and message.endpoint is not None:
            return _send_event(message, message.endpoint, at)
        if message.channel == NoticeChannel.CHAT:
            send_chat(mark=message.destination, title=message.title, text=message.text)
        else:
            send_mail(address=_address_of(message), title=message.title, text=message.text)
    except (DeliveryFailed, AddressRefused) as failed:
        return Outcome(failed.detail, final=getattr(failed, "final", False))
    except Exception as error:
        # A library's own fault must not end the run for all others. Its text may quote an address; its kind and its place do not.
        place = traceback.extract_tb(error.__traceback__)[-1]
        logger.error("notice %s: %s at %s:%s", message.uid, type(error).__name__, place.filename, place.lineno)  # noqa: TRY400
        return Outcome(f"failed: {type(error).__name__}")
    return Outcome()


def _send_event(message: OutboxMessage, endpoint: WebhookEndpoint, at: datetime) -> Outcome:
    if endpoint.disabled_at is not None:
        return Outcome("the webhook is disabled", final=True)
    target = parse_target(endpoint.url)
    addresses = resolve(target)
    body = event_of(message)
    headers = {
        "Content-Type": f"{JSONFormat.CONTENT_TYPE}; charset=utf-8",
        "User-Agent": "writegate",
        **signed_headers(endpoint, event_id=str(message.event_id), body=body, at=at),
    }
    return _judge(post(target, addresses, body=body, headers=headers), at)


def _judge(answer: Answer, at: datetime) -> Outcome:
    if 200 <= answer.status < 300:
        return Outcome()
    if answer.status == GONE:
        return Outcome("answered 410: it is gone for good", gone=True)
    if 300 <= answer.status < 400:
        return Outcome(f"answered {answer.status}: redirects are not followed")
    wait = retry_after(answer.retry_after, at=at) if answer.status in ASKS_TO_WAIT else timedelta(0)
    return Outcome(f"answered {answer.status}", wait=wait)


def _address_of(message: OutboxMessage) -> str:
    found: User | None = User.objects.filter(person=message.person_id, is_active=True).order_by("id").first()
    if found is None:
        raise DeliveryFailed("this person has no active account", final=True)
    return found.email


def _lane(message: OutboxMessage) -> tuple[str, Any]:
    return (message.channel, message.endpoint_id if message.channel == NoticeChannel.WEBHOOK else message.destination)
