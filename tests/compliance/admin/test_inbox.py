"""What waits for whom on the first page."""

import pytest
from django.urls import reverse

from compliance.vocabulary import Role
from tests.compliance.admin.test_requests import signed_in, text_of
from tests.support import signing
from tests.support.asking import ask_gate, ask_token, file_about

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


def test_what_a_machine_asked_for_says_so_and_how_urgently() -> None:
    land = signing.ground()
    other = signing.human("Rob Requester", Role.REQUESTER, team="finance")
    signing.ask(land, account=other)
    token = ask_token(land.asker, "decide", "request")
    home = signed_in(land.security)
    assert "by a machine" not in text_of(home.get(HOME))
    file_about(ask_gate(token), token, emergency=True)
    text = text_of(home.get(HOME))
    assert text.count("by a machine") == 1
    assert text.count("an emergency, says the caller") == 1
    assert "the nightly sync · The caller calls it an emergency." in text


def test_what_she_signed_or_asked_for_does_not_wait_for_her() -> None:
    land = signing.ground()
    request = signing.ask(land)
    assert "Waiting for your signature" in text_of(signed_in(land.owner).get(HOME))
    signing.sign(land.owner, request)
    for account in (land.owner, land.asker, signing.human("Nobody Much", Role.AUDITOR)):
        assert "Waiting for your signature" not in text_of(signed_in(account).get(HOME))
