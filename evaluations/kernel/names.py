"""Keys of subjects, systems, policies, sources and benchmarks: a small ASCII set, so that no look-alike letter names another thing."""

import re
import unicodedata

from evaluations.kernel.errors import InputRefused, Problem

KEY_PATTERN = r"^[a-z0-9](?:[a-z0-9._:@+/-]*[a-z0-9])?$"
KEY_MAX_LENGTH = 120

_KEY = re.compile(KEY_PATTERN)
_OTHER = re.compile(r"[^\x20-\x7e]")


def foreign(text: str) -> str:
    """Return the first character outside printable ASCII as "U+0430 CYRILLIC SMALL LETTER A (place 3)", or ""."""
    found = _OTHER.search(text)
    if found is None:
        return ""
    letter = found[0]
    return f"U+{ord(letter):04X} {unicodedata.name(letter, 'unnamed')} (place {found.start() + 1})"


def check_key(text: object, *, field: str) -> str:
    """Return `text` when it is a well-formed key; else raise `InputRefused` naming the first code point that is not allowed."""
    problem = key_problem(text, field=field)
    if problem is not None:
        raise InputRefused([problem])
    return str(text)


def key_problem(text: object, *, field: str) -> Problem | None:
    """Return what is wrong with a key, or None."""
    hint = "use lower-case ASCII letters, digits and . _ : @ + / -"
    if not isinstance(text, str) or not text:
        return Problem("a key is needed", field=field, hint=hint)
    if len(text) > KEY_MAX_LENGTH:
        return Problem(f"the key is longer than {KEY_MAX_LENGTH} characters", field=field)
    for place, letter in enumerate(text, start=1):
        if not letter.isascii() or not re.match(r"[a-z0-9._:@+/-]", letter):
            name = unicodedata.name(letter, "unnamed")
            return Problem(
                f"`{text}` has U+{ord(letter):04X} {name} at character {place}", field=field, code="name_not_ascii", hint=hint
            )
    if ".." in text or "//" in text or not _KEY.match(text):
        return Problem(
            f"`{text}` is no well-formed key", field=field, hint="begin and end with a letter or digit, without `..` or `//`"
        )
    return None
