"""The trail as people search it: by part of a name, by the words that occur, by time; and how the log stands."""

import uuid
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import connection
from django.db.models import Count, Min, Q, QuerySet

from compliance.models import Checkpoint, LedgerEntry, LedgerPending, PersonName, ServiceToken
from compliance.selectors.ledger import last_checkpoint
from evaluations.kernel.actor import ActorKind
from evaluations.kernel.canonical import DIGEST_PREFIX

MOST_NAMED = 50
COUNTED_PENDING = 10_000
PENDING_MAY_BE_OLD = timedelta(seconds=60)
"""The sealer runs every second; an entry that waits longer than this waits for a sealer that does not run."""
CHECKPOINT_MAY_BE_OLD = timedelta(hours=2)
"""The hourly beat is sealed at once, so a log is never silent for longer than this while its services run."""
_MOST_INDEX = 2**63

# A walk from word to word along an index: as many steps as there are words, however many entries.
_WORDS = """
WITH RECURSIVE found(word) AS (
    (SELECT {column} FROM compliance_ledgerentry ORDER BY {column} LIMIT 1)
    UNION ALL
    SELECT (SELECT {column} FROM compliance_ledgerentry WHERE {column} > found.word ORDER BY {column} LIMIT 1)
    FROM found WHERE found.word IS NOT NULL
)
SELECT word FROM found WHERE word IS NOT NULL
"""


class TrailWanted(NamedTuple):
    """Which entries a reader asks for; empty parts ask for nothing. `since` is inclusive, `until` is not."""

    text: str = ""
    actor: str = ""
    action: str = ""
    target_kind: str = ""
    target_id: str = ""
    since: datetime | None = None
    until: datetime | None = None


class LedgerHead(NamedTuple):
    """How the log stands: its last checkpoint, and what waits for an index (counted up to `COUNTED_PENDING`)."""

    checkpoint: Checkpoint | None
    pending: int
    oldest_pending_at: datetime | None

    def is_late(self, at: datetime) -> bool:
        """True when an entry has waited for its index for too long."""
        return self.oldest_pending_at is not None and at - self.oldest_pending_at > PENDING_MAY_BE_OLD

    def is_silent(self, at: datetime) -> bool:
        """True when the log has not been signed for longer than its hourly beat explains."""
        return self.checkpoint is not None and at - self.checkpoint.signed_at > CHECKPOINT_MAY_BE_OLD


def read_ledger_head() -> LedgerHead:
    """Return how the log stands, by two statements however large it is."""
    waiting = LedgerPending.objects.order_by("entry_id")[: COUNTED_PENDING + 1]
    counted = waiting.aggregate(number=Count("pk"), oldest=Min("entry__recorded_at"))
    return LedgerHead(last_checkpoint(), counted["number"], counted["oldest"])


def known_actions() -> list[str]:
    """Return every action that occurs in the trail, in order."""
    return _words("action")


def known_target_kinds() -> list[str]:
    """Return every kind of target that occurs in the trail, in order."""
    return _words("target_kind")


def actors_called(text: str) -> list[str]:
    """Return the actors, as `kind:id`, that a reader means: the one written so, or all whose printed name has this part.

    A name that was erased is found by its id alone. At most `MOST_NAMED` people and as many tokens, the newest first.
    """
    if ":" in text:
        return [text]
    people = PersonName.objects.filter(name__icontains=text).order_by("-id").values_list("person_id", flat=True)[:MOST_NAMED]
    tokens = ServiceToken.objects.filter(name__icontains=text).order_by("-created_at").values_list("pk", flat=True)[:MOST_NAMED]
    named = {f"{ActorKind.PERSON.value}:{found}": None for found in people}
    named |= {f"{ActorKind.SERVICE.value}:{found}": None for found in tokens}
    named[f"{ActorKind.SYSTEM_JOB.value}:{text}"] = None
    return list(named)


def narrowed(rows: QuerySet[LedgerEntry], wanted: TrailWanted) -> QuerySet[LedgerEntry]:
    """Return the entries among `rows` that are asked for. Every part is looked up by an index."""
    if wanted.text:
        rows = rows.filter(_meant_by(wanted.text))
    if wanted.actor:
        rows = rows.filter(actor__in=actors_called(wanted.actor))
    if wanted.action:
        rows = rows.filter(action=wanted.action)
    if wanted.target_kind:
        rows = rows.filter(target_kind=wanted.target_kind)
    if wanted.target_id:
        rows = rows.filter(target_id=wanted.target_id)
        if not wanted.target_kind:
            # The index begins with the kind.
            rows = rows.filter(target_kind__in=known_target_kinds())
    if wanted.since is not None:
        rows = rows.filter(recorded_at__gte=wanted.since)
    if wanted.until is not None:
        rows = rows.filter(recorded_at__lt=wanted.until)
    return rows


def _meant_by(text: str) -> Q:
    """Return the condition for one line of free text: an index, an identifier, `kind:id`, part of an action or of a name."""
    if text.isascii() and text.isdigit() and int(text) < _MOST_INDEX:
        return Q(leaf__index=int(text))
    about = Q(target_kind__in=known_target_kinds(), target_id=text)
    kind, colon, identity = text.partition(":")
    if colon and not text.startswith(DIGEST_PREFIX):
        return about | Q(actor=text) | Q(target_kind=kind, target_id=identity)
    try:
        return about | Q(uid=uuid.UUID(text))
    except ValueError:
        part = text.lower().replace(" ", "_")
        named = Q(actor__in=actors_called(text))
        return about | named | Q(action__in=[action for action in known_actions() if part in action])


def _words(column: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_WORDS.format(column=column))
        return [row[0] for row in cursor.fetchall()]


def names_of(commitments: Collection[str]) -> dict[str, PersonName]:
    """Return, by commitment, the names that are still kept."""
    return {row.commitment: row for row in PersonName.objects.filter(commitment__in=commitments)} if commitments else {}
