"""An Inspect archive of N samples, to observations: `python -m tests.bench.inspect_log N`; 78,000 samples are 1 GB."""

import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

from evaluations.importers.registry import HEAD_BYTES, pick, read_files
from tests.bench.database import measured
from tests.evaluations.importers.foreign import REGISTRY
from tests.evaluations.importers.inspect_made import MEASURE, profile
from tests.support.inspect_archive import write_log
from tests.support.memory import high_mark


def main(size: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "big.eval"
        # In a process of its own: what writing takes is no part of the peak.
        writer = multiprocessing.get_context("spawn").Process(target=write_log, args=(path, size))
        writer.start()
        writer.join()
        before = high_mark()

        def work() -> str:
            started = time.process_time()
            with path.open("rb") as stream:
                head = stream.read(HEAD_BYTES)
                stream.seek(0)
                files = {path.name: stream}
                ((_, seen),) = read_files(
                    pick(None, head, path.name), files, registry=REGISTRY, source="lab", profile=profile(MEASURE, task="big")
                )
            assert seen.n == size
            spent = time.process_time() - started
            return f"file of {path.stat().st_size / 1e6:,.0f} MB, {spent:.2f} s of processor, {before:.0f} MB before"

        measured(size, work)


if __name__ == "__main__":
    main(int(sys.argv[1]))
