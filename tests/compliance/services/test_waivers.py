"""Waivers: signed with a grant, and taken back by one person."""

import pytest

from compliance.models import Grant, Waiver
from compliance.selectors.proposals import AskedWaiver
from compliance.selectors.waivers import live_waivers
from compliance.services.closing import MayNotClose
from compliance.services.sign_offs import RiskNotAccepted
from compliance.services.sweeping import sweep
from compliance.services.waivers import WaiverRevoked, revoke_waiver
from compliance.signals import grants_to_review
from compliance.vocabulary import Meaning, Role
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from tests.support import grants, signing
from tests.support.signing import Ground

pytestmark = pytest.mark.django_db


@pytest.fixture
def heard() -> object:
    told: list[list[int]] = []

    def listen(*, subject_version_ids: list[int], **_: object) -> None:
        told.append(subject_version_ids)

    grants_to_review.connect(listen)
    yield told
    grants_to_review.disconnect(listen)


def waived() -> tuple[Ground, Waiver]:
    """Return a waiver that came with a grant: the soft rule asks for 80, and 78 was measured."""
    land = signing.ground("78", enforcement="soft")
    request = signing.ask(land, waivers=[AskedWaiver("two-keys", "refuses", "hr-prod", "a person looks at each write")])
    with pytest.raises(RiskNotAccepted):
        signing.sign(land.owner, request)
    signing.sign(land.owner, request, Meaning.ACCEPTED_RESIDUAL_RISK)
    signing.sign(land.security, request, Meaning.ACCEPTED_RESIDUAL_RISK)
    return land, Waiver.objects.get()


def test_a_waiver_is_taken_back_by_one_who_may_and_once(heard, django_capture_on_commit_callbacks) -> None:
    land, waiver = waived()
    grant = Grant.objects.get()
    assert (waiver.ends_at, waiver.measured, waiver.floor) == (grant.ends_at, 78, True)
    assert live_waivers([land.version.pk], at=now()) == [waiver]
    with pytest.raises(MayNotClose):
        revoke_waiver(actor=signing.actor_of(signing.human("Nils Nobody", Role.AUDITOR)), waiver=waiver, reason="because")
    with pytest.raises(InputRefused):
        revoke_waiver(actor=signing.actor_of(land.owner), waiver=waiver, reason=" ")
    with django_capture_on_commit_callbacks(execute=True):
        revoke_waiver(actor=signing.actor_of(land.owner), waiver=waiver, reason="nobody looks any more")
    assert heard == [[land.version.pk]]
    assert live_waivers([land.version.pk], at=now()) == []
    with pytest.raises(WaiverRevoked):
        revoke_waiver(actor=signing.actor_of(land.owner), waiver=waiver, reason="once more")
    assert grants.entries("waiver.revoked") == 1
    assert grants.entries("waiver.refused") == 3


def test_a_waiver_that_has_ended_is_announced_once(heard) -> None:
    land, waiver = waived()
    assert sweep(at=now()).waivers_ended == 0
    assert sweep(at=waiver.ends_at).waivers_ended == 1
    assert sweep(at=waiver.ends_at).waivers_ended == 0
    assert heard == [[land.version.pk]]
