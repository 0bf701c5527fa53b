"""The names and the bytes of tiles."""

import random

import pytest

from compliance.ledger.merkle import leaf_hash, tree_root
from compliance.ledger.tiles import (
    PathRefused,
    TileEdge,
    TileName,
    entry_bundle,
    number_path,
    parse_path,
    partial_width,
    tile_root,
)

LEAVES = [leaf_hash(number.to_bytes(4, "big")) for number in range(70_000)]


@pytest.mark.parametrize(
    ("number", "path"),
    [(0, "000"), (7, "007"), (999, "999"), (1000, "x001/000"), (1234067, "x001/x234/067"), (10**9, "x001/x000/x000/000")],
)
def test_numbers_are_written_in_groups_of_three(number: int, path: str) -> None:
    assert number_path(number) == path
    assert parse_path(f"0/{path}") == TileName(0, number, 256)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("0/000", TileName(0, 0, 256)),
        ("63/x001/067.p/255", TileName(63, 1067, 255)),
        ("entries/000.p/1", TileName(None, 0, 1)),
        ("entries/x123/456", TileName(None, 123456, 256)),
    ],
)
def test_a_path_is_read_and_written_alike(path: str, name: TileName) -> None:
    assert parse_path(path) == name
    assert name.path == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "0",
        "0/0",
        "0/00",
        "0/0000",
        "00/000",
        "64/000",
        "0/x000/001",
        "0/001/002",
        "0/000.p/0",
        "0/000.p/256",
        "0/000.p/01",
        "0/000.p/",
        "0/000\n",
        "-1/000",
        "../0/000",
        "entry/000",
        "0/" + "x001/" * 7 + "001",
    ],
)
def test_another_spelling_names_no_tile(path: str) -> None:
    with pytest.raises(PathRefused):
        parse_path(path)


def test_the_tree_of_the_specification_has_its_tiles() -> None:
    """A tree of 70,000: 273 full tiles and one of 112, one full and one of 17 above them, one of 1 on top."""
    edge = TileEdge()
    full = edge.append(LEAVES)
    assert sum(tile.level == 0 for tile in full) == 273
    assert sum(tile.level == 1 for tile in full) == 1
    assert [partial_width(level, 70_000) for level in range(4)] == [112, 17, 1, 0]
    assert edge.frontier().root() == tree_root(LEAVES)


def test_batches_make_the_same_tiles_as_one() -> None:
    chance = random.Random(11)
    whole = TileEdge().append(LEAVES)
    edge, found, place = TileEdge(), [], 0
    while place < len(LEAVES):
        step = chance.choice((1, 3, 255, 256, 257, 1000, 9000))
        found += edge.append(LEAVES[place : place + step])
        place = min(place + step, len(LEAVES))
        if step > 900:
            assert edge.frontier().root() == tree_root(LEAVES[:place])
    assert sorted(found) == sorted(whole)
    for tile in whole:
        hashes = [tile.hashes[at : at + 32] for at in range(0, 8192, 32)]
        assert tile_root(hashes) == tile.root
        if tile.level == 0:
            assert hashes == LEAVES[tile.number * 256 : tile.number * 256 + 256]


def test_an_edge_that_does_not_fit_its_size_is_refused() -> None:
    with pytest.raises(ValueError, match="at its edge"):
        TileEdge(3, [[bytes(32)] * 2])
    with pytest.raises(ValueError, match="at its edge"):
        TileEdge(256, [[], []])


def test_entries_are_written_behind_their_lengths() -> None:
    assert entry_bundle([b"", b"ab", b"x" * 65_535]) == b"\x00\x00\x00\x02ab\xff\xff" + b"x" * 65_535
    with pytest.raises(OverflowError):
        entry_bundle([b"x" * 65_536])
