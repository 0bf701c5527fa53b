"""The manifest of an export, read strictly and compared with what the signed checkpoint says. Pure."""

from hashlib import sha256
from typing import Any

from compliance.ledger import bundle
from compliance.ledger.findings import Kind, Report
from compliance.ledger.merkle import EMPTY_ROOT
from compliance.ledger.note import CheckpointText, NoteRefused, decode_hash, encode_hash

_WORDS = {
    "checkpoint",
    "entries",
    "filters",
    "format",
    "held",
    "left_out",
    "members",
    "origin",
    "range_proof",
    "statement",
    "version",
}


class ManifestRefused(ValueError):
    """The manifest cannot be read, or is not the one that was written."""

    def __init__(self, part: str, problem: str) -> None:
        super().__init__(problem)
        self.part = part


def read_manifest(data: bytes, digest_line: bytes) -> dict[str, Any]:
    """Return the manifest once its digest and its shape are right. Raises `ManifestRefused`."""
    if len(digest_line) != 64 + 2 + len(bundle.MANIFEST) + 1 or not digest_line.endswith(f"  {bundle.MANIFEST}\n".encode()):
        raise ManifestRefused(bundle.MANIFEST_DIGEST, "it is not a line as `sha256sum` writes it")
    if digest_line[:64] != sha256(data).hexdigest().encode():
        raise ManifestRefused(bundle.MANIFEST, f"its digest is not the one in {bundle.MANIFEST_DIGEST}")
    try:
        value = bundle.read_json(data)
    except bundle.NotJson as error:
        raise ManifestRefused(bundle.MANIFEST, str(error)) from None
    problem = _shape_problem(value)
    if problem:
        raise ManifestRefused(bundle.MANIFEST, problem)
    result: dict[str, Any] = value
    return result


def check_manifest(manifest: dict[str, Any], checkpoint: CheckpointText, names: frozenset[str], report: Report) -> None:
    """Compare what the manifest says with the signed checkpoint and with the members that are there."""

    def fault(problem: str) -> None:
        report.add(Kind.ALTERED, problem, part=bundle.MANIFEST)

    counted, filters = manifest["entries"], manifest["filters"]
    filtered = filters is not None
    covered = counted["to_index"] + 1
    if manifest["origin"] != checkpoint.origin:
        fault("it is of another log than the checkpoint")
    if manifest["checkpoint"] != {"root": encode_hash(checkpoint.root), "size": checkpoint.size}:
        fault("it names another checkpoint than the signed one")
    if covered > checkpoint.size or counted["count"] + manifest["left_out"] != covered:
        fault("its counts do not add up to the range that it covers")
    if not filtered and (manifest["left_out"] or manifest["statement"]):
        fault("it says that something was left out, and no filter")
    if filtered and f" {manifest['left_out']} entries " not in manifest["statement"]:
        fault("its statement is not about what was left out")
    first, last = counted["first_index"], counted["last_index"]
    if not filtered and (first, last) != (0, counted["to_index"]):
        fault("its first and last index are not those of the range")
    if filtered and counted["count"] and not (bundle.is_count(first) and bundle.is_count(last) and first <= last < covered):
        fault("its first and last index are not in the range")
    _check_members(manifest, names, filtered=filtered, fault=fault)


def _check_members(manifest: dict[str, Any], names: frozenset[str], *, filtered: bool, fault: Any) -> None:
    count = manifest["entries"]["count"]
    tree = bundle.PROOFS if filtered else bundle.LEAVES
    expected = {*bundle.REQUIRED, tree}
    members = manifest["members"]
    if bundle.READING_COPY in members:
        expected.add(bundle.READING_COPY)
    if names - {bundle.NAMES} != expected:
        odd = sorted((names - {bundle.NAMES}) ^ expected)
        fault(f"`{odd[0]}` is {'there' if odd[0] in names else 'not there'}, against what the manifest says")
    entries = members.get(bundle.ENTRIES, {})
    if set(members) != {*bundle.DIGESTED, bundle.ENTRIES, tree} | (expected & {bundle.READING_COPY}):
        fault("it does not list the members that it must")
    elif set(entries) != {"bytes", "records", "rfc6962"} or entries["records"] != count or members[tree] != {"records": count}:
        fault("its members have other numbers of records than it counts entries")
    elif count == 0 and entries["rfc6962"] != encode_hash(EMPTY_ROOT):
        fault("it names a hash of nothing that is not one")


def _shape_problem(value: Any) -> str:
    """Return what is wrong with a manifest's shape, or nothing."""
    if not isinstance(value, dict) or set(value) != _WORDS:
        return "it does not have the members of a manifest"
    if value["format"] != bundle.FORMAT:
        return "it is not an audit export's"
    if value["version"] != bundle.VERSION:
        return f"it is of version {value['version']!r}, and this program reads version {bundle.VERSION}"
    counted, filters = value["entries"], value["filters"]
    if not isinstance(counted, dict) or set(counted) != {"count", "first_index", "last_index", "to_index"}:
        return "it does not count its entries"
    if not all(map(bundle.is_count, (counted["count"], counted["to_index"], value["left_out"]))):
        return "its counts are no numbers"
    if not isinstance(value["members"], dict) or not all(isinstance(one, dict) for one in value["members"].values()):
        return "it does not list its members"
    if not isinstance(value["statement"], str) or not isinstance(value["origin"], str):
        return "its texts are no texts"
    if filters is not None and not _are_filters(filters):
        return "its filters are none that an export has"
    held = value["held"]
    if not isinstance(held, dict) or not all(map(_is_path, held.values())):
        return "its proofs for checkpoints held are no paths"
    if (value["range_proof"] is None) != (filters is not None) or not _is_path(value["range_proof"] or []):
        return "its proof for the range is no path"
    return ""


def _are_filters(value: object) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and set(value) <= set(bundle.FILTER_WORDS)
        and all(isinstance(text, str) and text for text in value.values())
    )


def _is_path(value: object) -> bool:
    if not isinstance(value, list) or len(value) > 2 * 64:
        return False
    try:
        for one in value:
            decode_hash(one)
    except (NoteRefused, TypeError):
        return False
    return True
