"""Drift in the console: what fell, from what to what, against which bar, how likely that is noise, and what would restore it."""

import pytest
from django.urls import reverse

from compliance.models import Grant
from compliance.services.drift import review_grants
from compliance.vocabulary import GrantStatus, Role
from tests.compliance.admin.test_requests import news, signed_in, text_of
from tests.support import signing, world
from tests.support.signing import Ground

pytestmark = pytest.mark.django_db
DRIFT = reverse("admin:compliance_grant_drift")


@pytest.fixture
def fallen() -> tuple[Ground, Grant]:
    land = signing.ground()
    grant = signing.granted(land)
    news("71")
    review_grants(actor=world.ACTOR, grant_ids=[grant.pk])
    assert grant.reload().status == GrantStatus.SUSPENDED
    return land, grant


@pytest.mark.parametrize("place", ["drift", "grant"])
def test_a_fall_is_told_with_both_numbers_the_bar_and_what_would_restore_it(fallen: tuple[Ground, Grant], place: str) -> None:
    land, grant = fallen
    address = DRIFT if place == "drift" else reverse("admin:compliance_grant_change", args=[grant.pk])
    answer = signed_in(land.security).get(address)
    text = text_of(answer)
    for part in (
        "suspended",
        "the verdict fails",
        "91 %",
        "71 %",
        "80 %",
        "How likely that is noise",
        "It would be restored by this",
    ):
        assert part in text, part
    html = answer.content.decode()
    assert "before: 91 % · n not stated; the bar is at least 80 %" in html
    assert "now: 71 % · n not stated; the bar is at least 80 %" in html


def test_home_shows_it_on_a_line_of_days_to_those_who_see_the_grant(fallen: tuple[Ground, Grant]) -> None:
    land, _ = fallen
    home = reverse("admin:index")
    assert "Drift in the last 30 days" in text_of(signed_in(land.security).get(home))
    assert "the verdict fails" in text_of(signed_in(land.security).get(home))
    stranger = signed_in(signing.human("Nobody Much", Role.REQUESTER, team="elsewhere"))
    assert "Nothing moved under the grants that you see" in text_of(stranger.get(home))
    assert "Nothing moved." in text_of(stranger.get(DRIFT))
