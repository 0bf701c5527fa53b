"""What every test can ask for.

- `db` (pytest-django): the test runs in a transaction that is rolled back; `default` is the runtime role.
- `committed_db`: real commits, several connections, threads; every table is emptied afterwards.
- `runtime_connection`, `owner_connection`, `superuser_connection`: functions that open a psycopg connection to the test
  database as that role (autocommit unless said otherwise); closed for you.

Warnings are errors. Python sockets reach this machine alone. With WRITEGATE_NO_SKIP=1 a skip is a failure.
"""

import ipaddress
import os
import socket
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.support import cluster as clusters

RUN_DIRECTORY = clusters.begin_run()
_BEGAN_HERE = "PYTEST_XDIST_WORKER" not in os.environ

# Before settings are read. A caller's DATABASE_URL names the server to test on, never the database to test in.
if _BEGAN_HERE and os.environ.get("DATABASE_URL") and not os.environ.get("DATABASE_OWNER_URL"):
    os.environ["WRITEGATE_TEST_OUTER_DATABASE_URL"] = os.environ["DATABASE_URL"]
for _name in ("DATABASE_URL", "DATABASE_OWNER_URL", "CELERY_BROKER_URL", "WRITEGATE_CONFORMANCE"):
    os.environ.pop(_name, None)
os.environ["WRITEGATE_DATA_DIR"] = str(RUN_DIRECTORY / "data")
os.environ["WRITEGATE_SECRET_KEY"] = "made-up-for-tests"
os.environ["DJANGO_SETTINGS_MODULE"] = "compliance.settings"

import django  # noqa: E402

django.setup()

import psycopg  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connections as django_connections  # noqa: E402

from compliance import connections  # noqa: E402
from compliance.celery import app as celery_app  # noqa: E402
from tests.support.replaying import every_verdict_replays  # noqa: E402

# What a test announces after a commit goes nowhere unless the test says so: no worker listens.
celery_app.conf.update(broker_url="memory://", broker_transport_options={})

# A password's hash is slow on purpose, and hundreds of tests register people: half a second each would say nothing about us.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

Connect = Callable[..., psycopg.Connection]


def pytest_unconfigure(config: pytest.Config) -> None:
    if _BEGAN_HERE:
        clusters.end_run(RUN_DIRECTORY)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what uses the test database; leave out what needs servers that nobody named."""
    left_out: list[pytest.Item] = []
    for item in items:
        if item.get_closest_marker("django_db") or {"db", "test_database"} & set(item.fixturenames):
            item.add_marker(pytest.mark.database)
        needed = item.get_closest_marker("real_servers")
        if needed is not None and not all(os.environ.get(variable) for variable in needed.args):
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    report = yield
    return _refuse_skip(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report = yield
    return _refuse_skip(report)


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> pytest.TestReport | pytest.CollectReport:
    if os.environ.get("WRITEGATE_NO_SKIP") == "1" and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be skipped: {report.longrepr}"
    return report


@pytest.fixture(scope="session", autouse=True)
def _loopback_only() -> Iterator[None]:
    """Refuse every Python socket to another machine: a test that needs the network is no test of ours."""
    real = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex")}

    def guarded(name: str, self: socket.socket, address: object) -> object:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(str(address[0])):
            raise RuntimeError(f"a test tried to connect to {address[0]}")
        return real[name](self, address)

    with pytest.MonkeyPatch.context() as patch:
        for name in real:
            patch.setattr(socket.socket, name, lambda self, address, _name=name: guarded(_name, self, address))
        yield


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture(scope="session")
def cluster() -> Iterator[clusters.Cluster]:
    """The PostgreSQL server of this run."""
    found = clusters.Cluster(RUN_DIRECTORY)
    yield found
    found.close()


@pytest.fixture(scope="session")
def test_database(cluster: clusters.Cluster, django_db_blocker) -> Iterator[clusters.Database]:
    """This worker's migrated database; `default` and `owner` point to it from here on."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    with django_db_blocker.unblock():
        if worker is None:
            database = cluster.create("main")
            _migrate(database)
        else:
            with cluster.exclusive():
                template = cluster.create("template")
                done = RUN_DIRECTORY / "template-migrated"
                if not done.exists():
                    _migrate(template)
                    done.touch()
                database = cluster.copy(template, worker)
        _point_django_at(database)
    yield database
    _close_connections()
    cluster.drop(database)


def _migrate(database: clusters.Database) -> None:
    _point_django_at(database)
    call_command("migrate", database="owner", verbosity=0, interactive=False)
    clusters.snapshot_tables(database)
    # A template can be copied only while nobody is connected to it.
    django_connections.close_all()


def _point_django_at(database: clusters.Database) -> None:
    django_connections.close_all()
    runtime_role = connections.parse_address(database.roles.runtime_url)["user"]
    for alias, address, options in (
        ("default", database.roles.runtime_url, ""),
        ("owner", database.roles.owner_url, connections.owner_options(runtime_role)),
    ):
        entry = connections.django_database(address, variable="DATABASE_URL", options=options)
        # In place: the connections of every thread share this dictionary.
        django_connections.settings[alias].update(entry)


def _close_connections() -> None:
    # Late: it needs Django's models.
    from compliance.services.decisions import close_common_connection

    django_connections.close_all()
    close_common_connection()


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, test_database: clusters.Database) -> None:
    """Take the place of pytest-django's own: our databases are made by two roles."""


@pytest.fixture
def committed_db(django_db_setup: None, django_db_blocker, test_database: clusters.Database) -> Iterator[clusters.Database]:
    """A database in which the test really commits, emptied afterwards."""
    with django_db_blocker.unblock():
        yield test_database
        _close_connections()
        clusters.empty_tables(test_database)


@pytest.fixture(autouse=True)
def _every_verdict_replays(request: pytest.FixtureRequest) -> Iterator[None]:
    """Judge once more, when a test ends, whatever verdicts it left."""
    database = next((name for name in ("committed_db", "db") if name in request.fixturenames), "")
    if not database and not request.node.get_closest_marker("django_db"):
        yield
        return
    # First the database, so that this ends before it does.
    request.getfixturevalue(database or "db")
    yield
    if not request.node.get_closest_marker("plants_verdicts"):
        every_verdict_replays()


@pytest.fixture
def _open_connections() -> Iterator[list[psycopg.Connection]]:
    opened: list[psycopg.Connection] = []
    yield opened
    for connection in opened:
        connection.close()


def _connect(opened: list[psycopg.Connection], address: str, *, autocommit: bool = True) -> psycopg.Connection:
    opened.append(psycopg.connect(address, autocommit=autocommit))
    return opened[-1]


@pytest.fixture
def runtime_connection(test_database: clusters.Database, _open_connections: list) -> Connect:
    """Opens a connection as the runtime role."""
    return partial(_connect, _open_connections, test_database.roles.runtime_url)


@pytest.fixture
def owner_connection(test_database: clusters.Database, _open_connections: list) -> Connect:
    """Opens a connection as the owner role."""
    return partial(_connect, _open_connections, test_database.roles.owner_url)


@pytest.fixture
def superuser_connection(test_database: clusters.Database, _open_connections: list) -> Connect:
    """Opens a connection as the cluster's superuser: for tests that plant what nobody else could."""
    return partial(_connect, _open_connections, test_database.superuser_url)


@pytest.fixture
def run_tasks_inline() -> Iterator[None]:
    """Run Celery tasks at once, in the caller's thread, letting their errors through."""
    celery_app.conf.update(task_always_eager=True, task_eager_propagates=True)
    yield
    celery_app.conf.update(task_always_eager=False, task_eager_propagates=False)
