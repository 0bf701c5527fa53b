"""The page of a system: its blast radius, and what those who manage it may do there; and what an agent's page shows of its parts."""

import re
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from compliance.models import LedgerEntry, RoleMembership, Team
from compliance.services.offline import hand_out_bundle
from compliance.services.people import create_token
from compliance.vocabulary import Role
from evaluations.kernel.actor import system_job
from evaluations.kernel.services import service_transaction
from evaluations.models import Subject
from evaluations.services.agents import register_agent
from policies.models import System
from policies.selectors.blast_radius import blast_radius
from tests.compliance.admin.test_requests import signed_in
from tests.compliance.admin.world import World
from tests.support import signing
from tests.support.offline import bundle_for
from tests.support.world import ACTOR

STATED = {
    "title": "Workday production",
    "domain": "hr",
    "environment": "production",
    "reversible": "yes",
    "owner": "hr-platform",
    "people_affected": "900",
    "writes_per_day": "",
    "holds_personal_data": "yes",
    "money_at_stake_usd": "2500.50",
    "reason": "measured in a drill",
}


def address(word: str) -> str:
    return reverse(f"admin:policies_system_{word}", args=[System.objects.get(key="workday-prod").pk])


@pytest.fixture
def owner(world: World, console: Client) -> Client:
    """The signed-in person owns the systems of the team `hr-platform` now."""
    give(world, Role.SYSTEM_OWNER, team="hr-platform")
    return console


def give(world: World, role: Role, team: str) -> None:
    held = Team.objects.filter(key=team).first()
    with service_transaction("tests"):
        held = held or Team.objects.create(key=team, title=team)
        RoleMembership.objects.create(person=world.user.person, role=role, team=held, given_by="tests")


def seen(client: Client, word: str) -> str:
    found = re.search(r'name="seen" value="([^"]+)"', client.get(address(word)).content.decode())
    assert found is not None
    return found[1]


def test_everybody_sees_the_blast_radius_with_every_part(world: World, console: Client) -> None:
    text = console.get(address("change")).content.decode()
    radius = blast_radius(System.objects.get(key="workday-prod"))
    assert f"<strong>{radius.level}</strong>: {radius.score} of 100" in text
    for part in radius.parts:
        assert part.why in text
        assert f"{part.weight} of {part.most}" in text
    assert "Change what is stated" not in text


def test_the_offline_bundle_of_a_system_is_shown_and_to_whom_it_went_to_those_who_read_the_trail(
    world: World, console: Client
) -> None:
    assert "None was ever asked for." in console.get(address("change")).content.decode()
    token = create_token(actor=ACTOR, name="point", scopes=["decide"], person=world.user.person).secret
    bundle = bundle_for(token, System.objects.get(key="workday-prod"))
    hand_out_bundle(actor=ACTOR, bundle=bundle, form="dsse")
    other = signed_in(signing.human("Rita Requester", Role.REQUESTER)).get(address("change")).content.decode()
    text = console.get(address("change")).content.decode()
    for html in (other, text):
        assert str(bundle.serial) in html
        assert bundle.digest in html
    assert "to whom" not in other
    found = re.search(r'href="([^"]+)">every time one was handed out', text)
    assert found is not None
    listed = console.get(found[1].replace("&amp;", "&")).content.decode()
    assert "offline_bundle.handed_out" in listed.partition('id="result_list"')[2]


def test_an_owner_changes_what_is_stated_and_the_trail_tells_it(owner: Client) -> None:
    assert "Change what is stated" in owner.get(address("change")).content.decode()
    answer = owner.post(address("edit"), {**STATED, "seen": seen(owner, "edit")})
    assert (answer.status_code, answer["Location"]) == (302, address("change"))
    system = System.objects.get(key="workday-prod")
    assert (system.reversible, system.people_affected, system.writes_per_day) == (True, 900, None)
    assert (system.holds_personal_data, system.money_at_stake_usd) == (True, Decimal("2500.5"))
    assert LedgerEntry.objects.filter(action="system.changed").count() == 1


def test_a_page_that_is_older_than_the_system_changes_nothing(owner: Client) -> None:
    old = seen(owner, "edit")
    owner.post(address("edit"), {**STATED, "seen": old})
    answer = owner.post(address("edit"), {**STATED, "title": "Other", "seen": old})
    assert answer.status_code == 422
    assert b"changed since this page was opened" in answer.content
    assert System.objects.get(key="workday-prod").title == "Workday production"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", ""),
        ("domain", "payroll"),
        ("reversible", ""),
        ("owner", "nobody-knows"),
        ("people_affected", "-1"),
        ("money_at_stake_usd", "1e3"),
        ("money_at_stake_usd", "-5"),
        ("reason", ""),
    ],
)
def test_what_is_wrong_is_shown_at_its_field(owner: Client, field: str, value: str) -> None:
    answer = owner.post(address("edit"), {**STATED, field: value, "seen": seen(owner, "edit")})
    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert not LedgerEntry.objects.filter(action="system.changed").exists()


def test_an_incident_is_opened_and_closed_with_a_reason(owner: Client) -> None:
    assert owner.post(address("incident"), {"seen": "closed", "reason": ""}).status_code == 422
    for shown, is_open in (("closed", True), ("closed", True), ("open", False)):
        assert owner.post(address("incident"), {"seen": shown, "reason": "payroll is down"}).status_code == 302
        assert System.objects.get(key="workday-prod").open_incident is is_open
    actions = LedgerEntry.objects.filter(action__startswith="incident.").order_by("id").values_list("action", flat=True)
    assert list(actions) == ["incident.opened", "incident.closed"]


@pytest.mark.parametrize(("role", "team"), [(Role.SYSTEM_OWNER, "finance"), (Role.AUDITOR, "hr-platform")])
def test_who_does_not_manage_the_system_is_told_which_role_it_takes(world: World, console: Client, role: Role, team: str) -> None:
    give(world, role, team)
    for word, body in (("edit", STATED), ("incident", {"seen": "closed", "reason": "x"})):
        for answer in (console.get(address(word)), console.post(address(word), body)):
            assert answer.status_code == 403
            assert b"system owner of the system" in answer.content
    assert System.objects.get(key="workday-prod").open_incident is False
    assert Client().get(address("edit")).status_code == 302


def test_an_agent_s_page_shows_what_it_is_made_of(world: World, console: Client) -> None:
    registered = register_agent(
        actor=system_job("tests"),
        key="it-agent",
        models=["clears"],
        prompt_digest="sha256:" + "a" * 64,
        tool_manifest_digest="sha256:" + "b" * 64,
        harness={"name": "our-harness", "version": "2.1"},
    )
    for page in (
        reverse("admin:evaluations_subject_change", args=[registered.subject.pk]),
        reverse("admin:evaluations_subjectversion_change", args=[registered.version.pk]),
    ):
        text = console.get(page).content.decode()
        for part in ("sha256:" + "a" * 64, "sha256:" + "b" * 64, "our-harness 2.1", registered.version.digest, "clears v1"):
            assert part in text
    model = Subject.objects.get(key="clears")
    assert "is made of" not in console.get(reverse("admin:evaluations_subject_change", args=[model.pk])).content.decode()
