"""Names as written that mean nobody yet: which wait, what waits under them, and which known names they are like.

A name waits where some evidence under it has no meaning: no assignment for its source, or for any, was in effect when its run ended.
A name that was said to mean nobody has a meaning, and does not wait.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from evaluations.importers.likeness import KnownNames, Likeness
from evaluations.models import AliasAssignment, Evidence, Subject, SubjectVersion, SubjectVersionMember

MOST_ANSWERED = 1_000

# As in `evaluations.selectors.evidence`: what gives a piece of evidence its meaning under a name.
_MEANT = """
    SELECT FROM evaluations_aliasassignment a
    WHERE a.name_as_written = {name} AND (a.source_id = e.source_id OR a.source_id IS NULL)
      AND (a.effective_from IS NULL OR a.effective_from <= coalesce(e.run_ended_at, e.published_at, e.recorded_at))
"""
# Whom evidence is about, and who else answered: while either is unknown, it counts for nobody. `place` tells the names of one piece of
# evidence apart, so that (evidence, place) is a name's own number.
_WAITING = f"""
WITH waiting AS (
    SELECT e.id, e.source_id, e.recorded_at, e.subject_as_written AS name, 0 AS place FROM evaluations_evidence e
    WHERE (%(name)s::text IS NULL OR e.subject_as_written = %(name)s)
      AND NOT EXISTS ({_MEANT.format(name="e.subject_as_written")})
    UNION ALL
    SELECT e.id, e.source_id, e.recorded_at, answered.name, answered.place
    FROM evaluations_evidence e CROSS JOIN unnest(e.answered_as_written) WITH ORDINALITY AS answered(name, place)
    WHERE e.answered_as_written <> '{{}}' AND answered.name <> e.subject_as_written
      AND (%(name)s::text IS NULL OR (e.answered_as_written @> ARRAY[%(name)s]::varchar[] AND answered.name = %(name)s))
      AND NOT EXISTS ({_MEANT.format(name="answered.name")})
), named AS (
    SELECT name, min(id * {MOST_ANSWERED} + least(place, {MOST_ANSWERED - 1})) AS number, count(DISTINCT id) AS evidence,
        count(*) FILTER (WHERE place = 0) AS asked, array_agg(DISTINCT source_id) AS sources,
        min(recorded_at) AS first_seen_at, max(recorded_at) AS last_seen_at, max(id) AS newest_id
    FROM waiting GROUP BY name
)
"""  # noqa: S608 - constants of this module alone
_LIST = f"""{_WAITING}
SELECT n.number, n.name, n.evidence, n.asked,
    (SELECT array_agg(s.key ORDER BY s.key) FROM evaluations_source s WHERE s.id = ANY(n.sources)),
    n.first_seen_at, n.last_seen_at, e.uid
FROM named n JOIN evaluations_evidence e ON e.id = n.newest_id
"""  # noqa: S608 - likewise
_COUNT = f"{_WAITING} SELECT count(*) FROM named"  # noqa: S608 - likewise
_HELD = f"""
SELECT e.subject_as_written, s.key, count(*),
    sum((SELECT count(*) FROM evaluations_observation o WHERE o.evidence_id = e.id)),
    bool_or(EXISTS ({_MEANT.format(name="e.subject_as_written")}))
FROM evaluations_evidence e JOIN evaluations_source s ON s.id = e.source_id
WHERE e.document_id = ANY(%(documents)s) AND NOT EXISTS (
    SELECT FROM (
        SELECT a.subject_version_id FROM evaluations_aliasassignment a
        WHERE a.name_as_written = e.subject_as_written AND (a.source_id = e.source_id OR a.source_id IS NULL)
          AND (a.effective_from IS NULL OR a.effective_from <= coalesce(e.run_ended_at, e.published_at, e.recorded_at))
        ORDER BY a.source_id NULLS LAST, a.effective_from DESC NULLS LAST, a.id DESC LIMIT 1
    ) meaning WHERE meaning.subject_version_id IS NOT NULL
)
GROUP BY 1, 2 ORDER BY 1, 2 LIMIT %(limit)s
"""  # noqa: S608 - likewise


class WaitingName(NamedTuple):
    """A name that waits. `number` is its own; of its `evidence`, `asked` are about it, and in the rest it only answered."""

    number: int
    name: str
    evidence: int
    asked: int
    sources: tuple[str, ...]
    first_seen_at: datetime
    last_seen_at: datetime
    newest: UUID


class HeldName(NamedTuple):
    """A name in a document under which evidence counts for nobody: nobody has said what it means, or it was said to mean nobody."""

    name: str
    source: str
    evidence: int
    observations: int
    withdrawn: bool


class Suggestion(NamedTuple):
    """What a waiting name may mean: the version that a known name means now, and how alike the two are."""

    version: SubjectVersion
    likeness: Likeness


class WaitingNames:
    """The names that wait, as the pages of the API ask for them: ordered by `number`, from one on, so many."""

    def __init__(self, where: str = "", values: Sequence[Any] = (), order: str = "number DESC") -> None:
        self._where, self._values, self._order = where, tuple(values), order

    def order_by(self, key: str) -> "WaitingNames":
        """Return the names in rising order of their number, or falling for `-number`."""
        return WaitingNames(self._where, self._values, "number DESC" if key.startswith("-") else "number")

    def filter(self, *, number__gt: int | None = None, number__lt: int | None = None) -> "WaitingNames":
        """Return those whose number is above, or below, another."""
        sign, number = (">", number__gt) if number__gt is not None else ("<", number__lt)
        return WaitingNames(f"WHERE n.number {sign} %(edge)s", [number], self._order)

    def count(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute(_COUNT, {"name": None})
            row = cursor.fetchone()
        return int(row[0]) if row else 0

    def __getitem__(self, part: slice) -> list[WaitingName]:
        limit = "" if part.stop is None else f" LIMIT {int(part.stop) - int(part.start or 0)} OFFSET {int(part.start or 0)}"
        edge = self._values[0] if self._values else None
        return _waiting(f"{self._where} ORDER BY n.{self._order}{limit}", name=None, edge=edge)


def find_waiting_names() -> WaitingNames:
    """Return the names that wait, newest first."""
    return WaitingNames()


def get_waiting_name(name: str) -> WaitingName | None:
    """Return what waits under a name, or None."""
    return next(iter(_waiting("", name=name)), None)


def _waiting(tail: str, *, name: str | None, edge: int | None = None) -> list[WaitingName]:
    with connection.cursor() as cursor:
        cursor.execute(_LIST + tail, {"name": name, "edge": edge})
        return [WaitingName._make((*row[:4], tuple(row[4] or ()), *row[5:])) for row in cursor.fetchall()]


def held_in(document_ids: Iterable[int], *, limit: int = 1_000) -> list[HeldName]:
    """Return the names in these documents under which evidence counts for nobody, by name and source, as it stands now."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD, {"documents": list(document_ids), "limit": limit})
        return [HeldName(name, source, count, int(seen), withdrawn) for name, source, count, seen, withdrawn in cursor.fetchall()]


def suggestions_for(names: Iterable[str], *, close: bool = True) -> dict[str, list[Suggestion]]:
    """Return, by name, what it may mean, nearest first. `close` compares letter by letter too: for a few names, not for a page.

    Known are names that mean a version in any source, and the keys of subjects.
    """
    meanings = _known_meanings()
    known = KnownNames(meanings)
    found: dict[str, list[Suggestion]] = {}
    for name in names:
        own = [Suggestion(meanings[name], Likeness(name, "same_letters", ()))] if name in meanings else []
        found[name] = own + [Suggestion(meanings[each.known], each) for each in known.like(name, close=close)]
    return found


def versions_touched(name: str, target: SubjectVersion | None = None) -> set[int]:
    """Return the ids of the subject versions whose evidence may read otherwise once a name means `target`.

    Whatever the name has meant, what names mean beside which it answered, the target, and the agents that reach any of them.
    """
    beside = Evidence.objects.exclude(answered_as_written=[]).filter(answered_as_written__contains=[name])
    names = {name, *beside.values_list("subject_as_written", flat=True).distinct()}
    meant = AliasAssignment.objects.filter(name_as_written__in=names, subject_version__isnull=False)
    ids = {pk for pk in meant.values_list("subject_version_id", flat=True).distinct() if pk is not None}
    if target is not None:
        ids.add(target.pk)
    return ids | set(SubjectVersionMember.objects.filter(member_id__in=ids).values_list("version_id", flat=True))


def _known_meanings() -> dict[str, SubjectVersion]:
    versions = {version.pk: version for version in SubjectVersion.objects.select_related("subject").order_by("pk")}
    newest = {version.subject_id: version for version in versions.values()}
    subjects = {subject.key: newest[subject.pk] for subject in Subject.objects.filter(pk__in=newest)}
    # The newest statement about a name stands, whatever its source: this only suggests.
    said = AliasAssignment.objects.order_by("id").values_list("name_as_written", "subject_version_id")
    names = {name: versions[pk] for name, pk in dict(said).items() if pk in versions}
    return {**subjects, **names}
