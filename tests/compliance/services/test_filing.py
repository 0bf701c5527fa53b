"""Filing: what is asked for is read strictly, refused before anybody is bothered, and filed once however often it is sent."""

from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from compliance.models import Grant, LedgerEntry, OutboxMessage, SignOffRequest
from compliance.selectors.proposals import AskedWaiver
from compliance.selectors.sight import sight_of, visible_requests, visible_waivers
from compliance.services.filing import GrantHasEnded, OlderVersion, request_grant, request_reinstatement, request_renewal
from compliance.services.idempotency import IdempotencyKeyReused
from compliance.services.people import create_token
from compliance.services.requests import NotARequester, NotCleared
from compliance.services.stopping import revoke_grant, suspend_grant
from compliance.vocabulary import Meaning, Role
from evaluations.kernel.actor import service, system_job
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from evaluations.services.subjects import register_subject_version
from policies.services.systems import register_system
from tests.support import signing, world
from tests.support.signing import Ground
from tests.support.undoing import undone


@pytest.fixture(scope="module")
def _ground(django_db_setup: None, django_db_blocker) -> Iterator[Ground]:
    with django_db_blocker.unblock(), undone():
        yield signing.ground()


@pytest.fixture
def land(_ground: Ground) -> Iterator[Ground]:
    with undone():
        yield deepcopy(_ground)


def file(land: Ground, **changes: Any) -> SignOffRequest:
    given = {
        "actor": signing.actor_of(land.asker),
        "subject_version": land.version,
        "systems": [land.system],
        "actions": ["write"],
        "ends_at": now() + timedelta(days=30),
        "reason": "the nightly sync needs it",
        **changes,
    }
    return request_grant(**given)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"systems": []}, "systems"),
        ({"actions": []}, "actions"),
        ({"actions": ["write", "write"]}, "actions"),
        ({"actions": ["*"]}, "actions"),
        ({"actions": ["Write"]}, "actions"),
        ({"reason": "  "}, "reason"),
        ({"reason": "x" * 4_001}, "reason"),
        ({"starts_at": timedelta(minutes=-1)}, "starts_at"),
        ({"ends_at": timedelta(0)}, "ends_at"),
        ({"starts_at": timedelta(days=31)}, "ends_at"),
    ],
)
def test_what_is_not_well_asked_is_refused_and_nothing_is_filed(land: Ground, change: dict[str, Any], field: str) -> None:
    moved = {name: now() + value if isinstance(value, timedelta) else value for name, value in change.items()}
    with pytest.raises(InputRefused) as refused:
        file(land, **moved)
    assert [problem.field for problem in refused.value.problems] == [field]
    assert not SignOffRequest.objects.filter(kind="grant").exists()
    assert LedgerEntry.objects.filter(action="request.refused").count() == 1


def test_the_same_system_twice_is_refused(land: Ground) -> None:
    with pytest.raises(InputRefused):
        file(land, systems=[land.system, land.system])


def test_longer_than_the_policy_allows_is_refused(land: Ground) -> None:
    with pytest.raises(NotCleared, match="at most 90 days"):
        file(land, ends_at=now() + timedelta(days=91))


def test_an_action_that_no_policy_covers_is_refused(land: Ground) -> None:
    with pytest.raises(NotCleared, match="no policy in force covers `delete`"):
        file(land, actions=["write", "delete"])


def test_only_those_who_may_ask_file_themselves_or_by_their_token(land: Ground) -> None:
    token = create_token(actor=world.ACTOR, name="ci", scopes=["request"], person=land.asker.person).token
    by_token = file(land, actor=service(token.pk, on_behalf_of=signing.actor_of(land.asker)))
    assert (by_token.requester_id, by_token.requested_by) == (land.asker.person_id, f"service:{token.pk}")
    for unfit in (signing.actor_of(land.security), system_job("nightly"), service(token.pk)):
        with pytest.raises(NotARequester):
            file(land, actor=unfit)


def test_a_newer_version_of_the_subject_is_the_one_to_ask_for(land: Ground) -> None:
    register_subject_version(actor=world.ACTOR, subject=land.version.subject, pin={"snapshot": "model-a-2"})
    with pytest.raises(OlderVersion):
        file(land)


def test_one_key_files_one_request_whatever_has_happened_since(land: Ground) -> None:
    given = {"idempotency_key": "k-1", "ends_at": now() + timedelta(days=30), "starts_at": now() + timedelta(seconds=0.6)}
    first = file(land, **given)
    register_subject_version(actor=world.ACTOR, subject=land.version.subject, pin={"snapshot": "model-a-2"})
    assert file(land, **given) == first, "a retry gets what the first call got, though it would be refused now"
    with pytest.raises(IdempotencyKeyReused):
        file(land, **given, reason="another")
    with pytest.raises(OlderVersion):
        file(land, **{**given, "idempotency_key": "k-2"})
    assert SignOffRequest.objects.filter(kind="grant").count() == 1


def test_a_key_belongs_to_its_caller(land: Ground) -> None:
    ends = now() + timedelta(days=30)
    other = signing.human("Rolf Asker", Role.REQUESTER, team="apps")
    first = file(land, idempotency_key="k", ends_at=ends)
    assert file(land, idempotency_key="k", ends_at=ends, actor=signing.actor_of(other)) != first


def test_a_retry_of_a_reinstatement_is_answered_after_the_grant_is_back(land: Ground) -> None:
    grant = signing.granted(land)
    suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="a look is needed")
    given = {"actor": signing.actor_of(land.asker), "reason": "looked at", "idempotency_key": "again"}
    request = request_reinstatement(**given, grant=grant.reload())
    signing.sign(land.owner, request)
    signing.sign(land.security, request)
    assert request_reinstatement(**given, grant=grant.reload()) == request
    with pytest.raises(GrantHasEnded):
        request_reinstatement(**{**given, "idempotency_key": "later"}, grant=grant.reload())


def test_a_revoked_grant_is_neither_renewed_nor_brought_back(land: Ground) -> None:
    grant = signing.granted(land)
    revoke_grant(actor=signing.actor_of(land.security), grant=grant, reason="enough")
    by = {"actor": signing.actor_of(land.asker), "grant": grant.reload(), "reason": "x"}
    with pytest.raises(GrantHasEnded):
        request_renewal(**by, ends_at=now() + timedelta(days=30))
    with pytest.raises(GrantHasEnded):
        request_reinstatement(**by)


def test_whoever_may_sign_is_told_once(land: Ground) -> None:
    request = file(land)
    told = OutboxMessage.objects.filter(kind="signature_wanted", subject=f"request/{request.uid}")
    assert set(told.values_list("person_id", flat=True)) <= {land.owner.person_id, land.security.person_id}
    assert told.count() == len(set(told.values_list("dedupe_key", flat=True)))


@pytest.mark.django_db
def test_a_token_for_one_system_sees_no_more_than_its_person() -> None:
    land = signing.ground("70", enforcement="soft")
    register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="it")
    asked = AskedWaiver("two-keys", "refuses", "hr-prod", "watched by hand")
    request = signing.ask(land, waivers=[asked])
    for signer in (land.owner, land.security):
        signing.sign(signer, request, Meaning.ACCEPTED_RESIDUAL_RISK)
    grant = Grant.objects.get()
    stranger = signing.human("Nobody Much", Role.REQUESTER, team="mail")
    for person, here, elsewhere in ((land.asker, 1, 0), (stranger, 0, 0)):
        narrow = sight_of(person.person_id, at=now(), systems=["hr-prod"])
        other = sight_of(person.person_id, at=now(), systems=["it-prod"])
        assert [visible_waivers(narrow).count(), visible_requests(narrow).count()] == [here, here]
        assert [visible_waivers(other).count(), visible_requests(other).count()] == [elsewhere, elsewhere]
    assert grant.kind == "standing"
