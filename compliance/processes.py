"""Web server, worker and scheduler: how each is started, and the supervision of all three by one process.

Each child is started in a session of its own and only its main process is signalled: a signal to a whole group, as a terminal's
Ctrl-C sends it, kills a Celery pool's children first and leaves the main process waiting for ever. A child that ends by itself
ends the others too; none is restarted silently, that is an operator's or an orchestrator's decision.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

WEB_THREADS = 16
STOP_SECONDS = 12.0
_CHECK_EVERY = 0.1
_DEATH_SIGNAL = 1  # Linux's PR_SET_PDEATHSIG


@dataclass(frozen=True, slots=True)
class Service:
    """One long-running process of ours: its name and its command line."""

    name: str
    command: tuple[str, ...]


def services(*, host: str, port: int, worker_processes: int) -> dict[str, Service]:
    """The three services by name: `web`, `worker`, `scheduler`."""
    celery = (sys.executable, "-m", "celery", "--app", "compliance", "--skip-checks", "--quiet")
    web = (
        *(sys.executable, "-m", "granian", "--interface", "wsgi", "--host", host, "--port", str(port)),
        *("--workers", "1", "--blocking-threads", str(WEB_THREADS), "--blocking-threads-idle-timeout", "600"),
        *("--http", "1", "--no-ws", "--log-level", "error", "--workers-kill-timeout", "8", "compliance.wsgi:application"),
    )
    worker = (
        *celery,
        *("worker", "--pool", "prefork", "--concurrency", str(worker_processes)),
        *("--without-gossip", "--without-mingle", "--without-heartbeat", "--hostname", f"worker-{os.getpid()}@%h"),
    )
    scheduler = (*celery, "beat", "--scheduler", "celery.beat:Scheduler", "--pidfile", "")
    return {
        service.name: service
        for service in (
            Service("web", web),
            Service("worker", worker),
            Service("scheduler", scheduler),
        )
    }


def child_environment() -> dict[str, str]:
    """Our environment; output unbuffered, so that lines appear when they are written."""
    return {**os.environ, "PYTHONUNBUFFERED": "1"}


def replace_by(service: Service, directory: Path) -> None:
    """Become the service: for containers, whose signals then reach it directly. Does not return."""
    os.chdir(directory)
    os.execve(service.command[0], service.command, child_environment())  # noqa: S606  (our own command, no shell)


class Supervisor:
    """Runs services until one ends or a signal says stop.

    The first SIGINT or SIGTERM stops every child and waits up to `stop_seconds`; a second one kills them at once.
    """

    def __init__(
        self, wanted: Sequence[Service], directory: Path, say: Callable[[str], None], *, stop_seconds: float = STOP_SECONDS
    ) -> None:
        self._wanted = wanted
        self._directory = directory
        self._say = say
        self._stop_seconds = stop_seconds
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._signals = 0

    def run(self) -> int:
        """Start, watch and stop the services; 0 after a signal, 1 when a service ended by itself."""
        previous = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            for service in self._wanted:
                self._children[service.name] = self._start(service)
            # Only now: a thread that is running would make the children's set-up between fork and exec unsafe.
            readers = [self._read_in_thread(name, child) for name, child in self._children.items()]
            fallen = self._watch()
            if fallen:
                self._say(f"{fallen} ended by itself with exit code {self._children[fallen].returncode}; stopping the others")
            else:
                self._say("stopping; press Ctrl-C again to kill")
            self._stop()
            for reader in readers:
                reader.join(timeout=1)
            return 1 if fallen else 0
        finally:
            self._kill_leftovers()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1

    def _start(self, service: Service) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603  (our own command, no shell)
            service.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._directory,
            env=child_environment(),
            start_new_session=True,
            # Where the kernel can do it, a child does not outlive a supervisor that was killed.
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509  (no thread runs yet)
        )

    def _read_in_thread(self, name: str, child: "subprocess.Popen[bytes]") -> threading.Thread:
        assert child.stdout is not None  # noqa: S101  (a pipe was asked for)
        reader = threading.Thread(target=self._pass_on, args=(name, child.stdout), daemon=True)
        reader.start()
        return reader

    def _pass_on(self, name: str, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                text = line.decode(errors="replace").rstrip()
                if text:
                    self._say(f"{name:<9} | {text}")

    def _watch(self) -> str:
        """Wait for a signal (returns "") or for a child to end (returns its name)."""
        while not self._signals:
            for name, child in self._children.items():
                if child.poll() is not None:
                    return name
            time.sleep(_CHECK_EVERY)
        return ""

    def _stop(self) -> None:
        signals_before = self._signals
        for child in self._children.values():
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        until = time.monotonic() + self._stop_seconds
        while any(child.poll() is None for child in self._children.values()):
            if self._signals > signals_before:
                self._say("killing what is left")
                return
            if time.monotonic() > until:
                slow = ", ".join(name for name, child in self._children.items() if child.poll() is None)
                self._say(f"{slow} did not stop within {self._stop_seconds:.0f} seconds; killing")
                return
            time.sleep(_CHECK_EVERY)

    def _kill_leftovers(self) -> None:
        """End whatever still lives in the children's sessions: their pools and workers, after their main process is gone."""
        for child in self._children.values():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGTERM)
