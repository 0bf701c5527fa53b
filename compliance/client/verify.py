"""`writegate verify`: an export of the trail, or the proof of one entry, checked offline."""

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from compliance.ledger.findings import Report, Unreadable
from compliance.ledger.note import VerifierKey
from compliance.ledger.proof import HEADER, MAX_PROOF_BYTES
from compliance.ledger.verifier import parse_keys, verify_export, verify_proof_file

VERIFIES, DOES_NOT_VERIFY, CANNOT_READ = 0, 1, 2
SHOWN = 20
MAX_HELD_BYTES = 64 * 1024


def run_verify(given: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Check a file; returns the exit code."""
    try:
        keys = keys_of(given.key)
    except (Unreadable, OSError) as error:
        print(f"refused: {error}", file=err)
        return CANNOT_READ
    try:
        report = _verify(given, keys)
    except Unreadable as error:
        print(f"cannot read {given.file}: {error}", file=err)
        return CANNOT_READ
    except OSError as error:
        print(f"cannot read {error.filename or given.file}: {error.strerror}", file=err)
        return CANNOT_READ
    if given.json:
        print(json.dumps(_as_value(report), indent=2, ensure_ascii=False), file=out)
    else:
        _print(report, out)
    return VERIFIES if report.is_ok() else DOES_NOT_VERIFY


def _verify(given: argparse.Namespace, keys: Sequence[VerifierKey]) -> Report:
    with given.file.open("rb") as stream:
        head = stream.read(len(HEADER))
        stream.seek(0)
        if head != HEADER.encode():
            if given.entry is not None:
                raise Unreadable("--entry belongs to a .tlog-proof")
            return verify_export(stream, keys=keys, against=_short(given.against) if given.against else None)
        if given.against is not None:
            raise Unreadable("--against belongs to an export")
        if not keys:
            raise Unreadable("a proof needs the log's public key: give it with --key")
        entry = _short(given.entry) if given.entry else None
        return verify_proof_file(stream.read(MAX_PROOF_BYTES + 1), keys=keys, entry=entry)


def keys_of(texts: Iterable[str]) -> list[VerifierKey]:
    """Return the keys that arguments state, each a key or a file that holds some. Raises `Unreadable`, `OSError`."""
    return parse_keys(_key_text(text) for text in texts)


def _key_text(text: str) -> str:
    path = Path(text)
    if "+" not in text and not path.exists():
        raise Unreadable(f"the key cannot be read: `{text[:80]}` is no file, and a key is written `name+8 hex digits+base64`")
    try:
        return _short(path).decode("ascii") if path.is_file() else text
    except (UnicodeDecodeError, ValueError):
        raise Unreadable(f"`{text[:80]}` holds no key") from None


def _short(path: Path) -> bytes:
    with path.open("rb") as stream:
        data = stream.read(MAX_HELD_BYTES + 1)
    if len(data) > MAX_HELD_BYTES:
        raise Unreadable(f"{path} is longer than {MAX_HELD_BYTES} bytes")
    return data


def _print(report: Report, out: TextIO) -> None:
    print("verifies" if report.is_ok() else "DOES NOT VERIFY", file=out)
    for finding in report.findings[:SHOWN]:
        print(f"  {finding}", file=out)
    if len(report.findings) > SHOWN:
        print(f"  and {len(report.findings) - SHOWN} more", file=out)
    width = max(map(len, report.facts), default=0)
    for word, text in report.facts.items():
        print(f"  {word.ljust(width)}  {text}", file=out)


def _as_value(report: Report) -> dict[str, object]:
    findings = [{"kind": one.kind, "index": one.index, "part": one.part, "detail": one.detail} for one in report.findings]
    return {"verifies": report.is_ok(), "findings": findings, "facts": report.facts}
