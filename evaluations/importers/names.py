"""Names that identify: plain ASCII, so that two names that look alike are the same name, and never shortened.

Effort, snapshot, provider prefix, fallback, quantisation and harness are part of a name and are kept as written.
"""

import hashlib
import re

from evaluations.importers.fields import Fault, Faults, Raw, shown, text_of
from evaluations.kernel.names import foreign

MAX_SLICE = 60
WRITE_ASCII = "a name that looks like another is another: write it in ASCII, or have it mapped by a profile"

_BETWEEN = re.compile(r"[^a-z0-9._-]+")


def name_of(raw: Raw, field: str, faults: Faults, *, required: bool = True) -> str:
    """Return a subject's, benchmark's or measure's name as written, or "" after a fault naming the code point."""
    name = text_of(raw, field, faults, required=required)
    odd = foreign(name)
    if odd:
        faults.append(Fault(field, f"{shown(name)} holds {odd}", WRITE_ASCII, "look_alike"))
        return ""
    return name


def slice_key(*parts: str) -> str:
    """Return a slice's key made of names as written: lower case, ASCII, at most `MAX_SLICE` characters.

    A longer one ends in a digest of the whole, so that two long names stay two.
    """
    whole = ".".join(parts)
    key = _BETWEEN.sub("-", whole.lower()).strip("._-")
    if len(key) > MAX_SLICE or not key:
        mark = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        key = f"{key[: MAX_SLICE - 9].rstrip('._-')}-{mark}".lstrip("-")
    return key
