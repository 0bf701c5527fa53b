"""Which keys speak for a log: those you were given, and those that they announced. Pure."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from compliance.ledger import bundle
from compliance.ledger.merkle import ProofRefused, check_consistency, check_inclusion, leaf_hash
from compliance.ledger.note import (
    CheckpointText,
    NoteRefused,
    SignatureRefused,
    VerifierKey,
    decode_hash,
    parse_checkpoint,
    parse_note,
    verify_note,
)

ANNOUNCED = "signing_key.announced"
_WORDS = {"checkpoint", "consistency", "entry", "inclusion", "index", "verifier_key"}


class ChainRefused(ValueError):
    """The log's own account of its keys does not hold."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """A key's announcement: the entry, its path under the checkpoint right behind it, and from there to the export's one."""

    key: VerifierKey
    index: int
    entry: bytes
    inclusion: tuple[bytes, ...]
    note: bytes
    consistency: tuple[bytes, ...]


def read_announcements(data: bytes) -> list[Announcement]:
    """Parse the member `keys.jsonl`. Raises `ChainRefused`."""
    if not data.endswith(b"\n"):
        raise ChainRefused("it names no key")
    try:
        return [_announcement(bundle.read_json(line)) for line in data[:-1].split(b"\n")]
    except (bundle.NotJson, NoteRefused, TypeError, ValueError) as error:
        raise ChainRefused(str(error)) from None


def _announcement(value: Any) -> Announcement:
    if not isinstance(value, dict) or set(value) != _WORDS or not bundle.is_count(value["index"]):
        raise ChainRefused("a line is no announcement")
    return Announcement(
        key=VerifierKey.parse(value["verifier_key"]),
        index=value["index"],
        entry=value["entry"].encode(),
        inclusion=tuple(decode_hash(one) for one in value["inclusion"]),
        note=value["checkpoint"].encode(),
        consistency=tuple(decode_hash(one) for one in value["consistency"]),
    )


def follow_keys(chain: Sequence[Announcement], given: Iterable[VerifierKey], checkpoint: CheckpointText) -> list[VerifierKey]:
    """Return the keys that are trusted: the given ones, and each that an announcement under a trusted key names.

    Every announcement, trusted or not, must stand in the log that `checkpoint` covers. Raises `ChainRefused`.
    """
    trusted = list(given)
    for step in chain:
        _check_step(step, checkpoint)
        try:
            signed = verify_note(parse_note(step.note), [*trusted, step.key])
        except (NoteRefused, SignatureRefused) as error:
            raise ChainRefused(f"the checkpoint that announces {step.key} does not verify: {error}") from None
        if step.key not in signed:
            raise ChainRefused(f"the key {step.key} has not signed its own announcement")
        if step.key not in trusted and any(key in trusted for key in signed):
            trusted.append(step.key)
    return trusted


def _check_step(step: Announcement, checkpoint: CheckpointText) -> None:
    try:
        entry = json.loads(step.entry)
        announced = entry["action"] == ANNOUNCED and entry["new"]["verifier_key"] == str(step.key)
        under = parse_checkpoint(parse_note(step.note).text)
    except (NoteRefused, ValueError, KeyError, TypeError) as error:
        raise ChainRefused(f"the announcement of {step.key} cannot be read: {error}") from None
    if not announced or under.origin != checkpoint.origin or under.size != step.index + 1:
        raise ChainRefused(f"entry {step.index} does not announce the key {step.key}")
    try:
        check_inclusion(leaf_hash(step.entry), step.index, under.size, step.inclusion, under.root)
        check_consistency(under.size, checkpoint.size, step.consistency, under.root, checkpoint.root)
    except ProofRefused as error:
        raise ChainRefused(f"the announcement of {step.key} is not proved to stand in this log: {error}") from None
