"""Rates and their one-sided confidence bounds, exact at the last digit and always rounded against the subject.

Rates: an errored or unscored task is a failure of the subject. With k and n, the rate is k/n where higher is better and
(k + errored + unscored)/n where lower is better; six decimals of a percent are kept, rounded down and up respectively.
Because a bar has at most six decimals, comparing the rounded rate with it decides as the exact fraction would.

Bounds: Clopper and Pearson (Biometrika 26, 1934), one-sided: the lower bound for k of n at confidence c is the (1 - c)
quantile of Beta(k, n - k + 1), the upper bound the c quantile of Beta(k + 1, n - k).
"""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import Any

_MEMO = 65_536
_HUNDRED = Decimal(100)
_ZERO = Decimal(0)
# A context of our own: results must not depend on what the calling thread did to its decimal context.
_EXACT = Context(prec=60)
_DOWN = Context(prec=60, rounding=ROUND_FLOOR)
_UP = Context(prec=60, rounding=ROUND_CEILING)
_SIX_PLACES = Decimal("0.000001")

# Double precision leaves an error of about 1e-13 percent. Bounds are moved outward by far more than that, and far less
# than the last digit kept, before they are rounded outward: a bound is never better than the exact one.
_SLACK = Decimal("1e-9")


@lru_cache(maxsize=_MEMO)
def tally(k: Decimal, n: int, lost: int, higher: bool) -> tuple[Decimal, int]:  # noqa: FBT001 - a memo's key, always given by name of its variable
    """Return (rate in percent, whole count) for k of n tasks, of which `lost` were errored or unscored.

    The count is successes where higher is better and failures where lower is better. `k` may be a fraction (the mean over
    repeats); rate and count are rounded against the subject.
    """
    if higher:
        counted = min(k, Decimal(n - lost))
        rate = _DOWN.quantize(_DOWN.divide(_EXACT.multiply(counted, _HUNDRED), Decimal(n)), _SIX_PLACES)
        return rate, int(counted.to_integral_value(ROUND_FLOOR))
    counted = min(_EXACT.add(k, Decimal(lost)), Decimal(n))
    rate = _UP.quantize(_UP.divide(_EXACT.multiply(counted, _HUNDRED), Decimal(n)), _SIX_PLACES)
    return rate, int(counted.to_integral_value(ROUND_CEILING))


@lru_cache(maxsize=_MEMO)
def count_of(value: Decimal, n: int, lost: int, higher: bool) -> int:  # noqa: FBT001 - likewise
    """Return the whole count behind a rate (percent) over n tasks where k is not stated, rounded against the subject."""
    count = _EXACT.scaleb(_EXACT.multiply(value, Decimal(n)), -2)
    if higher:
        return min(int(count.to_integral_value(ROUND_FLOOR)), n - lost)
    return min(max(int(count.to_integral_value(ROUND_CEILING)), lost), n)


def lower_bound(k: int, n: int, confidence: Decimal) -> Decimal:
    """Return the one-sided lower bound (percent) of a success rate of k in n, rounded down to six decimals."""
    return bound_function("lower_bound", confidence)(k, n)


def upper_bound(k: int, n: int, confidence: Decimal) -> Decimal:
    """Return the one-sided upper bound (percent) of a failure rate of k in n, rounded up to six decimals."""
    return bound_function("upper_bound", confidence)(k, n)


def interval_of(
    value: Decimal, k: Decimal | None, n: int | None, lost: int, *, higher: bool, confidence: Decimal
) -> tuple[Decimal, Decimal] | None:
    """Return both one-sided bounds (percent) of a rate: each holds by itself at `confidence`. They are for drawings and tables.

    None where n is not stated, and for a row that no intake would have let in: no interval makes sense of it.
    """
    if n is None or n < 1 or not value.is_finite() or (k is not None and not (k.is_finite() and 0 <= k <= n)):
        return None
    try:
        count = count_of(value, n, lost, higher) if k is None else tally(k, n, lost, higher)[1]
        return lower_bound(count, n, confidence), upper_bound(count, n, confidence)
    except (ValueError, ArithmeticError):
        return None


@lru_cache(maxsize=256)
def bound_function(statistic: str, confidence: Decimal) -> Callable[[int, int], Decimal]:
    """Return a memoised function (k, n) → bound for `lower_bound` or `upper_bound` at one confidence (0 to 1, exclusive)."""
    if not _ZERO < confidence < 1:
        raise ValueError(f"confidence `{confidence}` is not between 0 and 1")
    alpha = float(_EXACT.subtract(Decimal(1), confidence))

    def lower(k: int, n: int) -> Decimal:
        _check(k, n)
        if k == 0:
            return _ZERO
        quantile = Decimal(float(_special().betaincinv(k, n - k + 1, alpha)))
        percent = _EXACT.subtract(_EXACT.multiply(quantile, _HUNDRED), _SLACK)
        return max(_DOWN.quantize(percent, _SIX_PLACES), _ZERO)

    def upper(k: int, n: int) -> Decimal:
        _check(k, n)
        if k == n:
            return _HUNDRED
        # The complement form keeps full precision for small alpha.
        quantile = Decimal(float(_special().betainccinv(k + 1, n - k, alpha)))
        percent = _EXACT.add(_EXACT.multiply(quantile, _HUNDRED), _SLACK)
        return min(_UP.quantize(percent, _SIX_PLACES), _HUNDRED)

    if statistic not in {"lower_bound", "upper_bound"}:
        raise ValueError(f"`{statistic}` is no bound")
    return lru_cache(maxsize=_MEMO)(lower if statistic == "lower_bound" else upper)


def _check(k: int, n: int) -> None:
    if not 0 <= k <= n or n < 1:
        raise ValueError(f"{k} of {n} is no count")


@lru_cache(maxsize=1)
def _special() -> Any:
    # Loaded at the first bound: it costs about 0.8 s, and most commands never judge one.
    import scipy.special

    return scipy.special
