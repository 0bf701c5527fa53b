"""A grant that comes between a question to the conformance profile and its record."""

from typing import Any
from unittest.mock import patch

from compliance.models import Decision
from compliance.selectors.deciding.conformance import is_on
from compliance.vocabulary import Role
from policies.services.systems import register_system
from tests.compliance.api.authzen.conftest import FIXTURE
from tests.compliance.api.authzen.doors import CERTIFIED, Doors
from tests.support import signing, world
from tests.support.asking import ask_token
from tests.support.cluster import Database
from tests.support.crowds import crowd


def test_the_database_refuses_the_profile_s_answers_where_there_is_a_grant(committed_db: Database, settings: Any) -> None:
    asker = signing.human("Rita Asker", Role.REQUESTER)
    system = register_system(actor=world.ACTOR, key="hr-prod", title="HR", domain="hr", owner="hr")
    world.activate(world.propose_text((FIXTURE / "policy.yaml").read_bytes()))
    settings.CONFORMANCE = True
    settings.CONFORMANCE_ATTRIBUTES = str(FIXTURE / "attributes.json")
    doors = Doors(ask_token(asker))
    assert doors.decide(CERTIFIED) is True
    crowd(1, system, asker.person)
    assert not is_on()
    with patch("compliance.selectors.deciding.conformance.is_on", return_value=True):
        answer = doors.send("evaluation", CERTIFIED).json()
    assert answer["decision"] is False
    assert answer["context"]["reason"] == "cannot_record"
    assert Decision.objects.count() == 1
