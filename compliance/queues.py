"""The queue in our own PostgreSQL: kombu's transport, made fit for several processes that declare a queue at once.

Every process that sends or takes declares the queue first: it drops its table's trigger and makes it anew. Two that do so at the same
time met a trigger of that name, or each other in a deadlock; and a worker whose first declaration fails ends before it has begun.

And a worker that has done its task takes the next one at once. The transport as it is waits for a notification wherever there is
nothing to take, also while the worker is at its limit: of many short tasks it did one a second.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from kombu.transport import pgmq

_DECLARING = 0x77726974_71756575
"""The advisory lock under which a queue is declared."""
BUSY_SECONDS = 0.02
"""So often a worker at its limit looks whether it has done: what is done is acknowledged between two looks."""


class Channel(pgmq.Channel):
    """A channel that declares a queue while nobody else declares one."""

    _alone = False

    def _maybe_enable_notify(self, queue: str, queue_name: str | None = None) -> None:
        with self._declaring():
            super()._maybe_enable_notify(queue, queue_name)  # type: ignore[no-untyped-call]  # kombu states no types

    def _new_queue(self, queue: str, **options: object) -> None:
        with self._declaring():
            super()._new_queue(queue, **options)  # type: ignore[no-untyped-call]

    @contextmanager
    def _declaring(self) -> Iterator[None]:
        if self._alone:
            yield
            return
        # The client commits each of its statements: the lock is held by a connection of its own, and goes with it.
        with psycopg.connect(self.pgmq.config.dsn, autocommit=True) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", [_DECLARING])
            self._alone = True
            try:
                yield
            finally:
                self._alone = False


class Transport(pgmq.Transport):
    """What stands behind `pgmq://`, see `compliance.celery`."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:  # type: ignore[override]  # as theirs
        consuming = [channel for channel in self.channels or () if channel._consumers]  # noqa: SLF001 - nothing else tells
        if consuming and not any(channel.qos.can_consume() for channel in consuming):
            time.sleep(BUSY_SECONDS)
            raise TimeoutError
        super().drain_events(connection, timeout=timeout)  # type: ignore[no-untyped-call]
