"""Who gets in, and what comes first for an account with a one-time password."""

import json

import pytest
from django.contrib.auth.forms import PasswordChangeForm
from django.test import Client
from django.urls import NoReverseMatch, reverse

from compliance.models import LedgerEntry
from compliance.models.signing_in import session_digest
from evaluations.kernel.actor import person
from evaluations.kernel.services import service_transaction
from tests.compliance.admin.world import EMAIL, PASSWORD, build_person
from tests.support import signing_in as pages

pytestmark = pytest.mark.django_db
LOGIN = reverse("admin:login")
HOME = reverse("admin:index")
CHANGE = reverse("admin:password_change")
NEW = "a wholly different sentence"


def entries(action: str) -> list[LedgerEntry]:
    return list(LedgerEntry.objects.filter(action=action).order_by("id"))


def sign_in(password: str = PASSWORD, email: str = EMAIL) -> tuple[Client, object]:
    client = Client()
    return client, pages.sign_in(client, email, password, next=HOME)


def test_the_console_leads_to_the_one_page_where_people_sign_in() -> None:
    client = Client()
    answer = client.get(LOGIN, {"next": HOME}, follow=True)
    assert answer.redirect_chain[-1][0].startswith(reverse("account_login"))
    posted = client.post(LOGIN, {"username": EMAIL, "password": PASSWORD})
    assert posted["Location"].startswith(reverse("account_login"))


def test_a_staff_account_gets_in_and_others_hear_what_strangers_hear() -> None:
    build_person()
    client, answer = sign_in()
    assert answer.status_code == 302
    assert client.get(HOME).status_code == 200
    build_person(email="guest@example.org", is_staff=False)
    closed = build_person(email="closed@example.org")
    with service_transaction("tests"):
        closed.is_active = False
        closed.save()
    heard = set()
    for email in ("guest@example.org", "closed@example.org", "nobody@example.org"):
        refused = sign_in(email=email)[1]
        assert refused.status_code == 200
        heard.add(str(refused.context["form"].errors))
    assert len(heard) == 1
    codes = [json.loads(bytes(entry.content))["new"]["code"] for entry in entries("session.refused")]
    assert codes == ["may_not_enter", "may_not_enter", "wrong_password"]
    assert "nobody@example.org" not in str([bytes(entry.content) for entry in entries("session.refused")])


def test_signing_in_at_the_bare_address_leads_home_and_is_recorded() -> None:
    user = build_person()
    client = Client()
    assert pages.sign_in(client, EMAIL, PASSWORD)["Location"] == HOME
    (entry,) = entries("session.started")
    assert entry.actor == person(user.person_id).reference
    new = json.loads(bytes(entry.content))["new"]
    assert new["methods"] == ["password"]
    assert new["session"] == session_digest(client.session.session_key)


def test_the_sixth_wrong_password_locks_the_account_for_a_while_and_that_is_recorded_once() -> None:
    build_person()
    for _ in range(5):
        assert "not correct" in str(sign_in("wrong")[1].context["form"].errors)
    for _ in range(2):
        assert "Too many" in str(sign_in()[1].context["form"].errors)
    codes = [json.loads(bytes(entry.content))["new"]["code"] for entry in entries("session.refused")]
    assert codes == ["wrong_password"] * 5 + ["locked_out"]


def test_nobody_signs_up_and_no_other_door_of_the_kind_is_open() -> None:
    for name in ("account_signup", "account_email", "account_reset_password", "account_change_password", "socialaccount_signup"):
        with pytest.raises(NoReverseMatch):
            reverse(name)


def test_a_one_time_password_leads_to_the_password_page_whatever_is_asked() -> None:
    build_person(must_change_password=True)
    client, _ = sign_in()
    for page in (
        HOME,
        reverse("admin:evaluations_subject_changelist"),
        reverse("admin:password_change_done"),
        "/admin/policies/",
        reverse("mfa_index"),
        reverse("mfa_activate_totp"),
        reverse("account_reauthenticate"),
    ):
        answer = client.get(page)
        assert answer.status_code == 302, page
        assert answer["Location"] == CHANGE
    page = client.get(CHANGE)
    assert page.status_code == 200
    assert b"one-time password" in page.content
    assert client.post(reverse("admin:logout")).status_code in {200, 302}


def test_a_new_password_opens_the_console_and_is_recorded_without_being_told() -> None:
    user = build_person(must_change_password=True)
    client, _ = sign_in()
    answer = client.post(CHANGE, {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW})
    assert answer.status_code == 302
    user.refresh_from_db()
    assert not user.must_change_password
    assert user.check_password(NEW)
    assert client.get(HOME).status_code == 200, "the session must outlive the change"
    entry = LedgerEntry.objects.get(action="password.changed")
    assert entry.actor == person(user.person_id).reference
    assert NEW not in bytes(entry.content).decode()
    assert sign_in(PASSWORD)[1].status_code == 200
    assert sign_in(NEW)[1].status_code == 302


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("wrong", NEW, NEW),
        (PASSWORD, NEW, "another sentence here"),
        (PASSWORD, "short", "short"),
        (PASSWORD, "123456789012", "123456789012"),
    ],
)
def test_a_password_that_is_refused_changes_and_records_nothing(old: str, new: str, again: str) -> None:
    user = build_person(must_change_password=True)
    client, _ = sign_in()
    answer = client.post(CHANGE, {"old_password": old, "new_password1": new, "new_password2": again})
    assert answer.status_code == 200
    user.refresh_from_db()
    assert user.must_change_password
    assert user.check_password(PASSWORD)
    assert not LedgerEntry.objects.filter(action="password.changed").exists()


def test_the_frame_s_own_form_is_never_the_one_that_saves() -> None:
    build_person()
    client, _ = sign_in()
    form = client.get(CHANGE).context["form"]
    assert isinstance(form, PasswordChangeForm)
    assert type(form).__module__ == "compliance.admin.forms"
