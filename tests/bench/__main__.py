"""`make bench`: figures with medians and ratios, measured in one run on this machine.

    python -m tests.bench                 everything (a few minutes)
    python -m tests.bench judge peers     some parts, as `--help` lists them
    python -m tests.bench store --sizes 1000 10000

It measures, it does not judge: nothing here fails because a machine is slow.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "judge", "verdicts", "compile", "peers", "store", "news", "rejudge", "impact", "import", "lines", "inspect", "refresh", "ledger",
    "dossier", "inbox", "stop", "answers", "batch", "search", "offline",
)  # fmt: skip
FLEETS = ("news", "rejudge", "impact")
MODULES = {
    "store": ("tests.bench.store",),
    "import": ("tests.bench.importing", "csv"),
    "lines": ("tests.bench.importing", "jsonl"),
    "refresh": ("tests.bench.refreshing",),
    "inspect": ("tests.bench.inspect_log",),
    "offline": ("tests.bench.offline",),
    **{part: ("tests.bench.fleet", part) for part in FLEETS},
    **{part: ("tests.bench.sign_offs", part) for part in ("dossier", "inbox", "stop")},
}
SIZES = {
    "verdicts": (10_000, 100_000, 1_000_000),
    "store": (1_000, 3_000, 10_000),
    "news": (1_000, 3_000, 10_000),
    "rejudge": (20_000, 60_000, 200_000),
    "impact": (1_000, 3_000, 10_000),
    "import": (10_000, 100_000, 1_000_000),
    "lines": (10_000, 100_000, 1_000_000),
    "refresh": (100, 300, 1_000),
    "inspect": (780, 7_800, 78_000),
    "dossier": (100, 1_000, 10_000),
    "inbox": (1_000, 10_000, 100_000),
    "stop": (100, 1_000, 10_000),
    "answers": (1_000, 10_000, 100_000, 1_000_000),
    "batch": (100_000,),
    "search": (1_000, 10_000, 100_000),
    "offline": (1_000, 10_000),
}
LEDGER_ENTRIES = (100_000,)
TARGETS = {
    "ledger": "4,000 appends a second; a proof at most 5 ms; sealing 10,000 at most 1 s; 1,000,000 exported in 60 s, verified in 30 s",
    "judge": "one verdict of five rules over four clauses: at most 40 µs",
    "verdicts": "1,000,000 verdicts in memory, 10,000 subjects × 100 policies of five rules: at most 45 s on one core",
    "compile": "a text of 50 rules: at most 5 ms",
    "news": "one observation among 2,000,000, 10,000 subjects × 100 policies, judged and stored: at most 1 s, whatever the fleet",
    "rejudge": "200,000 pairs fully: at most 60 s and 600 MB; almost nothing where facts did not change",
    "impact": "a version against the one in force, 10,000 subjects with 200 observations each: at most 30 s",
    "store": "10,000 subject versions × one policy, judged from PostgreSQL and stored: at most 6 s and 400 MB",
    "import": "1,000,000 observations of a CSV by COPY: at most 40 s and 300 MB",
    "lines": "our own JSON Lines by COPY: 100,000 observations a second",
    "refresh": "1,000 sources on one host, none of them changed (304), by two workers: at most 60 s",
    "inspect": "a 1 GB Inspect archive (78,000 samples) to its observations: at most 5 s and 200 MB",
    "dossier": "a request's page with 10,000 pieces of evidence behind it: at most 300 ms and 30 queries",
    "inbox": "an approver's home page with 100,000 requests waiting: at most 300 ms and 30 queries",
    "answers": "3 × a plain DRF view that reads one row and inserts one; p99 at most 15 ms; flat within 20 %; 200 MB a process",
    "batch": "1,000 questions in one request: at most 80 ms",
    "offline": "10,000 grants: made in at most 10 s and 100 MB more; asked again at most 10 ms; a check at most 1 ms",
    "search": "a page of a search over 100,000 grants: at most 100 ms",
    "stop": "10,000 grants suspended at one stroke, with 10,000 events: at most 10 s",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--sizes", nargs="+", type=int, help="how many subject versions or observations (default: three sizes)")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for part in options.parts:
        print(f"\n== {part}" + (f" — {TARGETS[part]}" if part in TARGETS else ""))
        if part in ("judge", "peers"):
            _judging(peers=part == "peers")
        elif part == "verdicts":
            _verdicts(options.sizes or SIZES[part])
        elif part == "compile":
            _compiling()
        elif part in ("answers", "batch", "search"):
            _deciding(part, options.sizes or SIZES[part])
        elif part == "ledger":
            command = [sys.executable, "-m", "tests.bench.ledger", "--entries", str(max(options.sizes or LEDGER_ENTRIES))]
            subprocess.run(command, cwd=ROOT, check=False)
        else:
            _database(part, options.sizes or SIZES[part])
    return 0


def _judging(*, peers: bool) -> None:
    from tests.bench.judge import time_judge

    own = time_judge()
    print(f"{own.engine:<24}{own.microseconds:>10.1f} µs")
    if not peers:
        return
    from tests.bench.peers import PEERS

    for peer in PEERS:
        try:
            timing = peer()
        except ImportError as error:
            print(f"{peer.__name__:<24}not installed ({error.name}); `make bench` installs it")
            continue
        print(f"{timing.engine:<24}{timing.microseconds:>10.1f} µs{timing.microseconds / own.microseconds:>9.1f} × ours")


def _verdicts(sizes: tuple[int, ...]) -> None:
    from tests.bench.judge import time_verdicts

    for size in sizes:
        wall, cpu = time_verdicts(size)
        print(f"{size:>12,}  {wall:>8.2f} s  {cpu:>8.2f} s CPU  {wall / size * 1e6:.1f} µs each")


def _compiling() -> None:
    from tests.bench.judge import time_compile

    print(f"{time_compile().microseconds / 1000:>12.1f} ms")


def _deciding(part: str, sizes: tuple[int, ...]) -> None:
    """Ask a served gate with so many grants behind it, each size on a server of its own; answers beside the plain view."""
    plain = _served("plain", 0)["rate"] if part == "answers" else 0.0
    if plain:
        print(f"{'plain view':>12}  {plain:>6.0f} a second")
    for size in sizes:
        told = _served("decide" if part == "answers" else part, size)
        if part == "answers":
            print(
                f"{size:>12,}  {told['rate']:>6.0f} a second, {told['rate'] / plain:.2f} × the plain view;  p50 {told['p50']:.1f} ms,"
                f"  p99 {told['p99']:.1f} ms;  {told['megabytes']:.0f} MB;  {told['note']}"
            )
        else:
            print(f"{size:>12,}  {told['milliseconds']:>6.0f} ms;  {told['note']}")


def _served(part: str, size: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="wgb-") as directory:
        environment = {**os.environ, "WRITEGATE_DATA_DIR": directory, "WRITEGATE_SECRET_KEY": "made-up-for-the-benchmark"}
        command = [sys.executable, "-m", "tests.bench.deciding", part, str(size)]
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def _database(part: str, sizes: tuple[int, ...]) -> None:
    """Run one part in a process of its own a size, so that each has its own peak of memory, on a throwaway server: one for all sizes,
    or, where the part fills a store of a stated size, one each."""
    before: dict[str, Any] | None = None
    with tempfile.TemporaryDirectory(prefix="writegate-bench-") as directory:
        for size in sizes:
            data = Path(directory, str(size) if part in FLEETS else "all")
            environment = {**os.environ, "WRITEGATE_DATA_DIR": str(data), "WRITEGATE_SECRET_KEY": "made-up-for-the-benchmark"}
            command = [sys.executable, "-m", *MODULES[part], str(size)]
            done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            result = json.loads(done.stdout.splitlines()[-1])
            growth = (
                f"  ({result['seconds'] / before['seconds']:.1f} × the time for {size / before['size']:.0f} ×)" if before else ""
            )
            print(
                f"{size:>12,}  {result['seconds']:>8.3f} s  {result['megabytes']:>6.0f} MB{growth}  {result.get('note', '')}".rstrip(),
                flush=True,
            )
            before = result


if __name__ == "__main__":
    sys.exit(main())
