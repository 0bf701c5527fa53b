"""What was recorded about subject versions since an instant: which metrics on which benchmarks may read otherwise now."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from django.db import connection
from django.db.models import Max, Min

from evaluations.models import Metric

# From subject versions to names, from names to evidence, from evidence to what it measured: each step by an index, so that the cost
# follows the evidence about these versions and not the store. An agent's news is also that of every model it can reach.
_NEWS = """
WITH asked AS (
    SELECT * FROM unnest(%(ids)s::bigint[], %(sinces)s::timestamptz[]) AS asked(version_id, since)
), reached AS (
    SELECT version_id, version_id AS about_id, since FROM asked
    UNION ALL
    SELECT a.version_id, m.member_id, a.since FROM asked a JOIN evaluations_subjectversionmember m ON m.version_id = a.version_id
), named AS MATERIALIZED (
    SELECT DISTINCT r.version_id, r.since, a.name_as_written
    FROM reached r JOIN evaluations_aliasassignment a ON a.subject_version_id = r.about_id
), written AS MATERIALIZED (
    SELECT n.version_id, n.since, e.id, e.source_id, e.recorded_at, e.answered_as_written
    FROM named n JOIN evaluations_evidence e ON e.subject_as_written = n.name_as_written
), trusted AS MATERIALIZED (
    SELECT source_id, max(recorded_at) AS recorded_at FROM evaluations_trustassignment GROUP BY source_id
), ruled AS MATERIALIZED (
    SELECT evidence_id, max(recorded_at) AS recorded_at FROM evaluations_ruling
    WHERE evidence_id IN (SELECT id FROM written) GROUP BY evidence_id
), fresh AS MATERIALIZED (
    SELECT w.version_id, w.id FROM written w
    LEFT JOIN trusted t ON t.source_id = w.source_id
    LEFT JOIN ruled r ON r.evidence_id = w.id
    WHERE w.recorded_at >= w.since OR t.recorded_at >= w.since OR r.recorded_at >= w.since
)
SELECT n.version_id, NULL, NULL FROM named n
JOIN evaluations_aliasassignment a ON a.name_as_written = n.name_as_written AND a.recorded_at >= n.since
UNION
SELECT w.version_id, NULL, NULL FROM written w CROSS JOIN unnest(w.answered_as_written) AS answered
JOIN evaluations_aliasassignment a ON a.name_as_written = answered AND a.recorded_at >= w.since
UNION
SELECT f.version_id, m.key, b.key FROM (
    SELECT DISTINCT f.version_id, o.metric_id, o.benchmark_version_id
    FROM fresh f JOIN evaluations_observation o ON o.evidence_id = f.id
) f
JOIN evaluations_metric m ON m.id = f.metric_id
JOIN evaluations_benchmarkversion bv ON bv.id = f.benchmark_version_id
JOIN evaluations_benchmark b ON b.id = bv.benchmark_id
"""


class News(NamedTuple):
    """What is new about a subject version: `everything` where a name has moved, else (metric, benchmark) by (metric, benchmark)."""

    everything: bool
    readings: frozenset[tuple[str, str]]


def news_about(since: Mapping[int, datetime]) -> dict[int, News]:
    """Return what was recorded about each subject version from the instant beside it on; of one without news, nothing.

    Counted are evidence, rulings on it, trust in its source, and names that were given or moved: those of the version itself, of the
    models that an agent reaches, and of models that answered in their place. New definitions of metrics concern everybody, so they are
    asked for apart (`metrics_redefined`).
    """
    if not since:
        return {}
    everything: set[int] = set()
    readings: defaultdict[int, set[tuple[str, str]]] = defaultdict(set)
    with connection.cursor() as cursor:
        cursor.execute(_NEWS, {"ids": list(since), "sinces": list(since.values())})
        for version_id, metric, benchmark in cursor.fetchall():
            if metric is None:
                everything.add(version_id)
            else:
                readings[version_id].add((metric, benchmark))
    return {pk: News(pk in everything, frozenset(readings.get(pk, ()))) for pk in everything | readings.keys()}


def metrics_redefined() -> dict[str, datetime]:
    """Return when each metric that has had another definition before got its present one."""
    rows = Metric.objects.values("key").annotate(first=Min("recorded_at"), last=Max("recorded_at"))
    return {row["key"]: row["last"] for row in rows if row["last"] > row["first"]}
