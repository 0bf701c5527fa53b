"""The trail as a browser shows it: searched by keyboard, verified by a button, copied, and exports followed live."""

from pathlib import Path

import pytest

from tests.browser.conftest import OpenPage
from tests.browser.test_console import DESK, PHONE, overflow, shot, tab_to

pytestmark = pytest.mark.browser


def test_the_trail_is_searched_by_keyboard_alone(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=DESK)
    page = watched.page
    watched.open(paths["ledger"])
    tab_to(watched, "input[name=actor]")
    page.keyboard.type("lovelace")
    tab_to(watched, "select[name=action]")
    page.keyboard.type("trust")
    with watched.leaving():
        page.keyboard.press("Tab")
        tab_to(watched, ".wg-form button[type=submit]")
        page.keyboard.press("Enter")
    assert page.locator("#result_list tbody tr.data-row").count() == 2
    assert page.locator("select[name=action]").input_value() == "trust.assigned"
    tab_to(watched, "#result_list tbody a")
    with watched.leaving():
        page.keyboard.press("Enter")
    assert page.locator("h2", has_text="trust assigned: source").is_visible()
    assert watched.worries == []


@pytest.mark.parametrize(("width", "dark"), [(DESK, False), (PHONE, True)])
def test_the_button_verifies_and_says_what_that_is_worth(
    open_page: OpenPage, paths: dict[str, str], width: int, dark: bool
) -> None:
    watched = open_page(width=width, dark=dark)
    watched.open(paths["verify"])
    with watched.leaving():
        watched.page.get_by_role("button", name="Verify").click()
    assert watched.page.locator("h2", has_text="as far as this server can say").is_visible()
    assert watched.page.locator(".wg-table .wg-pass").count() == 3
    shot(watched, f"verified-{width}{'-dark' if dark else ''}")
    assert overflow(watched) <= 0
    assert watched.worries == []


def test_checkpoint_and_key_are_copied(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=DESK)
    watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    watched.open(paths["checkpoint"])
    watched.page.get_by_role("button", name="Copy the checkpoint").click()
    watched.page.get_by_text("Copied", exact=True).wait_for()
    assert watched.page.evaluate("navigator.clipboard.readText()") == watched.page.locator("#note").text_content()
    assert watched.worries == []


def test_where_copying_is_not_allowed_the_text_is_selected(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=DESK)
    watched.open(paths["checkpoint"])
    watched.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    watched.page.get_by_role("button", name="Copy the key").click()
    watched.page.get_by_text("Selected: copy it by the keyboard").wait_for()
    assert watched.page.evaluate("getSelection().toString()") == watched.page.locator("#key-1").text_content()


def test_an_export_that_moves_is_followed_without_loading_the_page_again(open_page: OpenPage, paths: dict[str, str]) -> None:
    watched = open_page(width=DESK)
    watched.open(paths["export-that-waits"])
    progress = f"{paths['export-that-waits'].removesuffix('change/')}progress/"
    for _ in range(2):
        with watched.page.expect_response(lambda answer: answer.url.endswith(progress), timeout=5_000) as answer:
            pass
        assert answer.value.ok
    assert watched.page.locator("progress").is_visible()
    assert watched.worries == []


def test_an_export_is_taken_away_as_a_file(open_page: OpenPage, paths: dict[str, str], tmp_path: Path) -> None:
    watched = open_page(width=PHONE)
    watched.open(paths["export"])
    with watched.page.expect_download() as taken:
        watched.page.get_by_role("link", name="Download the export").click()
    taken.value.save_as(tmp_path / "trail.zip")
    assert (tmp_path / "trail.zip").read_bytes()[:2] == b"PK"
    assert taken.value.suggested_filename.startswith("writegate-trail-")
