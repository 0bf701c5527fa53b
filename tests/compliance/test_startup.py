"""What manage.py makes ready before Django reads its settings."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from compliance import connections, startup
from tests.support.cluster import Cluster
from tests.support.process import manage

pytestmark = pytest.mark.database


@pytest.fixture
def installation(cluster: Cluster, tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A free database name and the environment of an operator who has only a superuser's address."""
    name = f"{cluster.run_name}_start_{secrets.token_hex(3)}"
    with psycopg.connect(cluster.superuser_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        address = connections.with_parts(cluster.superuser_url, dbname=name)
        yield name, {"DATABASE_URL": address, "WRITEGATE_DATA_DIR": str(tmp_path)}
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        for role in (f"{name}_owner", f"{name}_runtime"):
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


def test_a_superusers_address_becomes_two_roles(installation: tuple[str, dict[str, str]], monkeypatch) -> None:
    name, environment = installation
    # The second address is set by what is tried here: named before, it is taken back after it.
    for variable, value in {**environment, "DATABASE_OWNER_URL": ""}.items():
        monkeypatch.setenv(variable, value)
    startup.prepare(["manage.py", "quickstart"])
    pair = connections.settled_pair({"DATABASE_URL": environment["DATABASE_URL"]}, Path(environment["WRITEGATE_DATA_DIR"]))
    assert connections.parse_address(pair.owner_url)["user"] == f"{name}_owner"
    assert connections.parse_address(pair.runtime_url)["user"] == f"{name}_runtime"


@pytest.mark.slow
def test_migrate_makes_given_roles_from_a_superusers_address_and_the_checks_agree(installation, cluster: Cluster) -> None:
    name, environment = installation
    runtime = connections.with_parts(cluster.superuser_url, dbname=name, user=f"{name}_runtime", password="one")
    owner = connections.with_parts(cluster.superuser_url, dbname=name, user=f"{name}_owner", password="two")
    both = environment | {"DATABASE_URL": runtime, "DATABASE_OWNER_URL": owner}
    done = manage("migrate", "--no-input", **both, DATABASE_SUPERUSER_URL=cluster.superuser_url)
    assert done.returncode == 0, done.stderr
    checked = manage("check", "--database", "default", "--database", "owner", **both)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.slow
def test_a_superuser_is_not_served(installation: tuple[str, dict[str, str]]) -> None:
    done = manage("serve", **installation[1], WRITEGATE_PORT="1")
    assert done.returncode == 1
    assert "(compliance.E002)" in done.stderr
    assert "run `manage.py quickstart`" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_address_ends_in_one_line(tmp_path: Path) -> None:
    for address, said in (
        ("mysql://root:geheim@h/d", "error: DATABASE_URL is not a PostgreSQL address; write postgresql://"),
        ("postgresql://u:geheim@127.0.0.1:1/d", "error: the database does not answer:"),
    ):
        done = manage("quickstart", DATABASE_URL=address, WRITEGATE_DATA_DIR=str(tmp_path))
        assert done.returncode == 1
        assert done.stderr.startswith(said)
        assert "Traceback" not in done.stderr
        assert "geheim" not in done.stderr


@pytest.mark.parametrize("arguments", [[], ["help"], ["--version"], ["gate", "--help"], ["version"], ["collectstatic"]])
def test_what_needs_no_database_starts_none(arguments: list[str], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("WRITEGATE_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    startup.prepare(["manage.py", *arguments])
    assert not list(tmp_path.iterdir())
