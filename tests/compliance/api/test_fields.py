"""Numbers and instants as they leave the house."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from compliance.api.fields import Exact, Instant


@pytest.mark.parametrize(
    ("number", "shown"),
    [("80.00", "80"), ("53.9", "53.9"), ("1E+2", "100"), ("0.000001", "0.000001"), ("-0.0", "0"), ("79.9995", "79.9995")],
)
def test_decimals_are_plain_and_exact(number: str, shown: str) -> None:
    assert Exact().to_representation(Decimal(number)) == shown


def test_a_row_that_no_intake_let_in_is_shown_for_what_it_is() -> None:
    assert Exact().to_representation(Decimal("NaN")) == "NaN"


def test_instants_are_utc_whatever_zone_they_came_in() -> None:
    summer = datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert Instant().to_representation(summer) == "2026-07-01T10:00:00.000000Z"
    assert Instant().to_representation(datetime(2026, 7, 1, tzinfo=UTC)) == "2026-07-01T00:00:00.000000Z"
