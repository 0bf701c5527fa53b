"""Webhooks and notices over the API: for administrators who are signed in, with every answer as the description says."""

import json
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from schemathesis.specs.openapi.schemas import OpenApiSchema

from compliance.models import LedgerEntry, OutboxMessage, User, WebhookEndpoint
from compliance.services.outbox import apply_bury
from compliance.services.people import create_person
from compliance.vocabulary import Role
from evaluations.kernel.actor import system_job
from evaluations.kernel.services import service_transaction
from tests.compliance.api.test_reading import ADMINISTERED
from tests.compliance.api.world import V1, Api, World, nobody
from tests.support.notices import notify

PLACE = "127.0.0.1:9"
WISH = {"url": f"http://{PLACE}/hook", "title": "Pager", "events": ["grant_suspended"]}


@pytest.fixture(autouse=True)
def _wires(settings) -> None:
    settings.WEBHOOK_ALLOW = [PLACE]
    settings.NOTICE_MAIL_URL = "mailto://sink.test"


def signed_in(*roles: Role, email: str = "root@example.org", **options: Any) -> Api:
    create_person(actor=system_job("tests"), name="Root", email=email, roles=roles)
    client = Client(**options)
    client.force_login(User.objects.get(email=email))
    return Api(client)


@pytest.fixture
def admin(world: World) -> Api:
    return signed_in(Role.ADMINISTRATOR)


@pytest.fixture
def described(world: World, monkeypatch: pytest.MonkeyPatch) -> OpenApiSchema:
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)
    return schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())


def send(api: Api, path: str, body: Any = b"", **headers: str) -> Any:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "application/json" if path == "webhooks" else "application/octet-stream"
    return api.client.post(f"{V1}/{path}", sent, content_type=kind, headers={**api.headers, **headers})


def dead(people: list[User]) -> OutboxMessage:
    """Return a notice to the first person that was given up."""
    notify(*people)
    message = OutboxMessage.objects.filter(channel="mail").first()
    with service_transaction("tests"):
        apply_bury(actor=system_job("tests"), messages=[message], reason="tried too often")
    return message


def addresses() -> dict[str, str]:
    """Return every address here, by the name of its route."""
    uid, notice = WebhookEndpoint.objects.get().uid, OutboxMessage.objects.filter(channel="mail").first().uid
    return {
        "notices": "notices",
        "notice": f"notices/{notice}",
        "notice-replay": f"notices/{notice}/replay",
        "webhooks": "webhooks",
        "webhook": f"webhooks/{uid}",
        "webhook-rotate-secret": f"webhooks/{uid}/rotate-secret",
        "webhook-disable": f"webhooks/{uid}/disable",
    }


def acts(name: str) -> bool:
    return name in {"notice-replay", "webhook-disable", "webhook-rotate-secret"}


def test_a_webhook_is_registered_read_rotated_and_disabled_and_its_secret_is_shown_once(admin: Api) -> None:
    made = send(admin, "webhooks", WISH)
    assert made.status_code == 201
    given = made.json()
    assert given["secret"].startswith("whsec_")
    assert (given["events"], given["url"], given["title"]) == (WISH["events"], WISH["url"], "Pager")
    path = f"webhooks/{given['uid']}"
    assert made.headers["Location"].endswith(f"{V1}/{path}")
    for answer in (admin.get(path), admin.get("webhooks")):
        assert answer.status_code == 200
        assert b"whsec_" not in answer.content
        assert b'"secret"' not in answer.content
    rotated = send(admin, f"{path}/rotate-secret").json()
    assert rotated["secret"] not in ("", given["secret"])
    assert rotated["previous_secret_until"]
    ended = send(admin, f"{path}/disable")
    assert (ended.status_code, b"whsec_" in ended.content) == (200, False)
    assert ended.json()["disabled_by"].startswith("person:")
    refused = send(admin, f"{path}/rotate-secret")
    assert (refused.status_code, refused.json()["code"]) == (409, "webhook_disabled")
    told = b"".join(bytes(entry.content) for entry in LedgerEntry.objects.all())
    assert b"whsec_" not in told


def test_a_key_makes_each_post_harmless_when_it_is_repeated(admin: Api, world: World) -> None:
    first, again = (send(admin, "webhooks", WISH, **{"Idempotency-Key": "k1"}) for _ in range(2))
    assert (again.status_code, again.json()["uid"], again.json()["secret"]) == (201, first.json()["uid"], None)
    other = send(admin, "webhooks", {**WISH, "title": "Other"}, **{"Idempotency-Key": "k1"})
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    path = f"webhooks/{first.json()['uid']}"
    secrets = [send(admin, f"{path}/rotate-secret", **{"Idempotency-Key": "k2"}).json()["secret"] for _ in range(2)]
    assert secrets[0]
    assert secrets[1] is None
    replay = f"notices/{dead([world.user]).uid}/replay"
    for _ in range(2):
        assert send(admin, replay, **{"Idempotency-Key": "k3"}).json()["status"] == "waiting"
    assert [send(admin, f"{path}/disable", **{"Idempotency-Key": "k4"}).status_code for _ in range(2)] == [200, 200]
    assert LedgerEntry.objects.filter(action__in=["webhook.disabled", "notice.replayed"]).count() == 2
    assert send(admin, f"{path}/disable", **{"Idempotency-Key": "bad key"}).status_code == 400


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{", ""),
        (b"\xff", ""),
        (b"[]", ""),
        ({**WISH, "secret": "mine"}, "secret"),
        ({**WISH, "url": 1}, "url"),
        ({**WISH, "title": None}, "title"),
        ({**WISH, "events": "grant_began"}, "events"),
        ({**WISH, "events": [1]}, "events"),
        ({**WISH, "events": []}, "events"),
        ({**WISH, "events": ["grant_eaten"]}, "events"),
        ({**WISH, "url": "https://127.0.0.1/"}, "url"),
        ({**WISH, "url": "http://example.org/"}, "url"),
    ],
)
def test_a_body_that_cannot_be_right_is_refused_by_field(admin: Api, body: Any, field: str) -> None:
    answer = send(admin, "webhooks", body)
    assert answer.status_code == 400
    assert [problem["field"] for problem in answer.json()["problems"]] == [field]
    assert not WebhookEndpoint.objects.exists()


def test_a_body_has_its_limit(admin: Api) -> None:
    assert send(admin, "webhooks", b'{"title": "' + b"x" * 20_000 + b'"}').status_code == 413
    assert admin.client.post(f"{V1}/webhooks", b"{}", content_type="text/plain").status_code == 415


def test_notices_are_listed_by_state_kind_and_channel_and_replayed(admin: Api, world: World) -> None:
    send(admin, "webhooks", WISH)
    message = dead([world.user])
    assert [row["uid"] for row in admin.get("notices", {"status": "dead"}).json()["results"]] == [str(message.uid)]
    assert len(admin.get("notices", {"kind": "grant_suspended"}).json()["results"]) == 2
    assert len(admin.get("notices", {"channel": "webhook"}).json()["results"]) == 1
    assert admin.get("notices", {"kind": "grant_began"}).json()["results"] == []
    assert admin.get("notices", {"status": "lost"}).status_code == 400
    shown = admin.get(f"notices/{message.uid}").json()
    assert (shown["type"], shown["last_error"]) == ("org.writegate.grant.suspended.v1", "tried too often")
    assert shown["recipient"] == f"person:{world.user.person_id}"
    assert shown["data"]["details"] == {"grant": "g-1"}
    assert send(admin, f"notices/{message.uid}/replay").json()["status"] == "waiting"
    again = send(admin, f"notices/{message.uid}/replay")
    assert (again.status_code, again.json()["code"]) == (409, "notice_not_dead")


def test_auditors_read_administrators_act_and_nobody_else_does_either(admin: Api, world: World, api: Api) -> None:
    send(admin, "webhooks", WISH)
    dead([world.user])
    paths = addresses()
    assert set(paths) == ADMINISTERED
    auditor = signed_in(Role.AUDITOR, email="auditor@example.org")
    others = [role for role in Role if role not in (Role.AUDITOR, Role.ADMINISTRATOR)]
    other = signed_in(*others, email="other@example.org")
    for name, path in paths.items():
        if not acts(name):
            assert (admin.get(path).status_code, auditor.get(path).status_code) == (200, 200), name
            assert (other.get(path).status_code, api.get(path).status_code, nobody().get(path).status_code) == (403, 403, 401)
        else:
            assert admin.get(path).status_code == 405
        if acts(name) or name == "webhooks":
            for who, status in ((auditor, 403), (other, 403), (api, 403), (nobody(), 401)):
                assert send(who, path, WISH if name == "webhooks" else b"").status_code == status, (name, status)
    assert WebhookEndpoint.objects.get().disabled_at is None
    assert api.get("webhooks").json()["detail"] == "no token may do this: it is for people who are signed in"


def test_a_session_needs_the_csrf_token_to_act(world: World) -> None:
    strict = signed_in(Role.ADMINISTRATOR, enforce_csrf_checks=True)
    assert send(strict, "webhooks", WISH).status_code == 403


def test_what_is_not_there_is_not_found(admin: Api) -> None:
    gone = "00000000-0000-0000-0000-000000000000"
    assert {admin.get(f"{kind}/{gone}").status_code for kind in ("notices", "webhooks")} == {404}
    for path in (f"notices/{gone}/replay", f"webhooks/{gone}/disable", f"webhooks/{gone}/rotate-secret"):
        assert send(admin, path).status_code == 404


def test_every_answer_is_as_the_schema_describes_it(described: OpenApiSchema, admin: Api, world: World) -> None:
    csrf = "x" * 32
    cookies = {"csrftoken": csrf, "sessionid": admin.client.cookies["sessionid"].value}

    def call(method: str, template: str, status: int, uid: str = "", **body: Any) -> None:
        operation = described[f"{V1}/{template}"][method]
        case = operation.Case(path_parameters={"uid": uid} if uid else {}, **body)
        answer = case.call(cookies=cookies, headers={"X-CSRFToken": csrf})
        assert answer.status_code == status, (template, answer.content)
        operation.validate_response(answer)

    call("POST", "webhooks", 201, body=WISH, media_type="application/json")
    dead([world.user])
    for name, path in addresses().items():
        parts = path.split("/")
        template = "/".join([parts[0], *(["{uid}", *parts[2:]] if len(parts) > 1 else [])])
        call("POST" if acts(name) else "GET", template, 200, *parts[1:2])
    call("POST", "notices/{uid}/replay", 409, str(OutboxMessage.objects.filter(channel="mail").first().uid))


def test_the_queries_of_a_list_do_not_grow_with_its_rows(admin: Api, world: World) -> None:
    send(admin, "webhooks", WISH)
    notify(world.user)

    def count(path: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert admin.get(path).status_code == 200
        return len(queries)

    before = [count("notices"), count("webhooks")]
    for number in range(3):
        send(admin, "webhooks", {**WISH, "title": f"Pager {number}"})
        notify(world.user, cause=str(number + 2))
    assert [count("notices"), count("webhooks")] == before == [4, 4]
