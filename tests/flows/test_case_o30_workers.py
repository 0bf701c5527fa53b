"""Case O-30 with real workers at a real broker: what is delivered again while it still runs, what rolls back, and what commits late.

Two workers, a visibility timeout of 5 s, and a drift check that lasts 20 s inside its transaction.
"""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from django.test import Client
from kombu import Connection, Queue, pools

from compliance import processes
from compliance.celery import app, broker_settings
from compliance.models import AuditExport, DriftNotice, Grant, GrantEvent, LedgerEntry, OutboxMessage
from compliance.services.people import create_token
from compliance.vocabulary import GrantStatus, NoticeKind, Role
from tests.conftest import Connect
from tests.support import signing, world
from tests.support.cluster import Database
from tests.support.process import await_line, clean_environment, running

pytestmark = pytest.mark.slow

VISIBLE_AGAIN, CHECK, LATE = 5, 20, 3  # seconds
AT_COMMIT = """
CREATE FUNCTION o30_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {what}; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER o30_at_commit AFTER INSERT ON compliance_auditexport DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION o30_at_commit();
"""
GONE = "DROP TRIGGER o30_at_commit ON compliance_auditexport; DROP FUNCTION o30_at_commit()"


class Workers:
    """Two workers at a queue of their own, by their logs."""

    def __init__(self, logs: list[Path]) -> None:
        self._logs = logs

    def lines(self, beginning: str) -> list[str]:
        return [line for held in self.by_worker(beginning) for line in held]

    def by_worker(self, beginning: str) -> list[list[str]]:
        texts = [log.read_text(encoding="utf-8", errors="replace") for log in self._logs]
        return [[line for line in text.splitlines() if line.startswith(beginning)] for text in texts]


def until(true: Callable[[], object], what: Callable[[], object], *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what()
        time.sleep(0.1)


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
    queue = f"writegate_test_{uuid.uuid4().hex[:8]}"
    address = os.environ[request.param] if request.param else ""
    made = broker_settings(address, committed_db.roles.runtime_url)
    made["broker_transport_options"]["visibility_timeout"] = VISIBLE_AGAIN
    if address:
        # What is unacknowledged, Redis holds in one place for all queues, and the workers look there every 100 s.
        made["broker_transport_options"] |= {
            "global_keyprefix": f"{queue}:",
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
        }
    made["task_default_queue"] = queue
    before = {name: app.conf[name] for name in made}
    _send_to(made)
    yield made
    _send_to(before)
    with Connection(made["broker_url"], transport_options=made["broker_transport_options"]) as connection:
        Queue(queue)(connection.default_channel).delete()
    if address:
        with redis.Redis.from_url(address) as server:
            for key in server.scan_iter(f"{queue}:*"):
                server.delete(key)


def _send_to(made: dict[str, Any]) -> None:
    app.conf.update(made)
    # All three remember where they sent before.
    pools.reset()
    app._pool = None
    app.__dict__.pop("amqp", None)


@pytest.fixture
def workers(broker: dict[str, Any], committed_db: Database, settings: Any, tmp_path: Path) -> Iterator[Workers]:
    named = broker["broker_url"] if broker["broker_url"].startswith("redis") else ""
    environment = clean_environment(
        DATABASE_URL=committed_db.roles.runtime_url,
        WRITEGATE_DATA_DIR=str(settings.DATA_DIR),
        WRITEGATE_SECRET_KEY=settings.SECRET_KEY,
        WRITEGATE_QUEUE=broker["task_default_queue"],
        CELERY_BROKER_URL=named,
        WRITEGATE_MAIL_URL="mailto://127.0.0.1:9?from=gate@example.org",
        SLOW_WORKER_SECONDS=str(CHECK),
        SLOW_WORKER_OPTIONS=json.dumps(
            {key: value for key, value in broker["broker_transport_options"].items() if key != "conn_string"}
        ),
    )
    service = processes.services(host="", port=0, worker_processes=1)["worker"]
    command = ["tests.support.slow_worker" if part == "compliance" else part for part in service.command]
    logs = [tmp_path / f"worker-{number}.log" for number in (1, 2)]
    with ExitStack() as stack:
        for log in logs:
            named_so = [f"{log.stem}@%h" if part.startswith("worker-") else part for part in command]
            stack.enter_context(running(named_so, environment, log))
        for log in logs:
            await_line(log, "ready\n", seconds=60)
        yield Workers(logs)


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
