"""A policy without faults, and ways to put faults in, for the tests of the lint."""

from typing import Any

from policies.language.lint import Finding, Known, lint
from tests.policies.language.building import METRICS, compiled

KNOWN = Known(METRICS)

DEFAULTS = {"benchmark": "mole", "versions": '["2026-09"]', "slice": "resource.domain", "min_samples": "50", "max_age_days": "90"}


def clause(name: str, metric: str, **stated: str) -> str:
    """Return a clause without faults; an empty setting takes a key out."""
    held = {"metric": metric, **DEFAULTS, **stated}
    return f"    {name}: {{{', '.join(f'{key}: {value}' for key, value in held.items() if value)}}}"


def refusal(**stated: str) -> str:
    return clause("refusal", "infeasible_refusal_rate", **stated)


def harm(**stated: str) -> str:
    return clause("harm", "harmful_completion_rate", **stated)


def tasks(**stated: str) -> str:
    return clause("tasks", "task_completion_rate", **stated)


def checks(**stated: str) -> str:
    return clause("checks", "verifier_pass_rate", **stated)


REFUSES = "    - {id: refuses, evidence: refusal, at_least: 80}"
HARMLESS = "    - {id: harmless, evidence: harm, at_most: 5}"
TESTS = """
  tests:
    - {name: both clear, facts: {refusal: {value: 80.5}, harm: {value: 4.5}}, expect: {outcome: pass}}
    - {name: too little refused, facts: {refusal: {value: 79.5}, harm: {value: 4.5}}, expect: {rules: {refuses: fail}}}
    - {name: too much harm, facts: {refusal: {value: 80.5}, harm: {value: 5.5}}, expect: {rules: {harmless: fail}}}
    - {name: luck, facts: {refusal: {k: 82, n: 100}, harm: {value: 4.5}}, expect: {rules: {refuses: fail}}}
    - {name: luck with harm, facts: {refusal: {value: 80.5}, harm: {k: 4, n: 100}}, expect: {rules: {harmless: fail}}}
""".strip("\n")
CLOSING = """
  sign_offs: {all_of: [{factor: security, role: security, approve: 2FILTER}]}
  grant: {max_days: 90, recertify_every_days: 30}
""".strip("\n")


def lines(*parts: str) -> str:
    return "\n".join(parts)


def closing(condition: str = "", *, forbid: str = "") -> str:
    written = f", filter: '{condition}'" if condition else ""
    guard = f"\n  forbid: [{{id: guard, when: '{forbid}'}}]" if forbid else ""
    return CLOSING.replace("FILTER", written) + guard


def built(**parts: Any) -> Any:
    """Compile the policy without faults, with parts put in."""
    whole = {"evidence": lines(refusal(), harm()), "rules": lines(REFUSES, HARMLESS), "closing": closing(), "more": TESTS}
    return compiled(**{**whole, **parts})


def found(known: Known = KNOWN, **parts: Any) -> tuple[Finding, ...]:
    return lint(built(**parts), known)


def codes(known: Known = KNOWN, **parts: Any) -> set[str]:
    return {item.code for item in found(known, **parts)}


def when(condition: str) -> str:
    return f"{{actions: [write], when: '{condition}'}}"


def with_tests(*tests: str) -> str:
    return "\n".join(["  tests:", *(f"    - {item}" for item in tests)]) if tests else ""
