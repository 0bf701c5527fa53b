"""Roles: who may give and end them, and what is left on record."""

import json
import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connections

from compliance.models import LedgerEntry, RoleMembership, User
from compliance.selectors.access import live_roles
from compliance.selectors.population import population_report
from compliance.services.administration import AdministratorNeeded, LastAdministrator
from compliance.services.people import create_person, create_team, create_token
from compliance.services.roles import OwnRoleRefused, RoleEnded, RoleHeld, end_role, give_role
from evaluations.kernel.actor import person, service, system_job
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, InputRefused

ACTOR = system_job("test")


def somebody(name: str, *roles: str) -> User:
    return create_person(actor=ACTOR, name=name, email=f"{name}@example.org".lower(), roles=roles)


@pytest.fixture
def people(committed_db) -> dict[str, User]:
    return {"root": somebody("Root", "administrator"), "ada": somebody("Ada"), "bob": somebody("Bob", "auditor")}


def acting(user: User):
    return person(user.person_id)


def words_of(user: User) -> list[str]:
    return [membership.role for membership in live_roles(person_id=user.person_id, at=now())]


def told(action: str) -> list[dict]:
    return [json.loads(bytes(entry.content))["new"] for entry in LedgerEntry.objects.filter(action=action).order_by("id")]


def test_an_administrator_gives_a_role_for_a_team_and_a_time_and_ends_it(people) -> None:
    team, until = create_team(actor=ACTOR, key="hr", title="HR"), now() + timedelta(days=3)
    given = give_role(
        actor=acting(people["root"]), person=people["ada"].person, role="system_owner", team=team, ends_at=until, request_id="r1"
    )
    assert given.given_by == acting(people["root"]).reference
    assert words_of(people["ada"]) == ["system_owner"]
    assert live_roles(person_id=people["ada"].person_id, at=until) == [], "the end is read at the moment of use"
    assert live_roles(person_id=people["ada"].person_id, at=given.starts_at - timedelta(seconds=1)) == []
    ended = end_role(actor=acting(people["root"]), membership=given, reason="she left the team")
    assert ended.ends_at <= now()
    assert words_of(people["ada"]) == []
    assert told("role.ended")[0]["reason"] == "she left the team"
    assert {line.table for line in population_report() if line.differing} == set()


def test_a_role_given_by_a_token_is_given_by_the_person_behind_it(people) -> None:
    made = create_token(actor=ACTOR, name="t", scopes=["read"], person=people["root"].person)
    behind = service(made.token.pk, on_behalf_of=acting(people["root"]))
    assert give_role(actor=behind, person=people["ada"].person, role="security").given_by == acting(people["root"]).reference
    with pytest.raises(OwnRoleRefused):
        give_role(actor=behind, person=people["root"].person, role="security")


@pytest.mark.parametrize(
    ("by", "to", "changes", "refusal"),
    [
        ("bob", "ada", {}, AdministratorNeeded),
        ("root", "root", {}, OwnRoleRefused),
        ("root", "bob", {"role": "auditor"}, RoleHeld),
        ("root", "ada", {"role": "emperor"}, InputRefused),
        ("root", "ada", {"ends_at": now() - timedelta(days=1)}, InputRefused),
    ],
)
def test_a_role_that_may_not_be_given_is_refused_and_the_refusal_recorded(people, by, to, changes, refusal) -> None:
    before = RoleMembership.objects.count()
    with pytest.raises(refusal):
        give_role(actor=acting(people[by]), person=people[to].person, **{"role": "security", **changes})
    assert RoleMembership.objects.count() == before
    assert told("role.refused")[0]["code"] == refusal.code


def test_only_people_who_hold_the_role_now_are_administrators(people) -> None:
    for nobody in (system_job("cron"), person(uuid.uuid4()), service("x")):
        with pytest.raises(AdministratorNeeded):
            give_role(actor=nobody, person=people["ada"].person, role="security")
    deputy = give_role(actor=acting(people["root"]), person=people["bob"].person, role="administrator")
    assert give_role(actor=acting(people["bob"]), person=people["ada"].person, role="security")
    end_role(actor=acting(people["root"]), membership=deputy)
    with pytest.raises(AdministratorNeeded):
        give_role(actor=acting(people["bob"]), person=people["ada"].person, role="auditor")


def test_a_role_ends_once_and_the_last_administrator_stays(people) -> None:
    membership = RoleMembership.objects.get(person=people["bob"].person)
    end_role(actor=acting(people["root"]), membership=membership)
    with pytest.raises(RoleEnded):
        end_role(actor=acting(people["root"]), membership=membership)
    with pytest.raises(LastAdministrator):
        end_role(actor=acting(people["root"]), membership=RoleMembership.objects.get(person=people["root"].person))


@pytest.mark.parametrize("round_", range(10))
def test_two_administrators_who_end_each_other_at_once_leave_one(people, round_: int) -> None:
    give_role(actor=acting(people["root"]), person=people["bob"].person, role="administrator")
    held = {item.person_id: item for item in RoleMembership.objects.filter(role="administrator")}
    start, outcomes = threading.Barrier(2), []

    def end(by: User, other: User) -> None:
        start.wait()
        try:
            end_role(actor=acting(by), membership=held[other.person_id])
            outcomes.append("ended")
        except DomainError as refused:
            outcomes.append(refused.code)
        finally:
            connections.close_all()

    pairs = [("root", "bob"), ("bob", "root")]
    threads = [threading.Thread(target=end, args=(people[by], people[other])) for by, other in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert outcomes.count("ended") == 1
    assert sum("administrator" in words_of(user) for user in people.values()) == 1


def test_the_same_role_given_twice_at_once_is_held_once(people) -> None:
    start, outcomes = threading.Barrier(4), []

    def give() -> None:
        start.wait()
        try:
            give_role(actor=acting(people["root"]), person=people["ada"].person, role="security")
            outcomes.append("given")
        except RoleHeld:
            outcomes.append("held")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=give) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(outcomes) == ["given", "held", "held", "held"]
    assert words_of(people["ada"]) == ["security"]
