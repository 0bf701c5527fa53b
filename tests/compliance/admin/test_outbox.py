"""Notices and webhooks in the console: read by auditors, acted on by administrators, and no secret shown twice."""

import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from compliance.models import LedgerEntry, OutboxMessage, WebhookEndpoint
from compliance.services.people import create_person
from compliance.vocabulary import Role
from evaluations.kernel.actor import system_job
from tests.compliance.admin.world import World
from tests.support.notices import notify

NOTICES = reverse("admin:compliance_outboxmessage_changelist")
WEBHOOKS = reverse("admin:compliance_webhookendpoint_changelist")
REGISTER = reverse("admin:compliance_webhookendpoint_register")
KEY = "0b0e3f0e-9d5e-4d3c-8f3b-1f6a3f0f4a11"
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]+")


@pytest.fixture(autouse=True)
def _wires(settings) -> None:
    settings.WEBHOOK_ALLOW = ["127.0.0.1:9"]
    settings.NOTICE_MAIL_URL = "mailto://sink.test"


@pytest.fixture
def admin(world: World) -> Client:
    user = create_person(actor=system_job("tests"), name="Root", email="root@example.org", roles=[Role.ADMINISTRATOR])
    client = Client()
    client.force_login(user)
    return client


def at(row: OutboxMessage | WebhookEndpoint, name: str = "change") -> str:
    return reverse(f"admin:compliance_{row._meta.model_name}_{name}", args=[row.pk])


def read(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def given_up() -> OutboxMessage:
    return OutboxMessage.objects.get(status="dead")


def test_the_list_says_what_was_told_to_whom_and_what_went_wrong(world: World, console: Client) -> None:
    text = read(console, NOTICES)
    for words in ("Write access of hr-agent to workday-prod is suspended", "the mailbox is full", "Pager of HR", "Ada Lovelace"):
        assert words in text
    assert "wg-fail" in text
    assert "wg-stale" in text
    assert "not taken" not in read(console, f"{NOTICES}?status__exact=waiting")
    endpoint = WebhookEndpoint.objects.get()
    link = f"{NOTICES}?endpoint__id__exact={endpoint.pk}"
    assert link in read(console, at(endpoint))
    assert "Ada Lovelace</span></td>" not in read(console, link)


def test_the_pages_explain_a_notice_and_a_webhook_without_its_secret(world: World, console: Client, admin: Client) -> None:
    text = read(console, at(given_up()))
    for words in (
        "org.writegate.grant.suspended.v1",
        "The refusal rate fell below the bar.",
        "grant/g-1",
        "Its entries in the ledger",
    ):
        assert words in text
    endpoint = WebhookEndpoint.objects.get()
    for client in (console, admin):
        for address in (at(endpoint), WEBHOOKS, at(given_up()), NOTICES):
            assert not SECRET.search(read(client, address))


def test_an_administrator_replays_a_dead_notice(world: World, admin: Client) -> None:
    message = given_up()
    assert "Send it again" in read(admin, at(message))
    assert admin.get(at(message, "replay")).status_code == 302
    assert given_up() == message
    answer = admin.post(at(message, "replay"), follow=True)
    assert "The notice waits to be sent again." in answer.content.decode()
    assert message.reload().status == "waiting"
    assert "Send it again" not in read(admin, at(message))
    answer = admin.post(at(message, "replay"), follow=True)
    assert "Nothing was changed: only a dead notice is replayed" in answer.content.decode()


def test_an_administrator_registers_a_webhook_and_sees_its_secret_once(world: World, admin: Client) -> None:
    assert REGISTER in read(admin, WEBHOOKS)
    key = admin.get(REGISTER).context["form"]["key"].value()
    given = {"title": "Status page", "url": "http://127.0.0.1:9/a", "events": ["grant_began", "stop_pulled"], "key": key}
    answer = admin.post(REGISTER, given)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    made = WebhookEndpoint.objects.get(title="Status page")
    assert SECRET.findall(html.unescape(answer.content.decode())) == [made.secret]
    assert made.events == ["grant_began", "stop_pulled"]
    again = admin.post(REGISTER, given).content.decode()
    assert "This was done already" in again
    assert not SECRET.search(again)
    assert WebhookEndpoint.objects.filter(title="Status page").count() == 1


def test_what_the_form_lacks_is_said_beside_the_field(world: World, admin: Client) -> None:
    before = WebhookEndpoint.objects.count()
    answer = admin.post(REGISTER, {"title": "x", "url": "https://127.0.0.1/", "key": KEY})
    assert answer.status_code == 422
    text = html.unescape(answer.content.decode())
    assert "lies inside a private network" in text
    assert "no event is named" in text
    assert set(answer.context["form"].errors) == {"url", "events"}
    assert admin.post(REGISTER, {"title": "x", "url": "ftp://a.b/", "every": "on", "key": "none"}).status_code == 422
    assert WebhookEndpoint.objects.count() == before


def test_an_administrator_rotates_and_disables(world: World, admin: Client) -> None:
    endpoint = WebhookEndpoint.objects.get()
    old = endpoint.secret
    assert admin.get(at(endpoint, "rotate")).status_code == 302
    shown = SECRET.findall(html.unescape(admin.post(at(endpoint, "rotate"), {"key": KEY}).content.decode()))
    assert shown == [endpoint.reload().secret]
    assert shown != [old]
    assert not SECRET.search(admin.post(at(endpoint, "rotate"), {"key": KEY}).content.decode())
    answer = admin.post(at(endpoint, "disable"), follow=True)
    assert "The webhook is told nothing more." in answer.content.decode()
    text = read(admin, at(endpoint))
    assert "disabled" in text
    assert "Make a new secret" not in text
    answer = admin.post(at(endpoint, "rotate"), {"key": KEY.replace("0b", "0c")}, follow=True)
    assert "Nothing was changed" in answer.content.decode()


def test_an_auditor_sees_the_pages_without_buttons_and_may_do_nothing(world: World, console: Client) -> None:
    message, endpoint = given_up(), WebhookEndpoint.objects.get()
    assert "Send it again" not in read(console, at(message))
    assert "Make a new secret" not in read(console, at(endpoint))
    entries = LedgerEntry.objects.count()
    for address in (at(message, "replay"), at(endpoint, "rotate"), at(endpoint, "disable"), REGISTER):
        assert console.post(address, {"key": KEY}).status_code == 403
        assert console.get(address).status_code == 403
    assert (given_up(), endpoint.reload().disabled_at, LedgerEntry.objects.count()) == (message, None, entries)


def test_without_a_role_nothing_is_shown_and_without_a_session_nothing_is_there(world: World) -> None:
    client = Client()
    message, endpoint = given_up(), WebhookEndpoint.objects.get()
    addresses = (NOTICES, WEBHOOKS, REGISTER, at(message), at(endpoint), at(message, "replay"), at(endpoint, "rotate"))
    for address in addresses:
        assert client.get(address).status_code == 302
    client.force_login(create_person(actor=system_job("tests"), name="Bob", email="bob@example.org", roles=[Role.SECURITY]))
    for address in addresses:
        assert client.get(address).status_code == 403


def test_acting_needs_the_form_s_token(world: World, admin: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    assert strict.post(at(given_up(), "replay")).status_code == 403
    assert given_up().status == "dead"


def test_rows_that_are_not_there_are_not_found(world: World, admin: Client) -> None:
    for name in ("outboxmessage_replay", "webhookendpoint_rotate", "webhookendpoint_disable"):
        assert admin.post(reverse(f"admin:compliance_{name}", args=[10**9])).status_code == 404


def test_the_lists_take_few_queries_however_long_they_are(world: World, console: Client) -> None:
    def count() -> list[int]:
        counts = []
        for address in (NOTICES, WEBHOOKS):
            with CaptureQueriesContext(connection) as queries:
                console.get(address)
            counts.append(len(queries))
        return counts

    few = count()
    for number in range(3):
        notify(world.user, cause=str(number))
    assert count() == few
    assert max(few) <= 8
