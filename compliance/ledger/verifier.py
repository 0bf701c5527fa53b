"""Verifies exports and proof files offline: standard library and `cryptography`, no Django, no database, no trust in their maker.

Raises `Unreadable` where there is nothing to judge; everything else becomes a finding. The checks, in order: the signed
checkpoint (and which keys may sign it), the manifest, every line against the tree, the tree against the checkpoint, the
checkpoint held from an earlier day, the reading copy, the names.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, BinaryIO

from compliance.ledger import bundle
from compliance.ledger.findings import Kind, Report, Unreadable
from compliance.ledger.lines import check_lines
from compliance.ledger.manifest import ManifestRefused, check_manifest, read_manifest
from compliance.ledger.merkle import ProofRefused, check_consistency
from compliance.ledger.names import check_names
from compliance.ledger.note import (
    CheckpointText,
    NoteRefused,
    SignatureRefused,
    VerifierKey,
    decode_hash,
    encode_hash,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from compliance.ledger.parts import PartBroken, Parts, ZipParts, read_small
from compliance.ledger.proof import check_proof, read_proof
from compliance.ledger.trust import ChainRefused, follow_keys, read_announcements


def verify_export(stream: BinaryIO, *, keys: Sequence[VerifierKey] = (), against: bytes | None = None) -> Report:
    """Verify the export in a zip. `keys` are the log's keys as you were given them; `against` is a checkpoint you hold.

    Without keys the export's own first key is taken at its word, and the report says so. Raises `Unreadable`.
    """
    return verify_parts(ZipParts(stream), keys=keys, against=against)


def verify_parts(parts: Parts, *, keys: Sequence[VerifierKey] = (), against: bytes | None = None) -> Report:
    """Verify an export by its members. Raises `Unreadable`."""
    absent = bundle.REQUIRED - parts.names()
    if absent:
        raise Unreadable(f"this is no export: it has no `{sorted(absent)[0]}`")
    report = Report()
    try:
        manifest = read_manifest(read_small(parts, bundle.MANIFEST), read_small(parts, bundle.MANIFEST_DIGEST))
    except ManifestRefused as error:
        report.add(Kind.ALTERED, str(error), part=error.part)
        return report
    except PartBroken as error:
        report.add(Kind.ALTERED, error.problem, part=error.part)
        return report
    small = _small_members(parts, manifest, report)
    if not report.is_ok():
        return report
    checkpoint, trusted = _checkpoint(small, keys, report)
    if checkpoint is None:
        return report
    held = _held(against, trusted, checkpoint, report)
    check_manifest(manifest, checkpoint, parts.names(), report)
    if not report.is_ok():
        return report
    lines = check_lines(parts, manifest, checkpoint, held, report)
    if lines is not None:
        _check_held(held, lines.roots, manifest, checkpoint, report)
        if bundle.NAMES in parts.names():
            check_names(parts, lines.named, report)
    _say(report, manifest, checkpoint, held)
    return report


def verify_proof_file(data: bytes, *, keys: Sequence[VerifierKey], entry: bytes | None = None) -> Report:
    """Verify a `.tlog-proof`, of the entry given or of the one that it carries. Raises `Unreadable`."""
    report = Report()
    try:
        proof = read_proof(data)
        parse_checkpoint(parse_note(proof.checkpoint).text)
    except NoteRefused as error:
        raise Unreadable(f"this is no proof file: {error}") from None
    content = entry if entry is not None else proof.extra
    if content is None:
        raise Unreadable("the proof carries no entry: give it with --entry")
    try:
        checkpoint, signed_by = check_proof(proof, content, keys)
    except SignatureRefused as error:
        report.add(Kind.BAD_SIGNATURE, str(error), part=bundle.CHECKPOINT)
        return report
    except ProofRefused as error:
        report.add(Kind.ALTERED, f"the entry is not what was logged there, or its path was changed: {error}", index=proof.index)
        return report
    report.facts["entry"] = f"{proof.index}, of {checkpoint.size}"
    report.facts["log"] = checkpoint.origin
    report.facts["root"] = encode_hash(checkpoint.root)
    report.facts["signed by"] = ", ".join(map(str, signed_by))
    if entry is None:
        report.facts["content"] = content.decode(errors="replace")
    return report


def _small_members(parts: Parts, manifest: dict[str, Any], report: Report) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in bundle.DIGESTED:
        try:
            data = found[name] = read_small(parts, name)
        except PartBroken as error:
            report.add(Kind.ALTERED, error.problem, part=name)
            continue
        if manifest["members"].get(name) != {"sha256": sha256(data).hexdigest()}:
            report.add(Kind.ALTERED, "it is not what the manifest was written for", part=name)
    return found


def _checkpoint(
    small: dict[str, bytes], keys: Sequence[VerifierKey], report: Report
) -> tuple[CheckpointText | None, list[VerifierKey]]:
    """Return the export's checkpoint once a trusted key's signature on it is known to be right, and the keys that are trusted."""
    try:
        note = parse_note(small[bundle.CHECKPOINT])
        checkpoint = parse_checkpoint(note.text)
    except NoteRefused as error:
        report.add(Kind.ALTERED, str(error), part=bundle.CHECKPOINT)
        return None, []
    try:
        chain = read_announcements(small[bundle.KEYS])
        given = list(keys) or [chain[0].key]
        trusted = follow_keys(chain, given, checkpoint)
    except ChainRefused as error:
        report.add(Kind.FORKED, str(error), part=bundle.KEYS)
        return None, []
    try:
        signed_by = verify_note(note, trusted)
    except SignatureRefused as error:
        report.add(Kind.BAD_SIGNATURE, str(error), part=bundle.CHECKPOINT)
        return None, []
    if any(key.name != checkpoint.origin for key in signed_by):
        problem = f"the checkpoint is of `{checkpoint.origin}`, and another's key signed it"
        report.add(Kind.BAD_SIGNATURE, problem, part=bundle.CHECKPOINT)
        return None, []
    report.facts["signed by"] = ", ".join(map(str, signed_by))
    if not keys:
        report.facts["trust"] = f"the key was taken from the export itself: compare {given[0]} with the one you were given"
    elif not set(signed_by) & set(keys):
        report.facts["trust"] = "the signing key was announced in the log under a key that you gave"
    return checkpoint, trusted


def _held(
    against: bytes | None, trusted: Sequence[VerifierKey], checkpoint: CheckpointText, report: Report
) -> CheckpointText | None:
    """Return the checkpoint that the caller holds. Raises `Unreadable` where that file is none."""
    if against is None:
        return None
    try:
        note = parse_note(against)
        held = parse_checkpoint(note.text)
    except NoteRefused as error:
        raise Unreadable(f"the checkpoint to compare with cannot be read: {error}") from None
    try:
        verify_note(note, trusted)
    except SignatureRefused as error:
        report.add(Kind.BAD_SIGNATURE, str(error), part="the checkpoint held")
        return held
    if held.origin != checkpoint.origin:
        report.add(Kind.FORKED, f"the checkpoint held is of another log, `{held.origin}`")
    elif held.size > checkpoint.size:
        said = f"the export's checkpoint covers {checkpoint.size} entries, and yours {held.size}: ask for an export made since"
        report.add(Kind.OLDER, said)
    elif held.size == checkpoint.size and held.root != checkpoint.root:
        report.add(Kind.FORKED, f"two histories of {held.size} entries were signed: this is not the one you hold")
    return held


def _check_held(
    held: CheckpointText | None,
    roots: dict[int, bytes],
    manifest: dict[str, Any],
    checkpoint: CheckpointText,
    report: Report,
) -> None:
    """Check that the tree continues the checkpoint held: by the leaves themselves, else by a proof that was asked for."""
    if held is None or held.size >= checkpoint.size:
        return
    if held.size in roots:
        if roots[held.size] != held.root:
            report.add(Kind.FORKED, f"the first {held.size} entries are not those of the checkpoint you hold: it was rewritten")
        return
    path = manifest["held"].get(str(held.size))
    if path is None:
        report.add(
            Kind.UNPROVED,
            f"this export does not show whether it continues your checkpoint of {held.size}: "
            f"ask for one without filters and up to index {held.size - 1} at least, or with --consistent-with {held.size}",
        )
        return
    try:
        check_consistency(held.size, checkpoint.size, [decode_hash(one) for one in path], held.root, checkpoint.root)
    except (ProofRefused, NoteRefused) as error:
        report.add(Kind.FORKED, f"it does not continue the checkpoint of {held.size} that you hold: {error}")


def _say(report: Report, manifest: dict[str, Any], checkpoint: CheckpointText, held: CheckpointText | None) -> None:
    counted = manifest["entries"]
    extent = f"{counted['count']} entries"
    if counted["count"]:
        extent += f", {counted['first_index']} to {counted['last_index']}"
    facts = {"log": checkpoint.origin, "entries": extent, "checkpoint": f"{checkpoint.size}, root {encode_hash(checkpoint.root)}"}
    if manifest["filters"] is not None:
        facts["filters"] = ", ".join(f"{word} {value}" for word, value in manifest["filters"].items())
        facts["left out"] = f"{manifest['left_out']} entries up to {counted['to_index']}; each one here is proved by itself"
    if held is not None and report.is_ok():
        facts["held"] = f"your checkpoint of {held.size} is continued"
    report.facts = facts | report.facts


def parse_keys(texts: Iterable[str]) -> list[VerifierKey]:
    """Return the keys that texts state, one a line. Raises `Unreadable`."""
    try:
        return [VerifierKey.parse(line) for text in texts for line in text.splitlines() if line.strip()]
    except NoteRefused as error:
        raise Unreadable(f"the key cannot be read: {error}") from None
