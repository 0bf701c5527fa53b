"""Offline bundles while others act: one state of the database each, made once, and never behind what was committed before."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from compliance.ledger.offline import read_statement
from compliance.models import LedgerEntry
from compliance.services import offline
from compliance.services.sealing import seal
from compliance.services.stopping import revoke_grant
from evaluations.models import Subject
from evaluations.services.pacing import session_lock
from evaluations.services.subjects import register_subject_version
from tests.support import grants, signing, world
from tests.support.asking import ask_token
from tests.support.crowds import crowd
from tests.support.offline import bundle_for, named
from tests.support.racing import Racers, racers


@pytest.fixture
def land(committed_db) -> signing.Ground:
    found = signing.ground()
    seal()
    return found


@pytest.fixture
def race(land: signing.Ground) -> Iterator[Racers]:
    with racers(4) as made:
        yield made


def test_a_list_is_of_one_instant_however_long_it_takes(
    land: signing.Ground, race: Racers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two change while a list is made: one who was looked at already, and one who was not. It shows neither change, the next both."""
    crowd(3, land.system, land.asker.person)
    token = ask_token(land.asker)
    read, seen = offline.read_asked, []

    def read_then_change(*given: Any, **more: Any) -> Any:
        found = read(*given, **more)
        seen.append(len(given[0]))
        if len(seen) == 2:
            for key in ("crowd-0", "crowd-2"):
                subject = Subject.objects.get(key=key)
                (done,) = race.run(partial(register_subject_version, actor=world.ACTOR, subject=subject, pin={"snapshot": "b"}))
                assert not done.refused
        return found

    monkeypatch.setattr(offline, "BATCH", 1)
    monkeypatch.setattr(offline, "read_asked", read_then_change)
    first = read_statement(bytes(bundle_for(token, land.system).payload))
    assert named(first) == [f"crowd-{number}@1 write" for number in range(3)]
    second = read_statement(bytes(bundle_for(token, land.system).payload))
    assert (named(second), second.serial > first.serial) == (["crowd-1@1 write"], True)


def test_a_revocation_is_in_every_bundle_that_is_asked_for_after_it(land: signing.Ground, race: Racers) -> None:
    token = ask_token(land.asker)
    for _ in range(5):
        opened = grants.glass(land)
        assert named(read_statement(bytes(bundle_for(token, land.system).payload))) == ["model-a@1 write"]
        revokes = partial(revoke_grant, actor=signing.actor_of(land.security), grant=opened.grant, reason="enough")
        outcomes = race.run(revokes, *[partial(bundle_for, token, land.system)] * 3)
        assert {outcome.refused for outcome in outcomes} <= {"", "offline_bundle_under_way"}
        assert named(read_statement(bytes(bundle_for(token, land.system).payload))) == []


def test_those_who_ask_at_once_get_one_bundle(land: signing.Ground, race: Racers) -> None:
    crowd(20, land.system, land.asker.person)
    token = ask_token(land.asker)
    outcomes = race.run(*[partial(bundle_for, token, land.system)] * 4)
    assert len({outcome.value.serial for outcome in outcomes if not outcome.refused}) == 1
    assert LedgerEntry.objects.filter(action="offline_bundle.made").count() == 1


def test_who_comes_while_one_is_being_made_is_asked_to_come_again(
    land: signing.Ground, race: Racers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline, "WAIT_SECONDS", 0.1)
    token = ask_token(land.asker)
    with session_lock("offline bundle hr-prod") as held:
        assert held
        (outcome,) = race.run(partial(bundle_for, token, land.system))
    assert outcome.refused == "offline_bundle_under_way"
    assert offline.BundleUnderWay.wait == 1
    bundle_for(token, land.system)
