"""The ledger's writing end: `append` is the sink behind `evaluations.kernel.audit.record`, and nobody else's business.

Entries and queue rows appear in the caller's transaction, with no lock: writers never wait for each other. Indexes are given by
the sealer a moment later.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from compliance.ledger.encoding import entry_bytes
from compliance.models import PersonName
from evaluations.kernel.actor import Actor, ActorKind
from evaluations.kernel.audit import Event, NoTransaction
from evaluations.kernel.bulk import execute_with_arrays
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.identity import time_ordered_uuid, time_ordered_uuids

BATCH = 1_000

# A function of the database's own (migration 0005): its plans are kept for the session, and it is the same one statement.
_APPEND_ONE = "SELECT writegate_append(%s, %s, %s, %s, %s, %s, %s, %s)"
# One statement for entries and queue rows: whatever is visible in the one table is visible in the other. Long arrays travel in
# binary form (%b).
_INSERT = """
WITH entry AS (
    INSERT INTO compliance_ledgerentry (uid, content, digest, action, actor, target_kind, target_id, recorded_at)
    SELECT uid, content, digest, action, actor, target_kind, target_id, %s
    FROM unnest(%s::uuid[], %b::bytea[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[])
        WITH ORDINALITY AS given(uid, content, digest, action, actor, target_kind, target_id, place)
    ORDER BY place
    RETURNING id
)
INSERT INTO compliance_ledgerpending (entry_id) SELECT id FROM entry
"""


def append(events: Sequence[Event]) -> None:
    """Insert an entry and a queue row for each event, in the present transaction and in the given order."""
    # Looked up once: the name `connection` stands for a search of its own at each use.
    database = connections[DEFAULT_DB_ALIAS]
    if not database.in_atomic_block:
        raise NoTransaction("ledger entries belong to the transaction of the change they tell of")
    commitments = _commitments(events)
    if len(events) == 1:
        _insert_one(database, events[0], commitments)
        return
    for start in range(0, len(events), BATCH):
        _insert(events[start : start + BATCH], commitments)


def _insert_one(database: BaseDatabaseWrapper, event: Event, commitments: dict[str, str]) -> None:
    """Insert a single entry: what nearly every transaction does, so it is kept short."""
    at = now()
    uid = str(time_ordered_uuid(at))
    content = _content(event, uid, at, commitments)
    values = (uid, content, digest_of(content), event.action, event.actor.reference, *event.target, at)
    # The driver's plain cursor: bytes travel as bytes, and no statement is put together here.
    with database.wrap_database_errors, psycopg.Cursor(database.connection) as cursor:
        cursor.execute(_APPEND_ONE, values)


def _insert(events: Sequence[Event], commitments: dict[str, str]) -> None:
    at = now()
    uids = list(map(str, time_ordered_uuids(at, len(events))))
    contents = [_content(event, uid, at, commitments) for uid, event in zip(uids, events, strict=True)]
    execute_with_arrays(
        _INSERT,
        [
            at,
            uids,
            contents,
            [digest_of(content) for content in contents],
            [event.action for event in events],
            [event.actor.reference for event in events],
            [event.target[0] for event in events],
            [event.target[1] for event in events],
        ],
    )


def _content(event: Event, uid: str, at: datetime, commitments: dict[str, str]) -> bytes:
    return entry_bytes(
        entry_id=uid,
        at=at,
        action=event.action,
        actor=_actor_value(event.actor, commitments),
        target=event.target,
        old=event.old,
        new=event.new,
        digests=event.digests,
        request_id=event.request_id,
    )


def _actor_value(actor: Actor, commitments: dict[str, str]) -> dict[str, Any]:
    value = actor.as_value()
    if actor.kind is ActorKind.PERSON and actor.id in commitments:
        value["name_commitment"] = commitments[actor.id]
    if actor.on_behalf_of is not None:
        value["on_behalf_of"] = _actor_value(actor.on_behalf_of, commitments)
    return value


def _commitments(events: Iterable[Event]) -> dict[str, str]:
    people: set[str] = set()
    for event in events:
        actor: Actor | None = event.actor
        while actor is not None:
            if actor.kind is ActorKind.PERSON:
                people.add(actor.id)
            actor = actor.on_behalf_of
    if not people:
        return {}
    named = PersonName.objects.filter(person_id__in=people).order_by("id").values_list("person_id", "commitment")
    return {str(person_id): commitment for person_id, commitment in named}
