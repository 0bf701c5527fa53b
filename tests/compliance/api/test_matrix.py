"""Who gets what answer where: every endpoint, everybody, own and foreign objects, held against a table that a change must touch."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compliance.api.matrix import PARTS, Scene, Table, build_scene, endpoints, observe, part_of, render
from tests.support.undoing import undone

TABLE = Path("tests/baselines/permissions.json")


@pytest.fixture(scope="module")
def scene(django_db_setup: None, django_db_blocker) -> Iterator[Scene]:
    with django_db_blocker.unblock(), undone():
        yield build_scene()


def stated() -> Table:
    table: Table = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def test_every_endpoint_has_a_row_and_every_row_an_endpoint() -> None:
    known = {endpoint.row for part in PARTS for endpoint in endpoints(part)}
    missing, left = sorted(known - set(stated())), sorted(set(stated()) - known)
    assert not missing, (
        f"endpoints without a row in {TABLE}: {missing}. Say in tests/compliance/api/matrix.py which object stands in their parameters "
        "and which body they take, run test_who_gets_which_answer, look at each line that it writes, and add those you agree with"
    )
    assert not left, f"rows of {TABLE} without an endpoint: {left}"


@pytest.mark.slow
@pytest.mark.parametrize("part", list(PARTS))
def test_who_gets_which_answer(scene: Scene, part: str, tmp_path: Path) -> None:
    seen = observe(part, scene)
    table = stated()
    differing = {row: (table.get(row), seen[row]) for row in seen if table.get(row) != seen[row]}
    if differing:
        others = {row: sides for row, sides in table.items() if part_of(row.partition(" /")[2]) != part}
        written = tmp_path / "permissions.json"
        written.write_text(render({**others, **seen}), encoding="utf-8")
        shown = "\n".join(f"{row}\n  stated {was}\n  got    {got}" for row, (was, got) in list(differing.items())[:20])
        pytest.fail(f"{len(differing)} rows of {TABLE} differ; where that is meant, copy {written} there:\n{shown}")


def test_nobody_but_readers_of_all_sees_a_foreign_object() -> None:
    """What the table may never come to say, whoever copies what."""
    for row, sides in stated().items():
        if row.startswith(("GET /api/v1/requests/", "GET /api/v1/grants/<", "GET /api/v1/waivers/")):
            seers = set(sides["foreign"].get("200", "").split())
            assert seers <= {"auditor", "administrator", "security"}, row
            assert "token:foreign" not in sides["own"].get("200", ""), row


def test_no_token_signs_stops_breaks_glass_or_gives_roles() -> None:
    acts = ("sign-offs", "grants/stop", "grants/break-glass", "/roles", "/end")
    for row, sides in stated().items():
        if row.startswith("POST /api/v1/") and row.endswith(acts):
            for statuses in sides.values():
                done = " ".join(callers for status, callers in statuses.items() if status < "400")
                assert "token:" not in done, row
