"""The second of a decision's two statements: rows are locked and compared, then answers, bodies and entries are inserted at once."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime
from threading import Lock
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections

from compliance.deciding.conformance import MARK
from compliance.deciding.facts import FORMAT, Value, plain_bytes
from compliance.deciding.judge import Judgement
from compliance.ledger.encoding import VERSION
from compliance.ledger.merkle import leaf_hash
from compliance.selectors.deciding.read import Asked, Caller, Seen
from evaluations.kernel.actor import Actor, person
from evaluations.kernel.actor import service as service_actor
from evaluations.kernel.canonical import digest_of, timestamp
from evaluations.kernel.identity import time_ordered_uuid
from evaluations.kernel.prepared import fetch_prepared

ACTION = "decision.made"
BODIES_REMEMBERED = 8_192

_HELD = ("grant", "subject", "system", "standing")
_DECIDE = """
SELECT writegate_decide($1::bigint[], $2::xid[], $3::bigint[], $4::xid[], $5::bigint[], $6::xid[], $7::bigint[], $8::xid[],
    nullif($9::text, '')::json, $10::json, $11::int, $12::boolean, $13::uuid, $14::text, $15::text, $16::timestamptz, $17::boolean)
"""
_TRUE, _FALSE = "t", "f"


class Decided(NamedTuple):
    """One answer. `uid` and `entry` are None where it could not be recorded; such an answer is always no.

    `leaf_hash` is the hash under which the entry will stand in the log; `facts` are what it was read from.
    """

    judgement: Judgement
    facts: Value
    at: datetime
    uid: UUID | None
    entry: UUID | None
    leaf_hash: bytes


class _Made(NamedTuple):
    asked: Asked
    judgement: Judgement
    uid: UUID
    entry: UUID
    content: bytes
    body: bytes
    body_digest: str


# Bodies that are stored, by digest: they never change, and need not be sent again.
_stored: "OrderedDict[str, None]" = OrderedDict()
_stored_lock = Lock()


def forget_bodies() -> None:
    """Forget which bodies are stored: another database may stand behind the address now."""
    with _stored_lock:
        _stored.clear()


class Recorder:
    """Records the answers to one caller's questions."""

    def __init__(self, caller: Caller, *, observed: bool, request_id: str, at: datetime) -> None:
        self._token = caller.id
        self._observed = observed
        self._request_id = request_id
        self._at = at
        self._stamp = timestamp(at)
        self._actor: Actor = service_actor(caller.id, on_behalf_of=person(caller.person))
        self._actor_value = self._actor.as_value()
        if caller.name_commitment:
            self._actor_value["on_behalf_of"]["name_commitment"] = caller.name_commitment

    def record(self, judged: Sequence[tuple[Asked, Judgement]], *, held: bool) -> list[Decided] | None:
        """Insert all answers, or none and return None: `held` locks what an allow rests on, and something of it has moved."""
        made = [self._make(asked, judgement) for asked, judgement in judged]
        seen = _rested_on(made) if held else []
        bodies = {item.body_digest: item for item in made}
        # In somebody else's transaction what is remembered proves nothing, and a mistake could not be tried again.
        known = set() if connections[DEFAULT_DB_ALIAS].in_atomic_block else {digest for digest in bodies if digest in _stored}
        given = (
            *_held(seen),
            _bodies_json([item for digest, item in bodies.items() if digest not in known]),
            plain_bytes([_row(item) for item in made]).decode(),
            str(len(made)),
            _TRUE if self._observed else _FALSE,
            self._token,
            self._request_id,
            self._actor.reference,
            self._stamp,
            _TRUE if any(MARK in item.asked.facts for item in made) else _FALSE,
        )
        ((done,),) = fetch_prepared(_DECIDE, given)
        if done != _TRUE.encode():
            return None
        _remember(bodies.keys() - known)
        return [
            Decided(item.judgement, item.asked.facts, self._at, item.uid, item.entry, leaf_hash(item.content)) for item in made
        ]

    def _make(self, asked: Asked, judgement: Judgement) -> _Made:
        uid, entry = time_ordered_uuid(self._at), time_ordered_uuid(self._at)
        body = plain_bytes({"facts": asked.facts, "format": FORMAT, "judgement": judgement.core()})
        body_digest = digest_of(body)
        question = asked.question
        # As `compliance.ledger.encoding` lays an entry out; a test holds the bytes against it.
        content = plain_bytes(
            {
                "action": ACTION,
                "actor": self._actor_value,
                "at": self._stamp,
                "digests": {"decision": body_digest},
                "id": str(entry),
                "new": {
                    "action": question.action,
                    "allowed": judgement.allowed,
                    "codes": _codes(judgement),
                    "observed": self._observed,
                    "resource": question.system,
                    "subject": question.subject,
                },
                "old": None,
                "request_id": self._request_id,
                "target": {"id": str(uid), "kind": "decision"},
                "version": VERSION,
            }
        )
        return _Made(asked, judgement, uid, entry, content, body, body_digest)


def _held(seen: Sequence[Seen]) -> list[str]:
    """Return the rows' ids and versions, table by table in order of their ids, as the database writes arrays of numbers."""
    given = []
    for table in _HELD:
        rows = sorted((row.id, row.version) for row in seen if row.table == table)
        given += [_array(str(pk) for pk, _ in rows), _array(version for _, version in rows)]
    return given


def _array(numbers: Iterable[str]) -> str:
    return f"{{{','.join(numbers)}}}"


def _bodies_json(made: Sequence[_Made]) -> str:
    if not made:
        return ""
    return plain_bytes([{"content": item.body.decode(), "digest": item.body_digest} for item in made]).decode()


def _row(item: _Made) -> Value:
    question, judgement = item.asked.question, item.judgement
    return {
        "action": _column(question.action),
        "allowed": judgement.allowed,
        "body": item.body_digest,
        "codes": ",".join(_codes(judgement)),
        "content": item.content.decode(),
        "digest": digest_of(item.content),
        "entry": str(item.entry),
        "grant": _grant_of(item),
        "resource": _column(question.system),
        "subject": _column(question.subject),
        "subject_version": item.asked.subject_version,
        "system": item.asked.system,
        "uid": str(item.uid),
    }


def _codes(judgement: Judgement) -> list[str]:
    """Return the codes of an answer in their order, each once."""
    return list(dict.fromkeys(reason.code.value for reason in judgement.reasons))


def _rested_on(made: Sequence[_Made]) -> list[Seen]:
    """Return the rows that allows rest on, each once: of grants only those that were used."""
    found: dict[Seen, None] = {}
    for item in made:
        if item.judgement.allowed:
            used = {item.asked.grants[uid] for uid in item.judgement.grants}
            found.update((row, None) for row in item.asked.seen if row.table != "grant" or row.id in used)
    return list(found)


def _grant_of(item: _Made) -> int | None:
    """Return the grant that an answer rests on, or that it was refused by: the first of several."""
    if item.judgement.grants:
        return item.asked.grants[item.judgement.grants[0]]
    named = next((reason.detail["grant"] for reason in item.judgement.reasons if "grant" in reason.detail), None)
    return item.asked.grants.get(named) if named is not None else None


def _column(text: str) -> str:
    """Return text as a column holds it; the body has it as it was asked."""
    return text if "\x00" not in text else text.replace("\x00", "\ufffd")


def _remember(digests: Any) -> None:
    if connections[DEFAULT_DB_ALIAS].in_atomic_block:
        # Somebody else's transaction may yet be rolled back.
        return
    with _stored_lock:
        for digest in digests:
            _stored[digest] = None
        while len(_stored) > BODIES_REMEMBERED:
            _stored.popitem(last=False)
