"""Numbers as other tools write them: JSON numbers of any length, exponents included, read exactly and never as a float.

Our own formats refuse more than six decimals. Other people's files hold what their language printed, `0.5111906893464637` or
`3.3e-05`; such a number is kept as written and, where it stands without counts, rounded against the subject.
"""

import re
from decimal import Decimal

from evaluations.importers.fields import Fault, Faults, NumberText, Raw, is_absent, shown

MAX_LENGTH = 27
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,24})?(?:[eE][+-]?[0-9]{1,2})?\Z")


def exact(raw: Raw, field: str, faults: Faults) -> Decimal | None:
    """Return the number in a field of a JSON object, or None where absent or refused. Text is no number here."""
    value = raw.get(field)
    if is_absent(value):
        return None
    number = exact_text(str(value)) if isinstance(value, NumberText) else None
    if number is None:
        faults.append(Fault(field, f"{shown(value)} is no finite number", "fetch the file again", "not_a_number"))
    return number


def exact_text(text: str) -> Decimal | None:
    """Return the number that a plain or exponential spelling states, or None; at most 12 digits before the point."""
    if len(text) > MAX_LENGTH or not _NUMBER.match(text):
        return None
    number = Decimal(text)
    return (number or Decimal(0)) if abs(number) < 10**12 else None
