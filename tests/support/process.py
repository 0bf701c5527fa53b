"""Running our commands as an operator does: in processes of their own, with a data directory of their own."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
# What a test run has set for itself and a command must not inherit.
_OURS = ("DATABASE_", "WRITEGATE_", "CELERY_", "DJANGO_", "PYTEST_", "COV_")


@contextmanager
def short_directory() -> Iterator[Path]:
    """A directory with a short path: a unix socket's path has room for a hundred bytes."""
    with tempfile.TemporaryDirectory(prefix="wg-", dir="/tmp", ignore_cleanup_errors=True) as name:
        # Passable, as a directory of a checkout is: root runs PostgreSQL as another account.
        Path(name).chmod(0o711)
        yield Path(name)


def clean_environment(**settings: str) -> dict[str, str]:
    """The environment less what the test run put into it, plus the given variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return kept | {"PYTHONUNBUFFERED": "1"} | settings


def manage(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run `manage.py` to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=clean_environment(**settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@contextmanager
def running(command: list[str], environment: Mapping[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process in a session of its own, its output in `log`; killed with all of its descendants at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    family = psutil.Process(process.pid)
    try:
        yield process
    finally:
        left = [family, *family.children(recursive=True)] if family.is_running() else []
        for member in left:
            if member.is_running():
                member.kill()
        process.wait(timeout=10)


def descendants(pid: int) -> list[psutil.Process]:
    """All processes below one, whatever session they are in."""
    return psutil.Process(pid).children(recursive=True)


def still_alive(processes: list[psutil.Process], seconds: float = 3.0) -> list[psutil.Process]:
    """Those that have not ended after a while; a zombie has ended."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return [process for process in alive if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fetch(url: str) -> tuple[int, dict[str, Any]]:
    """Status and JSON body of an address; status 0 when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
    except (urllib.error.URLError, OSError):
        return 0, {}


def await_status(url: str, *, status: int = 200, seconds: float = 60) -> dict[str, Any]:
    """The body of an address as soon as it answers with a status; fails the test with the last answer after a while."""
    until = time.monotonic() + seconds
    while True:
        got, body = fetch(url)
        if got == status:
            return body
        if time.monotonic() > until:
            raise AssertionError(f"{url} answered {got} and {body} for {seconds} seconds")
        time.sleep(0.2)


def await_line(log: Path, text: str, *, seconds: float = 15) -> None:
    """Wait until a log holds a text; fails the test with the log after a while."""
    until = time.monotonic() + seconds
    while text not in log.read_text(encoding="utf-8", errors="replace"):
        if time.monotonic() > until:
            raise AssertionError(f"{text!r} did not appear in {seconds} seconds:\n{log.read_text(errors='replace')}")
        time.sleep(0.1)


def stop_with(process: "subprocess.Popen[bytes]", number: signal.Signals, *, seconds: float) -> float:
    """Signal the main process alone; the seconds it took to end."""
    began = time.monotonic()
    process.send_signal(number)
    process.wait(timeout=seconds)
    return time.monotonic() - began
