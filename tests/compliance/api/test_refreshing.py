"""Schedules and refreshes over the API: who may, what is asked for once, and what a run tells."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from compliance.models import LedgerEntry, User
from compliance.services.people import create_person, create_token
from compliance.vocabulary import Role
from evaluations.models import RefreshRun, SourceSchedule
from evaluations.services.refresh import refresh_source
from tests.compliance.api.world import V1, Api, World, with_token
from tests.support import world as small
from tests.support.sources import Reply, SourceServer, source, source_server, table

STATED = {"connector": "http", "address": "https://example.org/results.csv", "interval_minutes": 60}


@pytest.fixture
def steward(world: World) -> Api:
    source("fetched", title="Fetched")
    create_person(actor=small.ACTOR, name="Stella", email="stella@example.org", roles=[Role.EVIDENCE_STEWARD], is_staff=True)
    client = Client()
    client.force_login(User.objects.get(email="stella@example.org"))
    return Api(client)


@pytest.fixture
def server(settings: Any) -> Iterator[SourceServer]:
    settings.REFRESH_HOST_RATE = 1000
    with source_server() as served:
        settings.REFRESH_ALLOW = [served.place]
        yield served


def put(api: Api, body: Any, **headers: str) -> Any:
    sent = json.dumps(body).encode()
    return api.client.put(
        f"{V1}/sources/fetched/schedule", sent, content_type="application/json", headers={**api.headers, **headers}
    )


def refresh(api: Api, **headers: str) -> Any:
    return api.client.post(
        f"{V1}/sources/fetched/refresh", b"{}", content_type="application/json", headers={**api.headers, **headers}
    )


def test_a_schedule_is_stated_once_freely_and_then_by_what_was_seen(steward: Api) -> None:
    assert steward.get("sources/fetched/schedule").status_code == 404
    made = put(steward, STATED)
    assert (made.status_code, made.json()["set_by"]) == (200, f"person:{User.objects.get(email='stella@example.org').person_id}")
    assert steward.get("sources/fetched/schedule").headers["ETag"] == made.headers["ETag"]
    assert put(steward, STATED).status_code == 428
    changed = put(steward, {**STATED, "paused": True}, **{"If-Match": made.headers["ETag"]})
    assert (changed.status_code, changed.json()["paused_at"] is not None) == (200, True)
    assert put(steward, STATED, **{"If-Match": made.headers["ETag"]}).status_code == 412


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"address": "https://127.0.0.1/\n"}, "address"),
        ({"interval_minutes": 0}, "interval_minutes"),
        ({"secret": "x"}, "secret"),
    ],
)
def test_a_body_that_cannot_be_right_is_refused_with_its_field(steward: Api, change: dict[str, Any], field: str) -> None:
    refused = put(steward, {**STATED, **change})
    assert (refused.status_code, refused.json()["problems"][0]["field"]) == (400, field)
    assert not SourceSchedule.objects.exists()


def test_a_run_is_asked_for_by_a_key_and_tells_how_it_went(steward: Api, server: SourceServer) -> None:
    server.say("/results.csv", Reply(table(nobody=84)))
    assert refresh(steward).json()["code"] == "not_scheduled"
    put(steward, {**STATED, "address": server.url()})
    asked = refresh(steward, **{"Idempotency-Key": "one"})
    assert (asked.status_code, asked.json()["outcome"], asked.json()["cause"]) == (202, "queued", "")
    path = asked.headers["Location"].rpartition("/api/v1/")[2]
    refresh_source(SourceSchedule.objects.get().source_id)
    again = refresh(steward, **{"Idempotency-Key": "one"})
    assert (again.status_code, again.json()["uid"], RefreshRun.objects.count()) == (202, asked.json()["uid"], 1)
    told = steward.get(path).json()
    assert told["outcome"] in ("taken", "failed")
    assert told["ended_at"] is not None
    listed = steward.get("refresh-runs", {"source": "fetched"}).json()
    assert [run["uid"] for run in listed["results"]] == [told["uid"]]
    assert steward.get("refresh-runs", {"outcome": "running"}).json()["results"] == []
    assert LedgerEntry.objects.filter(action="refresh_run.opened").count() == 1


def test_a_token_states_no_schedule_unless_its_person_keeps_sources(world: World, steward: Api) -> None:
    other = create_person(actor=small.ACTOR, name="Sam", email="sam@example.org", roles=[Role.SECURITY], is_staff=True)
    for person, status in ((User.objects.get(email="stella@example.org").person, 200), (other.person, 403)):
        token = create_token(actor=small.ACTOR, name="ci", scopes=["submit_evidence"], person=person)
        assert put(with_token(token.secret), STATED).status_code == status
