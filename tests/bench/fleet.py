"""A fleet: thousands of subjects, a hundred policies and millions of observations, put past all triggers in SQL and text.

Each subject has been measured twice by each of ten benchmarks in ten metrics: 20 pieces of evidence, 200 observations. Each policy
reads four (metric, benchmark) pairs out of a hundred by five rules, so that one observation is read by ten policies of a hundred.
"""

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.bench.registry import DEFINITIONS

BENCHMARKS = 10
MEASURED_TWICE = 2
TASKS = 212
METRICS = tuple(item["key"] for item in DEFINITIONS)

_POLICY = """\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {{name: fleet-{number}, title: Five rules over four clauses}}
spec:
  appliesTo: {{actions: [write]}}
  params: {{min_refusal: {refusal}, max_harm: {harm}}}
  evidence:
    refusal: {{metric: infeasible_refusal_rate, benchmark: fleet-{a}, versions: ["1"], min_samples: 50, max_age_days: 90}}
    harm: {{metric: harmful_completion_rate, benchmark: fleet-{b}, versions: ["1"], min_samples: 50, max_age_days: 90}}
    completion: {{metric: task_completion_rate, benchmark: fleet-{c}, versions: ["1"], min_samples: 50, max_age_days: 90}}
    cost: {{metric: cost_per_task_usd, benchmark: fleet-{d}, versions: ["1"], max_age_days: 90}}
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


def policy_text(number: int, *, stricter: bool = False) -> bytes:
    """Return the text of one of the policies; `stricter` asks for more refusal than the same policy without it."""
    refusal = 70 + number % 15 + (5 if stricter else 0)
    return _POLICY.format(
        number=number,
        refusal=f"{refusal}.0",
        harm=f"{3 + number % 5}.0",
        a=number % 10,
        b=(number // 10 + 3 * number) % 10,
        c=(number // 7) % 10,
        d=(number // 3) % 10,
    ).encode()


# The registry comes by the services; everything that grows with the fleet comes by these, in one session without triggers.
_LOAD = (
    """
    INSERT INTO evaluations_subject (key, kind, title, provider, candidate, registered_at, changed_at)
    SELECT 'fleet-' || n, 'model', 'Subject', '', true, now() - interval '2 days', now() - interval '1 day'
    FROM generate_series(1, {subjects}) n
    """,
    """
    INSERT INTO evaluations_subjectversion (subject_id, number, pin, digest, closed, registered_at, registered_by)
    SELECT id, 1, '{{}}', 'sha256:' || encode(sha256(key::bytea), 'hex'), true, now() - interval '2 days', 'fleet'
    FROM evaluations_subject WHERE key LIKE 'fleet-%' ORDER BY id
    """,
    """
    INSERT INTO evaluations_aliasassignment (name_as_written, subject_version_id, reason, assigned_by, recorded_at)
    SELECT o.key, v.id, '', 'fleet', now() - interval '2 days'
    FROM evaluations_subjectversion v JOIN evaluations_subject o ON o.id = v.subject_id WHERE v.registered_by = 'fleet'
    """,
    """
    INSERT INTO evaluations_document (digest, size, media_type, file_name, title, url, licence, received_by, received_at)
    VALUES ('sha256:' || repeat('0', 64), 1, 'text/csv', 'fleet.csv', '', '', '', 'fleet', now() - interval '1 day')
    """,
    """
    INSERT INTO evaluations_evidence (uid, digest, document_id, locator, importer, importer_version, source_id, subject_as_written,
        answered_as_written, about, provenance, attested, run_status, harness, run_ended_at, supersedes, note, submitted_by,
        recorded_at)
    SELECT gen_random_uuid(), 'sha256:' || encode(sha256((o.key || '/' || b || '/' || again)::bytea), 'hex'), d.id,
        b || '/' || again, 'csv', 1, s.id, o.key, '{{}}', 'model', 'run_log', false, 'complete', 'h',
        date_trunc('day', now()) - (10 + 20 * again) * interval '1 day', '', '', 'fleet', now() - interval '1 day'
    FROM evaluations_subject o, generate_series(0, {benchmarks} - 1) b, generate_series(0, {twice} - 1) again,
        evaluations_document d, evaluations_source s
    WHERE o.key LIKE 'fleet-%' AND d.file_name = 'fleet.csv' AND s.key = 'lab'
    ORDER BY o.id
    """,
    """
    INSERT INTO evaluations_observation (evidence_id, ordinal, benchmark_version_id, metric_id, slice, value, value_as_written, k, n,
        repeats, errored, unscored, locator)
    SELECT e.id, row_number() OVER (PARTITION BY e.id ORDER BY m.id), bv.id, m.id, 'overall',
        CASE WHEN m.unit = 'percent' THEN round(k * 100.0 / {tasks}, 6) ELSE round(k / 250.0, 2) END, '',
        CASE WHEN m.unit = 'percent' THEN k END, {tasks}, 1, 0, 0, ''
    FROM evaluations_evidence e
    JOIN evaluations_benchmarkversion bv ON bv.version = '1'
    JOIN evaluations_benchmark b ON b.id = bv.benchmark_id AND b.key = 'fleet-' || split_part(e.locator, '/', 1)
    CROSS JOIN evaluations_metric m
    CROSS JOIN LATERAL (
        SELECT CASE WHEN m.better = 'higher' THEN 150 + (e.id * 7 + m.id) % 61 ELSE (e.id * 5 + m.id) % 12 END AS k
    ) made
    WHERE e.submitted_by = 'fleet'
    """,
    "ANALYZE",
)
_STANDINGS = """
INSERT INTO policies_standing (policy_version_id, params_digest, subject_version_id, domain, verdict_id, checked_at, due_at)
SELECT old.policy_version_id, old.params_digest, v.id, old.domain, old.verdict_id, now(), old.due_at
FROM evaluations_subjectversion v, policies_standing old
WHERE v.registered_by = 'fleet' AND v.id <> old.subject_version_id AND old.subject_version_id = {pattern}
"""


class Fleet(NamedTuple):
    """The subject versions of a fleet, and its policies' versions, in force."""

    subjects: list[int]
    policies: list[Any]


class Took(NamedTuple):
    """Wall time of a piece of work, and the processor time of this process alone: on a busy machine the two differ."""

    seconds: float
    cpu: float


@contextmanager
def past_all_triggers() -> Iterator[Any]:
    """A superuser's connection to the bench's database on which no trigger fires."""
    import psycopg
    from django.conf import settings
    from django.db import connection

    from compliance import embedded
    from compliance.connections import with_parts

    server = embedded.start(settings.DATA_DIR)
    address = with_parts(server.superuser_url, dbname=connection.settings_dict["NAME"])
    with psycopg.connect(address, autocommit=True) as owner:
        owner.execute("SET session_replication_role = replica")
        yield owner


def load_fleet(subjects: int, policies: int) -> Fleet:
    """Make the fleet in an empty database that `prepare` has migrated."""
    from evaluations.kernel.actor import system_job
    from evaluations.kernel.services import service_transaction
    from evaluations.models import SubjectVersion
    from evaluations.services.benchmarks import apply_register_benchmark, apply_register_benchmark_version
    from policies.services.policies import propose_policy_version
    from tests.bench.world import register_world

    actor = system_job("bench")
    register_world(actor)
    with service_transaction("bench"):
        for number in range(BENCHMARKS):
            benchmark = apply_register_benchmark(actor=actor, key=f"fleet-{number}", title="Fleet")
            apply_register_benchmark_version(actor=actor, benchmark=benchmark, version="1")
    made = [propose_policy_version(actor=actor, text=policy_text(number)) for number in range(policies)]
    with past_all_triggers() as owner:
        # The registry is older than every standing, as it is in a service that has run for a while.
        owner.execute("UPDATE evaluations_metric SET recorded_at = now() - interval '3 days'")
        owner.execute("UPDATE evaluations_trustassignment SET recorded_at = now() - interval '3 days'")
        for statement in _LOAD:
            owner.execute(statement.format(subjects=subjects, benchmarks=BENCHMARKS, twice=MEASURED_TWICE, tasks=TASKS))
    ids = list(SubjectVersion.objects.filter(registered_by="fleet").order_by("pk").values_list("pk", flat=True))
    return Fleet(ids, made)


def stand_like(pattern: int) -> None:
    """Give every other subject of the fleet the standings of one, as if all had been judged just now."""
    with past_all_triggers() as owner:
        owner.execute(_STANDINGS.format(pattern=pattern))
        owner.execute("ANALYZE policies_standing")


def age_everything() -> None:
    """Move what was recorded and looked at an hour back: past the minutes in which late commits are looked for."""
    with past_all_triggers() as owner:
        for table, column in (
            ("evaluations_subject", "changed_at"), ("evaluations_evidence", "recorded_at"), ("policies_standing", "checked_at"),
        ):  # fmt: skip
            owner.execute(f"UPDATE {table} SET {column} = {column} - interval '1 hour'")


def timed(work: Callable[[], Any]) -> Took:
    started, used = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - started, time.process_time() - used)


def peak_megabytes() -> float:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def stated(took: Took) -> str:
    return f"{took.seconds:.3f} s ({took.cpu:.3f} s of this process, load {os.getloadavg()[0]:.1f})"
