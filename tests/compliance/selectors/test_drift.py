"""Drift as people read it: what they may see of it, newest first, and what would restore what fell."""

from datetime import timedelta

import pytest

from compliance.selectors.drift import recent_drift
from compliance.selectors.sight import sight_of
from compliance.services.drift import review_grants
from compliance.vocabulary import Role
from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import now
from tests.support import signing, world

pytestmark = pytest.mark.django_db

LATER = {"status": "complete", "ended_at": "2026-11-20T00:00:00Z"}


@pytest.fixture
def land() -> signing.Ground:
    """A grant of which a miss on another version was told, and that then fell."""
    land = signing.ground("91")
    grant = signing.granted(land)
    for value, version in (("60", "2"), ("71", "1")):
        world.submit(world.submission("model-a", world.observation(value, version=version), run=LATER))
        world.judge_all()
        review_grants(actor=system_job("drift-check"), grant_ids=[grant.pk])
    return land


def test_it_shows_what_fell_newest_first_and_what_would_restore_it(land: signing.Ground) -> None:
    at = now()
    sight = sight_of(land.asker.person_id, at=at)
    fell, told = recent_drift(sight, since=at - timedelta(days=1), limit=10)
    assert (fell.suspended, fell.cause, told.suspended, told.cause) == (True, "verdict_failed", False, "not_comparable")
    (change,) = fell.changes
    assert (str(change.before_value), str(change.after_value), str(change.bar)) == ("91", "71", "80")
    assert "fell from 91 % to 71 %, below the bar of 80 %" in fell.lines[0]
    assert fell.restoring == ("a newer result of refusal: at least 80 %",)
    assert len(recent_drift(sight, since=at - timedelta(days=1), limit=1)) == 1
    assert recent_drift(sight, since=at + timedelta(days=1), limit=10) == []


def test_it_shows_nothing_of_what_one_may_not_see(land: signing.Ground) -> None:
    stranger = signing.human("Sam Stranger", Role.REQUESTER, team="sales")
    auditor = signing.human("Ada Auditor", Role.AUDITOR)
    at = now()
    since = at - timedelta(days=1)
    assert recent_drift(sight_of(stranger.person_id, at=at), since=since, limit=10) == []
    assert len(recent_drift(sight_of(auditor.person_id, at=at), since=since, limit=10)) == 2
