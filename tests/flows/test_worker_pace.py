"""A worker that has done its task takes the next one at once, from the queue in our own database."""

import time
from pathlib import Path

import pytest

from compliance import tasks
from tests.support.cluster import Database
from tests.support.workers import own_queue, until, working

pytestmark = pytest.mark.slow

TASKS = 40


def test_many_short_tasks_are_not_done_one_a_second(committed_db: Database, tmp_path: Path) -> None:
    with own_queue(committed_db, visible_again=60) as broker, working(committed_db, broker, tmp_path) as workers:
        for _ in range(TASKS):
            tasks.beat.delay()
        began = time.monotonic()
        until(lambda: len(workers.lines("ends")) == TASKS, lambda: workers.lines(""))
        assert time.monotonic() - began < TASKS / 2
        assert workers.lines("fails") == []
