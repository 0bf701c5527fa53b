"""Reads about verdicts and standings, and the replay of a judgement."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Exists, OuterRef, Q

from evaluations.kernel.clock import now
from evaluations.models import SubjectVersion
from evaluations.selectors.subjects import current_versions
from policies.language.replay import replay
from policies.models import Standing, Verdict
from policies.selectors.bindings import judged_keys
from policies.selectors.policies import versions_to_keep_judged

DUE_AT_ONCE = 10_000
LONGEST_COMMIT = timedelta(minutes=5)
"""A mark set early in a long transaction is seen only when that commits: changes are looked for this much further back."""


_DUE = """
WITH kept AS (
    SELECT * FROM unnest(%(policy_versions)s::bigint[], %(digests)s::text[], %(domains)s::text[])
    AS kept(policy_version_id, params_digest, domain)
)
SELECT s.subject_version_id AS id
FROM kept JOIN policies_standing s USING (policy_version_id, params_digest, domain)
JOIN evaluations_subjectversion v ON v.id = s.subject_version_id
JOIN evaluations_subject o ON o.id = v.subject_id
WHERE s.due_at <= %(moment)s OR o.changed_at >= s.checked_at - %(longest)s
UNION
SELECT v.id FROM unnest(%(current)s::bigint[]) AS v(id) CROSS JOIN kept
WHERE NOT EXISTS (
    SELECT FROM policies_standing s
    WHERE s.policy_version_id = kept.policy_version_id AND s.params_digest = kept.params_digest
    AND s.domain = kept.domain AND s.subject_version_id = v.id
)
ORDER BY id LIMIT %(at_once)s
"""


class Replay(NamedTuple):
    """The core as stored and as judged again from facts document and policy bytes; `same` when they are the same bytes."""

    stored: bytes
    replayed: bytes

    @property
    def same(self) -> bool:
        return self.stored == self.replayed


def replay_verdict(verdict: Verdict) -> Replay:
    """Judge again, from the stored facts document and the stored policy text, as of the recorded instant."""
    judgement = replay(
        bytes(verdict.facts.content), bytes(verdict.policy_version.text), as_of=verdict.as_of, semantics=verdict.semantics
    )
    return Replay(bytes(verdict.core), judgement.core_bytes())


def due_subject_version_ids() -> list[int]:
    """Return subject versions of which a standing is due under a key that is kept judged: aged out, changed since it was checked, or
    never judged at all. Standings of other keys (a binding since replaced, a retired version) are history and never due.
    """
    moment = now()
    keys = judged_keys(versions_to_keep_judged())
    # An open route gets no verdict, so it would stay due for ever.
    current = [version.pk for version in current_versions(known_at=moment) if version.closed]
    parameters: dict[str, Any] = {
        "policy_versions": [key.policy_version.pk for key in keys],
        "digests": [key.params_digest for key in keys],
        "domains": [key.domain for key in keys],
        "moment": moment,
        "longest": LONGEST_COMMIT,
        "current": current,
        "at_once": DUE_AT_ONCE,
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
