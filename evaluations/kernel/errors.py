"""Errors with a code. Doors (API, command, admin) render them; nothing else knows HTTP or exit codes.

Texts follow one style: lower case, no final stop, user input in back-ticks, no line breaks, and they say what to do.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple


class ErrorKind(StrEnum):
    """What sort of refusal it is; a door maps it to a status or an exit code."""

    INVALID = "invalid"  # the input cannot be read or breaks a rule of its format
    UNPROCESSABLE = "unprocessable"  # the input is well formed, but names or values are not acceptable
    NOT_FOUND = "not_found"
    FORBIDDEN = "forbidden"
    CONFLICT = "conflict"  # the state of the world does not allow it now
    TOO_LARGE = "too_large"
    UNAVAILABLE = "unavailable"


class Problem(NamedTuple):
    """One finding about an input: where it is, what is wrong, what to write instead."""

    message: str
    file: str = ""
    line: int | None = None
    column: int | None = None
    row: int | None = None
    field: str = ""
    code: str = ""
    hint: str = ""

    def __str__(self) -> str:
        place = [self.file] if self.file else []
        if self.line is not None:
            place.append(f"line {self.line}" + (f", column {self.column}" if self.column is not None else ""))
        if self.row is not None:
            place.append(f"row {self.row}")
        if self.field:
            place.append(f"field `{self.field}`")
        text = f"{', '.join(place)}: {self.message}" if place else self.message
        return f"{text}; {self.hint}" if self.hint else text


class DomainError(Exception):
    """A refusal by the domain. Subclasses fix `code` and `kind`; `detail` is one sentence for a person."""

    code = "refused"
    kind = ErrorKind.UNPROCESSABLE
    recorded = False
    """True once the ledger tells of this refusal."""

    def __init__(self, detail: str = "", **facts: object) -> None:
        super().__init__(detail or self.code.replace("_", " "))
        self.detail = detail or self.code.replace("_", " ")
        self.facts = facts


class NotFound(DomainError):
    code = "not_found"
    kind = ErrorKind.NOT_FOUND


class InputRefused(DomainError):
    """An input was refused; `problems` holds every finding (at least one), in the order of the input."""

    code = "input_refused"
    kind = ErrorKind.INVALID

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = tuple(problems)
        if not self.problems:
            raise ValueError("InputRefused needs at least one problem")
        first = str(self.problems[0])
        more = len(self.problems) - 1
        super().__init__(first if not more else f"{first} (and {more} more)")
