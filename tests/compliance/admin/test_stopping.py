"""The stop button and break-glass in the console."""

import pytest
from django.test import Client
from django.urls import reverse

from compliance.models import Grant
from compliance.vocabulary import GrantKind, GrantStatus
from tests.compliance.admin.test_requests import signed_in, text_of
from tests.support import signing
from tests.support.signing import Ground

pytestmark = pytest.mark.django_db
STOP = reverse("admin:compliance_grant_stop")
BREAK_GLASS = reverse("admin:compliance_grant_break_glass")


@pytest.fixture
def security(land: Ground) -> Client:
    return signed_in(land.security)


def test_the_stop_button_says_how_many_it_would_stop_and_how_many_it_did(land: Ground, security: Client) -> None:
    for days in (10, 20):
        signing.granted(land, days=days)
    before = text_of(security.get(STOP, {"scope": "system", "key": "hr-prod"}))
    assert "It would stop 2 active grants: every grant that rests on the system hr-prod" in before
    assert Grant.objects.filter(status=GrantStatus.ACTIVE).count() == 2
    order = {"scope": "system", "key": "hr-prod", "order": "one", "reason": "a breach"}
    assert "2 grants were stopped" in text_of(security.post(STOP, order))
    assert "2 grants were stopped" in text_of(security.post(STOP, order))
    assert Grant.objects.filter(status=GrantStatus.SUSPENDED).count() == 2


def test_what_is_not_registered_or_gives_no_reason_stops_nothing(land: Ground, security: Client) -> None:
    signing.granted(land)
    assert "No system is registered under this key" in text_of(security.get(STOP, {"scope": "system", "key": "hr-pord"}))
    assert security.post(STOP, {"scope": "all", "key": "", "order": "one", "reason": " "}).status_code == 422
    unchosen = security.get(STOP, {"key": ""})
    assert (unchosen.status_code, "This field is required" in text_of(unchosen)) == (422, True)
    assert Grant.objects.filter(status=GrantStatus.ACTIVE).count() == 1


def test_whoever_may_not_stop_learns_no_number(land: Ground) -> None:
    signing.granted(land)
    asker = signed_in(land.asker)
    answer = asker.get(STOP, {"scope": "all", "key": ""})
    assert answer.status_code == 403
    assert "It would stop" not in text_of(answer)
    asker.post(STOP, {"scope": "all", "key": "", "order": "one", "reason": "x"})
    assert Grant.objects.filter(status=GrantStatus.ACTIVE).count() == 1
    owner = signed_in(land.owner)
    assert "It would stop 1 active grant:" in text_of(owner.get(STOP, {"scope": "system", "key": "hr-prod"}))


def test_break_glass_is_loud_asks_for_a_proof_first_and_keeps_what_was_typed(land: Ground) -> None:
    given = {
        "key": "one",
        "subject_version": land.version.pk,
        "systems": [land.system.pk],
        "actions": "write",
        "minutes": "30",
        "justification": "payroll stands still and nobody else can move it",
    }
    client = signed_in(land.security, proved=False)
    assert "on your word alone" in text_of(client.get(BREAK_GLASS))
    answer = client.post(BREAK_GLASS, given)
    assert answer["Location"].startswith(reverse("account_reauthenticate"))
    assert not Grant.objects.exists()
    html = client.get(BREAK_GLASS).content.decode()
    assert "payroll stands still" in html
    assert html.count(" checked") == 1
    proved = signed_in(land.security)
    assert proved.post(BREAK_GLASS, {**given, "justification": "too short"}).status_code == 422
    opened = proved.post(BREAK_GLASS, given)
    grant = Grant.objects.get(kind=GrantKind.BREAK_GLASS)
    assert opened["Location"] == reverse("admin:compliance_grant_change", args=[grant.pk])
    assert "One person opened it as break-glass" in text_of(proved.get(opened["Location"]))
    review = reverse("admin:compliance_signoffrequest_change", args=[grant.later_requests.get().pk])
    assert "payroll stands still" in text_of(signed_in(land.owner).get(review))
