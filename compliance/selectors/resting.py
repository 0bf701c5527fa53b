"""Which verdicts and grants rest on a piece of evidence, before and after a ruling on it, and when age takes it from them."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import connection
from django.db.models import QuerySet

from compliance.models import Grant
from compliance.vocabulary import GrantStatus
from evaluations.models import AliasAssignment, Evidence, Ruling, SubjectVersionMember
from policies.models import Verdict

MOST_VERDICTS = 200


def versions_meant(evidence: Evidence) -> set[int]:
    """Return the ids of the subject versions that the evidence's name has ever meant, and of those whose route reaches one."""
    named = AliasAssignment.objects.filter(name_as_written=evidence.subject_as_written, subject_version__isnull=False)
    meant = set(named.values_list("subject_version_id", flat=True))
    meant.update(SubjectVersionMember.objects.filter(member__in=meant).values_list("version_id", flat=True))
    return meant


def grants_resting_on(evidence: Evidence) -> list[Grant]:
    """Return live grants of the subject versions that the evidence's name has ever meant, and of those whose route reaches one.

    Wider than what decided: a result that did not decide yesterday may decide once this one is gone.
    """
    return list(_live_grants().filter(subject_version__in=versions_meant(evidence)).order_by("id"))


def _live_grants() -> QuerySet[Grant]:
    return Grant.objects.filter(status__in=[GrantStatus.ACTIVE, GrantStatus.SUSPENDED])


class Resting(NamedTuple):
    """A key under which a verdict rests on the evidence, or did before the ruling. `before` stood until then (None: nothing did);
    `now` stands now. Each says whether it names the evidence among what decided a rule."""

    before: Verdict | None
    rested: bool
    now: Verdict
    rests: bool


class RestsOnIt(NamedTuple):
    """`ruled_at` is the newest ruling's instant, None where nothing was ruled: then `before` and `now` are the same."""

    ruled_at: datetime | None
    verdicts: Sequence[Resting]
    more: bool


# What decided a rule stands in the core by the evidence's uid, and nowhere else does a core name evidence.
_RESTING = """
WITH stood AS (
    SELECT s.id, s.verdict_id AS now_id, before.id AS before_id,
        position(%(cited)s IN now.core) > 0 AS rests, coalesce(position(%(cited)s IN before.core) > 0, false) AS rested
    FROM policies_standing s
    JOIN policies_verdict now ON now.id = s.verdict_id
    LEFT JOIN LATERAL (
        SELECT v.id, v.core FROM policies_verdict v
        WHERE v.subject_version_id = s.subject_version_id AND v.policy_version_id = s.policy_version_id
            AND v.params_digest = s.params_digest AND v.domain = s.domain AND v.recorded_at < %(until)s
        ORDER BY v.id DESC LIMIT 1
    ) before ON true
    WHERE s.subject_version_id = ANY(%(ids)s)
)
SELECT before_id, rested, now_id, rests FROM stood WHERE rested OR rests ORDER BY id LIMIT %(most)s
"""


def read_resting(evidence: Evidence, *, at: datetime) -> RestsOnIt:
    """Return the verdicts that rest on evidence at an instant (now), each beside what stood before the newest ruling."""
    ruled_at = Ruling.objects.filter(evidence=evidence).order_by("-id").values_list("recorded_at", flat=True).first()
    given = {
        "cited": f'"{evidence.uid}"'.encode(),
        "until": ruled_at or at,
        "ids": list(versions_meant(evidence)),
        "most": MOST_VERDICTS + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RESTING, given)
        rows = cursor.fetchall()
    named = Verdict.objects.select_related("policy_version__policy", "subject_version__subject").defer(
        "core", "policy_version__text", "policy_version__resolved", "subject_version__pin"
    )
    found = named.in_bulk({pk for before, _, now, _ in rows for pk in (before, now) if pk is not None})
    shown = [
        Resting(None if before is None else found[before], rested, found[now], rests)
        for before, rested, now, rests in rows[:MOST_VERDICTS]
    ]
    return RestsOnIt(ruled_at, shown, len(rows) > MOST_VERDICTS)


# The standings under the policies of the signed dossier, by the versions now in force; where a version is still the signed one, under
# the very parameters that were signed.
_DUE = """
WITH in_force AS (
    SELECT DISTINCT ON (own.name) own.name, version.id, version.digest
    FROM policies_policyactivation activation
    JOIN policies_policyversion version ON version.id = activation.version_id
    JOIN policies_policy own ON own.id = version.policy_id
    ORDER BY own.name, activation.id DESC
)
SELECT held.id, min(standing.due_at)
FROM compliance_grant held
JOIN compliance_dossier paper ON paper.id = held.dossier_id
JOIN policies_standing standing ON standing.subject_version_id = held.subject_version_id
    AND standing.due_at > %s AND standing.due_at <= %s
JOIN in_force ON in_force.id = standing.policy_version_id
WHERE held.id = ANY (%s) AND EXISTS (
    SELECT FROM jsonb_array_elements(convert_from(paper.content, 'UTF8')::jsonb -> 'policies') AS named
    WHERE named ->> 'policy' = in_force.name AND named ->> 'domain' = standing.domain
        AND (named ->> 'digest' <> in_force.digest OR named ->> 'params_digest' = standing.params_digest)
)
GROUP BY held.id
"""


def evidence_due(grants: Sequence[Grant], *, at: datetime, until: datetime) -> dict[int, datetime]:
    """Return, by row id, when ageing first changes a verdict that a grant rests on, for those where that comes by `until`."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE, [at, until, [grant.pk for grant in grants]])
        return dict(cursor.fetchall())
