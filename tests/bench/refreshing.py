"""N sources refreshed that have not changed: a real server on the loopback address answers 304, two worker processes ask.

`python -m tests.bench.refreshing N`. All sources lie on one host. By default a host is asked 5 times a second, which alone would make
200 s of 1,000 sources: here it is allowed `HOST_RATE` a second by WRITEGATE_REFRESH_HOST_RATE, so that our own work is measured.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.bench.database import measured, prepare

WORKERS = 2
HOST_RATE = 1_000
LONGEST_SECONDS = 600


def main(size: int) -> None:
    prepare()
    from compliance import processes
    from compliance.celery import app, broker_settings
    from evaluations import tasks
    from evaluations.kernel.clock import now
    from evaluations.kernel.services import service_transaction
    from evaluations.models import RefreshRun, SourceSchedule
    from tests.bench.world import register_world
    from tests.support import world
    from tests.support.process import await_line, running
    from tests.support.sources import Reply, scheduled, source_server, table

    app.conf.update(broker_settings("", os.environ["DATABASE_URL"]))
    register_world(world.ACTOR)

    def ended(*outcomes: str) -> int:
        return RefreshRun.objects.filter(outcome__in=outcomes).count()

    def await_all(count: Callable[[], int], wanted: int) -> None:
        until = time.monotonic() + LONGEST_SECONDS
        while count() < wanted:
            if time.monotonic() > until:
                raise SystemExit(f"{count()} of {wanted} after {LONGEST_SECONDS} s; {ended('failed')} failed")
            # As the scheduler does: no more than some hundreds are sent out at once.
            tasks.refresh_due()
            time.sleep(0.2)

    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(source_server())
        os.environ["WRITEGATE_REFRESH_ALLOW"] = server.place
        os.environ["WRITEGATE_REFRESH_HOST_RATE"] = str(HOST_RATE)
        os.environ |= {"SLOW_WORKER_SECONDS": "0", "SLOW_WORKER_OPTIONS": "{}"}
        from django.conf import settings

        settings.REFRESH_ALLOW = [server.place]
        command = processes.services(host="", port=0, worker_processes=1)["worker"].command
        for number in range(WORKERS):
            # Those that say when they are ready.
            named = ["tests.support.slow_worker" if part == "compliance" else part for part in command]
            named = [f"refresh-{number}@%h" if part.startswith("worker-") else part for part in named]
            log = directory / f"worker-{number}.log"
            stack.enter_context(running(named, processes.child_environment(), log))
            await_line(log, "ready\n", seconds=60)
        before = ended("taken", "unchanged")
        schedules = []
        for number in range(size):
            path = f"/{size}-{number}.csv"
            body = table(**{f"m-{size}-{number}": 84}).replace(b",bench,", b",bench-a,")
            server.say(path, Reply(body, headers={"ETag": f'"{number}"'}))
            schedules.append(scheduled(server.url(path), key=f"bench-{size}-{number}").pk)
        await_all(lambda: ended("taken", "unchanged") - before, size)

        def work() -> str:
            known = ended("unchanged")
            spent = sum(os.times()[:2])
            with service_transaction("bench"):
                SourceSchedule.objects.filter(pk__in=schedules).update(due_at=now(), queued_until=None)
            await_all(lambda: ended("unchanged") - known, size)
            told = (
                f"{WORKERS} workers, one host at {HOST_RATE:,} a second at most, {ended('failed', 'deferred')} failed or deferred"
            )
            return f"{told}, {sum(os.times()[:2]) - spent:.1f} s of processor for server and clock"

        measured(size, work)


if __name__ == "__main__":
    main(int(sys.argv[1]))
