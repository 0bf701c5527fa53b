"""Fields of answers: exact numbers as text, instants in UTC, words of closed lists, and links."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.reverse import reverse

from compliance.ledger.note import encode_hash
from evaluations.kernel.canonical import timestamp
from evaluations.kernel.numbers import plain

DIGEST_PATTERN = "^sha256:[0-9a-f]{64}$"


class ReadField(serializers.Field[Any, Any, Any, Any]):
    """A field of an answer; nothing is ever read from it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(read_only=True, **options)


@extend_schema_field({"type": "string", "pattern": r"^(-?[0-9]+(\.[0-9]+)?|NaN|-?Infinity)$", "example": "53.9"})
class Exact(ReadField):
    """A decimal as text: exact, positional, without trailing zeros."""

    def to_representation(self, value: Decimal) -> str:
        # No intake lets such a row in; one written past the check constraints is shown for what it is, and never passes a rule.
        return plain(value) if value.is_finite() else str(value)


@extend_schema_field({"type": "string", "format": "date-time", "example": "2026-11-29T12:00:00.000000Z"})
class Instant(ReadField):
    """An instant, RFC 3339, in UTC, with microseconds: the spelling that facts and entries use too."""

    def to_representation(self, value: datetime) -> str:
        return timestamp(value)


@extend_schema_field({"type": "string", "pattern": DIGEST_PATTERN})
class Digest(ReadField):
    """`sha256:` and 64 hexadecimal digits."""

    def to_representation(self, value: str) -> str:
        return value


@extend_schema_field({"type": "string", "format": "byte", "description": "SHA-256 in base64, as C2SP writes hashes."})
class Hash(ReadField):
    """A hash of the log's tree."""

    def to_representation(self, value: bytes) -> str:
        return encode_hash(bytes(value))


class Words(serializers.ChoiceField):
    """One word of a closed list."""

    def __init__(self, choices: type[models.TextChoices], **options: Any) -> None:
        super().__init__(choices=choices.choices, read_only=True, **options)

    def to_representation(self, value: Any) -> str:
        return str(value)


@extend_schema_field({"type": "string", "format": "uri"})
class Link(ReadField):
    """The address of something else in this API. `arguments` maps the address's parts to dotted attributes of the row."""

    def __init__(self, view: str, arguments: Mapping[str, str], **options: Any) -> None:
        self.view = view
        self.arguments = arguments
        super().__init__(source="*", **options)

    def to_representation(self, value: Any) -> str:
        parts = {name: _follow(value, path) for name, path in self.arguments.items()}
        return str(reverse(self.view, kwargs=parts, request=self.context.get("request")))


def _follow(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name)
    return value
