"""Canonical bytes: the one spelling under every digest.

JSON with the key order of RFC 8785 (UTF-16 code units), no white space, UTF-8, and two rules of our own that keep floats out:

- a `Decimal` is a JSON **string** in plain positional notation without trailing zeros: `80`, `80.0` and `80.00` are all `"80"`,
  `0.00001` is `"0.00001"`; it is never written with an exponent;
- a `datetime` is a JSON string in UTC with microseconds and `Z`; naive times are refused.

Integers up to 2**53 are JSON integers. Floats, NaN, other types and lone surrogates are refused. Text is kept as it is: composed and
decomposed forms of a letter are different texts and have different digests.
"""

import json
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

from evaluations.kernel.numbers import plain

MAX_INTEGER = 2**53
DIGEST_PREFIX = "sha256:"

_quote = json.encoder.encode_basestring


class NotCanonical(TypeError):
    """A value that has no canonical form; `str()` names it."""


def canonical_bytes(value: Any) -> bytes:
    """Return the canonical UTF-8 bytes of a JSON-like value (dict, list, tuple, str, int, bool, None, Decimal, datetime)."""
    parts: list[str] = []
    _write(value, parts.append)
    try:
        return "".join(parts).encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotCanonical("text with a lone surrogate has no UTF-8 form") from error


def digest_of(data: bytes) -> str:
    """Return `sha256:<hex>` of bytes."""
    return DIGEST_PREFIX + sha256(data).hexdigest()


def digest(value: Any) -> str:
    """Return the digest of a value's canonical bytes."""
    return digest_of(canonical_bytes(value))


def timestamp(moment: datetime) -> str:
    """Return an aware datetime as `YYYY-MM-DDTHH:MM:SS.ffffffZ` in UTC."""
    if moment.tzinfo is None:
        raise NotCanonical(f"`{moment.isoformat()}` has no time zone")
    # Not strftime, which leaves out the leading zeros of a year before 1000.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _write(value: Any, put: Any) -> None:
    kind = type(value)
    if kind is str:
        put(_quote(value))
    elif value is None:
        put("null")
    elif kind is bool:
        put("true" if value else "false")
    elif kind is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise NotCanonical(f"integer `{value}` is beyond 2**53; write it as text")
        put(str(value))
    elif kind is Decimal:
        put(f'"{plain(value)}"')
    elif kind is dict:
        _write_object(value, put)
    elif kind is list or kind is tuple:
        _write_array(value, put)
    elif kind is datetime:
        put(f'"{timestamp(value)}"')
    elif isinstance(value, str):
        # A closed list's member (StrEnum, TextChoices) is written as its text.
        put(_quote(str.__str__(value)))
    elif isinstance(value, tuple | list):
        _write_array(value, put)
    else:
        raise NotCanonical(f"a {kind.__name__} has no canonical form")


def _write_object(value: dict[Any, Any], put: Any) -> None:
    for key in value:
        if not isinstance(key, str):
            raise NotCanonical(f"object keys are text, not {type(key).__name__}")
    # UTF-16 order differs from code-point order only beyond the Basic Multilingual Plane, so plain sorting serves ASCII keys.
    ordered = sorted(value) if all(map(str.isascii, value)) else sorted(value, key=_utf16)
    separator = "{"
    for key in ordered:
        put(separator)
        put(_quote(key))
        put(":")
        _write(value[key], put)
        separator = ","
    put("}" if value else "{}")


def _write_array(value: Any, put: Any) -> None:
    separator = "["
    for item in value:
        put(separator)
        _write(item, put)
        separator = ","
    put("]" if value else "[]")
