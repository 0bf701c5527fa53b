"""Whether this installation can do its work: read, never write."""

from dataclasses import dataclass
from functools import lru_cache

from django.db import DatabaseError, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from compliance.models import ServiceBeat
from evaluations.kernel.clock import now

# Seconds. The scheduler sends a beat every ten: three may be late before we speak of it.
BEAT_MAY_BE_OLD = 35.0
BEATING = ("worker", "scheduler")


@dataclass(frozen=True, slots=True)
class Readiness:
    """One part's state; `age_seconds` is how old our knowledge of it is, None when we never heard of it."""

    ok: bool
    age_seconds: float | None
    problem: str = ""

    def as_json(self) -> dict[str, bool | float | str | None]:
        """`ok`, `age_seconds` and, where it is not ok, `problem`; no address, name or version of anything."""
        said: dict[str, bool | float | str | None] = {"ok": self.ok, "age_seconds": self.age_seconds}
        return said if self.ok else said | {"problem": self.problem}


def read_readiness() -> dict[str, Readiness]:
    """The state of `database`, `migrations`, `worker` and `scheduler`, in this order. Raises nothing for a missing database."""
    unknown = Readiness(False, None, "unknown: the database does not answer")
    try:
        missing = _unapplied_migrations()
    except DatabaseError:
        return {"database": Readiness(False, None, "does not answer"), "migrations": unknown} | dict.fromkeys(BEATING, unknown)
    found = {"database": Readiness(True, 0.0)}
    if missing:
        found["migrations"] = Readiness(False, 0.0, f"{len(missing)} migrations are not applied")
    else:
        found["migrations"] = Readiness(True, 0.0)
    return found | _beats()


def _unapplied_migrations() -> list[tuple[str, str]]:
    connection = connections["default"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('django_migrations') IS NOT NULL")
        exists = cursor.fetchone()[0]
    applied = MigrationRecorder(connection).applied_migrations() if exists else {}
    return sorted(known_migrations() - set(applied))


@lru_cache(maxsize=1)
def known_migrations() -> frozenset[tuple[str, str]]:
    """Every migration on disk, as (app, name); they do not change while a process runs."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


def _beats() -> dict[str, Readiness]:
    try:
        beats = dict(ServiceBeat.objects.values_list("name", "beat_at"))
    except DatabaseError:
        return dict.fromkeys(BEATING, Readiness(False, None, "unknown: its table is missing"))
    moment = now()
    found: dict[str, Readiness] = {}
    for name in BEATING:
        if name not in beats:
            found[name] = Readiness(False, None, "never heard of")
            continue
        # Clocks of several machines differ a little; nothing is younger than now.
        age = max(0.0, round((moment - beats[name]).total_seconds(), 1))
        ok = age <= BEAT_MAY_BE_OLD
        found[name] = Readiness(ok, age, "" if ok else f"not heard of for more than {BEAT_MAY_BE_OLD:.0f} seconds")
    return found
