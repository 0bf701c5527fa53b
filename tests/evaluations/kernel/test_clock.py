"""Instants at the door: an offset or a bare date, and nothing that cannot be a time."""

from datetime import UTC, datetime

import pytest

from evaluations.kernel.canonical import timestamp
from evaluations.kernel.clock import parse_instant
from evaluations.kernel.errors import InputRefused


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-29", datetime(2026, 11, 29, tzinfo=UTC)),
        ("2026-11-29T12:00:00Z", datetime(2026, 11, 29, 12, tzinfo=UTC)),
        ("2026-11-29T12:00:00+02:00", datetime(2026, 11, 29, 10, tzinfo=UTC)),
    ],
)
def test_an_instant_is_read_as_utc(text: str, instant: datetime) -> None:
    assert parse_instant(text, field="--as-of") == instant


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tomorrow", "no time"),
        ("", "no time"),
        ("2026-02-30", "no time"),
        ("2026-11-29T12:00:00", "no offset"),
        ("0001-01-01T00:00:00+23:00", "no time"),
        ("9999-12-31T23:59:59-23:00", "no time"),
    ],
)
def test_everything_else_is_refused_with_the_field(text: str, told: str) -> None:
    with pytest.raises(InputRefused, match=told) as refusal:
        parse_instant(text, field="--as-of")
    assert refusal.value.problems[0].field == "--as-of"


def test_an_early_year_keeps_its_zeros() -> None:
    assert timestamp(datetime(33, 4, 3, tzinfo=UTC)) == "0033-04-03T00:00:00.000000Z"
