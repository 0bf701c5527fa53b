"""A database of the benchmark's own: an embedded server in a throwaway data directory, migrated and filled by the services."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.memory import high_mark


def prepare() -> None:
    """Start the embedded server, migrate, and keep messages to the workers in memory: no worker listens here."""
    for name in ("DATABASE_URL", "DATABASE_OWNER_URL"):
        os.environ.pop(name, None)
    os.environ["DJANGO_SETTINGS_MODULE"] = "compliance.settings"
    from compliance import startup

    startup.prepare(["manage.py", "migrate"])
    import django

    django.setup()
    from django.core.management import call_command

    from compliance.celery import app

    app.conf.update(broker_url="memory://", broker_transport_options={})
    call_command("migrate", verbosity=0, interactive=False)


class Spent(NamedTuple):
    """Seconds by the clock, of this process's CPU, and of the CPU of the database server's process behind its connection.

    The clock tells also of whoever else keeps the machine busy, the others hardly.
    """

    wall: float
    cpu: float
    database: float

    def since(self, before: "Spent") -> "Spent":
        return Spent(*(now - then for now, then in zip(self, before, strict=True)))


def spent() -> Spent:
    """Return what has been spent until now; the database's part is 0 where its process is on another machine."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    stat = Path(f"/proc/{pid}/stat")
    ticks = sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13])) if stat.exists() else 0
    return Spent(time.perf_counter(), time.process_time(), ticks / os.sysconf("SC_CLK_TCK"))


def measured(size: int, work: Callable[[], str]) -> None:
    """Run the work once and print what it took, as the last line, for the parent to read."""
    started = time.perf_counter()
    note = work()
    seconds = time.perf_counter() - started
    megabytes = high_mark()
    result: dict[str, Any] = {"size": size, "seconds": seconds, "megabytes": megabytes, "note": note}
    json.dump(result, sys.stdout)
    print()
