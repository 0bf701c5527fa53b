"""Requests, grants and drift as a browser shows them: read, signed and stopped by keyboard alone, on a desk and on a phone."""

from collections.abc import Iterator

import pytest
from django.urls import reverse

from compliance.models import Grant, SignOffRequest, Team, User
from compliance.services.break_glass import open_break_glass
from compliance.services.comments import comment_on_request
from compliance.services.drift import review_grants
from compliance.services.filing import request_activation, request_ruling
from compliance.services.people import create_person
from compliance.services.stopping import suspend_grant
from compliance.vocabulary import Meaning, Role
from evaluations.models import Evidence
from tests.browser.conftest import OpenPage, Serve, Watched
from tests.browser.test_console import DESK, MODES, PHONE, faults, shot, tab_to
from tests.support import signing, world
from tests.support.signing_in import code, give_totp

pytestmark = pytest.mark.browser
EVERY_PART = {
    "request-waiting",
    "request-moved",
    "request-activation",
    "policy-version",
    "grant-active",
    "grant-fallen",
    "requests",
    "drift",
    "stop-system",
    "break-glass",
    "ask-access",
    "suspend-several",
    "home",
}
"""By night only colours differ, and on a phone only widths: the pages that have every part."""
SECRETS: dict[str, str] = {}
"""Address → the secret of the authenticator app, for those who sign in here."""


def person(name: str, role: Role, team: str) -> User:
    email = f"{name.lower().replace(' ', '.')}@example.org"
    belongs = Team.objects.filter(key=team).first()
    account = create_person(actor=world.ACTOR, name=name, email=email, password=signing.PASSWORD, team=belongs, roles=[role])
    SECRETS[email] = give_totp(account)
    return account


@pytest.fixture(scope="module")
def served(serve: Serve) -> Iterator[tuple[str, dict[str, str]]]:
    """The console over a world in which there is something to sign, something signed, and something that fell."""
    with serve(build) as found:
        yield found


def change(row: SignOffRequest | Grant) -> str:
    return reverse(f"admin:compliance_{row._meta.model_name}_change", args=[row.pk])


def build() -> dict[str, str]:
    """Make people, requests in every state, grants and a fall; return the pages by name."""
    land = signing.ground("91")
    for number in range(len(MODES)):
        person(f"Mode {number}", Role.SECURITY, "sec")
    person("Kay Keyboard", Role.SECURITY, "sec")
    person("Otto Owner", Role.SYSTEM_OWNER, "hr")
    approver = signing.human("Petra Approver", Role.POLICY_APPROVER)
    for name in ("Paul", "Pia", "Pavel"):
        signing.human(f"{name} Approver", Role.POLICY_APPROVER)
    steward = signing.human("Stella Steward", Role.EVIDENCE_STEWARD)
    for name in ("Sam", "Sue"):
        signing.human(f"{name} Steward", Role.EVIDENCE_STEWARD)
    # Suspended because what it rests on fell; the newer result is what all others are then judged by.
    fallen = signing.granted(land)
    void = signing.ask(land, days=40)
    signing.sign(land.owner, void, reason="the radius is known to us")
    world.submit(
        world.submission("model-a", world.observation("71"), run={"status": "complete", "ended_at": "2026-11-20T00:00:00Z"})
    )
    world.judge_all()
    review_grants(actor=world.ACTOR, grant_ids=[fallen.pk])
    moved = void
    world.submit(
        world.submission("model-a", world.observation("93"), run={"status": "complete", "ended_at": "2026-11-25T00:00:00Z"})
    )
    world.judge_all()
    waiting = signing.ask(land, days=50)
    comment_on_request(
        actor=signing.actor_of(land.security), request=waiting, text="Why not staging first?", change_requested=True
    )
    signing.sign(land.owner, waiting, reason="the nightly sync has a way back")
    by_keyboard = signing.ask(land, days=51)
    signing.sign(land.owner, by_keyboard)
    active = signing.granted(land, days=70)
    suspended = signing.granted(land, days=71)
    suspend_grant(actor=signing.actor_of(land.security), grant=suspended, reason="a strange write at night")
    to_stop = signing.granted(land, days=30)
    rejected = signing.ask(land, days=20)
    signing.sign(land.owner, rejected, Meaning.REJECTED, reason="too wide")
    looser = world.propose_text(signing.fit_text(bar=70, enforcement="soft"))
    world.judge_all()
    activation = request_activation(actor=signing.actor_of(approver), version=looser, reason="the bar was set too high")
    evidence = Evidence.objects.order_by("id").first()
    assert evidence is not None
    ruling = request_ruling(actor=signing.actor_of(steward), evidence=evidence, kind="retracted", reason="a wrong file")
    opened = open_break_glass(
        actor=signing.actor_of(land.security),
        account=land.security,
        session=signing.prove(land.security),
        subject_version=land.version,
        systems=[land.system],
        actions=["write"],
        justification="payroll stands still and nobody else can move it",
        minutes=30,
    )
    return {
        "request-waiting": change(waiting),
        "request-moved": change(moved),
        "request-signed": change(active.request),  # type: ignore[arg-type]  # it was asked for
        "request-rejected": change(rejected),
        "request-activation": change(activation),
        "policy-version": reverse("admin:policies_policyversion_change", args=[looser.pk]),
        "request-ruling": change(ruling),
        "request-review": change(opened.review),
        "grant-active": change(active),
        "grant-suspended": change(suspended),
        "grant-fallen": change(fallen),
        "grant-break-glass": change(opened.grant),
        "requests": reverse("admin:compliance_signoffrequest_changelist"),
        "grants": reverse("admin:compliance_grant_changelist"),
        "waivers": reverse("admin:compliance_waiver_changelist"),
        "drift": reverse("admin:compliance_grant_drift"),
        "stop": reverse("admin:compliance_grant_stop"),
        "stop-system": reverse("admin:compliance_grant_stop") + "?scope=system&key=hr-prod",
        "break-glass": reverse("admin:compliance_grant_break_glass"),
        "ask-access": reverse("admin:compliance_signoffrequest_ask_access") + f"?subject_version={land.version.pk}",
        "ask-renewal": reverse("admin:compliance_signoffrequest_ask_renewal", args=[active.pk]),
        "suspend-several": reverse("admin:compliance_grant_suspend_several") + f"?g={active.pk}&g={to_stop.pk}",
        "by-keyboard": change(by_keyboard),
        "to-stop": change(to_stop),
        "home": "/admin/",
    }


@pytest.fixture(scope="module")
def paths(served: tuple[str, dict[str, str]]) -> dict[str, str]:
    return served[1]


def sign_in(watched: Watched, email: str) -> None:
    watched.open(reverse("account_login"))
    watched.page.fill("input[name=login]", email)
    watched.page.fill("input[name=password]", signing.PASSWORD)
    watched.page.get_by_role("button", name="Sign in", exact=True).click()
    watched.page.fill("input[name=code]", code(SECRETS[email]))
    with watched.leaving(url=f"{watched.address}/admin/"):
        watched.page.keyboard.press("Enter")


@pytest.mark.parametrize(("width", "dark"), MODES)
def test_every_page_fits_has_no_error_and_is_fit_for_a_screen_reader(
    open_page: OpenPage, paths: dict[str, str], width: int, dark: bool
) -> None:
    watched = open_page(width=width, dark=dark, signed_in=False)
    sign_in(watched, f"mode.{MODES.index((width, dark))}@example.org")
    checked = None if (width, dark) == (DESK, False) else EVERY_PART
    assert faults(watched, paths, width=width, dark=dark, checked=checked) == []


def test_a_dossier_is_read_and_signed_by_keyboard_alone(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=DESK, signed_in=False)
    page = watched.page
    sign_in(watched, "kay.keyboard@example.org")
    tab_to(watched, f"#home a[href='{paths['by-keyboard']}']", most=200)
    with watched.leaving():
        page.keyboard.press("Enter")
    assert page.locator("input[name=meaning]:checked").count() == 0
    tab_to(watched, "#sign_reason", most=200)
    page.keyboard.type("read the verdict and the radius")
    tab_to(watched, "input[name=meaning]")
    page.keyboard.press("Space")
    assert page.locator("input[name=meaning]:checked").get_attribute("value") == "approved"
    tab_to(watched, "#decide button[type=submit]")
    with watched.leaving(url="**/accounts/2fa/reauthenticate/**"):
        page.keyboard.press("Enter")
    # Signing in was no proof for this: she proves once more that it is she, and what she typed is still there.
    tab_to(watched, "input[name=code]")
    page.keyboard.type(code(SECRETS["kay.keyboard@example.org"]))
    with watched.leaving(url=f"**{paths['by-keyboard']}#decide"):
        page.keyboard.press("Enter")
    assert page.locator("#sign_reason").input_value() == "read the verdict and the radius"
    assert page.locator("input[name=meaning]:checked").get_attribute("value") == "approved"
    tab_to(watched, "#decide button[type=submit]", most=200)
    page.keyboard.press("Enter")
    page.get_by_text("It is signed, and what was asked is done.").first.wait_for()
    assert page.get_by_text("read the verdict and the radius").is_visible()
    shot(watched, "signed-by-keyboard")
    assert watched.worries == []


def test_a_grant_is_suspended_at_one_click_with_a_reason(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=PHONE, signed_in=False)
    page = watched.page
    sign_in(watched, "otto.owner@example.org")
    watched.open(paths["to-stop"])
    tab_to(watched, "#suspend_reason", most=200)
    page.keyboard.type("a strange write")
    page.keyboard.press("Enter")
    page.get_by_text("It is suspended: it may not be used from this moment on.").first.wait_for()
    assert page.get_by_text("reason: a strange write").is_visible()
    watched.open(paths["grants"])
    page.locator("input[name=_selected_action]").first.check()
    shot(watched, "grants-ticked-360")
    page.locator("select[name=action]").select_option("suspend")
    with watched.leaving(url="**/grant/suspend/?g=*"):
        page.locator("button[name=index]").click()
    assert page.get_by_role("button", name="Suspend 1 grant").is_visible()
    assert watched.worries == []
