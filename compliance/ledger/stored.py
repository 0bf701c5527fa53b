"""The tree as the database holds it: nodes from tiles, so that no proof ever hashes the entries again."""

from collections import OrderedDict
from hashlib import sha256

from compliance.ledger.merkle import HASH_BYTES, consistency_path, inclusion_path, root_of
from compliance.ledger.proof import write_proof
from compliance.ledger.tiles import HEIGHT, MAX_LEVEL, WIDTH, TileEdge, TileName, entry_bundle, partial_width
from compliance.models import Checkpoint, LedgerEntry, LedgerLeaf
from compliance.selectors.ledger import (
    checkpoint_covering,
    last_checkpoint,
    leaf_count,
    read_entries,
    read_leaf_hashes,
    read_tile_roots,
    read_tiles,
)
from evaluations.kernel.errors import DomainError, ErrorKind, NotFound

TILES_KEPT = 64

Pyramid = list[bytes]
"""The rows of a tile from its hashes up to its root, as far as they are complete; each row's hashes one behind the other."""


class NotSealedYet(DomainError):
    """An entry has no index yet; it follows within seconds."""

    code = "not_sealed_yet"
    kind = ErrorKind.CONFLICT


class LedgerDamaged(DomainError):
    """The stored log contradicts itself: rows are gone, or were changed past the locks."""

    code = "ledger_damaged"
    kind = ErrorKind.UNAVAILABLE


class StoredTree:
    """The first `size` leaves of the stored log. Keeps the tiles it has read: use one for many proofs, and drop it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._pyramids: OrderedDict[tuple[int, int], Pyramid] = OrderedDict()
        self._edge: dict[tuple[int, int], Pyramid] = {}

    def node(self, level: int, number: int) -> bytes:
        """Return the root of the complete subtree (level, number)."""
        tile_level, row = divmod(level, HEIGHT)
        tile_number, place = divmod(number, 1 << (HEIGHT - row))
        rows = self._pyramid(tile_level, tile_number)
        found = rows[row][HASH_BYTES * place : HASH_BYTES * (place + 1)] if row < len(rows) else b""
        if len(found) != HASH_BYTES:
            raise LedgerDamaged(f"tile {tile_level}/{tile_number} of the log is not whole")
        return found

    def root(self) -> bytes:
        """Return the tree's root."""
        return root_of(self.size, self.node)

    def inclusion(self, index: int) -> list[bytes]:
        """Return the audit path of a leaf."""
        levels = [level for level in range(MAX_LEVEL + 1) if self.size >> (HEIGHT * level)]
        self._load({(level, index >> (HEIGHT * (level + 1))) for level in levels})
        return inclusion_path(index, self.size, self.node)

    def consistency(self, old_size: int) -> list[bytes]:
        """Return the proof that the first `old_size` leaves are a beginning of this tree."""
        return consistency_path(old_size, self.size, self.node)

    def _load(self, names: set[tuple[int, int]]) -> None:
        missing = names - self._pyramids.keys()
        for name, data in read_tiles(missing).items() if missing else ():
            self._pyramids[name] = _pyramid(data)
            while len(self._pyramids) > TILES_KEPT:
                self._pyramids.popitem(last=False)

    def _pyramid(self, level: int, number: int) -> Pyramid:
        name = (level, number)
        if number == self.size >> (HEIGHT * (level + 1)):
            if not self._edge:
                self._edge = {
                    (at, self.size >> (HEIGHT * (at + 1))): _pyramid(b"".join(row)) for at, row in enumerate(edge_rows(self.size))
                }
            return self._edge.get(name, [])
        if name in self._pyramids:
            self._pyramids.move_to_end(name)
        else:
            self._load({name})
        return self._pyramids.get(name, [])


def edge_rows(size: int) -> list[list[bytes]]:
    """Return the hashes of the partial tile at the right edge of each level of a tree of `size`. Raises `LedgerDamaged`.

    They are the last leaves, and the roots of the last tiles below: two statements for all levels.
    """
    levels = [level for level in range(MAX_LEVEL + 1) if size >> (HEIGHT * level)]
    spans = []
    for level in levels:
        start = size >> (HEIGHT * (level + 1)) << HEIGHT
        spans.append((start, start + partial_width(level, size)))
    roots = read_tile_roots([(level - 1, *spans[level]) for level in levels if level])
    rows = [read_leaf_hashes(*spans[level]) if level == 0 else roots[level - 1] for level in levels]
    for level, (row, (start, end)) in enumerate(zip(rows, spans, strict=True)):
        if len(row) != end - start:
            raise LedgerDamaged(f"level {level} of the log has {len(row)} hashes at its edge where {end - start} were sealed")
    return rows


def stored_edge(size: int) -> TileEdge:
    """Return the partial tiles of the first `size` leaves. Raises `LedgerDamaged`."""
    return TileEdge(size, edge_rows(size))


def tile_bytes(name: TileName) -> bytes:
    """Return a tile's or bundle's bytes as C2SP serves them. Raises `NotFound` for what the log does not hold.

    Only what a checkpoint covers is served: a partial tile must be reached by the newest one.
    """
    newest = last_checkpoint()
    size = newest.size if newest else 0
    level = name.level or 0
    if (name.number * WIDTH + name.width) << (HEIGHT * level) > size:
        raise NotFound(f"the log has no tile {name.path} yet")
    if name.level is None:
        start = name.number * WIDTH
        rows = read_entries(start, start + name.width)
        if len(rows) != name.width:
            raise LedgerDamaged(f"bundle {name.path} of the log is not whole")
        return entry_bundle(row.content for row in rows)
    if name.width == WIDTH:
        found = read_tiles([(level, name.number)]).get((level, name.number))
        if found is None:
            raise LedgerDamaged(f"tile {name.path} of the log is missing")
        return found
    start = name.number * WIDTH
    end = start + name.width
    hashes = read_leaf_hashes(start, end) if level == 0 else read_tile_roots([(level - 1, start, end)])[level - 1]
    if len(hashes) != name.width:
        raise LedgerDamaged(f"tile {name.path} of the log is not whole")
    return b"".join(hashes)


def proof_file(index: int, *, checkpoint: Checkpoint | None = None) -> bytes:
    """Return the `.tlog-proof` of an entry, under the first stored checkpoint that covers it or under the one given.

    Carries the entry's bytes, so that the file verifies by itself. Raises `NotFound`, `LedgerDamaged`.
    """
    covering = checkpoint or checkpoint_covering(index)
    if index < 0 or covering is None or index >= covering.size:
        raise NotFound(f"the log has no entry {index}; it holds {leaf_count()}")
    rows = read_entries(index, index + 1)
    if not rows:
        raise LedgerDamaged(f"entry {index} of the log is missing")
    path = StoredTree(covering.size).inclusion(index)
    return write_proof(index=index, path=path, checkpoint=covering.note, entry=rows[0].content)


def proof_file_of(entry: LedgerEntry) -> bytes:
    """Return the `.tlog-proof` of an entry that may not be sealed yet. Raises `NotSealedYet`, `LedgerDamaged`."""
    index = LedgerLeaf.objects.filter(entry=entry).values_list("index", flat=True).first()
    if index is None:
        raise NotSealedYet("this entry has no index yet; ask again in a few seconds")
    return proof_file(index)


def _pyramid(hashes: bytes) -> Pyramid:
    rows = [hashes]
    pair = 2 * HASH_BYTES
    while len(rows[-1]) >= pair:
        below = rows[-1]
        rows.append(b"".join(sha256(b"\x01" + below[at : at + pair]).digest() for at in range(0, len(below) - HASH_BYTES, pair)))
    return rows
