"""Offline bundles as files, made without a service: what clients and other engines are tried on."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from compliance.ledger.merkle import tree_root
from compliance.ledger.note import CheckpointText, SignerKey, sign_note
from compliance.ledger.offline import Cited, Line, Statement, seal_statement, write_instant, write_statement

ORIGIN = "gate.example.org/ledger"
KEY = SignerKey(ORIGIN, b"\x01" * 32)
OTHER_KEY = SignerKey(ORIGIN, b"\x02" * 32)
POLICY = "sha256:" + "cd" * 32


def fingerprint(text: str) -> str:
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def line(subject: str = "hr-agent", version: int = 1, **changes: Any) -> Line:
    """Return a line that says: this version of an agent runs, and may write."""
    given = {
        "subject": subject,
        "version": version,
        "fingerprint": fingerprint(f"{subject}@{version}"),
        "kind": "agent",
        "runs": True,
        "names": (),
        "action": "write",
        "grants": ("00000000-0000-4000-8000-000000000001",),
        "policies": (POLICY,),
        "break_glass": False,
        "valid_until": write_instant(datetime.now(UTC) + timedelta(days=30)),
        **changes,
    }
    return Line(**given)


def checkpoint(size: int = 3, *, key: SignerKey = KEY, leaves: str = "", origin: str = ORIGIN) -> str:
    """Return the signed note of a log of so many entries; `leaves` makes another log."""
    root = tree_root(sha256(f"{leaves}{number}".encode()).digest() for number in range(size))
    return sign_note(CheckpointText(origin, size, root).text(), [key])


def statement(*lines: Line, serial: int = 7, seconds: float = 300, ago: float = 0, **changes: Any) -> Statement:
    """Return a statement made so many seconds ago, which counts for so long."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    made = Statement("hr-prod", serial, at, at + timedelta(seconds=seconds), checkpoint(), {POLICY: Cited("two-keys", 1)}, lines)
    return made._replace(**changes)


def sealed(made: Statement, key: SignerKey = KEY) -> bytes:
    """Return the file of a statement."""
    return seal_statement(write_statement(made), key)
