"""What is tightened at a system, and asking for more, as a browser shows it: on a desk and on a phone, by day and by night."""

from collections.abc import Iterator

import pytest
from django.urls import reverse

from compliance.vocabulary import Role
from tests.browser.conftest import OpenPage, Serve
from tests.browser.test_console import DESK, MODES, PHONE, faults, overflow, shot, tab_to
from tests.browser.test_sign_offs import person, sign_in
from tests.compliance.admin.test_tightening import PARAMS
from tests.support import signing, world

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def served(serve: Serve) -> Iterator[tuple[str, dict[str, str]]]:
    """The console over a policy in force that is tightened at a system and in its domain."""
    with serve(build) as found:
        yield found


@pytest.fixture(scope="module")
def paths(served: tuple[str, dict[str, str]]) -> dict[str, str]:
    return served[1]


def build() -> dict[str, str]:
    land = signing.ground("91")
    for number in range(len(MODES)):
        person(f"Mode {number}", Role.SYSTEM_OWNER, "hr")
    for name in ("Desk Owner", "Phone Owner"):
        person(name, Role.SYSTEM_OWNER, "hr")
    for name in ("Paul", "Petra"):
        signing.human(f"{name} Approver", Role.POLICY_APPROVER)
    version = signing.fit_draft(signing.human("Alice Author", Role.POLICY_AUTHOR), bar=80, **PARAMS)
    world.activate(version)
    world.bind(version.policy, domain="hr", least=90)
    world.bind(version.policy, system=land.system, least=85, most=3)
    place = land.system.pk
    return {
        "system-tightened": reverse("admin:policies_system_change", args=[place]),
        "tighten-choose": reverse("admin:compliance_signoffrequest_ask_binding_at", args=[place]),
        "tighten": reverse("admin:compliance_signoffrequest_ask_binding", args=[place, version.policy_id]),
    }


@pytest.mark.parametrize(("width", "dark"), MODES)
def test_every_page_fits_has_no_error_and_is_fit_for_a_screen_reader(
    open_page: OpenPage, paths: dict[str, str], width: int, dark: bool
) -> None:
    watched = open_page(width=width, dark=dark, signed_in=False)
    sign_in(watched, f"mode.{MODES.index((width, dark))}@example.org")
    assert faults(watched, paths, width=width, dark=dark) == []


@pytest.mark.parametrize(("width", "who"), [(DESK, "desk.owner"), (PHONE, "phone.owner")])
def test_by_keyboard_alone_a_number_is_given_its_change_seen_and_signatures_asked_for(
    open_page: OpenPage, paths: dict[str, str], width: int, who: str
) -> None:
    watched = open_page(width=width, signed_in=False)
    sign_in(watched, f"{who}@example.org")
    watched.open(paths["tighten"])
    page = watched.page
    page.focus('input[name="param:least"]')
    page.keyboard.press("Control+a")
    page.keyboard.type("95")
    page.focus("textarea[name=reason]")
    page.keyboard.type("payroll may wait for nobody")
    tab_to(watched, ".wg-form button[type=submit]")
    with watched.leaving():
        page.keyboard.press("Enter")
    assert page.get_by_role("cell", name="90 → 95").is_visible()
    assert overflow(watched) == 0
    assert watched.barriers() == []
    shot(watched, f"tighten-shown-{width}")
    tab_to(watched, ".wg-form button[type=submit]")
    with watched.leaving():
        page.keyboard.press("Enter")
    assert "/signoffrequest/" in page.url
    assert page.get_by_text("The parameters that are tightened").is_visible()
    shot(watched, f"tighten-asked-{width}")
    assert watched.worries == []
