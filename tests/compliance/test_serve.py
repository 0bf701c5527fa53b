"""`manage.py serve` as an operator runs it: real web server, worker and scheduler on the embedded PostgreSQL."""

import json
import signal
import socket
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.process import (
    await_line,
    await_status,
    clean_environment,
    descendants,
    fetch,
    free_port,
    manage,
    running,
    short_directory,
    still_alive,
    stop_with,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    """A migrated installation of its own."""
    with short_directory() as directory:
        done = manage("migrate", "--no-input", WRITEGATE_DATA_DIR=str(directory))
        assert done.returncode == 0, done.stderr
        yield directory


def serve(data_dir: Path, port: int, *arguments: str, **more: str):
    environment = clean_environment(WRITEGATE_DATA_DIR=str(data_dir), WRITEGATE_PORT=str(port), **more)
    return running([sys.executable, "manage.py", "serve", *arguments], environment, data_dir / "serve.log")


def test_a_service_alone_says_whether_it_is_ready(data_dir: Path) -> None:
    """The first that serves: where another test's worker ran moments ago, this one waits until its beats are too old."""
    port = free_port()
    with serve(data_dir, port, "web"):
        checks = await_status(f"http://127.0.0.1:{port}/readyz", status=503)["checks"]
        assert checks["database"]["ok"] is True
        assert not (checks["worker"]["ok"] and checks["scheduler"]["ok"])
        checked = manage("serve", "web", "--check", WRITEGATE_DATA_DIR=str(data_dir))
        assert checked.returncode == 0, checked.stderr
        assert set(json.loads(checked.stdout)) == {"database", "migrations"}


def test_it_gets_ready_and_one_ctrl_c_stops_everything_it_started(data_dir: Path) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with serve(data_dir, port) as process:
        checks = await_status(f"{address}/readyz")["checks"]
        assert list(checks) == ["database", "migrations", "worker", "scheduler"]
        for part in checks.values():
            assert part["ok"] is True
            assert 0 <= part["age_seconds"] < 35
        assert fetch(f"{address}/healthz") == (200, {"ok": True})
        with urllib.request.urlopen(f"{address}/api/docs/", timeout=10) as page:
            assert page.status == 200

        await_line(data_dir / "serve.log", "ready     | after")

        family = descendants(process.pid)
        names = " ".join(" ".join(member.cmdline()) for member in family)
        assert all(word in names for word in ("granian", "celery", "beat"))
        postmaster = psutil.Process(int((data_dir / "postgres" / "cluster" / "postmaster.pid").read_text().split()[0]))
        took = stop_with(process, signal.SIGINT, seconds=30)
        assert took < 15
        assert process.returncode == 0
        assert still_alive([*family, postmaster]) == []
    log = (data_dir / "serve.log").read_text()
    assert f"{address}/admin/" in log
    assert "Traceback" not in log
    assert log.rstrip().endswith("stopped")


def test_what_its_web_processes_count_lies_in_a_directory_that_goes_with_it(data_dir: Path) -> None:
    port = free_port()
    places = data_dir / "places"
    places.mkdir()
    with serve(data_dir, port, WRITEGATE_METRICS_OPEN="1", TMPDIR=str(places)) as process:
        await_status(f"http://127.0.0.1:{port}/readyz")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            told = answer.read().decode()
        assert "writegate_unlogged_allows_total 0.0" in told
        assert 'writegate_beat_age_seconds{name="worker"}' in told
        (made,) = places.glob("writegate-metrics-*")
        assert list(made.glob("counter_*.db"))
        stop_with(process, signal.SIGINT, seconds=30)
    assert list(places.glob("writegate-metrics-*")) == []


def test_a_dead_worker_ends_the_whole_with_exit_code_one(data_dir: Path) -> None:
    port = free_port()
    with serve(data_dir, port) as process:
        await_status(f"http://127.0.0.1:{port}/readyz")
        family = descendants(process.pid)
        worker = next(member for member in family if "worker" in member.cmdline() and member.ppid() == process.pid)
        worker.kill()
        assert process.wait(timeout=30) == 1
        assert still_alive(family) == []
    assert "worker ended by itself with exit code -9" in (data_dir / "serve.log").read_text()


def test_it_refuses_a_database_that_is_not_up_to_date() -> None:
    with short_directory() as directory:
        done = manage("serve", WRITEGATE_DATA_DIR=str(directory), WRITEGATE_PORT=str(free_port()))
        assert done.returncode == 1
        assert "migrations are not applied: run `manage.py migrate`" in done.stderr
        assert "Traceback" not in done.stderr


def test_it_refuses_a_port_that_is_taken(data_dir: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = manage("serve", WRITEGATE_DATA_DIR=str(data_dir), WRITEGATE_PORT=str(port))
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in done.stderr
    assert "WRITEGATE_PORT" in done.stderr


def test_asking_for_help_starts_no_server() -> None:
    with short_directory() as directory:
        asked = manage("serve", "--help", WRITEGATE_DATA_DIR=str(directory))
        assert asked.returncode == 0, asked.stderr
        assert "examples:" in asked.stdout
        assert manage("help", WRITEGATE_DATA_DIR=str(directory)).returncode == 0
        assert not (directory / "postgres").exists()
