"""A worker as `serve` starts it, but that a drift check takes its time, and that it says what it does.

Started as `celery --app tests.support.slow_worker worker …`. `SLOW_WORKER_OPTIONS` is what its broker is told besides the usual, in
JSON; `SLOW_WORKER_SECONDS` how long each look at a grant lasts, in the transaction in which it may be suspended. Each thing that
happens is one line: `ready`, `begins TASK ID`, `ends TASK ID`, `fails TASK ID`, `looks GRANT`, `has looked GRANT`.
"""

import json
import os
import sys
import time
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")
django.setup()

from celery.signals import task_failure, task_postrun, task_prerun, worker_ready  # noqa: E402

from compliance.celery import app  # noqa: E402
from compliance.services import drift  # noqa: E402
from compliance.services.findings import Finding, find  # noqa: E402

SECONDS = float(os.environ["SLOW_WORKER_SECONDS"])
app.conf.broker_transport_options = app.conf.broker_transport_options | json.loads(os.environ["SLOW_WORKER_OPTIONS"])


def say(*words: object) -> None:
    # One write a line: the pool's process and its parent share the file.
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def look_slowly(case: Any, **how: Any) -> Finding:
    say("looks", case.grant.uid)
    time.sleep(SECONDS)
    found = find(case, **how)
    say("has looked", case.grant.uid)
    return found


drift.find = look_slowly


@worker_ready.connect
def say_ready(**_: Any) -> None:
    say("ready")


@task_prerun.connect
def say_begun(*, task_id: str, task: Any, **_: Any) -> None:
    say("begins", task.name, task_id)


@task_postrun.connect
def say_ended(*, task_id: str, task: Any, **_: Any) -> None:
    say("ends", task.name, task_id)


@task_failure.connect
def say_failed(*, task_id: str, exception: Exception, **_: Any) -> None:
    say("fails", repr(exception), task_id)
