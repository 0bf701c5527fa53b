"""The Merkle tree of RFC 6962, section 2.1, over SHA-256. Pure: values in, values out.

leaf = SHA-256(0x00 ‖ entry) · node = SHA-256(0x01 ‖ left ‖ right) · empty tree = SHA-256("") · a tree of n leaves is split at the
largest power of two below n.

A *node* is named by (level, number): the root of the 2**level leaves that begin at number * 2**level. Proofs are made from a
function that returns such nodes, so that a log keeps only its tiles and never hashes its entries again.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()

NodeOf = Callable[[int, int], bytes]
"""(level, number) → the hash of a complete subtree."""


class ProofRefused(ValueError):
    """A proof does not prove what it is given for."""


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash under which an entry stands in the tree."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return sha256(b"\x01" + left + right).digest()


class Frontier:
    """The right edge of a growing tree: all that is needed to append and to know the root. O(log n) hashes.

    `peaks` are the roots of the complete subtrees that make up the tree, from left to right, largest first.
    """

    __slots__ = ("peaks", "size")

    def __init__(self, size: int = 0, peaks: Iterable[bytes] = ()) -> None:
        self.size = size
        self.peaks = list(peaks)
        if len(self.peaks) != size.bit_count():
            raise ValueError(f"a tree of {size} leaves has {size.bit_count()} peaks, not {len(self.peaks)}")

    def append(self, leaf: bytes) -> None:
        """Add one leaf hash at the right."""
        peaks, size = self.peaks, self.size
        while size & 1:
            leaf = sha256(b"\x01" + peaks.pop() + leaf).digest()
            size >>= 1
        peaks.append(leaf)
        self.size += 1

    def append_subtree(self, level: int, root: bytes) -> None:
        """Add a complete subtree of 2**level leaves; the tree's size must be a multiple of that."""
        if self.size & ((1 << level) - 1):
            raise ValueError(f"a subtree of level {level} does not fit behind {self.size} leaves")
        size = self.size >> level
        while size & 1:
            root = node_hash(self.peaks.pop(), root)
            size >>= 1
        self.peaks.append(root)
        self.size += 1 << level

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaf hashes in order."""
        for leaf in leaves:
            self.append(leaf)

    def root(self) -> bytes:
        """Return the tree's root hash."""
        if not self.peaks:
            return EMPTY_ROOT
        folded = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            folded = node_hash(peak, folded)
        return folded

    def copy(self) -> "Frontier":
        """Return the same edge, to be grown on its own."""
        return Frontier(self.size, self.peaks)


def tree_root(leaves: Iterable[bytes]) -> bytes:
    """Return the root over leaf hashes."""
    edge = Frontier()
    edge.extend(leaves)
    return edge.root()


def nodes_of(leaves: Sequence[bytes]) -> NodeOf:
    """Return the node function over leaf hashes held in memory."""

    def node(level: int, number: int) -> bytes:
        if level == 0:
            return leaves[number]
        return node_hash(node(level - 1, 2 * number), node(level - 1, 2 * number + 1))

    return node


def peaks_of(size: int, node: NodeOf) -> list[bytes]:
    """Return the peaks of the first `size` leaves."""
    return [node(level, number) for level, number in _complete(0, size)]


def root_of(size: int, node: NodeOf) -> bytes:
    """Return the root of the first `size` leaves."""
    return Frontier(size, peaks_of(size, node)).root()


def inclusion_path(index: int, size: int, node: NodeOf) -> list[bytes]:
    """Return the audit path of a leaf, sibling first (RFC 6962, 2.1.1). Raises `ValueError` when `index` is not below `size`."""
    if not 0 <= index < size:
        raise ValueError(f"index {index} is not in a tree of {size}")
    path: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_range_root(middle, end, node))
            end = middle
        else:
            path.append(_range_root(start, middle, node))
            start = middle
    path.reverse()
    return path


def consistency_path(old_size: int, new_size: int, node: NodeOf) -> list[bytes]:
    """Return the proof that the first tree is a beginning of the second (RFC 6962, 2.1.2); empty where none is needed."""
    if not 0 <= old_size <= new_size:
        raise ValueError(f"a tree of {new_size} cannot follow a tree of {old_size}")
    if old_size in (0, new_size):
        return []
    path: list[bytes] = []
    start, end = 0, new_size
    whole = True
    while old_size != end:
        middle = start + _split(end - start)
        if old_size <= middle:
            path.append(_range_root(middle, end, node))
            end = middle
        else:
            path.append(_range_root(start, middle, node))
            start = middle
            whole = False
    if not whole:
        path.append(_range_root(start, end, node))
    path.reverse()
    return path


def root_from_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """Return the root that an audit path leads to (RFC 9162, 2.1.3.2). Raises `ProofRefused` when its length cannot be right."""
    if not 0 <= index < size:
        raise ProofRefused(f"index {index} is not in a tree of {size}")
    found = leaf
    first, last = index, size - 1
    for sibling in path:
        if last == 0:
            raise ProofRefused("the path is too long")
        if first & 1 or first == last:
            found = node_hash(sibling, found)
            while not first & 1 and first:
                first >>= 1
                last >>= 1
        else:
            found = node_hash(found, sibling)
        first >>= 1
        last >>= 1
    if last:
        raise ProofRefused("the path is too short")
    return found


def check_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> None:
    """Raise `ProofRefused` unless the leaf stands at `index` in the tree of `size` with this root."""
    if root_from_inclusion(leaf, index, size, path) != root:
        raise ProofRefused("the path does not lead to the root")


def check_consistency(old_size: int, new_size: int, path: Sequence[bytes], old_root: bytes, new_root: bytes) -> None:
    """Raise `ProofRefused` unless the old tree is a beginning of the new one (RFC 9162, 2.1.4.2)."""
    if old_size > new_size or old_size < 0:
        raise ProofRefused(f"a tree of {new_size} cannot follow a tree of {old_size}")
    if old_size == 0 or old_size == new_size:
        if path:
            raise ProofRefused("the path is too long")
        if old_root != (EMPTY_ROOT if old_size == 0 else new_root):
            raise ProofRefused("the roots differ")
        return
    rest = list(path)
    if not old_size & (old_size - 1):
        rest.insert(0, old_root)
    if not rest:
        raise ProofRefused("the path is too short")
    first, last = old_size - 1, new_size - 1
    while first & 1:
        first >>= 1
        last >>= 1
    old_found = new_found = rest[0]
    for sibling in rest[1:]:
        if last == 0:
            raise ProofRefused("the path is too long")
        if first & 1 or first == last:
            old_found = node_hash(sibling, old_found)
            new_found = node_hash(sibling, new_found)
            while not first & 1 and first:
                first >>= 1
                last >>= 1
        else:
            new_found = node_hash(new_found, sibling)
        first >>= 1
        last >>= 1
    if last:
        raise ProofRefused("the path is too short")
    if old_found != old_root:
        raise ProofRefused("the path does not lead to the old root")
    if new_found != new_root:
        raise ProofRefused("the path does not lead to the new root")


def _split(count: int) -> int:
    """Return the largest power of two below `count`."""
    return 1 << ((count - 1).bit_length() - 1)


def _complete(start: int, end: int) -> list[tuple[int, int]]:
    """Return (level, number) of the complete subtrees that make up [start, end), left to right; `start` fits the largest."""
    found: list[tuple[int, int]] = []
    place = start
    while place < end:
        level = (end - place).bit_length() - 1
        found.append((level, place >> level))
        place += 1 << level
    return found


def _range_root(start: int, end: int, node: NodeOf) -> bytes:
    hashes = [node(level, number) for level, number in _complete(start, end)]
    folded = hashes.pop()
    while hashes:
        folded = node_hash(hashes.pop(), folded)
    return folded
