"""What an observation's numbers are worth to a clause: its rate, its bound, and whether they can be right at all.

Nothing here depends on time, source or identity, so a clause memoises it: the same numbers recur with every subject that
is judged again.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from functools import lru_cache
from typing import NamedTuple

from policies.language.results import Reason
from policies.language.statistics import count_of, tally

_EXACT = Context(prec=60)
_MEMO = 65_536


class Worth(NamedTuple):
    """`reason` is "" or why the numbers do not qualify; `broken` says that they cannot be right. `value` is the rate with
    errors counted against the subject, `bound` its confidence bound (None where the statistic is the point or the sample
    is too small), `measure` what is compared with a bar."""

    reason: str
    broken: bool
    value: Decimal
    bound: Decimal | None
    measure: Decimal


Assess = Callable[[Decimal, Decimal | None, int | None, int | None, int | None], Worth]
"""(value, k, n, errored, unscored) → `Worth`. The numbers are finite."""


@lru_cache(maxsize=1_024)
def assessor(
    *,
    higher: bool,
    percent: bool,
    minimum: Decimal,
    maximum: Decimal | None,
    bound: Callable[[int, int], Decimal] | None,
    min_samples: int | None,
    max_error_share: Decimal | None,
) -> Assess:
    """Return the memoised assessment of all clauses that ask the same of numbers: a hundred policies share one memo."""

    @lru_cache(maxsize=_MEMO)
    def assess(value: Decimal, k: Decimal | None, n: int | None, errored: int | None, unscored: int | None) -> Worth:
        broken = _unbelievable(value, k, n, errored or 0, unscored or 0)
        if broken:
            return Worth(broken, True, value, None, value)
        rate, limit = _weigh(value, k, n, (errored or 0) + (unscored or 0))
        return Worth(_too_thin(n, errored, unscored), False, rate, limit, rate if limit is None else limit)

    def _unbelievable(value: Decimal, k: Decimal | None, n: int | None, errored: int, unscored: int) -> str:
        # Intake and check constraints refuse each of these; judging does not rely on it.
        if value < minimum or (maximum is not None and value > maximum):
            return Reason.VALUE_OUT_OF_RANGE.value
        if errored < 0 or unscored < 0 or (k is not None and k < 0):
            return Reason.COUNTS_INCONSISTENT.value
        if n is not None and (n < 1 or errored + unscored > n or (k is not None and k > n)):
            return Reason.COUNTS_INCONSISTENT.value
        return ""

    def _weigh(value: Decimal, k: Decimal | None, n: int | None, lost: int) -> tuple[Decimal, Decimal | None]:
        if n is None or not percent:
            return value, None
        rate, count = (value, None) if k is None else tally(k, n, lost, higher)
        if bound is None or (min_samples is not None and n < min_samples):
            return rate, None
        return rate, bound(count_of(value, n, lost, higher) if count is None else count, n)

    def _too_thin(n: int | None, errored: int | None, unscored: int | None) -> str:
        if n is None:
            if bound is not None or min_samples is not None:
                return Reason.NO_SAMPLE_SIZE.value
        elif min_samples is not None and n < min_samples:
            return Reason.TOO_FEW_SAMPLES.value
        if max_error_share is not None:
            if n is None or errored is None or unscored is None:
                return Reason.ERRORS_NOT_STATED.value
            if errored + unscored > _EXACT.multiply(max_error_share, Decimal(n)):
                return Reason.TOO_MANY_ERRORS.value
        return ""

    return assess
