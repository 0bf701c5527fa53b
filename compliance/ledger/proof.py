"""Proof files of C2SP (`c2sp.org/tlog-proof@v1`): one entry, its path, and the checkpoint it leads to. Pure.

Ours carry the entry's bytes as the format's `extra` data. It is not authenticated by the format; hashing it and following the
path is exactly what verifies it.
"""

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass

from compliance.ledger.merkle import ProofRefused, check_inclusion, leaf_hash
from compliance.ledger.note import (
    CheckpointText,
    NoteRefused,
    VerifierKey,
    decode_hash,
    encode_hash,
    parse_checkpoint,
    parse_note,
    verify_note,
)

HEADER = "c2sp.org/tlog-proof@v1"
MAX_PROOF_BYTES = 256 * 1024
MAX_PATH = 64
_INDEX = re.compile(r"index (0|[1-9][0-9]{0,18})\Z")


@dataclass(frozen=True, slots=True)
class TlogProof:
    """A parsed proof file. `checkpoint` is the signed note verbatim."""

    index: int
    path: tuple[bytes, ...]
    checkpoint: bytes
    extra: bytes | None


def write_proof(*, index: int, path: Iterable[bytes], checkpoint: str, entry: bytes | None = None) -> bytes:
    """Return the bytes of a proof file; `entry` goes along as the extra data."""
    lines = [HEADER]
    if entry is not None:
        lines.append(f"extra {base64.b64encode(entry).decode('ascii')}")
    lines.append(f"index {index}")
    lines += [encode_hash(sibling) for sibling in path]
    return ("\n".join(lines) + "\n\n" + checkpoint).encode()


def read_proof(data: bytes) -> TlogProof:
    """Parse a proof file. Raises `NoteRefused`; verifies nothing."""
    if len(data) > MAX_PROOF_BYTES:
        raise NoteRefused(f"a proof has at most {MAX_PROOF_BYTES} bytes")
    head, separator, checkpoint = data.partition(b"\n\n")
    if not separator:
        raise NoteRefused("a proof has an empty line before its checkpoint")
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise NoteRefused("a proof's lines are ASCII") from None
    if lines.pop(0) != HEADER:
        raise NoteRefused(f"a proof begins with `{HEADER}`")
    extra = None
    if lines and lines[0].startswith("extra "):
        extra = _extra(lines.pop(0).removeprefix("extra "))
    found = _INDEX.match(lines.pop(0)) if lines else None
    if found is None:
        raise NoteRefused("a proof has a line `index <n>`")
    if len(lines) > MAX_PATH:
        raise NoteRefused(f"a path has at most {MAX_PATH} hashes")
    return TlogProof(int(found.group(1)), tuple(decode_hash(line) for line in lines), checkpoint, extra)


def check_proof(proof: TlogProof, entry: bytes, keys: Iterable[VerifierKey]) -> tuple[CheckpointText, tuple[VerifierKey, ...]]:
    """Return the checkpoint and the keys that signed it, when the entry stands at the proof's index under it.

    Raises `NoteRefused` (not well formed), `SignatureRefused` (not signed by a key of yours), `ProofRefused` (another entry or
    index). The signature comes first: a path to a root that nobody signed proves nothing.
    """
    note = parse_note(proof.checkpoint)
    signed_by = verify_note(note, keys)
    checkpoint = parse_checkpoint(note.text)
    if checkpoint.origin not in {key.name for key in signed_by}:
        raise ProofRefused(f"the checkpoint is of `{checkpoint.origin}`, and its own key has not signed it")
    check_inclusion(leaf_hash(entry), proof.index, checkpoint.size, proof.path, checkpoint.root)
    return checkpoint, signed_by


def _extra(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NoteRefused("the extra data is not base64") from None
