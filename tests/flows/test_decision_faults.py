"""A served gate whose parts fail, thirty times each: nothing is allowed that is not on record, and a client never takes a broken
answer for a yes. Case O-17.
"""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from compliance.client.cli import main as client
from compliance.client.gate import Answer, Gate
from tests.support.process import ROOT, await_status, clean_environment, free_port, running, short_directory

pytestmark = pytest.mark.slow

RUNS = 30
ASKED = 6


class Served:
    """A gate that is served, a hand on its world, and a client."""

    def __init__(self, directory: Path, environment: dict[str, str], control: "subprocess.Popen[str]") -> None:
        self._directory = directory
        self._environment = environment
        self._control = control
        self._lock = threading.Lock()
        self.world = self.do("world")
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def do(self, *words: str) -> dict[str, Any]:
        """Have the control do something, and return what it says once that is committed."""
        with self._lock:
            assert self._control.stdin is not None
            assert self._control.stdout is not None
            self._control.stdin.write(" ".join(words) + "\n")
            self._control.stdin.flush()
            line = self._control.stdout.readline()
        assert line, "the control has ended"
        found: dict[str, Any] = json.loads(line)
        return found

    @contextmanager
    def web(self, **settings: str) -> Iterator["subprocess.Popen[bytes]"]:
        before, self.port = self.port, free_port()
        command = [sys.executable, "manage.py", "serve", "web", "--port", str(self.port)]
        try:
            with running(command, self._environment | settings, self._directory / f"web-{self.port}.log") as process:
                await_status(f"{self.address}/healthz")
                yield process
        finally:
            self.port = before

    def gate(self, **given: Any) -> Gate:
        return Gate(self.address, token=self.world["token"], **{"timeout": 2.0, "retries": 0, **given})

    def ask(self, **given: Any) -> Answer:
        return self.gate(**given).check(self.world["subject"], self.world["system"], type="model")

    def ask_by_command(self, *more: str) -> int:
        words = ["check", "--server", self.address, "--subject", self.world["subject"], "--system", self.world["system"]]
        return client([*words, "--type", "model", "--timeout", "2", "--retries", "0", "--quiet", *more])

    def assert_recorded(self, answers: list[Answer]) -> None:
        """Every allow that a client was given has its row and its entry."""
        uids = sorted({answer.evaluation_id for answer in answers if answer.allowed})
        found = self.do("rows", *uids) if uids else {"recorded": [], "entries": 0}
        assert (found["recorded"], found["entries"]) == (uids, len(uids))


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with short_directory() as directory:
        environment = clean_environment(WRITEGATE_DATA_DIR=str(directory / "data"), WRITEGATE_LOG_LEVEL="CRITICAL")
        command = [sys.executable, "-m", "tests.support.gate_control"]
        with (directory / "control.log").open("wb") as log:
            control = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
            try:
                yield Served(directory, environment, control)
            finally:
                control.communicate(timeout=30)


@pytest.fixture(autouse=True)
def _token(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRITEGATE_TOKEN", served.world["token"])


@pytest.fixture(scope="module")
def web(served: Served) -> Iterator[Served]:
    with served.web():
        assert served.ask(timeout=20.0).allowed
        yield served


def await_allow(served: Served, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not served.ask().allowed:
        assert time.monotonic() < until, (served.ask().reasons, served.ask().raw)
        time.sleep(0.05)


def ask_while(served: Served, fault: Callable[[], Any], *, asking: float = 0.3) -> list[Answer]:
    """Ask from two threads while something happens, and a little after it; return all answers."""
    answers: list[Answer] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            answers.append(served.ask())

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    try:
        fault()
        time.sleep(asking)
    finally:
        over.set()
        for thread in threads:
            thread.join(10)
    return answers


def test_a_database_that_stops_and_comes_back(web: Served) -> None:
    for number in range(RUNS):
        how = signal.SIGINT if number % 2 else signal.SIGQUIT
        server = psutil.Process(web.do("pid")["pid"])

        def stop(server: psutil.Process = server, how: signal.Signals = how) -> None:
            server.send_signal(how)
            server.wait(20)

        answers = ask_while(web, stop, asking=0.1)
        gone = [web.ask() for _ in range(ASKED)]
        assert not any(answer.allowed or answer.certain for answer in gone), gone
        assert web.ask_by_command() == 2
        web.do("start")
        await_allow(web)
        web.assert_recorded(answers)


@pytest.mark.parametrize("state", ["53100", "25006"], ids=["out-of-space", "read-only"])
def test_a_decisions_table_that_takes_nothing(web: Served, state: str) -> None:
    raising = f"$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END $$"
    for _ in range(RUNS):

        def refuse() -> None:
            web.do(
                "sql",
                f"CREATE OR REPLACE FUNCTION refuse_decision() RETURNS trigger LANGUAGE plpgsql AS {raising};"
                "CREATE TRIGGER refuse BEFORE INSERT ON compliance_decision EXECUTE FUNCTION refuse_decision()",
            )

        answers = ask_while(web, refuse, asking=0.05)
        refused = [web.ask() for _ in range(ASKED)]
        assert [(answer.allowed, answer.reasons[0].code) for answer in refused] == [(False, "cannot_record")] * ASKED
        assert web.ask_by_command() == 1
        web.do("sql", "DROP FUNCTION refuse_decision() CASCADE")
        await_allow(web)
        web.assert_recorded(answers)


@pytest.fixture
def small_disk(web: Served) -> Iterator[Path]:
    """A file system of a few megabytes that holds the decisions table and nothing else."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    with short_directory() as directory:
        disk, place = directory / "disk", directory / "disk" / "tables"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=755", "tmpfs", str(disk)], check=True)
        try:
            place.mkdir()
            account = psutil.Process(web.do("pid")["pid"]).uids().real
            os.chown(place, account, -1)
            web.do("sql", f"CREATE TABLESPACE small LOCATION '{place}'")
            web.do("sql", "ALTER TABLE compliance_decision SET TABLESPACE small")
            yield disk
        finally:
            web.do("sql", "ALTER TABLE compliance_decision SET TABLESPACE pg_default")
            web.do("sql", "DROP TABLESPACE small")
            subprocess.run(["umount", str(disk)], check=True)


def fill(path: Path) -> None:
    """Write zeros until there is no space left."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def test_a_disk_that_is_full(web: Served, small_disk: Path) -> None:
    filler = small_disk / "filler"
    for _ in range(RUNS):
        answers: list[Answer] = []
        fill(filler)
        # The table's last page has room for a few more.
        while (answer := web.ask()).allowed:
            answers.append(answer)
            assert len(answers) < 500
        refused = [answer, *(web.ask() for _ in range(ASKED))]
        assert {(answer.allowed, answer.reasons[0].code) for answer in refused} == {(False, "cannot_record")}
        assert web.ask_by_command() == 1
        filler.unlink()
        await_allow(web)
        web.assert_recorded(answers)


def test_a_database_that_is_slow(web: Served) -> None:
    for _ in range(RUNS):
        web.do(
            "sql",
            "CREATE FUNCTION slow_decision() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_sleep(0.6); RETURN NULL; END $$;"
            "CREATE TRIGGER slow BEFORE INSERT ON compliance_decision EXECUTE FUNCTION slow_decision()",
        )
        impatient = web.ask(timeout=0.2)
        assert (impatient.allowed, impatient.certain) == (False, False)
        patient = web.ask(timeout=5.0)
        assert patient.allowed
        web.do("sql", "DROP FUNCTION slow_decision() CASCADE")
        web.assert_recorded([patient])


def test_a_question_sent_after_a_revocation_is_never_allowed(web: Served) -> None:
    for _ in range(RUNS):
        answers = ask_while(web, lambda: web.do("suspend"), asking=0)
        after = [web.ask() for _ in range(ASKED)]
        assert [(answer.allowed, answer.certain) for answer in after] == [(False, True)] * ASKED
        assert web.ask_by_command() == 1
        assert web.ask_by_command("--observe") == 0
        web.assert_recorded(answers)
        web.do("back")
        await_allow(web)


def test_a_web_process_that_is_killed(served: Served) -> None:
    for _ in range(RUNS):
        with served.web() as process:
            await_allow(served)
            family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]

            def kill(family: list[psutil.Process] = family) -> None:
                for member in family:
                    if member.is_running():
                        member.kill()

            answers = ask_while(served, kill, asking=0.05)
            gone = served.ask()
            assert (gone.allowed, gone.certain) == (False, False)
            assert served.ask_by_command() == 2
            served.assert_recorded(answers)


def test_a_broker_that_is_not_there_changes_no_answer(served: Served) -> None:
    port = free_port()
    with served.web(CELERY_BROKER_URL=f"redis://127.0.0.1:{port}/0"):
        await_allow(served)
        answers = []
        for _ in range(RUNS):
            answers.append(served.ask())
            assert answers[-1].allowed
        served.do("suspend")
        assert served.ask_by_command() == 1
        served.do("back")
        served.assert_recorded(answers)


def test_a_clock_that_was_set_back_allows_nothing_older(served: Served, tmp_path: Path) -> None:
    """The server's clock stands an hour back: what has begun since has not begun for it."""
    (tmp_path / "sitecustomize.py").write_text(
        "import evaluations.kernel.clock as clock\n"
        "from datetime import UTC, datetime, timedelta\n"
        "clock.now = lambda: datetime.now(UTC) - timedelta(hours=1)\n"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    with served.web(PYTHONPATH=path):
        for _ in range(RUNS):
            answer = served.ask()
            assert not answer.allowed, answer
        assert served.ask_by_command() in (1, 2)
