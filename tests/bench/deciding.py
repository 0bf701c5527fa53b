"""What an answer costs: decisions over HTTP by `wrk`, beside a plain DRF view that reads one row and inserts one, in one run.

`python -m tests.bench.deciding decide N`: throughput and latency with N grants, 16 connections, two server processes.
`python -m tests.bench.deciding plain 0`: the plain view.
`python -m tests.bench.deciding revoke N`: 200 grants are suspended meanwhile: is an allow entered behind its grant's suspension?
`python -m tests.bench.deciding batch N` and `search N`: a batch of 1,000 questions, a page of a search, as the median of seven.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.bench.database import prepare

ROOT = Path(__file__).resolve().parents[2]
SECONDS, CONNECTIONS, PROCESSES, THREADS = 8, 16, 2, 16
GRANTS_A_SUBJECT = 10
PORT = 18_743
TIMES = 7
REVOKED = 200
PLAIN_TABLE = "bench_plain"

_LUA = """
local bodies = {}
for line in io.lines(os.getenv("BENCH_BODIES")) do bodies[#bodies + 1] = line end
math.randomseed(os.time())
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer " .. os.getenv("BENCH_TOKEN")
request = function() return wrk.format(nil, nil, nil, bodies[math.random(#bodies)]) end
done = function(summary, latency, requests)
  io.write(string.format("RESULT %d %d %d %d\\n", summary.requests, summary.duration, latency:percentile(50), latency:percentile(99)))
end
"""


def _world(grants: int) -> tuple[str, list[dict[str, Any]]]:
    """Make so many grants, ten systems a subject, and return a token and questions that are answered by yes."""
    from tests.bench.crowd import many_grants
    from tests.support import signing
    from tests.support.asking import ask_token

    land = signing.ground()
    signing.granted(land)
    subjects = many_grants(max(1, grants // GRANTS_A_SUBJECT), GRANTS_A_SUBJECT)
    chosen = [subjects[number * len(subjects) // 1_000 % len(subjects)] for number in range(1_000)]
    questions = [
        {
            "subject": {"type": "model", "id": f"subject-{subject}"},
            "action": {"name": "write"},
            "resource": {"type": "system", "id": f"system-{place % GRANTS_A_SUBJECT}"},
        }
        for place, subject in enumerate(chosen)
    ]
    token = ask_token(land.asker)
    # What was just made goes to the disk now, not while answers wait for theirs.
    os.sync()
    return token, questions


@contextmanager
def _served(application: str) -> Iterator[psutil.Process]:
    command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1", "--port", str(PORT)]
    command += ["--workers", str(PROCESSES), "--blocking-threads", str(THREADS), "--http", "1", "--no-ws", "--log-level", "error"]
    environment = {**os.environ, "WRITEGATE_DECISIONS_PER_SECOND": "1000000"}
    server = subprocess.Popen([*command, application], cwd=ROOT, env=environment)
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz", timeout=2).close()
                break
            except OSError:
                time.sleep(0.1)
        yield psutil.Process(server.pid)
    finally:
        server.terminate()
        server.wait(20)


def _load(path: str, token: str, questions: list[dict[str, Any]]) -> dict[str, float]:
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: it makes the load (Debian: apt install wrk)")
    with tempfile.TemporaryDirectory() as name:
        bodies, script = Path(name) / "bodies", Path(name) / "load.lua"
        bodies.write_text("\n".join(json.dumps(question) for question in questions), encoding="utf-8")
        script.write_text(_LUA, encoding="utf-8")
        environment = {**os.environ, "BENCH_BODIES": str(bodies), "BENCH_TOKEN": token}
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", "-s", str(script), f"http://127.0.0.1:{PORT}{path}"]
        subprocess.run([*command, "-d2s"], env=environment, capture_output=True, check=True)
        before = _processor_seconds()
        said = subprocess.run([*command, f"-d{SECONDS}s"], env=environment, capture_output=True, text=True, check=True).stdout
    found = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+)", said)
    if found is None or "Non-2xx" in said:
        raise RuntimeError(said)
    requests, micros, middle, slow = map(int, found.groups())
    spent = {name: (after - before[name]) / requests * 1e6 for name, after in _processor_seconds().items()}
    return {"rate": requests / micros * 1e6, "p50": middle / 1000, "p99": slow / 1000, **spent}


def _processor_seconds() -> dict[str, float]:
    """Return what our server's processes and the database's have used so far: less disturbed by others than the clock is."""
    used = {"server_us": 0.0, "database_us": 0.0}
    for process in psutil.process_iter(["name", "cmdline", "cpu_times"]):
        command, times = " ".join(process.info["cmdline"] or ()), process.info["cpu_times"]
        if times is None:
            continue
        if f"--port {PORT}" in command:
            used["server_us"] += times.user + times.system
        elif command.startswith("postgres: ") and "writegate" in command:
            used["database_us"] += times.user + times.system
    return used


def _memory(server: psutil.Process) -> float:
    return max(child.memory_info().rss for child in server.children(recursive=True)) / 2**20


def decide(size: int) -> None:
    from compliance.models import Decision

    token, questions = _world(size)
    with _served("compliance.wsgi:application") as server:
        told = _load("/access/v1/evaluation", token, questions)
        told["megabytes"] = _memory(server)
    denied = Decision.objects.filter(allowed=False).count()
    _report(size, told, f"{Decision.objects.count():,} recorded, {denied} of them denials")


def revoke(size: int) -> None:
    """Suspend grants one by one while they are asked about as fast as two processes answer, then seal and look at the log."""
    from django.db import connection

    from compliance.models import Grant
    from compliance.services.sealing import seal
    from compliance.services.stopping import suspend_grant
    from compliance.vocabulary import Role
    from tests.support import signing

    token, questions = _world(size)
    security = signing.human("Sara Second", Role.SECURITY, team="sec")
    grants = list(Grant.objects.filter(reason="bench").order_by("?")[:REVOKED])
    with _served("compliance.wsgi:application"):
        load = threading.Thread(target=lambda: told.append(_load("/access/v1/evaluation", token, questions)))
        told: list[dict[str, float]] = []
        load.start()
        time.sleep(3)
        for grant in grants:
            suspend_grant(actor=signing.actor_of(security), grant=grant, reason="bench")
            time.sleep(SECONDS / 2 / REVOKED)
        load.join()
    seal()
    with connection.cursor() as cursor:
        cursor.execute(_ALLOWED_BEHIND)
        (behind, allowed, denied) = cursor.fetchone()
    _report(size, told[0], f"{len(grants)} suspended; {allowed:,} allows and {denied} denials about them; {behind} allows behind")


_ALLOWED_BEHIND = """
SELECT count(*) FILTER (WHERE d.allowed AND own.index > stop.index), count(*) FILTER (WHERE d.allowed),
    count(*) FILTER (WHERE NOT d.allowed)
FROM compliance_decision d
JOIN compliance_ledgerentry entry ON entry.uid = d.entry JOIN compliance_ledgerleaf own ON own.entry_id = entry.id
JOIN compliance_grant held ON held.id = d.grant_id
JOIN compliance_ledgerentry stopped ON stopped.action = 'grant.suspended' AND stopped.target_id = held.uid::text
JOIN compliance_ledgerleaf stop ON stop.entry_id = stopped.id
"""


def plain(size: int) -> None:
    from django.db import connections

    with connections["owner"].cursor() as cursor:
        cursor.execute(f"CREATE TABLE {PLAIN_TABLE} (id bigserial PRIMARY KEY, key text, at timestamptz)")
        cursor.execute(f"GRANT ALL ON {PLAIN_TABLE}, {PLAIN_TABLE}_id_seq TO writegate_runtime")
    token, questions = _world(GRANTS_A_SUBJECT)
    with _served("tests.bench.plain:application") as server:
        told = _load("/plain", token, questions)
        told["megabytes"] = _memory(server)
    _report(size, told, "a DRF view behind the same middleware")


def batch(size: int) -> None:
    token, questions = _world(size)
    with _served("compliance.wsgi:application"):
        _median(size, "/access/v1/evaluations", token, {"evaluations": questions})


def search(size: int) -> None:
    token, questions = _world(size)
    question = {**questions[0], "subject": {"type": "model"}}
    with _served("compliance.wsgi:application"):
        _median(size, "/access/v1/search/subject", token, question)


def _median(size: int, path: str, token: str, body: dict[str, Any]) -> None:
    content = json.dumps(body).encode()
    taken, got = [], b""
    for _ in range(TIMES + 1):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", content, headers)
        started = time.perf_counter()
        with urllib.request.urlopen(asked, timeout=60) as answer:
            got = answer.read()
        taken.append(time.perf_counter() - started)
    found = json.loads(got)
    held = found.get("evaluations", found.get("results", []))
    allowed = sum(item.get("decision", True) for item in held)
    print(
        json.dumps(
            {"size": size, "milliseconds": statistics.median(taken[1:]) * 1e3, "note": f"{allowed} of {len(held)} are yes"}
        )
    )


def _report(size: int, told: dict[str, float], note: str) -> None:
    print(json.dumps({"size": size, **{name: round(value, 2) for name, value in told.items()}, "note": note}))


if __name__ == "__main__":
    prepare()
    {"decide": decide, "revoke": revoke, "plain": plain, "batch": batch, "search": search}[sys.argv[1]](int(sys.argv[2]))
