"""Start-up checks: each finding has an id and a hint, and a sound installation has none."""

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.core import checks as django_checks
from django.db import connections as django_connections
from psycopg import sql

from compliance import checks, connections
from tests.support.cluster import Database


def sink(event: object) -> None:
    """Stands for a sink that somebody wired."""


@pytest.mark.parametrize(
    ("dotted", "said"),
    [
        (None, "AUDIT_SINK is not set"),
        ("", "AUDIT_SINK is not set"),
        ("compliance.nowhere.append", "cannot be imported"),
        ("compliance.checks.no_such_name", "cannot be imported"),
        ("compliance.checks._MINIMUM_VERSION", "is not a function"),
    ],
)
def test_an_unwired_audit_sink_is_an_error(settings, dotted: str | None, said: str) -> None:
    settings.AUDIT_SINK = dotted
    (finding,) = checks.check_audit_sink(None)
    assert finding.id == "compliance.E001"
    assert finding.level == django_checks.ERROR
    assert said in finding.msg
    assert finding.hint


def test_the_wired_sink_is_found_by_djangos_own_round() -> None:
    assert [found for found in django_checks.run_checks() if str(found.id).startswith("compliance.")] == []


def test_a_key_that_opa_does_not_take_is_an_error(settings) -> None:
    private = {"encoding": Encoding.PEM, "format": PrivateFormat.PKCS8, "encryption_algorithm": NoEncryption()}
    for key, expected in (
        (ed25519.Ed25519PrivateKey.generate(), ["compliance.E008"]),
        (ec.generate_private_key(ec.SECP256R1()), []),
    ):
        settings.OPA_KEY = key.private_bytes(**private).decode()
        assert [finding.id for finding in checks.check_opa_key(None)] == expected
    settings.OPA_KEY = "geheim"
    (finding,) = checks.check_opa_key(None)
    assert "geheim" not in f"{finding.msg} {finding.hint}"


def test_both_roles_of_the_test_database_are_sound(committed_db: Database) -> None:
    assert checks.check_roles(None, databases=["default", "owner"]) == []


@pytest.mark.parametrize(("alias", "code"), [("default", "compliance.E002"), ("owner", "compliance.E004")])
def test_a_superuser_is_refused(committed_db: Database, monkeypatch, alias: str, code: str) -> None:
    (finding,) = _found_as(committed_db.superuser_url, alias, monkeypatch)
    assert finding.id == code
    assert finding.hint


def test_an_owner_as_runtime_role_is_refused(committed_db: Database, monkeypatch) -> None:
    (finding,) = _found_as(committed_db.roles.owner_url, "default", monkeypatch)
    assert finding.id == "compliance.E003"


def test_a_database_that_does_not_answer_is_not_this_checks_finding(monkeypatch, django_db_blocker) -> None:
    with django_db_blocker.unblock():
        assert _found_as("postgresql://u@127.0.0.1:1/d", "default", monkeypatch) == []


def _found_as(address: str, alias: str, monkeypatch) -> list[django_checks.CheckMessage]:
    """What the check says when an alias logs in with another address."""
    django_connections[alias].close()
    entry = connections.django_database(address, variable="DATABASE_URL")
    for name, value in entry.items():
        monkeypatch.setitem(django_connections.settings[alias], name, value)
    try:
        return checks.check_roles(None, databases=[alias])
    finally:
        django_connections[alias].close()


def test_a_runtime_role_that_owns_a_table_is_refused(committed_db: Database) -> None:
    runtime = sql.Identifier(connections.parse_address(committed_db.roles.runtime_url)["user"])
    with psycopg.connect(committed_db.superuser_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE his (n int)")
        connection.execute(sql.SQL("ALTER TABLE his OWNER TO {}").format(runtime))
        try:
            (finding,) = checks.check_roles(None, databases=["default"])
        finally:
            connection.execute("DROP TABLE his")
    assert finding.id == "compliance.E003"
