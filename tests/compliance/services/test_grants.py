"""Grants: made, moved and ended, each move one event with its cause."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError

from compliance.models import Grant, GrantEvent, SignOffRequest
from compliance.selectors.grants import standing_of, with_standing
from compliance.services.filing import request_recertification, request_reinstatement, request_renewal
from compliance.services.grants import apply_moves
from compliance.services.stopping import revoke_grant, suspend_grant
from compliance.services.sweeping import sweep
from compliance.signals import grants_to_review
from compliance.vocabulary import Cause, EffectiveStatus, GrantMove, GrantStatus
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from tests.support import grants, signing, world

pytestmark = pytest.mark.django_db


def moves(grant: Grant) -> list[tuple[str, str]]:
    return list(grant.events.values_list("move", "cause"))


def test_whoever_comes_second_finds_it_moved() -> None:
    land = signing.ground()
    grant = signing.granted(land)
    stale = Grant.objects.get(pk=grant.pk)
    common = {"actor": world.ACTOR, "move": GrantMove.SUSPENDED, "cause": Cause.VERDICT_FAILED, "at": now()}
    with service_transaction("test"):
        (event,) = apply_moves(grants=[grant], details={grant.pk: {"verdict": "v"}}, **common)
        assert apply_moves(grants=[stale], **common) == []
    assert (event.number, event.detail, event.dossier_id) == (2, {"verdict": "v"}, grant.dossier_id)
    assert moves(grant) == [("made", "signed"), ("suspended", "verdict_failed")]
    assert grants.entries("grant.suspended") == 1


def test_a_renewal_takes_over_without_a_gap() -> None:
    land = signing.ground()
    grant = signing.granted(land)
    request = request_renewal(
        actor=signing.actor_of(land.asker), grant=grant, ends_at=now() + timedelta(days=80), reason="still needed"
    )
    assert standing_of(grant, at=now()).usable
    signing.sign(land.owner, request)
    signing.sign(land.security, request)
    successor = Grant.objects.get(renews=grant)
    assert moves(grant)[-1] == ("expired", "renewed")
    assert GrantEvent.objects.get(grant=grant, move="expired").at == successor.begun_at == successor.starts_at
    assert (grant.reload().status, successor.status) == (GrantStatus.EXPIRED, GrantStatus.ACTIVE)


def test_a_certification_counts_until_the_next_date_and_never_beyond_the_end() -> None:
    land = signing.ground()
    grant = signing.granted(land, days=40)
    first = grant.recertify_by
    assert first == grant.starts_at + timedelta(days=30)
    request = request_recertification(actor=signing.actor_of(land.asker), grant=grant, reason="looked at it anew")
    signing.sign(land.owner, request)
    signing.sign(land.security, request)
    grant.refresh_from_db()
    event = grant.events.get(move="recertified")
    assert first < event.recertify_by == grant.recertify_by <= grant.ends_at
    assert event.dossier_id == grant.dossier_id == request.reload().dossier_id


@pytest.mark.parametrize("ask", [request_recertification, request_reinstatement])
def test_what_is_certified_anew_keeps_to_the_terms_that_are_signed(ask: Callable[..., SignOffRequest]) -> None:
    """A policy that asks more often by now is shown to those who sign, and binds what they sign."""
    land = signing.ground()
    grant = signing.granted(land, days=80)
    text = bytes(land.policy.text).decode().replace("recertify_every_days: 30", "recertify_every_days: 7")
    world.activate(world.propose_text(text.encode()))
    world.judge_all()
    if ask is request_reinstatement:
        suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="a look is needed")
    request = ask(actor=signing.actor_of(land.asker), grant=grant.reload(), reason="looked at it anew")
    signing.sign(land.owner, request)
    signing.sign(land.security, request)
    assert timedelta(days=6) < grant.reload().recertify_by - now() <= timedelta(days=7)


def test_a_grant_that_was_made_or_came_back_is_looked_at_once_more(django_capture_on_commit_callbacks) -> None:
    land = signing.ground()
    heard: list[list[int]] = []

    def listen(*, subject_version_ids: list[int], **_: object) -> None:
        heard.append(subject_version_ids)

    grants_to_review.connect(listen)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            grant = signing.granted(land)
        assert heard == [[land.version.pk]]
        with service_transaction("test"):
            apply_moves(actor=world.ACTOR, grants=[grant], move=GrantMove.SUSPENDED, cause=Cause.VERDICT_STALE, at=now())
        with django_capture_on_commit_callbacks(execute=True):
            grants.back(land, grant.reload())
        assert heard == [[land.version.pk]] * 2
    finally:
        grants_to_review.disconnect(listen)


def test_30_days_over_a_change_of_the_clocks_end_to_the_second() -> None:
    land = signing.ground()
    starts = datetime(2027, 10, 10, 12, tzinfo=UTC)
    grant = signing.granted(land, starts_at=starts, days=30).reload()
    assert (grant.ends_at - grant.starts_at).total_seconds() == 2_592_000
    with service_transaction("test"):
        apply_moves(actor=world.ACTOR, grants=[grant], move=GrantMove.BEGUN, cause=Cause.SIGNED, at=starts)
    last = starts + timedelta(seconds=2_592_000)
    usable = with_standing(Grant.objects.all(), at=last - timedelta(seconds=1)).filter(standing=EffectiveStatus.ACTIVE)
    # Its date of certification is the same instant, so that both end it at the same second.
    assert list(usable) == [grant]
    assert not with_standing(Grant.objects.all(), at=last).filter(standing=EffectiveStatus.ACTIVE).exists()


def test_a_clock_set_back_revives_nothing() -> None:
    land = signing.ground()
    ended, revoked = signing.granted(land), signing.granted(land)
    revoke_grant(actor=signing.actor_of(land.owner), grant=revoked, reason="done")
    sweep(at=ended.ends_at)
    earlier = ended.ends_at - timedelta(hours=1)
    sweep(at=earlier)
    for grant, status in ((ended.reload(), GrantStatus.EXPIRED), (revoked.reload(), GrantStatus.REVOKED)):
        assert grant.status == status
        assert not standing_of(grant, at=earlier).usable
        with pytest.raises(DatabaseError, match="stays ended"), service_transaction("test"):
            Grant.objects.filter(pk=grant.pk).update(status=GrantStatus.ACTIVE)
