"""What the processes of the ledger's hard tests and of its bench do. Started as `python -m tests.support.ledger_worker WHAT …`.

- `append NAME COUNT`: COUNT events, each in a transaction of its own; prints the target of each as soon as its commit has returned.
  Where the connection breaks it looks whether the entry is there before it tries again.
- `pour NAME COUNT`: as fast as it goes; says `ready`, waits for a line on standard input, and says `done`.
- `seal KILLS`: a sealer that is killed by SIGKILL after a random while, KILLS times, then one that lives until it is told to end.
"""

import os
import random
import signal
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")
django.setup()

from django.db import OperationalError, connection, transaction  # noqa: E402

from compliance.models import LedgerEntry  # noqa: E402
from compliance.services.sealing import seal  # noqa: E402
from evaluations.kernel import audit  # noqa: E402
from evaluations.kernel.actor import system_job  # noqa: E402

ACTOR = system_job("worker")
LONGEST_LIFE = 0.25
BATCH = 20


def append(name: str, count: int) -> None:
    for number in range(count):
        target = f"{name}-{number}"
        while True:
            try:
                with transaction.atomic():
                    audit.record(audit.Event(action="thing.made", actor=ACTOR, target=("thing", target), new={"number": number}))
                break
            except OperationalError:
                connection.close()
                if _is_there(target):
                    break
        print(target, flush=True)


def _is_there(target: str) -> bool:
    while True:
        try:
            return LedgerEntry.objects.filter(target_kind="thing", target_id=target).exists()
        except OperationalError:
            connection.close()
            time.sleep(0.05)


def pour(name: str, count: int) -> None:
    with connection.cursor():
        pass
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        with transaction.atomic():
            audit.record(
                audit.Event(
                    action="decision.made",
                    actor=ACTOR,
                    target=("decision", f"{name}-{number}"),
                    old=None,
                    new={"allow": False, "reason": "no_grant", "subject": "claude-fable-5", "system": "hr-prod"},
                    digests={"policy": "sha256:" + 64 * "0", "facts": "sha256:" + 64 * "1"},
                    request_id=f"{number:032x}",
                )
            )
    print("done", flush=True)


def seal_and_die(kills: int) -> None:
    """Fork sealers from this warm process; each dies in the middle of whatever it is doing."""
    chance = random.Random(kills)
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            _seal_for_ever()
        time.sleep(chance.uniform(0.005, LONGEST_LIFE))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            raise SystemExit(f"a sealer ended by itself: {status}")
        print("killed", flush=True)
    _seal_for_ever()


def _seal_for_ever() -> None:
    while True:
        try:
            seal(batch=BATCH)
        except OperationalError:
            connection.close()
            time.sleep(0.02)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["append", name, count]:
            append(name, int(count))
        case ["pour", name, count]:
            pour(name, int(count))
        case ["seal", kills]:
            seal_and_die(int(kills))
        case other:
            raise SystemExit(f"unknown: {other}")
