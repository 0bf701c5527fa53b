"""The system's page and its forms as a browser shows them, on a desk and on a phone, by keyboard and to a screen reader."""

import pytest
from django.urls import reverse

from compliance.models import RoleMembership
from compliance.vocabulary import Role
from evaluations.kernel.actor import system_job
from evaluations.kernel.services import service_transaction
from evaluations.services.agents import register_agent
from policies.models import System
from tests.browser.conftest import OpenPage
from tests.browser.test_console import DESK, PHONE, faults
from tests.compliance.admin.world import World

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def paths(served: tuple[str, World]) -> dict[str, str]:
    """The pages of this module; the signed-in person manages every system. Read before the browser runs."""
    _, world = served
    with service_transaction("tests"):
        RoleMembership.objects.create(person=world.user.person, role=Role.SECURITY, given_by="tests")
    agent = register_agent(
        actor=system_job("tests"),
        key="it-agent",
        models=["clears", "falls-short"],
        prompt_digest="sha256:" + "a" * 64,
        tool_manifest_digest="sha256:" + "b" * 64,
        harness={"name": "our-harness", "version": "2.1"},
    )
    pk = System.objects.get(key="workday-prod").pk
    found = {f"system-{word}": reverse(f"admin:policies_system_{word}", args=[pk]) for word in ("change", "edit", "incident")}
    found["agent"] = reverse("admin:evaluations_subject_change", args=[agent.subject.pk])
    found["agent-version"] = reverse("admin:evaluations_subjectversion_change", args=[agent.version.pk])
    return found


@pytest.mark.parametrize(("width", "dark"), [(DESK, False), (PHONE, False), (PHONE, True)])
def test_every_page_fits_and_is_fit_for_a_screen_reader(
    open_page: OpenPage, paths: dict[str, str], width: int, dark: bool
) -> None:
    watched = open_page(width=width, dark=dark)
    assert faults(watched, paths, width=width, dark=dark) == []


def test_an_incident_is_opened_by_keyboard_alone(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=DESK)
    watched.open(paths["system-incident"])
    watched.page.focus("input[name=reason]")
    watched.page.keyboard.type("payroll is down")
    with watched.leaving(url=f"**{paths['system-change']}"):
        watched.page.keyboard.press("Enter")
    assert watched.page.get_by_text("The system has an open incident now.").count() >= 1
    watched.open(paths["system-incident"])
    assert watched.page.get_by_role("button", name="Close the incident").is_visible()
