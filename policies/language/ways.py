"""The smallest measurements that clear a bar: how many tasks, with how many successes, at what cost. Pure.

Rates are judged by exact one-sided bounds (`statistics`). A round rate is spoken of only at sample sizes where it is a whole
count: 90 % of 50 is 45, which clears 80 at 95 % confidence, and so does every larger sample of which 90 % is a whole number.
"""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from policies.language.compiled import Clause
from policies.language.statistics import bound_function

MOST_TASKS = 20_000
"""Beyond so many tasks nobody is told to go."""

_EXACT = Context(prec=60)
_HUNDRED = Decimal(100)
_CENT = Decimal("0.01")


class TaskCost(NamedTuple):
    """What one task costs a subject on a benchmark, in USD."""

    usd: Decimal
    benchmark: str


class Way(NamedTuple):
    """One measurement that clears a bar. `k` of `n` counts successes where higher is better, else failures; errored and unscored
    tasks count against the subject. `rate` is k/n in percent, `bound` its bound (None where the statistic is the point). `onward` says
    that every larger sample with this very rate clears it too. `cost_usd` is that of `n` tasks, None where it is not known."""

    k: int
    n: int
    rate: Decimal
    bound: Decimal | None
    onward: bool
    cost_usd: Decimal | None = None


def ways_to_clear(clause: Clause, bar: Decimal, *, same_n: int | None = None, cost: TaskCost | None = None) -> tuple[Way, ...]:
    """Return the measurements to speak of, the fewest tasks first: a run without a miss, one half-way between bar and perfect, and
    one of `same_n` tasks. Empty where the metric is no rate, where no number of tasks is asked for, or where none is enough.
    """
    if not clause.percent or (clause.statistic == "point" and clause.min_samples is None):
        return ()
    least = max(clause.min_samples or 1, 1)
    shape = (clause.statistic, clause.confidence, bar, clause.higher)
    found: dict[tuple[int, int], Way] = {}
    perfect = _HUNDRED if clause.higher else Decimal(0)
    for rate in dict.fromkeys((perfect, half_way(bar, perfect))):
        n = samples_needed(*shape, rate, least)
        if n is not None:
            k = int(_EXACT.divide(_EXACT.multiply(rate, Decimal(n)), _HUNDRED))
            found.setdefault((k, n), _way(clause, k, n, onward=True))
    if same_n is not None and least <= same_n <= MOST_TASKS:
        count = count_needed(*shape, same_n)
        if count is not None:
            found.setdefault((count, same_n), _way(clause, count, same_n, onward=False))
    ways = sorted(found.values(), key=lambda way: way.n)
    return tuple(way._replace(cost_usd=_total(cost, way.n)) for way in ways)


@lru_cache(maxsize=4_096)
def samples_needed(
    statistic: str,
    confidence: Decimal,
    bar: Decimal,
    higher: bool,  # noqa: FBT001 - a memo's key, always given by name of its variable
    rate: Decimal,
    least: int = 1,
) -> int | None:
    """Return the number of tasks, at least `least`, from which on an observed rate (percent) clears a bar; None where none up to
    `MOST_TASKS` does. Only sample sizes count of which the rate is a whole number: those can be observed.
    """
    clears = _clears(statistic, confidence, bar, higher)
    share = Fraction(rate) / 100
    step = share.denominator
    # Of one rate, the larger sample has the better bound: the smallest that clears is found by halving.
    low, high = -(-least // step), MOST_TASKS // step
    if low > high or not clears(int(share * high * step), high * step):
        return None
    while low < high:
        middle = (low + high) // 2
        if clears(int(share * middle * step), middle * step):
            high = middle
        else:
            low = middle + 1
    return low * step


@lru_cache(maxsize=4_096)
def count_needed(
    statistic: str,
    confidence: Decimal,
    bar: Decimal,
    higher: bool,  # noqa: FBT001 - likewise
    n: int,
) -> int | None:
    """Return the fewest successes (most failures, where lower is better) of n tasks that clear a bar; None where none do."""
    clears = _clears(statistic, confidence, bar, higher)
    if not clears(n if higher else 0, n):
        return None
    # Successes from 0 to n: none up to `low` clears, all from `high` on do.
    low, high = -1, n
    while high - low > 1:
        middle = (low + high) // 2
        if clears(middle if higher else n - middle, n):
            high = middle
        else:
            low = middle
    return high if higher else n - high


def rate_of(k: int, n: int, *, higher: bool) -> Decimal:
    """Return k/n in percent, rounded against the subject to six decimals."""
    rounding = Context(prec=60, rounding=ROUND_FLOOR if higher else ROUND_CEILING)
    return rounding.quantize(rounding.divide(Decimal(k * 100), Decimal(n)), Decimal("0.000001"))


def _clears(statistic: str, confidence: Decimal, bar: Decimal, higher: bool) -> Callable[[int, int], bool]:  # noqa: FBT001
    if statistic == "point":
        return lambda k, n: rate_of(k, n, higher=higher) >= bar if higher else rate_of(k, n, higher=higher) <= bar
    bound = bound_function(statistic, confidence)
    return lambda k, n: bound(k, n) >= bar if higher else bound(k, n) <= bar


def _way(clause: Clause, k: int, n: int, *, onward: bool) -> Way:
    bound = None if clause.statistic == "point" else bound_function(clause.statistic, clause.confidence)(k, n)
    return Way(k, n, rate_of(k, n, higher=clause.higher), bound, onward)


def half_way(bar: Decimal, perfect: Decimal) -> Decimal:
    """Return the rate in the middle, to the nearest tenth on the side of the bar, so that small samples can show it."""
    half = _EXACT.divide(_EXACT.add(bar, perfect), Decimal(2))
    rounding = ROUND_FLOOR if perfect else ROUND_CEILING
    for places in (0, 1, 2):
        rate = half.quantize(Decimal(1).scaleb(-places), rounding=rounding, context=_EXACT)
        if bar < rate < perfect if perfect else perfect < rate < bar:
            return rate
    return perfect


def _total(cost: TaskCost | None, tasks: int) -> Decimal | None:
    if cost is None:
        return None
    return Context(prec=60, rounding=ROUND_CEILING).quantize(_EXACT.multiply(cost.usd, Decimal(tasks)), _CENT)
