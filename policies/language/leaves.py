"""The leaves of a policy's shapes: numbers, names, texts and words, each with its check, its message and its JSON Schema."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from evaluations.kernel.names import foreign
from policies.language.document import BROKEN, shown
from policies.language.results import DRIFT_ACTIONS, Result

UNLIMITED = "unlimited"

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}\Z")
_ACTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,79}\Z")
_LONGEST_NUMBER = 40
_COMPARISON = re.compile(r"\s*(?P<operator>[<>=!\u2264\u2265~ ]*)\s*(?P<number>-?[0-9]+(?:[.,][0-9]+)?)\s*%?\s*\Z")


def refuse(code: str, message: str, hint: str = "") -> PydanticCustomError:
    """Return the error with which a leaf is refused."""
    return PydanticCustomError(code, "{message}", {"message": message, "hint": hint})


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A leaf of a shape: a checking function and the JSON Schema that says the same."""

    check: Callable[[Any], Any]
    schema: dict[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return dict(self.schema)


class ParamRef(BaseModel):
    """A bar that is kept in `params`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    param: str


def kind_of(value: Any) -> str:
    """Name a value of the tree for a message."""
    if isinstance(value, bool):
        return f"`{'true' if value else 'false'}`"
    if isinstance(value, Decimal):
        return f"the number {value:f}"
    if isinstance(value, str):
        return f"the text {shown(value)}"
    if isinstance(value, list):
        return "a list"
    return "a mapping"


def _number(value: Any) -> Any:
    if isinstance(value, Decimal) or value is BROKEN:
        return value
    if not isinstance(value, str):
        raise refuse("number", f"{kind_of(value)} stands where a number is meant", "write plain digits such as 80.0")
    raise refuse("number", f"{shown(value)} is text where a number is meant", _number_hint(value))


def _number_hint(text: str) -> str:
    found = _COMPARISON.match(text) if len(text) <= _LONGEST_NUMBER else None
    if found is None:
        return "write plain digits such as 80.0"
    number = found["number"].replace(",", ".")
    if found["operator"].strip():
        return f"write {number} alone: `at_least` and `at_most` already say which side passes"
    if "%" in text:
        return f"write {number} alone: the unit is the metric's"
    if "," in found["number"]:
        return f"write {number}, with a decimal point"
    return f"write {number} without quotes"


def _share(value: Any) -> Any:
    number = _number(value)
    if number is not BROKEN and not 0 <= number <= 1:
        raise refuse("range", f"the share {number:f} is not between 0 and 1", "write 0.02 for two percent")
    return number


def _confidence(value: Any) -> Any:
    number = _number(value)
    if number is not BROKEN and not Decimal("0.5") <= number < 1:
        raise refuse("range", f"the confidence {number:f} is not from 0.5 up to below 1", "write 0.95 for 95 percent")
    return number


def _positive(value: Any) -> Any:
    number = _number(value)
    if number is not BROKEN and number <= 0:
        raise refuse("range", f"{number:f} is not above 0", "write how far the statistic may worsen, in the metric's unit")
    return number


def _bar(value: Any) -> Any:
    if not isinstance(value, dict):
        return _number(value)
    if set(value) != {"param"} or not isinstance(value["param"], str):
        if value.get("param") is BROKEN:
            return BROKEN
        raise refuse("bar", "a bar is a number or `{param: NAME}`", "write `{param: NAME}` with a name from `params`")
    return ParamRef(param=value["param"])


def whole(minimum: int, maximum: int) -> Leaf:
    """A whole number in a range, both ends included."""

    def check(value: Any) -> Any:
        if value is BROKEN:
            return value
        if not isinstance(value, Decimal) or value != value.to_integral_value():
            raise refuse(
                "whole_number", f"{kind_of(value)} stands where a whole number is meant", "write plain digits without quotes"
            )
        if not minimum <= value <= maximum:
            raise refuse("range", f"{value:f} is not from {minimum} to {maximum}")
        return int(value)

    return Leaf(check, {"type": "integer", "minimum": minimum, "maximum": maximum})


def _max_age(value: Any) -> Any:
    if value == UNLIMITED:
        return value
    try:
        return _AGE.check(value)
    except PydanticCustomError as error:
        context = error.context or {}
        raise refuse(error.type, context["message"], f"write whole days such as 90, or `{UNLIMITED}`") from None


def text(longest: int) -> Leaf:
    """A text that is not blank."""

    def check(value: Any) -> Any:
        if value is BROKEN:
            return value
        if not isinstance(value, str):
            hint = f'put it in quotes: "{value:f}"' if isinstance(value, Decimal) else "write a text"
            raise refuse("text", f"{kind_of(value)} stands where a text is meant", hint)
        if not value.strip():
            raise refuse("blank", "the text is blank", "write one, or leave the key out")
        if len(value) > longest:
            raise refuse("too_long", f"the text has {len(value)} characters; at most {longest} fit")
        return value

    return Leaf(check, {"type": "string", "minLength": 1, "maxLength": longest})


def _patterned(pattern: re.Pattern[str], rule: str) -> Leaf:
    def check(value: Any) -> Any:
        plain = _TEXT.check(value)
        if plain is not BROKEN and not pattern.match(plain):
            odd = foreign(plain)
            raise refuse("name", f"{shown(plain)} holds {odd}" if odd else f"{shown(plain)} is no name", rule)
        return plain

    # JSON Schema patterns know no `\Z`.
    return Leaf(check, {"type": "string", "pattern": "^" + pattern.pattern.removesuffix(r"\Z") + "$"})


def one_of(*words: str) -> Leaf:
    """A word of a closed list."""

    def check(value: Any) -> Any:
        if value is BROKEN or (isinstance(value, str) and value in words):
            return value
        listed = ", ".join(f"`{word}`" for word in words)
        raise refuse("word", f"{kind_of(value)} is not known here", f"write {'one of ' if len(words) > 1 else ''}{listed}")

    return Leaf(check, {"enum": list(words)})


def _flag(value: Any) -> Any:
    if isinstance(value, bool) or value is BROKEN:
        return value
    raise refuse("flag", f"{kind_of(value)} stands where true or false is meant", "write `true` or `false` without quotes")


_AGE = whole(1, 36_500)
_TEXT = text(200)
_NAME = _patterned(NAME, "write small letters, digits, `-`, `_` and `.`, at most 80, a letter or digit first")
_NUMBER_SCHEMA = {"type": "number"}
_BAR_SCHEMA = {
    "anyOf": [
        _NUMBER_SCHEMA,
        {"type": "object", "properties": {"param": {"type": "string"}}, "required": ["param"], "additionalProperties": False},
    ]
}

Name = Annotated[str, _NAME]
Action = Annotated[str, _patterned(_ACTION, "write letters, digits, `-`, `_`, `.` and `:`, at most 80, a letter or digit first")]
Title = Annotated[str, _TEXT]
Expression = Annotated[str, text(10_000)]  # the shorter true limit has its own message
Number = Annotated[Decimal, Leaf(_number, _NUMBER_SCHEMA)]
Share = Annotated[Decimal, Leaf(_share, {"type": "number", "minimum": 0, "maximum": 1})]
Confidence = Annotated[Decimal, Leaf(_confidence, {"type": "number", "minimum": 0.5, "exclusiveMaximum": 1})]
Fall = Annotated[Decimal, Leaf(_positive, {"type": "number", "exclusiveMinimum": 0})]
Bar = Annotated[Decimal | ParamRef, Leaf(_bar, _BAR_SCHEMA)]
MaxAge = Annotated[int | str, Leaf(_max_age, {"anyOf": [_AGE.schema, {"const": UNLIMITED}]})]
Count = Annotated[int, whole(0, 1_000_000_000)]
Positive = Annotated[int, whole(1, 1_000_000_000)]
Flag = Annotated[bool, Leaf(_flag, {"type": "boolean"})]
ResultWord = Annotated[str, one_of(*(word.value for word in Result))]
DriftAction = Annotated[str, one_of(*DRIFT_ACTIONS)]
