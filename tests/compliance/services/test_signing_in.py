"""Second factors, and proofs given once more: over the real pages, with real commits, as signals after a commit need them."""

import json
import re
import threading
from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from django.db import DatabaseError, connections
from django.test import Client
from django.urls import reverse

from compliance.models import LedgerEntry, Reauthentication, User
from compliance.models.signing_in import session_digest
from compliance.selectors.access import has_second_factor, latest_reauthentication
from compliance.selectors.population import population_report
from evaluations.kernel.clock import now
from evaluations.kernel.models import FactIsImmutable
from tests.compliance.admin.world import EMAIL, PASSWORD, build_person
from tests.support import signing_in as pages

pytestmark = [
    pytest.mark.usefixtures("committed_db"),
    # Codes and passwords are checked many times here; how long one check takes is not what is tested.
    pytest.mark.usefixtures("quick_passwords"),
]


@pytest.fixture
def quick_passwords(settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def ada(quick_passwords, committed_db) -> User:
    return build_person()


def told(action: str) -> list[dict]:
    return [json.loads(bytes(entry.content))["new"] for entry in LedgerEntry.objects.filter(action=action).order_by("id")]


def proof_of(client: Client, user: User) -> Reauthentication | None:
    return latest_reauthentication(user_id=user.pk, session_digest=session_digest(client.session.session_key))


def differing() -> dict[str, int]:
    return {line.table: line.differing for line in population_report() if line.differing}


def test_an_authenticator_app_is_set_up_used_and_taken_away_and_each_step_is_on_record(ada: User) -> None:
    client = Client()
    pages.sign_in(client, EMAIL, PASSWORD)
    asked = client.get(reverse("mfa_activate_totp"))
    assert asked["Location"].startswith(reverse("account_reauthenticate")), "a new factor asks for a proof first"
    assert client.post(asked["Location"], {"password": "wrong"}).status_code == 200
    assert client.post(asked["Location"], {"password": PASSWORD})["Location"] == reverse("mfa_activate_totp")
    page = client.get(reverse("mfa_activate_totp"))
    secret = page.context["form"].secret
    assert client.post(reverse("mfa_activate_totp"), {"code": "000000"}).status_code == 200
    done = client.post(reverse("mfa_activate_totp"), {"code": pages.code(secret)})
    assert done["Location"] == reverse("mfa_view_recovery_codes")
    assert sorted(item["type"] for item in told("factor.added")) == ["recovery_codes", "totp"]
    assert secret not in str(Authenticator.objects.get(type="totp").data), "who reads the database makes no codes"
    assert has_second_factor(user_id=ada.pk)
    assert [item["method"] for item in told("reauthentication.recorded")] == ["password"]
    assert proof_of(client, ada) is None, "a password is no proof by a second factor"

    again = Client()
    first = again.post(reverse("account_login"), {"login": EMAIL, "password": PASSWORD})
    assert first["Location"].startswith(reverse("mfa_authenticate"))
    assert again.get("/admin/").status_code == 302, "half a sign-in is none"
    again.post(reverse("mfa_authenticate"), {"code": pages.code(secret)})
    assert told("session.started")[-1]["methods"] == ["password", "totp"]
    assert proof_of(again, ada) is None, "signing in is no proof given once more"
    assert again.get(reverse("mfa_deactivate_totp"))["Location"].startswith(reverse("mfa_reauthenticate"))
    assert pages.reauthenticate(again, secret)["Location"] == "/admin/"
    given = proof_of(again, ada)
    assert given is not None
    assert given.method == "totp"
    assert given.person_id == ada.person_id
    assert now() - given.at < timedelta(minutes=1)
    assert proof_of(client, ada) is None, "a proof counts for its own session"
    assert differing() == {}

    assert again.post(reverse("mfa_deactivate_totp")).status_code == 302
    assert sorted(item["type"] for item in told("factor.removed")) == ["recovery_codes", "totp"]
    assert not has_second_factor(user_id=ada.pk)
    assert differing() == {}


@pytest.fixture
def held(ada: User) -> tuple[Client, str]:
    """Ada's signed-in browser and the secret of her app."""
    secret, client = pages.give_totp(ada), Client()
    assert pages.sign_in(client, EMAIL, PASSWORD, secret)["Location"] == "/admin/"
    return client, secret


def test_a_password_proves_nothing_once_there_is_a_second_factor(ada: User, held: tuple[Client, str]) -> None:
    client, _ = held
    for answer in (
        client.get(reverse("account_reauthenticate"), {"next": "/admin/x/"}),
        client.post(reverse("account_reauthenticate"), {"password": PASSWORD, "next": "/admin/x/"}),
    ):
        assert answer["Location"].startswith(reverse("mfa_reauthenticate"))
        assert "next=%2Fadmin%2Fx%2F" in answer["Location"]
    assert not Reauthentication.objects.exists()


def test_a_code_works_once_whichever_page_it_was_used_on(ada: User, held: tuple[Client, str]) -> None:
    client, secret = held
    used = pages.code(secret)
    for status, proofs in ((302, 1), (200, 1)):
        assert client.post(reverse("mfa_reauthenticate"), {"code": used, "next": "/admin/"}).status_code == status
        assert Reauthentication.objects.count() == proofs
    other = Client()
    other.post(reverse("account_login"), {"login": EMAIL, "password": PASSWORD})
    assert other.post(reverse("mfa_authenticate"), {"code": used}).status_code == 200
    assert [item["code"] for item in told("session.refused")] == ["wrong_code"] * 2


def test_one_code_offered_five_times_at_once_is_taken_once(ada: User, held: tuple[Client, str]) -> None:
    client, secret = held
    used, start, answers = pages.code(secret), threading.Barrier(5), []

    def offer() -> None:
        own = Client()
        own.cookies = client.cookies
        start.wait()
        answers.append(own.post(reverse("mfa_reauthenticate"), {"code": used, "next": "/admin/"}).status_code)
        connections.close_all()

    threads = [threading.Thread(target=offer) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(answers) == [200] * 4 + [302]
    assert Reauthentication.objects.count() == 1


def test_a_recovery_code_lets_in_and_counts_for_no_signature(ada: User, held: tuple[Client, str]) -> None:
    client, secret = held
    pages.reauthenticate(client, secret)
    before = proof_of(client, ada)
    client.post(reverse("mfa_generate_recovery_codes"))
    shown = client.get(reverse("mfa_view_recovery_codes")).content.decode()
    codes = re.findall(r"\b\d{8}\b", shown)
    assert len(codes) == 10
    assert client.post(reverse("mfa_reauthenticate"), {"code": codes[0], "next": "/admin/"}).status_code == 302
    assert Reauthentication.objects.first().method == "recovery_code"
    assert proof_of(client, ada) == before
    lost = Client()
    lost.post(reverse("account_login"), {"login": EMAIL, "password": PASSWORD})
    assert lost.post(reverse("mfa_authenticate"), {"code": codes[1]})["Location"] == "/admin/"
    assert told("factor.renewed") == [{"account": ada.pk, "type": "recovery_codes"}]


def test_a_new_password_ends_other_sessions_and_leaves_no_proof_behind(ada: User, held: tuple[Client, str]) -> None:
    client, secret = held
    other = Client()
    pages.sign_in(other, EMAIL, PASSWORD, secret)
    pages.reauthenticate(client, secret)
    assert proof_of(client, ada) is not None
    new = "a wholly different sentence"
    client.post(reverse("admin:password_change"), {"old_password": PASSWORD, "new_password1": new, "new_password2": new})
    assert client.get("/admin/").status_code == 200
    assert other.get("/admin/").status_code == 302
    assert proof_of(client, ada) is None


def test_a_proof_is_a_fact(ada: User, held: tuple[Client, str]) -> None:
    client, secret = held
    pages.reauthenticate(client, secret)
    given = Reauthentication.objects.get()
    given.method = "webauthn"
    with pytest.raises(FactIsImmutable):
        given.save()
    with pytest.raises(DatabaseError), connections["default"].cursor() as cursor:
        cursor.execute("UPDATE compliance_reauthentication SET at = now()")


def test_a_factor_planted_past_the_pages_shows_in_the_population_report(ada: User) -> None:
    pages.give_totp(ada)
    assert differing() == {}
    Authenticator.objects.create(user=ada, type="webauthn", data={"name": "planted"})
    assert differing() == {"mfa_authenticator": 1}


def test_the_way_back_stays_on_this_site(held: tuple[Client, str]) -> None:
    client, secret = held
    assert pages.reauthenticate(client, secret, next="https://evil.example/")["Location"] == "/admin/"
