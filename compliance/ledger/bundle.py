"""The format of an export: a zip of these members, in this order. Shared by the exporter and the verifier; pure.

- `entries.jsonl` — one entry a line: exactly the bytes that were hashed, then a newline. Line n is entry n, unless filtered
- `leaves.bin` — unfiltered: the leaf hash of every entry, 32 bytes each; they hash to the checkpoint and say *which* one is wrong
- `proofs.jsonl` — filtered, instead: one line an entry: `index`, `leaf`, `path`
- `entries.csv` — format `csv`: a reading copy, derived from `entries.jsonl` and nothing else
- `checkpoint` — the signed note (`c2sp.org/tlog-checkpoint`)
- `keys.jsonl` — every key of the log in order: its announcement, and the checkpoint right behind it, both proved
- `README.txt` — how to verify
- `manifest.json` — counts, first and last index, digests of the members, filters and what they left out
- `manifest.sha256` — the manifest's digest, as `sha256sum -c` reads it
- `names.json` — printed names of people with the salts of their commitments. Under no digest: taking it out, or a name out of it,
  breaks nothing; a name that was changed is found by its commitment

No member holds the time of the export, and every date in the zip is the same: the same range is the same bytes.
"""

import json
import re
from typing import Any

FORMAT = "writegate-audit-export"
VERSION = 1

ENTRIES = "entries.jsonl"
LEAVES = "leaves.bin"
PROOFS = "proofs.jsonl"
READING_COPY = "entries.csv"
CHECKPOINT = "checkpoint"
KEYS = "keys.jsonl"
README = "README.txt"
MANIFEST = "manifest.json"
MANIFEST_DIGEST = "manifest.sha256"
NAMES = "names.json"

MEMBERS = (ENTRIES, LEAVES, PROOFS, READING_COPY, CHECKPOINT, KEYS, README, MANIFEST, MANIFEST_DIGEST, NAMES)
REQUIRED = frozenset({ENTRIES, CHECKPOINT, KEYS, README, MANIFEST, MANIFEST_DIGEST})
DIGESTED = (CHECKPOINT, KEYS, README)
"""Members whose SHA-256 the manifest holds; the long ones hash to the checkpoint instead."""
SMALL_LIMIT = {
    CHECKPOINT: 64 * 2**10,
    KEYS: 64 * 2**20,
    README: 64 * 2**10,
    MANIFEST: 2**20,
    MANIFEST_DIGEST: 2**10,
    NAMES: 64 * 2**20,
}
"""Bytes that a short member has at most."""

FILTER_WORDS = ("action", "actor", "since", "target", "until")

# A person as an actor, in the one spelling that canonical bytes have. Inside a text the quotes would be escaped.
NAMED_PERSON = re.compile(rb'"id":"([^"\\]{1,200})","kind":"person","name_commitment":"(sha256:[0-9a-f]{64})"')

README_TEXT = """\
An export of a Writegate audit trail
====================================

entries.jsonl holds one entry a line, byte for byte as it was logged. The file `checkpoint` is the log's signed statement of how
many entries there are and what they hash to (c2sp.org/tlog-checkpoint; the tree is that of RFC 6962, SHA-256).

To verify it offline, with the public key of the log that you were given by another road than this file:

    pip install writegate
    writegate verify EXPORT.zip --key 'NAME+ID+KEY'
    writegate verify EXPORT.zip --key 'NAME+ID+KEY' --against OLD-CHECKPOINT

The second form proves too that nothing before the checkpoint you hold was rewritten. Keep the file `checkpoint` for the next
time.

By hand: SHA-256 over a zero byte and a line's bytes without its newline is a leaf hash; the leaf hashes stand in leaves.bin, or
with their paths in proofs.jsonl where only a part was exported. manifest.json says what was asked for and what was left out.
names.json holds people's names; the entries themselves hold only a salted digest of each: SHA-256 over salt and name.
"""


class NotJson(ValueError):
    """Text that is not the JSON which it should be."""


def write_json(value: Any) -> bytes:
    """Return the one spelling of a member's JSON: keys sorted, no white space, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def read_json(data: bytes) -> Any:
    """Return the value of JSON in that one spelling. Raises `NotJson` for everything else, duplicate names included."""
    try:
        value = json.loads(data)
        again = write_json(value)
    except (ValueError, RecursionError, UnicodeEncodeError):
        raise NotJson("it cannot be read as JSON") from None
    if again != data:
        raise NotJson("it is not written as this format writes it")
    return value


def is_count(value: object) -> bool:
    """True for a whole number from 0 on."""
    return type(value) is int and value >= 0
