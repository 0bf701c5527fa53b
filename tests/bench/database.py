"""A database of the benchmark's own: an embedded server in a throwaway data directory, migrated and filled by the services."""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


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


def measured(size: int, work: Callable[[], str]) -> None:
    """Run the work once and print what it took, as the last line, for the parent to read."""
    started = time.perf_counter()
    note = work()
    seconds = time.perf_counter() - started
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result: dict[str, Any] = {"size": size, "seconds": seconds, "megabytes": megabytes, "note": note}
    json.dump(result, sys.stdout)
    print()
