"""The one place that reads the clock. The heart never does: it is told `as_of`."""

from datetime import UTC, datetime

from evaluations.kernel.errors import InputRefused, Problem


def now() -> datetime:
    """Return the present instant, aware, in UTC."""
    return datetime.now(UTC)


def parse_instant(text: str, *, field: str) -> datetime:
    """Return the instant that ISO 8601 text states; the offset is required. A bare date means its midnight in UTC.

    Raises `InputRefused` with the field's name.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputRefused(
            [Problem(f"`{text[:60]}` is no time", field=field, hint="write ISO 8601, such as 2026-11-29T12:00:00Z")]
        ) from None
    if len(text) == len("2026-11-29"):
        return moment.replace(tzinfo=UTC)
    raise InputRefused([Problem(f"`{text}` has no offset from UTC", field=field, hint="add Z or +00:00")])
