"""Settings, as a fresh process reads them from its environment."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings as active

from compliance.vocabulary import Role
from tests.support.process import ROOT, clean_environment

SHOW = """
import json, sys
from compliance import settings
names = [name for name in dir(settings) if name.isupper()]
json.dump({name: getattr(settings, name) for name in names}, sys.stdout, default=str)
"""


def read(data_dir: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SHOW],
        cwd=ROOT,
        env=clean_environment(WRITEGATE_DATA_DIR=str(data_dir), **environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def values(data_dir: Path, **environment: str) -> dict:
    done = read(data_dir, **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_reading_them_starts_nothing_and_keeps_one_secret_key(tmp_path: Path) -> None:
    first = values(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["secret-key"]
    assert stat.S_IMODE((tmp_path / "secret-key").stat().st_mode) == 0o600
    assert len(first["SECRET_KEY"]) >= 50
    assert values(tmp_path)["SECRET_KEY"] == first["SECRET_KEY"]


def test_the_defaults_are_safe(tmp_path: Path) -> None:
    got = values(tmp_path)
    assert got["DEBUG"] is False
    assert got["ALLOWED_HOSTS"] == ["localhost", "127.0.0.1", "[::1]"]
    assert got["USE_TZ"] is True
    assert got["TIME_ZONE"] == "UTC"
    assert got["AUTH_USER_MODEL"] == "compliance.User"
    assert got["AUDIT_SINK"] == "compliance.ledger.writer.append"
    assert set(got["DATABASES"]) == {"default", "owner"}
    for entry in got["DATABASES"].values():
        assert not entry.get("ATOMIC_REQUESTS")
        assert entry["OPTIONS"]["connect_timeout"] == "5"
    assert got["DATABASES"]["owner"]["OPTIONS"]["options"] == "-c writegate.runtime_role=writegate_runtime"
    assert "IsAuthenticated" in str(got["REST_FRAMEWORK"]) or "HasScope" in str(got["REST_FRAMEWORK"])


@pytest.mark.slow
def test_an_https_address_turns_on_secure_cookies(tmp_path: Path) -> None:
    assert values(tmp_path)["SESSION_COOKIE_SECURE"] is False
    got = values(tmp_path, WRITEGATE_ORIGINS="https://gate.example.org", WRITEGATE_HOSTS="gate.example.org")
    assert got["SESSION_COOKIE_SECURE"] is True
    assert got["CSRF_COOKIE_SECURE"] is True
    assert got["SECURE_HSTS_SECONDS"] > 0


def test_links_lead_to_the_port_that_is_served_where_no_address_is_named(tmp_path: Path) -> None:
    assert values(tmp_path)["NOTICE_ORIGIN"] == "http://localhost:8000"
    assert values(tmp_path, WRITEGATE_PORT="8080")["NOTICE_ORIGIN"] == "http://localhost:8080"
    assert values(tmp_path, WRITEGATE_PORT="8080", WRITEGATE_ORIGINS="https://a.test/")["NOTICE_ORIGIN"] == "https://a.test"


@pytest.mark.slow
def test_the_public_address_is_the_first_https_one_unless_it_is_given(tmp_path: Path) -> None:
    assert values(tmp_path)["PUBLIC_URL"] == ""
    origins = {"WRITEGATE_ORIGINS": "http://localhost:8000,https://gate.example.org"}
    assert values(tmp_path, **origins)["PUBLIC_URL"] == "https://gate.example.org"
    given = values(tmp_path, WRITEGATE_PUBLIC_URL="https://other.example.org/tenant/", **origins)
    assert given["PUBLIC_URL"] == "https://other.example.org/tenant"


def test_each_variable_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k" * 60 + "\n", encoding="utf-8")
    (tmp_path / "url").write_text("postgresql://r:p@db/w\n", encoding="utf-8")
    got = values(tmp_path, WRITEGATE_SECRET_KEY_FILE=str(tmp_path / "key"), DATABASE_URL_FILE=str(tmp_path / "url"))
    assert got["SECRET_KEY"] == "k" * 60
    assert got["DATABASES"]["default"]["HOST"] == "db"


def test_each_thread_keeps_a_connection_and_looks_at_it_first(tmp_path: Path) -> None:
    database = values(tmp_path)["DATABASES"]["default"]
    assert "pool" not in database["OPTIONS"]
    assert (database["CONN_MAX_AGE"], database["CONN_HEALTH_CHECKS"]) == (60, True)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"WRITEGATE_DEBUG": "maybe"}, "WRITEGATE_DEBUG must be 1 or 0, not 'maybe'"),
        ({"WRITEGATE_PUBLIC_URL": "http://gate.example.org"}, "WRITEGATE_PUBLIC_URL must be an https address"),
        ({"WRITEGATE_PUBLIC_URL": "https://gate.example.org?x=1"}, "WRITEGATE_PUBLIC_URL must be an https address"),
        ({"WRITEGATE_DECISIONS_PER_SECOND": "0"}, "WRITEGATE_DECISIONS_PER_SECOND must be a whole number above 0"),
        ({"WRITEGATE_OFFLINE_SECONDS": "3601"}, "WRITEGATE_OFFLINE_SECONDS must be a whole number from 1 to 3600"),
        ({"WRITEGATE_CONFORMANCE": "perhaps"}, "WRITEGATE_CONFORMANCE must be 1 or 0"),
        ({"DATABASE_URL": "mysql://a:geheim@b/c"}, "DATABASE_URL is not a PostgreSQL address"),
        ({"DATABASE_OWNER_URL": "postgresql://a:geheim@b/c"}, "DATABASE_OWNER_URL is set but DATABASE_URL is not"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, environment: dict[str, str], said: str) -> None:
    done = read(tmp_path, **environment)
    assert done.returncode != 0
    assert said in done.stderr
    assert "geheim" not in done.stderr


def test_the_roles_handed_to_policies_are_the_vocabulary() -> None:
    assert list(active.POLICY_ROLES) == Role.values
