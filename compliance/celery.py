"""The Celery application: finds tasks by name, knows its queue and its clock, imports nothing of ours.

The broker is `CELERY_BROKER_URL` (RabbitMQ or Redis), else queues in our own PostgreSQL by kombu's `pgmq` transport, whose
SQL `manage.py migrate` installs as the owner role. No results are kept: a task's effect is in the tables, or it did not happen.
"""

import os
import warnings
from datetime import UTC, datetime
from typing import Any

from celery import Celery
from celery.schedules import crontab
from celery.signals import beat_init, before_task_publish, setup_logging
from kombu.transport import TRANSPORT_ALIASES
from psycopg.conninfo import make_conninfo

from compliance import telemetry
from compliance.connections import parse_address

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

# Seconds. A message becomes visible again when its worker is killed, so the first must be above every task's hard limit. The one task
# with a longer limit of its own, `read_upload`, locks its file: whoever is sent to it meanwhile leaves at once.
VISIBILITY_TIMEOUT = 60
HARD_LIMIT = 50
SOFT_LIMIT = 40
BEAT_EVERY = 10
JUDGE_EVERY = 60
SEAL_EVERY = 1
LEDGER_BEAT_EVERY = 60 * 60
RESUME_EVERY = 60.0
DELIVER_EVERY = 30
SWEEP_EVERY = 30
REVIEW_EVERY = 60
REMIND_EVERY = 60 * 60
RECONCILE_EVERY = 5 * 60
# Nightly, at a minute that nothing else takes. UTC.
REPLAY_AT = (3, 17)
REPLAY_EXPIRES = 6 * 60 * 60
REFRESH_EVERY = 30
WATCH_EVERY = 60


# Ours, wherever the address says `pgmq`: by name, so that nothing of it is loaded where another broker serves.
TRANSPORT_ALIASES["pgmq"] = "compliance.queues:Transport"


def broker_settings(broker_url: str, database_url: str) -> dict[str, Any]:
    """Celery's settings for the broker: the one given, else the database at `database_url`."""
    if broker_url:
        options: dict[str, Any] = {"visibility_timeout": VISIBILITY_TIMEOUT} if broker_url.startswith("redis") else {}
        if broker_url.startswith("amqp"):
            options = {"confirm_publish": True}
        return {"broker_url": broker_url, "broker_transport_options": options}
    return {
        # The address itself travels in the options: as a broker URL it would be printed at start.
        "broker_url": "pgmq://localhost",
        "broker_transport_options": {
            "conn_string": _queue_address(database_url),
            "init_extension": False,
            "use_notify": True,
            "visibility_timeout": VISIBILITY_TIMEOUT,
            # No long poll: it would hold a lock on the queue's table for its whole length, and every process that sends for the
            # first time alters that table. The notification wakes the worker; without one it looks every second.
            "wait_time_seconds": 0,
        },
    }


def _queue_address(database_url: str) -> str:
    """The database's address as the pgmq client can read it.

    The client takes five parts out of the address and joins them again without quotes, dropping all others. So the last of the
    five carries its own quotes, and the others with it (`sslmode` and its like must not get lost).
    """
    parts = parse_address(database_url)
    others = {key: value for key, value in parts.items() if key not in ("host", "port", "dbname", "user", "password")}
    rest = f"{_quoted(parts.get('password', ''))} {make_conninfo(**others)}".strip()
    named = {"host": "localhost", "port": "5432", "dbname": parts.get("user", "")} | parts
    return make_conninfo(**{key: _quoted(named[key]) for key in ("host", "port", "dbname", "user")}, password=rest)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _settings() -> dict[str, Any]:
    from django.conf import settings

    return broker_settings(settings.CELERY_BROKER_URL, settings.CELERY_BROKER_DATABASE_URL) | {
        "broker_connection_retry_on_startup": True,
        "enable_utc": True,
        "timezone": "UTC",
        "task_default_queue": settings.CELERY_QUEUE,
        "task_ignore_result": True,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_soft_time_limit": SOFT_LIMIT,
        "task_time_limit": HARD_LIMIT,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_prefetch_multiplier": 1,
        # Each of these needs queues of its own, and two queues on one worker delay each other.
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "beat_schedule": {
            "service-beat": {
                "task": "compliance.tasks.beat",
                "schedule": BEAT_EVERY,
                "options": {"expires": BEAT_EVERY},
            },
            "judge-due": {
                "task": "policies.tasks.judge_due",
                "schedule": JUDGE_EVERY,
                "options": {"expires": JUDGE_EVERY},
            },
            "seal": {"task": "compliance.tasks.seal", "schedule": SEAL_EVERY, "options": {"expires": 5 * SEAL_EVERY}},
            "ledger-beat": {
                "task": "compliance.tasks.ledger_beat",
                "schedule": LEDGER_BEAT_EVERY,
                "options": {"expires": LEDGER_BEAT_EVERY},
            },
            "deliver-notices": {
                "task": "compliance.tasks.deliver_notices",
                "schedule": DELIVER_EVERY,
                "options": {"expires": DELIVER_EVERY},
            },
            "sweep-grants": {
                "task": "compliance.tasks.sweep_grants",
                "schedule": SWEEP_EVERY,
                "options": {"expires": SWEEP_EVERY},
            },
            "send-reminders": {
                "task": "compliance.tasks.send_reminders",
                "schedule": REMIND_EVERY,
                "options": {"expires": REMIND_EVERY},
            },
            "review-due-grants": {
                "task": "compliance.tasks.review_due_grants",
                "schedule": REVIEW_EVERY,
                "options": {"expires": REVIEW_EVERY},
            },
            "reconcile-routes": {
                "task": "compliance.tasks.reconcile_routes",
                "schedule": RECONCILE_EVERY,
                "options": {"expires": RECONCILE_EVERY},
            },
            "replay-verdicts": {
                "task": "compliance.tasks.replay_verdicts",
                "schedule": crontab(hour=REPLAY_AT[0], minute=REPLAY_AT[1]),
                "options": {"expires": REPLAY_EXPIRES},
            },
            "resume-uploads": {
                "task": "compliance.tasks.resume_uploads",
                "schedule": RESUME_EVERY,
                "options": {"expires": RESUME_EVERY},
            },
            "refresh-sources": {
                "task": "evaluations.tasks.refresh_due",
                "schedule": REFRESH_EVERY,
                "options": {"expires": REFRESH_EVERY},
            },
            "watch-policies": {
                "task": "compliance.tasks.watch_policies",
                "schedule": WATCH_EVERY,
                "options": {"expires": WATCH_EVERY},
            },
            "watch-sources": {
                "task": "compliance.tasks.watch_sources",
                "schedule": WATCH_EVERY,
                "options": {"expires": WATCH_EVERY},
            },
            "resume-audit-exports": {
                "task": "compliance.tasks.resume_audit_exports",
                "schedule": RESUME_EVERY,
                "options": {"expires": RESUME_EVERY},
            },
        },
    }


# Celery warns of root because pickled messages could run anything; we take JSON alone. Containers run as another user anyway.
warnings.filterwarnings("ignore", message="You're running the worker with superuser privileges")

app = Celery("writegate", set_as_current=True)
# Another thread of this process would else use Celery's built-in application, and its broker.
app.set_default()
app.conf.update(_settings())
app.autodiscover_tasks()


@before_task_publish.connect
def _stamp(headers: dict[str, Any] | None = None, **_: Any) -> None:
    """Every message carries the instant it was sent: the scheduler's sign of life."""
    if headers is not None:
        headers["headers"] = {**(headers.get("headers") or {}), "sent_at": datetime.now(UTC).isoformat()}


@beat_init.connect
def _beat_at_once(**_: Any) -> None:
    """A fresh scheduler would let one interval pass before its first message; readiness should not wait for it."""
    app.send_task("compliance.tasks.beat", expires=BEAT_EVERY)


@setup_logging.connect
def _leave_logging_to_django(**_: Any) -> None:
    """A receiver is all that Celery asks for to leave the loggers as settings.LOGGING made them."""


telemetry.watch_tasks()
