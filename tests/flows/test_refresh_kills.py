"""A worker killed in the middle of a refresh: it is found, said with its cause, and the next run takes each row once.

A real worker at a real broker, and a source on the loopback address. It is killed where the most can go wrong: while the body comes,
and when every row is in the tables but for the commit.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from compliance.models import LedgerEntry
from evaluations import tasks
from evaluations.models import Document, Evidence, Observation, RefreshRun, SourceSchedule
from evaluations.services.refresh import request_refresh
from tests.conftest import Connect
from tests.support import world
from tests.support.cluster import Database
from tests.support.sources import Reply, SourceServer, ended, scheduled, source_server, table
from tests.support.workers import Workers, own_queue, until, working

pytestmark = pytest.mark.slow

VISIBLE_AGAIN = 3  # seconds
BODY = table(m=84, other=70, stranger=12)
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

Moment = Callable[[SourceServer, SourceSchedule, Connect], AbstractContextManager[None]]


@contextmanager
def while_the_body_comes(server: SourceServer, schedule: SourceSchedule, connect: Connect) -> Iterator[None]:
    server.say("/results.csv", Reply(BODY, drip=0.2), Reply(BODY))
    tasks.refresh_source.delay(schedule.source_id)
    until(lambda: server.heard, lambda: "nobody asked the source")
    yield


@contextmanager
def before_the_commit(server: SourceServer, schedule: SourceSchedule, connect: Connect) -> Iterator[None]:
    server.say("/results.csv", Reply(BODY))
    with connect(autocommit=False) as holding:
        # The last thing that the transaction does is to move the schedule on.
        holding.execute("SELECT FROM evaluations_sourceschedule FOR UPDATE")
        tasks.refresh_source.delay(schedule.source_id)
        watching = connect()
        until(lambda: watching.execute(WAITING).fetchone() == (1,), lambda: "nobody waits for the schedule")
        yield


@pytest.fixture
def server(committed_db: Database, settings: Any) -> Iterator[SourceServer]:
    world.register("m", "other")
    with source_server() as served:
        settings.REFRESH_ALLOW = [served.place]
        yield served


def counts() -> tuple[int, int, int]:
    return Document.objects.count(), Evidence.objects.count(), Observation.objects.count()


@pytest.mark.parametrize("moment", [while_the_body_comes, before_the_commit])
@pytest.mark.parametrize("killed", [Workers.kill_at_work, Workers.kill])
def test_a_worker_killed_in_the_middle_of_a_refresh(
    committed_db: Database,
    server: SourceServer,
    superuser_connection: Connect,
    tmp_path: Path,
    moment: Moment,
    killed: Callable[[Workers], None],
) -> None:
    schedule = scheduled(server.url())
    with ExitStack() as stack:
        broker = stack.enter_context(own_queue(committed_db, visible_again=VISIBLE_AGAIN))

        def work() -> Workers:
            allowed = {"WRITEGATE_REFRESH_ALLOW": server.place, "WRITEGATE_REFRESH_HOST_RATE": "1000"}
            return stack.enter_context(working(committed_db, broker, tmp_path, **allowed))

        workers = work()
        with moment(server, schedule, superuser_connection):
            killed(workers)
        # Nobody said that it ended, and nothing of it is there.
        left = RefreshRun.objects.get()
        assert (left.outcome, left.ended_at, counts()) == ("running", None, (0, 0, 0))
        if killed is Workers.kill:
            workers = work()
        tasks.refresh_due.delay()
        until(lambda: LedgerEntry.objects.filter(action="refresh_run.ended").count() == 2, lambda: workers.lines(""))

        first, second = RefreshRun.objects.order_by("id")
        assert (first.pk, ended(first), ended(second)) == (left.pk, ("interrupted", "worker_gone"), ("taken", "new_evidence"))
        assert first.detail == "the worker that carried it out ended before it did"
        assert (second.taken, second.held, counts()) == (3, 1, (1, 3, 3))
        assert schedule.reload().failed_runs == 0

        # The same once more: the message of a run that is over, and a run that fetches the same bytes.
        tasks.refresh_source.delay(schedule.source_id)
        again = request_refresh(actor=world.ACTOR, source=schedule.source, forced=True)
        tasks.refresh_source.delay(schedule.source_id)
        until(lambda: again.reload().ended_at is not None, lambda: workers.lines(""))
        assert ended(again) == ("unchanged", "same_bytes")
        assert (RefreshRun.objects.count(), counts()) == (3, (1, 3, 3))
        assert workers.lines("fails") == []
