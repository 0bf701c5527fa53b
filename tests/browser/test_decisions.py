"""Decisions as a browser shows them: the list, one explained, judged once more, and a grant's days, on a desk and on a phone."""

from datetime import timedelta
from unittest.mock import patch

import pytest
from django.urls import reverse

from compliance.models import Decision, LedgerEntry
from compliance.services import decisions
from compliance.services.offline import hand_out_bundle
from compliance.services.stopping import suspend_grant
from compliance.vocabulary import Role
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.services.agents import register_route
from policies.models import System
from tests.browser.conftest import OpenPage
from tests.browser.test_console import DESK, MODES, faults, tab_to
from tests.compliance.admin.world import World
from tests.support import signing, world
from tests.support.asking import ask_gate, ask_token, file_about
from tests.support.offline import bundle_for

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def paths(served: tuple[str, World]) -> dict[str, str]:
    """The pages of this module, over answers of every kind; read before the browser runs."""
    from compliance.models import RoleMembership

    _, built = served
    listed = reverse("admin:compliance_decision_changelist")
    with service_transaction("tests"):
        RoleMembership.objects.create(person=built.user.person, role=Role.SECURITY, given_by="tests")
    land = signing.ground("91", subject="model-a")
    token = ask_token(land.asker)
    asked_about = ask_gate(token)
    filed = file_about(asked_about, ask_token(land.asker, "decide", "request"), emergency=True)
    grant = signing.granted(land)
    for days in range(29, -1, -1):
        with patch.object(decisions, "now", lambda days=days: now() - timedelta(days=days) + timedelta(seconds=days and 1)):
            for _ in range((days * 7) % 5):
                ask_gate(token)
    world.register("model-b")
    register_route(actor=world.ACTOR, key="a-route", models=["model-a", "model-b"])
    world.judge_all()
    allowed = ask_gate(token)
    made = {
        "route": ask_gate(token, "a-route", kind="route"),
        "unknown": ask_gate(
            token, "model-of-a-very-long-name-that-nobody-has-registered-anywhere", system="a-system-nobody-knows"
        ),
        "scope": ask_gate(ask_token(land.asker, "decide:elsewhere")),
        "action": ask_gate(token, action="delete"),
        "asked-about": asked_about,
    }
    at_hand = bundle_for(token, System.objects.get(key="hr-prod"))
    hand_out_bundle(actor=world.ACTOR, bundle=at_hand, form="dsse")
    world.submit(
        world.submission("model-a", world.observation("71"), run={"status": "complete", "ended_at": "2026-11-20T00:00:00Z"})
    )
    world.judge_all()
    suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="a strange write at night")
    made["denied"] = ask_gate(token)
    keys = {name: Decision.objects.get(uid=answer.uid).pk for name, answer in {**made, "allowed": allowed}.items()}
    found = {f"decision-{name}": reverse("admin:compliance_decision_change", args=[pk]) for name, pk in keys.items()}
    found |= {f"replay-{name}": reverse("admin:compliance_decision_replay", args=[keys[name]]) for name in ("denied", "scope")}
    found["decisions"] = listed
    found["decisions-searched"] = f"{listed}?answer=no&code=no_grant"
    found["decisions-nothing"] = f"{listed}?system=nowhere"
    found["request-of-a-machine"] = reverse("admin:compliance_signoffrequest_change", args=[filed.pk])
    found["requests-of-machines"] = reverse("admin:compliance_signoffrequest_changelist")
    found["system-with-a-bundle"] = reverse("admin:policies_system_change", args=[at_hand.system_id])
    for word in ("made", "handed_out"):
        entry = LedgerEntry.objects.get(action=f"offline_bundle.{word}")
        found[f"bundle-{word}"] = reverse("admin:compliance_ledgerentry_change", args=[entry.pk])
    found["ledger-of-bundles"] = f"{reverse('admin:compliance_ledgerentry_changelist')}?target_kind=system&target_id=hr-prod"
    found["grant-days"] = reverse("admin:compliance_grant_change", args=[grant.pk])
    return found


@pytest.mark.parametrize(("width", "dark"), MODES)
def test_every_page_fits_and_is_fit_for_a_screen_reader(
    open_page: OpenPage, paths: dict[str, str], width: int, dark: bool
) -> None:
    watched = open_page(width=width, dark=dark)
    assert faults(watched, paths, width=width, dark=dark) == []


def test_by_keyboard_from_the_list_to_a_decision_judged_once_more(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=DESK)
    page = watched.page
    watched.open(paths["decisions"])
    tab_to(watched, "select[name=answer]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    tab_to(watched, "#changelist form button[type=submit], .wg-form button[type=submit]")
    with watched.leaving():
        page.keyboard.press("Enter")
    assert "answer=no" in page.url
    tab_to(watched, "#result_list tbody a")
    with watched.leaving():
        page.keyboard.press("Enter")
    assert paths["decision-denied"] in page.url
    tab_to(watched, "a[href$='/replay/']")
    with watched.leaving():
        page.keyboard.press("Enter")
    assert page.get_by_text("it comes out the same, byte for byte").is_visible()
    tab_to(watched, "summary")
    page.keyboard.press("Enter")
    page.locator("details pre").first.wait_for()
    assert watched.worries == []
