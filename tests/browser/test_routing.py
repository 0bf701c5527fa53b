"""Routes as a browser shows them, on a desk and on a phone, by day and by night, by keyboard and to a screen reader."""

import pytest
from django.urls import reverse

from compliance.models import RoleMembership, RoutingInventory
from compliance.services.routing import import_routes
from compliance.vocabulary import Role
from evaluations.kernel.actor import person
from evaluations.kernel.services import service_transaction
from evaluations.models import Subject
from tests.browser.conftest import OpenPage
from tests.browser.test_console import DESK, MODES, PHONE, faults, tab_to
from tests.compliance.admin.world import World, add_routes

pytestmark = pytest.mark.browser
LONG = "a-router-between/" * 4 + "model-a-2026-06-01-with-thinking"


@pytest.fixture(scope="module")
def paths(served: tuple[str, World]) -> dict[str, str]:
    """The pages of this module; the signed-in person is an administrator. Read before the browser runs."""
    _, world = served
    with service_transaction("tests"):
        RoleMembership.objects.create(person=world.user.person, role=Role.ADMINISTRATOR, given_by="tests")
    add_routes(world)
    listed = "".join(f"  - {{model_name: route-{number}, litellm_params: {{model: {LONG}}}}}\n" for number in range(30))
    import_routes(actor=person(world.user.person_id), body=f"model_list:\n{listed}".encode(), name=LONG[:90])
    change = {
        row.name: reverse("admin:compliance_routinginventory_change", args=[row.pk])
        for row in RoutingInventory.objects.order_by("id")
    }
    replaced = RoutingInventory.objects.earliest("id")
    listing = reverse("admin:compliance_routinginventory_changelist")
    return {
        "routes": listing,
        "routes-every": f"{listing}?effect=every",
        "routes-nothing": f"{listing}?q=no-such-gateway",
        "inventory": change["prod-gateway"],
        "inventory-held": f"{change['prod-gateway']}?system=workday-prod",
        "inventory-openrouter": change["openrouter"],
        "inventory-long": change[LONG[:90]],
        "inventory-replaced": reverse("admin:compliance_routinginventory_change", args=[replaced.pk]),
        "route": reverse("admin:evaluations_subject_change", args=[Subject.objects.get(key="steady").pk]),
    }


@pytest.mark.parametrize(("width", "dark"), MODES)
def test_every_page_fits_has_no_error_and_is_fit_for_a_screen_reader(
    open_page: OpenPage, paths: dict[str, str], width: int, dark: bool
) -> None:
    watched = open_page(width=width, dark=dark)
    assert faults(watched, paths, width=width, dark=dark) == []


def test_by_keyboard_alone_a_gateway_is_held_against_a_system_and_reconciled(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=DESK)
    watched.open(paths["inventory"])
    page = watched.page
    page.focus("select[name=system]")
    page.keyboard.type("Workday")
    tab_to(watched, ".wg-form button[type=submit]")
    with watched.leaving(url="**system=workday-prod**"):
        page.keyboard.press("Enter")
    assert page.get_by_text("1 of 5 cleared for write on Workday production").is_visible()
    page.get_by_role("button", name="Reconcile now").focus()
    with watched.leaving(url=f"**{paths['inventory']}"):
        page.keyboard.press("Enter")
    assert page.get_by_text("There was nothing new to tell anybody of.").count() >= 1
    assert watched.worries == []


def test_a_phone_shows_each_path_below_its_route(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=PHONE)
    watched.open(paths["inventory-held"])
    assert watched.page.get_by_role("cell", name="steady → fallback → hasty → Falls Short").is_visible()
