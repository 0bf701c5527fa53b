"""Whoever dies in the middle of a request leaves nothing lost, nothing doubled and nothing half made."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db.models import Count

from compliance.ledger.verifier import verify_export
from compliance.models import Grant, GrantEvent, LedgerEntry, OutboxMessage, Seat, SignOff, SignOffRequest
from compliance.selectors.population import population_report
from compliance.vocabulary import GrantStatus, RequestStatus
from tests.support import signing
from tests.support.cluster import Database
from tests.support.ledger import export
from tests.support.process import ROOT, clean_environment
from tests.support.signing_worker import BACK_EVERY, SUSPENDED_EVERY
from tests.support.unsigned import unsigned_grants

KILLS, REQUESTS = 30, 500


@pytest.mark.slow
def test_a_story_whose_teller_is_killed_thirty_times_is_told_once(committed_db: Database, tmp_path: Path) -> None:
    signing.ground()
    # The ground's own policy came into force by a request that was planted.
    before = differing()
    told = subprocess.run(
        [sys.executable, "-m", "tests.support.signing_worker", str(KILLS), str(REQUESTS)],
        cwd=ROOT,
        env=clean_environment(
            DATABASE_URL=committed_db.roles.runtime_url,
            DATABASE_OWNER_URL=committed_db.roles.owner_url,
            WRITEGATE_DATA_DIR=str(settings.DATA_DIR),
            WRITEGATE_SECRET_KEY=settings.SECRET_KEY,
        ),
        capture_output=True,
        text=True,
        timeout=1_800,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert told.stdout.split() == ["killed"] * KILLS + ["told"]

    back = len(range(0, REQUESTS, BACK_EVERY))
    _assert_each_request_has_its_one_effect(back)
    _assert_nothing_is_told_twice(back)
    assert unsigned_grants() == []
    assert differing() == before
    export(tmp_path / "trail.zip")
    with (tmp_path / "trail.zip").open("rb") as stream:
        assert verify_export(stream).findings == []


def differing() -> list[tuple[str, int, tuple[str, ...]]]:
    return [(line.table, line.differing, line.examples) for line in population_report() if line.differing]


def _assert_each_request_has_its_one_effect(back: int) -> None:
    asked = SignOffRequest.objects.filter(kind="grant")
    assert asked.count() == asked.values("reason").distinct().count() == REQUESTS
    assert set(asked.values_list("status", flat=True)) == {RequestStatus.COMPLETED}
    assert Grant.objects.count() == Grant.objects.values("request").distinct().count() == REQUESTS
    assert set(Grant.objects.values_list("status", flat=True)) == {GrantStatus.SUSPENDED}
    returned = SignOffRequest.objects.filter(kind="reinstatement")
    assert set(returned.values_list("status", flat=True)) == {RequestStatus.COMPLETED}
    assert returned.count() == returned.values("grant").distinct().count() == back
    both = SignOff.objects.filter(request__kind__in=["grant", "reinstatement"])
    assert both.count() == both.values("request", "person").distinct().count() == 2 * (REQUESTS + back)
    assert Seat.objects.filter(sign_off__in=both).count() == 2 * (REQUESTS + back)


def _assert_nothing_is_told_twice(back: int) -> None:
    moves = dict(GrantEvent.objects.order_by().values_list("move").annotate(Count("id")))
    stopped = len(range(0, REQUESTS, SUSPENDED_EVERY))
    # By hand each fifth; at the end, by drift, whatever was not suspended still.
    assert moves == {"made": REQUESTS, "suspended": stopped + REQUESTS - (stopped - back), "reinstated": back}
    for move, count in moves.items():
        assert LedgerEntry.objects.filter(action=f"grant.{move}").count() == count
    keys = OutboxMessage.objects.order_by().values("dedupe_key").annotate(times=Count("id"))
    assert not keys.filter(times__gt=1).exists()
    decided = OutboxMessage.objects.filter(kind="request_decided").values("subject", "channel", "person_id", "destination")
    assert decided.count() == decided.distinct().count()
