"""Query parameters, declared by each view and read strictly: a misspelt filter must not silently list everything."""

import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from django.db import models
from django.http import QueryDict

from compliance.api.fields import DIGEST_PATTERN
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.names import KEY_MAX_LENGTH, KEY_PATTERN, key_problem

MAX_LENGTH = 1_000
MAX_NUMBER = 2**31 - 1

_DIGEST = re.compile(DIGEST_PATTERN.removesuffix("$") + r"\Z")
_NUMBER = re.compile(r"[0-9]{1,16}\Z")


class ParametersRefused(InputRefused):
    code = "parameters_refused"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One query parameter. `read` turns its text into a value or raises `ValueError` saying what to write instead."""

    name: str
    read: Callable[[str], Any]
    schema: Mapping[str, Any]
    description: str
    required: bool = False


def text(name: str, description: str, *, limit: int = 300) -> Parameter:
    """Return a parameter that takes any text."""

    def read(given: str) -> str:
        if len(given) > limit:
            raise ValueError(f"write at most {limit} characters")
        return given

    return Parameter(name, read, {"type": "string", "minLength": 1, "maxLength": limit}, description)


def key(name: str, description: str) -> Parameter:
    """Return a parameter that takes the key of a subject, source, benchmark, metric or policy."""

    def read(given: str) -> str:
        problem = key_problem(given, field=name)
        if problem is not None:
            raise ValueError(problem.hint or problem.message)
        return given

    return Parameter(name, read, {"type": "string", "pattern": KEY_PATTERN, "maxLength": KEY_MAX_LENGTH}, description)


def word(name: str, choices: type[models.TextChoices], description: str) -> Parameter:
    """Return a parameter that takes one word of a closed list."""

    def read(given: str) -> str:
        if given not in choices.values:
            raise ValueError(f"write one of {', '.join(choices.values)}")
        return given

    return Parameter(name, read, {"type": "string", "enum": list(choices.values)}, description)


def flag(name: str, description: str) -> Parameter:
    """Return a parameter that takes `true` or `false`."""

    def read(given: str) -> bool:
        if given not in ("true", "false"):
            raise ValueError("write true or false")
        return given == "true"

    return Parameter(name, read, {"type": "boolean"}, description)


def number(name: str, description: str, *, minimum: int = 1, maximum: int = MAX_NUMBER, required: bool = False) -> Parameter:
    """Return a parameter that takes a whole number of a range."""

    def read(given: str) -> int:
        if not _NUMBER.match(given) or not minimum <= int(given) <= maximum:
            raise ValueError(f"write a whole number from {minimum} to {maximum}")
        return int(given)

    return Parameter(name, read, {"type": "integer", "minimum": minimum, "maximum": maximum}, description, required)


def digest(name: str, description: str) -> Parameter:
    """Return a parameter that takes a digest."""

    def read(given: str) -> str:
        if not _DIGEST.match(given):
            raise ValueError("write sha256: and 64 hexadecimal digits")
        return given

    return Parameter(name, read, {"type": "string", "pattern": DIGEST_PATTERN}, description)


def uid(name: str, description: str) -> Parameter:
    """Return a parameter that takes a UUID."""

    def read(given: str) -> uuid.UUID:
        try:
            return uuid.UUID(given)
        except ValueError:
            raise ValueError("write a UUID") from None

    return Parameter(name, read, {"type": "string", "format": "uuid"}, description)


def read_parameters(given: QueryDict, declared: Iterable[Parameter]) -> dict[str, Any]:
    """Return the values of the parameters that were given.

    Raises `ParametersRefused` naming every parameter that is unknown, given twice, empty, not of its kind, or missing.
    """
    known = {parameter.name: parameter for parameter in declared}
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, texts in given.lists():
        try:
            values[name] = _value(known, name, texts)
        except ValueError as fault:
            hint = str(fault)
            parameter = known.get(name)
            code = "invalid" if parameter else "unknown_parameter"
            message = f"`{_shown(texts[-1])}` is no `{name}`" if parameter else f"there is no parameter `{_shown(name)}` here"
            problems.append(Problem(message, field=_shown(name), code=code, hint=hint))
    for parameter in known.values():
        if parameter.required and parameter.name not in given:
            hint = parameter.description
            problems.append(Problem(f"`{parameter.name}` is missing", field=parameter.name, code="missing", hint=hint))
    if problems:
        raise ParametersRefused(problems)
    return values


def _value(known: Mapping[str, Parameter], name: str, texts: Sequence[str]) -> Any:
    parameter = known.get(name)
    if parameter is None:
        near = get_close_matches(name, known, n=1)
        raise ValueError(f"did you mean `{near[0]}`?" if near else f"known: {', '.join(sorted(known)) or 'none'}")
    if len(texts) > 1:
        raise ValueError("give it once")
    only = texts[0]
    if not only.strip():
        raise ValueError("give it a value, or leave it out")
    if len(only) > MAX_LENGTH:
        raise ValueError(f"write at most {MAX_LENGTH} characters")
    if "\x00" in only:
        raise ValueError("write it without a zero byte")
    return parameter.read(only)


def _shown(given: str) -> str:
    printable = "".join(letter if letter.isprintable() else "�" for letter in given[:81])
    return printable if len(printable) <= 80 else printable[:79] + "…"
