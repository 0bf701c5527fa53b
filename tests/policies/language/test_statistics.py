"""Rates and bounds, held against exact arithmetic."""

from decimal import Decimal
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.language.statistics import bound_function, count_of, lower_bound, tally, upper_bound

FIVE = Decimal("0.95")


def at_least(k: int, n: int, p: Fraction) -> Fraction:
    """Return the exact probability of k or more successes in n at a rate p."""
    return sum((comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)), Fraction(0))


def test_the_published_examples():
    assert lower_bound(19, 20, FIVE) < 80  # 19 of 20 does not clear 80
    assert upper_bound(0, 59, FIVE) <= 5 < upper_bound(0, 58, FIVE)  # zero harm in 59 clears 5
    assert upper_bound(0, 149, FIVE) <= 2 < upper_bound(0, 148, FIVE)  # and in 149 clears 2


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_lower_bound_is_never_better_than_the_exact_one_and_hardly_worse(counts):
    k, n = counts
    bound = Fraction(lower_bound(k, n, FIVE)) / 100
    alpha = Fraction(5, 100)
    assert at_least(k, n, bound) <= alpha or k == 0
    if k:
        assert at_least(k, n, bound + Fraction(2, 10**8)) > alpha
    else:
        assert bound == 0


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_upper_bound_is_never_better_than_the_exact_one_and_hardly_worse(counts):
    k, n = counts
    bound = Fraction(upper_bound(k, n, FIVE)) / 100
    alpha = Fraction(5, 100)
    if k == n:
        assert bound == 1
    else:
        assert 1 - at_least(k + 1, n, bound) <= alpha
        assert 1 - at_least(k + 1, n, bound - Fraction(2, 10**8)) > alpha


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_bounds_mirror_each_other_and_enclose_the_rate(counts):
    k, n = counts
    low, high = lower_bound(k, n, FIVE), upper_bound(k, n, FIVE)
    assert low <= Decimal(100 * k) / n <= high
    assert abs(low + upper_bound(n - k, n, FIVE) - 100) <= Decimal("0.000002")


def test_bounds_have_six_decimals_and_large_samples_work():
    bound = lower_bound(930_000, 1_000_000, FIVE)
    assert bound == bound.quantize(Decimal("0.000001"))
    assert Decimal("92.95") < bound < 93


def test_more_confidence_gives_a_wider_bound():
    assert lower_bound(90, 100, Decimal("0.99")) < lower_bound(90, 100, FIVE) < lower_bound(90, 100, Decimal("0.9"))


@pytest.mark.parametrize(("k", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_impossible_counts_have_no_bound(k, n):
    with pytest.raises(ValueError, match="is no count"):
        lower_bound(k, n, FIVE)


def test_a_bound_has_a_name_and_a_confidence():
    with pytest.raises(ValueError, match="`median` is no bound"):
        bound_function("median", FIVE)
    with pytest.raises(ValueError, match="not between 0 and 1"):
        bound_function("lower_bound", Decimal(1))


@pytest.mark.parametrize(
    ("k", "n", "lost", "higher", "rate", "count"),
    [
        ("80", 100, 10, True, "80", 80),  # errors are in n and not in k
        ("2", 3, 0, True, "66.666666", 2),
        ("2", 3, 0, False, "66.666667", 2),
        ("1", 80, 4, False, "6.25", 5),  # and count as harm where lower is better
        ("95", 100, 10, True, "90", 90),  # k cannot hold tasks that errored
        ("98", 100, 10, False, "100", 100),
        ("47.5", 50, 0, True, "95", 47),  # the mean over repeats, rounded against the subject
        ("1.5", 50, 0, False, "3", 2),
    ],
)
def test_errors_and_rounding_count_against_the_subject(k, n, lost, higher, rate, count):
    assert tally(Decimal(k), n, lost, higher) == (Decimal(rate), count)


@pytest.mark.parametrize(
    ("value", "n", "lost", "higher", "count"),
    [
        ("53.9", 1000, 0, True, 539),
        ("53.95", 1000, 0, True, 539),
        ("53.91", 1000, 0, False, 540),
        ("88.9", 100, 15, True, 85),
        ("0", 100, 3, False, 3),
        ("100", 7, 0, False, 7),
    ],
)
def test_a_count_is_recovered_from_a_rate_against_the_subject(value, n, lost, higher, count):
    assert count_of(Decimal(value), n, lost, higher) == count


@given(
    st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.decimals(0, 100, places=6),
    st.booleans(),
)
def test_the_rounded_rate_stands_on_the_exact_fractions_side_of_every_bar(counts, bar, higher):
    k, n = counts
    rate, _ = tally(Decimal(k), n, 0, higher)
    exact = Fraction(100 * k, n)
    if higher:
        assert (rate >= bar) == (exact >= Fraction(bar))
    else:
        assert (rate <= bar) == (exact <= Fraction(bar))
