"""Break-glass: one person opens it at once; it is told, recorded beside the ordinary road, and reviewed by others."""

import json
from datetime import timedelta

import pytest

from compliance.models import Grant, LedgerEntry, Reauthentication, SignOffRequest, User
from compliance.models.signing_in import session_digest
from compliance.selectors.grants import standing_of
from compliance.services.accounts import deactivate_account, reset_factors
from compliance.services.administration import AdministratorNeeded
from compliance.services.break_glass import (
    MayNotOpen,
    ReviewNotDue,
    ReviewOverdue,
    TokenCannotOpen,
    reopen_review,
)
from compliance.services.idempotency import IdempotencyKeyReused
from compliance.services.proofs import ReauthenticationNeeded
from compliance.services.reminders import send_reminders
from compliance.services.sign_offs import SelfSignOffRefused, SignerNotEligible, withdraw_request
from compliance.services.stopping import revoke_grant
from compliance.services.sweeping import sweep
from compliance.vocabulary import GrantKind, GrantStatus, Meaning, NoticeKind, ReauthenticationMethod, RequestStatus, Role
from evaluations.kernel.actor import service
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction
from policies.services.systems import register_system
from tests.support import grants, signing, world
from tests.support.signing_in import give_totp

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _mails(settings) -> None:
    settings.NOTICE_MAIL_URL, settings.NOTICE_CHAT_URLS = "mailto://127.0.0.1", []


def record(action: str) -> dict:
    return json.loads(bytes(LedgerEntry.objects.get(action=action).content))


def test_a_review_that_is_rejected_ends_what_is_still_open() -> None:
    """The gate went on saying yes to what a reviewer had refused, up to the end."""
    land = signing.ground("53.9")
    grant, review = grants.glass(land)
    signing.sign(land.owner, review, Meaning.REJECTED, reason="nothing stands still")
    event = grant.events.get(move="revoked")
    assert (grant.reload().status, event.cause) == (GrantStatus.REVOKED, "taken_back")
    assert event.detail == {"reason": "nothing stands still", "review": str(review.uid)}
    assert record("grant.revoked")["new"]["review"] == str(review.uid)
    assert grants.told(NoticeKind.GRANT_SUSPENDED) == grants.people(land.security, land.owner)


def test_what_somebody_opened_who_has_gone_is_reviewed_all_the_same() -> None:
    land = signing.ground("53.9")
    _, review = grants.glass(land)
    deactivate_account(actor=signing.actor_of(grants.administrator()), user=land.security, reason="has left")
    another = signing.human("Sue Security", Role.SECURITY)
    signing.sign(land.owner, review)
    assert signing.sign(another, review).completed


def test_it_is_open_at_once_told_recorded_and_to_be_reviewed() -> None:
    land = signing.ground("53.9")
    admin = grants.administrator()
    grant, review = grants.glass(land, minutes=30)
    assert (grant.kind, grant.status, grant.cause, grant.request) == (GrantKind.BREAK_GLASS, "active", "break_glass", None)
    assert grant.ends_at - grant.starts_at == timedelta(minutes=30)
    assert standing_of(grant, at=now()).usable
    assert not standing_of(grant, at=grant.ends_at).usable
    assert [(event.move, event.cause) for event in grant.events.all()] == [("made", "break_glass")]
    # What the ordinary road would have said stands in the entry and in the review.
    opened = record("break_glass.opened")
    road = opened["new"]["ordinary_road"]
    assert [item["code"] for item in road["obstacles"]] == ["blocked"]
    assert [(item["policy"], item["outcome"]) for item in road["verdicts"]] == [("two-keys", "fail")]
    assert json.loads(bytes(review.dossier.content))["on_record"] == road
    assert opened["target"] == {"id": str(grant.uid), "kind": "grant"}
    assert (review.kind, review.requester_id, review.grant) == ("break_glass_review", land.security.person_id, grant)
    assert grants.told(NoticeKind.BREAK_GLASS_OPENED) == grants.people(land.security, land.owner, admin)
    # She who opened it does not review it, and does not take the review back.
    with pytest.raises(SelfSignOffRefused):
        signing.sign(land.security, review)
    with pytest.raises(SignerNotEligible):
        withdraw_request(actor=signing.actor_of(land.security), request=review, reason="never mind")
    signing.sign(land.owner, review)
    assert signing.sign(signing.human("Susi Second", Role.SECURITY), review).completed
    assert grant.reload().status == GrantStatus.ACTIVE


def test_it_is_logged_also_where_it_did_not_matter() -> None:
    land = signing.ground("91")
    grants.glass(land, account=land.owner)
    road = record("break_glass.opened")["new"]["ordinary_road"]
    assert road["obstacles"] == []
    assert [item["outcome"] for item in road["verdicts"]] == ["pass"]


def test_who_may_not_open_it_opens_nothing() -> None:
    land = signing.ground()
    foreign = register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="it")
    held = signing.human("Hanna Held", Role.SECURITY)
    reset_factors(actor=signing.actor_of(grants.administrator()), user=held, reason="lost her phone")
    give_totp(held)
    token = service("a-token", on_behalf_of=signing.actor_of(land.security))
    password = signing.prove(land.security, session="other", method=ReauthenticationMethod.PASSWORD)
    refused: list[tuple[type[Exception], dict]] = [
        (TokenCannotOpen, {"actor": token}),
        (TokenCannotOpen, {"actor": signing.actor_of(land.owner)}),
        (MayNotOpen, {"account": land.asker}),
        (MayNotOpen, {"account": held}),
        (MayNotOpen, {"account": land.owner, "systems": [land.system, foreign]}),
        (ReauthenticationNeeded, {"session": session_digest("another session")}),
        (ReauthenticationNeeded, {"session": password}),
        (InputRefused, {"minutes": 4}),
        (InputRefused, {"minutes": 241}),
        (InputRefused, {"justification": "x" * 19}),
        (InputRefused, {"systems": []}),
        (InputRefused, {"actions": ["write", "write"]}),
    ]
    for error, changes in refused:
        with pytest.raises(error):
            grants.glass(land, **changes)
    assert not Grant.objects.exists()
    assert not SignOffRequest.objects.filter(grant__isnull=False).exists()
    assert grants.entries("break_glass.refused") == len(refused)
    assert grants.glass(land, minutes=240).grant.status == "active"
    assert grants.glass(land, account=land.owner, minutes=5).grant.status == "active"


def test_a_retry_opens_nothing_more() -> None:
    land = signing.ground()
    first = grants.glass(land, idempotency_key="k-1")
    assert grants.glass(land, idempotency_key="k-1") == first
    with pytest.raises(IdempotencyKeyReused):
        grants.glass(land, idempotency_key="k-1", minutes=61)
    assert Grant.objects.count() == 1


def test_any_of_those_who_are_told_shuts_it() -> None:
    land = signing.ground()
    grant = grants.glass(land).grant
    assert revoke_grant(actor=signing.actor_of(land.owner), grant=grant, reason="found another way").status == "revoked"


def test_nobody_opens_another_while_her_review_is_overdue(monkeypatch) -> None:
    land = signing.ground()
    admin = grants.administrator()
    grant, review = grants.glass(land)
    grants.glass(land)
    later = now() + timedelta(hours=73)
    sweep(at=later)
    assert review.reload().status == RequestStatus.EXPIRED
    assert send_reminders(at=later) == 2
    assert send_reminders(at=later) == 0
    assert grants.told(NoticeKind.REVIEW_DUE) == grants.people(admin)
    assert send_reminders(at=later + timedelta(days=1)) == 2
    _at(later, monkeypatch)
    with pytest.raises(ReviewOverdue):
        grants.glass(land, session=_shown(land.security, later))
    # Others are not held up by it.
    assert grants.glass(land, account=land.owner, session=_shown(land.owner, later)).grant.status == "active"
    with pytest.raises(AdministratorNeeded):
        reopen_review(actor=signing.actor_of(land.security), grant=grant)
    for held in Grant.objects.filter(requester=land.security.person_id):
        again = reopen_review(actor=signing.actor_of(admin), grant=held)
        assert (again.requester_id, bytes(again.proposal)) == (land.security.person_id, bytes(review.proposal))
        with pytest.raises(ReviewNotDue):
            reopen_review(actor=signing.actor_of(admin), grant=held)
        # A rejection is a review too.
        signing.sign(land.owner, again, Meaning.REJECTED, reason="there was another way")
    assert grants.glass(land, session=_shown(land.security, later)).grant.status == "active"


def _at(moment: object, monkeypatch) -> None:
    monkeypatch.setattr("compliance.services.break_glass.now", lambda: moment)


def _shown(account: User, moment: object) -> str:
    """Return a session in which she showed at that moment that it is she."""
    with service_transaction("test"):
        Reauthentication(
            person_id=account.person_id, user=account, session_digest=session_digest("later"), method="totp", at=moment
        ).save()
    return session_digest("later")
