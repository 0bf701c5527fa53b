"""Case O-30 with real workers at a real broker: what is delivered again while it still runs, what rolls back, and what commits late.

Two workers, a visibility timeout of 5 s, and a drift check that lasts 20 s inside its transaction.
"""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from django.test import Client

from compliance.models import AuditExport, DriftNotice, Grant, GrantEvent, LedgerEntry, OutboxMessage
from compliance.services.people import create_token
from compliance.vocabulary import GrantStatus, NoticeKind, Role
from tests.conftest import Connect
from tests.support import signing, world
from tests.support.cluster import Database
from tests.support.workers import Workers, own_queue, until, working

pytestmark = pytest.mark.slow

VISIBLE_AGAIN, CHECK, LATE = 5, 20, 3  # seconds
AT_COMMIT = """
CREATE FUNCTION o30_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {what}; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER o30_at_commit AFTER INSERT ON compliance_auditexport DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION o30_at_commit();
"""
GONE = "DROP TRIGGER o30_at_commit ON compliance_auditexport; DROP FUNCTION o30_at_commit()"


@pytest.fixture
def grant(committed_db: Database) -> Grant:
    """A grant that stands; what its making announces is heard by nobody."""
    return signing.granted(signing.ground("84"))


@pytest.fixture(
    params=[
        pytest.param("", id="our own database"),
        pytest.param("WRITEGATE_TEST_REDIS_URL", id="redis", marks=pytest.mark.real_servers("WRITEGATE_TEST_REDIS_URL")),
    ]
)
def broker(request: pytest.FixtureRequest, committed_db: Database, grant: Grant) -> Iterator[dict[str, Any]]:
    """The settings of a broker with a queue that nobody else uses; this process sends to it."""
    address = os.environ[request.param] if request.param else ""
    with own_queue(committed_db, visible_again=VISIBLE_AGAIN, address=address) as made:
        yield made
    if address:
        with redis.Redis.from_url(address) as server:
            for key in server.scan_iter(f"{made['task_default_queue']}:*"):
                server.delete(key)


@pytest.fixture
def workers(broker: dict[str, Any], committed_db: Database, tmp_path: Path) -> Iterator[Workers]:
    with working(committed_db, broker, tmp_path, count=2, seconds=CHECK) as found:
        yield found


@contextmanager
def at_commit(connect: Connect, what: str) -> Iterator[None]:
    """Have something happen when a transaction that ordered an export commits."""
    connection = connect()
    connection.execute(AT_COMMIT.format(what=what))
    try:
        yield
    finally:
        connection.execute(GONE)


def order(secret: str) -> int:
    """Order an export as a program does, in a request that queues a task; returns the status."""
    client = Client(raise_request_exception=False)
    headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": uuid.uuid4().hex}
    return client.post("/api/v1/ledger/exports", b"{}", content_type="application/json", headers=headers).status_code


def test_case_o30_with_two_workers(grant: Grant, workers: Workers, superuser_connection: Connect) -> None:
    auditor = signing.human("Anna Auditor", Role.AUDITOR)
    secret = create_token(actor=world.ACTOR, name="audit", scopes=["read"], person=auditor.person).secret

    # Rolled back at its commit: nobody hears of it. Committed 3 s late: whoever hears of it finds its row.
    with at_commit(superuser_connection, "RAISE EXCEPTION 'the commit fails'"):
        assert order(secret) == 500
    with at_commit(superuser_connection, f"PERFORM pg_sleep({LATE})"):
        began = time.monotonic()
        assert order(secret) == 202
        assert time.monotonic() - began > LATE
    until(lambda: workers.lines("ends compliance.tasks.advance_audit_export"), lambda: workers.lines(""))
    assert AuditExport.objects.get().status == "done"
    assert len(workers.lines("begins compliance.tasks.advance_audit_export")) == 1

    # Delivered again every 5 s while the first check still runs: both workers look at the same grant at once.
    assert grant.reload().status == GrantStatus.ACTIVE
    later = {"status": "complete", "ended_at": "2026-11-20T00:00:00Z"}
    world.submit(world.submission("model-a", world.observation("71"), run=later))
    until(lambda: grant.reload().status == GrantStatus.SUSPENDED, lambda: workers.lines(""), seconds=90)
    settled(workers)

    assert all(workers.by_worker("looks")), "the check was delivered again, to the other worker"
    assert_stopped_once()
    assert workers.lines("fails") == []


def settled(workers: Workers) -> None:
    """Wait until whatever was begun has ended, and nothing new has begun for longer than a message stays invisible."""
    seen, since = -1, time.monotonic()

    def quiet() -> bool:
        nonlocal seen, since
        begun, ended = len(workers.lines("begins")), len(workers.lines("ends"))
        if begun != ended or begun != seen:
            seen, since = begun, time.monotonic()
        return time.monotonic() - since > VISIBLE_AGAIN + 2

    until(quiet, lambda: workers.lines(""), seconds=180)


def assert_stopped_once() -> None:
    assert GrantEvent.objects.filter(move="suspended").count() == 1
    assert LedgerEntry.objects.filter(action="grant.suspended").count() == 1
    assert DriftNotice.objects.count() == LedgerEntry.objects.filter(action="drift.noticed").count() == 0
    told = OutboxMessage.objects.filter(kind=NoticeKind.GRANT_SUSPENDED)
    assert told.values("event_id").distinct().count() == 1
    assert told.count() == told.values("person_id", "channel", "destination").distinct().count() > 0
