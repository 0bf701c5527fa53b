"""The shape of C2SP `tlog-tiles`: which tiles a tree has, how they are named, and the bytes of tiles and entry bundles. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from compliance.ledger.merkle import HASH_BYTES, Frontier, node_hash

HEIGHT = 8
WIDTH = 1 << HEIGHT
TILE_BYTES = WIDTH * HASH_BYTES
MAX_LEVEL = 63
MAX_NUMBER_PARTS = 7
MAX_ENTRY_BYTES = 65_535
"""An entry's length is written with 16 bits."""
ENTRIES = "entries"

_PATH = re.compile(r"(?P<level>0|[1-9][0-9]?|entries)/(?P<number>(?:x[0-9]{3}/)*[0-9]{3})(?:\.p/(?P<width>[1-9][0-9]{0,2}))?\Z")


class PathRefused(ValueError):
    """Not the name of a tile."""


class TileName(NamedTuple):
    """One tile or bundle: `level` is None for an entry bundle; `width` is 256 for a full one."""

    level: int | None
    number: int
    width: int

    @property
    def path(self) -> str:
        """Return the name below `<prefix>/tile/`."""
        level = ENTRIES if self.level is None else str(self.level)
        suffix = "" if self.width == WIDTH else f".p/{self.width}"
        return f"{level}/{number_path(self.number)}{suffix}"


def number_path(number: int) -> str:
    """Return a tile's number in groups of three digits, all but the last marked: 1234067 is `x001/x234/067`."""
    groups = [f"{number % 1000:03d}"]
    while number >= 1000:
        number //= 1000
        groups.append(f"x{number % 1000:03d}")
    return "/".join(reversed(groups))


def parse_path(text: str) -> TileName:
    """Return the tile that a path below `<prefix>/tile/` names. Raises `PathRefused`; one tile has exactly one path."""
    found = _PATH.match(text)
    if found is None or found["number"].count("/") >= MAX_NUMBER_PARTS:
        raise PathRefused(f"`{text[:80]}` names no tile")
    number = int(found["number"].replace("x", "").replace("/", ""))
    width = int(found["width"]) if found["width"] else WIDTH
    level = None if found["level"] == ENTRIES else int(found["level"])
    name = TileName(level, number, width)
    if (level is not None and level > MAX_LEVEL) or width > WIDTH or name.path != text:
        raise PathRefused(f"`{text[:80]}` names no tile")
    return name


def partial_width(level: int, size: int) -> int:
    """Return how many hashes the rightmost tile of a level has in a tree of `size`; 0 when it has none."""
    return (size >> (HEIGHT * level)) % WIDTH


def tile_root(hashes: Sequence[bytes]) -> bytes:
    """Return the root of a full tile."""
    row = list(hashes)
    if len(row) != WIDTH:
        raise ValueError(f"a full tile has {WIDTH} hashes, not {len(row)}")
    while len(row) > 1:
        row = [node_hash(row[place], row[place + 1]) for place in range(0, len(row), 2)]
    return row[0]


def split_tile(data: bytes) -> list[bytes]:
    """Return the hashes of a tile's bytes."""
    if len(data) % HASH_BYTES:
        raise ValueError(f"{len(data)} bytes are no tile")
    return [data[place : place + HASH_BYTES] for place in range(0, len(data), HASH_BYTES)]


def entry_bundle(entries: Iterable[bytes]) -> bytes:
    """Return entries, each after its length in two bytes, most significant first."""
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


class FullTile(NamedTuple):
    """A tile that has just become full: its place, its 256 hashes as bytes, and the root over them."""

    level: int
    number: int
    hashes: bytes
    root: bytes


class TileEdge:
    """The partial tiles at the right edge of a growing log; appending yields the tiles that become full.

    `rows[level]` holds the hashes of that level's partial tile.
    """

    def __init__(self, size: int = 0, rows: Sequence[Sequence[bytes]] = ()) -> None:
        self.size = size
        self._rows = [list(row) for row in rows]
        for level in range(MAX_LEVEL + 1):
            held = len(self._rows[level]) if level < len(self._rows) else 0
            width = partial_width(level, size)
            if held != width:
                raise ValueError(f"level {level} of a tree of {size} has {width} hashes at its edge, not {held}")

    def append(self, leaves: Sequence[bytes]) -> list[FullTile]:
        """Add leaf hashes; return the tiles that became full, a tile always before the one above it."""
        full: list[FullTile] = []
        first = self.size // WIDTH
        self.size += len(leaves)
        added: Sequence[bytes] = leaves
        level = 0
        while added:
            if level == len(self._rows):
                self._rows.append([])
            row = self._rows[level]
            row.extend(added)
            roots = []
            for place in range(0, len(row) - len(row) % WIDTH, WIDTH):
                hashes = row[place : place + WIDTH]
                roots.append(tile_root(hashes))
                full.append(FullTile(level, first + place // WIDTH, b"".join(hashes), roots[-1]))
            del row[: len(row) - len(row) % WIDTH]
            added = roots
            first //= WIDTH
            level += 1
        return full

    def frontier(self) -> Frontier:
        """Return the tree's edge as the hashes that its root is made of."""
        edge = Frontier()
        for level in range(len(self._rows) - 1, -1, -1):
            for root in self._rows[level]:
                edge.append_subtree(HEIGHT * level, root)
        return edge
