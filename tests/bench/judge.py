"""How long one judgement takes, in memory."""

import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from policies.language.compiled import CompiledPolicy
from policies.language.compiler import compile_policy
from policies.language.evaluator import judge
from policies.language.facts import Candidate, Facts, Shared
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


RULES_OF_A_LONG_TEXT = 50


CLAUSE = '{metric: infeasible_refusal_rate, benchmark: bench-a, versions: ["1"], min_samples: 50, max_age_days: 90}'


def long_text(rules: int = RULES_OF_A_LONG_TEXT) -> bytes:
    """Return a policy text of so many rules, five of which read each of its clauses."""
    clauses = [f"    refusal-{place}: {CLAUSE}" for place in range(0, rules, 5)]
    written = [
        f"    - {{id: rule-{place}, evidence: refusal-{place - place % 5}, at_least: {60 + place % 5 * 5}.0}}"
        for place in range(rules)
    ]
    head, _, rest = POLICY.decode().partition("  params:")
    closing = "  sign_offs:" + rest.partition("  sign_offs:")[2]
    return "\n".join([f"{head}  evidence:", *clauses, "  rules:", *written, closing]).encode()


def time_compile() -> Timing:
    """Return the median time of compiling a text of fifty rules."""
    names = Names(METRICS, {"bench-a": frozenset({"1"})}, frozenset({"security"}))
    text = long_text()
    return Timing("compile", microseconds(lambda: len(compile_policy(text, names).rules) == RULES_OF_A_LONG_TEXT))


def time_verdicts(count: int, policies: int = 100) -> tuple[float, float]:
    """Return the seconds, and those of CPU, of so many verdicts in memory: subjects, each with facts of its own, under a hundred
    policies of five rules that read alike and ask otherwise."""
    versions = {"bench-a": frozenset({"1"}), "bench-b": frozenset({"1"})}
    names = Names(METRICS, versions, frozenset({"security"}))
    compiled = [
        compile_policy(
            POLICY.replace(b"80.0", str(70 + number / 10).encode()).replace(b"{name: bench,", b"{name: bench-%d," % number), names
        )
        for number in range(policies)
    ]
    base = facts()
    made = [
        base._replace(
            subject_key=f"m-{number}",
            candidates={
                clause: tuple(item if item.k is None else item._replace(k=item.k - number % 7 * (item.k > 10)) for item in items)
                for clause, items in base.candidates.items()
            },
        )
        for number in range(count // policies)
    ]
    judge(compiled[0], base, as_of=AS_OF)
    began, busy = time.perf_counter(), time.process_time()
    for held in made:
        shared = Shared()
        for policy in compiled:
            judge(policy, held, as_of=AS_OF, shared=shared)
    return time.perf_counter() - began, time.process_time() - busy


def time_judge() -> Timing:
    """Return the median time of one judgement."""
    compiled, given = compiled_policy(), facts()
    return Timing("Writegate", microseconds(lambda: judge(compiled, given, as_of=AS_OF).outcome == "pass"))
