"""What administrators do on a person's page: each act by its own page, for them alone."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from compliance.admin.acts import ACTS
from compliance.models import LedgerEntry, RoleMembership, SigningHold, Team, User
from compliance.services.people import create_person, create_token
from evaluations.kernel.actor import person, system_job
from tests.compliance.admin.world import EMAIL, PASSWORD, build_person
from tests.support import signing_in as pages
from tests.support.signing_in import give_totp

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_passwords")]
ACTOR = system_job("test")


@pytest.fixture
def quick_passwords(settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def root(quick_passwords) -> User:
    return create_person(actor=ACTOR, name="Root", email="root@example.org", password=PASSWORD, roles=["administrator"])


@pytest.fixture
def ada(quick_passwords) -> User:
    return build_person()


@pytest.fixture
def console(root: User) -> Client:
    client = Client()
    client.force_login(root)
    return client


def row_of(key: str, user: User) -> object:
    """Return what an act on this person is about, made where it is not there yet."""
    if key == "lift-hold":
        return SigningHold.objects.filter(person=user.person).first() or _hold(user)
    if key == "revoke-token":
        held = user.person.tokens.first()
        return held or create_token(actor=ACTOR, name="ci", scopes=["read"], person=user.person).token
    return {"give-role": user.person, "end-role": user.person.roles.first()}.get(key, user)


def _hold(user: User) -> SigningHold:
    other = create_person(actor=ACTOR, name="Other", email="other@example.org", roles=["administrator"])
    client = Client()
    client.force_login(other)
    client.post(ACTS["reset-factors"].address(user.person, user), {"reason": "lost"})
    return SigningHold.objects.get(person=user.person)


def page_of(user: User) -> str:
    return reverse("admin:compliance_person_change", args=[user.person_id])


GIVEN = {"give-role": {"role": "security"}}
RECORDED = {
    "give-role": "role.given",
    "end-role": "role.ended",
    "deactivate": "account.deactivated",
    "reactivate": "account.reactivated",
    "reset-password": "password.changed",
    "reset-factors": "factor.reset",
    "lift-hold": "signing_hold.lifted",
    "revoke-token": "token.revoked",
}


@pytest.mark.parametrize("key", ACTS)
def test_each_act_asks_first_then_does_it_once_and_leads_back(console: Client, root: User, ada: User, key: str) -> None:
    if key == "reactivate":
        console.post(ACTS["deactivate"].address(ada.person, ada), {"reason": "left"})
    address = ACTS[key].address(ada.person, row_of(key, ada))
    before = LedgerEntry.objects.filter(action=RECORDED[key]).count()
    asked = console.get(address)
    assert asked.status_code == 200
    assert ACTS[key].button in asked.content.decode()
    assert LedgerEntry.objects.filter(action=RECORDED[key]).count() == before, "asking changes nothing"
    done = console.post(address, {"reason": "as she asked", **GIVEN.get(key, {})})
    if key == "reset-password":
        assert "no-store" in done["Cache-Control"]
        ada.refresh_from_db()
        assert ada.check_password(done.context["password"])
    else:
        assert done["Location"] == page_of(ada)
    entry = LedgerEntry.objects.filter(action=RECORDED[key]).order_by("-id").first()
    assert LedgerEntry.objects.filter(action=RECORDED[key]).count() == before + 1
    assert entry.actor == person(root.person_id).reference
    if key in {"end-role", "deactivate", "reactivate", "reset-factors", "revoke-token"}:
        assert json.loads(bytes(entry.content))["new"]["reason"] == "as she asked"


@pytest.mark.parametrize("key", ACTS)
@pytest.mark.parametrize("method", ["get", "post"])
def test_nobody_else_acts(ada: User, root: User, key: str, method: str) -> None:
    address = ACTS[key].address(ada.person, row_of(key, ada))
    before = LedgerEntry.objects.count()
    client = Client()
    client.force_login(ada)
    answer = getattr(client, method)(address, {"reason": "mine", **GIVEN.get(key, {})})
    assert answer.status_code == 403
    assert LedgerEntry.objects.count() == before
    anybody = getattr(Client(), method)(address)
    assert anybody["Location"].startswith(reverse("admin:login"))


@pytest.mark.parametrize("key", ["give-role", "deactivate", "reset-password", "reset-factors"])
def test_an_administrator_who_acts_on_herself_is_told_why_not(console: Client, root: User, key: str) -> None:
    answer = console.post(ACTS[key].address(root.person, row_of(key, root)), {"reason": "mine", **GIVEN.get(key, {})})
    assert answer.status_code == 403
    assert "ask another administrator" in answer.content.decode()


def test_a_hold_is_not_lifted_by_the_one_who_placed_it(console: Client, ada: User) -> None:
    console.post(ACTS["reset-factors"].address(ada.person, ada), {"reason": "lost"})
    hold = SigningHold.objects.get()
    answer = console.post(ACTS["lift-hold"].address(ada.person, hold))
    assert answer.status_code == 409
    assert "another administrator" in answer.content.decode()
    assert SigningHold.objects.get().lifted_at is None


@pytest.mark.parametrize("given", [{"role": "emperor"}, {"role": "security", "ends_at": "2001-01-01 00:00"}, {}])
def test_what_a_form_refuses_is_said_beside_its_field(console: Client, ada: User, given: dict) -> None:
    answer = console.post(ACTS["give-role"].address(ada.person, ada.person), given)
    assert answer.status_code == 422
    assert answer.context["form"].errors
    assert not RoleMembership.objects.filter(role="security").exists()


def test_a_row_of_somebody_else_is_not_found(console: Client, root: User, ada: User) -> None:
    for key, row in (("deactivate", root), ("end-role", root.person.roles.first())):
        assert console.get(ACTS[key].address(ada.person, row)).status_code == 404
    assert console.get(reverse("admin:compliance_person_deactivate", args=["nobody", "1"])).status_code == 404
    assert console.get(reverse("admin:compliance_person_deactivate", args=[ada.person_id, "x"])).status_code == 404


def test_the_person_s_page_shows_factors_holds_and_the_acts_to_administrators_alone(console: Client, ada: User) -> None:
    give_totp(ada)
    shown = console.get(page_of(ada)).content.decode()
    assert "authenticator app (1)" in shown
    assert "Close the account" in shown
    assert "No hold" in shown
    own = Client()
    own.force_login(ada)
    theirs = own.get(page_of(ada)).content.decode()
    assert "authenticator app (1)" in theirs
    assert "Close the account" not in theirs
    assert EMAIL in theirs


def test_the_menu_under_one_s_name_leads_to_the_second_factors(console: Client) -> None:
    shown = console.get("/admin/").content.decode()
    assert reverse("mfa_index") in shown
    assert reverse("admin:password_change") in shown


def test_a_registered_person_signs_in_by_the_password_that_was_shown_once(console: Client, ada: User) -> None:
    assert (
        reverse("admin:compliance_person_register") in console.get(reverse("admin:compliance_person_changelist")).content.decode()
    )
    address = reverse("admin:compliance_person_register")
    assert console.get(address).status_code == 200
    assert console.post(address, {"name": "", "email": "x"}).status_code == 422
    assert console.post(address, {"name": "Again", "email": EMAIL.upper()}).status_code == 409
    done = console.post(address, {"name": "Grace Hopper", "email": "Grace@Example.org"})
    made = User.objects.get(email="grace@example.org")
    assert made.must_change_password
    assert not made.person.roles.exists()
    assert not made.person.signing_holds.exists()
    client = Client()
    assert pages.sign_in(client, made.email, done.context["password"])["Location"] == "/admin/"
    assert client.get("/admin/")["Location"] == reverse("admin:password_change")
    client.force_login(ada)
    assert client.post(address, {"name": "Puppet", "email": "puppet@example.org"}).status_code == 403
    assert not User.objects.filter(email="puppet@example.org").exists()


def test_a_team_is_registered_once_by_an_administrator_and_people_may_belong_to_it(console: Client, ada: User) -> None:
    teams, address = reverse("admin:compliance_team_changelist"), reverse("admin:compliance_team_register")
    assert address in console.get(teams).content.decode()
    assert "Back to all teams" in console.get(address).content.decode()
    wrong = console.post(address, {"key": "HR Platform", "title": "HR"})
    assert (wrong.status_code, "lower-case ASCII" in wrong.content.decode()) == (422, True)
    done = console.post(address, {"key": "payroll", "title": "Payroll"})
    assert done["Location"] == reverse("admin:compliance_team_change", args=[Team.objects.get(key="payroll").pk])
    assert console.post(address, {"key": "payroll", "title": "Again"}).status_code == 409
    assert "payroll" in console.get(reverse("admin:compliance_person_register")).content.decode()
    client = Client()
    client.force_login(ada)
    assert address not in client.get(teams).content.decode()
    assert client.post(address, {"key": "puppets", "title": "Puppets"}).status_code == 403
    assert not Team.objects.filter(key="puppets").exists()
