"""The page of a source: its schedule and runs for everybody, stating and refreshing for those who keep evidence."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from compliance.models import RoleMembership
from compliance.vocabulary import Role
from evaluations.kernel.services import service_transaction
from evaluations.models import RefreshRun, Source, SourceSchedule
from evaluations.services.refresh import refresh_source
from tests.compliance.admin.world import World
from tests.support import world as small

STATED = {"connector": "http", "address": "https://127.0.0.1/results.csv", "interval_minutes": "90"}


def address(word: str) -> str:
    return reverse(f"admin:evaluations_source_{word}", args=[Source.objects.order_by("pk")[0].pk])


@pytest.fixture
def steward(world: World, console: Client) -> Client:
    """The signed-in person keeps evidence now."""
    with service_transaction("tests"):
        RoleMembership.objects.create(person=world.user.person, role=Role.EVIDENCE_STEWARD, given_by="tests")
    return console


def seen(client: Client) -> str:
    found = re.search(r'name="seen" value="([^"]+)"', client.get(address("schedule")).content.decode())
    assert found is not None
    return found[1]


def test_everybody_sees_the_schedule_and_only_those_who_keep_evidence_its_buttons(world: World, console: Client) -> None:
    text = console.get(address("change")).content.decode()
    assert "its evidence is handed in" in text
    assert "The source has not been refreshed yet." in text
    assert "Refresh now" not in text
    assert "State a schedule" not in text
    for word in ("schedule", "refresh"):
        assert console.post(address(word)).status_code == 403


def test_a_schedule_is_stated_and_the_source_refreshed_now(world: World, steward: Client) -> None:
    assert "State a schedule" in steward.get(address("change")).content.decode()
    answer = steward.post(address("schedule"), {**STATED, "seen": seen(steward)})
    assert (answer.status_code, answer.headers["Location"]) == (302, address("change"))
    schedule = SourceSchedule.objects.get()
    assert (schedule.interval_minutes, schedule.set_by) == (90, f"person:{world.user.person_id}")
    asked = steward.post(address("refresh"))
    run = RefreshRun.objects.get()
    assert asked.headers["Location"] == reverse("admin:evaluations_refreshrun_change", args=[run.pk])
    assert "queued" in steward.get(asked.headers["Location"]).content.decode()
    refresh_source(schedule.source_id, asked_by=small.ACTOR)
    text = steward.get(address("change")).content.decode()
    assert "the address may not be asked" in text
    assert "lies inside a private network" in text
    assert "failing" in text
    listed = steward.get(reverse("admin:evaluations_refreshrun_changelist")).content.decode()
    assert "the address may not be asked" in listed


def test_what_is_refused_stands_beside_its_field_and_a_form_that_is_late_changes_nothing(world: World, steward: Client) -> None:
    late = seen(steward)
    refused = steward.post(address("schedule"), {**STATED, "address": "http://example.org/", "seen": late})
    assert refused.status_code == 422
    assert "only https is asked" in refused.content.decode()
    assert steward.post(address("schedule"), {**STATED, "seen": late}).status_code == 302
    again = steward.post(address("schedule"), {**STATED, "interval_minutes": "5", "seen": late})
    assert (again.status_code, "was changed since this page was opened" in again.content.decode()) == (422, True)
    assert SourceSchedule.objects.get().interval_minutes == 90
