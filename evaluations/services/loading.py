"""The loading dock of an import: pairs from an importer go into the tables in batches, by COPY, in one transaction.

Memory does not grow with the number of observations: a batch is sent and forgotten, and only the identity of each evidence is kept.
"""

import csv
import io
import json
import uuid
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg
from django.db import connection

from evaluations.importers.base import EvidenceDraft, Importer, ObservationDraft
from evaluations.importers.fields import MAX_NOTE_LENGTH
from evaluations.importers.names import WRITE_ASCII
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest as canonical_digest
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.names import foreign
from evaluations.models import BenchmarkVersion, Document, Evidence, Source
from evaluations.selectors.registry import current_metrics

BATCH, EVIDENCE_BATCH = 20_000, 5_000
"""So many observations, and so many pieces of evidence, are sent at once."""
LARGE = 10_000
"""From so many observations on, the planner is told that the tables have grown."""
FUTURE_TOLERANCE = timedelta(minutes=5)
MAX_TEXT = {"subject_as_written": 300, "harness": 200, "supersedes": 80}
MAX_VALUE_TEXT = 60

_COPY = """
COPY evaluations_observation (evidence_id, ordinal, benchmark_version_id, metric_id, slice, value, value_as_written,
    k, n, repeats, errored, unscored, judge, locator)
FROM STDIN WITH (FORMAT csv, FORCE_NOT_NULL (slice, value_as_written, locator))
"""
_INSERT_EVIDENCE = """
INSERT INTO evaluations_evidence (uid, digest, document_id, locator, importer, importer_version, source_id, subject_as_written,
    answered_as_written, about, provenance, attested, run_status, harness, run_ended_at, published_at, supersedes, note,
    submitted_by, recorded_at)
SELECT e.uid, e.digest, %(document)s, e.locator, %(importer)s, %(version)s, e.source_id, e.subject_as_written, e.answered_as_written,
    e.about, e.provenance, %(attested)s, e.run_status, e.harness, e.run_ended_at, e.published_at, e.supersedes, e.note,
    %(submitted_by)s, %(recorded_at)s
FROM ROWS FROM (jsonb_to_recordset(%(rows)s::jsonb) AS (uid uuid, digest text, locator text, source_id bigint, subject_as_written text,
    answered_as_written text[], about text, provenance text, run_status text, harness text, run_ended_at timestamptz,
    published_at timestamptz, supersedes text, note text)) WITH ORDINALITY AS e ORDER BY e.ordinality
ON CONFLICT (digest) DO NOTHING
RETURNING digest, id
"""


class Loaded(NamedTuple):
    """Counts of what was recorded, and the names as written that it was about."""

    evidence: int
    observations: int
    repeated: int
    names: frozenset[str]


class _Slot:
    """Where the observations of one evidence go: its row once it is sent, or nowhere when the same evidence was recorded before."""

    __slots__ = ("digest", "draft", "evidence_id", "ordinal", "uid")

    def __init__(self, draft: EvidenceDraft, digest: str) -> None:
        self.draft = draft
        self.digest = digest
        # The uid follows from the digest, so that the same document has the same evidence ids in every installation.
        self.uid = _uid_of(digest)
        self.evidence_id: int | None = None
        self.ordinal = 0


class EvidenceLoader:
    """Loads the pairs of one document. Used once, inside an open service transaction."""

    def __init__(
        self, *, actor: Actor, document: Document, importer: Importer, request_id: str = "", attestation: str = ""
    ) -> None:
        self._actor = actor
        self._document = document
        self._importer = importer
        self._request_id = request_id
        self._attestation = attestation
        self._moment = now()
        self._slots: dict[EvidenceDraft, _Slot] = {}
        self._unsent: list[_Slot] = []
        self._sources = {source.key: source.pk for source in Source.objects.all()}
        self._metrics = {key: metric.pk for key, metric in current_metrics().items()}
        self._versions = {
            (key, version): pk for key, version, pk in BenchmarkVersion.objects.values_list("benchmark__key", "version", "pk")
        }
        self._observations = 0
        self._copying: Future[None] | None = None

    def load(self, pairs: Iterable[tuple[EvidenceDraft, ObservationDraft]]) -> Loaded:
        """Store every pair. Raises `InputRefused` and whatever the importer raises; the transaction undoes what was sent.

        The database takes a batch while the next is read, so whoever reads uses no connection meanwhile.
        """
        # However it ends, nothing is under way on the connection behind this block.
        with ThreadPoolExecutor(1, "copy") as beside:
            self._send_all(pairs, beside)
            self._settle()
        fresh = [slot for slot in self._slots.values() if slot.evidence_id is not None]
        self._record(fresh)
        if self._observations >= LARGE:
            with connection.cursor() as cursor:
                cursor.execute("SELECT writegate_refresh_statistics()")
        return Loaded(
            evidence=len(fresh),
            observations=self._observations,
            repeated=len(self._slots) - len(fresh),
            names=frozenset(slot.draft.subject_as_written for slot in fresh),
        )

    def _send_all(self, pairs: Iterable[tuple[EvidenceDraft, ObservationDraft]], beside: ThreadPoolExecutor) -> None:
        batch: list[tuple[Any, ...]] = []
        last_draft: EvidenceDraft | None = None
        slot: _Slot | None = None
        for draft, observation in pairs:
            if draft is not last_draft or slot is None:
                slot = self._slots.get(draft) or self._open_slot(draft)
                last_draft = draft
            slot.ordinal += 1
            batch.append(self._row(slot, observation))
            if len(batch) >= BATCH or len(self._unsent) >= EVIDENCE_BATCH:
                self._send(batch, beside)
                batch = []
        self._send(batch, beside)

    def _open_slot(self, draft: EvidenceDraft) -> _Slot:
        self._check(draft)
        digest = canonical_digest(
            {
                "document": self._document.digest,
                "importer": f"{self._importer.NAME}/{self._importer.VERSION}",
                # Left out where there is none, so that evidence of old has the digest it always had.
                **({"attestation": self._attestation} if self._attestation else {}),
                **draft._asdict(),
            }
        )
        slot = self._slots[draft] = _Slot(draft, digest)
        self._unsent.append(slot)
        return slot

    def _check(self, draft: EvidenceDraft) -> None:
        problems = [
            Problem(f"is longer than {limit} characters", file=self._document.file_name, field=name)
            for name, limit in MAX_TEXT.items()
            if len(getattr(draft, name)) > limit
        ]
        problems += [
            Problem("holds a NUL character", file=self._document.file_name, field=name)
            for name, held in draft._asdict().items()
            if (isinstance(held, str) and "\0" in held) or (isinstance(held, tuple) and "\0" in "".join(held))
        ]
        # Every importer refuses these with their place; this holds for all of them, whatever they forget.
        problems += [
            Problem(f"`{name}` holds {odd}", file=self._document.file_name, field=field, code="look_alike", hint=WRITE_ASCII)
            for field, names in (("subject_as_written", (draft.subject_as_written,)), ("answered_by", draft.answered_as_written))
            for name in names
            if (odd := foreign(name))
        ]
        latest = self._moment + FUTURE_TOLERANCE
        for name in ("run_ended_at", "published_at"):
            moment: datetime | None = getattr(draft, name)
            if moment is not None and moment > latest:
                problems.append(
                    Problem(
                        f"`{moment.isoformat()}` lies in the future",
                        file=self._document.file_name,
                        field=name,
                        code="future_date",
                        hint=f"evidence about {draft.subject_as_written} cannot be dated later than now",
                    )
                )
        if draft.supersedes and not Evidence.objects.filter(uid=draft.supersedes).exists():
            problems.append(
                Problem(f"`{draft.supersedes}` is no known evidence", file=self._document.file_name, field="supersedes")
            )
        if problems:
            raise InputRefused(problems)

    def _row(self, slot: _Slot, seen: ObservationDraft) -> tuple[Any, ...]:
        if len(seen.value_as_written) > MAX_VALUE_TEXT:
            raise InputRefused(
                [Problem(f"is longer than {MAX_VALUE_TEXT} characters", file=self._document.file_name, field="as_written")]
            )
        return (
            slot,
            slot.ordinal,
            self._versions[seen.benchmark, seen.benchmark_version],
            self._metrics[seen.metric],
            seen.slice,
            seen.value,
            seen.value_as_written,
            seen.k,
            seen.n,
            seen.repeats,
            seen.errored,
            seen.unscored,
            None if seen.judge is None else json.dumps(seen.judge),
            seen.locator[:300],
        )

    def _send(self, batch: list[tuple[Any, ...]], beside: ThreadPoolExecutor) -> None:
        self._settle()
        self._send_evidence()
        rows = [(slot.evidence_id, *rest) for slot, *rest in batch if slot.evidence_id is not None]
        if not rows:
            return
        # The csv module writes a batch as fast as it is read; an empty field is null, save where the statement says otherwise.
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        self._copying = beside.submit(_copy, connection.connection, text.getvalue())
        self._observations += len(rows)

    def _settle(self) -> None:
        """Wait for what the database was given last, and raise what it said against it."""
        copying, self._copying = self._copying, None
        if copying is not None:
            with connection.wrap_database_errors:
                copying.result()

    def _send_evidence(self) -> None:
        """Insert the pieces of evidence that came since; what was recorded before gets no row."""
        unsent, self._unsent = {slot.digest: slot for slot in self._unsent}, []
        if not unsent:
            return
        given: dict[str, Any] = {
            "document": self._document.pk,
            "importer": self._importer.NAME,
            "version": self._importer.VERSION,
            "attested": bool(self._attestation),
            "submitted_by": self._actor.reference,
            "recorded_at": self._moment,
            "rows": json.dumps([self._evidence(slot) for slot in unsent.values()]),
        }
        with connection.cursor() as cursor:
            cursor.execute(_INSERT_EVIDENCE, given)
            for digest, pk in cursor.fetchall():
                unsent[digest].evidence_id = pk

    def _evidence(self, slot: _Slot) -> dict[str, Any]:
        draft = slot.draft
        return {
            "uid": slot.uid,
            "digest": slot.digest,
            "locator": draft.locator[:300],
            "source_id": self._sources[draft.source],
            "subject_as_written": draft.subject_as_written,
            "answered_as_written": list(draft.answered_as_written),
            "about": draft.about,
            "provenance": draft.provenance,
            "run_status": draft.run_status,
            "harness": draft.harness,
            "run_ended_at": None if draft.run_ended_at is None else draft.run_ended_at.isoformat(),
            "published_at": None if draft.published_at is None else draft.published_at.isoformat(),
            "supersedes": draft.supersedes,
            "note": "; ".join(each for each in (draft.note, self._attestation) if each)[:MAX_NOTE_LENGTH],
        }

    def _record(self, fresh: list[_Slot]) -> None:
        audit.record(
            *(
                audit.Event(
                    action="evidence.recorded",
                    actor=self._actor,
                    target=("evidence", slot.uid),
                    new={
                        "subject_as_written": slot.draft.subject_as_written,
                        "source": slot.draft.source,
                        "provenance": slot.draft.provenance,
                        "observations": slot.ordinal,
                    },
                    digests={"document": self._document.digest},
                    request_id=self._request_id,
                )
                for slot in fresh
            )
        )


def _copy(driver: psycopg.Connection[Any], text: str) -> None:
    with psycopg.Cursor(driver) as cursor, cursor.copy(_COPY) as copy:
        copy.write(text)


def _uid_of(digest: str) -> str:
    """Return the UUID (RFC 9562, version 8) made of a digest's first bits; `uuid.UUID` of Python 3.11 knows versions to 5 only."""
    bits = int(digest.removeprefix("sha256:")[:32], 16)
    return str(uuid.UUID(int=bits & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0x2 << 62))
