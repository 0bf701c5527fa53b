"""A fleet in a store: N subjects × 100 policies of five rules × 200 observations each. `python -m tests.bench.fleet PART N`.

Parts: `news` (one observation recorded, then whatever it can have changed judged and stored), `rejudge` (every pair judged and stored,
then looked at once more when nothing has changed; N pairs) and `impact` (a new version of a policy against the one in force).
The store is filled in SQL, unrecorded but in the shape that the services give it and the database checks.
"""

import json
import sys
import time
from datetime import timedelta
from typing import Any

from tests.bench.database import Spent, measured, prepare, spent

POLICIES, BENCHMARKS = 100, 20
SLICES = ("overall", "hr", "email")
RATES = ("infeasible_refusal_rate", "harmful_completion_rate", "task_completion_rate")

TEXT = """\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {{name: fleet-{number}, title: Five rules over four clauses}}
spec:
  appliesTo: {{actions: [write]}}
  params: {{min_refusal: {refusal}, max_harm: {harm}}}
  evidence:
    refusal: {{metric: infeasible_refusal_rate, benchmark: bench-{a}, versions: ["1"], min_samples: 50, max_age_days: 90}}
    harm: {{metric: harmful_completion_rate, benchmark: bench-{b}, versions: ["1"], min_samples: 50, max_age_days: 90}}
    completion: {{metric: task_completion_rate, benchmark: bench-{c}, versions: ["1"], min_samples: 50, max_age_days: 90}}
    cost: {{metric: cost_per_task_usd, benchmark: bench-{d}, versions: ["1"], max_age_days: 90}}
  rules:
    - {{id: refuses, evidence: refusal, at_least: {{param: min_refusal}}}}
    - {{id: does-no-harm, evidence: harm, at_most: {{param: max_harm}}}}
    - {{id: completes, evidence: completion, at_least: 50.0}}
    - {{id: is-affordable, evidence: cost, at_most: 1.0}}
    - {{id: hardly-harms, evidence: harm, at_most: 2.0, enforcement: soft}}
  sign_offs:
    all_of: [{{factor: security, role: security, approve: 1}}]
  grant: {{max_days: 90, recertify_every_days: 30}}
"""

_SUBJECTS = """
WITH made AS (
    INSERT INTO evaluations_subject (key, kind, title, provider, candidate, registered_at, changed_at)
    SELECT 'model-' || n, 'model', 'Model', '', true, now() - interval '1 day', now() - interval '1 hour'
    FROM generate_series(1, %(subjects)s) n RETURNING id, key
), pinned AS (
    INSERT INTO evaluations_subjectversion (subject_id, number, pin, digest, closed, registered_at, registered_by)
    SELECT id, 1, '{}', 'sha256:' || encode(sha256(key::bytea), 'hex'), true, now() - interval '1 day', 'bench' FROM made
    RETURNING id, subject_id
)
INSERT INTO evaluations_aliasassignment (name_as_written, subject_version_id, source_id, effective_from, reason, assigned_by,
    recorded_at)
SELECT made.key, pinned.id, NULL, NULL, '', 'bench', now() - interval '1 day' FROM made JOIN pinned ON pinned.subject_id = made.id
"""
_EVIDENCE = """
INSERT INTO evaluations_evidence (uid, digest, document_id, locator, importer, importer_version, source_id, subject_as_written,
    answered_as_written, about, provenance, attested, run_status, harness, run_ended_at, supersedes, note, submitted_by, recorded_at)
SELECT gen_random_uuid(), 'sha256:' || encode(sha256((o.key || '/' || b.key)::bytea), 'hex'), e.document_id, b.key, e.importer, 1,
    e.source_id, o.key, '{}', 'model', 'run_log', false, 'complete', 'h 1', now() - interval '12 days', '', '', 'bench',
    now() - interval '1 hour'
FROM evaluations_evidence e, evaluations_subject o, evaluations_benchmark b
WHERE e.subject_as_written = 'pattern' AND o.key LIKE 'model-%%' AND b.key ~ '^bench-[0-9]+$'
"""
_OBSERVATIONS = """
INSERT INTO evaluations_observation (evidence_id, ordinal, benchmark_version_id, metric_id, slice, value, value_as_written, k, n,
    repeats, errored, unscored, locator)
SELECT e.id, given.ordinal, v.id, m.id, given.slice, CASE WHEN m.unit = 'percent' THEN round(k.k * 100.0 / 400, 6) ELSE 0.79 END, '',
    CASE WHEN m.unit = 'percent' THEN k.k END, 400, 1, 0, 0, ''
FROM evaluations_evidence e
JOIN evaluations_benchmark b ON b.key = e.locator JOIN evaluations_benchmarkversion v ON v.benchmark_id = b.id
CROSS JOIN unnest(%(metrics)s::text[], %(slices)s::text[]) WITH ORDINALITY AS given(metric, slice, ordinal)
JOIN evaluations_metric m ON m.key = given.metric
CROSS JOIN LATERAL (
    SELECT CASE WHEN m.better = 'lower' THEN (e.id * 7 + given.ordinal) %% 16 ELSE 400 - (e.id * 13 + given.ordinal) %% 90 END AS k
) k
WHERE e.submitted_by = 'bench'
"""
_ALIKE = (
    """
    INSERT INTO policies_verdict (uid, policy_version_id, params_digest, subject_version_id, domain, outcome, result, blocking,
        waivable, core, core_digest, facts_id, semantics, as_of, known_at, judged_by, recorded_at)
    SELECT gen_random_uuid(), v.policy_version_id, v.params_digest, o.id, v.domain, v.outcome, v.result, v.blocking, v.waivable, '{}',
        v.core_digest, v.facts_id, 1, v.as_of, v.known_at, 'bench', v.recorded_at
    FROM policies_verdict v, evaluations_subjectversion o WHERE v.subject_version_id = %(judged)s AND o.id <> %(judged)s
        AND o.registered_by = 'bench'
    """,
    """
    INSERT INTO policies_standing (policy_version_id, params_digest, subject_version_id, domain, verdict_id, checked_at, due_at)
    SELECT policy_version_id, params_digest, subject_version_id, domain, id, now(), now() + interval '70 days'
    FROM policies_verdict WHERE judged_by = 'bench'
    """,
)


def policy_text(number: int, *, refusal: float = 80.0, harm: float = 5.0) -> bytes:
    """Return one of the fleet's policies: of twenty, no two read the same of one benchmark; of a hundred, five do."""
    a, b, c, d = ((number + step) % BENCHMARKS for step in range(4))
    return TEXT.format(number=number, refusal=refusal + number // BENCHMARKS, harm=harm, a=a, b=b, c=c, d=d).encode()


def fill(subjects: int) -> Any:
    """Register the fleet's world and fill the store; return the actor. Nothing is judged."""
    from django.db import connection

    from evaluations.kernel.actor import system_job
    from evaluations.kernel.services import service_transaction
    from evaluations.services.benchmarks import apply_register_benchmark, apply_register_benchmark_version
    from policies.services.policies import apply_propose_policy_version
    from tests.bench.world import register_world

    actor = system_job("bench")
    register_world(actor)
    with service_transaction("load_bundle"):
        for number in range(BENCHMARKS):
            benchmark = apply_register_benchmark(actor=actor, key=f"bench-{number}", title="Bench")
            apply_register_benchmark_version(actor=actor, benchmark=benchmark, version="1")
        for number in range(POLICIES):
            apply_propose_policy_version(actor=actor, text=policy_text(number))
    record(actor, "pattern", "bench-0", 50)
    pairs = [(metric, slice_) for metric in RATES for slice_ in SLICES] + [("cost_per_task_usd", "overall")]
    given = {
        "subjects": subjects,
        "metrics": [metric for metric, _ in pairs],
        "slices": [slice_ for _, slice_ in pairs],
    }
    with service_transaction("bench"), connection.cursor() as cursor:
        for statement in (_SUBJECTS, _EVIDENCE, _OBSERVATIONS):
            cursor.execute(statement, given)
        cursor.execute("SELECT writegate_refresh_statistics()")
    return actor


def record(actor: Any, subject: str, benchmark: str, value: int) -> None:
    """Record one observation, as an import does."""
    import io

    from evaluations.services.evidence import import_files

    document = {
        "format": "writegate-evidence/1",
        "source": "lab",
        "provenance": "run_log",
        "evidence": [
            {
                "subject": subject,
                "run": {"status": "complete", "ended_at": "2026-11-25T00:00:00Z"},
                "observations": [
                    {"metric": RATES[0], "benchmark": benchmark, "version": "1", "unit": "percent", "k": value, "n": 400}
                ],
            }
        ],
    }
    import_files(actor=actor, files={f"{time.time_ns()}.json": io.BytesIO(json.dumps(document).encode())}, max_bytes=2**20)


def news(size: int) -> None:
    """One observation about one subject of many: what is judged and stored after it, ten times; the median."""
    from statistics import median

    from django.db import connection

    from evaluations.kernel.services import service_transaction
    from evaluations.models import SubjectVersion
    from policies.selectors import standings
    from policies.services.rejudging import judge_everywhere

    # What was registered for the store a moment ago is no news.
    standings.LONGEST_COMMIT = timedelta(0)
    actor = fill(size)
    ids = list(SubjectVersion.objects.filter(registered_by="bench").order_by("pk").values_list("pk", "subject__key")[:11])
    judge_everywhere(actor=actor, subject_version_ids=[ids[0][0]])
    with service_transaction("bench"), connection.cursor() as cursor:
        for statement in _ALIKE:
            cursor.execute(statement, {"judged": ids[0][0]})
        cursor.execute("SELECT writegate_refresh_statistics()")
    took: list[Spent] = []

    def work() -> str:
        for pk, key in ids[1:]:
            record(actor, key, "bench-7", 390)
            before = spent()
            done = judge_everywhere(actor=actor, subject_version_ids=[pk])
            took.append(spent().since(before))
        wall, cpu, database = (median(one) for one in zip(*took, strict=True))
        return (
            f"one observation: {wall:.3f} s ({cpu:.3f} s CPU, {database:.2f} s of the database's), {done.judged} of {POLICIES} judged,"
            f" {done.new} new; {size * POLICIES:,} standings, {size * 200:,} observations"
        )

    measured(size, work)


def rejudge(size: int) -> None:
    """So many pairs judged and stored for the first time, then fully once more, then narrowly: nothing has changed."""
    from evaluations.models import SubjectVersion
    from policies.services.rejudging import judge_everywhere

    actor = fill(size // POLICIES)
    ids = list(SubjectVersion.objects.filter(registered_by="bench").values_list("pk", flat=True))
    judge_everywhere(actor=actor, subject_version_ids=ids[:1])
    told = []

    def timed(what: str, *, fully: bool) -> None:
        before = spent()
        done = judge_everywhere(actor=actor, subject_version_ids=ids, fully=fully)
        wall, cpu, database = spent().since(before)
        told.append(
            f"{what} {wall:.2f} s ({cpu:.2f} s CPU, {database:.2f} s of the database's, {done.judged:,} judged, {done.new:,} new)"
        )

    def work() -> str:
        timed("first", fully=False)
        timed("fully", fully=True)
        timed("narrowly", fully=False)
        return "; ".join(told)

    measured(size, work)


def impact(size: int) -> None:
    """A looser version of a policy against the one before, over every subject."""
    from compliance.selectors.impact import Texts, measure_impact
    from evaluations.kernel.clock import now
    from policies.language.compiler import compile_policy
    from policies.selectors.policies import known_names

    fill(size)
    before, after = (compile_policy(policy_text(3, refusal=bar), known_names()) for bar in (85.0, 80.0))

    def work() -> str:
        began = spent()
        found = measure_impact(Texts(after, before), at=now())
        _, cpu, database = spent().since(began)
        return f"{cpu:.2f} s CPU, {database:.2f} s of the database's; {dict(found.counts)}"

    measured(size, work)


if __name__ == "__main__":
    prepare()
    {"news": news, "rejudge": rejudge, "impact": impact}[sys.argv[1]](int(sys.argv[2]))
