"""What counts are worth: the exact rate, with errors and unscored tasks against the subject.

`n` is the number of planned distinct tasks. Where higher is better the rate is k / n; where lower is better it is
(k + errored + unscored) / n. Rates are percent. A rate that has no end in decimals is rounded against the subject to six
places: down where higher is better, up where lower is.
"""

from decimal import Decimal

PLACES = 6
_SCALE = 10**PLACES


def rate_from_counts(k: Decimal, n: int, *, better: str, missing: int = 0) -> Decimal:
    """Return the percentage that `k` of `n` is worth, rounded against the subject to six decimals.

    `missing` is errored plus unscored. `k` has at most six decimals (a mean over repeats).
    """
    counted = int(k * _SCALE) + (missing * _SCALE if better == "lower" else 0)
    numerator = counted * 100
    whole, rest = divmod(numerator, n)
    if rest and better == "lower":
        whole += 1
    return Decimal(whole).scaleb(-PLACES)


def agrees(value: Decimal, k: Decimal, n: int, *, better: str, missing: int = 0) -> bool:
    """Whether a written rate is the rate of its counts, to half a unit of its last written digit.

    Six decimals are our own spelling of a rate without end, rounded against the subject, so that spelling agrees too.
    """
    _, dot, decimals = format(value, "f").partition(".")
    places = len(decimals) if dot else 0
    counted = int(k * _SCALE) + (missing * _SCALE if better == "lower" else 0)
    # In whole numbers, with n times a millionth as unit, and doubled for the half.
    distance = abs(int(value * _SCALE) * n - counted * 100)
    if distance * 2 <= 10 ** (PLACES - places) * n:
        return True
    return value == rate_from_counts(k, n, better=better, missing=missing)


def mean_successes(total: int, repeats: int) -> Decimal:
    """Return the mean number of successes over repeats, rounded down (against the subject) to six decimals."""
    return Decimal(total * _SCALE // repeats).scaleb(-PLACES)
