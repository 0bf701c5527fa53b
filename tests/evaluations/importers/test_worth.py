from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.importers.worth import agrees, mean_successes, rate_from_counts

COUNTS = st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("k", "n", "better", "missing", "rate"),
    [
        ("4", 5, "higher", 0, "80"),
        ("80", 100, "higher", 10, "80"),
        ("2", 3, "higher", 0, "66.666666"),
        ("2", 3, "lower", 0, "66.666667"),
        ("12", 80, "lower", 6, "22.5"),
        ("0", 59, "lower", 0, "0"),
        ("0.666666", 1, "higher", 0, "66.6666"),
    ],
)
def test_errors_count_against_the_subject_in_either_polarity(k, n, better, missing, rate):
    assert rate_from_counts(Decimal(k), n, better=better, missing=missing) == Decimal(rate)


@given(COUNTS, st.sampled_from(["higher", "lower"]))
def test_a_rate_is_the_exact_one_rounded_against_the_subject_by_less_than_a_millionth(counts, better):
    k, n = counts
    off = Fraction(rate_from_counts(Decimal(k), n, better=better)) - Fraction(k * 100, n)
    assert (-Fraction(1, 10**6) < off <= 0) if better == "higher" else (0 <= off < Fraction(1, 10**6))


@pytest.mark.parametrize(
    ("written", "k", "n", "right"),
    [
        ("53.9", 539, 1000, True),
        ("53.9", 5385, 10000, True),
        ("53.9", 5395, 10000, True),
        ("53.9", 5396, 10000, False),
        ("53.9", 5384, 10000, False),
        ("54", 535, 1000, True),
        ("54", 534, 1000, False),
        ("54.0", 535, 1000, False),
        ("66.666666", 2, 3, True),
        ("66.666667", 2, 3, True),
        ("66.666668", 2, 3, False),
        ("88.9", 80, 100, False),
    ],
)
def test_a_written_rate_agrees_within_half_a_unit_of_its_last_digit(written, k, n, right):
    assert agrees(Decimal(written), Decimal(k), n, better="higher") is right


@given(COUNTS, st.sampled_from(["higher", "lower"]))
def test_our_own_rate_always_agrees_with_its_counts(counts, better):
    k, n = counts
    rate = rate_from_counts(Decimal(k), n, better=better)
    assert agrees(rate, Decimal(k), n, better=better)


def test_a_mean_over_repeats_is_rounded_down():
    assert mean_successes(2, 3) == Decimal("0.666666")
    assert mean_successes(6, 3) == 2
