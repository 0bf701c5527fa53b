"""Exact numbers at the door: plain decimals in, `Decimal` out, everything else refused.

The rule (house rule 8): a number is written with ASCII digits, at most one decimal point, at most six decimal places and twelve
digits in all, and no sign but a leading minus. Exponents, thousands separators, percent signs, spaces, `true`, NaN and infinities
are refused, so that no verdict ever depends on which of two spellings was read.
"""

import re
from decimal import Decimal

MAX_DECIMAL_PLACES = 6
MAX_DIGITS = 12

_PLAIN = re.compile(r"-?[0-9]{1,12}(?:\.[0-9]{1,6})?\Z")
_SHOWN_LENGTH = 40


class NotADecimal(ValueError):
    """The given value is no plain decimal. `str()` says what was found and what to write instead."""


def parse_decimal(value: object, *, field: str = "value") -> Decimal:
    """Return the exact decimal that `value` states.

    Accepts `int` (not `bool`), finite `Decimal` and plain decimal text. Raises `NotADecimal`; never rounds.
    """
    if type(value) is str:
        text = value
    elif type(value) is Decimal:
        if not value.is_finite():
            raise NotADecimal(f"`{field}` is `{value}`: only finite numbers are accepted")
        text = format(value, "f")
    elif type(value) is int:
        text = str(value)
    else:
        raise NotADecimal(f"`{field}` is {describe(value)}: write a plain decimal number such as 80.0")
    if not _PLAIN.match(text):
        raise NotADecimal(f"`{field}` is `{text[:_SHOWN_LENGTH]}`: {_what_is_wrong(text)}")
    number = Decimal(text)
    if len(number.as_tuple().digits) > MAX_DIGITS:
        raise NotADecimal(f"`{field}` is `{text}`: at most {MAX_DIGITS} digits are kept, and nothing is rounded")
    return number


def plain(number: Decimal) -> str:
    """Return the one canonical spelling of a finite decimal: positional, no exponent, no trailing zeros, no minus zero."""
    if not number.is_finite():
        raise NotADecimal(f"`{number}` has no plain spelling: only finite numbers have one")
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text


def describe(value: object) -> str:
    """Name the JSON-like kind of a value that is no number, for an error message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "a binary floating-point number"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return f"a {type(value).__name__}"


def _what_is_wrong(text: str) -> str:
    stripped = text.strip()
    if not stripped:
        return "it is empty; leave the field out where the value is not known"
    if re.fullmatch(r"[+-]?(nan|inf|infinity)", stripped, re.IGNORECASE):
        return "only finite numbers are accepted"
    if "%" in text:
        return "write the number alone; the unit stands in `unit`"
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]+", stripped):
        return "write it without an exponent"
    if re.fullmatch(r"-?[0-9]+,[0-9]+", stripped):
        return "write a decimal point, not a comma"
    if re.fullmatch(r"-?[0-9]+\.[0-9]{7,}", stripped):
        return f"at most {MAX_DECIMAL_PLACES} decimal places are kept, and nothing is rounded"
    if re.fullmatch(r"-?[0-9]{13,}(\.[0-9]*)?", stripped):
        return f"at most {MAX_DIGITS} digits are kept"
    if stripped != text:
        return "remove the spaces around it"
    return "write a plain decimal number such as 80.0"
