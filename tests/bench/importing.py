"""Import: N observations of a CSV, or of our own JSON Lines, by COPY. `python -m tests.bench.importing csv|jsonl N`."""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tests.bench.database import measured, prepare

OBSERVATIONS_EACH = 100
HEADER = (
    "subject,source,provenance,metric,benchmark,version,slice,value,unit,k,n,repeats,errored,unscored,run_status,run_ended_at\n"
)
SLICES = ("overall", "hr", "it_service_management", "customer_service", "email", "calendar", "drive", "teams", "hybrid")


def observations(size: int) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield N observations with the number of their subject: a hundred each, no two of one key; every third states a value, the
    others k and n."""
    metrics = ("infeasible_refusal_rate", "harmful_completion_rate", "task_completion_rate")
    for number in range(size):
        subject, place = divmod(number, OBSERVATIONS_EACH)
        metric = metrics[place % 3]
        version, slice_ = divmod(place // 3, len(SLICES))
        hits = number * 7919 % 401
        found = {
            "metric": metric,
            "benchmark": "bench-a",
            "version": f"{version + 1}",
            "slice": SLICES[slice_],
            "unit": "percent",
        }
        told = {"value": f"{hits * 25 / 100:.2f}"} if metric == "harmful_completion_rate" else {"k": f"{hits}"}
        yield subject, found | told


def write_csv(path: Path, size: int) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.write(HEADER)
        for subject, seen in observations(size):
            told = ",".join((seen["metric"], "bench-a", seen["version"], seen["slice"], seen.get("value", ""), "percent"))
            out.write(
                f"model-{size}-{subject},lab,run_log,{told},{seen.get('k', '')},400,3,0,0,complete,"
                f"2026-11-{1 + subject % 28:02d}T00:00:00Z\n"
            )


def write_lines(path: Path, size: int) -> None:
    """Write the same observations as JSON Lines: a header, then an evidence a line."""
    with path.open("w", encoding="utf-8") as out:
        out.write(json.dumps({"format": "writegate-evidence/1", "source": "lab"}) + "\n")
        for subject, group in groupby(observations(size), key=lambda each: each[0]):
            counts = {"n": 400, "repeats": 3, "errored": 0, "unscored": 0}
            seen = [{**each, **counts} | ({"k": int(each["k"])} if "k" in each else {}) for _, each in group]
            run = {"status": "complete", "ended_at": f"2026-11-{1 + subject % 28:02d}T00:00:00Z"}
            evidence = {"subject": f"model-{size}-{subject}", "provenance": "run_log", "run": run, "observations": seen}
            out.write(json.dumps(evidence) + "\n")


WRITERS = {"csv": write_csv, "jsonl": write_lines}


def main(ending: str, size: int) -> None:
    prepare()
    from evaluations.kernel.actor import system_job
    from evaluations.services.evidence import import_files
    from tests.bench.world import register_world

    actor = system_job("bench")
    register_world(actor)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"bench-{size}.{ending}"
        WRITERS[ending](path, size)

        def work() -> str:
            started = time.process_time()
            with path.open("rb") as stream:
                (done,) = import_files(actor=actor, files={path.name: stream}, max_bytes=2**30)
            megabytes = path.stat().st_size / 1e6
            spent = time.process_time() - started
            told = f"{done.observations:,} observations in {done.evidence:,} pieces of evidence, file of {megabytes:.0f} MB"
            return f"{told}, {spent:.2f} s of our processor"

        measured(size, work)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
