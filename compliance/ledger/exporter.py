"""Writes an export, a chunk at a time, from the stored log. What it reads it checks: a damaged log is not exported.

Every entry's bytes must hash to its leaf, and the leaves to the checkpoint, before the file is whole (R73: refuse while any input
cannot be read). Memory does not grow with the number of entries. The same order gives the same bytes, however often it was
interrupted: chunks are cut by index.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, BinaryIO, NamedTuple

from compliance.ledger import bundle
from compliance.ledger.archive import Archive
from compliance.ledger.merkle import Frontier, ProofRefused, check_consistency, check_inclusion, leaf_hash
from compliance.ledger.note import encode_hash, parse_note
from compliance.ledger.reading import header_bytes, row_bytes
from compliance.ledger.stored import LedgerDamaged, StoredTree
from compliance.models import Checkpoint, PersonName, SigningKey
from compliance.selectors.ledger import (
    EVERYTHING,
    EntryFilter,
    EntryRow,
    read_entries,
    read_filtered,
    read_leaf_hashes,
    signing_keys,
)
from evaluations.kernel.canonical import timestamp

CHUNK = 2_048
LEAVES_CHUNK = 32_768

Stage = tuple[str, bool]


class ExportOrder(NamedTuple):
    """What is asked for: entries up to `to_index` that match `wanted`, under `checkpoint`.

    `consistent_with` are sizes of checkpoints that somebody holds: a filtered export carries the proofs that it continues them
    (an unfiltered one needs none).
    """

    to_index: int
    checkpoint: Checkpoint
    wanted: EntryFilter = EVERYTHING
    with_csv: bool = False
    with_names: bool = True
    consistent_with: tuple[int, ...] = ()

    @property
    def is_filtered(self) -> bool:
        return not self.wanted.is_empty


class Exporter:
    """One export on its way. `step` writes a chunk; `resume` is what another process needs to go on, once all is flushed."""

    def __init__(self, order: ExportOrder, stream: BinaryIO, resume: dict[str, Any] | None = None) -> None:
        self.order = order
        state = resume or {}
        self._archive = Archive(stream, state.get("archive"))
        self._stage: str = state.get("stage", bundle.ENTRIES)
        self._next: int = state.get("next", 0)
        self._read: int = state.get("read", 0)
        self._edge = Frontier(state.get("edge_size", 0), [bytes.fromhex(peak) for peak in state.get("edge_peaks", [])])
        self._first: int | None = state.get("first")
        self._last: int | None = state.get("last")
        self._count: int = state.get("count", 0)
        self._named: set[str] = set(state.get("named", ()))
        self._entries_root: str = state.get("entries_root", "")
        self._tree = StoredTree(order.checkpoint.size)

    @property
    def resume(self) -> dict[str, Any]:
        """The state between two steps, as JSON."""
        return {
            "archive": self._archive.state(),
            "stage": self._stage,
            "next": self._next,
            "read": self._read,
            "edge_size": self._edge.size,
            "edge_peaks": [peak.hex() for peak in self._edge.peaks],
            "first": self._first,
            "last": self._last,
            "count": self._count,
            "named": sorted(self._named),
            "entries_root": self._entries_root,
        }

    @property
    def done(self) -> int:
        """How many entries were read so far, over all passes."""
        return self._read

    @property
    def entries(self) -> int:
        """How many entries the export holds."""
        return self._count

    def step(self) -> bool:
        """Write one chunk; False when the file is whole. Raises `LedgerDamaged`."""
        match self._stage:
            case bundle.ENTRIES:
                self._step_entries()
            case bundle.LEAVES:
                self._step_leaves()
            case bundle.PROOFS:
                self._step_proofs()
            case bundle.READING_COPY:
                self._step_reading_copy()
            case _:
                self._write_rest()
                return False
        return True

    @property
    def _end(self) -> int:
        return self.order.to_index + 1

    def _rows(self) -> list[EntryRow]:
        """Read the next chunk, checking that each entry's bytes are those that were sealed."""
        if self.order.is_filtered:
            rows = read_filtered(self.order.wanted, start=self._next, end=self._end, limit=CHUNK)
            self._next = rows[-1].index + 1 if len(rows) == CHUNK else self._end
        else:
            wanted = range(self._next, min(self._next + CHUNK, self._end))
            rows = read_entries(wanted.start, wanted.stop)
            if [row.index for row in rows] != list(wanted):
                missing = sorted(set(wanted) - {row.index for row in rows})
                raise LedgerDamaged(f"entry {missing[0]} of the log is missing: nothing is exported")
            self._next = wanted.stop
        for row in rows:
            if leaf_hash(row.content) != row.leaf_hash:
                raise LedgerDamaged(f"entry {row.index} of the log was altered: nothing is exported")
        self._read += len(rows)
        return rows

    def _step_entries(self) -> None:
        if self._next == 0:
            self._archive.begin(bundle.ENTRIES)
        rows = self._rows()
        if rows:
            lines = b"".join(row.content + b"\n" for row in rows)
            self._archive.write(lines)
            self._edge.extend(row.leaf_hash for row in rows)
            self._first = rows[0].index if self._first is None else self._first
            self._last = rows[-1].index
            self._count += len(rows)
            if self.order.with_names:
                self._named.update(found.decode() for _, found in bundle.NAMED_PERSON.findall(lines))
        if self._next >= self._end:
            self._archive.end()
            self._entries_root = encode_hash(self._edge.root())
            if not self.order.is_filtered:
                self._check_edge()
            self._turn_to(bundle.PROOFS if self.order.is_filtered else bundle.LEAVES)

    def _step_leaves(self) -> None:
        if self._next == 0:
            self._archive.begin(bundle.LEAVES, compress=False)
        stop = min(self._next + LEAVES_CHUNK, self._end)
        leaves = read_leaf_hashes(self._next, stop)
        if len(leaves) != stop - self._next:
            raise LedgerDamaged(f"leaves from {self._next} on are missing: nothing is exported")
        self._archive.write(b"".join(leaves))
        self._next = stop
        if self._next >= self._end:
            self._archive.end()
            self._turn_to(bundle.READING_COPY if self.order.with_csv else bundle.MANIFEST)

    def _step_proofs(self) -> None:
        if self._next == 0:
            self._archive.begin(bundle.PROOFS)
        rows = self._rows()
        if rows:
            self._archive.write(b"".join(self._proof(row) for row in rows))
        if self._next >= self._end:
            self._archive.end()
            self._turn_to(bundle.READING_COPY if self.order.with_csv else bundle.MANIFEST)

    def _proof(self, row: EntryRow) -> bytes:
        path = self._tree.inclusion(row.index)
        checkpoint = self.order.checkpoint
        try:
            check_inclusion(row.leaf_hash, row.index, checkpoint.size, path, bytes(checkpoint.root))
        except ProofRefused as error:
            raise LedgerDamaged(f"entry {row.index} of the log has no proof: {error}") from None
        proof = {"index": row.index, "leaf": encode_hash(row.leaf_hash), "path": [encode_hash(one) for one in path]}
        return bundle.write_json(proof) + b"\n"

    def _step_reading_copy(self) -> None:
        if self._next == 0:
            self._archive.begin(bundle.READING_COPY)
            self._archive.write(header_bytes())
        rows = self._rows()
        if rows:
            self._archive.write(row_bytes((row.index, row.content) for row in rows))
        if self._next >= self._end:
            self._archive.end()
            self._turn_to(bundle.MANIFEST)

    def _turn_to(self, stage: str) -> None:
        self._stage, self._next = stage, 0

    def _check_edge(self) -> None:
        checkpoint = self.order.checkpoint
        try:
            proof = self._tree.consistency(self._end)
            check_consistency(self._end, checkpoint.size, proof, self._edge.root(), bytes(checkpoint.root))
        except ProofRefused as error:
            raise LedgerDamaged(f"the log's entries do not hash to its checkpoint of {checkpoint.size}: {error}") from None

    def _write_rest(self) -> None:
        small = {
            bundle.CHECKPOINT: self.order.checkpoint.note.encode(),
            bundle.KEYS: b"".join(self._key_lines()),
            bundle.README: bundle.README_TEXT.encode(),
        }
        for name, data in small.items():
            self._archive.add(name, data)
        manifest = bundle.write_json(self._manifest(small))
        self._archive.add(bundle.MANIFEST, manifest)
        self._archive.add(bundle.MANIFEST_DIGEST, f"{sha256(manifest).hexdigest()}  {bundle.MANIFEST}\n".encode())
        if self.order.with_names:
            self._archive.add(bundle.NAMES, self._names())
        self._archive.finish()

    def _manifest(self, small: dict[str, bytes]) -> dict[str, Any]:
        order = self.order
        records = {"records": self._count, "rfc6962": self._entries_root}
        members: dict[str, Any] = {name: {"sha256": sha256(data).hexdigest()} for name, data in small.items()}
        members[bundle.ENTRIES] = {"bytes": self._archive.size_of(bundle.ENTRIES), **records}
        members[bundle.PROOFS if order.is_filtered else bundle.LEAVES] = {"records": self._count}
        if order.with_csv:
            members[bundle.READING_COPY] = {"derived_from": bundle.ENTRIES}
        return {
            "checkpoint": {"root": encode_hash(bytes(order.checkpoint.root)), "size": order.checkpoint.size},
            "entries": {"count": self._count, "first_index": self._first, "last_index": self._last, "to_index": order.to_index},
            "filters": filter_value(order.wanted) if order.is_filtered else None,
            "format": bundle.FORMAT,
            "held": {str(size): self._path(size) for size in sorted(set(order.consistent_with))},
            "left_out": self._end - self._count,
            "members": members,
            "origin": parse_note(order.checkpoint.note.encode()).text.partition("\n")[0],
            "range_proof": None if order.is_filtered else self._path(self._end),
            "statement": statement(self._end - self._count) if order.is_filtered else "",
            "version": bundle.VERSION,
        }

    def _path(self, size: int) -> list[str]:
        return [encode_hash(one) for one in self._tree.consistency(size)]

    def _key_lines(self) -> Iterator[bytes]:
        for key in signing_keys(up_to_size=self.order.checkpoint.size):
            yield bundle.write_json(self._key_line(key)) + b"\n"

    def _key_line(self, key: SigningKey) -> dict[str, Any]:
        size = key.announced_index + 1
        checkpoint = Checkpoint.objects.filter(size=size).first()
        rows = read_entries(key.announced_index, size)
        if checkpoint is None or not rows:
            raise LedgerDamaged(f"the announcement of the key {key} is missing: nothing is exported")
        return {
            "checkpoint": checkpoint.note,
            "consistency": self._path(size),
            "entry": rows[0].content.decode(),
            "inclusion": [encode_hash(one) for one in StoredTree(size).inclusion(key.announced_index)],
            "index": key.announced_index,
            "verifier_key": key.verifier_key,
        }

    def _names(self) -> bytes:
        rows = PersonName.objects.filter(commitment__in=sorted(self._named)).order_by("person_id", "id")
        return bundle.write_json(
            {
                "names": [
                    {"commitment": row.commitment, "name": row.name, "person": str(row.person_id), "salt": bytes(row.salt).hex()}
                    for row in rows
                ]
            }
        )


def filter_value(wanted: EntryFilter) -> dict[str, str]:
    """Return a filter as the manifest and the ledger write it: only what was asked for, times in the canonical form."""
    found: dict[str, str] = {}
    for word in bundle.FILTER_WORDS:
        value = getattr(wanted, word)
        if value:
            found[word] = value if isinstance(value, str) else timestamp(value)
    return found


def statement(left_out: int) -> str:
    """Return what a filtered export says about itself."""
    return (
        f"A part of the log: {left_out} entries up to the last index asked for were left out, as they do not match the filters. "
        "Each entry here is proved to stand in the log at its index; that no other one matches is the exporting service's word, "
        "which an export without filters would prove."
    )
