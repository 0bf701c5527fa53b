"""The conformance profile where it has no say: switched off, or beside a grant."""

from typing import Any

import pytest
from django.db import connection

from compliance import checks
from compliance.models import Decision
from compliance.selectors.deciding.conformance import is_on
from policies.models import PolicyVersion
from tests.compliance.api.authzen.conftest import FIXTURE
from tests.compliance.api.authzen.doors import CERTIFIED, Doors, findings, obstacles, question
from tests.support import signing, world

SEARCHES = ("subject", "resource", "action")


@pytest.fixture
def in_force(granted: signing.Ground) -> PolicyVersion:
    """The certification's policy in force beside a grant, with the profile off."""
    version = world.propose_text((FIXTURE / "policy.yaml").read_bytes())
    world.activate(version)
    return version


def reasons(doors: Doors) -> list[str]:
    answer = doors.send("evaluation", CERTIFIED).json()
    assert answer["decision"] is False
    return [reason["code"] for reason in answer["context"]["reasons"]]


def test_switched_off_its_policies_are_not_asked(doors: Doors, in_force: PolicyVersion) -> None:
    assert reasons(doors) == ["unknown_resource_type", "unknown_subject", "no_grant"]
    assert [doors.found(sought, CERTIFIED) for sought in SEARCHES] == [[], [], []]
    assert doors.decide(question()) is True


def test_where_there_is_a_grant_it_is_off_whatever_is_set(doors: Doors, in_force: PolicyVersion, settings: Any) -> None:
    settings.CONFORMANCE = True
    settings.CONFORMANCE_ATTRIBUTES = str(FIXTURE / "attributes.json")
    assert not is_on()
    assert reasons(doors) == ["unknown_resource_type", "unknown_subject", "no_grant"]
    assert [doors.found(sought, CERTIFIED) for sought in SEARCHES] == [[], [], []]
    assert doors.decide(question()) is True


def test_its_policies_cannot_be_brought_into_force(granted: signing.Ground) -> None:
    assert "conformance_profile" in obstacles(world.propose_text((FIXTURE / "policy.yaml").read_bytes()))


def test_it_does_not_start_on_a_database_that_holds_a_grant(granted: signing.Ground, settings: Any) -> None:
    assert findings() == []
    settings.CONFORMANCE = True
    assert findings() == ["compliance.E005"]
    assert checks.check_conformance(None, databases=None) == []


def test_nothing_else_reads_what_is_claimed(doors: Doors, granted: signing.Ground) -> None:
    body = question()
    claims = {"role": "admin", "granted": True}
    doors.send("evaluation", {**body, "subject": {**body["subject"], "properties": claims}})
    assert b"admin" not in bytes(Decision.objects.get().body.content)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM compliance_decision WHERE conformance")
        assert cursor.fetchone() == (0,)
