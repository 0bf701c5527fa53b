"""Which standing grants are due for a review: those that would show something else than at their last one. One statement for all."""

from collections.abc import Collection
from datetime import datetime

from django.db import connection

from compliance.selectors.reviewing import REINSTATED

# A mark is a digest of all that a review reads and that can be moved: which verdicts stand, what is in force, waivers by the clock,
# systems, names, versions, the requester's roles, and the dossier itself. Facts are inserted only, so their number says enough:
# an id that was drawn early and committed late would hide from a comparison of the largest.
_MARKS = """
WITH live AS MATERIALIZED (
    SELECT g.id, g.subject_version_id, g.requester_id, g.dossier_id, v.subject_id
    FROM compliance_grant g JOIN evaluations_subjectversion v ON v.id = g.subject_version_id
    WHERE g.status = 'active' AND g.kind = 'standing' AND (%(ids)s::bigint[] IS NULL OR g.id = ANY(%(ids)s::bigint[]))
), meant AS MATERIALIZED (
    SELECT DISTINCT subject_version_id FROM live
), stood AS (
    SELECT s.subject_version_id, string_agg(s.verdict_id::text, ',' ORDER BY s.id) AS mark
    FROM policies_standing s JOIN meant USING (subject_version_id) GROUP BY 1
), excused AS (
    SELECT w.subject_version_id, string_agg(w.id::text, ',' ORDER BY w.id) AS mark
    FROM compliance_waiver w JOIN meant USING (subject_version_id)
    WHERE w.starts_at <= %(at)s AND w.ends_at > %(at)s
        AND NOT EXISTS (SELECT FROM compliance_waiverrevocation r WHERE r.waiver_id = w.id)
    GROUP BY 1
), named AS (
    SELECT own.subject_version_id, count(*) AS mark
    FROM (
        SELECT DISTINCT a.subject_version_id, a.name_as_written
        FROM evaluations_aliasassignment a JOIN meant USING (subject_version_id)
    ) own JOIN evaluations_aliasassignment every USING (name_as_written) GROUP BY 1
), numbered AS (
    SELECT v.subject_id, count(*) AS mark
    FROM evaluations_subjectversion v WHERE v.subject_id IN (SELECT subject_id FROM live) GROUP BY 1
), reached AS (
    SELECT l.id, string_agg(concat_ws(':', y.id, y.domain, y.environment, y.reversible, y.owner), ',' ORDER BY y.id) AS mark
    FROM live l JOIN compliance_grantsystem s ON s.grant_id = l.id JOIN policies_system y ON y.id = s.system_id GROUP BY 1
), asking AS (
    SELECT m.person_id, string_agg(m.role, ',' ORDER BY m.id) AS mark
    FROM compliance_rolemembership m
    WHERE m.person_id IN (SELECT requester_id FROM live) AND m.starts_at <= %(at)s AND (m.ends_at IS NULL OR m.ends_at > %(at)s)
    GROUP BY 1
), marks AS (
    SELECT l.id, encode(sha256(convert_to(concat_ws('|',
        l.dossier_id, coalesce(stood.mark, ''), coalesce(excused.mark, ''), coalesce(named.mark, 0), numbered.mark,
        coalesce(reached.mark, ''), coalesce(asking.mark, ''),
        (SELECT count(*) FROM policies_policyactivation), (SELECT count(*) FROM policies_binding),
        (SELECT count(*) FROM compliance_ledgerentry WHERE action = %(reinstated)s)
    ), 'UTF8')), 'hex') AS mark
    FROM live l
    LEFT JOIN stood USING (subject_version_id) LEFT JOIN excused USING (subject_version_id) LEFT JOIN named USING (subject_version_id)
    LEFT JOIN numbered USING (subject_id) LEFT JOIN reached ON reached.id = l.id LEFT JOIN asking ON asking.person_id = l.requester_id
)
"""
_OF = _MARKS + "SELECT id, mark FROM marks"  # noqa: S608 - constants of this module alone
_DUE = (
    _MARKS
    + """
SELECT m.id FROM marks m LEFT JOIN compliance_grantreview r ON r.grant_id = m.id
WHERE r.seen IS DISTINCT FROM m.mark AND m.id > %(after)s ORDER BY m.id LIMIT %(limit)s
"""
)


def marks_of(grant_ids: Collection[int], *, at: datetime) -> dict[int, str]:
    """Return by grant what a review would see now; a grant that is not active and standing is left out."""
    with connection.cursor() as cursor:
        cursor.execute(_OF, {"ids": list(grant_ids), "at": at, "reinstated": REINSTATED})
        return dict(cursor.fetchall())


def due_grants(*, at: datetime, after: int = 0, limit: int) -> list[int]:
    """Return the ids of active standing grants, from the one after `after` on, that have moved since their last review."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {"ids": None, "at": at, "reinstated": REINSTATED, "after": after, "limit": limit})
        return [pk for (pk,) in cursor.fetchall()]
