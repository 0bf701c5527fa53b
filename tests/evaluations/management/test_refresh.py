"""`manage.py refresh`: what it asks, what it says, and how it ends."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command

from evaluations.models import RefreshRun
from tests.support import world
from tests.support.sources import Reply, SourceServer, scheduled, source_server, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(settings: Any) -> Iterator[SourceServer]:
    world.register("m")
    settings.REFRESH_HOST_RATE = 1000
    with source_server() as served:
        settings.REFRESH_ALLOW = [served.place]
        served.say("/results.csv", Reply(table(m=84, stranger=3), headers={"ETag": '"1"'}))
        served.say("/bad.csv", Reply(table(m="a lot")))
        yield served


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("refresh", *arguments, stdout=out, stderr=err)
    except SystemExit as stop:
        return int(stop.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_what_is_due_is_refreshed_and_then_nothing_is(server: SourceServer) -> None:
    scheduled(server.url())
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "[1/1] lab …" in out
    assert "2 observations taken, 1 held until their names are assigned" in out
    assert run() == (0, "nothing is due\n", "")
    code, out, _ = run("lab")
    assert (code, "unchanged" in out) == (0, True)
    code, out, _ = run("lab", "--force")
    assert (code, "recorded before from the same bytes" in out) == (0, True)


def test_one_that_fails_is_told_of_with_its_place_and_the_others_go_on(server: SourceServer) -> None:
    scheduled(server.url("/bad.csv"), key="a-bad-one")
    scheduled(server.url())
    scheduled(server.url(), key="paused", paused=True)
    code, out, _ = run("--all")
    assert code == 1
    assert "refused: bad.csv, 2, value:" in out
    assert "[2/2] lab …\n  taken" in out
    assert RefreshRun.objects.count() == 2


def test_a_source_without_a_schedule_is_refused(server: SourceServer) -> None:
    code, out, err = run("lab")
    assert (code, out) == (2, "")
    assert err == "error: no source `lab` with a schedule\n"
    assert server.heard == []
