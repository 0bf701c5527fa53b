"""A policy version's page: what it would change if it came into force."""

from django.test import Client
from django.urls import reverse

from policies.models import PolicyVersion
from tests.compliance.admin.test_subject_page import section, text_of
from tests.compliance.admin.world import World
from tests.support import world as made


def change(console: Client, version: PolicyVersion) -> str:
    answer = console.get(reverse("admin:policies_policyversion_change", args=[version.pk]))
    assert answer.status_code == 200
    return section(answer.content.decode(), "What it would change")


def test_a_proposed_version_shows_four_numbers_that_open_to_lists(world: World, console: Client) -> None:
    made.register("m70", "m90")
    for key in ("m70", "m90"):
        made.submit(made.submission(key, made.observation(key[1:])), f"{key}.json")
    in_force, looser = made.propose(80), made.propose(65)
    made.activate(in_force)
    made.judge_all()
    html = change(console, looser)
    text = text_of(html)
    assert "It can open new access:" in text
    assert "against version 1, which is in force" in text
    assert [word in text for word in ("Newly permitted", "Newly refused", "Unchanged", "Near the edge")] == [True] * 4
    assert "m70 v1 in any" in text
    assert "fails → passes, 5.0 points from turning" in text
    assert text_of(change(console, in_force)) == "Nothing: it is in force."
    made.propose(70)
    assert "manage.py policy impact one-rule@2" in text_of(change(console, looser))
