"""Grants in the console: how each stands and why, and taking access away, one by one or several at a stroke."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from compliance.models import Grant, GrantEvent, LedgerEntry, SignOffRequest
from compliance.vocabulary import GrantStatus, RequestKind, Role
from evaluations.kernel.clock import now
from tests.compliance.admin.test_requests import signed_in, text_of
from tests.support import signing
from tests.support.signing import Ground

pytestmark = pytest.mark.django_db
LIST = reverse("admin:compliance_grant_changelist")


def page(grant: Grant) -> str:
    return reverse("admin:compliance_grant_change", args=[grant.pk])


def act(grant: Grant, word: str) -> str:
    return reverse(f"admin:compliance_grant_{word}", args=[grant.pk])


@pytest.fixture
def security(land: Ground) -> Client:
    return signed_in(land.security)


def test_the_page_tells_state_cause_ends_moves_and_whose_signatures_it_rests_on(land: Ground, security: Client) -> None:
    grant = signing.granted(land)
    text = text_of(security.get(page(grant)))
    for part in (
        "model-a v1 may write to Workday production",
        "active",
        "signed by its quorum",
        "left",
        "Next certification",
        "Olga Owner",
        "Sven Security",
        "system owner",
        "the dossier",
        "made",
    ):
        assert part in text, part


def test_one_click_with_a_reason_suspends_and_a_revoked_one_never_comes_back(land: Ground, security: Client) -> None:
    grant = signing.granted(land)
    security.post(act(grant, "suspend"), {"reason": ""})
    assert grant.reload().status == GrantStatus.ACTIVE
    security.post(act(grant, "suspend"), {"reason": "a strange write"})
    assert grant.reload().status == GrantStatus.SUSPENDED
    text = text_of(security.get(page(grant)))
    assert "reason: a strange write" in text
    assert "Suspend it now" not in text
    security.post(act(grant, "revoke"), {"reason": "for good"})
    assert grant.reload().status == GrantStatus.REVOKED
    assert "Ask that it comes back" not in text_of(signed_in(land.asker).get(page(grant)))


def test_a_get_changes_nothing_and_whoever_may_not_close_is_refused(land: Ground, security: Client) -> None:
    grant = signing.granted(land)
    security.get(act(grant, "suspend"))
    asker = signed_in(land.asker)
    assert "Suspend it now" not in text_of(asker.get(page(grant)))
    asker.post(act(grant, "suspend"), {"reason": "x"})
    assert grant.reload().status == GrantStatus.ACTIVE
    assert LedgerEntry.objects.filter(action="grant.refused").count() == 1


def test_ticked_grants_are_suspended_after_a_page_that_asks_why(land: Ground, security: Client) -> None:
    grants = [signing.granted(land, days=days) for days in (10, 20, 30)]
    chosen = [grant.pk for grant in grants[:2]]
    assert "suspend those that are ticked" in security.get(LIST).content.decode()
    answer = security.post(LIST, {"action": "suspend", "_selected_action": chosen})
    assert answer.status_code == 302
    assert GrantEvent.objects.filter(move="suspended").count() == 0
    asked = text_of(security.get(answer["Location"]))
    assert "Suspend 2 grants" in asked
    security.post(answer["Location"], {"reason": "a doubt"})
    assert sorted(Grant.objects.filter(status="suspended").values_list("pk", flat=True)) == chosen
    assert security.post(LIST, {"action": "approve", "_selected_action": chosen}).status_code == 403


def test_what_brings_it_back_is_asked_for_from_its_page(land: Ground, security: Client) -> None:
    grant = signing.granted(land)
    asker = signed_in(land.asker)
    assert "Ask for a new certification" in text_of(asker.get(page(grant)))
    security.post(act(grant, "suspend"), {"reason": "a doubt"})
    assert "Ask that it comes back" in text_of(asker.get(page(grant)))
    address = reverse("admin:compliance_signoffrequest_ask_reinstatement", args=[grant.pk])
    assert asker.get(address).status_code == 200
    given = {"key": "one", "reason": "the doubt is settled"}
    first, again = asker.post(address, given), asker.post(address, given)
    assert first["Location"] == again["Location"]
    request = SignOffRequest.objects.get(kind=RequestKind.REINSTATEMENT)
    text = text_of(security.get(reverse("admin:compliance_signoffrequest_change", args=[request.pk])))
    assert "the dossier that the grant rests on now" in text


def test_a_renewal_shows_what_is_different_from_the_dossier_before(land: Ground, security: Client) -> None:
    grant = signing.granted(land)
    asker = signed_in(land.asker)
    until = now() + timedelta(days=80)
    address = reverse("admin:compliance_signoffrequest_ask_renewal", args=[grant.pk])
    answer = asker.post(address, {"key": "one", "reason": "still needed", "ends_at": until.strftime("%Y-%m-%dT%H:%M:%S")})
    text = text_of(security.get(answer["Location"]))
    assert "ends at" in text
    assert until.strftime("%Y-%m-%d %H:%M:%S UTC") in text


def test_what_one_may_not_see_is_not_there(land: Ground) -> None:
    grant = signing.granted(land)
    stranger = signed_in(signing.human("Nobody Much", Role.REQUESTER, team="elsewhere"))
    assert stranger.get(page(grant)).status_code == 404
    assert stranger.post(act(grant, "suspend"), {"reason": "x"}).status_code == 404
    assert stranger.get(reverse("admin:compliance_grant_suspend_several"), {"g": grant.pk}).status_code == 404
    assert stranger.get(reverse("admin:compliance_signoffrequest_ask_renewal", args=[grant.pk])).status_code == 404
    assert f"/grant/{grant.pk}/" not in stranger.get(LIST, {"q": "model-a"}).content.decode()


def test_the_list_narrows_by_how_they_stand_now(land: Ground, security: Client) -> None:
    active, suspended = signing.granted(land, days=10), signing.granted(land, days=20)
    security.post(act(suspended, "suspend"), {"reason": "a doubt"})

    def listed(**query: str) -> list[int]:
        html = security.get(LIST, query).content.decode()
        return [grant.pk for grant in (active, suspended) if f"/grant/{grant.pk}/" in html]

    assert listed() == [active.pk, suspended.pk]
    assert listed(stands="active") == [active.pk]
    assert listed(stands="suspended") == [suspended.pk]
    assert listed(grant_systems__system__id__exact=str(land.system.pk)) == [active.pk, suspended.pk]
    assert listed(q="no-such-system") == []
