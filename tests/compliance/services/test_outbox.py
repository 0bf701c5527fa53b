"""Notices are queued once for whoever can act, with the act they tell of; and webhooks are registered, rotated and disabled."""

import json
import threading
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from compliance import tasks
from compliance.models import LedgerEntry, OutboxMessage, User, WebhookEndpoint
from compliance.selectors.population import population_report
from compliance.services.idempotency import IdempotencyKeyReused
from compliance.services.outbox import (
    Notice,
    NoticeNotDead,
    WebhookDisabled,
    apply_bury,
    apply_notify,
    apply_notify_all,
    event_type,
    replay_message,
)
from compliance.services.people import create_person
from compliance.services.webhooks import disable_webhook, open_webhook, rotate_secret
from compliance.vocabulary import NoticeKind
from evaluations.kernel.actor import system_job
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction

ACTOR = system_job("test")
PLACE = "127.0.0.1:9"
URL = f"http://{PLACE}/hook?key=hidden"


@pytest.fixture(autouse=True)
def _channels(settings) -> None:
    settings.NOTICE_MAIL_URL = "mailto://sink.test"
    settings.NOTICE_CHAT_URLS = []
    settings.NOTICE_ORIGIN = "https://gate.test"
    settings.WEBHOOK_ALLOW = [PLACE]


def person(email: str = "ada@example.org") -> User:
    return create_person(actor=ACTOR, name="Ada Lovelace", email=email)


def notify(people: Any = (), *, cause: str = "1", **changes: Any) -> int:
    given = {
        "kind": NoticeKind.GRANT_SUSPENDED,
        "subject_ref": ("grant", "g-1"),
        "title": "The grant is suspended",
        "lines": ["A result fell."],
        "link": "/admin/compliance/grant/1/",
        "data": {"grant": "g-1"},
        **changes,
    }
    with service_transaction("test"):
        return apply_notify(people=people, cause=cause, **given)


def endpoint(*events: str, **options: Any) -> WebhookEndpoint:
    return open_webhook(actor=ACTOR, url=URL, title="Pager", events=events or ("*",), **options).endpoint


def entries(action: str) -> list[dict[str, Any]]:
    return [json.loads(bytes(row.content)) for row in LedgerEntry.objects.filter(action=action).order_by("id")]


def buried() -> OutboxMessage:
    message = OutboxMessage.objects.get()
    with service_transaction("test"):
        apply_bury(actor=ACTOR, messages=[message], reason="tried too often")
    return message.reload()


def test_each_person_chat_and_webhook_gets_one_message_of_one_event(committed_db, settings) -> None:
    settings.NOTICE_CHAT_URLS = ["json://127.0.0.1:9/a", "json://127.0.0.1:9/b"]
    ada, bob = person(), person("bob@example.org")
    pager = endpoint("grant_suspended")
    endpoint("grant_began")
    assert notify([ada.person_id, bob.person_id, ada.person_id]) == 5
    messages = list(OutboxMessage.objects.select_related("endpoint"))
    assert {message.event_id for message in messages} == {messages[0].event_id}
    assert {message.recipient for message in messages} >= {
        f"person:{ada.person_id}",
        f"person:{bob.person_id}",
        f"webhook:{pager.uid}",
    }
    assert sum(message.recipient.startswith("chat:") for message in messages) == 2
    assert {message.event_type for message in messages} == {"org.writegate.grant.suspended.v1"}
    mail = next(message for message in messages if message.person_id == ada.person_id)
    assert mail.text == "A result fell.\n\nhttps://gate.test/admin/compliance/grant/1/"
    assert json.loads(mail.data) == {
        "details": {"grant": "g-1"},
        "link": "https://gate.test/admin/compliance/grant/1/",
        "title": "The grant is suspended",
    }
    assert "@" not in "".join(str(vars(message)) for message in messages), "no row holds an address of a person"


def test_what_runs_twice_queues_once_and_another_cause_queues_anew(committed_db) -> None:
    ada = person()
    assert [notify([ada.person_id]), notify([ada.person_id]), notify([ada.person_id], cause="2")] == [1, 0, 1]
    assert notify([ada.person_id, person("bob@example.org").person_id]) == 1
    assert len({message.event_id for message in OutboxMessage.objects.all()}) == 2


def test_two_transactions_that_queue_the_same_queue_it_once(committed_db) -> None:
    ada = person()
    counts: list[int] = []
    barrier = threading.Barrier(4)

    def run() -> None:
        barrier.wait()
        counts.append(notify([ada.person_id]))
        connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counts) == [0, 0, 0, 1]


def test_only_people_with_an_active_account_are_told_and_nobody_over_a_channel_that_is_not_set(committed_db, settings) -> None:
    ada, bob = person(), person("bob@example.org")
    with service_transaction("test"):
        User.objects.filter(pk=bob.pk).update(is_active=False)
    assert notify([ada.person_id, bob.person_id, uuid.uuid4()]) == 1
    settings.NOTICE_MAIL_URL = ""
    assert notify([ada.person_id], cause="2") == 0


def test_a_message_vanishes_with_the_act_it_tells_of(committed_db, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[int] = []
    monkeypatch.setattr(tasks.deliver_notices, "delay", lambda: woken.append(1))
    ada = person()
    notice = Notice(NoticeKind.STOP_PULLED, ("stop", "all"), "Stopped", "1", people=[ada.person_id])
    with pytest.raises(ZeroDivisionError), service_transaction("test"):
        assert apply_notify_all([notice]) / 0
    assert (OutboxMessage.objects.count(), woken) == (0, [])
    with service_transaction("test"):
        for cause in "123":
            apply_notify_all([notice, Notice(NoticeKind.STOP_PULLED, ("stop", "all"), "Stopped", cause, people=[ada.person_id])])
    assert (OutboxMessage.objects.count(), woken) == (3, [1]), "the worker is woken once a transaction"


def test_many_events_take_few_statements(committed_db, django_assert_max_num_queries) -> None:
    ada = person()
    notices = [
        Notice(NoticeKind.GRANT_SUSPENDED, ("grant", str(n)), "Suspended", "1", people=[ada.person_id]) for n in range(2000)
    ]
    with service_transaction("test"), django_assert_max_num_queries(8):
        assert apply_notify_all(notices) == 2000


def test_titles_are_one_line_and_data_has_its_limit(committed_db) -> None:
    ada = person()
    notify([ada.person_id], title="one\r\nBcc: x@example.org " + "y" * 300)
    title = OutboxMessage.objects.get().title
    assert title.startswith("one Bcc: x@example.org y")
    assert len(title) == 200
    with pytest.raises(InputRefused, match="65536"):
        notify([ada.person_id], cause="2", data={"much": "x" * 65536})


@pytest.mark.parametrize("kind", NoticeKind)
def test_every_kind_has_a_type_under_the_prefix(settings, kind: NoticeKind) -> None:
    settings.NOTICE_EVENT_PREFIX = "org.example"
    noun, happened = event_type(kind).removeprefix("org.example.").removesuffix(".v1").split(".")
    assert f"{noun}_{happened}" == kind
    assert event_type(NoticeKind.BREAK_GLASS_OPENED) == "org.example.break_glass.opened.v1"


# --- webhooks -------------------------------------------------------------------------------------------------------------------


def test_a_webhook_is_registered_with_a_secret_that_no_entry_repeats(committed_db) -> None:
    made = open_webhook(actor=ACTOR, url=URL, title=" Pager ", events=["grant_suspended", "stop_pulled"], request_id="r1")
    assert made.secret == made.endpoint.secret
    assert made.secret.startswith("whsec_")
    (entry,) = entries("webhook.registered")
    assert entry["new"] == {"events": ["grant_suspended", "stop_pulled"], "host": PLACE, "title": "Pager"}
    assert entry["digests"] == {"url": digest_of(URL.encode())}
    rotate_secret(actor=ACTOR, endpoint=made.endpoint)
    disable_webhook(actor=ACTOR, endpoint=made.endpoint)
    held = WebhookEndpoint.objects.get()
    told = b"".join(bytes(row.content) for row in LedgerEntry.objects.all()).decode()
    for hidden in (held.secret, held.previous_secret, "key=hidden"):
        assert hidden
        assert hidden not in told
    assert next(line for line in population_report() if line.table == "compliance_webhookendpoint").differing == 0


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"events": []}, "events"),
        ({"events": ["*", "stop_pulled"]}, "events"),
        ({"events": ["grant_eaten"]}, "events"),
        ({"title": " "}, "title"),
        ({"title": "x" * 121}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"url": "http://example.org/"}, "url"),
        ({"url": "https://127.0.0.1/"}, "url"),
    ],
)
def test_what_cannot_be_right_is_refused_by_field_and_recorded(committed_db, changes: dict[str, Any], field: str) -> None:
    given = {"url": URL, "title": "Pager", "events": ["*"], **changes}
    with pytest.raises(InputRefused) as refused:
        open_webhook(actor=ACTOR, **given)
    assert {problem.field for problem in refused.value.problems} == {field}
    assert not WebhookEndpoint.objects.exists()
    assert len(entries("webhook.refused")) == 1


def test_a_key_makes_registering_and_rotating_once_and_shows_the_secret_once(committed_db) -> None:
    first = open_webhook(actor=ACTOR, url=URL, title="Pager", events=["*"], idempotency_key="k1")
    again = open_webhook(actor=ACTOR, url=URL, title="Pager", events=["*"], idempotency_key="k1")
    assert (again.endpoint, again.secret) == (first.endpoint, "")
    with pytest.raises(IdempotencyKeyReused):
        open_webhook(actor=ACTOR, url=URL, title="Other", events=["*"], idempotency_key="k1")
    with pytest.raises(IdempotencyKeyReused):
        rotate_secret(actor=ACTOR, endpoint=first.endpoint, idempotency_key="k1")
    rotated = rotate_secret(actor=ACTOR, endpoint=first.endpoint, idempotency_key="k2")
    repeated = rotate_secret(actor=ACTOR, endpoint=rotated.endpoint, idempotency_key="k2")
    assert (repeated.secret, repeated.endpoint.secret) == ("", rotated.secret)
    assert len(entries("webhook.secret_rotated")) == 1


def test_of_two_rotations_from_one_page_the_second_is_refused(committed_db) -> None:
    stale = endpoint()
    moment = now()
    rotated = rotate_secret(actor=ACTOR, endpoint=WebhookEndpoint.objects.get(), at=moment).endpoint
    assert rotated.previous_secret == stale.secret
    assert rotated.previous_until == moment + timedelta(hours=24)
    with pytest.raises(WebhookDisabled):
        rotate_secret(actor=ACTOR, endpoint=stale)


def test_a_disabled_webhook_is_told_nothing_and_what_waited_is_dead_and_recorded(committed_db) -> None:
    pager = endpoint()
    notify()
    disable_webhook(actor=ACTOR, endpoint=pager, request_id="r9")
    assert notify(cause="2") == 0
    message = OutboxMessage.objects.get()
    assert (message.status, message.last_error) == ("dead", "the webhook is disabled")
    (dead,) = entries("notice.dead")
    assert dead["new"]["recipient"] == f"webhook:{pager.uid}"
    disable_webhook(actor=ACTOR, endpoint=pager.reload())
    assert len(entries("webhook.disabled")) == 1
    with pytest.raises(WebhookDisabled):
        replay_message(actor=ACTOR, message=message)
    with pytest.raises(WebhookDisabled):
        rotate_secret(actor=ACTOR, endpoint=pager.reload())


def test_a_dead_notice_is_replayed_once_and_others_are_not(committed_db, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[int] = []
    notify([person().person_id])
    monkeypatch.setattr(tasks.deliver_notices, "delay", lambda: woken.append(1))
    with pytest.raises(NoticeNotDead):
        replay_message(actor=ACTOR, message=OutboxMessage.objects.get())
    message = buried()
    again = replay_message(actor=ACTOR, message=message, idempotency_key="k")
    assert (again.status, again.attempts, woken) == ("waiting", 0, [1])
    assert replay_message(actor=ACTOR, message=message, idempotency_key="k").status == "waiting"
    assert len(entries("notice.replayed")) == 1
    assert len(entries("notice.refused")) == 1
