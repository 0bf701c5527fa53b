"""Bodies of requests, read strictly: UTF-8 JSON objects with known members, every problem named with its field."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from evaluations.importers.base import Problems
from evaluations.importers.fields import Fault, Faults, count_of, decimal_of, text_of, unknown_fields
from evaluations.importers.jsontext import kind_of, parse
from evaluations.kernel.errors import DomainError, ErrorKind

BODY_NAME = "request-body.json"
MAX_BODY_BYTES = 64 * 1024


class RequestTooLarge(DomainError):
    """The body is larger than any request of its kind."""

    code = "too_large"
    kind = ErrorKind.TOO_LARGE


class Body:
    """One object of a request. Each reader keeps what is wrong; `done` raises all of it at once."""

    def __init__(
        self, given: Mapping[str, Any], members: tuple[str, ...], *, within: str = "", faults: Faults | None = None
    ) -> None:
        self.given = given
        self._within = within
        self._faults: Faults = [] if faults is None else faults
        found: Faults = []
        unknown_fields(given, members, found)
        self._keep(found)

    def __contains__(self, member: str) -> bool:
        return member in self.given

    def text(self, member: str, *, required: bool = False, limit: int = 200) -> str:
        """Return a line of text, "" where it is absent."""
        return str(self._read(text_of, member, required=required, limit=limit))

    def flag(self, member: str, *, default: bool | None = None) -> bool:
        """Return true or false; required where there is no default."""
        found = self.optional_flag(member)
        if found is None and default is None:
            self.wrong(member, "it is missing", "write true or false", "missing")
        return bool(default) if found is None else found

    def optional_flag(self, member: str) -> bool | None:
        """Return true, false, or None where it is absent or null."""
        value = self.given.get(member)
        if value is None or isinstance(value, bool):
            return value
        self.wrong(member, f"it is {kind_of(value)}", "write true or false")
        return None

    def count(self, member: str) -> int | None:
        """Return a whole number, or None where it is absent or null."""
        found: int | None = self._read(count_of, member)
        return found

    def decimal(self, member: str) -> Decimal | None:
        """Return an exact number that was written as a number or as text, or None where it is absent or null."""
        found: Decimal | None = self._read(decimal_of, member)
        return found

    def texts(self, member: str, *, most: int) -> list[str]:
        """Return a list of texts, empty where it is absent."""
        value = self.given.get(member)
        if value is None:
            return []
        # A number is text that remembers being a number.
        if not isinstance(value, list) or len(value) > most or any(type(item) is not str for item in value):
            self.wrong(member, f"it is {kind_of(value)}", f"write a list of at most {most} texts")
            return []
        return list(value)

    def inner(self, member: str, members: tuple[str, ...]) -> "Body | None":
        """Return an object inside this one, None where it is absent."""
        value = self.given.get(member)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.wrong(member, f"it is {kind_of(value)}", "write an object")
            return None
        return Body(value, members, within=f"{self._within}{member}.", faults=self._faults)

    def inners(self, member: str, members: tuple[str, ...], *, most: int) -> "list[Body]":
        """Return a list of objects inside this one, empty where it is absent."""
        value = self.given.get(member)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > most or not all(isinstance(item, dict) for item in value):
            self.wrong(member, f"it is {kind_of(value)}", f"write a list of at most {most} objects")
            return []
        place = f"{self._within}{member}"
        return [Body(item, members, within=f"{place}[{at}].", faults=self._faults) for at, item in enumerate(value)]

    def wrong(self, member: str, message: str, hint: str = "", code: str = "invalid") -> None:
        """Keep one problem."""
        self._keep([Fault(member, message, hint, code)])

    def done(self) -> None:
        """Raise `InputRefused` with everything that was found wrong."""
        problems = Problems(BODY_NAME)
        for fault in self._faults:
            problems.add(fault.message, field=fault.field, code=fault.code, hint=fault.hint)
        problems.raise_any()

    def _read(self, reader: Callable[..., Any], member: str, **options: Any) -> Any:
        found: Faults = []
        value = reader(self.given, member, found, **options)
        self._keep(found)
        return value

    def _keep(self, found: Faults) -> None:
        self._faults += [fault._replace(field=f"{self._within}{fault.field}") for fault in found]


def read_object(body: bytes, *, example: str) -> dict[str, Any]:
    """Return the object that a body is; duplicate keys are refused. Raises `RequestTooLarge`, `InputRefused` naming the line."""
    if len(body) > MAX_BODY_BYTES:
        raise RequestTooLarge(f"such a request has at most {MAX_BODY_BYTES} bytes")
    problems = Problems(BODY_NAME)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        problems.add("the body is not UTF-8 text", code="malformed", hint="send JSON in UTF-8")
    problems.raise_any()
    if not text.strip():
        problems.add("the body is empty", code="empty", hint=f"such as {example}")
    problems.raise_any()
    given = parse(text, problems)
    if not isinstance(given, dict):
        problems.add(f"the body is {kind_of(given)}", code="malformed", hint=f"send an object, such as {example}")
    problems.raise_any()
    found: dict[str, Any] = given
    return found
