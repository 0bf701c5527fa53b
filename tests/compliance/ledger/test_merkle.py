"""The tree agrees with RFC 6962's definitions, with its vectors, and with an implementation by other people."""

import random
from collections.abc import Sequence
from hashlib import sha256

import pymerkle
import pytest

from compliance.ledger.merkle import (
    EMPTY_ROOT,
    Frontier,
    ProofRefused,
    check_consistency,
    check_inclusion,
    consistency_path,
    inclusion_path,
    leaf_hash,
    nodes_of,
    root_of,
    tree_root,
)

ENTRIES = [
    bytes.fromhex(text)
    for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
LEAVES = [leaf_hash(entry) for entry in ENTRIES]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
INCLUSION_5_OF_8 = [
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
]
CONSISTENCY_3_TO_7 = [
    "0298d122906dcfc10892cb53a73992fc5b9f493ea4c9badb27b791b4127a7fe7",
    "07506a85fd9dd2f120eb694f86011e5bb4662e5c415a62917033d4a9624487e7",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "837dbb152e9b079010717e84e865da4ebc0fa198a806d59d31bf15accef22d0e",
]


# RFC 6962, section 2.1, word for word: slow, and written from the text alone.


def mth(entries: Sequence[bytes]) -> bytes:
    if not entries:
        return sha256(b"").digest()
    if len(entries) == 1:
        return sha256(b"\x00" + entries[0]).digest()
    k = split(len(entries))
    return sha256(b"\x01" + mth(entries[:k]) + mth(entries[k:])).digest()


def path_of(m: int, entries: Sequence[bytes]) -> list[bytes]:
    if len(entries) == 1:
        return []
    k = split(len(entries))
    if m < k:
        return [*path_of(m, entries[:k]), mth(entries[k:])]
    return [*path_of(m - k, entries[k:]), mth(entries[:k])]


def subproof(m: int, entries: Sequence[bytes], whole: bool) -> list[bytes]:
    if m == len(entries):
        return [] if whole else [mth(entries)]
    k = split(len(entries))
    if m <= k:
        return [*subproof(m, entries[:k], whole), mth(entries[k:])]
    return [*subproof(m - k, entries[k:], False), mth(entries[:k])]


def split(n: int) -> int:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


@pytest.mark.parametrize("size", range(9))
def test_the_roots_are_those_of_the_vectors(size: int) -> None:
    assert tree_root(LEAVES[:size]).hex() == ROOTS[size]
    assert root_of(size, nodes_of(LEAVES)).hex() == ROOTS[size]


def test_the_proofs_are_those_of_the_vectors() -> None:
    assert [one.hex() for one in inclusion_path(5, 8, nodes_of(LEAVES))] == INCLUSION_5_OF_8
    assert [one.hex() for one in consistency_path(3, 7, nodes_of(LEAVES))] == CONSISTENCY_3_TO_7


def test_the_empty_tree_is_the_hash_of_nothing() -> None:
    assert Frontier().root() == EMPTY_ROOT == sha256(b"").digest()


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_agree_with_the_text_and_with_another_library(seed: int) -> None:
    """500 trees a seed, 10,000 in all: root, one inclusion, one consistency each, by three implementations."""
    chance = random.Random(seed)
    for _ in range(500):
        size = chance.choice((chance.randrange(1, 9), chance.randrange(1, 70), chance.randrange(1, 140)))
        entries = [chance.randbytes(chance.randrange(9)) for _ in range(size)]
        index, old = chance.randrange(size), chance.randrange(1, size + 1)
        leaves = [leaf_hash(entry) for entry in entries]
        node = nodes_of(leaves)
        root, old_root = tree_root(leaves), tree_root(leaves[:old])
        inclusion, consistency = inclusion_path(index, size, node), consistency_path(old, size, node)

        assert root == mth(entries)
        assert inclusion == path_of(index, entries)
        assert consistency == subproof(old, entries, True)
        check_inclusion(leaves[index], index, size, inclusion, root)
        check_consistency(old, size, consistency, old_root, root)

        other = pymerkle.InmemoryTree(algorithm="sha256")
        for entry in entries:
            other.append_entry(entry)
        assert (other.get_root(), other.get_root(old)) == (root, old_root)
        # Its paths begin with the leaf itself.
        assert other.prove_inclusion(index + 1, size).path == [leaves[index], *inclusion]
        pymerkle.verify_inclusion(leaves[index], root, other.prove_inclusion(index + 1, size))
        pymerkle.verify_consistency(old_root, root, other.prove_consistency(old, size))


def test_a_changed_proof_is_refused_whatever_is_changed() -> None:
    chance = random.Random(7)
    for size in range(1, 40):
        leaves = [leaf_hash(bytes([number])) for number in range(size)]
        root = tree_root(leaves)
        for index in range(size):
            path = inclusion_path(index, size, nodes_of(leaves))
            wrong = [
                (leaf_hash(b"other"), index, size, path),
                (leaves[index], index, size, [*path, bytes(32)]),
                (leaves[index], size, size, path),
                (leaves[index], -1, size, path),
            ]
            if path:
                place = chance.randrange(len(path))
                flipped = [bytes([one[0] ^ 1]) + one[1:] if at == place else one for at, one in enumerate(path)]
                wrong += [(leaves[index], index, size, path[:-1]), (leaves[index], index, size, flipped)]
                wrong += [(leaves[index], (index + 1) % size, size, path)]
            for leaf, at, of, steps in wrong:
                with pytest.raises(ProofRefused):
                    check_inclusion(leaf, at, of, steps, root)


def test_a_changed_consistency_proof_is_refused() -> None:
    for size in range(2, 40):
        leaves = [leaf_hash(bytes([number])) for number in range(size)]
        root = tree_root(leaves)
        for old in range(1, size):
            old_root = tree_root(leaves[:old])
            path = consistency_path(old, size, nodes_of(leaves))
            flipped = [bytes([path[0][0] ^ 1]) + path[0][1:], *path[1:]]
            forged = tree_root([leaf_hash(b"forged"), *leaves[1:old]])
            for steps, before, after in (
                (flipped, old_root, root),
                (path[:-1], old_root, root),
                ([*path, bytes(32)], old_root, root),
                (path, forged, root),
                (path, old_root, forged),
            ):
                with pytest.raises(ProofRefused):
                    check_consistency(old, size, steps, before, after)
    with pytest.raises(ProofRefused):
        check_consistency(3, 2, [], ROOTS[3].encode(), ROOTS[2].encode())


def test_trees_of_one_size_and_of_none_are_consistent_by_their_roots_alone() -> None:
    root = tree_root(LEAVES)
    check_consistency(8, 8, [], root, root)
    check_consistency(0, 8, [], EMPTY_ROOT, root)
    for old, old_root in ((8, bytes(32)), (0, bytes(32))):
        with pytest.raises(ProofRefused):
            check_consistency(old, 8, [], old_root, root)


def test_the_edge_goes_on_from_what_was_kept_of_it() -> None:
    chance = random.Random(3)
    leaves = [chance.randbytes(32) for _ in range(300)]
    for cut in (0, 1, 2, 127, 128, 129, 255, 256, 299):
        kept = Frontier()
        kept.extend(leaves[:cut])
        again = Frontier(kept.size, kept.peaks)
        again.extend(leaves[cut:])
        assert again.root() == tree_root(leaves)
    with pytest.raises(ValueError, match="peaks"):
        Frontier(3, [bytes(32)])
