"""The PostgreSQL that a test run uses, and the databases it makes there.

Which server: `WRITEGATE_TEST_POSTGRES_URL` (a superuser's address), else `DATABASE_URL` where it is a superuser's, else
`DATABASE_SUPERUSER_URL`, else the embedded server with a throwaway cluster of this run's own. Every run names its roles and
databases after itself, so that several runs can share a server.

With xdist the first worker migrates a template and every worker copies it.
"""

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from compliance import connections, embedded
from compliance.connections import RolePair, with_parts

_RUN_VARIABLE = "WRITEGATE_TEST_RUN_DIR"
_PREFIX = "writegate-test-"


def begin_run() -> Path:
    """The directory of this run: made by the process that was started first, found by the workers that it starts."""
    known = os.environ.get(_RUN_VARIABLE)
    if known:
        return Path(known)
    _remove_abandoned_runs()
    directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    os.environ[_RUN_VARIABLE] = str(directory)
    return directory


def end_run(directory: Path) -> None:
    """Drop what this run left on the server and remove its directory; for the process that began the run."""
    state = directory / "names"
    if external_superuser_url() and state.exists():
        _drop_all(external_superuser_url(), state.read_text(encoding="ascii").strip())
    _remove_run(directory)


def external_superuser_url() -> str:
    """The address of a superuser on a server of the caller's; empty where the embedded one is to be used."""
    for name in ("WRITEGATE_TEST_POSTGRES_URL", "DATABASE_SUPERUSER_URL", "WRITEGATE_TEST_OUTER_DATABASE_URL"):
        address = os.environ.get(name, "").strip()
        if address:
            return address
    return ""


@dataclass(frozen=True, slots=True)
class Database:
    """One test database, by the three addresses that tests use."""

    superuser_url: str = field(repr=False)
    roles: RolePair
    name: str


class Cluster:
    """The server of this run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._server = None
        self.superuser_url = external_superuser_url()
        if self.superuser_url and not connections.is_superuser(self.superuser_url):
            raise RuntimeError("the tests need a superuser's address: set WRITEGATE_TEST_POSTGRES_URL, or unset DATABASE_URL")
        if not self.superuser_url:
            self._server = embedded.start(directory, throwaway=True)
            self.superuser_url = self._server.superuser_url

    @property
    def run_name(self) -> str:
        """What roles and databases of this run are named after."""
        path = self.directory / "names"
        if not path.exists():
            path.write_text(f"wgt_{os.getpid()}_{secrets.token_hex(3)}", encoding="ascii")
        return path.read_text(encoding="ascii").strip()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """One worker of the run at a time."""
        with (self.directory / "run.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def create(self, suffix: str) -> Database:
        """An empty database, owned by the run's owner role."""
        return self._database(f"{self.run_name}_{suffix}")

    def copy(self, template: Database, suffix: str) -> Database:
        """A copy of a database to which nobody is connected."""
        name = f"{self.run_name}_{suffix}"
        owner = connections.parse_address(template.roles.owner_url)["user"]
        with psycopg.connect(self.superuser_url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(
                    sql.Identifier(name), sql.Identifier(template.name), sql.Identifier(owner)
                )
            )
        return self._database(name)

    def drop(self, database: Database) -> None:
        """Drop a database, whoever is still connected."""
        with psycopg.connect(self.superuser_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database.name)))

    def close(self) -> None:
        """Stop using the server."""
        if self._server is not None:
            self._server.release()

    def _database(self, name: str) -> Database:
        # All databases of a run share its two roles, so each is made with the run's one password: a new one would shut the
        # other workers out.
        pair = RolePair(
            with_parts(self.superuser_url, dbname=name, user=f"{self.run_name}_runtime", password=self._password),
            with_parts(self.superuser_url, dbname=name, user=f"{self.run_name}_owner", password=self._password),
        )
        connections.ensure_given_roles(self.superuser_url, pair)
        return Database(with_parts(self.superuser_url, dbname=name), pair, name)

    @property
    def _password(self) -> str:
        path = self.directory / "password"
        if not path.exists():
            connections.write_secret(path, secrets.token_urlsafe(24))
        return path.read_text(encoding="ascii").strip()


def snapshot_tables(database: Database) -> None:
    """Keep what migrations put into tables, so that `empty_tables` can put it back."""
    with psycopg.connect(database.superuser_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA writegate_snapshot")
        for table in _filled_tables(connection):
            connection.execute(
                sql.SQL("CREATE TABLE {} AS TABLE {}").format(
                    sql.Identifier("writegate_snapshot", table), sql.Identifier("public", table)
                )
            )


def empty_tables(database: Database) -> None:
    """Bring every table back to what the migrations left.

    As the cluster's superuser, with triggers and foreign keys asleep: the append-only triggers refuse everybody else.
    """
    with psycopg.connect(database.superuser_url) as connection:
        connection.execute("SET session_replication_role = replica")
        # A test that left a transaction open must fail here, and not hang.
        connection.execute("SET lock_timeout = '10s'")
        for table in _filled_tables(connection):
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier("public", table)))
        kept = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'writegate_snapshot'").fetchall()
        for (table,) in kept:
            columns = connection.execute(
                "SELECT column_name FROM information_schema.columns"
                " WHERE table_schema = 'public' AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position",
                [table],
            ).fetchall()
            names = sql.SQL(", ").join(sql.Identifier(name) for (name,) in columns)
            connection.execute(
                sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {}").format(
                    sql.Identifier("public", table), names, names, sql.Identifier("writegate_snapshot", table)
                )
            )


def _filled_tables(connection: psycopg.Connection) -> list[str]:
    names = [row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()]
    if not names:
        return []
    probes = sql.SQL(" UNION ALL ").join(
        sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})").format(sql.Literal(name), sql.Identifier("public", name))
        for name in sorted(names)
    )
    return [row[0] for row in connection.execute(probes).fetchall()]


def _drop_all(superuser_url: str, run_name: str) -> None:
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        pattern = run_name.replace("_", r"\_") + r"\_%"
        for (name,) in connection.execute("SELECT datname FROM pg_database WHERE datname LIKE %s", [pattern]).fetchall():
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        for (name,) in connection.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE %s", [pattern]).fetchall():
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))


def _remove_run(directory: Path) -> None:
    if (directory / "postgres" / "cluster" / "postmaster.pid").exists():
        # Its last user was killed: join it, to stop it as the last one.
        embedded.start(directory, throwaway=True).release()
    shutil.rmtree(directory, ignore_errors=True)


def _remove_abandoned_runs() -> None:
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = directory.name.removeprefix(_PREFIX).split("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)) and _is_ours(directory):
            _remove_run(directory)


def _is_ours(directory: Path) -> bool:
    try:
        return directory.stat().st_uid == os.geteuid()
    except FileNotFoundError:
        # Another run has just removed it.
        return False
