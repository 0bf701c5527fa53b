"""Workers as `serve` starts them, in processes of their own, at a real broker with a queue that nobody else uses.

They are those of `tests.support.slow_worker`: what happens in them is read from their logs.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings
from kombu import Connection, Queue, pools

from compliance import processes
from compliance.celery import app, broker_settings
from tests.support.cluster import Database
from tests.support.process import await_line, clean_environment, running


class Workers:
    """Workers at one queue, by their logs and by their main processes."""

    def __init__(self, logs: list[Path], pids: list[int]) -> None:
        self._logs = logs
        self.pids = pids

    def lines(self, beginning: str) -> list[str]:
        return [line for held in self.by_worker(beginning) for line in held]

    def by_worker(self, beginning: str) -> list[list[str]]:
        texts = [log.read_text(encoding="utf-8", errors="replace") for log in self._logs]
        return [[line for line in text.splitlines() if line.startswith(beginning)] for text in texts]

    def kill_at_work(self) -> None:
        """Kill the processes that carry tasks out; their main process lives and makes new ones."""
        for pid in self.pids:
            for child in psutil.Process(pid).children(recursive=True):
                child.kill()

    def kill(self) -> None:
        """Kill everything, as the loss of a machine does."""
        for pid in self.pids:
            main = psutil.Process(pid)
            for process in (main, *main.children(recursive=True)):
                process.kill()


def until(true: Callable[[], object], what: Callable[[], object], *, seconds: float = 60) -> None:
    """Wait until something is so; fail the test with `what()` after a while."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what()
        time.sleep(0.1)


@contextmanager
def own_queue(database: Database, *, visible_again: int, address: str = "") -> Iterator[dict[str, Any]]:
    """The settings of a broker with a queue that nobody else uses; this process sends to it. What a worker took and did not
    acknowledge it gives again after `visible_again` seconds. Without an address it is the database."""
    queue = f"writegate_test_{uuid.uuid4().hex[:8]}"
    made = broker_settings(address, database.roles.runtime_url)
    made["broker_transport_options"]["visibility_timeout"] = visible_again
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
    try:
        yield made
    finally:
        _send_to(before)
        with Connection(made["broker_url"], transport_options=made["broker_transport_options"]) as connection:
            Queue(queue)(connection.default_channel).delete()


def _send_to(made: dict[str, Any]) -> None:
    app.conf.update(made)
    # All three remember where they sent before.
    pools.reset()
    app._pool = None
    app.__dict__.pop("amqp", None)


@contextmanager
def working(
    database: Database, broker: dict[str, Any], directory: Path, *, count: int = 1, seconds: float = 0, **more: str
) -> Iterator[Workers]:
    """So many workers at the queue, ready. `seconds` is how long each of their looks at a grant lasts, `more` their environment."""
    options = {key: value for key, value in broker["broker_transport_options"].items() if key != "conn_string"}
    environment = clean_environment(
        DATABASE_URL=database.roles.runtime_url,
        WRITEGATE_DATA_DIR=str(settings.DATA_DIR),
        WRITEGATE_SECRET_KEY=settings.SECRET_KEY,
        WRITEGATE_QUEUE=broker["task_default_queue"],
        CELERY_BROKER_URL=broker["broker_url"] if broker["broker_url"].startswith("redis") else "",
        WRITEGATE_MAIL_URL="mailto://127.0.0.1:9?from=gate@example.org",
        SLOW_WORKER_SECONDS=str(seconds),
        SLOW_WORKER_OPTIONS=json.dumps(options),
        **more,
    )
    service = processes.services(host="", port=0, worker_processes=1)["worker"]
    command = ["tests.support.slow_worker" if part == "compliance" else part for part in service.command]
    logs = [directory / f"worker-{uuid.uuid4().hex[:8]}.log" for _ in range(count)]
    with ExitStack() as stack:
        pids = []
        for log in logs:
            named_so = [f"{log.stem}@%h" if part.startswith("worker-") else part for part in command]
            pids.append(stack.enter_context(running(named_so, environment, log)).pid)
        for log in logs:
            await_line(log, "ready\n", seconds=60)
        yield Workers(logs, pids)
