"""The impact of a proposed version over the API: four numbers, the first of each list, and every change page by page."""

import pytest

from policies.models import PolicyVersion
from tests.compliance.api.world import Api, World
from tests.support import world as made

KEYS = ("m60", "m70", "m90")


@pytest.fixture
def looser(world: World) -> PolicyVersion:
    """Three models under a bar of 80 in force, and a proposed bar of 65."""
    made.register(*KEYS)
    for key in KEYS:
        made.submit(made.submission(key, made.observation(key[1:])), f"{key}.json")
    made.activate(made.propose(80))
    version = made.propose(65)
    made.judge_all()
    return version


def test_the_summary_says_yes_or_no_and_why(api: Api, looser: PolicyVersion) -> None:
    told = api.get("policies/one-rule/versions/2/impact").json()
    assert (told["no_new_access"], told["why"], told["newly_permitted_count"]) == (False, ["1 newly permitted"], 1)
    assert [(row["subject"], row["before"], row["after"], row["distance"]) for row in told["nearest"]] == [
        ("m60", "fail", "fail", "5"), ("m70", "fail", "pass", "5"), ("m90", "pass", "pass", "25"),
    ]  # fmt: skip


def test_changes_come_page_by_page_and_each_once(api: Api, looser: PolicyVersion) -> None:
    address, found, pages = "policies/one-rule/versions/2/impact/rows?page_size=1", [], 0
    while address:
        page = api.get(address).json()
        found += [(row["subject"], row["change"]) for row in page["results"]]
        address, pages = (page["next"] or "").partition("/api/v1/")[2], pages + 1
    assert found == [("m70", "newly_permitted")]
    assert pages >= len(KEYS)
    assert api.get("policies/one-rule/versions/2/impact/rows?change=newly_refused").json()["results"] == []


@pytest.mark.parametrize("address", ["impact", "impact/rows"])
def test_of_a_version_that_is_not_there_nothing_is_told(api: Api, looser: PolicyVersion, address: str) -> None:
    assert api.get(f"policies/one-rule/versions/9/{address}").status_code == 404
