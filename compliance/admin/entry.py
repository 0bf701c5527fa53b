"""One entry's page: what changed, who did it for whom, what it rests on, where it stands, and how that is proved."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from django.db.models import Model
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from compliance.admin.objects import SIGNING, find_actor, find_digest, find_target
from compliance.ledger.merkle import leaf_hash
from compliance.ledger.note import encode_hash
from compliance.models import Checkpoint, LedgerEntry, LedgerLeaf, PersonName
from compliance.selectors.ledger import checkpoint_covering, signing_keys
from compliance.selectors.trail import names_of
from evaluations.kernel.canonical import DIGEST_PREFIX, digest_of
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Fields,
    Mark,
    Record,
    Section,
    Table,
    Texts,
    anchor,
    chip,
    code,
    instant,
    link,
    readable_json,
    said,
    whole_digest,
    yes_no,
)

PENDING_CHIP = chip(Mark("waits", "stale", "hourglass_top"))
_SEALED = Mark("sealed", "pass", "lock")
_ALTERED = Mark("does not agree", "error", "error")
_ABSENT = object()
_NOT_THERE = mark_safe('<span class="wg-quiet">not there</span>')
NO_PAGE = "no page shows it"


def proof_name(index: int) -> str:
    """Return the name of an entry's proof as a file."""
    return f"entry-{index}.tlog-proof"


def describe_entry(row: LedgerEntry, leaf: LedgerLeaf | None) -> Record:
    """Return what an entry's page shows. `row` comes with its bytes."""
    content = bytes(row.content)
    covering = None if leaf is None else checkpoint_covering(leaf.index)
    sections: list[Section] = [
        *_told(row, content),
        _place(leaf, covering, content),
    ]
    if leaf is not None and covering is not None:
        sections.append(_verifying(leaf.index, covering))
    sections.append(Texts("Content", [("The stored bytes, spread over lines", readable_json(content))]))
    downloads = [] if leaf is None else [("Download the proof", reverse("admin:compliance_ledgerentry_proof", args=[row.pk]))]
    return Record(
        lead=f"{row.action.replace('.', ' ').replace('_', ' ')}: {row.target_kind.replace('_', ' ')} {row.target_id}",
        mark=PENDING_CHIP if leaf is None else chip(_SEALED._replace(word=f"sealed at index {leaf.index}")),
        target=(row.target_kind, row.target_id),
        downloads=downloads,
        sections=sections,
    )


def _told(row: LedgerEntry, content: bytes) -> list[Section]:
    """Return what the bytes tell; where they cannot be read, what the columns beside them repeat."""
    target = find_target(row.target_kind, row.target_id)
    try:
        entry = json.loads(content)
        found: list[Section] = [
            _changes(entry["old"], entry["new"]),
            _people(entry["actor"]),
            _entry(row, target, entry, content),
        ]
        if entry["digests"]:
            found.append(_digests(row, target, entry["digests"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return [_entry(row, target, {"request_id": "not readable"}, content)]
    return found


def _entry(row: LedgerEntry, target: Model | None, entry: Mapping[str, Any], content: bytes) -> Fields:
    agrees = digest_of(content) == row.digest
    return Fields(
        "Entry",
        [
            ("Action", row.action),
            ("Target", _target(row, target)),
            ("Recorded", instant(row.recorded_at)),
            ("Request", said(entry.get("request_id"), empty="none: not by the API")),
            ("Identifier", code(str(row.uid))),
            ("Digest", whole_digest(row.digest)),
            ("Digest of the bytes stored", "agrees" if agrees else chip(_ALTERED)),
        ],
    )


def _target(row: LedgerEntry, target: Model | None) -> Cell:
    words = f"{row.target_kind.replace('_', ' ')} {row.target_id}"
    if row.target_kind in SIGNING:
        return anchor(reverse("admin:compliance_ledgerentry_checkpoint"), words)
    return link(target, words, empty=words)


def _people(actor: Mapping[str, Any]) -> Fields:
    chain = [actor]
    while isinstance(chain[-1].get("on_behalf_of"), Mapping):
        chain.append(chain[-1]["on_behalf_of"])
    names = names_of({one["name_commitment"] for one in chain if one.get("name_commitment")})
    rows: list[tuple[str, Cell]] = []
    for place, one in enumerate(chain):
        reference = ActorReference(f"{one['kind']}:{one['id']}")
        rows.append(("On behalf of" if place else "Actor", reference))
        rows.append(("Page and identifier", link(find_actor(reference), code(str.__str__(reference)), empty=code(reference))))
        commitment = one.get("name_commitment")
        if commitment:
            rows.append(("Commitment to the name", whole_digest(commitment)))
            rows.append(("Name behind the commitment", _committed(names.get(commitment), commitment)))
    if len(chain) == 1:
        rows.append(("On behalf of", "nobody else"))
    rows.append(("Background task", _task(chain)))
    note = "An entry holds no name, only a salted commitment to it: a name can be erased, and every proof still stands."
    return Fields("Who did it", rows, note=note if any(one.get("name_commitment") for one in chain) else "")


def _task(chain: list[Mapping[str, Any]]) -> Cell:
    found = next((str(one["task_id"]) for one in chain if one.get("task_id")), "")
    return code(found) if found else "none"


def _committed(row: PersonName | None, commitment: str) -> Cell:
    if row is None:
        return "erased; the commitment stands"
    again = DIGEST_PREFIX + sha256(bytes(row.salt) + row.name.encode()).hexdigest()
    return f"{row.name}: agrees" if again == commitment else chip(_ALTERED)


def _digests(row: LedgerEntry, target: Model | None, digests: Mapping[str, Any]) -> Table:
    rows: list[list[Cell]] = []
    for name, value in sorted(digests.items()):
        if not isinstance(value, str):
            rows.append([name.replace("_", " "), _plain(value), NO_PAGE])
            continue
        found = find_digest(name, value)
        if found is None and row.target_kind == "verdict":
            # A verdict's own parts: its judgement core and its facts document.
            found = target
        rows.append([name.replace("_", " "), whole_digest(value), link(found, empty=NO_PAGE)])
    return Table("What it rests on", ("What", "Digest", "Leads to"), rows, empty="Nothing is cited.")


def _place(leaf: LedgerLeaf | None, covering: Checkpoint | None, content: bytes) -> Fields:
    if leaf is None:
        waits = "It waits for its index, which follows within seconds: look again in a moment. A proof can be made after that."
        return Fields("Place in the log", [("Index", "none yet"), ("Sealed", waits)])
    stored = bytes(leaf.leaf_hash)
    return Fields(
        "Place in the log",
        [
            ("Index", str(leaf.index)),
            ("Leaf hash", whole_digest(encode_hash(stored))),
            ("Leaf hash of the bytes stored", "agrees" if leaf_hash(content) == stored else chip(_ALTERED)),
            ("Sealed under", _checkpoint(covering.size) if covering else chip(_ALTERED)),
            ("Signed", instant(covering.signed_at) if covering else "no checkpoint covers it"),
        ],
    )


def _checkpoint(size: int) -> SafeString:
    address = reverse("admin:compliance_ledgerentry_checkpoint")
    return anchor(f"{address}?size={size}", f"the checkpoint of {size:,} {'entry' if size == 1 else 'entries'}")


def _verifying(index: int, covering: Checkpoint) -> Texts:
    keys = signing_keys(up_to_size=covering.size)
    key = keys[-1].verifier_key if keys else "KEY"
    note = (
        "The proof holds the entry's bytes, their path up the tree and the signed checkpoint; the command needs no server."
        " Take the key from where you keep it, not from here."
    )
    return Texts("Check it elsewhere", [("Offline", f"writegate verify {proof_name(index)} --key '{key}'")], note=note)


def _changes(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Table:
    """Return what was there before beside what is there after, field by field; one column where there is but one side."""
    before, after = dict(_flat(old or {})), dict(_flat(new or {}))
    if not before:
        rows = [[_word(name), _value(after[name])] for name in sorted(after)]
        return Table("What was recorded", ("Field", "Value"), rows, empty="The entry holds no values.")
    names = sorted({*before, *after})
    # What differs comes first.
    names.sort(key=lambda name: before.get(name, _ABSENT) == after.get(name, _ABSENT))
    return Table(
        "What changed",
        ("Field", "Before", "After", "Differs"),
        [
            [
                _word(name),
                _value(before.get(name, _ABSENT)),
                _value(after.get(name, _ABSENT)),
                yes_no(before.get(name, _ABSENT) != after.get(name, _ABSENT)),
            ]
            for name in names
        ],
        empty="The entry holds no values.",
    )


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _word(name: str) -> Cell:
    return name.replace("_", " ")


def _value(value: Any) -> Cell:
    if value is _ABSENT:
        return _NOT_THERE
    return format_html('<span class="wg-value">{}</span>', _plain(value))


def _plain(value: Any) -> str:
    """Spell a canonical value for a reader: words as they are, nothing as "nothing", lists by commas."""
    if value is None or value in ("", [], {}):
        return "nothing"
    if isinstance(value, bool):
        return yes_no(value)
    if isinstance(value, list) and all(isinstance(one, str | int) for one in value):
        return ", ".join(_plain(one) for one in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
