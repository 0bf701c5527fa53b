"""The server checks its own log in bounded time: from the entries' bytes over the tiles to the signed tree head.

It finds damage. It cannot find a server that lies, which would answer the same: that takes an export, a key and a checkpoint that
were kept elsewhere, and `writegate verify`.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from secrets import SystemRandom

from compliance.ledger.findings import Finding, Kind
from compliance.ledger.merkle import HASH_BYTES, Frontier, leaf_hash, tree_root
from compliance.ledger.note import (
    CheckpointText,
    NoteRefused,
    SignatureRefused,
    VerifierKey,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from compliance.ledger.tiles import HEIGHT, WIDTH
from compliance.models import Checkpoint
from compliance.selectors.ledger import (
    EntryRow,
    last_checkpoint,
    leaf_count,
    read_entries,
    read_leaf_hashes,
    read_tile_roots,
    read_tiles,
    signing_keys,
)

SECONDS = 5.0
BLOCK = 16 * WIDTH
"""Entries read at a time: whole tiles, so that each block is tied to the tree by itself."""
MOST_FINDINGS = 20


@dataclass
class Recheck:
    """What was checked of the log under its last checkpoint, and what was found wrong, each by its index or part.

    `read` of `size` entries were hashed anew from their bytes. `signed_by` is the verifier key that the signature fits, or empty.
    """

    checkpoint: Checkpoint
    size: int = 0
    signed_by: str = ""
    signed_root: bytes = b""
    computed_root: bytes = b""
    tiles: int = 0
    read: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """True when every entry was read."""
        return self.read >= self.size

    @property
    def head_agrees(self) -> bool:
        """True when the tiles and the leaves behind them hash to the root that was signed."""
        return bool(self.computed_root) and self.computed_root == self.signed_root

    def add(self, kind: Kind, detail: str, *, index: int | None = None, part: str = "") -> None:
        """Note a fault."""
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(Finding(kind, detail, index, part))


def recheck(*, seconds: float = SECONDS) -> Recheck | None:
    """Check the log under its last checkpoint for about `seconds`; None where nothing is sealed yet.

    The tree head is recomputed always. Entries are hashed anew as far as the time goes: the newest block first, then blocks chosen
    at random, so that several runs reach different ones. At least one block is read.
    """
    begun = time.monotonic()
    checkpoint = last_checkpoint()
    if checkpoint is None:
        return None
    done = Recheck(checkpoint)
    _check_note(done)
    roots, edge = _check_head(done)
    for start in _blocks(done.size):
        _check_block(done, start, roots, edge)
        if time.monotonic() - begun >= seconds or len(done.findings) >= MOST_FINDINGS:
            break
    done.seconds = time.monotonic() - begun
    return done


def _check_note(done: Recheck) -> None:
    row = done.checkpoint
    done.size, done.signed_root = row.size, bytes(row.root)
    try:
        note = parse_note(row.note.encode())
        said = parse_checkpoint(note.text)
        # The root that counts is the one under the signature; the columns beside it only repeat it.
        done.size, done.signed_root = said.size, said.root
        # The newest key that the signed tree announces; an older one has been retired.
        live = [VerifierKey.parse(key.verifier_key) for key in signing_keys(up_to_size=row.size)[-1:]]
        verify_note(note, live)
    except (NoteRefused, SignatureRefused) as error:
        done.add(Kind.BAD_SIGNATURE, str(error), part="the last checkpoint")
        return
    done.signed_by = str(live[0])
    if said != CheckpointText(live[0].name, row.size, bytes(row.root)):
        done.add(Kind.ALTERED, "its row says another log, size or root than the signed text", part="the last checkpoint")


def _check_head(done: Recheck) -> tuple[list[bytes], list[bytes]]:
    """Recompute the root from every full tile's root and the leaves behind the last one; return both."""
    held = leaf_count()
    if held < done.size:
        # What is not there is not looked for: an altered size must not keep us busy.
        done.add(Kind.MISSING, f"{held} of the {done.size} entries that were signed have an index", part="the leaves")
        done.size = held
    full = done.size >> HEIGHT
    roots = read_tile_roots([(0, 0, full)])[0]
    edge = read_leaf_hashes(full << HEIGHT, done.size)
    done.tiles = len(roots)
    if len(roots) != full:
        done.add(Kind.MISSING, f"{len(roots)} of {full} tiles are there", part="the tiles of leaves")
    if len(edge) != done.size - (full << HEIGHT):
        done.add(Kind.MISSING, f"{len(edge)} leaves are there behind the last full tile", part="the leaves at the edge")
    tree = Frontier()
    for root in roots:
        tree.append_subtree(HEIGHT, root)
    tree.extend(edge)
    done.computed_root = tree.root()
    if not done.head_agrees:
        done.add(Kind.ALTERED, "tiles and leaves do not hash to the root that was signed", part="the tree head")
    return roots, edge


def _blocks(size: int) -> Iterator[int]:
    starts = list(range(0, size, BLOCK))
    if starts:
        yield starts.pop()
    SystemRandom().shuffle(starts)
    yield from starts


def _check_block(done: Recheck, start: int, roots: list[bytes], edge: list[bytes]) -> None:
    end = min(start + BLOCK, done.size)
    rows = {row.index: row for row in read_entries(start, end)}
    done.read += len(rows)
    for first in range(start, end, WIDTH):
        wanted = range(first, min(first + WIDTH, end))
        missing = [index for index in wanted if index not in rows]
        for index in missing:
            done.add(Kind.MISSING, "no entry is stored at this index", index=index)
        if missing:
            continue
        leaves = [_leaf(done, rows[index]) for index in wanted]
        number = first >> HEIGHT
        if len(wanted) < WIDTH:
            _compare(done, first, leaves, edge, "behind the last full tile")
        elif number < len(roots) and tree_root(leaves) != roots[number]:
            held = read_tiles([(0, number)]).get((0, number), b"")
            stored = [held[at : at + HASH_BYTES] for at in range(0, len(held), HASH_BYTES)]
            if not _compare(done, first, leaves, stored, f"in tile {number}"):
                done.add(Kind.ALTERED, "its root is not that of its leaves", part=f"tile {number}")


def _leaf(done: Recheck, row: EntryRow) -> bytes:
    found = leaf_hash(row.content)
    if found != row.leaf_hash:
        done.add(Kind.ALTERED, "its bytes do not hash to the leaf that was sealed", index=row.index)
    return found


def _compare(done: Recheck, first: int, leaves: list[bytes], stored: list[bytes], where: str) -> int:
    """Name the leaves that differ from the tree's, but for those already named; return how many differ."""
    named = {finding.index for finding in done.findings}
    differing = [first + at for at, (own, held) in enumerate(zip(leaves, stored, strict=False)) if own != held]
    for index in differing:
        if index not in named:
            done.add(Kind.ALTERED, f"it is not the leaf that stands {where}", index=index)
    return len(differing)
