"""The fleet: candidates against policies, with the verdict that stands in each place."""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from django.db import connection

from evaluations.models import Metric, SubjectVersion
from evaluations.vocabulary import Unit
from policies.models import PolicyActivation, PolicyVersion

MOST_SUBJECTS = 500
MOST_POLICIES = 12

# How near a verdict is to its edge is worked out where the cores lie: the page needs one number of each, not its bytes. A
# core's numbers are decimal text, so nothing is rounded on the way. Only rates are compared: a distance in dollars is neither
# nearer nor farther than one in percent.
_STANDINGS = """
SELECT s.subject_version_id, s.policy_version_id, s.domain, s.verdict_id, v.result,
    (SELECT min(abs((rule ->> 'measured')::numeric - (rule ->> 'bar')::numeric))
     FROM jsonb_array_elements(convert_from(v.core, 'UTF8')::jsonb -> 'rules') AS rule
     JOIN unnest(%s::bigint[], %s::text[]) AS rate(policy_version_id, clause)
        ON rate.policy_version_id = s.policy_version_id AND rate.clause = rule ->> 'clause'
     WHERE rule ->> 'measured' IS NOT NULL)
FROM policies_standing s JOIN policies_verdict v ON v.id = s.verdict_id
WHERE s.policy_version_id = ANY(%s) AND s.subject_version_id = ANY(%s)
ORDER BY s.domain
"""


class Stand(NamedTuple):
    """What stands in one place. `edge` is how far, in percent, the measured rate nearest to its bar is from it; None where none was
    measured."""

    domain: str
    verdict_id: int
    result: str
    edge: Decimal | None


class FleetRow(NamedTuple):
    """One candidate's newest version; `places` has one entry a policy, each with a stand a domain."""

    version: SubjectVersion
    places: tuple[tuple[Stand, ...], ...]

    @property
    def edge(self) -> Decimal | None:
        found = [stand.edge for stand in (stand for place in self.places for stand in place) if stand.edge is not None]
        return min(found) if found else None


class Fleet(NamedTuple):
    """`more` says that further candidates or policies were left out."""

    policies: Sequence[PolicyVersion]
    active: frozenset[int]
    rows: Sequence[FleetRow]
    more: bool


def read_fleet() -> Fleet:
    """Return the matrix in five queries: candidates in the order of their keys, policies in the order of their names."""
    newest = SubjectVersion.objects.filter(subject__candidate=True).order_by("subject__key", "-number").distinct("subject__key")
    versions = list(newest.select_related("subject").defer("pin")[: MOST_SUBJECTS + 1])
    policies, active = _policies()
    shown, columns = versions[:MOST_SUBJECTS], policies[:MOST_POLICIES]
    places: dict[tuple[int, int], list[Stand]] = {}
    if shown and columns:
        with connection.cursor() as cursor:
            rates = _rates(columns)
            rate_versions, rate_clauses = [pk for pk, _ in rates], [clause for _, clause in rates]
            chosen = [version.pk for version in columns], [version.pk for version in shown]
            cursor.execute(_STANDINGS, [rate_versions, rate_clauses, *chosen])
            for subject_version_id, policy_version_id, *stand in cursor.fetchall():
                places.setdefault((subject_version_id, policy_version_id), []).append(Stand(*stand))
    rows = [FleetRow(version, tuple(tuple(places.get((version.pk, policy.pk), ())) for policy in columns)) for version in shown]
    return Fleet(columns, active, rows, len(versions) > MOST_SUBJECTS or len(policies) > MOST_POLICIES)


def _policies() -> tuple[list[PolicyVersion], frozenset[int]]:
    """Return of each policy the version in force, else the newest, and which of them are in force."""
    named = PolicyVersion.objects.select_related("policy").defer("text")
    newest = named.order_by("policy__name", "-number").distinct("policy__name")[: MOST_POLICIES + 1]
    activations = PolicyActivation.objects.order_by("policy_id", "-id").distinct("policy_id")
    in_force = {item.policy_id: item.version for item in activations.select_related("version__policy").defer("version__text")}
    chosen = [in_force.get(version.policy_id, version) for version in newest]
    return chosen, frozenset(version.pk for version in in_force.values())


def _rates(versions: Sequence[PolicyVersion]) -> list[tuple[int, str]]:
    """Return (policy version, clause) of every clause whose metric is a rate."""
    clauses = [
        (version.pk, clause, shape["metric"])
        for version in versions
        for clause, shape in (json.loads(bytes(version.resolved))["spec"].get("evidence") or {}).items()
    ]
    metrics = {metric for _, _, metric in clauses}
    rates = set(Metric.objects.filter(key__in=metrics, unit=Unit.PERCENT).values_list("key", flat=True))
    return [(pk, clause) for pk, clause, metric in clauses if metric in rates]
