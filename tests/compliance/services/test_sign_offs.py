"""Sign-offs: who may sign what, what a signature stands for, and what the last one sets in motion."""

import pytest

from compliance.models import Grant, GrantEvent, LedgerEntry, Seat, SignOff
from compliance.services.proofs import ReauthenticationNeeded
from compliance.services.requests import NotCleared, QuorumCannotBeMet, RequestClosed
from compliance.services.sign_offs import (
    DossierChanged,
    SelfSignOffRefused,
    SignerNotEligible,
    TokenCannotSign,
    give_sign_off,
)
from compliance.vocabulary import GrantStatus, Meaning, RequestStatus, Role
from evaluations.kernel.actor import service
from policies.services.systems import register_system
from tests.support import signing, world

pytestmark = pytest.mark.django_db


def actions(target: object) -> list[str]:
    return list(LedgerEntry.objects.filter(target_id=str(target)).order_by("id").values_list("action", flat=True))


def test_two_signatures_of_different_roles_make_a_grant() -> None:
    land = signing.ground()
    request = signing.ask(land)
    first = signing.sign(land.owner, request)
    assert (first.completed, dict(first.state.assessment.open)) == (False, {"owner": 0, "security": 1})
    second = signing.sign(land.security, request)
    assert second.completed
    grant = Grant.objects.get()
    assert (grant.status, grant.cause, grant.request_id) == (GrantStatus.ACTIVE, "signed", request.pk)
    assert list(GrantEvent.objects.values_list("move", "status")) == [("made", "active")]
    assert sorted(Seat.objects.filter(dossier=request.dossier).values_list("factor__factor", flat=True)) == ["owner", "security"]
    assert request.reload().status == RequestStatus.COMPLETED
    assert actions(request.uid) == ["dossier.recorded", "request.filed", "sign_off.given", "sign_off.given", "request.completed"]


def test_one_rejection_ends_it() -> None:
    land = signing.ground()
    request = signing.ask(land)
    signing.sign(land.owner, request, Meaning.REJECTED, reason="too wide")
    assert request.reload().status == RequestStatus.REJECTED
    with pytest.raises(RequestClosed):
        signing.sign(land.security, request)
    assert not Grant.objects.exists()


def test_the_requester_does_not_sign_even_with_every_role() -> None:
    land = signing.ground()
    asker = signing.human("Super User", *Role, team="hr")
    request = signing.ask(land, account=asker)
    with pytest.raises(SelfSignOffRefused):
        signing.sign(asker, request)
    assert not SignOff.objects.filter(request=request).exists()
    assert actions("give_sign_off") == ["sign_off.refused"]


def test_withdrawing_means_no_verdict_and_the_other_signature_stays() -> None:
    land = signing.ground()
    request = signing.ask(land)
    signing.sign(land.owner, request)
    signing.sign(land.owner, request, Meaning.WITHDRAWN, reason="on second thoughts")
    done = signing.sign(land.security, request)
    assert not done.completed
    assert signing.sign(land.owner, request).completed


def test_a_machine_never_signs() -> None:
    land = signing.ground()
    request = signing.ask(land)
    with pytest.raises(TokenCannotSign):
        give_sign_off(
            actor=service("a-token", on_behalf_of=signing.actor_of(land.owner)),
            request=request,
            account=land.owner,
            session=signing.prove(land.owner),
            meaning="approved",
            reason="x",
            digest=request.dossier.digest,
        )


def test_whoever_signs_shows_a_second_factor_in_this_session() -> None:
    land = signing.ground()
    request = signing.ask(land)
    common = {"actor": signing.actor_of(land.owner), "request": request, "account": land.owner, "meaning": "approved"}
    with pytest.raises(ReauthenticationNeeded):
        give_sign_off(**common, session="sha256:none", reason="x", digest=request.dossier.digest)
    signing.prove(land.owner, session="another")
    with pytest.raises(ReauthenticationNeeded):
        give_sign_off(**common, session="sha256:none", reason="x", digest=request.dossier.digest)


def test_what_was_shown_is_what_is_signed() -> None:
    land = signing.ground()
    request = signing.ask(land)
    with pytest.raises(DossierChanged):
        signing.sign(land.owner, request, digest="sha256:" + "0" * 64)


def test_news_about_the_subject_voids_earlier_signatures() -> None:
    land = signing.ground("91")
    request = signing.ask(land)
    signing.sign(land.owner, request)
    world.submit(
        world.submission("model-a", world.observation("93"), run={"status": "complete", "ended_at": "2026-11-20T00:00:00Z"})
    )
    world.judge_all()
    with pytest.raises(DossierChanged):
        signing.sign(land.security, request)
    request.refresh_from_db()
    assert request.dossier.number == 2
    assert not signing.sign(land.security, request).completed
    assert signing.sign(land.owner, request).completed


def test_a_failing_subject_is_not_asked_for() -> None:
    land = signing.ground("53.9")
    with pytest.raises(NotCleared) as refused:
        signing.ask(land)
    assert [item["code"] for item in refused.value.facts["obstacles"]] == ["blocked"]


def test_a_quorum_that_cannot_be_met_is_refused_at_once() -> None:
    land = signing.ground()
    alone = signing.human("Olga Alone", Role.REQUESTER, Role.SYSTEM_OWNER, team="it")
    elsewhere = register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="it")
    with pytest.raises(QuorumCannotBeMet) as refused:
        signing.ask(land, account=alone, systems=[elsewhere])
    assert "`owner` lacks 1" in str(refused.value)


def test_somebody_without_a_role_may_not_sign() -> None:
    land = signing.ground()
    request = signing.ask(land)
    stranger = signing.human("Nobody Much", Role.AUDITOR)
    with pytest.raises(SignerNotEligible):
        signing.sign(stranger, request)
