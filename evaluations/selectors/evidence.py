"""What is known about subject versions: every observation under a name that means one of them, as known at an instant."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import connection

from evaluations.kernel.bulk import fetch_with_arrays
from evaluations.models import AliasAssignment


class SeenObservation(NamedTuple):
    """One observation with everything a judgement asks about it: after the first field, those of a candidate, in its order."""

    version_id: int
    evidence: str
    ordinal: int
    subject_as_written: str
    source: str
    trust: str
    provenance: str
    attested: bool
    metric: str
    benchmark: str
    version: str
    slice: str
    value: Decimal
    value_as_written: str
    k: Decimal | None
    n: int | None
    repeats: int | None
    errored: int | None
    unscored: int | None
    run_status: str
    ended_at: datetime | None
    run_ended: bool
    harness: str
    about: str
    identity_problem: str
    ruling: str
    supersedes: str


def is_self_judged(judge: Mapping[str, Any] | None, names: Collection[str]) -> bool:
    """Tell whether the subject judged its own answers: the source says so, or a judge bears a name under which it was asked or
    answered. It is a mark for whoever reads; what a policy makes of it is the policy's.
    """
    if not judge:
        return False
    return bool(judge.get("is_subject")) or not set(judge.get("models", ())).isdisjoint(names)


class NameMeaning(NamedTuple):
    """An alias assignment that reads a name in a source (empty: in any) as a subject version."""

    source: str
    written: str
    assignment: str


# A name's meaning for one piece of evidence: an assignment for its very source before one for any source, the latest that was in
# effect when the run ended (else published, else recorded), the newest recorded of those.
_MEANING = """
    SELECT a.subject_version_id
    FROM evaluations_aliasassignment a
    WHERE a.name_as_written = {name}
      AND (a.source_id = e.source_id OR a.source_id IS NULL)
      AND a.recorded_at <= %(known_at)s
      AND (a.effective_from IS NULL OR a.effective_from <= coalesce(e.run_ended_at, e.published_at, e.recorded_at))
    ORDER BY a.source_id NULLS LAST, a.effective_from DESC NULLS LAST, a.id DESC
    LIMIT 1
"""

# A harness is part of what an agent is: what was measured of the agent under another one is about another agent, whatever its name.
# Evidence that states none rests on whoever said that its name means this version.
_OTHER_HARNESS = """e.about = 'agent' AND e.harness <> '' AND e.harness <> (
    SELECT concat_ws(' ', pin.harness ->> 'name', pin.harness ->> 'version')
    FROM evaluations_subjectversion v, LATERAL (SELECT convert_from(v.pin, 'UTF8')::jsonb #> '{pin,harness}' AS harness) pin
    WHERE v.id = meaning.subject_version_id AND pin.harness IS NOT NULL
)"""

# Built from constants of this module alone; every value is a bound parameter. What is asked about evidence is asked once for each
# piece of it, before its observations are joined. `OFFSET 0` has both looked up by their keys: a planner that reads the whole of them
# for a few hundred subjects at a time makes the fleet cost its square.
#
# A ruling is about a run, not about the bytes that told of it: whoever hands in the very numbers of a disputed or retracted run once
# more, in another document, by another importer or as a newer revision, hands in what has been ruled on. `ruled` holds those runs,
# found by their evidence alone, since few are ruled on. Other numbers for the same run are a correction, and stand by themselves.
_SEEN = f"""
WITH named AS MATERIALIZED (
    SELECT DISTINCT name_as_written FROM evaluations_aliasassignment
    WHERE subject_version_id = ANY(%(ids)s) AND recorded_at <= %(known_at)s
), trusted AS MATERIALIZED (
    SELECT DISTINCT ON (source_id) source_id, tier FROM evaluations_trustassignment
    WHERE recorded_at <= %(known_at)s ORDER BY source_id, id DESC
), meant AS MATERIALIZED (
    SELECT e.id, meaning.subject_version_id AS version_id, e.uid::text AS uid, e.subject_as_written, s.key AS source,
        coalesce(t.tier, '') AS trust, e.provenance, e.attested, e.run_status,
        coalesce(e.run_ended_at, e.published_at) AS ended_at, e.run_ended_at IS NOT NULL AS run_ended, e.harness, e.about,
        CASE WHEN {_OTHER_HARNESS} THEN 'identity_contested' WHEN e.answered_as_written = '{{}}' THEN '' WHEN (
            SELECT bool_and(
                name = e.subject_as_written OR meaning.subject_version_id IS NOT DISTINCT FROM ({_MEANING.format(name="name")})
            )
            FROM unnest(e.answered_as_written) AS name
        ) THEN '' ELSE 'identity_contested' END AS identity_problem,
        coalesce((
            SELECT CASE WHEN bool_or(r.kind = 'retracted') THEN 'retracted' ELSE (array_agg(r.kind ORDER BY r.id DESC))[1] END
            FROM evaluations_ruling r WHERE r.evidence_id = e.id AND r.recorded_at <= %(known_at)s
        ), '') AS ruling,
        e.supersedes
    FROM named
    CROSS JOIN LATERAL (SELECT * FROM evaluations_evidence WHERE subject_as_written = named.name_as_written OFFSET 0) e
    JOIN evaluations_source s ON s.id = e.source_id
    LEFT JOIN trusted t ON t.source_id = e.source_id
    CROSS JOIN LATERAL ({_MEANING.format(name="e.subject_as_written")}) meaning
    WHERE e.recorded_at <= %(known_at)s AND meaning.subject_version_id = ANY(%(ids)s)
), ruled AS MATERIALIZED (
    SELECT DISTINCT ON (e.version_id, e.source, e.about, e.harness, e.run_ended, e.ended_at, o.metric_id, o.benchmark_version_id,
            o.slice, o.value, o.k, o.n)
        e.version_id, e.source, e.about, e.harness, e.run_ended, e.ended_at, o.metric_id, o.benchmark_version_id, o.slice,
        o.value, o.k, o.n, e.ruling
    FROM meant e CROSS JOIN LATERAL (SELECT * FROM evaluations_observation WHERE evidence_id = e.id OFFSET 0) o
    WHERE e.ruling IN ('retracted', 'disputed', 'dispute_upheld')
    ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, array_position(ARRAY['retracted', 'dispute_upheld', 'disputed'], e.ruling)
), seen AS (
SELECT e.version_id, e.uid, o.ordinal, e.subject_as_written, e.source, e.trust, e.provenance, e.attested, m.key AS metric,
    b.key AS benchmark, bv.version, o.slice, o.value, o.value_as_written, o.k, o.n, o.repeats, o.errored, o.unscored, e.run_status,
    e.ended_at, e.run_ended, e.harness, e.about, e.identity_problem, CASE WHEN e.ruling = 'retracted' THEN e.ruling
        ELSE coalesce(r.ruling, e.ruling) END AS ruling, e.supersedes, e.id AS evidence_id
FROM meant e
CROSS JOIN LATERAL (SELECT * FROM evaluations_observation WHERE evidence_id = e.id OFFSET 0) o
LEFT JOIN ruled r ON r.version_id = e.version_id AND r.source = e.source AND r.about = e.about AND r.harness = e.harness
    AND r.run_ended = e.run_ended AND r.metric_id = o.metric_id AND r.benchmark_version_id = o.benchmark_version_id
    AND r.slice = o.slice AND r.value = o.value AND r.ended_at IS NOT DISTINCT FROM e.ended_at
    AND r.k IS NOT DISTINCT FROM o.k AND r.n IS NOT DISTINCT FROM o.n
JOIN evaluations_metric m ON m.id = o.metric_id
JOIN evaluations_benchmarkversion bv ON bv.id = o.benchmark_version_id
JOIN evaluations_benchmark b ON b.id = bv.benchmark_id
WHERE NARROWED
)
"""  # noqa: S608


def seen_statement(narrowed: str) -> str:
    """Return a `WITH` whose `seen` is every observation under a name that means one of `ids`, as known at `known_at`.

    Its columns are the fields of `SeenObservation` (`uid` for `evidence`) and `evidence_id`. `narrowed` is a condition on metric `m`
    and benchmark `b`, in SQL of our own.
    """
    return _SEEN.replace("NARROWED", narrowed)


SEEN_COLUMNS = ", ".join("uid" if field == "evidence" else field for field in SeenObservation._fields)
_OBSERVATIONS = f"""
{seen_statement("m.key = ANY(%(metrics)s) AND b.key = ANY(%(benchmarks)s)")}
SELECT {SEEN_COLUMNS} FROM seen ORDER BY evidence_id, ordinal
"""  # noqa: S608


_HELD = f"""
SELECT e.subject_as_written, count(*)
FROM evaluations_evidence e
JOIN evaluations_observation o ON o.evidence_id = e.id
WHERE e.document_id = ANY(%(documents)s) AND ({_MEANING.format(name="e.subject_as_written")}) IS NULL
GROUP BY e.subject_as_written ORDER BY e.subject_as_written
"""  # noqa: S608


def held_observations(document_ids: Collection[int], *, known_at: datetime) -> dict[str, int]:
    """Return, by name as written, how many observations read from these documents count for nobody: no subject version is meant."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD, {"documents": list(document_ids), "known_at": known_at})
        return dict(cursor.fetchall())


def observations_about(
    version_ids: Collection[int], *, metrics: Iterable[str], benchmarks: Iterable[str], known_at: datetime
) -> dict[int, list[SeenObservation]]:
    """Return, by subject version, the observations of the given metrics on the given benchmarks, as known at an instant.

    Nothing is left out for being old, weak or disputed: whether it counts, the judgement says.
    """
    found: defaultdict[int, list[SeenObservation]] = defaultdict(list)
    if not version_ids:
        return found
    parameters: dict[str, Any] = {
        "ids": list(version_ids),
        "metrics": list(metrics),
        "benchmarks": list(benchmarks),
        "known_at": known_at,
    }
    for row in fetch_with_arrays(_OBSERVATIONS, parameters):
        found[row[0]].append(SeenObservation._make(row))
    return found


def names_meaning(version_ids: Collection[int], *, known_at: datetime) -> dict[int, tuple[NameMeaning, ...]]:
    """Return, by subject version, the alias assignments that name it, as known at an instant."""
    found: defaultdict[int, list[NameMeaning]] = defaultdict(list)
    rows = AliasAssignment.objects.filter(subject_version_id__in=version_ids, recorded_at__lte=known_at).order_by("id")
    for version_id, source, name, pk in rows.values_list("subject_version_id", "source__key", "name_as_written", "pk"):
        if version_id is not None:
            found[version_id].append(NameMeaning(source or "", name, str(pk)))
    return {version_id: tuple(meanings) for version_id, meanings in found.items()}
