"""Signing in as a browser shows it: password, authenticator app, passkey and recovery codes, and an administrator's acts."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page

from compliance.admin.acts import ACTS
from compliance.services.people import create_person
from evaluations.kernel.actor import system_job
from tests.browser.conftest import OpenPage, Watched
from tests.browser.test_console import DESK, MODES, PHONE, overflow, shot, tab_to
from tests.compliance.admin.world import PASSWORD, World
from tests.support.signing_in import code

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def paths(served: tuple[str, World]) -> dict[str, str]:
    """The pages of an administrator's acts. The people of these tests are made here, before the browser runs."""
    _, world = served
    for name in (*(f"mode{number}" for number in range(len(MODES))), "passkey", "keyboard"):
        create_person(actor=system_job("tests"), name=name.title(), email=f"{name}@example.org", password=PASSWORD)
    create_person(actor=system_job("tests"), name="Root", email="root@example.org", password=PASSWORD, roles=["administrator"])
    person, user = world.user.person, world.user
    found = {"person": reverse("admin:compliance_person_change", args=[person.pk])}
    found |= {key: ACTS[key].address(person, user) for key in ("deactivate", "reset-password", "reset-factors")}
    found["give-role"] = ACTS["give-role"].address(person, person)
    found["end-role"] = ACTS["end-role"].address(person, person.roles.first())
    return found


def sign_in(watched: Watched, email: str, secret: str = "") -> None:
    watched.open(reverse("account_login"))
    watched.page.fill("input[name=login]", email)
    watched.page.fill("input[name=password]", PASSWORD)
    with watched.leaving(url=f"{watched.address}/admin/"):
        watched.page.get_by_role("button", name="Sign in", exact=True).click()
        if secret:
            watched.page.fill("input[name=code]", code(secret))
            watched.page.get_by_role("button", name="Sign in", exact=True).click()


def looked_at(watched: Watched, name: str) -> None:
    """The page fits, asks nobody else, has no error, and a checker of accessibility finds nothing serious."""
    shot(watched, name)
    assert overflow(watched) <= 0, name
    assert watched.worries == [], name
    barriers = watched.barriers()
    assert not barriers, (name, barriers)


@pytest.mark.parametrize(("width", "dark"), MODES)
def test_an_app_is_set_up_and_used_on_pages_that_anybody_can_use(open_page: OpenPage, width: int, dark: bool) -> None:
    watched = open_page(width=width, dark=dark, signed_in=False)
    page, mode = watched.page, f"{width}{'-dark' if dark else ''}"
    watched.open(reverse("account_login"))
    looked_at(watched, f"entrance-login-{mode}")
    page.fill("input[name=login]", "stranger@example.org")
    page.fill("input[name=password]", "not the password")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_text("not correct").wait_for()
    looked_at(watched, f"entrance-refused-{mode}")
    sign_in(watched, f"mode{MODES.index((width, dark))}@example.org")
    watched.open(reverse("mfa_index"))
    looked_at(watched, f"entrance-factors-{mode}")
    watched.open(reverse("mfa_activate_totp"))
    assert page.get_by_label("Password").is_visible()
    looked_at(watched, f"entrance-password-{mode}")
    page.fill("input[name=password]", PASSWORD)
    with watched.leaving():
        page.get_by_role("button", name="Confirm").click()
    secret = page.get_by_label("Authenticator secret").input_value()
    assert page.evaluate("document.querySelector('img.wg-code').naturalWidth") > 0
    looked_at(watched, f"entrance-app-{mode}")
    page.fill("input[name=code]", code(secret))
    page.get_by_role("button", name="Activate").click()
    assert len(re.findall(r"\b\d{8}\b", page.get_by_label("Unused codes").input_value())) == 10
    looked_at(watched, f"entrance-recovery-{mode}")
    watched.open(f"{reverse('account_reauthenticate')}?next=/admin/password_change/")
    looked_at(watched, f"entrance-proof-{mode}")
    page.fill("input[name=code]", code(secret))
    with watched.leaving(url=f"{watched.address}/admin/password_change/"):
        page.get_by_role("button", name="Confirm").click()
    page.goto(f"{watched.address}{reverse('mfa_index')}")
    with watched.leaving(url=f"{watched.address}{reverse('account_login')}**"):
        page.get_by_role("button", name="Sign out").click()
    page.fill("input[name=login]", f"mode{MODES.index((width, dark))}@example.org")
    page.fill("input[name=password]", PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_label("Code").wait_for()
    looked_at(watched, f"entrance-code-{mode}")
    assert page.evaluate("document.documentElement.classList.contains('dark')") is dark


@pytest.fixture
def on_localhost(browser: Browser, served: tuple[str, World]) -> Iterator[Watched]:
    """A page at `localhost`, the one address without https under which browsers offer passkeys, with a key at hand."""
    address = served[0].replace("127.0.0.1", "localhost")
    context = browser.new_context(viewport={"width": DESK, "height": 900})
    page = context.new_page()
    watched = Watched(page, address)
    page.on("pageerror", lambda error: watched.worries.append(str(error)))
    page.on("console", lambda said: watched.worries.append(said.text) if said.type == "error" else None)
    devtools = context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    devtools.send(
        "WebAuthn.addVirtualAuthenticator",
        {"options": {**options, "isUserVerified": True, "automaticPresenceSimulation": True}},
    )
    yield watched
    context.close()


def path_of(page: Page) -> str:
    return urlsplit(page.url).path


def test_a_passkey_is_added_proves_anew_and_opens_without_a_password(on_localhost: Watched) -> None:
    page = on_localhost.page
    sign_in(on_localhost, "passkey@example.org")
    on_localhost.open(reverse("mfa_add_webauthn"))
    page.fill("input[name=password]", PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.fill("input[name=name]", "My laptop")
    page.get_by_label("Passwordless").check()
    with on_localhost.leaving():
        page.get_by_role("button", name="Add", exact=True).click()
    on_localhost.open(reverse("mfa_list_webauthn"))
    assert page.get_by_text("My laptop").first.is_visible()
    assert page.get_by_role("cell", name="passkey").is_visible()
    looked_at(on_localhost, "entrance-keys-1280")
    on_localhost.open(f"{reverse('mfa_reauthenticate_webauthn')}?next=/admin/password_change/")
    looked_at(on_localhost, "entrance-key-proof-1280")
    with on_localhost.leaving(url="**/admin/password_change/"):
        page.get_by_role("button", name="Use a security key").click()
    on_localhost.open(reverse("mfa_index"))
    with on_localhost.leaving():
        page.get_by_role("button", name="Sign out").click()
    with on_localhost.leaving(url="**/admin/"):
        page.get_by_role("button", name="Sign in with a passkey").click()
    assert path_of(page) == "/admin/"
    assert on_localhost.worries == []


def test_signing_in_and_the_way_to_one_s_factors_by_keyboard_alone(open_page: OpenPage) -> None:
    watched = open_page(width=DESK, signed_in=False)
    page = watched.page
    watched.open(reverse("account_login"))
    tab_to(watched, "input[name=login]")
    page.keyboard.type("keyboard@example.org")
    tab_to(watched, "input[name=password]")
    page.keyboard.type(PASSWORD)
    with watched.leaving():
        page.keyboard.press("Enter")
    tab_to(watched, "[role=button][aria-label='Your account']")
    page.keyboard.press("Enter")
    page.locator(f"a[href='{reverse('mfa_index')}']").first.wait_for()
    tab_to(watched, f"a[href='{reverse('mfa_index')}']", most=5, key="Shift+Tab")
    with watched.leaving():
        page.keyboard.press("Enter")
    tab_to(watched, f"a[href='{reverse('mfa_activate_totp')}']")
    assert watched.worries == []


@pytest.mark.parametrize(("width", "dark"), [(DESK, False), (PHONE, True)])
def test_the_pages_of_an_administrator_s_acts(open_page: OpenPage, paths: dict[str, str], width: int, dark: bool) -> None:
    watched = open_page(width=width, dark=dark, signed_in=False)
    sign_in(watched, "root@example.org")
    for name, path in paths.items():
        watched.open(path)
        looked_at(watched, f"act-{name}-{width}{'-dark' if dark else ''}")
    watched.open(paths["person"])
    with watched.leaving():
        watched.page.get_by_role("link", name="Give a role").click()
    watched.page.select_option("select[name=role]", "security" if dark else "system_owner")
    watched.page.get_by_role("button", name="Give the role").click()
    watched.page.get_by_text("The role is given.").wait_for()
    assert watched.worries == []
