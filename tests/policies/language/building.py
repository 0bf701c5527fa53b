"""Made-up names, policies and observations for the tests of the language."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from evaluations.kernel.errors import Problem
from policies.language.compiled import CompiledPolicy
from policies.language.compiler import PolicyRefused, compile_policy
from policies.language.evaluator import Judgement, RuleResult, judge
from policies.language.facts import Candidate, Facts, MetricFacts, Metrics
from policies.language.names import Names

NOW = datetime(2026, 9, 1, tzinfo=UTC)
BENCHMARKS = {
    "enterpriseops-gym-aa": frozenset({"2026-07", "2026-03"}),
    "mole": frozenset({"2026-09"}),
    "demo-bench": frozenset({"1"}),
}
ROLES = frozenset({"requester", "system_owner", "security", "policy_approver"})


def _metric(key: str, unit: str, better: str, level: str, family: str) -> MetricFacts:
    return MetricFacts(key, unit, better, level, family, Decimal(0), Decimal(100) if unit == "percent" else None, f"sha256:{key}")


METRICS = Metrics(
    {
        item.key: item
        for item in (
            _metric("infeasible_refusal_rate", "percent", "higher", "task", "refusal"),
            _metric("over_refusal_rate", "percent", "lower", "task", "refusal"),
            _metric("harmful_completion_rate", "percent", "lower", "outcome", "harm"),
            _metric("task_completion_rate", "percent", "higher", "task", "capability"),
            _metric("verifier_pass_rate", "percent", "higher", "step", "capability"),
            _metric("cost_per_task_usd", "usd", "lower", "task", "cost"),
        )
    }
)
NAMES = Names(METRICS, BENCHMARKS, ROLES)

REFUSAL = """
    refusal: {metric: infeasible_refusal_rate, benchmark: enterpriseops-gym-aa, versions: ["2026-07"], max_age_days: 90}
""".strip("\n")
HARM = """
    harm: {metric: harmful_completion_rate, benchmark: mole, versions: ["2026-09"], max_age_days: 180}
""".strip("\n")
CLOSING = """
  sign_offs: {all_of: [{factor: security, role: security, approve: 1}]}
  grant: {max_days: 90, recertify_every_days: 30}
""".strip("\n")


def policy_text(
    rules: str = "    - {id: refuses, evidence: refusal, at_least: 80}",
    *,
    evidence: str = REFUSAL,
    params: str = "",
    applies: str = "{actions: [write]}",
    metadata: str = "{name: made-up, title: Made up}",
    closing: str = CLOSING,
    more: str = "",
) -> bytes:
    """Return a small policy; each part can be put in, indented as in the default."""
    lines = [
        "apiVersion: writegate/v1",
        "kind: DeploymentPolicy",
        f"metadata: {metadata}",
        "spec:",
        f"  appliesTo: {applies}",
        *([f"  params: {params}"] if params else []),
        "  evidence:",
        evidence,
        "  rules:",
        rules,
        closing,
        *([more] if more else []),
    ]
    return ("\n".join(lines) + "\n").encode()


def compiled(text: bytes | None = None, **parts: Any) -> CompiledPolicy:
    """Compile a text, or `policy_text(**parts)`, against the made-up names."""
    return compile_policy(policy_text(**parts) if text is None else text, NAMES)


def problems_of(text: bytes | None = None, *, names: Names = NAMES, **parts: Any) -> list[Problem]:
    """Return every problem of a text that must be refused."""
    with pytest.raises(PolicyRefused) as refused:
        compile_policy(policy_text(**parts) if text is None else text, names, filename="p.yaml")
    return list(refused.value.problems)


def codes_of(problems: list[Problem]) -> set[str]:
    return {problem.code for problem in problems}


def with_clause(**settings: str) -> CompiledPolicy:
    """Compile one rule (`at_least: 80`) over one refusal clause with further settings."""
    written = "".join(f", {name}: {value}" for name, value in settings.items() if name != "max_age_days")
    age = settings.get("max_age_days", "90")
    clause = (
        "    refusal: {metric: infeasible_refusal_rate, benchmark: enterpriseops-gym-aa, "
        f'versions: ["2026-07"], max_age_days: {age}{written}}}'
    )
    return compiled(evidence=clause)


def observation(value: str | None = None, **stated: Any) -> Candidate:
    """Return an observation of refusal that qualifies in everything it does not state."""
    k, n = stated.pop("k", None), stated.pop("n", None)
    if value is None:
        value = str((Decimal(k) * 100 / Decimal(n)).quantize(Decimal("0.000001")))
    fields: dict[str, Any] = {
        "evidence": "ev-1",
        "ordinal": 0,
        "subject_as_written": "Made-Up 1",
        "source": "lab",
        "trust": "independent",
        "provenance": "reported",
        "attested": False,
        "metric": "infeasible_refusal_rate",
        "benchmark": "enterpriseops-gym-aa",
        "version": "2026-07",
        "slice": "overall",
        "value": Decimal(value),
        "value_as_written": value,
        "k": None if k is None else Decimal(k),
        "n": n,
        "ended_at": NOW - timedelta(days=10),
        "run_ended": True,
    }
    return Candidate(**{**fields, **stated})


def harm(k: int = 0, n: int = 400, **stated: Any) -> Candidate:
    """Return an observation of harm that qualifies in everything it does not state."""
    fields = {"metric": "harmful_completion_rate", "benchmark": "mole", "version": "2026-09", "evidence": "ev-harm"}
    return observation(k=k, n=n, **{**fields, **stated})


def facts(domain: str = "any", params: dict[str, Decimal] | None = None, **candidates: Any) -> Facts:
    """Return facts about a made-up model; each keyword is a clause with its candidates (one, or a tuple)."""
    given = {name: (held,) if isinstance(held, Candidate) else tuple(held) for name, held in candidates.items()}
    return Facts("made-up-1", "sha256:" + "1" * 64, domain, params or {}, given, (), METRICS)


def judged(policy: CompiledPolicy, *, as_of: datetime = NOW, **candidates: Any) -> Judgement:
    """Judge clauses given as keywords."""
    return judge(policy, facts(**candidates), as_of=as_of)


def only_rule(policy: CompiledPolicy, *candidates: Candidate, as_of: datetime = NOW) -> RuleResult:
    """Judge the clause `refusal` of a policy with one rule and return its result."""
    return judged(policy, as_of=as_of, refusal=candidates).rules[0]
