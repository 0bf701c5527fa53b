"""Accounts: closed, opened and reset by administrators, and the holds on signing that a reset places."""

import json
import threading

import pytest
from allauth.mfa.models import Authenticator
from django.db import DatabaseError, connection, connections, transaction

from compliance.models import LedgerEntry, ServiceToken, SigningHold, User
from compliance.selectors.access import has_second_factor, held_signing_holds
from compliance.selectors.population import population_report
from compliance.services.accounts import (
    AccountActive,
    AccountNotActive,
    HoldLifted,
    OwnAccountRefused,
    SecondAdministratorNeeded,
    TeamExists,
    deactivate_account,
    end_token,
    lift_signing_hold,
    reactivate_account,
    register_person,
    register_team,
    reset_factors,
    reset_password,
    set_password,
)
from compliance.services.administration import AdministratorNeeded, LastAdministrator
from compliance.services.people import create_person, create_token
from evaluations.kernel.actor import Actor, person, system_job
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction
from tests.support.signing_in import give_totp

ACTOR = system_job("test")
OLD, NEW = "the first long sentence", "another long sentence"


@pytest.fixture
def people(committed_db, settings) -> dict[str, User]:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    roles = {"root": ["administrator"], "second": ["administrator"], "ada": ["security"]}
    return {
        name: create_person(actor=ACTOR, name=name, email=f"{name}@example.org", password=OLD, roles=held)
        for name, held in roles.items()
    }


def acting(user: User) -> Actor:
    return person(user.person_id)


def told(action: str) -> list[dict]:
    return [json.loads(bytes(entry.content))["new"] for entry in LedgerEntry.objects.filter(action=action).order_by("id")]


def is_held(user: User) -> bool:
    return held_signing_holds(person_ids=[user.person_id], at=now()) == {user.person_id}


def nothing_differs() -> bool:
    return not any(line.differing for line in population_report())


def test_an_account_is_closed_and_opened_with_its_reason(people) -> None:
    root, ada = people["root"], people["ada"]
    assert not deactivate_account(actor=acting(root), user=ada, reason=" left the company ").is_active
    assert not User.objects.get(pk=ada.pk).is_active
    assert told("account.deactivated") == [{"account": ada.pk, "reason": "left the company"}]
    with pytest.raises(AccountNotActive):
        deactivate_account(actor=acting(root), user=ada, reason="again")
    assert reactivate_account(actor=acting(root), user=ada, reason="came back").is_active
    with pytest.raises(AccountActive):
        reactivate_account(actor=acting(root), user=ada, reason="again")
    assert not is_held(ada)
    assert nothing_differs()


def test_the_last_administrator_cannot_be_closed_out(people) -> None:
    deactivate_account(actor=acting(people["root"]), user=people["second"], reason="left")
    with pytest.raises(LastAdministrator):
        deactivate_account(actor=acting(people["second"]), user=people["root"], reason="revenge")
    assert User.objects.get(pk=people["root"].pk).is_active


def test_a_reset_password_works_once_and_suspends_her_signing_until_another_confirms(people) -> None:
    root, second, ada = people["root"], people["second"], people["ada"]
    reset_password(actor=acting(root), user=ada, password=NEW)
    fresh = User.objects.get(pk=ada.pk)
    assert fresh.check_password(NEW)
    assert fresh.must_change_password
    assert NEW not in str([bytes(entry.content) for entry in LedgerEntry.objects.all()])
    assert is_held(ada)
    hold = SigningHold.objects.get()
    assert hold.placed_by == acting(root).reference
    for nobody, refusal in (
        (root, SecondAdministratorNeeded),
        (ada, AdministratorNeeded),
    ):
        with pytest.raises(refusal):
            lift_signing_hold(actor=acting(nobody), hold=hold)
        assert is_held(ada)
    assert lift_signing_hold(actor=acting(second), hold=hold).lifted_by == acting(second).reference
    assert not is_held(ada)
    assert held_signing_holds(person_ids=[ada.person_id], at=hold.placed_at) == {ada.person_id}, "it stood then"
    with pytest.raises(HoldLifted):
        lift_signing_hold(actor=acting(second), hold=hold)
    assert [item["code"] for item in told("signing_hold.refused")] == [
        "second_administrator_needed",
        "administrator_needed",
        "hold_lifted",
    ]
    assert nothing_differs()


def test_reset_factors_are_gone_and_suspend_her_signing(people) -> None:
    root, ada = people["root"], people["ada"]
    give_totp(ada)
    assert has_second_factor(user_id=ada.pk)
    reset_factors(actor=acting(root), user=ada, reason="lost her phone")
    assert not Authenticator.objects.exists()
    assert told("factor.reset") == [{"account": ada.pk, "reason": "lost her phone", "removed": 1, "types": ["totp"]}]
    assert is_held(ada)
    assert nothing_differs()


def test_an_administrator_who_is_reset_does_not_confirm_it_herself(people) -> None:
    reset_factors(actor=acting(people["root"]), user=people["second"], reason="lost her phone")
    with pytest.raises(SecondAdministratorNeeded):
        lift_signing_hold(actor=acting(people["second"]), hold=SigningHold.objects.get())
    assert is_held(people["second"])


def test_a_password_set_by_anybody_else_places_a_hold_by_whatever_road_and_ones_own_does_not(people) -> None:
    ada = people["ada"]
    set_password(actor=acting(ada), user=ada, password=NEW, must_change_password=False)
    assert not is_held(ada)
    set_password(actor=system_job("shell"), user=ada, password=OLD, must_change_password=True)
    assert is_held(ada)


def token_of(user: User) -> ServiceToken:
    return create_token(actor=ACTOR, name="ci", scopes=["read"], person=user.person).token


def test_a_token_is_revoked_with_its_reason_and_a_team_is_registered_once(people) -> None:
    token = end_token(actor=acting(people["root"]), token=token_of(people["ada"]), reason="it leaked")
    assert not token.is_live(now())
    assert told("token.revoked") == [{"name": "ci", "reason": "it leaked"}]
    register_team(actor=acting(people["root"]), key="hr-platform", title="HR platform")
    with pytest.raises(TeamExists):
        register_team(actor=acting(people["root"]), key="hr-platform", title="Another")
    with pytest.raises(InputRefused):
        register_team(actor=acting(people["root"]), key="HR platform", title="Another")
    assert told("team.registered") == [{"title": "HR platform"}]


ACTS = {
    "team": lambda actor, user: register_team(actor=actor, key="new", title="New"),
    "token": lambda actor, user: end_token(actor=actor, token=token_of(user), reason="r"),
    "register": lambda actor, user: register_person(actor=actor, name="New", email="new@example.org", password=NEW),
    "deactivate": lambda actor, user: deactivate_account(actor=actor, user=user, reason="r"),
    "reactivate": lambda actor, user: reactivate_account(actor=actor, user=user, reason="r"),
    "password": lambda actor, user: reset_password(actor=actor, user=user, password=NEW),
    "factors": lambda actor, user: reset_factors(actor=actor, user=user, reason="r"),
}


@pytest.mark.parametrize("act", ACTS)
def test_only_an_administrator_acts_and_never_on_herself(people, act: str) -> None:
    with pytest.raises(AdministratorNeeded):
        ACTS[act](acting(people["ada"]), people["second"])
    with pytest.raises(AdministratorNeeded):
        ACTS[act](ACTOR, people["second"])
    if act not in ("register", "team", "token"):
        with pytest.raises(OwnAccountRefused):
            ACTS[act](acting(people["root"]), people["root"])
    assert not SigningHold.objects.exists()
    assert User.objects.filter(is_active=True).count() == 3
    assert User.objects.get(pk=people["second"].pk).check_password(OLD)


@pytest.mark.parametrize("act", [deactivate_account, reactivate_account, reset_factors])
def test_an_act_without_a_reason_is_refused(people, act) -> None:
    for reason in ("  ", "x" * 501):
        with pytest.raises(InputRefused, match="reason"):
            act(actor=acting(people["root"]), user=people["ada"], reason=reason)


@pytest.mark.parametrize("password", ["short", "123456789012345", "password1234"])
def test_a_one_time_password_keeps_the_rules_of_all(people, password: str) -> None:
    with pytest.raises(InputRefused):
        reset_password(actor=acting(people["root"]), user=people["ada"], password=password)
    assert not is_held(people["ada"])


@pytest.mark.parametrize("lifter", ["the placer", "herself", "nobody"])
def test_the_database_refuses_a_hold_lifted_by_the_wrong_one(people, lifter: str) -> None:
    reset_factors(actor=acting(people["root"]), user=people["ada"], reason="lost")
    by = {"the placer": acting(people["root"]).reference, "herself": acting(people["ada"]).reference, "nobody": ""}[lifter]
    with pytest.raises(DatabaseError, match="signing_hold"), service_transaction("test"):
        SigningHold.objects.update(lifted_by=by, lifted_at=now())
    assert is_held(people["ada"])


def test_an_account_that_is_being_closed_waits_for_who_signs_by_it(people) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM compliance_user WHERE id = %s FOR SHARE", [people["ada"].pk])
        with pytest.raises(DatabaseError, match="lock"):
            _close_elsewhere(people["root"], people["ada"])
    assert User.objects.get(pk=people["ada"].pk).is_active
    deactivate_account(actor=acting(people["root"]), user=people["ada"], reason="left")


def _close_elsewhere(root: User, user: User) -> None:
    """Close the account from another thread's connection, which waits a tenth of a second for a lock and no longer."""
    found: list[BaseException] = []

    def close() -> None:
        try:
            with connections["default"].cursor() as cursor:
                cursor.execute("SET lock_timeout = '100ms'")
            deactivate_account(actor=acting(root), user=user, reason="left")
        except DatabaseError as error:
            found.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=close)
    thread.start()
    thread.join(timeout=30)
    if found:
        raise found[0]
