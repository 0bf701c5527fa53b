"""People, accounts and tokens."""

from datetime import timedelta

import pytest

from compliance.models import LedgerEntry, PersonName, ServiceToken
from compliance.services.accounts import set_password
from compliance.services.people import AccountExists, create_person, create_token, revoke_token, token_digest
from evaluations.kernel.actor import person, system_job
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused

ACTOR = system_job("test")
pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return create_person(
        actor=ACTOR, name="Ada Lovelace", email="Ada@Example.com", password="correct horse battery", roles=["auditor"]
    )


def entries(action: str) -> list[str]:
    return [bytes(content).decode() for content in LedgerEntry.objects.filter(action=action).values_list("content", flat=True)]


def test_a_person_has_one_account_and_her_name_stays_out_of_the_ledger(ada) -> None:
    assert ada.email == "ada@example.com"
    assert str(ada.person) == "Ada Lovelace"
    assert ada.check_password("correct horse battery")
    assert list(ada.person.roles.values_list("role", flat=True)) == ["auditor"]
    (entry,) = entries("person.registered")
    assert "Lovelace" not in entry
    assert "example.com" not in entry


def test_what_a_person_does_carries_a_commitment_to_her_name(ada) -> None:
    set_password(actor=person(ada.person_id), user=ada, password="another long password", must_change_password=False)
    named = PersonName.objects.get(person=ada.person)
    assert named.commitment == digest_of(bytes(named.salt) + b"Ada Lovelace")
    (entry,) = entries("password.changed")
    assert named.commitment in entry
    assert "another long password" not in entry


def test_an_address_has_one_account_whatever_its_case(ada) -> None:
    with pytest.raises(AccountExists):
        create_person(actor=ACTOR, name="Another", email="ADA@example.com")
    assert len(entries("person.refused")) == 1


def test_a_token_is_kept_by_hash_and_shown_once(ada) -> None:
    made = create_token(actor=ACTOR, name="ci", scopes=["read", "decide:hr-prod"], person=ada.person)
    assert made.secret.startswith("wg_")
    assert made.token.token_digest == token_digest(made.secret)
    row = ServiceToken.objects.values().get()
    assert made.secret not in str(row)
    assert made.secret not in "".join(entries("token.created"))
    assert made.token.is_live(now())
    assert not made.token.is_live(made.token.expires_at)
    assert made.token.holds("read")
    assert made.token.holds("decide", system="hr-prod")
    assert not made.token.holds("decide")
    assert not made.token.holds("decide", system="hr-prod-2")


def test_a_revoked_token_is_dead_at_once_and_revoking_twice_is_one_event(ada) -> None:
    token = create_token(actor=ACTOR, name="ci", scopes=["read"], person=ada.person).token
    for _ in range(2):
        assert not revoke_token(actor=ACTOR, token=token).is_live(now())
    assert len(entries("token.revoked")) == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scopes": []}, "scope"),
        ({"scopes": ["write"]}, "scope"),
        ({"scopes": ["decide:HR"]}, "scope"),
        ({"name": " "}, "name"),
        ({"expires_at": now() - timedelta(seconds=1)}, "expires_at"),
        ({"expires_at": now() + timedelta(days=400)}, "expires_at"),
    ],
)
def test_a_bad_token_is_refused_and_the_refusal_recorded(ada, change: dict, field: str) -> None:
    with pytest.raises(InputRefused) as refusal:
        create_token(**{"actor": ACTOR, "name": "ci", "scopes": ["read"], "person": ada.person, **change})
    assert refusal.value.problems[0].field == field
    assert not ServiceToken.objects.exists()
    assert len(entries("token.refused")) == 1
