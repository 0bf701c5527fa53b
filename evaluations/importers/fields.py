"""One field at a time: text, instants, numbers, counts, with a message that says what to write instead.

Two rules hold in every format of ours, and each has one place here:

- **Numbers.** A JSON number in plain form (`80.0`) or plain decimal text (`"80.0"`) is converted to an exact decimal, once,
  here. Everything else is refused: exponents, percent signs, decimal commas, thousands separators, `true`, lists, NaN,
  infinities, inequalities, more than six decimals. A bound such as `<30` is no value.
- **Absence.** A field that is left out, `null` or blank is absent; it is never read as 0 or "".
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple

from evaluations.kernel.numbers import NotADecimal, describe, parse_decimal

SHOWN = 60
MAX_KEY_LENGTH = 120
MAX_TEXT_LENGTH = 200
MAX_NOTE_LENGTH = 2000
MAX_WRITTEN_LENGTH = 60
MAX_COUNT = 999_999_999


class NumberText(str):
    """The text of a JSON number, exactly as it stood in the file: text fields refuse it, number fields read it."""

    __slots__ = ()


class Fault(NamedTuple):
    """One problem of one field, before its place in the file is known."""

    field: str
    message: str
    hint: str = ""
    code: str = "invalid"


Raw = Mapping[str, object]
Faults = list[Fault]

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d))?\Z", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,9}\Z")
_BOUND = re.compile(r"\s*(?:[<>≤≥]|at (?:least|most)|under|over|below|above)")
_SPREAD = re.compile(r"±|\+/-")
_FORMULA = re.compile(r"[=@]|[+-]\D")
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,79}\Z")


def shown(value: object) -> str:
    """Return user input fit for a one-line message: in back-ticks, printable, and short."""
    text = value if isinstance(value, str) else describe(value)
    text = "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in text[: SHOWN + 1])
    if len(text) > SHOWN:
        text = text[: SHOWN - 1] + "…"
    return f"`{text}`" if isinstance(value, str) else text


def closest(word: str, known: Iterable[str], *, what: str) -> str:
    """Return the hint for an unknown name: the nearest known one, else the whole list when it is short."""
    ordered = sorted(known)
    near = get_close_matches(word, ordered, n=1, cutoff=0.75)
    if near:
        return f"did you mean `{near[0]}`?"
    if ordered and len(ordered) <= 30:
        return f"known {what}: {', '.join(ordered)}"
    return f"register it first; see the list of {what}" if ordered else f"no {what} are registered"


def is_absent(value: object) -> bool:
    """Left out, null and blank text are the same: not there."""
    return value is None or value == "" or (isinstance(value, str) and value.isspace())


def is_clean_line(text: str, *, limit: int = MAX_TEXT_LENGTH) -> bool:
    """Whether text is one printable line of 1 to `limit` characters without spaces around it."""
    # The only printable space is U+0020: tabs, line breaks and no-break spaces are not printable.
    return 0 < len(text) <= limit and text.isprintable() and text[0] != " " and text[-1] != " "


def text_of(raw: Raw, field: str, faults: Faults, *, required: bool = False, limit: int = MAX_TEXT_LENGTH) -> str:
    """Return one line of text as written, or "" where absent (a fault where required)."""
    value = raw.get(field)
    if is_absent(value):
        if required:
            faults.append(Fault(field, "it is missing", f"give `{field}`", "missing"))
        return ""
    if type(value) is str and is_clean_line(value, limit=limit):
        return value
    if not isinstance(value, str) or isinstance(value, NumberText):
        got = f"the number {shown(value)}" if isinstance(value, NumberText) else describe(value)
        faults.append(Fault(field, f"it is {got}", 'write text in quotation marks: "…"'))
        return ""
    if not value.isprintable() and (limit < MAX_NOTE_LENGTH or not value.replace("\n", "").replace("\t", "").isprintable()):
        faults.append(Fault(field, f"{shown(value)} holds characters that cannot be shown", "remove them"))
        return ""
    if len(value) > limit:
        faults.append(Fault(field, f"it has {len(value)} characters", f"write at most {limit}"))
        return ""
    if value[0].isspace() or value[-1].isspace():
        faults.append(Fault(field, f"{shown(value)} begins or ends with a space", "remove it"))
        return ""
    return value


def word_of(raw: Raw, field: str, words: tuple[str, ...], faults: Faults, *, default: str = "") -> str:
    """Return one word of a closed list; without a default it is required."""
    word = text_of(raw, field, faults, required=not default)
    if not word:
        return default
    if word not in words:
        faults.append(Fault(field, f"unknown word {shown(word)}", f"use one of {', '.join(words)}", "unknown_word"))
        return default
    return word


def instant_of(raw: Raw, field: str, faults: Faults) -> datetime | None:
    """Return an instant in UTC, or None where absent.

    Takes `2026-11-01T12:00:00Z`, an offset instead of `Z`, or a date alone, which stands for its first instant in UTC: the
    earliest reading, so that evidence never looks younger than it is. Local times without an offset are refused.
    """
    value = raw.get(field)
    if is_absent(value):
        return None
    moment = _instant(value) if type(value) is str else None
    if moment is None:
        hint = "write 2026-11-01T12:00:00Z, or with an offset such as +02:00, or a date alone, all of the calendar"
        faults.append(Fault(field, f"{shown(value)} is no instant", hint, "not_an_instant"))
    return moment


@lru_cache(maxsize=8192)
def _instant(text: str) -> datetime | None:
    if not _INSTANT.match(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def decimal_of(raw: Raw, field: str, faults: Faults) -> Decimal | None:
    """Return the exact decimal, or None where absent or refused."""
    value = raw.get(field)
    if is_absent(value):
        return None
    text = str(value) if type(value) is NumberText else value
    try:
        number = parse_decimal(text, field=field)
    except NotADecimal as error:
        faults.append(_no_decimal(field, value, error))
        return None
    return number or Decimal(0)  # "-0" is 0


def _no_decimal(field: str, value: object, error: NotADecimal) -> Fault:
    """Say what is wrong; what a number must never be taken for comes first, the general rule last."""
    code = "not_a_decimal"
    if isinstance(value, str):
        if _BOUND.match(value):
            hint = "a bound is no value: put it into `note`, and give `value` only where the source states one"
            return Fault(field, f"{shown(value)} is a bound", hint, "bound_not_value")
        if _SPREAD.search(value):
            return Fault(field, f"{shown(value)} is a value with its spread", "write the value alone", code)
        if _FORMULA.match(value.strip()) and not value.strip().lower().startswith(("-inf", "+inf", "-nan", "+nan")):
            return Fault(field, f"{shown(value)} looks like a formula", "write the number it gives", code)
        if value.startswith("−"):
            return Fault(field, f"{shown(value)} begins with a long minus sign", "write an ASCII `-`", code)
    # The kernel's text is "`field` is …: what to write"; the field stands in the problem already.
    found, _, hint = str(error).removeprefix(f"`{field}` is ").partition(": ")
    return Fault(field, f"{found if len(found) <= SHOWN + 2 else shown(value)} is not a plain number", hint, code)


def count_of(raw: Raw, field: str, faults: Faults, *, minimum: int = 0) -> int | None:
    """Return a whole number from `minimum` to 999,999,999, or None where absent or refused."""
    value = raw.get(field)
    if is_absent(value):
        return None
    number = _count(str(value)) if isinstance(value, str) else None
    if number is not None:
        if number >= minimum:
            return number
        faults.append(Fault(field, f"it is {number}", f"write at least {minimum}, or leave it out where not known"))
        return None
    hint = f"write a whole number from {minimum} to {MAX_COUNT}"
    faults.append(Fault(field, f"{shown(value)} is no count", hint, "not_a_count"))
    return None


@lru_cache(maxsize=8192)
def _count(text: str) -> int | None:
    return int(text) if _COUNT.match(text) else None


def uid_of(raw: Raw, field: str, faults: Faults) -> str:
    """Return the uid of other evidence, or ""."""
    text = text_of(raw, field, faults)
    if text and not _UID.match(text):
        faults.append(Fault(field, f"{shown(text)} is no evidence uid", "copy the uid from the evidence list"))
        return ""
    return text


def unknown_fields(raw: Raw, known: tuple[str, ...], faults: Faults, *, within: str = "") -> None:
    """Add a fault for each field that the format does not have: a misspelt field must not vanish silently."""
    if raw.keys() <= _names_of(known):
        return
    for field in raw:
        if field not in known:
            place = f"{within}.{field}" if within else field
            hint = closest(field, known, what="fields")
            faults.append(Fault(place[:MAX_KEY_LENGTH], "unknown field", hint, "unknown_field"))


@lru_cache(maxsize=256)
def _names_of(known: tuple[str, ...]) -> frozenset[str]:
    return frozenset(known)
