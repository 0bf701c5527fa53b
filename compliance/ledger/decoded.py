"""An entry as people read it: taken from the bytes that were hashed, with the names that it commits to beside.

The columns of the row only repeat those bytes, for searching. Where both, or the hashes, disagree, `intact` is false: a hint at
once for who reads, and no proof. What proves is the entry's proof file under a checkpoint that was not obtained from here.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from compliance.ledger.merkle import leaf_hash
from compliance.models import LedgerEntry
from compliance.selectors.entries import token_names
from compliance.selectors.trail import names_of
from evaluations.kernel.actor import ActorKind
from evaluations.kernel.canonical import digest_of, timestamp

_MEMBERS = {"action", "actor", "at", "digests", "id", "new", "old", "request_id", "target", "version"}


@dataclass(frozen=True, slots=True)
class Principal:
    """Who acted. `name` is None for a person whose name was erased, or who had none."""

    kind: str
    id: str
    name: str | None
    task_id: str


@dataclass(frozen=True, slots=True)
class TrailEntry:
    """One entry. `on_behalf_of` goes from the one the actor acts for to the one behind everything; `changed` are the members
    of `old` and `new` that differ. `index` and `leaf_hash` are None until it is sealed.
    """

    uid: str
    index: int | None
    leaf_hash: bytes | None
    digest: str
    intact: bool
    at: str
    action: str
    actor: Principal
    on_behalf_of: tuple[Principal, ...]
    target_kind: str
    target_id: str
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None
    changed: tuple[str, ...]
    digests: Mapping[str, Any]
    request_id: str
    content: str


def read_trail(rows: Iterable[LedgerEntry]) -> list[TrailEntry]:
    """Return the entries of rows that come with their leaves. Two queries for names, however many rows."""
    decoded = [(row, _decode(row)) for row in rows]
    chains = [value["actor"] for _, value in decoded]
    principals = [each for chain in chains for each in _chain(chain)]
    kept = names_of({each["name_commitment"] for each in principals if each.get("name_commitment")})
    names = {commitment: row.name for commitment, row in kept.items()}
    tokens = token_names(_token_ids(principals))
    return [_shown(row, value, names, tokens) for row, value in decoded]


def _decode(row: LedgerEntry) -> dict[str, Any]:
    """Return the entry that the bytes hold; from the columns where the bytes hold none, so that a damaged row can be seen."""
    with suppress(ValueError, RecursionError, KeyError, TypeError, AttributeError):
        value = json.loads(bytes(row.content))
        if set(value) == _MEMBERS and all(each["kind"] and each["id"] for each in _chain(value["actor"])):
            return {**value, "target": (value["target"]["kind"], value["target"]["id"]), "readable": True}
    kind, _, identity = row.actor.partition(":")
    return {
        "action": row.action,
        "actor": {"kind": kind, "id": identity},
        "at": timestamp(row.recorded_at),
        "digests": {},
        "id": str(row.uid),
        "new": None,
        "old": None,
        "request_id": "",
        "target": (row.target_kind, row.target_id),
        "readable": False,
    }


def _chain(actor: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    while actor is not None:
        yield actor
        actor = actor.get("on_behalf_of")


def _token_ids(principals: Sequence[Mapping[str, Any]]) -> set[uuid.UUID]:
    found = set()
    for each in principals:
        if each["kind"] == ActorKind.SERVICE:
            with suppress(ValueError):
                found.add(uuid.UUID(each["id"]))
    return found


def _shown(row: LedgerEntry, value: Mapping[str, Any], names: Mapping[str, str], tokens: Mapping[str, str]) -> TrailEntry:
    leaf = getattr(row, "leaf", None)
    content = bytes(row.content)
    actor, *behind = (_principal(each, names, tokens) for each in _chain(value["actor"]))
    old, new = value["old"], value["new"]
    return TrailEntry(
        uid=str(row.uid),
        index=leaf.index if leaf else None,
        leaf_hash=bytes(leaf.leaf_hash) if leaf else None,
        digest=row.digest,
        intact=_is_intact(row, value, content),
        at=value["at"],
        action=value["action"],
        actor=actor,
        on_behalf_of=tuple(behind),
        target_kind=value["target"][0],
        target_id=value["target"][1],
        old=old,
        new=new,
        changed=tuple(sorted(name for name in {*(old or {}), *(new or {})} if _differs(old or {}, new or {}, name))),
        digests=value["digests"],
        request_id=value["request_id"],
        content=content.decode(errors="replace"),
    )


def _differs(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> bool:
    return name not in old or name not in new or old[name] != new[name]


def _principal(actor: Mapping[str, Any], names: Mapping[str, str], tokens: Mapping[str, str]) -> Principal:
    kind, identity = actor["kind"], actor["id"]
    name: str | None = identity
    if kind == ActorKind.PERSON:
        name = names.get(actor.get("name_commitment", ""))
    elif kind == ActorKind.SERVICE:
        name = tokens.get(identity)
    return Principal(kind, identity, name, actor.get("task_id", ""))


def _is_intact(row: LedgerEntry, value: Mapping[str, Any], content: bytes) -> bool:
    leaf = getattr(row, "leaf", None)
    repeated = (str(row.uid), row.action, row.actor, row.target_kind, row.target_id, timestamp(row.recorded_at))
    held = (value["id"], value["action"], f"{value['actor']['kind']}:{value['actor']['id']}", *value["target"], value["at"])
    hashed = digest_of(content) == row.digest and (leaf is None or bytes(leaf.leaf_hash) == leaf_hash(content))
    return bool(value["readable"]) and hashed and repeated == held
