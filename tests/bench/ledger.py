"""The ledger: appends from 8 processes, sealing, proofs, export and verification, at the size asked for.

    python -m tests.bench.ledger                       a log of 1,000,000 entries
    python -m tests.bench.ledger --entries 100000      a smaller one

On an embedded server of its own, with the durable settings of a real one. It measures, it does not judge.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.database import prepare
from tests.support.memory import high_mark

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 8
SEALED_AT_ONCE = 10_000
PROOFS = 300
FILL = 5_000
TARGETS = {
    "appends": "at least 4,000 a second from 8 processes on 2 cores, not falling with size",
    "sealing": "10,000 entries in at most 1 s",
    "proof": "at most 5 ms at 10,000,000 entries",
    "export": "1,000,000 entries in at most 60 s and 200 MB",
    "verify": "1,000,000 entries in at most 30 s",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000, help="how long the log shall be (default: 1,000,000)")
    parser.add_argument("--appends", type=int, default=1_000, help="how many appends each process makes (default: 1,000)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="writegate-bench-") as directory:
        os.environ.setdefault("WRITEGATE_DATA_DIR", directory)
        os.environ.setdefault("WRITEGATE_SECRET_KEY", "made-up-for-the-benchmark")
        prepare()
        _appends("from an empty log", options.appends)
        _fill(options.entries)
        _appends(f"behind {options.entries:,}", options.appends)
        _sealing()
        _proofs()
        _export(Path(directory), options.entries)
    return 0


def _show(part: str, text: str) -> None:
    print(f"{part:<10}{text}   [{TARGETS[part]}]", flush=True)


def _appends(when: str, each: int) -> None:
    command = [sys.executable, "-m", "tests.support.ledger_worker", "pour"]
    workers = [
        subprocess.Popen(
            [*command, f"{when}-{number}", str(each)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(PROCESSES)
    ]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    started = time.perf_counter()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        assert worker.stdout is not None
        if worker.stdout.readline() != "done\n":
            raise SystemExit("a writer failed")
    seconds = time.perf_counter() - started
    for worker in workers:
        worker.communicate()
    _show("appends", f"{PROCESSES * each / seconds:,.0f} a second, {when}")


def _fill(entries: int) -> None:
    """Bring the log to its size: by the audit port, many events a transaction."""
    from django.db import connection, transaction

    from compliance.selectors.ledger import leaf_count
    from compliance.services.sealing import seal
    from evaluations.kernel import audit
    from evaluations.kernel.actor import system_job

    seal()
    actor = system_job("bench")
    made = leaf_count()
    started = time.perf_counter()
    sealing = 0.0
    while made < entries:
        count = min(FILL, entries - made)
        with transaction.atomic():
            audit.record(
                *(
                    audit.Event(
                        action="decision.made",
                        actor=actor,
                        target=("decision", f"fill-{number}"),
                        new={"allow": False, "reason": "no_grant", "subject": "claude-fable-5", "system": "hr-prod"},
                        digests={"policy": "sha256:" + 64 * "0", "facts": f"sha256:{number:064x}"},
                        request_id=f"{number:032x}",
                    )
                    for number in range(made, made + count)
                )
            )
        made += count
        before = time.perf_counter()
        seal()
        sealing += time.perf_counter() - before
    seconds = time.perf_counter() - started
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        size = cursor.fetchone()[0]
    print(
        f"{'fill':<10}{made:,} entries in {seconds:.0f} s, {sealing:.0f} s of it sealing; the database has {size / 1e6:,.0f} MB"
    )


def _sealing() -> None:
    from compliance.services.sealing import seal

    seal()
    seconds = []
    for _ in range(3):
        _append_bulk(SEALED_AT_ONCE)
        started = time.perf_counter()
        done = seal()
        seconds.append(time.perf_counter() - started)
        assert done.entries == SEALED_AT_ONCE
    _show("sealing", f"10,000 entries in {statistics.median(seconds):.2f} s")


def _append_bulk(count: int) -> None:
    from tests.support.ledger import append

    append(count)


def _proofs() -> None:
    import random

    from compliance.ledger.stored import StoredTree, proof_file
    from compliance.selectors.ledger import last_checkpoint

    newest = last_checkpoint()
    assert newest is not None
    chance = random.Random(1)
    paths, files = [], []
    for _ in range(PROOFS):
        index = chance.randrange(newest.size)
        started = time.perf_counter()
        StoredTree(newest.size).inclusion(index)
        paths.append(1000 * (time.perf_counter() - started))
        started = time.perf_counter()
        proof_file(index, checkpoint=newest)
        files.append(1000 * (time.perf_counter() - started))
    _show(
        "proof",
        f"{statistics.median(paths):.2f} ms (99 %: {statistics.quantiles(paths, n=100)[98]:.2f}) for a path,"
        f" {statistics.median(files):.2f} ms for the file, of {newest.size:,}",
    )


def _export(directory: Path, entries: int) -> None:
    for kind in ("jsonl", "csv"):
        out = directory / f"export-{kind}.zip"
        seconds, megabytes = _measured(
            "manage.py", "export_audit", "--format", kind, "--out", str(out), "--to-index", str(entries - 1)
        )
        _show(
            "export",
            f"{kind}: {entries:,} entries in {seconds:.1f} s and {megabytes:.0f} MB; the file has {out.stat().st_size / 1e6:.0f} MB",
        )
        seconds, megabytes = _measured("-m", "compliance.client", "verify", str(out))
        _show("verify", f"{kind}: {seconds:.1f} s and {megabytes:.0f} MB")


def _measured(*arguments: str) -> tuple[float, float]:
    """Run a command; return its seconds and its peak of memory in MB."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL)
    peak = 0.0
    # Looked at from outside as it runs: what the system says at the end counts this process too, of which it was forked.
    while process.poll() is None:
        peak = max(peak, high_mark(process.pid))
        time.sleep(0.02)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments[:3])} ended with {process.returncode}")
    return seconds, peak


if __name__ == "__main__":
    sys.exit(main())
