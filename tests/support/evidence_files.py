"""Evidence files to read: the real ones where `WRITEGATE_EVIDENCE_DIR` names their folder, else those committed here.

A committed file has the path and the right values of the real one: it is that file where its licence allows it, and a small
made-up twin where not (see `tests/fixtures/evidence/ORIGIN.md`). So the same tests run on both.
"""

import os
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "evidence"


def evidence_folder() -> Path:
    return Path(os.environ.get("WRITEGATE_EVIDENCE_DIR") or FIXTURES)


def evidence_file(path: str) -> Path:
    """Return the file at `path`; one that is not in the folder that was named is a failure, not a skip."""
    found = evidence_folder() / path
    assert found.is_file(), f"{found} is missing"
    return found


def evidence_bytes(path: str) -> bytes:
    return evidence_file(path).read_bytes()
