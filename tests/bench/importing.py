"""Import: a CSV of N observations, by COPY. `python -m tests.bench.importing N`."""

import sys
import tempfile
from pathlib import Path

from tests.bench.database import measured, prepare

OBSERVATIONS_EACH = 100
HEADER = (
    "subject,source,provenance,metric,benchmark,version,slice,value,unit,k,n,repeats,errored,unscored,run_status,run_ended_at\n"
)
SLICES = ("overall", "hr", "it_service_management", "customer_service", "email", "calendar", "drive", "teams", "hybrid")


def write_file(path: Path, size: int) -> None:
    """Write N rows: a hundred observations a subject, no two of one key; every third states a value, the others k and n."""
    metrics = ("infeasible_refusal_rate", "harmful_completion_rate", "task_completion_rate")
    with path.open("w", encoding="utf-8") as out:
        out.write(HEADER)
        for number in range(size):
            subject, place = divmod(number, OBSERVATIONS_EACH)
            metric = metrics[place % 3]
            version, slice_ = divmod(place // 3, len(SLICES))
            hits = number * 7919 % 401
            counted = metric != "harmful_completion_rate"
            value, k = ("", hits) if counted else (f"{hits * 25 / 100:.2f}", "")
            out.write(
                f"model-{size}-{subject},lab,run_log,{metric},bench-a,{version + 1},{SLICES[slice_]},{value},percent,{k},400,3,0,0,"
                f"complete,2026-11-{1 + subject % 28:02d}T00:00:00Z\n"
            )


def main(size: int) -> None:
    prepare()
    from evaluations.kernel.actor import system_job
    from evaluations.services.evidence import import_files
    from tests.bench.world import register_world

    actor = system_job("bench")
    register_world(actor)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"bench-{size}.csv"
        write_file(path, size)

        def work() -> str:
            with path.open("rb") as stream:
                (done,) = import_files(actor=actor, files={path.name: stream}, max_bytes=2**30)
            megabytes = path.stat().st_size / 1e6
            return f"{done.observations:,} observations in {done.evidence:,} pieces of evidence, file of {megabytes:.0f} MB"

        measured(size, work)


if __name__ == "__main__":
    main(int(sys.argv[1]))
