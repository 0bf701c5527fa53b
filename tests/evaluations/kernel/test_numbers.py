"""Numbers at the door: exact or refused."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.kernel.numbers import NotADecimal, parse_decimal, plain

exact = st.decimals(min_value=-(10**6), max_value=10**6, places=6, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("80", "80"),
        ("80.0", "80.0"),
        ("79.999999", "79.999999"),
        ("-0.5", "-0.5"),
        (80, "80"),
        (Decimal("1E+2"), "100"),
        ("0", "0"),
    ],
)
def test_a_plain_decimal_is_taken_exactly(written: object, value: str) -> None:
    assert parse_decimal(written) == Decimal(value)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (True, "true"),
        (None, "null"),
        ([80], "a list"),
        ({"v": 80}, "an object"),
        (80.0, "binary floating-point"),
        ("80%", "the unit stands in `unit`"),
        ("8e1", "without an exponent"),
        ("80,0", "a decimal point"),
        (" 80", "spaces"),
        ("", "empty"),
        (" ", "empty"),
        ("NaN", "finite"),
        ("-Infinity", "finite"),
        (Decimal("NaN"), "finite"),
        (Decimal("Infinity"), "finite"),
        ("79.9999999", "decimal places"),
        (Decimal("79.99999999"), "decimal places"),
        ("1234567890123", "12 digits"),
        ("1234567.123456", "12 digits"),
        (Decimal("1e400"), "12 digits"),
        ("+80", "plain decimal"),
        ("٨٠", "plain decimal"),
        ("80\n", "spaces"),
        ("0x50", "plain decimal"),
    ],
)
def test_everything_else_is_refused_with_what_to_write(written: object, told: str) -> None:
    with pytest.raises(NotADecimal, match=r"`score` is") as refusal:
        parse_decimal(written, field="score")
    assert told in str(refusal.value)


@given(exact)
def test_the_plain_spelling_reads_back_as_the_same_number(number: Decimal) -> None:
    written = plain(number)
    assert "E" not in written
    assert written == plain(Decimal(written))
    if len(Decimal(written).as_tuple().digits) <= 12:
        assert parse_decimal(written) == number


@given(st.one_of(st.text(max_size=20), st.integers(), st.floats(), st.none(), st.booleans(), st.lists(st.integers(), max_size=2)))
def test_whatever_comes_is_read_or_refused(value: object) -> None:
    try:
        number = parse_decimal(value)
    except NotADecimal:
        return
    assert number.is_finite()
    assert number == round(number, 6)
