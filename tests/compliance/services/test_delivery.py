"""Webhooks on real wires: signed, sent once, tried again, given up; by several workers, and by one that dies."""

import json
import threading
from datetime import datetime, timedelta
from typing import Any

import pytest
from cloudevents.core.formats.json import JSONFormat
from django.db import connection, connections
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from compliance import tasks
from compliance.models import OutboxMessage
from compliance.services import delivery
from compliance.services.delivery import LEASE, RETRIES, Outcome, claim_next, deliver_due, next_due, settle_message
from compliance.services.outbox import replay_message
from compliance.services.webhooks import rotate_secret
from evaluations.kernel.clock import now
from tests.support.notices import ACTOR, entries, notify, only, register
from tests.support.sinks import HttpSink, http_sink


def test_a_webhook_gets_a_cloudevent_that_its_secret_verifies(sink: HttpSink) -> None:
    endpoint = register(sink, "/hook?team=a")
    (message,) = notify()
    assert deliver_due() == (1, 0, False)
    (heard,) = sink.heard
    assert heard.path == "/hook?team=a"
    assert heard.headers["Host"] == sink.place
    assert heard.headers["Content-Type"].startswith("application/cloudevents+json")
    event = JSONFormat().read(None, heard.body)
    assert (event.get_specversion(), event.get_type()) == ("1.0", "org.writegate.grant.suspended.v1")
    assert (event.get_id(), event.get_subject()) == (str(message.event_id), "grant/g-1")
    assert event.get_time() == message.created_at
    assert event.get_data() == json.loads(message.data)
    assert Webhook(endpoint.secret).verify(heard.body, heard.headers)["id"] == heard.headers["webhook-id"] == event.get_id()
    with pytest.raises(WebhookVerificationError):
        Webhook(endpoint.secret).verify(heard.body + b" ", heard.headers)
    assert (only().status, only().attempts, only().last_error) == ("sent", 1, "")
    assert deliver_due() == (0, 0, False)


def test_an_event_has_one_id_for_all_endpoints_and_over_resends(sink: HttpSink) -> None:
    register(sink, "/a")
    register(sink, "/b")
    sink.answers = [(500, {}), (204, {})]
    notify()
    moment = now()
    deliver_due(at=moment)
    deliver_due(at=moment + timedelta(seconds=7))
    assert len(sink.heard) == 3
    assert len({heard.headers["webhook-id"] for heard in sink.heard}) == 1
    assert len({heard.body for heard in sink.heard}) == 1


def test_after_a_rotation_both_secrets_sign_for_a_day(sink: HttpSink) -> None:
    endpoint = register(sink)
    old, moment = endpoint.secret, now()
    new = rotate_secret(actor=ACTOR, endpoint=endpoint, at=moment).endpoint
    assert new.secret != old
    notify()
    deliver_due()
    for secret in (old, new.secret):
        Webhook(secret).verify(sink.heard[0].body, sink.heard[0].headers)
    body = sink.heard[0].body
    later = delivery.signed_headers(new, event_id="e", body=body, at=moment + timedelta(hours=24))
    assert len(later["webhook-signature"].split()) == 1


def test_a_failing_endpoint_is_tried_by_the_schedule_then_given_up_and_can_be_replayed(sink: HttpSink) -> None:
    register(sink)
    sink.answers = [(500, {})]
    notify()
    moment = now()
    for attempt, pause in enumerate(RETRIES, start=1):
        assert deliver_due(at=moment) == (0, 1, False)
        message = only()
        assert (message.status, message.attempts, message.last_error) == ("waiting", attempt, "answered 500")
        assert pause <= message.due_at - moment <= pause * 1.2
        assert deliver_due(at=message.due_at - timedelta(milliseconds=1)) == (0, 0, False)
        moment = message.due_at
    assert deliver_due(at=moment) == (0, 1, False)
    assert (only().status, only().attempts, len(sink.heard)) == ("dead", 7, 7)
    assert entries("notice.dead") == 1
    assert deliver_due(at=moment + timedelta(days=30)) == (0, 0, False)
    sink.answers = [(200, {})]
    replay_message(actor=ACTOR, message=only())
    assert deliver_due() == (1, 0, False)
    assert only().status == "sent"


def test_retries_do_not_come_all_at_one_instant() -> None:
    moment = now()
    assert len({next_due(attempts=3, at=moment) for _ in range(20)}) > 10


@pytest.mark.parametrize(
    ("status", "given", "waits"),
    [
        (429, "120", 120),
        (503, "120", 120),
        (503, "Mon, 01 Jan 2029 00:10:00 GMT", 600),
        (429, "999999999999", 24 * 3600),
        (429, "soon", 5),
        (429, "Mon, 01 Jan 2001 00:00:00 GMT", 5),
        (500, "120", 5),
    ],
)
def test_an_endpoint_may_ask_for_time(sink: HttpSink, status: int, given: str, waits: int) -> None:
    register(sink)
    notify()
    sink.answers = [(status, {"Retry-After": given})]
    moment = datetime.fromisoformat("2029-01-01T00:00:00+00:00")
    deliver_due(at=moment)
    assert waits <= (only().due_at - moment).total_seconds() <= max(waits, 6)


def test_gone_disables_the_endpoint_and_ends_all_that_waits_for_it(sink: HttpSink) -> None:
    endpoint = register(sink)
    sink.answers = [(410, {})]
    for cause in "123":
        notify(cause=cause)
    assert deliver_due() == (0, 1, False)
    assert {message.status for message in OutboxMessage.objects.all()} == {"dead"}
    assert endpoint.reload().disabled_by == "system_job:deliver-notices"
    assert (entries("webhook.disabled"), entries("notice.dead"), len(sink.heard)) == (1, 3, 1)
    assert len(notify(cause="4")) == 3


def test_a_redirect_is_a_failure_and_is_not_followed(sink: HttpSink) -> None:
    register(sink)
    notify()
    sink.answers = [(307, {"Location": sink.url("/elsewhere")})]
    assert deliver_due() == (0, 1, False)
    assert [heard.path for heard in sink.heard] == ["/hook"]
    assert "redirects are not followed" in only().last_error


def test_one_endpoint_that_fails_does_not_hold_up_the_others(sink: HttpSink, settings) -> None:
    with http_sink() as other:
        settings.WEBHOOK_ALLOW = [sink.place, other.place]
        register(sink)
        register(other)
        sink.answers = [(500, {})]
        for number in range(6):
            notify(cause=str(number))
        assert deliver_due() == (6, 2, False)
        assert (len(other.heard), len(sink.heard)) == (6, 2)


def test_a_run_stops_at_its_limit_and_the_task_asks_for_another(sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    register(sink)
    for number in range(3):
        notify(cause=str(number))
    assert deliver_due(limit=2) == (2, 0, True)
    asked: list[int] = []
    monkeypatch.setattr(tasks.deliver_notices, "delay", lambda: asked.append(1))
    monkeypatch.setattr(delivery.deliver_due, "__kwdefaults__", {"limit": 1, "seconds": 20.0, "at": None, "task_id": ""})
    tasks.deliver_notices()
    assert asked == [1]
    tasks.deliver_notices()
    assert (asked, len(sink.heard)) == ([1], 3)


# --- claims -------------------------------------------------------------------------------------------------------------------


def test_a_worker_that_dies_holds_its_message_for_a_minute(sink: HttpSink) -> None:
    register(sink)
    notify()
    moment = now()
    held = claim_next(at=moment)
    assert held is not None
    assert deliver_due(at=moment + LEASE - timedelta(milliseconds=1)) == (0, 0, False)
    assert deliver_due(at=moment + LEASE) == (1, 0, False)
    # The first was not dead, only slow: what it says now changes nothing.
    settle_message(actor=ACTOR, message=held, outcome=Outcome("answered 500"), at=moment + LEASE)
    assert (only().status, only().attempts) == ("sent", 2)


def test_a_late_gone_still_disables_its_endpoint_and_buries_nothing_that_was_sent(sink: HttpSink) -> None:
    endpoint = register(sink)
    notify()
    moment = now()
    held = claim_next(at=moment)
    assert held is not None
    deliver_due(at=moment + LEASE)
    settle_message(actor=ACTOR, message=held, outcome=Outcome("answered 410", gone=True), at=moment + LEASE)
    assert endpoint.reload().disabled_at is not None
    assert (only().status, entries("notice.dead")) == ("sent", 0)


def test_workers_at_once_send_each_message_once(sink: HttpSink) -> None:
    register(sink)
    for number in range(40):
        notify(cause=str(number))
    barrier = threading.Barrier(4)
    runs: list[Any] = []

    def run() -> None:
        barrier.wait()
        runs.append(deliver_due())
        connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(run.sent for run in runs) == 40 == len(sink.heard)
    assert len({heard.headers["webhook-id"] for heard in sink.heard}) == 40
    assert set(OutboxMessage.objects.values_list("status", "attempts")) == {("sent", 1)}


def test_no_transaction_is_open_while_the_wire_is(sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    register(sink)
    notify()
    seen: list[bool] = []
    real = delivery.post

    def watched(*arguments: Any, **named: Any) -> Any:
        seen.append(connection.in_atomic_block)
        return real(*arguments, **named)

    monkeypatch.setattr(delivery, "post", watched)
    deliver_due()
    assert seen == [False]


def test_a_fault_of_ours_in_one_message_is_a_failed_attempt(sink: HttpSink, monkeypatch: pytest.MonkeyPatch) -> None:
    register(sink)
    notify()

    def broken(*_: Any, **__: Any) -> None:
        raise LookupError("whsec_secret")

    monkeypatch.setattr(delivery, "post", broken)
    assert deliver_due() == (0, 1, False)
    assert only().last_error == "failed: LookupError"
