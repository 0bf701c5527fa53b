"""Database addresses, and the two roles made from a superuser's."""

import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from compliance import connections
from compliance.connections import AddressRefusedError, RolePair
from tests.support.cluster import Cluster

pytestmark = pytest.mark.database


@pytest.fixture
def place(cluster: Cluster, tmp_path: Path) -> Iterator[tuple[str, str, Path]]:
    """A superuser's address, a database name that is free there, and an empty data directory."""
    name = f"{cluster.run_name}_roles_{secrets.token_hex(3)}"
    yield cluster.superuser_url, name, tmp_path
    with psycopg.connect(cluster.superuser_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        for role in (f"{name}_owner", f"{name}_runtime"):
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


@pytest.mark.parametrize(
    "parts",
    [
        {"user": "u", "password": "p", "host": "db", "port": "5433", "dbname": "d"},
        {"user": "u@x", "password": "p:/@ '%", "host": "db", "dbname": "d d"},
        {"user": "u", "host": "/run/a dir", "port": "5432", "dbname": "d"},
        {"user": "u", "host": "::1", "port": "1", "dbname": "d", "sslmode": "verify-full", "sslrootcert": "/a b"},
    ],
)
def test_an_address_is_written_and_read_back(parts: dict[str, str]) -> None:
    address = connections.build_address(**parts)
    assert connections.parse_address(address) == parts
    changed = connections.with_parts(address, dbname="other", password="")
    assert connections.parse_address(changed) == {k: v for k, v in parts.items() if k != "password"} | {"dbname": "other"}


@pytest.mark.parametrize("address", ["", "   ", "postgres", "mysql://root:geheim@h/d", "postgresql://u:geheim@h:port:port/d?x=%"])
def test_what_is_no_address_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(
        AddressRefusedError, match=r"DATABASE_URL is (empty|not a PostgreSQL address); write postgresql://"
    ) as refused:
        connections.parse_address(address)
    assert "geheim" not in str(refused.value)


def test_django_gets_what_it_knows_and_libpq_the_rest() -> None:
    address = "postgresql://u:p@h:5/d?sslmode=require&options=-c%20work_mem%3D8MB"
    entry = connections.django_database(address, variable="DATABASE_URL", options=connections.owner_options("run time"))
    assert {key: entry[key] for key in ("USER", "PASSWORD", "HOST", "PORT", "NAME")} == {
        "USER": "u",
        "PASSWORD": "p",
        "HOST": "h",
        "PORT": "5",
        "NAME": "d",
    }
    assert entry["OPTIONS"] == {"sslmode": "require", "options": r"-c work_mem=8MB -c writegate.runtime_role=run\ time"}


def test_a_secret_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("postgresql://a@b/c\n", encoding="utf-8")
    environment = {"DATABASE_URL": "ignored", "DATABASE_URL_FILE": str(tmp_path / "url")}
    assert connections.read_variable(environment, "DATABASE_URL") == "postgresql://a@b/c"
    with pytest.raises(AddressRefusedError, match=r"DATABASE_URL_FILE names .*/none, which cannot be read"):
        connections.read_variable({"DATABASE_URL_FILE": str(tmp_path / "none")}, "DATABASE_URL")


def test_settled_addresses(tmp_path: Path) -> None:
    assert connections.settled_pair({}, tmp_path) is None
    both = {"DATABASE_URL": "postgresql://r@h/d", "DATABASE_OWNER_URL": "postgresql://o@h/d"}
    assert connections.settled_pair(both, tmp_path) == RolePair(*both.values())
    one = {"DATABASE_URL": "postgresql://r@h/d"}
    assert connections.settled_pair(one, tmp_path) == RolePair("postgresql://r@h/d", "postgresql://r@h/d")
    with pytest.raises(AddressRefusedError, match="DATABASE_OWNER_URL is set but DATABASE_URL is not"):
        connections.settled_pair({"DATABASE_OWNER_URL": "postgresql://o@h/d"}, tmp_path)


def test_a_pair_shows_no_password_when_printed() -> None:
    assert "geheim" not in repr(RolePair("postgresql://r:geheim@h/d", "postgresql://o:geheim@h/d"))


def test_roles_are_made_once_and_bound(place: tuple[str, str, Path]) -> None:
    superuser_url, name, data_dir = place
    superuser_url = connections.with_parts(superuser_url, dbname=name)
    with psycopg.connect(place[0], autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    pair = connections.ensure_roles(superuser_url, data_dir=data_dir)
    assert connections.ensure_roles(superuser_url, data_dir=data_dir) == pair
    # The address alone is enough from now on: settings find the pair that was made from it.
    assert connections.settled_pair({"DATABASE_URL": superuser_url}, data_dir) == pair
    assert stat.S_IMODE((data_dir / connections.CREDENTIALS_FILE).stat().st_mode) == 0o600

    with psycopg.connect(pair.owner_url, autocommit=True) as owner, psycopg.connect(pair.runtime_url, autocommit=True) as runtime:
        for connection in (owner, runtime):
            row = connection.execute("SELECT rolsuper, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = current_user")
            assert row.fetchone() == (False, False, False)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("SET session_replication_role = replica")
        owner.execute("CREATE TABLE mine (n int)")
        for statement in ("SELECT * FROM mine", "CREATE TABLE his (n int)", "DROP TABLE mine", "TRUNCATE mine"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                runtime.execute(statement)


def test_a_lost_password_is_set_anew(place: tuple[str, str, Path]) -> None:
    superuser_url, name, data_dir = place
    before = connections.ensure_roles(superuser_url, data_dir=data_dir, database=name)
    (data_dir / connections.CREDENTIALS_FILE).unlink()
    after = connections.ensure_roles(superuser_url, data_dir=data_dir, database=name)
    assert after != before
    psycopg.connect(after.runtime_url).close()


def test_given_addresses_are_made_true(place: tuple[str, str, Path]) -> None:
    superuser_url, name, _ = place
    pair = RolePair(
        connections.with_parts(superuser_url, dbname=name, user=f"{name}_runtime", password="it's 1"),
        connections.with_parts(superuser_url, dbname=name, user=f"{name}_owner", password="two"),
    )
    for _ in range(2):
        connections.ensure_given_roles(superuser_url, pair)
    for address in (pair.runtime_url, pair.owner_url):
        assert not connections.is_superuser(address)
    with pytest.raises(AddressRefusedError, match="one database and two roles"):
        connections.ensure_given_roles(superuser_url, RolePair(pair.owner_url, pair.owner_url))


def test_an_address_that_is_no_superusers_makes_nothing(place: tuple[str, str, Path]) -> None:
    superuser_url, name, data_dir = place
    pair = connections.ensure_roles(superuser_url, data_dir=data_dir, database=name)
    with pytest.raises(AddressRefusedError, match="no superuser's: set DATABASE_OWNER_URL"):
        connections.ensure_roles(pair.owner_url, data_dir=data_dir, database=name, owner="a_owner", runtime="a_runtime")


def test_a_superuser_is_never_taken_for_one_of_the_two_roles(place: tuple[str, str, Path]) -> None:
    superuser_url, name, data_dir = place
    itself = conninfo_to_dict(superuser_url)["user"]
    with pytest.raises(AddressRefusedError, match="is a superuser; name another"):
        connections.ensure_roles(superuser_url, data_dir=data_dir, database=name, owner=itself, runtime=f"{name}_runtime")


def test_somebody_elses_database_is_left_alone(place: tuple[str, str, Path]) -> None:
    superuser_url, name, data_dir = place
    connections.ensure_roles(superuser_url, data_dir=data_dir, database=name)
    with pytest.raises(AddressRefusedError, match=f"belongs to the role `{name}_owner`"):
        connections.ensure_roles(
            superuser_url, data_dir=data_dir, database=name, owner=f"{name}_runtime", runtime=f"{name}_owner"
        )


def test_names_that_could_mean_something_to_sql_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    for name in ("", "A", 'a"; DROP DATABASE b', "ä", "a" * 60):
        with pytest.raises(AddressRefusedError, match="cannot name a database or role here"):
            connections.ensure_roles(cluster.superuser_url, data_dir=tmp_path, database=name or "9", owner="a", runtime="b")
