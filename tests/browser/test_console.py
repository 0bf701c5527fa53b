"""The console as a browser shows it: on a desk and on a phone, by day and by night, by keyboard, and to a screen reader."""

import os
from pathlib import Path

import pytest

from tests.browser.conftest import OpenPage, Watched

pytestmark = pytest.mark.browser
DESK, PHONE = 1280, 360
MODES = [(DESK, False), (DESK, True), (PHONE, False), (PHONE, True)]
COLOURFUL = {
    "login",
    "home",
    "verdicts",
    "verdict-agent",
    "verdict-stale",
    "evidence",
    "policy-version",
    "nothing-found",
    "password",
    "ledger",
    "entry",
    "checkpoint",
    "export-request",
    "export-that-waits",
    "population",
}
"""By night only colours differ, and on a phone only widths: the pages that have every part."""
SHOTS = os.environ.get("WRITEGATE_SHOTS", "")
"""Where to leave a picture of every page; empty for none."""


def shot(watched: Watched, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        watched.page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)


def overflow(watched: Watched) -> int:
    """Return by how many pixels the page is wider than the window."""
    return int(watched.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def faults(watched: Watched, pages: dict[str, str], *, width: int, dark: bool, checked: set[str] | None = None) -> list[str]:
    """Open pages with all that is folded, leave a picture of each, and return what is wrong with them.

    `checked`: on which of them what bars a screen reader is looked for; on all of them unless given.
    """
    wrong = []
    for name, path in pages.items():
        watched.open(path)
        watched.page.evaluate("document.querySelectorAll('main details').forEach(folded => { folded.open = true })")
        shot(watched, f"{name}-{width}{'-dark' if dark else ''}")
        if overflow(watched) > 0:
            wrong.append(f"{name} is {overflow(watched)} px too wide")
        if watched.page.evaluate("document.documentElement.classList.contains('dark')") is not dark:
            wrong.append(f"{name} is of the wrong colours")
        wrong += [f"{name}: {worry}" for worry in watched.worries]
        watched.worries.clear()
        if checked is None or name in checked:
            wrong += [f"{name}: {finding}" for finding in watched.barriers()]
    return wrong


@pytest.mark.parametrize(("width", "dark"), MODES)
def test_every_page_fits_asks_nobody_else_has_no_error_and_is_fit_for_a_screen_reader(
    open_page: OpenPage, paths: dict[str, str], width: int, dark: bool
) -> None:
    login = open_page(width=width, dark=dark, signed_in=False)
    watched = open_page(width=width, dark=dark)
    checked = None if (width, dark) == (DESK, False) else COLOURFUL
    wrong = faults(login, {"login": "/admin/login/"}, width=width, dark=dark, checked=checked)
    wrong += faults(watched, paths, width=width, dark=dark, checked=checked)
    assert not wrong, "\n".join(wrong)


def test_the_policy_for_content_allows_no_inline_script(open_page: OpenPage) -> None:
    watched = open_page(width=DESK)
    watched.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.planted = 1'; document.body.append(s) }"
    )
    assert not watched.page.evaluate("!!window.planted")
    assert any("Content Security Policy" in worry for worry in watched.worries)


def test_times_are_in_utc_with_the_reader_s_own_beside_it(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=DESK, zone="Asia/Tokyo")
    watched.open(paths["verdict-fails"])
    shown = watched.page.locator("time.wg-time").first
    assert shown.inner_text().endswith("UTC")
    assert "GMT+9" in watched.page.locator(".wg-local").first.inner_text()
    in_utc = open_page(width=DESK, zone="UTC")
    in_utc.open(paths["verdict-fails"])
    assert in_utc.page.locator(".wg-local").count() == 0


def tab_to(watched: Watched, selector: str, *, most: int = 80, key: str = "Tab") -> None:
    """Press Tab, or Shift+Tab, until the focus is on what the selector names."""
    for _ in range(most):
        watched.page.keyboard.press(key)
        if watched.page.evaluate("selector => !!document.activeElement && document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"{most} presses of {key} do not reach {selector}")


def test_by_keyboard_alone_from_the_matrix_to_the_document(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=DESK)
    page = watched.page
    for selector, arrives in (
        (".wg-fleet td a", paths["verdict-passes"]),
        ("main td a[href*='/document/']", paths["document"]),
    ):
        tab_to(watched, selector)
        with watched.leaving():
            page.keyboard.press("Enter")
        assert page.url.endswith(arrives)
    tab_to(watched, "a[href*='/download/']")
    assert watched.worries == []


def test_the_frame_s_switches_work_by_keyboard(open_page: OpenPage, paths: dict[str, str]) -> None:
    phone = open_page(width=PHONE)
    assert not phone.page.locator("#nav-sidebar").is_visible()
    tab_to(phone, "[role=button][aria-label='Show or hide the navigation']")
    phone.page.keyboard.press("Enter")
    phone.page.locator("#nav-sidebar").wait_for()
    shot(phone, "navigation-360")
    desk = open_page(width=DESK)
    desk.open(paths["verdicts"])
    tab_to(desk, "[role=button][aria-label='Your account']")
    desk.page.keyboard.press("Enter")
    desk.page.locator("a[href='/admin/password_change/']").wait_for()
    # The menu opens above its button, and stands before it.
    tab_to(desk, "a[href='/admin/password_change/']", most=5, key="Shift+Tab")
    desk.open(paths["verdicts"])
    tab_to(desk, "a[role=button][x-on\\:click*='filterOpen']")
    desk.page.keyboard.press("Enter")
    desk.page.locator("#changelist-filter").wait_for()
    shot(desk, "filters-1280")
    tab_to(desk, "#changelist-filter a")
    assert desk.worries == []


def test_a_filter_finds_by_typing_instead_of_listing_everything(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=DESK)
    watched.open(paths["verdicts"])
    watched.page.locator("a[role=button][x-on\\:click*='filterOpen']").click()
    watched.page.locator("#changelist-filter .select2-selection").click()
    watched.page.keyboard.type("strict")
    watched.page.locator(".select2-results__option", has_text="strict-for-tests v1").click()
    with watched.leaving():
        watched.page.locator("#changelist-filter button[type=submit]").click()
    assert "policy_version__id__exact" in watched.page.url
    rows = watched.page.locator("#result_list tbody tr.data-row")
    assert rows.count() == 6
    assert watched.worries == []
