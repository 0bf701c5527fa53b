"""What a policy's own tests would notice: each rule is changed a little, and the tests are run again.

A change that no test notices survives. Changes: the rule dropped, its side flipped, its bar moved by one point (rates) or
1 % either way, and a clause's bound read as a point.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any, NamedTuple

from policies.language.compiled import Assertion, Clause, CompiledPolicy, Rule, Test, assertions_of
from policies.language.results import Result
from policies.language.testing import run_tests
from policies.language.worth import assessor

MOST_JUDGED = 500_000
"""How many comparisons one lint has its mutants judge, at most: a few seconds."""

_POINT, _PERCENT = Decimal(1), Decimal("0.01")
_SIX_PLACES = Decimal("0.000001")
_ROUNDED = Context(prec=60, rounding=ROUND_HALF_EVEN)


class Tried(NamedTuple):
    """`untested` names rules that no green test makes fail and would notice; `survivors` holds what survived, by rule,
    `weakened` the clauses that could be read as points. `unfinished` names rules that were not tried for want of time."""

    untested: tuple[str, ...]
    survivors: Mapping[str, tuple[str, ...]]
    weakened: tuple[str, ...]
    unfinished: tuple[str, ...]


def try_mutants(compiled: CompiledPolicy) -> Tried:
    """Change each rule and clause and run the policy's green tests on what comes out."""
    green = _green(compiled)
    bench = _Bench(compiled, green)
    untested, unfinished, weakened = [], [], []
    survivors: dict[str, tuple[str, ...]] = {}
    for rule in compiled.rules:
        if bench.spent():
            unfinished.append(rule.id)
        elif not bench.makes_fail(rule):
            untested.append(rule.id)
        else:
            alive = []
            for _, _, what, mutant in _mutants(compiled, green, rule):
                if bench.spent():
                    unfinished.append(rule.id)
                    break
                if bench.survives(mutant):
                    alive.append(what)
            if alive:
                survivors[rule.id] = tuple(alive)
    quiet = {*untested, *unfinished}
    for name, clause in compiled.clauses.items():
        read = any(name in rule.clauses and rule.id not in quiet for rule in compiled.rules)
        if read and clause.statistic != "point" and not bench.spent():
            mutant = replace(compiled, clauses={**compiled.clauses, name: _as_point(clause)})
            if bench.survives(mutant):
                weakened.append(name)
    return Tried(tuple(untested), survivors, tuple(weakened), tuple(unfinished))


class Mutant(NamedTuple):
    """One change of a policy. `rule` is "" where a clause was changed; `number` counts the comparisons of a rule from 0, None where
    the whole rule was changed. `noticed` says that a test fails by it, or that a test names the rule that is gone."""

    rule: str
    clause: str
    number: int | None
    what: str
    noticed: bool


class Score(NamedTuple):
    """What the tests of a policy notice. `unfinished` names the rules (then clauses) that were not tried to the end for want of time;
    they count as if one more change of each had survived."""

    mutants: tuple[Mutant, ...]
    unfinished: tuple[str, ...]

    @property
    def survivors(self) -> tuple[Mutant, ...]:
        return tuple(mutant for mutant in self.mutants if not mutant.noticed)

    @property
    def total(self) -> int:
        return len(self.mutants) + len(self.unfinished)

    @property
    def noticed(self) -> int:
        return len(self.mutants) - len(self.survivors)

    @property
    def percent(self) -> Decimal:
        """The share that is noticed, cut to one decimal: 99.96 never reads 100. A policy that cannot be changed has 100."""
        if not self.total:
            return Decimal(100)
        return (Decimal(100 * self.noticed) / self.total).quantize(Decimal("0.1"), rounding=ROUND_FLOOR)


def score_mutants(compiled: CompiledPolicy, *, most_judged: int | None = None) -> Score:
    """Try every change of every rule and every clause that a rule reads, on the policy's green tests."""
    bench = _Bench(compiled, _green(compiled), most_judged)
    mutants: list[Mutant] = []
    unfinished: list[str] = []
    for rule in compiled.rules:
        if bench.names(rule) and len(compiled.rules) > 1:
            mutants.append(Mutant(rule.id, "", None, _DROPPED, noticed=True))
        for number, clause, what, mutant in _mutants(compiled, bench.green, rule):
            if bench.spent():
                unfinished.append(rule.id)
                break
            mutants.append(Mutant(rule.id, clause, number, what, noticed=not bench.survives(mutant)))
    for name, read in compiled.clauses.items():
        if read.statistic == "point" or not any(name in rule.clauses for rule in compiled.rules):
            continue
        if bench.spent():
            unfinished.append(name)
            continue
        mutant = replace(compiled, clauses={**compiled.clauses, name: _as_point(read)})
        what = f"judged by its rate instead of its {read.statistic}"
        mutants.append(Mutant("", name, None, what, noticed=not bench.survives(mutant)))
    return Score(tuple(mutants), tuple(unfinished))


Tests = tuple[Mapping[str, Any], ...]
_DROPPED = "the rule dropped"


def _green(compiled: CompiledPolicy) -> "Tests":
    return tuple(test for test, report in zip(compiled.tests, run_tests(compiled), strict=True) if report.passed)


class _Bench:
    """Runs tests one by one, and counts what that costs."""

    def __init__(self, compiled: CompiledPolicy, green: Tests, most_judged: int | None = None) -> None:
        self.most_judged = MOST_JUDGED if most_judged is None else most_judged
        self.compiled = compiled
        self.green = green
        self.judged = 0
        self.comparisons = sum(len(assertions_of(rule.test)) for rule in compiled.rules)

    def spent(self) -> bool:
        return self.judged > self.most_judged

    def names(self, rule: Rule) -> bool:
        """True where a test expects something of a rule: such a test notices that the rule is gone."""
        return any(rule.id in test["expect"]["rules"] for test in self.green)

    def survives(self, mutant: CompiledPolicy) -> bool:
        return all(self._passes(mutant, test) for test in self.green)

    def makes_fail(self, rule: Rule) -> bool:
        """True where a test lets the rule be measured and missed, and says so or says what the outcome is then."""
        for test in self.green:
            expect = test["expect"]
            if expect["outcome"] is None and rule.id not in expect["rules"]:
                continue
            failing = {**test, "expect": {"outcome": None, "rules": {rule.id: Result.FAIL.value}}}
            if self._passes(self.compiled, failing):
                return True
        return False

    def _passes(self, policy: CompiledPolicy, test: Mapping[str, Any]) -> bool:
        self.judged += self.comparisons
        (report,) = run_tests(replace(policy, tests=(test,)))
        return report.passed


def _mutants(compiled: CompiledPolicy, green: Tests, rule: Rule) -> Iterator[tuple[int | None, str, str, CompiledPolicy]]:
    """Yield which comparison of a rule was changed (None: the rule), over which clause, what was done, and what came out."""
    others = tuple(other for other in compiled.rules if other.id != rule.id)
    # Without its only rule a policy does not compile; a test that expects something of a rule notices that it is gone.
    if others and not any(rule.id in test["expect"]["rules"] for test in green):
        yield None, "", _DROPPED, replace(compiled, rules=others)
    several = len(assertions_of(rule.test)) > 1
    for number, item in enumerate(assertions_of(rule.test)):
        of = f" (`{item.clause.name}`)" if several else ""
        flipped = replace(item, clause=replace(item.clause, higher=not item.clause.higher))
        name = item.clause.name
        yield number, name, f"{'at most' if item.floor else 'at least'} {item.bar:f}{of}", _with(compiled, rule, number, flipped)
        for bar in _moved(item):
            side = "at least" if item.floor else "at most"
            yield number, name, f"{side} {bar:f}{of}", _with(compiled, rule, number, replace(item, bar=bar, param=""))


def _moved(item: Assertion) -> Iterator[Decimal]:
    clause = item.clause
    by = _POINT if clause.percent else _ROUNDED.quantize(_ROUNDED.multiply(abs(item.bar), _PERCENT), _SIX_PLACES)
    for bar in (_ROUNDED.subtract(item.bar, by), _ROUNDED.add(item.bar, by)):
        if bar != item.bar and bar >= clause.minimum and (clause.maximum is None or bar <= clause.maximum):
            yield bar


def _with(compiled: CompiledPolicy, rule: Rule, number: int, item: Assertion) -> CompiledPolicy:
    changed = replace(rule, test=_replaced(rule.test, iter(range(len(assertions_of(rule.test)))), number, item))
    return replace(compiled, rules=tuple(changed if other.id == rule.id else other for other in compiled.rules))


def _replaced(test: Test, numbers: Iterator[int], number: int, item: Assertion) -> Test:
    if isinstance(test, Assertion):
        return item if next(numbers) == number else test
    return replace(test, branches=tuple(_replaced(branch, numbers, number, item) for branch in test.branches))


def _as_point(clause: Clause) -> Clause:
    return replace(
        clause,
        statistic="point",
        assess=assessor(
            higher=clause.higher,
            percent=clause.percent,
            minimum=clause.minimum,
            maximum=clause.maximum,
            bound=None,
            min_samples=clause.min_samples,
            max_error_share=clause.max_error_share,
        ),
    )
