"""The page of a policy version: what it changes, its text with the lint at its lines, its tests, and who has signed for it."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from compliance.services.drafting import save_draft
from compliance.services.filing import request_activation
from policies.models import PolicyVersion
from tests.support import signing, world


@pytest.fixture
def author(land: signing.Ground) -> signing.User:
    return signing.author_among_approvers()


def page(account: signing.User, version: PolicyVersion, **query: str) -> str:
    """Return the page's text as somebody reads it, without marks."""
    client = Client()
    client.force_login(account)
    answer = client.get(reverse("admin:policies_policyversion_change", args=[version.pk]), query)
    assert answer.status_code == 200
    told = re.sub(r"<(style|script|svg).*?</\1>|<[^>]+>", " ", answer.content.decode(), flags=re.S)
    return " ".join(told.replace("&#x27;", "'").split())


def test_findings_stand_at_their_lines_and_keep_it_from_being_asked_for(author: signing.User) -> None:
    alone = world.propose_text(signing.TWO_KEYS.format(name="two-keys", bar=75, age="unlimited", enforcement="hard").encode())
    told = page(author, alone)
    assert "2 findings of the lint block its activation" in told
    assert re.search(r"rules: \[\{id: refuses.*?blocks refusal-only with perfect refusal it passes", told)
    assert "It cannot come into force: the lint finds archive-only at line 8; the lint finds refusal-only at line 9." in told
    assert "Ask for activation" not in told
    assert "Compared with v1" in told
    assert "looser the rule refuses : the bar on refusal 80 % → 75 %, looser" in told
    assert "- rules: [{id: refuses, evidence: refusal, at_least: 80" in told


def test_who_has_signed_and_may_still_stands_beside_the_tests(land: signing.Ground, author: signing.User) -> None:
    version = signing.fit_draft(author, bar=85)
    told = page(author, version)
    assert "Nobody has asked that it comes into force. Ask for activation" in told
    assert "clears 16 check_circle passes nothing" in told
    request = request_activation(actor=signing.actor_of(author), version=version, reason="stricter")
    assert re.search(r"open nobody yet .*?Olga Owner", page(author, version))
    signing.sign(land.owner, request)
    assert re.search(r"open Olga Owner .*?Paul Approver", page(author, version))


def test_any_two_versions_are_compared(author: signing.User) -> None:
    signing.fit_draft(author, bar=85)
    third = signing.fit_draft(author, bar=90)
    assert "80 % → 90 %, tighter" in page(author, third)
    assert "85 % → 90 %, tighter" in page(author, third, against="2")
    for strange in ("7", "x", "9" * 40, "3"):
        assert "80 % → 90 %, tighter" in page(author, third, against=strange)
    assert "nothing: it is the first version" in page(author, world.propose(80))


def test_a_policys_versions_say_whether_they_are_looser_or_tighter(author: signing.User, land: signing.Ground) -> None:
    for text in (signing.fit_text(bar=85), signing.fit_text(bar=75), signing.fit_text(bar=75) + b"# the same\n"):
        world.propose_text(text)
    client = Client()
    client.force_login(author)
    shown = client.get(reverse("admin:policies_policy_change", args=[land.policy.policy_id])).content.decode()
    told = " ".join(re.sub(r"<[^>]+>", " ", shown).split())
    assert re.search(r"v4 .{0,80}proposed the same meaning", told)
    assert re.search(r"v3 .{0,80}proposed lock_open looser: 1 (?!lock )", told)
    assert re.search(r"v2 .{0,80}proposed .{0,60}lock tighter: \d", told)
    assert re.search(r"v1 .{0,80}active the first one", told)


def test_a_draft_is_told_of_on_its_policys_page(author: signing.User, land: signing.Ground) -> None:
    save_draft(actor=signing.actor_of(author), policy="two-keys", text=signing.fit_text(bar=88))
    client = Client()
    client.force_login(author)
    shown = client.get(reverse("admin:policies_policy_change", args=[land.policy.policy_id])).content.decode()
    assert "Alice Author" in shown
    assert "It binds nobody until it is proposed" in shown


def test_what_is_in_force_is_not_asked_for_again(author: signing.User, land: signing.Ground) -> None:
    told = page(author, land.policy)
    assert "who may still It is in force." in told
    assert "It cannot come into force" not in told
    assert "Ask for activation" not in told
