"""O-29: pages over rows with one timestamp, forward and back, while more rows come in."""

from typing import Any

import pytest

from evaluations.kernel.clock import now
from evaluations.models import Document
from tests.compliance.api.world import Api


def add_documents(first: int, count: int) -> list[str]:
    """Insert documents that share one timestamp; return their digests in the order of insertion."""
    moment = now().replace(year=2026, month=1, day=1)
    rows = [
        Document(
            digest=f"sha256:{number:064x}",
            size=1,
            media_type="application/x-page",
            file_name=f"{number}.json",
            received_by="system_job:tests",
            received_at=moment,
        )
        for number in range(first, first + count)
    ]
    return [row.digest for row in Document.objects.bulk_create(rows)]


def walk(api: Api, address: str | None, direction: str, between: Any = lambda: None) -> tuple[list[str], list[Any]]:
    """Follow `next` or `previous` to the end; return the digests met in the order of the list, and the pages."""
    met: list[str] = []
    pages = []
    while address is not None:
        page = api.client.get(address, headers=api.headers).json()
        digests = [each["digest"] for each in page["results"]]
        met = met + digests if direction == "next" else digests + met
        pages.append(page)
        address = page[direction]
        between()
    return met, pages


@pytest.mark.parametrize("size", [50, 7, 120])
def test_each_of_120_rows_is_seen_once_forward_and_once_back_while_30_come_in(api: Api, size: int) -> None:
    newest_first = add_documents(1, 120)[::-1]
    fresh = iter(range(1000, 1030))

    def insert_five() -> None:
        for _ in range(5):
            number = next(fresh, None)
            if number is not None:
                add_documents(number, 1)

    start = f"/api/v1/documents?media_type=application/x-page&page_size={size}"
    met, forward = walk(api, start, "next", insert_five)
    assert met == newest_first
    assert forward[0]["previous"] is None
    assert next(fresh, None) is not None or size == 7, "some rows are left to come in on the way back"

    back, backward = walk(api, forward[-1]["previous"], "previous", insert_five)
    seen = back + [each["digest"] for each in forward[-1]["results"]]
    assert [digest for digest in seen if digest in newest_first] == newest_first
    assert len(seen) == len(set(seen))
    # What came in meanwhile stands before the 120, and whoever walks back far enough meets it: no link ever leads to nothing.
    assert size == 120 or len(seen) > 120
    assert not any(page["results"] == [] for page in forward + backward)


def test_going_forward_and_back_meets_the_same_page_again(api: Api) -> None:
    add_documents(1, 30)
    first = api.get("documents", {"page_size": 10}).json()
    second = api.client.get(first["next"], headers=api.headers).json()
    again = api.client.get(second["previous"], headers=api.headers).json()
    assert again["results"] == first["results"]
    assert again["previous"] is None
    assert api.client.get(again["next"], headers=api.headers).json()["results"] == second["results"]


def test_lists_that_run_oldest_first_are_walked_both_ways_too(api: Api) -> None:
    whole = [each["key"] for each in api.get("metrics").json()["results"]]
    assert len(whole) == 11
    first = api.get("metrics", {"page_size": 4}).json()
    second = api.client.get(first["next"], headers=api.headers).json()
    third = api.client.get(second["next"], headers=api.headers).json()
    assert [each["key"] for each in first["results"] + second["results"] + third["results"]] == whole
    assert third["next"] is None
    back = api.client.get(third["previous"], headers=api.headers).json()
    assert back["results"] == second["results"]


def test_a_page_has_50_rows_unless_asked_otherwise_and_links_keep_the_filters(api: Api) -> None:
    add_documents(1, 60)
    page = api.get("documents", {"media_type": "application/x-page"}).json()
    assert len(page["results"]) == 50
    assert "media_type=application%2Fx-page" in page["next"]
    assert len(api.client.get(page["next"], headers=api.headers).json()["results"]) == 10


def test_an_empty_list_has_no_links(api: Api) -> None:
    assert api.get("documents", {"media_type": "none/none"}).json() == {"next": None, "previous": None, "results": []}
