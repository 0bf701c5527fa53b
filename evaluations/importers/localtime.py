"""Times without a zone, as harnesses print what their machine's clock showed: read as the earliest instant that they can mean.

Age runs from the end of a run, and evidence is never taken for younger than it may be.
"""

import re
from datetime import UTC, datetime, timedelta

from evaluations.importers.fields import Fault, Faults, Raw, instant_of, is_absent, shown

_LOCAL = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d{1,6})?\Z", re.ASCII)
_EARLIEST_ZONE = timedelta(hours=14)
"""Local time is ahead of UTC by at most this much, so this much earlier is the earliest instant it can mean."""


def local_instant(raw: Raw, field: str, faults: Faults, *, hint: str = "") -> datetime | None:
    """Return the earliest instant that the local time in a field can mean, to the second; None where absent or refused."""
    written = raw.get(field)
    if is_absent(written):
        return None
    found = _LOCAL.match(written) if isinstance(written, str) else None
    try:
        if found is not None:
            return datetime.fromisoformat(f"{found[1]}T{found[2]}").replace(tzinfo=UTC) - _EARLIEST_ZONE
    except (ValueError, OverflowError):
        pass  # it looks like a time, and the calendar has none such
    faults.append(Fault(field, f"{shown(written)} is no local time", hint, "not_an_instant"))
    return None


def earliest_instant(raw: Raw, field: str, faults: Faults) -> datetime | None:
    """Return the instant in a field, the earliest that it can mean where it states no zone; None where absent or refused."""
    written = raw.get(field)
    if is_absent(written):
        return None
    is_local = isinstance(written, str) and len(written) >= 19 and written[-1] != "Z" and not {"+", "-"} & set(written[10:])
    moment = instant_of({field: f"{written}Z" if is_local else written}, field, faults)
    return moment - _EARLIEST_ZONE if is_local and moment is not None else moment
