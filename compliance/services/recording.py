"""The second of a decision's two statements: rows are locked and compared, then answers, bodies and entries are inserted at once."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
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
from evaluations.kernel.actor import person
from evaluations.kernel.actor import service as service_actor
from evaluations.kernel.canonical import digest_of, timestamp
from evaluations.kernel.identity import time_ordered_uuid
from evaluations.kernel.prepared import Given, bigints, bools, byteas, fetch_prepared, texts, uuids, xids

ACTION = "decision.made"
BODIES_REMEMBERED = 8_192

_HELD = ("grant", "subject", "system", "standing")
# The arrays that the statement takes, in order: rows with their versions, new bodies, and a column each of what is inserted.
_ARRAYS = (
    *("bigint", "xid", "bigint", "xid", "bigint", "xid", "bigint", "xid"),
    *("text", "bytea"),
    *("uuid", "boolean", "boolean", "text", "text", "text", "text", "bigint", "bigint", "bigint", "text"),
    *("uuid", "bytea", "text", "uuid", "text", "text"),
)
_GIVEN = [*(f"{name}[]" for name in _ARRAYS), "timestamptz", "boolean", "boolean"]
_DECIDE = f"SELECT writegate_decide({', '.join(f'${place}::{name}' for place, name in enumerate(_GIVEN, 1))})"
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


class Teller(NamedTuple):
    """Whom an answer is told, and how the record says so."""

    token: UUID
    actor: str
    actor_value: Mapping[str, Any]
    observed: bool
    request_id: str


class Answer(NamedTuple):
    """One question, what is answered, and whom."""

    asked: Asked
    judgement: Judgement
    teller: Teller


class _Made(NamedTuple):
    asked: Asked
    judgement: Judgement
    teller: Teller
    codes: list[str]
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


def teller_of(caller: Caller, *, observed: bool, request_id: str) -> Teller:
    """Return whom a caller's questions are answered to."""
    token, actor, value = _actor_of(caller.id, caller.person, caller.name_commitment)
    return Teller(token, actor, value, observed, request_id)


@lru_cache(maxsize=1_024)
def _actor_of(token: str, owner: str, name_commitment: str) -> tuple[UUID, str, Mapping[str, Any]]:
    actor = service_actor(token, on_behalf_of=person(owner))
    value = actor.as_value()
    if name_commitment:
        value["on_behalf_of"]["name_commitment"] = name_commitment
    return UUID(token), actor.reference, value


class Recorder:
    """Records answers, all of one instant. A patient one waits for a grant that is being moved; else that counts as moved."""

    def __init__(self, at: datetime, *, patient: bool = True) -> None:
        self._at = at
        self._stamp = timestamp(at)
        self._patient = patient

    def record(self, answers: Sequence[Answer], *, held: bool) -> list[Decided] | None:
        """Insert all answers, or none and return None: `held` locks what an allow rests on, and something of it has moved."""
        made = [self._make(answer) for answer in answers]
        seen = _rested_on(made) if held else []
        bodies = {item.body_digest: item.body for item in made}
        # In somebody else's transaction what is remembered proves nothing, and a mistake could not be tried again.
        known = set() if connections[DEFAULT_DB_ALIAS].in_atomic_block else {digest for digest in bodies if digest in _stored}
        # In order of their digests, as rows are locked in order of their ids: two who insert the same ones wait for each other once.
        fresh = sorted(bodies.keys() - known)
        given: tuple[Given, ...] = (
            *_held(seen),
            texts(fresh),
            byteas(bodies[digest] for digest in fresh),
            *_columns(made),
            self._stamp,
            _TRUE if any(MARK in item.asked.facts for item in made) else _FALSE,
            _TRUE if self._patient else _FALSE,
        )
        ((done,),) = fetch_prepared(_DECIDE, given)
        if done != _TRUE.encode():
            return None
        _remember(fresh)
        return [
            Decided(item.judgement, item.asked.facts, self._at, item.uid, item.entry, leaf_hash(item.content)) for item in made
        ]

    def _make(self, answer: Answer) -> _Made:
        asked, judgement, teller = answer
        uid, entry = time_ordered_uuid(self._at), time_ordered_uuid(self._at)
        body = plain_bytes({"facts": asked.facts, "format": FORMAT, "judgement": judgement.core()})
        body_digest = digest_of(body)
        codes = _codes(judgement)
        question = asked.question
        # As `compliance.ledger.encoding` lays an entry out; a test holds the bytes against it.
        content = plain_bytes(
            {
                "action": ACTION,
                "actor": teller.actor_value,
                "at": self._stamp,
                "digests": {"decision": body_digest},
                "id": str(entry),
                "new": {
                    "action": question.action,
                    "allowed": judgement.allowed,
                    "codes": codes,
                    "observed": teller.observed,
                    "resource": question.system,
                    "subject": question.subject,
                },
                "old": None,
                "request_id": teller.request_id,
                "target": {"id": str(uid), "kind": "decision"},
                "version": VERSION,
            }
        )
        return _Made(asked, judgement, teller, codes, uid, entry, content, body, body_digest)


def _held(seen: Sequence[Seen]) -> list[bytes]:
    """Return the rows' ids and versions, table by table, each in order of its ids."""
    given = []
    for table in _HELD:
        rows = sorted((row.id, int(row.version)) for row in seen if row.table == table)
        given += [bigints(pk for pk, _ in rows), xids(version for _, version in rows)]
    return given


def _columns(made: Sequence[_Made]) -> tuple[bytes, ...]:
    """Return what is inserted, as arrays in the order that the statement takes them."""
    questions = [item.asked.question for item in made]
    return (
        uuids(item.uid.bytes for item in made),
        bools(item.judgement.allowed for item in made),
        bools(item.teller.observed for item in made),
        texts(",".join(item.codes) for item in made),
        texts(_column(question.subject) for question in questions),
        texts(_column(question.action) for question in questions),
        texts(_column(question.system) for question in questions),
        bigints(item.asked.subject_version for item in made),
        bigints(item.asked.system for item in made),
        bigints(_grant_of(item) for item in made),
        texts(item.body_digest for item in made),
        uuids(item.entry.bytes for item in made),
        byteas(item.content for item in made),
        texts(digest_of(item.content) for item in made),
        uuids(item.teller.token.bytes for item in made),
        texts(item.teller.request_id for item in made),
        texts(item.teller.actor for item in made),
    )


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


def _remember(digests: Iterable[str]) -> None:
    if connections[DEFAULT_DB_ALIAS].in_atomic_block:
        # Somebody else's transaction may yet be rolled back.
        return
    with _stored_lock:
        for digest in digests:
            _stored[digest] = None
        while len(_stored) > BODIES_REMEMBERED:
            _stored.popitem(last=False)
