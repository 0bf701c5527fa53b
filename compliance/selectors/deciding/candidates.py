"""Who and what a search looks at, before it is judged: named by grants that are recorded as active, and by routes over such grants.

All that a decision can allow is among them; most of what is among them it allows. Each list is in the order of a unique, rising key
from a place on, so that nothing is skipped or listed twice while rows are added.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection

from compliance.deciding.judge import ANY_KIND, ROUTE
from evaluations.models import SubjectVersionMember
from evaluations.vocabulary import SubjectKind

SPAN = 2_000
"""So many grants of a system are looked at in one statement."""


class Candidate(NamedTuple):
    """One thing to judge: the key by which lists are ordered, its name, and of a subject the number of the version."""

    place: int
    name: str
    number: int = 0


class Candidates(NamedTuple):
    """Some candidates; `reached` is the place up to which was looked, `ended` that nothing is behind it."""

    found: list[Candidate]
    reached: int
    ended: bool


# A version is listed by the first of its grants alone. Each grant is looked up by its key, in the order of keys (`OFFSET 0` and the
# scalar query hold the plan to that): whatever is believed of how many there are, a statement costs no more than its span.
_BY_GRANTS = """
WITH span AS MATERIALIZED (
    SELECT grant_id FROM compliance_grantsystem WHERE system_id = %(system)s AND grant_id > %(after)s ORDER BY grant_id LIMIT %(span)s
), listed AS (
    SELECT link.grant_id AS id, held.key, held.number
    FROM compliance_grantsystem link CROSS JOIN LATERAL (
        SELECT v.id, s.key, v.number
        FROM compliance_grant g
        JOIN evaluations_subjectversion v ON v.id = g.subject_version_id JOIN evaluations_subject s ON s.id = v.subject_id
        WHERE g.id = link.grant_id AND g.status = 'active' AND %(action)s = ANY (g.actions) AND s.kind = ANY (%(kinds)s) OFFSET 0
    ) held
    WHERE link.system_id = %(system)s AND link.grant_id > %(after)s AND link.grant_id <= (SELECT max(grant_id) FROM span)
        AND link.grant_id = (
            SELECT min(e.id) FROM compliance_grant e JOIN compliance_grantsystem o ON o.grant_id = e.id AND o.system_id = %(system)s
            WHERE e.subject_version_id = held.id AND e.status = 'active' AND %(action)s = ANY (e.actions))
    ORDER BY link.grant_id LIMIT %(most)s
)
SELECT (SELECT count(*) FROM span), (SELECT max(grant_id) FROM span), (SELECT json_agg(l ORDER BY l.id) FROM listed l)
"""
# A route that was granted nothing itself is cleared by its members; `judge` says whether this version is the one that runs.
_ROUTES = """
SELECT v.id, s.key, v.number
FROM evaluations_subject s JOIN evaluations_subjectversion v ON v.subject_id = s.id
WHERE s.kind = 'route' AND v.closed AND v.id > %(after)s
    AND EXISTS (SELECT FROM evaluations_subjectversionmember m WHERE m.version_id = v.id)
    AND NOT EXISTS (
        SELECT FROM evaluations_subjectversionmember m WHERE m.version_id = v.id AND NOT EXISTS (
            SELECT FROM compliance_grant g JOIN compliance_grantsystem o ON o.grant_id = g.id AND o.system_id = %(system)s
            WHERE g.subject_version_id = m.member_id AND g.status = 'active' AND %(action)s = ANY (g.actions)))
    AND NOT EXISTS (
        SELECT FROM compliance_grant g JOIN compliance_grantsystem o ON o.grant_id = g.id AND o.system_id = %(system)s
        WHERE g.subject_version_id = v.id)
ORDER BY v.id LIMIT %(most)s
"""
_SYSTEMS = """
SELECT y.id, y.key FROM policies_system y
WHERE y.id > %(after)s AND (%(within)s::text[] IS NULL OR y.key = ANY (%(within)s)) AND EXISTS (
    SELECT FROM compliance_grant g JOIN compliance_grantsystem o ON o.grant_id = g.id AND o.system_id = y.id
    WHERE g.subject_version_id = ANY (%(versions)s) AND g.status = 'active' AND %(action)s = ANY (g.actions))
ORDER BY y.id LIMIT %(most)s
"""
_ACTIONS = """
SELECT DISTINCT word FROM compliance_grant g JOIN compliance_grantsystem o ON o.grant_id = g.id AND o.system_id = %(system)s
CROSS JOIN unnest(g.actions) AS word WHERE g.subject_version_id = ANY (%(versions)s) AND g.status = 'active' ORDER BY word
"""


def kinds_of(subject_type: str) -> list[str]:
    """Return the kinds of subject that a question's type means; a name in use (`alias`) is no kind, and none is listed."""
    if subject_type == ANY_KIND:
        return list(SubjectKind.values)
    return [subject_type] if subject_type in SubjectKind.values else []


def versions_behind(version: int) -> list[int]:
    """Return a subject version and what it can reach, by row id: a grant of any of these may carry it."""
    return [version, *SubjectVersionMember.objects.filter(version=version).values_list("member_id", flat=True)]


def granted_subjects(*, system: int, action: str, kinds: Sequence[str], after: int, most: int) -> Candidates:
    """Return subject versions with a grant for the action at a system, in the order of grants, from behind one on."""
    given = {"system": system, "action": action, "kinds": list(kinds), "after": after, "most": most, "span": SPAN}
    ((looked, last, listed),) = _rows(_BY_GRANTS, given)
    found = [Candidate(row["id"], row["key"], row["number"]) for row in listed or ()]
    if len(found) == most:
        return Candidates(found, found[-1].place, ended=False)
    return Candidates(found, last or after, ended=looked < SPAN)


def carried_routes(*, system: int, action: str, kinds: Sequence[str], after: int, most: int) -> Candidates:
    """Return routes without a grant of their own at a system, all of whose members have one, in the order of versions."""
    if ROUTE not in kinds:
        return Candidates([], after, ended=True)
    rows = _rows(_ROUTES, {"system": system, "action": action, "after": after, "most": most})
    return _listed([Candidate(*row) for row in rows], after, most)


def granted_systems(*, versions: Sequence[int], action: str, within: Sequence[str] | None, after: int, most: int) -> Candidates:
    """Return systems at which one of the subject versions has a grant for the action; only those in `within`, if it is given."""
    given = {"versions": list(versions), "action": action, "within": None if within is None else list(within)}
    rows = _rows(_SYSTEMS, {**given, "after": after, "most": most})
    return _listed([Candidate(*row) for row in rows], after, most)


def granted_actions(*, versions: Sequence[int], system: int) -> list[str]:
    """Return the actions for which one of the subject versions has a grant at a system, in order."""
    return [word for (word,) in _rows(_ACTIONS, {"versions": list(versions), "system": system})]


def listed_names(names: Sequence[str], *, after: int, most: int) -> Candidates:
    """Return names of a list that is at hand whole, by their place in it, counted from 1."""
    return _listed([Candidate(place, name) for place, name in enumerate(names, 1) if place > after][:most], after, most)


def _listed(found: list[Candidate], after: int, most: int) -> Candidates:
    return Candidates(found, found[-1].place if found else after, ended=len(found) < most)


def _rows(statement: str, given: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        return cursor.fetchall()
