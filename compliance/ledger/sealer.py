"""The sealer: gives waiting entries their index, and signs the tree that then stands.

One sealer at a time holds an advisory lock to the end of its transaction. Leaves, tiles, checkpoint and the emptied queue commit
together, so a sealer that dies at any point has done all of a batch or nothing of it, and the next one goes on.

A checkpoint is signed only over a tree that continues the last one: the edge read from the tables must hash to the last
checkpoint's root, and that checkpoint must bear a signature of the live key. Otherwise nothing is signed (`LedgerDamaged`).
"""

from typing import NamedTuple

from django.db import connection

from compliance.ledger.keys import Keyring, KeysRefused
from compliance.ledger.merkle import EMPTY_ROOT
from compliance.ledger.note import (
    CheckpointText,
    NoteRefused,
    SignatureRefused,
    SignerKey,
    VerifierKey,
    parse_checkpoint,
    parse_note,
    sign_note,
    verify_note,
)
from compliance.ledger.stored import LedgerDamaged, stored_edge
from compliance.ledger.tiles import FullTile, TileEdge
from compliance.models import Checkpoint, LedgerEntry, LedgerTile, SigningKey
from compliance.selectors.ledger import last_checkpoint, leaf_count, live_signing_key
from evaluations.kernel import audit
from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import now

BATCH = 10_000
ANNOUNCED = "signing_key.announced"
LOCK = 0x5752_4954_4547_4154
"""The advisory lock of whoever seals."""

_TAKE = """
WITH taken AS (
    DELETE FROM compliance_ledgerpending WHERE entry_id = ANY (ARRAY(
        SELECT entry_id FROM compliance_ledgerpending WHERE entry_id >= %s ORDER BY entry_id LIMIT %s FOR UPDATE SKIP LOCKED
    )) RETURNING entry_id
)
SELECT entry.id, sha256('\\x00'::bytea || entry.content) FROM taken JOIN compliance_ledgerentry entry ON entry.id = taken.entry_id
ORDER BY entry.id
"""
_INSERT_LEAVES = """
INSERT INTO compliance_ledgerleaf ("index", entry_id, leaf_hash)
SELECT %s + place - 1, entry_id, leaf_hash
FROM unnest(%s::bigint[], %s::bytea[]) WITH ORDINALITY AS given(entry_id, leaf_hash, place)
"""


class Sealed(NamedTuple):
    """What one batch did: how many entries got an index, and the checkpoint over all."""

    entries: int
    checkpoint: Checkpoint


def seal_batch(keyring: Keyring, *, limit: int = BATCH, wait: bool = True) -> Sealed | None:
    """Seal the entries that wait, at most `limit`, in the open service transaction; None when none waits.

    With `wait` false, None too while another sealer works. The first batch of a log, and the first under another key, is the
    announcement of that key alone. Raises `LedgerDamaged`, `KeysRefused`.
    """
    if not _lock(wait=wait):
        return None
    edge, last = _checked_edge(keyring)
    announcement, signers = _announce(keyring, edge.size)
    taken = _take(announcement.pk, 1) if announcement else _take(0, limit)
    if not taken:
        return None
    _append(edge, taken)
    checkpoint = _sign(keyring, signers, edge, last)
    return Sealed(len(taken), checkpoint)


def _lock(*, wait: bool) -> bool:
    with connection.cursor() as cursor:
        if wait:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
            return True
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        return bool(cursor.fetchone()[0])


def _checked_edge(keyring: Keyring) -> tuple[TileEdge, Checkpoint | None]:
    """Return the log's edge, once it is known to be what was signed last."""
    last = last_checkpoint()
    size = last.size if last else 0
    held = leaf_count()
    if held != size:
        raise LedgerDamaged(f"the last checkpoint covers {size} entries, but {held} have an index: nothing is signed over this")
    edge = stored_edge(size)
    root = edge.frontier().root()
    if last is None:
        return edge, None
    live = live_signing_key()
    try:
        note = parse_note(last.note.encode())
        signed = parse_checkpoint(note.text)
        verify_note(note, [VerifierKey.parse(live.verifier_key)] if live else [])
    except (NoteRefused, SignatureRefused) as error:
        raise LedgerDamaged(f"the last checkpoint, of {size} entries, does not verify: {error}") from None
    if signed != CheckpointText(keyring.origin, size, root) or bytes(last.root) != root:
        raise LedgerDamaged(f"the log's first {size} entries are not those of the last checkpoint: nothing is signed over this")
    return edge, last


def _announce(keyring: Keyring, size: int) -> tuple[LedgerEntry | None, list[SignerKey]]:
    """Return the entry that announces the key where this is its first use, and the keys that sign now."""
    key = keyring.current
    text = str(key.verifier)
    live = live_signing_key()
    if live is not None and live.verifier_key == text:
        return None, [key]
    if SigningKey.objects.filter(verifier_key=text).exists():
        raise KeysRefused(f"the key {key.name}+{key.verifier.key_id.hex()} was retired and does not come back")
    signers = [key]
    if live is not None:
        before = [old for old in keyring.previous if str(old.verifier) == live.verifier_key]
        if not before:
            raise KeysRefused(
                f"the log was signed by {live.name}+{live.key_id}, which is not at hand: "
                "restore it, or give it as the second line below the new key, which must be announced under both"
            )
        signers += before
    audit.record(
        audit.Event(
            action=ANNOUNCED,
            actor=system_job("seal"),
            target=("signing_key", f"{key.name}+{key.verifier.key_id.hex()}"),
            old={"verifier_key": live.verifier_key} if live else None,
            new={"algorithm": "ed25519", "verifier_key": text},
        )
    )
    moment = now()
    if live is not None:
        SigningKey.claim(live.pk, expected={"until_at": None}, moved_to={"until_at": moment})
    SigningKey.objects.create(
        name=key.name,
        key_id=key.verifier.key_id.hex(),
        verifier_key=text,
        announced_index=size,
        since_at=moment,
    )
    # Ids only grow, and no other sealer can be at work: the newest announcement is the one just recorded.
    return LedgerEntry.objects.filter(action=ANNOUNCED).order_by("-id")[0], signers


def _take(from_id: int, limit: int) -> list[tuple[int, bytes]]:
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [from_id, limit])
        return [(int(entry_id), bytes(leaf)) for entry_id, leaf in cursor.fetchall()]


def _append(edge: TileEdge, taken: list[tuple[int, bytes]]) -> None:
    first = edge.size
    leaves = [leaf for _, leaf in taken]
    tiles = edge.append(leaves)
    with connection.cursor() as cursor:
        cursor.execute(_INSERT_LEAVES, [first, [entry_id for entry_id, _ in taken], leaves])
    LedgerTile.objects.bulk_create(_row(tile) for tile in tiles)


def _row(tile: FullTile) -> LedgerTile:
    return LedgerTile(level=tile.level, number=tile.number, hashes=tile.hashes, root=tile.root)


def _sign(keyring: Keyring, signers: list[SignerKey], edge: TileEdge, last: Checkpoint | None) -> Checkpoint:
    root = edge.frontier().root()
    if last is not None and (edge.size <= last.size or root == EMPTY_ROOT):
        raise LedgerDamaged("a checkpoint must cover more than the one before it")
    text = CheckpointText(keyring.origin, edge.size, root).text()
    return Checkpoint.objects.create(size=edge.size, root=root, note=sign_note(text, signers))
