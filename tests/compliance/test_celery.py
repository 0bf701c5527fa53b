"""The Celery application and its default broker, the queue in our own PostgreSQL."""

import os
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import celery
import pytest
from celery.schedules import crontab
from kombu import Connection, Exchange, Producer, Queue
from psycopg.conninfo import conninfo_to_dict

from compliance.celery import HARD_LIMIT, SOFT_LIMIT, VISIBILITY_TIMEOUT, app, broker_settings
from tests.support.cluster import Database
from tests.support.process import ROOT, clean_environment

DAY = 24 * 60 * 60


def test_it_is_the_default_application_of_every_thread() -> None:
    seen = []
    thread = threading.Thread(target=lambda: seen.append(celery.current_app._get_current_object()))
    thread.start()
    thread.join()
    assert seen == [app]


@pytest.mark.slow
def test_django_alone_loads_it(tmp_path) -> None:
    """`compliance/__init__.py` is empty, so the app's `ready` must bring it: else `.delay()` talks to Celery's own default."""
    text = "import django; django.setup(); import celery; print(celery.current_app.main)"
    environment = clean_environment(DJANGO_SETTINGS_MODULE="compliance.settings", WRITEGATE_DATA_DIR=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "writegate", done.stderr


def test_every_scheduled_message_expires_and_names_a_task_that_exists() -> None:
    app.loader.import_default_modules()
    assert app.conf.beat_schedule
    for entry in app.conf.beat_schedule.values():
        # A queue that nobody read for a while must not hold an afternoon's worth of the same message.
        every = DAY if isinstance(entry["schedule"], crontab) else entry["schedule"]
        assert 0 < entry["options"]["expires"] <= max(every, 10)
        assert entry["task"] in app.tasks


LOCKED_TASKS = {"compliance.tasks.read_upload"}
"""These may run longer than their message stays unseen: a lock lets one at a time work, and whoever comes second leaves at once."""


def test_limits_are_in_order() -> None:
    """A message that becomes visible while its task may still run would be run twice at once."""
    assert 0 < SOFT_LIMIT < HARD_LIMIT < VISIBILITY_TIMEOUT
    assert app.conf.task_soft_time_limit == SOFT_LIMIT
    assert app.conf.task_time_limit == HARD_LIMIT
    for task in app.tasks.values():
        assert (task.time_limit or HARD_LIMIT) <= HARD_LIMIT or task.name in LOCKED_TASKS
        if not task.name.startswith("celery."):
            assert task.acks_late is True


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:p@h:5433/d",
        "postgresql://u%20x:p%27%20%5C%40@h/d?sslmode=verify-full&sslrootcert=%2Fa%20b",
        "postgresql://u@/d?host=%2Frun%2Fa%20dir&port=5432",
    ],
)
def test_the_queue_gets_the_whole_address(address: str) -> None:
    from pgmq.base import PGMQConfig

    options = broker_settings("", address)["broker_transport_options"]
    reached = conninfo_to_dict(PGMQConfig(conn_string=options["conn_string"]).dsn)
    wanted = {"host": "localhost", "port": "5432", "password": ""} | conninfo_to_dict(address)
    assert {name: reached.get(name, "") for name in wanted} == wanted


def test_no_address_appears_where_celery_prints_it() -> None:
    settings = broker_settings("", "postgresql://u:geheim@h/d")
    assert "geheim" not in settings["broker_url"]


def test_the_runtime_role_sends_and_receives(test_database: Database) -> None:
    """As kombu does it: the first declaration makes the queue, alters its table and listens."""
    settings = broker_settings("", test_database.roles.runtime_url)
    _send_and_receive(settings)


def test_several_that_declare_a_new_queue_at_once_all_can(test_database: Database) -> None:
    """As a worker, a scheduler and a web server do that are started together for the first time."""
    settings = broker_settings("", test_database.roles.runtime_url)
    for _ in range(5):
        name = f"writegate_test_{uuid.uuid4().hex[:8]}"
        with ExitStack() as opened:
            # Opened before the race: a declaration can then be late at the barrier, on a busy machine, and never be missing there.
            channels = [
                opened.enter_context(
                    Connection(settings["broker_url"], transport_options=settings["broker_transport_options"])
                ).default_channel
                for _ in range(4)
            ]
            start = threading.Barrier(len(channels))

            def declare(channel: Any, name: str = name, start: threading.Barrier = start) -> None:
                start.wait()
                Queue(name)(channel).declare()

            with ThreadPoolExecutor(len(channels)) as pool:
                assert list(pool.map(declare, channels)) == [None] * len(channels)
        with Connection(settings["broker_url"], transport_options=settings["broker_transport_options"]) as connection:
            Queue(name)(connection.default_channel).delete()


def test_a_message_whose_worker_died_comes_back(test_database: Database) -> None:
    """Read, never acknowledged, the reader gone: visible again after the visibility timeout, here of one second."""
    settings = broker_settings("", test_database.roles.runtime_url)
    options = settings["broker_transport_options"] | {"visibility_timeout": 1}
    name = f"writegate_test_{uuid.uuid4().hex[:8]}"
    for body in ({"n": 1}, None):
        with Connection(settings["broker_url"], transport_options=options) as connection:
            queue = connection.SimpleQueue(name, no_ack=False)
            if body is not None:
                queue.put(body)
                assert queue.get(timeout=5).payload == body
                # Closed without an acknowledgement, as a kill leaves it.
                queue.close()
                continue
            again = queue.get(timeout=10)
            assert again.payload == {"n": 1}
            again.ack()
            queue.queue.delete()
            queue.close()


@pytest.mark.real_servers("WRITEGATE_TEST_REDIS_URL")
def test_redis_serves_as_broker() -> None:
    _send_and_receive(broker_settings(os.environ["WRITEGATE_TEST_REDIS_URL"], ""))


@pytest.mark.real_servers("WRITEGATE_TEST_RABBITMQ_URL")
def test_rabbitmq_serves_as_broker() -> None:
    _send_and_receive(broker_settings(os.environ["WRITEGATE_TEST_RABBITMQ_URL"], ""))


def _send_and_receive(settings: dict) -> None:
    name = f"writegate_test_{uuid.uuid4().hex[:8]}"
    queue = Queue(name, Exchange(name, type="direct"), routing_key=name)
    received = []

    def take(body: object, message) -> None:
        received.append(body)
        message.ack()

    with Connection(settings["broker_url"], transport_options=settings["broker_transport_options"]) as connection:
        with connection.Consumer(queue, callbacks=[take]):
            Producer(connection).publish({"n": 1}, exchange=queue.exchange, routing_key=name, declare=[queue])
            # A broker that confirms may deliver while the publisher waits: then nothing is left to drain.
            for _ in range(10):
                if not received:
                    with suppress(TimeoutError):
                        connection.drain_events(timeout=1)
        assert received == [{"n": 1}]
        queue(connection.default_channel).delete()
