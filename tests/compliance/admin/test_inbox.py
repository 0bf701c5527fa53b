"""What waits for whom on the first page."""

import pytest
from django.urls import reverse

from compliance.vocabulary import Role
from tests.compliance.admin.test_requests import signed_in, text_of
from tests.support import signing

pytestmark = pytest.mark.django_db
HOME = reverse("admin:index")


def test_the_first_to_expire_stands_first_with_the_time_that_is_left() -> None:
    land = signing.ground()
    requests = [signing.ask(land, days=days) for days in (10, 20)]
    html = signed_in(land.security).get(HOME).content.decode()
    places = [html.index(f"/signoffrequest/{request.pk}/change/") for request in requests]
    assert places == sorted(places)
    text = text_of(signed_in(land.security).get(HOME))
    assert "Waiting for your signature" in text
    assert "left" in text
    assert "Rita Asker" in text


def test_what_she_signed_or_asked_for_does_not_wait_for_her() -> None:
    land = signing.ground()
    request = signing.ask(land)
    assert "Waiting for your signature" in text_of(signed_in(land.owner).get(HOME))
    signing.sign(land.owner, request)
    for account in (land.owner, land.asker, signing.human("Nobody Much", Role.AUDITOR)):
        assert "Waiting for your signature" not in text_of(signed_in(account).get(HOME))
