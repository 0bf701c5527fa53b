"""Probing what a policy's rules mean: made-up observations go through the real judge, and the lint looks at what comes out.

Nothing here reads a policy's words. Whether a statistic is a point, a floor of samples is one, or a harm rule asks for
anything is seen from what passes.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from policies.language.compiled import Assertion, Clause, CompiledPolicy, Rule, assertions_of
from policies.language.facts import Candidate
from policies.language.judgement import Judgement
from policies.language.results import OVERALL_SLICE, Enforcement, Outcome, Result
from policies.language.statistics import bound_function
from policies.language.testing import MADE_UP_DOMAIN, extremes, judge_made_up, made_up

FEW_SAMPLES = 30
"""Fewer tasks than this are no sample: what passes on them has no floor."""

LONG_AGO_DAYS = 1_096
"""Three years: what still counts after them has no age limit, whatever number is written."""

_HALF, _HAIR, _HUNDRED = Decimal(50), Decimal("0.000001"), Decimal(100)
_POINT_SAMPLES, _MANY = 1_000, 1_000_000_000
_CLEARANCE = Decimal("0.7")  # of one task: what the median of the rate's uncertainty would still take away is less


class Slip(NamedTuple):
    """A way in which a policy passes with perfect refusal. `state` is what is known of harm: missing, worst or above_half.
    `unasked` names harm clauses that speak of another slice than the question's `domain`."""

    state: str
    domain: str
    unasked: tuple[str, ...]


def deciding(compiled: CompiledPolicy) -> Iterator[tuple[Rule, int, Assertion]]:
    """Yield every comparison of the rules that decide, with its rule and its place in it."""
    for rule in compiled.rules:
        if rule.enforcement != Enforcement.ADVISORY:
            for number, assertion in enumerate(assertions_of(rule.test)):
                yield rule, number, assertion


def gives(compiled: CompiledPolicy, assertion: Assertion, *observations: Candidate, domain: str = MADE_UP_DOMAIN) -> str:
    """Return what one comparison gives by these observations alone."""
    clause = assertion.clause
    rule = Rule("probe", Enforcement.HARD.value, assertion, (clause.name,), clause.about == "model", "")
    alone = replace(compiled, rules=(rule,), clauses={clause.name: clause})
    return judge_made_up(alone, {clause.name: observations}, domain).rules[0].result


def best(compiled: CompiledPolicy, clause: Clause, **stated: Any) -> Candidate:
    """Return an observation with the best value that qualifies in everything that is not stated."""
    return made_up(clause, {"value": extremes(compiled, clause)[0], **stated})


def worst(compiled: CompiledPolicy, clause: Clause, **stated: Any) -> Candidate:
    """Return an observation with the worst value that qualifies in everything that is not stated."""
    return made_up(clause, {"value": extremes(compiled, clause)[1], **stated})


# The whole policy.


def refusal_slip(compiled: CompiledPolicy, harm: Collection[str], domains: Iterable[str]) -> Slip | None:
    """Return how the policy passes, or needs only a waiver, with all but harm at its best; None where harm stops it.

    `harm` names the clauses over metrics of harm. A harm clause on a slice that the question is not about says nothing
    about it: it is at its best, and harm counts as not known.
    """
    states: Mapping[str, Callable[[Clause], Candidate | None]] = {
        "missing": lambda clause: None,
        "worst": lambda clause: worst(compiled, clause),
        "above_half": _above_half,
    }
    waivers = {rule.id for rule in compiled.rules if rule.can_be_waived}
    for domain in domains:
        unasked = tuple(name for name in compiled.clauses if name in harm and not _is_about(compiled.clauses[name], domain))
        for state, make in states.items():
            candidates = {}
            for name, clause in compiled.clauses.items():
                asked_harm = name in harm and name not in unasked
                found = make(clause) if asked_harm else best(compiled, clause)
                if found is not None:
                    candidates[name] = (_in_domain(found, clause, domain),)
            judgement = judge_made_up(compiled, candidates, domain)
            if not judgement.blocking and waivers.issuperset(judgement.waivable):
                return Slip(state, domain, unasked)
    return None


def _is_about(clause: Clause, domain: str) -> bool:
    return clause.by_domain or clause.slice in {OVERALL_SLICE, domain}


def _above_half(clause: Clause) -> Candidate | None:
    """Return an observation whose judged statistic is a hair on the bad side of one half; None where there are no halves."""
    if not clause.percent:
        return None
    if clause.statistic == "point":
        return made_up(clause, {"value": _HALF - _HAIR if clause.higher else _HALF + _HAIR})
    # The bound is judged, not the rate: the count is looked for whose bound is the nearest to one half.
    n = max(_MANY, clause.min_samples or 0)
    bound = bound_function(clause.statistic, clause.confidence)
    good, bad = (n, 0) if clause.higher else (0, n)
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        if (bound(middle, n) < _HALF) if clause.higher else (bound(middle, n) > _HALF):
            bad = middle
        else:
            good = middle
    return made_up(clause, {"k": Decimal(bad), "n": n})


def _in_domain(item: Candidate, clause: Clause, domain: str) -> Candidate:
    return item._replace(slice=domain) if clause.by_domain else item


def stands_alone(compiled: CompiledPolicy, name: str, beside: Collection[str]) -> bool:
    """Say whether a clause at its best lets the policy pass with those `beside` it missing or at their worst, and carries it."""
    held = {other: (best(compiled, clause),) for other, clause in compiled.clauses.items() if other not in beside}
    at_worst = {other: (worst(compiled, compiled.clauses[other]),) for other in beside}
    for candidates in (held, {**held, **at_worst}):
        without = {other: found for other, found in candidates.items() if other != name}
        if _passes(judge_made_up(compiled, candidates)) and not _passes(judge_made_up(compiled, without)):
            return True
    return False


def _passes(judgement: Judgement) -> bool:
    return judgement.outcome == Outcome.PASS


# One clause, by the comparisons that decide.


class ClauseProbe:
    """What a clause lets through, seen by each deciding comparison over it."""

    def __init__(self, compiled: CompiledPolicy, clause: Clause, assertions: Iterable[Assertion]) -> None:
        self.compiled = compiled
        self.clause = clause
        self.assertions = tuple(dict.fromkeys(assertions))

    def accepts(self, *observations: Candidate, domain: str = MADE_UP_DOMAIN) -> bool:
        """True where one of the comparisons passes by these observations alone."""
        return any(gives(self.compiled, item, *observations, domain=domain) == Result.PASS for item in self.assertions)

    def accepts_best(self, **stated: Any) -> bool:
        return self.accepts(best(self.compiled, self.clause, **stated))

    def passes_on_a_point(self) -> bool:
        """A rate that clears a bar by less than chance does, in a sample of ordinary size, still passes."""
        clause = self.clause
        if not clause.percent:
            return False
        n = max(_POINT_SAMPLES, clause.min_samples or 0)
        for item in self.assertions:
            tasks = item.bar * n / _HUNDRED
            k = int(tasks + _CLEARANCE) + 1 if clause.higher else int(tasks - _CLEARANCE)
            if tasks in ((0,) if clause.higher else (n,)):
                continue  # such a bar always passes, which is another finding
            near = made_up(clause, {"k": Decimal(min(max(k, 0), n)), "n": n})
            if gives(self.compiled, item, near) == Result.PASS:
                return True
        return False

    def smallest_sample(self) -> int | None:
        """Return how few perfect tasks pass, 0 where no number need be stated, None from `FEW_SAMPLES` on."""
        perfect = best(self.compiled, self.clause)
        if self.accepts(perfect._replace(n=None, k=None)):
            return 0
        return next((n for n in range(1, FEW_SAMPLES) if self.accepts(perfect._replace(n=n, k=None))), None)

    def has_no_age_limit(self) -> bool:
        return self.accepts_best(age_days=LONG_AGO_DAYS)

    def looks_past(self, domain: str) -> bool:
        """True where a rate passes although that of the question's domain is at its worst."""
        clause = self.clause
        if not clause.percent:
            return False
        where = domain if clause.by_domain else clause.slice
        good = best(self.compiled, clause, slice=where)
        bad = worst(self.compiled, clause, slice=domain)._replace(evidence="in-the-domain", source="another")
        return self.accepts(good, bad, domain=domain)
