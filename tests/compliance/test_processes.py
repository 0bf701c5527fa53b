"""Supervision, with real child processes that behave well and badly."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.process import clean_environment, descendants, running, still_alive, stop_with

# A service that ignores SIGTERM, and one with a child in a process group of its own making.
WELL_BEHAVED = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
WITH_A_CHILD = (
    "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import signal, time;"
    " signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)']); print('up', flush=True); time.sleep(600)"
)
FALLING = "import time; print('up', flush=True); time.sleep(1); raise SystemExit(3)"

SUPERVISE = """
import sys
from pathlib import Path
from compliance.processes import Service, Supervisor
wanted = [Service(f"s{number}", (sys.executable, "-c", text)) for number, text in enumerate(sys.argv[1:])]
sys.exit(Supervisor(wanted, Path.cwd(), lambda line: print(line, flush=True), stop_seconds=3).run())
"""


@pytest.fixture
def supervise(tmp_path: Path) -> Iterator:
    def start(*services: str):
        return running([sys.executable, "-c", SUPERVISE, *services], clean_environment(), tmp_path / "log")

    return start


def family_when_up(process, log: Path, services: int) -> list[psutil.Process]:
    for _ in range(200):
        if log.read_text().count("| up") == services:
            return descendants(process.pid)
        process.poll()
        signal.sigtimedwait([], 0.1)
    raise AssertionError(log.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_stops_every_child(supervise, tmp_path: Path, number: signal.Signals) -> None:
    with supervise(WELL_BEHAVED, WITH_A_CHILD) as process:
        family = family_when_up(process, tmp_path / "log", 2)
        assert len(family) == 3
        assert stop_with(process, number, seconds=10) < 5
        assert process.returncode == 0
        assert still_alive(family) == []


def test_a_child_that_ends_by_itself_ends_the_others_and_is_named(supervise, tmp_path: Path) -> None:
    with supervise(FALLING, WELL_BEHAVED) as process:
        family = family_when_up(process, tmp_path / "log", 2)
        assert process.wait(timeout=15) == 1
        assert still_alive(family) == []
    assert "s0 ended by itself with exit code 3; stopping the others" in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_a_second_signal_kills_at_once(supervise, tmp_path: Path) -> None:
    with supervise(STUBBORN) as process:
        family = family_when_up(process, tmp_path / "log", 1)
        process.send_signal(signal.SIGINT)
        signal.sigtimedwait([], 0.5)
        assert process.poll() is None
        assert stop_with(process, signal.SIGINT, seconds=5) < 2
        assert still_alive(family) == []


@pytest.mark.slow
def test_a_child_that_does_not_stop_is_killed_in_time(supervise, tmp_path: Path) -> None:
    with supervise(STUBBORN) as process:
        family = family_when_up(process, tmp_path / "log", 1)
        assert 2.5 < stop_with(process, signal.SIGTERM, seconds=20) < 8
        assert still_alive(family) == []
    assert "s0 did not stop within 3 seconds; killing" in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_children_do_not_outlive_a_killed_supervisor(supervise, tmp_path: Path) -> None:
    """By the kernel's death signal, which Linux has; elsewhere nothing is promised."""
    with supervise(WELL_BEHAVED, WELL_BEHAVED) as process:
        family = family_when_up(process, tmp_path / "log", 2)
        process.kill()
        process.wait(timeout=5)
        assert still_alive(family) == []


def test_every_line_carries_the_name_of_its_service(supervise, tmp_path: Path) -> None:
    with supervise("print('a'); print(); print('b'); import time; time.sleep(1)") as process:
        assert process.wait(timeout=15) == 1
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line for line in lines if "|" in line] == ["s0        | a", "s0        | b"]
