"""Columns that keep our promises: exact decimals, digests, keys."""

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Round

from evaluations.kernel.names import KEY_MAX_LENGTH, KEY_PATTERN, key_problem
from evaluations.kernel.numbers import MAX_DECIMAL_PLACES, NotADecimal, parse_decimal

if TYPE_CHECKING:
    _CharField = models.CharField[str, str]
    _DecimalField = models.DecimalField[Any, Any]
else:
    _CharField = models.CharField
    _DecimalField = models.DecimalField

DECIMAL_LIMIT = Decimal(10) ** 12


class ExactDecimalField(_DecimalField):
    """An exact decimal that no column rounds: plain `numeric`, with `finite_constraint` beside it.

    `numeric(p, s)` rounds silently on raw SQL; plain `numeric` keeps what it is given, and the constraint refuses what is too long.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("max_digits", 18)
        options.setdefault("decimal_places", MAX_DECIMAL_PLACES)
        super().__init__(*args, **options)

    def db_type(self, connection: Any) -> str:
        return "numeric"

    def to_python(self, value: Any) -> Decimal | None:
        if value is None:
            return None
        try:
            return parse_decimal(value, field=self.name or "value")
        except NotADecimal as error:
            raise ValidationError(str(error), code="invalid") from error

    def get_prep_value(self, value: Any) -> Any:
        # A Decimal goes to the database as it is, for the check constraint to judge; everything else is read as at any door.
        return value if isinstance(value, Decimal | None) or hasattr(value, "resolve_expression") else self.to_python(value)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:  # noqa: FBT001, FBT002  (Django's own)
        return value if prepared else self.get_prep_value(value)


def finite_constraint(column: str, name: str) -> models.CheckConstraint:
    """Refuse NaN, infinities, more than six decimal places and more than twelve integer digits, whatever the road.

    PostgreSQL sorts numeric NaN above every number, so an upper limit excludes it and `Infinity` alike.
    """
    return models.CheckConstraint(
        name=name,
        condition=models.Q(
            **{
                f"{column}__gt": -DECIMAL_LIMIT,
                f"{column}__lt": DECIMAL_LIMIT,
                column: Round(models.F(column), MAX_DECIMAL_PLACES),
            }
        ),
    )


def _validate_key(value: str) -> None:
    problem = key_problem(value, field="key")
    if problem is not None:
        raise ValidationError(problem.message, code="invalid")


class KeyField(_CharField):
    """A key for people: lower-case ASCII, unique, validated in Python and by `key_constraint` in the database."""

    default_validators = [_validate_key]  # noqa: RUF012  (Django reads it by name)

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("max_length", KEY_MAX_LENGTH)
        super().__init__(*args, **options)


def key_constraint(column: str, name: str) -> models.CheckConstraint:
    """Refuse keys outside the ASCII set, whatever the road."""
    return models.CheckConstraint(name=name, condition=models.Q(**{f"{column}__regex": KEY_PATTERN}))


class DigestField(_CharField):
    """`sha256:` and 64 hexadecimal digits."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("max_length", 71)
        super().__init__(*args, **options)


def choice_constraint(column: str, choices: type[models.TextChoices], name: str) -> models.CheckConstraint:
    """Hold a closed list in the database too."""
    return models.CheckConstraint(name=name, condition=models.Q(**{f"{column}__in": [str(member) for member in choices]}))
