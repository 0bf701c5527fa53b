"""How fast one host is asked, over all workers: so many requests a second, and so many at a time.

The rate is a row that says when the host may be asked next; who takes a turn moves it on. Places are locks of the session, which go
with their holder, however it ends.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, connection

from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import HostPace

LOOK_AGAIN_SECONDS = 0.05

_TURN = """
INSERT INTO evaluations_hostpace AS pace (host, next_at) VALUES (%(host)s, %(at)s + make_interval(secs => %(gap)s))
ON CONFLICT (host) DO UPDATE SET next_at = greatest(pace.next_at, %(at)s) + make_interval(secs => %(gap)s)
RETURNING next_at - make_interval(secs => %(gap)s)
"""


class HostBusy(Exception):
    """The host's next turn or place comes too late for this run; `wait` is how long it will be until then, as far as is known."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"the host may be asked again in {wait.total_seconds():.0f} s")
        self.wait = wait


@contextmanager
def session_lock(name: str) -> Iterator[bool]:
    """Yield whether this session holds the lock of that name for the length of the block. It goes with the session at the latest."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [name])
        held = bool(cursor.fetchone()[0])
    try:
        yield held
    finally:
        if held:
            with suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [name])


@contextmanager
def turn_at(host: str, *, ends: float) -> Iterator[None]:
    """Wait for a place and a turn at a host, and hold the place for the length of the block.

    Raises `HostBusy` where that would take until after `ends` of `time.monotonic()`.
    """
    while True:
        for place in range(settings.REFRESH_HOST_CONCURRENCY):
            with session_lock(f"host:{host}:{place}") as held:
                if held:
                    _wait_for_turn(host, ends)
                    yield
                    return
        if time.monotonic() + LOOK_AGAIN_SECONDS >= ends:
            raise HostBusy(timedelta(0))
        time.sleep(LOOK_AGAIN_SECONDS)


def hold_host(host: str, *, until: datetime) -> None:
    """Have nobody ask a host before an instant: it said so."""
    with service_transaction("hold_host"):
        HostPace.objects.get_or_create(host=host, defaults={"next_at": until})
        HostPace.objects.filter(host=host, next_at__lt=until).update(next_at=until)


def _wait_for_turn(host: str, ends: float) -> None:
    moment = now()
    known = HostPace.objects.filter(host=host).values_list("next_at", flat=True).first()
    _refuse_late(known or moment, moment, ends)
    with service_transaction("take_turn"), connection.cursor() as cursor:
        cursor.execute(_TURN, {"host": host, "at": moment, "gap": 1 / settings.REFRESH_HOST_RATE})
        turn = cursor.fetchone()[0]
    time.sleep(_refuse_late(turn, moment, ends))


def _refuse_late(turn: datetime, moment: datetime, ends: float) -> float:
    """Return the seconds until a turn. Raises `HostBusy` where it comes after the end."""
    seconds = max(0.0, (turn - moment).total_seconds())
    if seconds and time.monotonic() + seconds >= ends:
        raise HostBusy(timedelta(seconds=seconds))
    return seconds
