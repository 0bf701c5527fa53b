"""A source that falls silent is told of once, before what it vouched for grows too old; and comes back by itself."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from compliance.models import LedgerEntry, OutboxMessage
from compliance.services.people import create_person
from compliance.services.silence import watch_sources
from compliance.vocabulary import Role
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import SourceSchedule
from evaluations.services import fetching
from evaluations.services.refresh import refresh_source
from policies.models import Standing
from policies.services.rejudging import judge_everywhere
from tests.support import world
from tests.support.sources import Reply, SourceServer, scheduled, source_server, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[SourceServer]:
    settings.NOTICE_MAIL_URL = "mailto://sink.test"
    settings.REFRESH_HOST_RATE = 1000
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.01)
    create_person(actor=world.ACTOR, name="Stella", email="stella@example.org", roles=[Role.EVIDENCE_STEWARD])
    create_person(actor=world.ACTOR, name="Sam", email="sam@example.org", roles=[Role.SECURITY])
    with source_server() as served:
        settings.REFRESH_ALLOW = [served.place]
        yield served


def run(schedule: SourceSchedule) -> str:
    found = refresh_source(schedule.source_id, asked_by=world.ACTOR)
    assert found is not None
    return str(found.outcome)


def test_three_failures_in_a_row_alarm_stewards_once_and_a_success_ends_it(server: SourceServer) -> None:
    world.register("m")
    server.say("/results.csv", Reply(status=404))
    schedule = scheduled(server.url())
    for failures in (1, 2):
        assert run(schedule) == "failed"
        assert (watch_sources(), failures) == (0, schedule.reload().failed_runs)
    run(schedule)
    assert (watch_sources(), watch_sources()) == (1, 0)
    (message,) = OutboxMessage.objects.all()
    assert (message.kind, message.event_type) == ("source_failed", "org.writegate.source.failed.v1")
    assert "nothing is at the address" in message.text
    assert LedgerEntry.objects.filter(action="source.alarmed", target_id="lab").count() == 1
    server.say("/results.csv", Reply(table(m=84)))
    assert run(schedule) == "taken"
    assert schedule.reload().alarmed_at is None
    assert LedgerEntry.objects.filter(action="source.recovered", target_id="lab").count() == 1


def test_one_that_is_deferred_for_ever_is_silent_too_and_one_that_is_paused_is_not(server: SourceServer) -> None:
    scheduled(server.url(), interval_minutes=60)
    scheduled(server.url(), key="paused", paused=True)
    assert watch_sources() == 0
    assert watch_sources(at=now() + timedelta(minutes=136)) == 1
    assert "no refresh succeeded since" in OutboxMessage.objects.get().text


def test_one_failure_is_enough_where_evidence_is_about_to_be_too_old(server: SourceServer) -> None:
    (version,) = world.register("m")
    world.propose()
    server.say("/results.csv", Reply(table(m=84)))
    schedule = scheduled(server.url())
    assert run(schedule) == "taken"
    judge_everywhere(actor=world.ACTOR, subject_version_ids=[version.pk])
    server.say("/results.csv", Reply(status=404))
    assert run(schedule) == "failed"
    ages_at = now() + timedelta(days=2)
    with service_transaction("test"):
        assert Standing.objects.update(due_at=now() + timedelta(days=30)) == 1
    assert watch_sources() == 0
    with service_transaction("test"):
        Standing.objects.update(due_at=ages_at)
    assert watch_sources() == 1
    assert f"{ages_at:%Y-%m-%d %H:%M}" in OutboxMessage.objects.get().text
