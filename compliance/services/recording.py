"""The second of a decision's two statements: rows are locked and compared, then answers, bodies and entries are inserted at once."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections

from compliance.deciding.codes import Code
from compliance.deciding.conformance import MARK
from compliance.deciding.facts import FORMAT, Value, plain_bytes
from compliance.deciding.judge import Judgement
from compliance.ledger.encoding import VERSION
from compliance.ledger.merkle import leaf_hash
from compliance.selectors.deciding.read import PART, Asked, Caller, Seen
from evaluations.kernel.actor import person
from evaluations.kernel.actor import service as service_actor
from evaluations.kernel.canonical import digest_of, timestamp
from evaluations.kernel.identity import time_ordered_uuids
from evaluations.kernel.prepared import (
    Given,
    Row,
    Running,
    bigints,
    bools,
    byteas,
    fetch_prepared,
    texts,
    transaction,
    uuids,
    xids,
)

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


Meanwhile = Callable[[Sequence[Decided]], None]


class Teller(NamedTuple):
    """Whom an answer is told, and how the record says so."""

    token: UUID
    actor: str
    actor_value: Mapping[str, Any]
    observed: bool
    request_id: str


class Answer(NamedTuple):
    """One question, what is answered, and whom. `body` is what is kept of it, canonical, under `digest`."""

    asked: Asked
    judgement: Judgement
    teller: Teller
    body: bytes
    digest: str

    @classmethod
    def to(cls, asked: Asked, judgement: Judgement, teller: Teller) -> "Answer":
        """Return the answer to a question."""
        body = plain_bytes({"facts": asked.facts, "format": FORMAT, "judgement": judgement.core()})
        return cls(asked, judgement, teller, body, digest_of(body))

    def replaced_by(self, code: Code) -> "Answer":
        """Return the denial that is given in its place."""
        return Answer.to(self.asked, self.judgement.replaced_by(code), self.teller)


class _Moved(Exception):
    """A row that answers rest on has moved: none of them is recorded."""


class _Made(NamedTuple):
    answer: Answer
    decided: Decided
    uid: UUID
    entry: UUID
    codes: list[str]
    content: bytes


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
    """Records answers, all of one instant. A patient one waits for a grant that is being moved; else that counts as moved.

    `meanwhile` is given the answers of a long batch part by part, before they are recorded.
    """

    def __init__(self, at: datetime, *, patient: bool = True, meanwhile: Meanwhile | None = None) -> None:
        self._at = at
        self._stamp = timestamp(at)
        self._patient = patient
        self._meanwhile = meanwhile
        self._prepared: list[_Made] = []

    def prepare(self, answers: Sequence[Answer]) -> None:
        """Make what is to be recorded of a part of the answers, while the database looks the next part up."""
        made = self._make(answers)
        self._prepared += made
        if self._meanwhile is not None:
            self._meanwhile([item.decided for item in made])

    def record(self, answers: Sequence[Answer], *, held: bool) -> list[Decided] | None:
        """Insert all answers, or none and return None: `held` locks what an allow rests on, and something of it has moved."""
        made = self._made_of(answers)
        seen = _rested_on(answers) if held else []
        bodies = {answer.digest: answer.body for answer in answers}
        # In somebody else's transaction what is remembered proves nothing, and a mistake could not be tried again.
        known = set() if connections[DEFAULT_DB_ALIAS].in_atomic_block else {digest for digest in bodies if digest in _stored}
        # In order of their digests, as rows are locked in order of their ids: two who insert the same ones wait for each other once.
        fresh = {digest: bodies[digest] for digest in sorted(bodies.keys() - known)}
        if not self._is_recorded(made, seen, fresh):
            return None
        _remember(fresh)
        return [item.decided for item in made]

    def _made_of(self, answers: Sequence[Answer]) -> list[_Made]:
        """Return what was prepared, where it was prepared of these very answers; else make it now."""
        made = self._prepared
        if len(made) == len(answers) and all(item.answer is answer for item, answer in zip(made, answers, strict=True)):
            return made
        return self._make(answers)

    def _is_recorded(self, made: Sequence[_Made], seen: Sequence[Seen], fresh: Mapping[str, bytes]) -> bool:
        if len(made) <= PART or connections[DEFAULT_DB_ALIAS].in_atomic_block:
            # In somebody else's transaction a part could not be taken back.
            return _is_done(fetch_prepared(_DECIDE, self._given(seen, fresh, made)))
        try:
            with transaction():
                self._record_in_parts(made, seen, fresh)
        except _Moved:
            return False
        return True

    def _record_in_parts(self, made: Sequence[_Made], seen: Sequence[Seen], fresh: Mapping[str, bytes]) -> None:
        """Of a long batch the database takes one part while the next is written: all bodies first, in their order. Raises `_Moved`."""
        # What is locked stays as it is from the first statement on; what is only compared may move until the last.
        locked, compared = [row for row in seen if row.table == "grant"], [row for row in seen if row.table != "grant"]
        running = Running(_DECIDE, self._given(locked, fresh, ()))
        for start in range(0, len(made), PART):
            given = self._given(compared if start + PART >= len(made) else (), {}, made[start : start + PART])
            if not _is_done(running.rows()):
                raise _Moved
            running = Running(_DECIDE, given)
        if not _is_done(running.rows()):
            raise _Moved

    def _given(self, seen: Sequence[Seen], fresh: Mapping[str, bytes], made: Sequence[_Made]) -> tuple[Given, ...]:
        """Return what the statement takes: rows that must not have moved, bodies that are new, and what is inserted."""
        return (
            *_held(seen),
            texts(fresh),
            byteas(fresh.values()),
            *_columns(made),
            self._stamp,
            _TRUE if any(MARK in item.answer.asked.facts for item in made) else _FALSE,
            _TRUE if self._patient else _FALSE,
        )

    def _make(self, answers: Sequence[Answer]) -> list[_Made]:
        ids = iter(time_ordered_uuids(self._at, 2 * len(answers)))
        return [self._entered(answer, next(ids), next(ids)) for answer in answers]

    def _entered(self, answer: Answer, uid: UUID, entry: UUID) -> _Made:
        asked, judgement, teller = answer[:3]
        codes = _codes(judgement)
        question = asked.question
        # As `compliance.ledger.encoding` lays an entry out; a test holds the bytes against it.
        content = plain_bytes(
            {
                "action": ACTION,
                "actor": teller.actor_value,
                "at": self._stamp,
                "digests": {"decision": answer.digest},
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
        decided = Decided(judgement, asked.facts, self._at, uid, entry, leaf_hash(content))
        return _Made(answer, decided, uid, entry, codes, content)


def _is_done(rows: Sequence[Row]) -> bool:
    ((done,),) = rows
    return done == _TRUE.encode()


def _held(seen: Sequence[Seen]) -> list[bytes]:
    """Return the rows' ids and versions, table by table, each in order of its ids."""
    given = []
    for table in _HELD:
        rows = sorted((row.id, int(row.version)) for row in seen if row.table == table)
        given += [bigints(pk for pk, _ in rows), xids(version for _, version in rows)]
    return given


def _columns(made: Sequence[_Made]) -> tuple[bytes, ...]:
    """Return what is inserted, as arrays in the order that the statement takes them."""
    asked = [item.answer.asked for item in made]
    questions = [one.question for one in asked]
    tellers = [item.answer.teller for item in made]
    return (
        uuids(item.uid.bytes for item in made),
        bools(item.answer.judgement.allowed for item in made),
        bools(teller.observed for teller in tellers),
        texts(",".join(item.codes) for item in made),
        texts(_column(question.subject) for question in questions),
        texts(_column(question.action) for question in questions),
        texts(_column(question.system) for question in questions),
        bigints(one.subject_version for one in asked),
        bigints(one.system for one in asked),
        bigints(_grant_of(item.answer) for item in made),
        texts(item.answer.digest for item in made),
        uuids(item.entry.bytes for item in made),
        byteas(item.content for item in made),
        texts(digest_of(item.content) for item in made),
        uuids(teller.token.bytes for teller in tellers),
        texts(teller.request_id for teller in tellers),
        texts(teller.actor for teller in tellers),
    )


def _codes(judgement: Judgement) -> list[str]:
    """Return the codes of an answer in their order, each once."""
    return list(dict.fromkeys(reason.code.value for reason in judgement.reasons))


def _rested_on(answers: Sequence[Answer]) -> list[Seen]:
    """Return the rows that allows rest on, each once: of grants only those that were used."""
    found: dict[Seen, None] = {}
    for asked, judgement, *_ in answers:
        if judgement.allowed:
            used = {asked.grants[uid] for uid in judgement.grants}
            found.update((row, None) for row in asked.seen if row.table != "grant" or row.id in used)
    return list(found)


def _grant_of(answer: Answer) -> int | None:
    """Return the grant that an answer rests on, or that it was refused by: the first of several."""
    asked, judgement = answer[:2]
    if judgement.grants:
        return asked.grants[judgement.grants[0]]
    named = next((reason.detail["grant"] for reason in judgement.reasons if "grant" in reason.detail), None)
    return asked.grants.get(named) if named is not None else None


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
