"""`/healthz` and `/readyz`: asked by machines, without a login."""

from datetime import timedelta

import pytest
from django.db import connections
from django.db.utils import OperationalError
from django.test import Client

from compliance import tasks
from compliance.models import ServiceBeat
from compliance.selectors import health
from compliance.services.beats import record_beat
from evaluations.kernel.clock import now

PARTS = ["database", "migrations", "worker", "scheduler"]


@pytest.fixture
def beating(db: None) -> None:
    for name in health.BEATING:
        record_beat(name=name, beat_at=now())


def test_healthz_answers_without_a_database(client: Client) -> None:
    # No database mark: pytest-django lets this test open no connection.
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"ok": True})


def test_readyz_is_200_when_every_part_is_ok(client: Client, beating: None) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["ok"] is True
    assert list(answer.json()["checks"]) == PARTS
    for part in answer.json()["checks"].values():
        assert set(part) == {"ok", "age_seconds"}
        assert 0 <= part["age_seconds"] < 5
    assert "no-store" in answer.headers["Cache-Control"]


@pytest.mark.django_db
def test_a_service_never_heard_of_is_not_ready(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["worker"] == {"ok": False, "age_seconds": None, "problem": "never heard of"}


@pytest.mark.parametrize("name", ["worker", "scheduler"])
@pytest.mark.parametrize(("age", "status"), [(30, 200), (40, 503)])
def test_a_service_not_heard_of_for_long_is_not_ready(client: Client, beating: None, name: str, age: int, status: int) -> None:
    ServiceBeat.objects.filter(name=name).update(beat_at=now() - timedelta(seconds=age))
    answer = client.get("/readyz")
    assert answer.status_code == status
    part = answer.json()["checks"][name]
    assert part["ok"] is (status == 200)
    assert age <= part["age_seconds"] < age + 5


def test_a_missing_migration_is_not_ready(client: Client, beating: None, monkeypatch: pytest.MonkeyPatch) -> None:
    known = health.known_migrations() | {("compliance", "9999_of_tomorrow")}
    monkeypatch.setattr(health, "known_migrations", lambda: known)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["migrations"]["problem"] == "1 migrations are not applied"


def test_a_database_that_does_not_answer_is_told_without_its_address(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("connection to server at db.internal, user writegate_runtime, failed")

    monkeypatch.setattr(connections["default"], "cursor", refuse)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["database"] == {"ok": False, "age_seconds": None, "problem": "does not answer"}
    assert [part["ok"] for part in answer.json()["checks"].values()] == [False] * 4
    assert b"internal" not in answer.content
    assert b"runtime" not in answer.content


@pytest.mark.parametrize("address", ["/healthz", "/readyz"])
def test_only_reading_is_allowed(client: Client, db: None, address: str) -> None:
    assert client.head(address).status_code in (200, 503)
    assert client.post(address).status_code == 405


@pytest.mark.django_db
def test_the_beat_task_speaks_for_worker_and_scheduler() -> None:
    sent_at = now() - timedelta(seconds=7)
    tasks.beat.apply(headers={"sent_at": sent_at.isoformat()}, throw=True)
    beats = dict(ServiceBeat.objects.values_list("name", "beat_at"))
    assert beats["scheduler"] == sent_at
    assert beats["worker"] - sent_at >= timedelta(seconds=7)


@pytest.mark.django_db
def test_a_late_beat_never_makes_a_service_look_older() -> None:
    newer, older = now(), now() - timedelta(minutes=5)
    record_beat(name="scheduler", beat_at=newer)
    record_beat(name="scheduler", beat_at=older)
    assert ServiceBeat.objects.get(name="scheduler").beat_at == newer
