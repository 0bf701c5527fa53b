"""Which grants rest on a piece of evidence, and when age takes it from them."""

from collections.abc import Sequence
from datetime import datetime

from django.db import connection

from compliance.models import Grant
from compliance.vocabulary import GrantStatus
from evaluations.models import AliasAssignment, Evidence, SubjectVersionMember


def grants_resting_on(evidence: Evidence) -> list[Grant]:
    """Return live grants of the subject versions that the evidence's name has ever meant, and of those whose route reaches one.

    Wider than what decided: a result that did not decide yesterday may decide once this one is gone.
    """
    named = AliasAssignment.objects.filter(name_as_written=evidence.subject_as_written, subject_version__isnull=False)
    meant = set(named.values_list("subject_version_id", flat=True))
    meant.update(SubjectVersionMember.objects.filter(member__in=meant).values_list("version_id", flat=True))
    live = Grant.objects.filter(status__in=[GrantStatus.ACTIVE, GrantStatus.SUSPENDED], subject_version__in=meant)
    return list(live.order_by("id"))


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
