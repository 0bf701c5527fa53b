"""The lines of an export against the tree that was signed. Pure.

First one pass in step: every line's hash beside the hash it must have. Only where that fails are all hashes held in memory and
the difference explained; an export that verifies costs no memory, however long it is.
"""

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from compliance.ledger import bundle
from compliance.ledger.alignment import explain
from compliance.ledger.findings import Kind, Report
from compliance.ledger.merkle import HASH_BYTES, Frontier, ProofRefused, check_consistency, check_inclusion
from compliance.ledger.note import CheckpointText, NoteRefused, decode_hash, encode_hash
from compliance.ledger.parts import PartBroken, Parts, line_batches, record_batches
from compliance.ledger.reading import header_bytes, row_bytes

MAX_PROOF_LINE = 16 * 1024
MORE_LINES = 10_000
"""How many lines beyond the number said are still read to be explained."""


class Checked(NamedTuple):
    """What was learned from lines that verify: roots at the sizes asked for, and who is named by which commitment."""

    roots: dict[int, bytes]
    named: set[tuple[str, str]]


class _Mismatch(Exception):
    """The lines are not those of the tree."""


class _Expected:
    """The hashes that lines must have, with their indexes: from `leaves.bin`, or from `proofs.jsonl` with each path checked."""

    def __init__(self, parts: Parts, manifest: dict[str, Any], checkpoint: CheckpointText) -> None:
        self._parts = parts
        self._checkpoint = checkpoint
        self.filtered = manifest["filters"] is not None
        self.part = bundle.PROOFS if self.filtered else bundle.LEAVES
        self._last = -1

    def batches(self) -> Iterator[list[tuple[int, bytes]]]:
        """Yield (index, leaf hash). Raises `PartBroken`."""
        self._last = -1
        if self.filtered:
            for lines in line_batches(self._parts, bundle.PROOFS, max_line=MAX_PROOF_LINE):
                yield [self._proved(line) for line in lines]
            return
        start = 0
        for leaves in record_batches(self._parts, bundle.LEAVES, HASH_BYTES):
            yield list(enumerate(leaves, start))
            start += len(leaves)

    def _proved(self, line: bytes) -> tuple[int, bytes]:
        checkpoint = self._checkpoint
        try:
            value = bundle.read_json(line)
            index, leaf, path = value["index"], decode_hash(value["leaf"]), [decode_hash(one) for one in value["path"]]
            if len(value) != 3 or not bundle.is_count(index):
                raise TypeError
        except (bundle.NotJson, NoteRefused, KeyError, TypeError):
            raise PartBroken(bundle.PROOFS, f"has a line, behind the proof of entry {self._last}, that is no proof") from None
        if index <= self._last:
            raise PartBroken(bundle.PROOFS, f"has the proof of entry {index} out of its place")
        try:
            check_inclusion(leaf, index, checkpoint.size, path, checkpoint.root)
        except ProofRefused as error:
            raise PartBroken(bundle.PROOFS, f"does not prove entry {index}: {error}") from None
        self._last = index
        return index, leaf


def check_lines(
    parts: Parts, manifest: dict[str, Any], checkpoint: CheckpointText, held: CheckpointText | None, report: Report
) -> Checked | None:
    """Check every line, and what is derived from lines. None when something is wrong, which the report then tells."""
    expected = _Expected(parts, manifest, checkpoint)
    try:
        checked, edge, indexes = _in_step(parts, manifest, expected, held, report)
    except (_Mismatch, PartBroken):
        _explain(parts, manifest, checkpoint, expected, report)
        return None
    if expected.filtered:
        counted = manifest["entries"]
        if (counted["first_index"], counted["last_index"]) != indexes or (indexes[1] or 0) > counted["to_index"]:
            report.add(Kind.ALTERED, "its first and last index are not those of the lines", part=bundle.MANIFEST)
    else:
        problem = _tree_problem(edge, manifest, checkpoint)
        if problem:
            report.add(Kind.FORKED, f"lines and leaf hashes agree with each other, but not with what was signed: {problem}")
    if report.is_ok() and manifest["members"][bundle.ENTRIES]["rfc6962"] != encode_hash(edge.root()):
        report.add(Kind.ALTERED, f"its digest of {bundle.ENTRIES} is not that of the lines", part=bundle.MANIFEST)
    return checked if report.is_ok() else None


def _in_step(
    parts: Parts, manifest: dict[str, Any], expected: _Expected, held: CheckpointText | None, report: Report
) -> tuple[Checked, Frontier, tuple[int | None, int | None]]:
    """Read lines and expected hashes side by side. Raises `_Mismatch` at the first difference, `PartBroken`."""
    copy = _ReadingCopy(parts, report) if bundle.READING_COPY in parts.names() else None
    with_names = bundle.NAMES in parts.names()
    filters = manifest["filters"]
    checked = Checked({}, set())
    edge = Frontier()
    first = last = None
    read = 0
    hashes = _flat(expected.batches())
    for lines in line_batches(parts, bundle.ENTRIES):
        found = [sha256(b"\x00" + line).digest() for line in lines]
        # Lines first: what is drawn last is never drawn in vain.
        wanted = [pair for _, pair in zip(lines, hashes, strict=False)]
        if [leaf for _, leaf in wanted] != found:
            raise _Mismatch
        # Only the whole log, in order, has the roots of its own earlier days.
        _grow(edge, found, None if expected.filtered else held, checked.roots)
        read += sum(map(len, lines)) + len(lines)
        rows = [(index, line) for (index, _), line in zip(wanted, lines, strict=True)]
        first = rows[0][0] if first is None else first
        last = rows[-1][0]
        if copy is not None:
            copy.compare(rows)
        if filters is not None:
            _check_filters(rows, filters, report)
        if with_names:
            for line in lines:
                if b'"name_commitment"' in line:
                    checked.named.update((a.decode(errors="replace"), b.decode()) for a, b in bundle.NAMED_PERSON.findall(line))
    if next(hashes, None) is not None or edge.size != manifest["entries"]["count"]:
        raise _Mismatch
    if read != manifest["members"][bundle.ENTRIES]["bytes"]:
        report.add(Kind.ALTERED, f"its length of {bundle.ENTRIES} is not that of the lines", part=bundle.MANIFEST)
    if copy is not None:
        copy.end()
    return checked, edge, (first, last)


def _flat(batches: Iterator[list[tuple[int, bytes]]]) -> Iterator[tuple[int, bytes]]:
    for batch in batches:
        yield from batch


def _grow(edge: Frontier, leaves: list[bytes], held: CheckpointText | None, roots: dict[int, bytes]) -> None:
    """Append, noting the root at the size of the checkpoint held as it is passed."""
    if held is not None and edge.size < held.size <= edge.size + len(leaves):
        cut = held.size - edge.size
        edge.extend(leaves[:cut])
        roots[held.size] = edge.root()
        leaves = leaves[cut:]
    edge.extend(leaves)


def _tree_problem(edge: Frontier, manifest: dict[str, Any], checkpoint: CheckpointText) -> str:
    path = [decode_hash(one) for one in manifest["range_proof"]]
    try:
        check_consistency(edge.size, checkpoint.size, path, edge.root(), checkpoint.root)
    except ProofRefused as error:
        return str(error)
    return ""


def _explain(parts: Parts, manifest: dict[str, Any], checkpoint: CheckpointText, expected: _Expected, report: Report) -> None:
    """Say what is wrong, with all hashes in memory."""
    pairs, tree_problem = _all_expected(expected)
    got, line_problem, line = _all_lines(parts, manifest["entries"]["count"] + MORE_LINES)
    leaves = [leaf for _, leaf in pairs]
    differ = leaves != got
    if not expected.filtered and differ and not _is_signed(leaves, manifest, checkpoint):
        # The lines are judged by hashes that nobody signed, unless the lines themselves are the signed ones.
        if _is_signed(got, manifest, checkpoint) and not line_problem:
            for index, (leaf, right) in enumerate(zip(leaves, got, strict=False)):
                if leaf != right:
                    report.add(Kind.ALTERED, f"the hash of entry {index} is not that of its line", part=expected.part)
            if len(leaves) != len(got):
                report.add(Kind.ALTERED, f"it holds {len(leaves)} hashes, not {len(got)}", part=expected.part)
            differ = False
        else:
            report.add(Kind.ALTERED, "its hashes do not lead to the signed checkpoint", part=expected.part)
    if tree_problem:
        report.add(Kind.ALTERED, tree_problem, part=expected.part)
        if expected.filtered:
            differ = leaves != got[: len(leaves)]
    if differ:
        label = [index for index, _ in pairs]
        report.findings += explain(leaves, got, lambda place: label[place] if label else 0, part=bundle.ENTRIES)
    if line_problem:
        at = None if line is None else _entry_at(line, got, pairs)
        report.add(Kind.ALTERED, f"it {line_problem}", index=at, part=bundle.ENTRIES)
    if report.is_ok():
        report.add(Kind.ALTERED, "its count of entries is not that of the lines", part=bundle.MANIFEST)


def _entry_at(line: int, got: list[bytes], pairs: list[tuple[int, bytes]]) -> int:
    """Return the index of the entry that a line stands for: its own, else the one that follows the last known line before it.

    As in the alignment, a line behind the last entry has the index that comes next.
    """
    if not pairs:
        return 0
    place_of = {leaf: place for place, (_, leaf) in enumerate(pairs)}
    known = next((back for back in range(line, -1, -1) if got[back] in place_of), -1)
    place = place_of[got[known]] + line - known if known >= 0 else line
    return pairs[place][0] if place < len(pairs) else pairs[-1][0] + 1


def _is_signed(leaves: list[bytes], manifest: dict[str, Any], checkpoint: CheckpointText) -> bool:
    edge = Frontier()
    edge.extend(leaves)
    return len(leaves) == manifest["entries"]["count"] and not _tree_problem(edge, manifest, checkpoint)


def _all_expected(expected: _Expected) -> tuple[list[tuple[int, bytes]], str]:
    pairs: list[tuple[int, bytes]] = []
    try:
        for batch in expected.batches():
            pairs += batch
    except PartBroken as error:
        return pairs, error.problem
    return pairs, ""


def _all_lines(parts: Parts, limit: int) -> tuple[list[bytes], str, int | None]:
    """Return the hashes of all lines that can be read, what ended the reading too early, and the line that did where one did."""
    got: list[bytes] = []
    try:
        for lines in line_batches(parts, bundle.ENTRIES):
            got += [sha256(b"\x00" + line).digest() for line in lines]
            if len(got) > limit:
                return got[:limit], f"has more than {limit} lines, and is not read any further", None
    except PartBroken as error:
        return got, error.problem, error.line
    return got, "", None


class _ReadingCopy:
    """Derives the reading copy anew and compares it as it goes. Tells the first difference only: what follows it is shifted."""

    def __init__(self, parts: Parts, report: Report) -> None:
        self._chunks = parts.chunks(bundle.READING_COPY)
        self._held = b""
        self._report = report
        self._failed = False
        self._must_be(header_bytes(), None)

    def compare(self, rows: list[tuple[int, bytes]]) -> None:
        """Compare the rows of these entries."""
        if self._failed:
            return
        try:
            derived = row_bytes(rows)
        except (ValueError, KeyError, TypeError, AttributeError):
            self._fail("holds an entry that no reading copy can be derived from", None)
            return
        if self._take(len(derived)) == derived:
            return
        self._held = self._taken + self._held
        for row in rows:
            if not self._must_be(row_bytes([row]), row[0]):
                return

    def end(self) -> None:
        """There must be nothing more."""
        if not self._failed and self._take(1):
            self._fail("goes on behind the last entry", None)

    def _must_be(self, data: bytes, index: int | None) -> bool:
        if self._take(len(data)) == data:
            return True
        self._fail("does not say what the entry says" if index is not None else "does not begin with its header", index)
        return False

    def _take(self, length: int) -> bytes:
        held = [self._held]
        size = len(self._held)
        try:
            while size < length and (chunk := next(self._chunks, b"")):
                held.append(chunk)
                size += len(chunk)
        except PartBroken as error:
            self._fail(error.problem, None)
        data = b"".join(held)
        self._taken, self._held = data[:length], data[length:]
        return self._taken

    def _fail(self, problem: str, index: int | None) -> None:
        if not self._failed:
            self._failed = True
            self._report.add(Kind.ALTERED, f"{bundle.READING_COPY} {problem}", index=index, part=bundle.READING_COPY)


def _check_filters(rows: list[tuple[int, bytes]], filters: dict[str, str], report: Report) -> None:
    """Check that every entry is one that was asked for."""
    for index, content in rows:
        try:
            entry = json.loads(content)
            fits = _fits(entry, filters)
        except (ValueError, KeyError, TypeError):
            fits = False
        if not fits:
            report.add(Kind.ALTERED, f"the filters do not ask for entry {index}", part=bundle.MANIFEST)
            return


def _fits(entry: dict[str, Any], filters: dict[str, str]) -> bool:
    kind, colon, identity = filters.get("target", "").partition(":")
    target, actor = entry["target"], entry["actor"]
    return (
        (not kind or target["kind"] == kind)
        and (not colon or target["id"] == identity)
        and filters.get("actor", "") in ("", f"{actor['kind']}:{actor['id']}")
        and filters.get("action", "") in ("", entry["action"])
        and filters.get("since", "") <= entry["at"]
        and (not filters.get("until") or entry["at"] < filters["until"])
    )
