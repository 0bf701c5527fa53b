"""Waivers in the console: offered only where a rule may be waived, and signed as the acceptance of a risk."""

import pytest
from django.urls import reverse

from compliance.models import SignOffRequest
from compliance.vocabulary import RequestKind
from tests.compliance.admin.test_requests import page, signed_in, text_of
from tests.support import signing

pytestmark = pytest.mark.django_db


def test_accepting_a_risk_is_offered_only_where_rules_are_to_be_waived() -> None:
    land = signing.ground("71", enforcement="soft")
    client = signed_in(land.asker)
    address = reverse("admin:compliance_signoffrequest_ask_access")
    given = {
        "key": "one",
        "subject_version": land.version.pk,
        "systems": [land.system.pk],
        "actions": "write",
        "ends_at": "2027-01-15T12:00:00",
        "reason": "the nightly sync needs it",
    }
    refused = client.post(address, given)
    assert refused.status_code == 422
    assert "Waive refuses of two-keys on hr-prod, because" in text_of(refused)
    waiver = {"waive:two-keys:refuses:hr-prod": "a person looks at each write"}
    assert client.post(address, {**given, **waiver}).status_code == 302
    request = SignOffRequest.objects.get(kind=RequestKind.GRANT)
    html = signed_in(land.security).get(page(request)).content.decode()
    assert 'value="accepted_residual_risk"' in html
    assert 'value="approved"' not in html
    assert "A waiver of it is asked for here." in html
    assert "a person looks at each write" in html


def test_where_no_rule_is_to_be_waived_it_says_so_and_asks_for_nothing(land: signing.Ground) -> None:
    grant = signing.granted(land)
    answer = signed_in(land.asker).get(reverse("admin:compliance_signoffrequest_ask_waiver", args=[grant.pk]))
    text = text_of(answer)
    assert "No soft rule of its policies fails without a waiver" in text
    assert "Why it is needed" not in text
