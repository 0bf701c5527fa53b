"""What an enforcement point remembers of the bundles it saw, in a file: that none goes back, neither the serial number nor the clock.

The file holds, by system, the newest serial number and which bundle bore it or that it was past its end, the newest checkpoint of the
log, and the latest time at which a bundle counted by this machine's clock. It is not secret, and whoever can write it can make the
enforcement point forget.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from compliance.client.http import parse_json
from compliance.client.outcome import Refused
from compliance.ledger.note import CheckpointText, encode_hash
from compliance.ledger.offline import LEEWAY_SECONDS, Statement, read_instant, write_instant

if sys.platform != "win32":
    import fcntl

MAX_BYTES = 1024 * 1024
ENDED = "ended"
"""Stands for the tag of a bundle that was seen to be past its end."""


class Older(Exception):
    """A bundle, a log or a clock that lies before what was seen already; the text says which."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one system: `serial` and `tag` of the newest bundle, `size` and `root` of its checkpoint, the latest `at`."""

    serial: int = -1
    tag: str = ""
    size: int = 0
    root: str = ""
    at: str = ""

    def check(self, statement: Statement, tag: str, checkpoint: CheckpointText, at: datetime) -> "Seen":
        """Return what is to be remembered from here on. Raises `Older`."""
        if self.at and at.timestamp() < read_instant(self.at).timestamp() - LEEWAY_SECONDS:
            raise Older(f"this machine's clock is behind {self.at}, which it has shown already: it was set back")
        if statement.serial < self.serial:
            raise Older(f"the bundle has the serial number {statement.serial}, and {self.serial} was seen already")
        if statement.serial == self.serial and self.tag == ENDED:
            raise Older(f"the bundle {self.serial} had ended when it was last looked at: this machine's clock was set back")
        if statement.serial == self.serial and tag != self.tag:
            raise Older(f"another bundle with the serial number {self.serial} was seen already")
        root = encode_hash(checkpoint.root)
        if checkpoint.size < self.size:
            raise Older(f"the bundle was made under a log of {checkpoint.size} entries, and one of {self.size} was seen already")
        if checkpoint.size == self.size and root != self.root:
            raise Older(f"the log had another root when it had {self.size} entries: it was forked")
        latest = max(self.at, write_instant(at))
        return replace(self, serial=statement.serial, tag=tag, size=checkpoint.size, root=root, at=latest)

    def ended(self, statement: Statement) -> "Seen":
        """Return what is to be remembered of a bundle that is past its end: no clock that is set back has it count again."""
        return self if statement.serial < self.serial else replace(self, serial=statement.serial, tag=ENDED)


@contextmanager
def remembering(path: Path, system: str) -> Iterator["Memory"]:
    """Hold what a file remembers of a system; what is put into it is kept. Raises `Refused` where it cannot be read or written."""
    try:
        with _locked(path):
            memory = Memory(path, system)
            yield memory
    except OSError as error:
        raise Refused(f"{path} cannot be kept, and without it an old bundle cannot be told: {error.strerror or error}") from error


class Memory:
    """One system's part of the file."""

    def __init__(self, path: Path, system: str) -> None:
        self._path, self._system = path, system
        self._all = _read(path)
        self.seen = self._all.get(system, Seen())

    def keep(self, seen: Seen) -> None:
        """Write down what was seen, at once and whole."""
        if seen == self.seen:
            return
        self._all[self._system] = self.seen = seen
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        text = json.dumps({system: asdict(one) for system, one in self._all.items()}, indent=2, sort_keys=True)
        draft.write_text(f"{text}\n", encoding="utf-8")
        draft.replace(self._path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Be the only process that keeps this file."""
    if sys.platform == "win32":
        # There is no such lock there: one process at a time keeps a file.
        yield
        return
    with path.with_name(f"{path.name}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> dict[str, Seen]:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES)
    except FileNotFoundError:
        return {}
    try:
        value = parse_json(data)
        return {system: _seen(one) for system, one in value.items()}
    except (ValueError, AttributeError, TypeError) as error:
        # Whoever damages it must not make this machine forget.
        raise Refused(f"{path} does not hold what was seen: mend it, or remove it and fetch anew") from error


def _seen(value: Any) -> Seen:
    kinds = {"serial": int, "size": int, "tag": str, "root": str, "at": str}
    if set(value) != {one.name for one in fields(Seen)} or any(type(value[name]) is not kind for name, kind in kinds.items()):
        raise ValueError("it is not what was seen of a system")
    if value["at"]:
        read_instant(value["at"])
    return Seen(**value)
