"""Runs the tests that travel with a policy: made-up observations in, the judge's answer held against what the author expects.

A test fact qualifies in everything that it does not state: trust, provenance, version, slice, age and, where the clause
needs a sample, one so large that its bound is the rate itself. A bare `result` is brought about by facts too, and where the
clause cannot give it the test says so: nothing goes round the judge.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from policies.language.compiled import Assertion, Clause, CompiledPolicy, Test
from policies.language.evaluator import judge
from policies.language.facts import Candidate, Candidates, Facts
from policies.language.judgement import Judgement, RuleResult
from policies.language.results import COMPLETE, Result, Ruling
from policies.language.statistics import tally

MADE_UP_NOW = datetime(2000, 1, 1, tzinfo=UTC)  # any instant does: ages are counted back from it
MADE_UP_DOMAIN = "made-up"
_PLENTY = 1_000_000_000
_OLDEST_DAYS = 100_000  # older than any age limit; what is older still is treated alike
_STEP = Decimal(1)


@dataclass(frozen=True, slots=True)
class TestReport:
    """One test of a policy; `problems` says in plain sentences what came out otherwise than expected."""

    __test__ = False  # not a test class, whatever a test runner thinks of its name

    name: str
    passed: bool
    problems: tuple[str, ...]


def run_tests(compiled: CompiledPolicy) -> tuple[TestReport, ...]:
    """Run every test of a policy, in the order of the text. A policy without tests gives no report."""
    reports = []
    for test in compiled.tests:
        problems = tuple(_problems(compiled, test))
        reports.append(TestReport(test["name"], not problems, problems))
    return tuple(reports)


def _problems(compiled: CompiledPolicy, test: Mapping[str, Any]) -> Iterator[str]:
    unstated = [
        name
        for name, fact in test["facts"].items()
        if not compiled.clauses[name].percent and any("value" not in stated for stated in fact.get("observations", ()))
    ]
    if unstated:
        yield from (f"`{name}` is no rate, so k and n do not give its value: state `value`" for name in unstated)
        return
    candidates = {name: tuple(_observations(compiled, compiled.clauses[name], fact)) for name, fact in test["facts"].items()}
    judgement = judge_made_up(compiled, candidates)
    for name, fact in test["facts"].items():
        if "result" in fact:
            yield from _impossible(name, fact["result"], judgement.rules)
    expected = test["expect"]["outcome"]
    if expected is not None and expected != judgement.outcome:
        yield f"the outcome is `{judgement.outcome}`, not `{expected}`"
    results = {rule.id: rule for rule in judgement.rules}
    for name, wanted in test["expect"]["rules"].items():
        got = results[name]
        if got.result != wanted:
            yield f"rule `{name}` gives `{got.result}` ({got.reason.replace('_', ' ')}), not `{wanted}`"


def judge_made_up(compiled: CompiledPolicy, candidates: Candidates, domain: str = MADE_UP_DOMAIN) -> Judgement:
    """Judge made-up observations of a made-up model, in a domain."""
    return judge(compiled, Facts(MADE_UP_DOMAIN, MADE_UP_DOMAIN, domain, candidates=candidates), as_of=MADE_UP_NOW)


def _impossible(clause: str, wanted: str, rules: tuple[RuleResult, ...]) -> Iterator[str]:
    """Say where a clause does not give the bare result that a test asks of it."""
    got = {leaf.result for rule in rules for leaf in _leaves(rule) if leaf.clause == clause}
    if got - {wanted}:
        others = " and ".join(f"`{word}`" for word in sorted(got - {wanted}))
        yield f"`{clause}` cannot be `{wanted}` by its clause and bars; it gives {others}"


def _leaves(result: RuleResult) -> Iterator[RuleResult]:
    if not result.children:
        yield result
    for child in result.children:
        yield from _leaves(child)


def _observations(compiled: CompiledPolicy, clause: Clause, fact: Mapping[str, Any]) -> Iterator[Candidate]:
    stated = fact["observations"] if "result" not in fact else _bringing_about(compiled, clause, fact["result"])
    for place, observation in enumerate(stated):
        yield made_up(clause, observation, place)


def _bringing_about(compiled: CompiledPolicy, clause: Clause, result: str) -> tuple[Mapping[str, Any], ...]:
    """Return what to state for a clause to give a result under any of its bars, as far as it can."""
    best, worst = extremes(compiled, clause)
    days = None if clause.max_age is None else clause.max_age.days + 1
    recipes: Mapping[str, tuple[Mapping[str, Any], ...]] = {
        Result.PASS: ({"value": best},),
        Result.FAIL: ({"value": worst},),
        Result.MISSING: (),
        Result.STALE: ({"value": best} if days is None else {"value": best, "age_days": days},),
        Result.CONTESTED: ({"value": best, "ruling": Ruling.DISPUTED.value},),
        Result.ERROR: ({"value": clause.minimum - _STEP},),
    }
    return recipes[result]


def extremes(compiled: CompiledPolicy, clause: Clause) -> tuple[Decimal, Decimal]:
    """Return the best and the worst value of a clause: the ends of its metric's range, or beyond every bar where that is open."""
    lowest, highest = clause.minimum, clause.maximum
    if highest is None:
        highest = max([lowest, *(bar for rule in compiled.rules for bar in _bars(rule.test, clause))]) + _STEP
    return (highest, lowest) if clause.higher else (lowest, highest)


def _bars(test: Test, clause: Clause) -> Iterator[Decimal]:
    if isinstance(test, Assertion):
        if test.clause.name == clause.name:
            yield test.bar
    else:
        for branch in test.branches:
            yield from _bars(branch, clause)


def made_up(clause: Clause, stated: Mapping[str, Any], place: int = 0) -> Candidate:
    """Return an observation that qualifies for a clause in everything that is not stated."""
    needs_sample = clause.statistic != "point" or clause.min_samples is not None or clause.max_error_share is not None
    n = stated.get("n", _PLENTY if needs_sample else None)
    k = stated["k"] if "k" in stated and "n" in stated else None
    errored, unscored = stated.get("errored", 0), stated.get("unscored", 0)
    value = stated.get("value")
    if value is None:
        value = tally(stated["k"], stated["n"], errored + unscored, clause.higher)[0]
    return Candidate(
        evidence=f"{clause.name}-{place}",
        ordinal=place,
        subject_as_written=MADE_UP_DOMAIN,
        source=stated.get("source", MADE_UP_DOMAIN),
        trust=stated.get("trust", clause.min_trust),
        provenance=stated.get("provenance", clause.min_provenance),
        attested=stated.get("attested", clause.require_attestation),
        metric=clause.metric,
        benchmark=clause.benchmark,
        version=stated.get("version", min(clause.versions)),
        slice=stated.get("slice", MADE_UP_DOMAIN if clause.by_domain else clause.slice),
        value=value,
        k=k,
        n=n,
        repeats=stated.get("repeats"),
        errored=errored,
        unscored=unscored,
        run_status=stated.get("run_status", COMPLETE),
        ended_at=MADE_UP_NOW - timedelta(days=min(stated.get("age_days", 0), _OLDEST_DAYS)),
        run_ended=True,
        harness=stated.get("harness", ""),
        about=clause.about,
        ruling=stated.get("ruling", ""),
    )
