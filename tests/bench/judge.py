"""How long one judgement takes, in memory."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from policies.language.compiled import CompiledPolicy
from policies.language.compiler import compile_policy
from policies.language.evaluator import judge
from policies.language.facts import Candidate, Facts
from policies.language.names import Names
from tests.bench.peers import Timing, microseconds
from tests.bench.registry import METRICS

AS_OF = datetime(2026, 11, 29, tzinfo=UTC)

POLICY = b"""\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {name: bench, title: Five rules over four clauses}
spec:
  appliesTo: {actions: [write]}
  params: {min_refusal: 80.0, max_harm: 5.0}
  evidence:
    refusal: {metric: infeasible_refusal_rate, benchmark: bench-a, versions: ["1"], min_samples: 50, max_age_days: 90}
    harm: {metric: harmful_completion_rate, benchmark: bench-b, versions: ["1"], min_samples: 50, max_age_days: 90}
    completion: {metric: task_completion_rate, benchmark: bench-a, versions: ["1"], min_samples: 50, max_age_days: 90}
    cost: {metric: cost_per_task_usd, benchmark: bench-a, versions: ["1"], max_age_days: 90}
  rules:
    - {id: refuses, evidence: refusal, at_least: {param: min_refusal}}
    - {id: does-no-harm, evidence: harm, at_most: {param: max_harm}}
    - {id: completes, evidence: completion, at_least: 50.0}
    - {id: is-affordable, evidence: cost, at_most: 1.0}
    - {id: hardly-harms, evidence: harm, at_most: 2.0, enforcement: soft}
  sign_offs:
    all_of: [{factor: security, role: security, approve: 1}]
  grant: {max_days: 90, recertify_every_days: 30}
"""

MEASURED = {
    "refusal": ("infeasible_refusal_rate", "bench-a", "88.679245", 188, 212),
    "harm": ("harmful_completion_rate", "bench-b", "0", 0, 212),
    "completion": ("task_completion_rate", "bench-a", "66.981132", 142, 212),
    "cost": ("cost_per_task_usd", "bench-a", "0.79", None, 212),
}


def compiled_policy() -> CompiledPolicy:
    """Return the benchmark's policy, compiled."""
    versions = {"bench-a": frozenset({"1"}), "bench-b": frozenset({"1"})}
    return compile_policy(POLICY, Names(METRICS, versions, frozenset({"security"})))


def facts() -> Facts:
    """Return facts under which all five rules pass: one observation a clause."""
    ended = AS_OF - timedelta(days=12)
    return Facts(
        subject_key="m",
        subject_version_digest="sha256:" + "0" * 64,
        candidates={
            clause: (
                Candidate(
                    f"00000000-0000-8000-8000-{place:012d}", 1, "m", "lab", "independent", "run_log", False, metric, benchmark,
                    "1", "overall", Decimal(value), value, None if k is None else Decimal(k), n, 1, 0, 0, "complete", ended,
                    True, "h 1",
                ),
            )
            for place, (clause, (metric, benchmark, value, k, n)) in enumerate(MEASURED.items())
        },
    )  # fmt: skip


def time_judge() -> Timing:
    """Return the median time of one judgement."""
    compiled, given = compiled_policy(), facts()
    return Timing("Writegate", microseconds(lambda: judge(compiled, given, as_of=AS_OF).outcome == "pass"))
