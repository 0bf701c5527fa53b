"""docker-compose.yml, its service commands started by hand against local servers: an image cannot be built everywhere.

The database is the test run's; the broker RabbitMQ where WRITEGATE_TEST_RABBITMQ_URL names one, else the queue in PostgreSQL.
"""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kombu import Connection
from psycopg import sql
from ruamel.yaml import YAML

from compliance import connections
from tests.support.cluster import Cluster
from tests.support.process import (
    ROOT,
    await_status,
    clean_environment,
    descendants,
    free_port,
    running,
    still_alive,
    stop_with,
)

COMPOSE = YAML(typ="safe").load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
OURS = ("migrate", "web", "worker", "scheduler")


class Deployment:
    """The compose file's services, with secrets as files and this machine's servers in place of its own."""

    def __init__(self, cluster: Cluster, place: Path) -> None:
        self.name = f"{cluster.run_name}_compose_{secrets.token_hex(3)}"
        self.cluster = cluster
        self.place = place
        self.port = free_port()
        self.queue = f"{self.name}_queue"
        self.broker = os.environ.get("WRITEGATE_TEST_RABBITMQ_URL", "")
        runtime, owner = (
            connections.with_parts(
                cluster.superuser_url, dbname=self.name, user=f"{self.name}_{role}", password=secrets.token_hex(8)
            )
            for role in ("runtime", "owner")
        )
        self._write("database_url", runtime)
        self._write("database_owner_url", owner)
        self._write("database_superuser_url", cluster.superuser_url)
        self._write("secret_key", secrets.token_urlsafe(50))
        self._write("broker_url", self.broker)

    def _write(self, name: str, text: str) -> None:
        (self.place / name).write_text(f"{text}\n", encoding="utf-8")

    def environment(self, service: str) -> dict[str, str]:
        """What the compose file sets for a service, with the default of each `${NAME:-default}`."""
        given: dict[str, str] = {}
        for name, value in COMPOSE["services"][service]["environment"].items():
            text = str(value)
            if text.startswith("${"):
                text = text[2:-1].partition(":-")[2]
            secret = Path(text).name if text.startswith("/run/secrets/") else ""
            if secret:
                assert secret in COMPOSE["services"][service]["secrets"], f"{service} reads {secret} without being given it"
                text = str(self.place / secret)
            given[name] = text
        # What the image sets, and what keeps runs on one machine apart.
        image = {"WRITEGATE_LOG_FORMAT": "json", "WRITEGATE_DATA_DIR": str(self.place / "data")}
        apart = {"WRITEGATE_PORT": str(self.port), "WRITEGATE_QUEUE": self.queue}
        return clean_environment(**image, **apart, **given)

    def command(self, service: str) -> list[str]:
        program, *arguments = COMPOSE["services"][service]["command"]
        assert program == "python"
        return [sys.executable, *arguments]

    def healthcheck(self, service: str) -> list[str]:
        kind, program, *arguments = COMPOSE["services"][service]["healthcheck"]["test"]
        assert (kind, program) == ("CMD", "python")
        return [sys.executable, *(text.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}") for text in arguments)]

    def run(self, command: list[str], service: str) -> subprocess.CompletedProcess[str]:
        environment = self.environment(service)
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)

    def clean_up(self) -> None:
        if self.broker:
            with Connection(self.broker) as connection:
                connection.SimpleQueue(self.queue).queue.delete()
        with psycopg.connect(self.cluster.superuser_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(self.name)))
            for role in ("owner", "runtime"):
                connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(f"{self.name}_{role}")))


@pytest.fixture
def deployment(cluster: Cluster, tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(cluster, tmp_path)
    yield made
    made.clean_up()


@pytest.mark.slow
@pytest.mark.database
def test_the_services_come_up_as_the_compose_file_starts_them(deployment: Deployment) -> None:
    for _ in range(2):  # a one-shot runs again at every `up`
        migrated = deployment.run(deployment.command("migrate"), "migrate")
        assert migrated.returncode == 0, migrated.stderr
    address = f"http://127.0.0.1:{deployment.port}"
    with ExitStack() as stack:
        started = {
            name: stack.enter_context(
                running(deployment.command(name), deployment.environment(name), deployment.place / f"{name}.log")
            )
            for name in ("web", "worker", "scheduler")
        }
        assert await_status(f"{address}/healthz") == {"ok": True}
        checks = await_status(f"{address}/readyz")["checks"]
        assert all(part["ok"] for part in checks.values())
        for name in started:
            healthy = deployment.run(deployment.healthcheck(name), name)
            assert healthy.returncode == 0, healthy.stdout + healthy.stderr
        family = [member for process in started.values() for member in descendants(process.pid)]
        for name, process in started.items():
            # As `docker stop` does it: SIGTERM to the container's first process.
            assert stop_with(process, signal.SIGTERM, seconds=30) < 15, name
            assert process.returncode == 0, (deployment.place / f"{name}.log").read_text()
        assert still_alive(family) == []
    for name in started:
        assert "Traceback" not in (deployment.place / f"{name}.log").read_text()


@pytest.mark.slow
@pytest.mark.database
def test_a_service_without_its_worker_says_so_by_its_health_check(deployment: Deployment) -> None:
    assert deployment.run(deployment.command("migrate"), "migrate").returncode == 0
    healthy = deployment.run(deployment.healthcheck("worker"), "worker")
    assert healthy.returncode == 1
    assert "never heard of" in healthy.stdout


def test_no_secret_stands_in_the_file() -> None:
    for name, service in COMPOSE["services"].items():
        for variable, value in (service.get("environment") or {}).items():
            if any(word in variable for word in ("URL", "PASSWORD", "SECRET", "KEY")):
                assert variable.endswith("_FILE"), f"{name}: {variable}"
                assert str(value).startswith("/run/secrets/"), f"{name}: {variable}"
    assert all(set(source) == {"file"} for source in COMPOSE["secrets"].values())


def test_only_the_migration_holds_the_powerful_addresses() -> None:
    for name in ("web", "worker", "scheduler"):
        assert not {"database_owner_url", "database_superuser_url", "postgres_password"} & set(
            COMPOSE["services"][name]["secrets"]
        )


def test_every_long_running_service_has_a_health_check_and_waits_for_the_migration() -> None:
    for name, service in COMPOSE["services"].items():
        if name != "migrate":
            assert service["healthcheck"]["test"], name
    for name in ("web", "worker", "scheduler"):
        assert COMPOSE["services"][name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    for name in OURS:
        assert COMPOSE["services"][name]["cap_drop"] == ["ALL"]
        assert COMPOSE["services"][name]["read_only"] is True


def test_the_image_runs_as_an_ordinary_user_and_starts_the_web_server() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert "USER writegate" in lines
    assert lines.index("USER writegate") < next(number for number, line in enumerate(lines) if line.startswith("CMD"))
    assert 'CMD ["python", "manage.py", "serve", "web"]' in lines


def test_make_secrets_makes_what_the_file_reads_and_keeps_it(tmp_path: Path) -> None:
    made: list[dict[str, Any]] = []
    for _ in range(2):
        command = ["make", "--file", str(ROOT / "Makefile"), "secrets", f"PYTHON={sys.executable}"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        made.append({path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "secrets").iterdir()})
    assert made[0] == made[1]
    assert {f"./secrets/{name}" for name in made[0]} == {source["file"] for source in COMPOSE["secrets"].values()} | {
        "./secrets/rabbitmq_password"
    }
    for name in ("database_url", "database_owner_url", "database_superuser_url"):
        assert connections.parse_address(made[0][name])["host"] == "postgres"
