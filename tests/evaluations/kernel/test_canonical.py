"""Canonical bytes: one spelling, by a written rule (case O-26, as far as spelling goes)."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.kernel.canonical import NotCanonical, canonical_bytes, digest, timestamp


@pytest.mark.parametrize(
    ("number", "spelling"),
    [("0.00001", "0.00001"), ("80", "80"), ("80.0", "80"), ("80.00", "80"), ("1e2", "100"), ("-0", "0"), ("0.10", "0.1")],
)
def test_a_decimal_is_plain_text(number: str, spelling: str) -> None:
    assert canonical_bytes(Decimal(number)) == f'"{spelling}"'.encode()


def test_keys_are_ordered_by_utf_16_code_units() -> None:
    # RFC 8785 section 3.2.3: U+1F600 begins with the surrogate D83D, which sorts before FB33.
    assert list(json.loads(canonical_bytes({"\ufb33": 1, "\U0001f600": 2, "a": 3, "é": 4}))) == ["a", "é", "\U0001f600", "\ufb33"]


def test_composed_and_decomposed_text_are_different_texts() -> None:
    assert digest("\u00e9") != digest("e\u0301")
    assert canonical_bytes('é\u2028\x01"\\/') == '"é\u2028\\u0001\\"\\\\/"'.encode()


def test_an_instant_is_written_in_utc_with_microseconds() -> None:
    moment = datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(hours=2)))
    assert canonical_bytes(moment) == b'"2026-03-29T00:30:00.000000Z"'
    assert timestamp(moment) == timestamp(moment.astimezone(UTC))


NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001
WITHOUT_FORM = [1.5, float("nan"), {1: 2}, object(), 2**53 + 1, NAIVE, Decimal("NaN"), "\ud800", b"x"]


@pytest.mark.parametrize("value", WITHOUT_FORM)
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises((NotCanonical, ValueError)):
        canonical_bytes(value)


plain_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@given(plain_json)
def test_the_bytes_are_json_that_says_the_same_and_are_stable(value: object) -> None:
    written = canonical_bytes(value)
    assert json.loads(written) == value
    assert canonical_bytes(json.loads(written)) == written
