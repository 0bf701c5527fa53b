"""Names that identify: plain ASCII, so that two names that look alike are the same name, and never shortened.

Effort, snapshot, provider prefix, fallback, quantisation and harness are part of a name and are kept as written.
"""

import hashlib
import re
import unicodedata

from evaluations.importers.fields import Fault, Faults, Raw, shown, text_of

MAX_SLICE = 60

_OTHER = re.compile(r"[^\x20-\x7e]")
_BETWEEN = re.compile(r"[^a-z0-9._-]+")


def foreign(text: str) -> str:
    """Return the first character outside printable ASCII as "U+0430 CYRILLIC SMALL LETTER A (place 3)", or ""."""
    found = _OTHER.search(text)
    if found is None:
        return ""
    letter = found[0]
    return f"U+{ord(letter):04X} {unicodedata.name(letter, 'unnamed')} (place {found.start() + 1})"


def name_of(raw: Raw, field: str, faults: Faults, *, required: bool = True) -> str:
    """Return a subject's, benchmark's or measure's name as written, or "" after a fault naming the code point."""
    name = text_of(raw, field, faults, required=required)
    odd = foreign(name)
    if odd:
        hint = "a name that looks like another is another: write it in ASCII, or have it mapped by a profile"
        faults.append(Fault(field, f"{shown(name)} holds {odd}", hint, "look_alike"))
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
