"""Reads about verdicts and standings: what is due to be judged."""

from collections.abc import Collection
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, Q

from evaluations.kernel.clock import now
from evaluations.models import SubjectVersion
from evaluations.selectors.news import metrics_redefined
from evaluations.selectors.subjects import current_versions
from policies.models import Standing
from policies.selectors.bindings import judged_keys
from policies.selectors.facts import readings_of
from policies.selectors.policies import compile_versions, versions_to_keep_judged
from policies.selectors.standings import LONGEST_COMMIT

DUE_AT_ONCE = 500

# One pass over the standings that are kept: what each subject version has, and how long ago any of it was looked at.
_DUE = """
WITH kept AS (
    SELECT * FROM unnest(%(policy_versions)s::bigint[], %(digests)s::text[], %(domains)s::text[], %(redefined)s::timestamptz[])
    AS kept(policy_version_id, params_digest, domain, redefined_at)
), looked AS (
    SELECT s.subject_version_id AS id, count(*) AS held, min(s.checked_at) AS oldest,
        bool_or(coalesce(s.due_at <= %(moment)s, false) OR coalesce(kept.redefined_at >= s.checked_at - %(longest)s, false)) AS due
    FROM kept JOIN policies_standing s USING (policy_version_id, params_digest, domain) GROUP BY s.subject_version_id
)
SELECT id FROM (
    SELECT l.id FROM looked l
    JOIN evaluations_subjectversion v ON v.id = l.id JOIN evaluations_subject o ON o.id = v.subject_id
    WHERE l.due OR o.changed_at >= l.oldest - %(longest)s
    UNION
    SELECT c.id FROM unnest(%(current)s::bigint[]) AS c(id) LEFT JOIN looked l ON l.id = c.id
    WHERE coalesce(l.held, 0) < (SELECT count(*) FROM kept)
) AS due
WHERE id > %(after)s ORDER BY id LIMIT %(limit)s
"""


def due_subject_version_ids(*, after: int = 0, limit: int = DUE_AT_ONCE) -> list[int]:
    """Return, from the one after `after` on, subject versions of which a standing is due under a key that is kept judged: aged out,
    changed since it was checked, read by a metric redefined since, or never judged at all. Standings of other keys (a binding since
    replaced, a retired version) are history and never due.
    """
    moment = now()
    keys = judged_keys(versions_to_keep_judged())
    if not keys:
        return []
    redefined = metrics_redefined()
    compiled = compile_versions([key.policy_version for key in keys])
    # An open route gets no verdict, so it would stay due for ever.
    current = [version.pk for version in current_versions(known_at=moment) if version.closed]
    parameters: dict[str, Any] = {
        "policy_versions": [key.policy_version.pk for key in keys],
        "digests": [key.params_digest for key in keys],
        "domains": [key.domain for key in keys],
        "redefined": [
            max((redefined[metric] for metric, _ in readings_of(policy) if metric in redefined), default=None)
            for policy in compiled
        ],
        "moment": moment,
        "longest": LONGEST_COMMIT,
        "current": current,
        "after": after,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(_DUE, parameters)
        return [pk for (pk,) in cursor.fetchall()]


def rejudged_subject_version_ids(policy_ids: Collection[int], *, after: int, limit: int) -> list[int]:
    """Return, from the one after `after` on, the subject versions that a change of these policies concerns: the current ones, and
    older ones on which the policies have a standing, for a grant may rest on it."""
    standing = Standing.objects.filter(policy_version__policy__in=policy_ids, subject_version=OuterRef("pk"))
    current = [version.pk for version in current_versions(known_at=now())]
    concerned = SubjectVersion.objects.filter(Q(pk__in=current) | Exists(standing), pk__gt=after)
    return list(concerned.order_by("pk").values_list("pk", flat=True)[:limit])
