"""Bodies of requests as views read them: known members alone, and instants that say their offset."""

import re
from datetime import UTC, datetime
from typing import Any

from rest_framework.request import Request

from compliance.api.parameters import Parameter
from compliance.api.parsers import body_of
from compliance.services.bodies import MAX_BODY_BYTES, Body, read_object
from compliance.services.requests import MAX_TEXT

BODY_REFUSALS = {
    "411": "The body came without its length.",
    "413": f"The body is larger than {MAX_BODY_BYTES} bytes.",
    "415": "The body is not application/json.",
}
INSTANT = {"type": "string", "format": "date-time", "description": "With `Z` or an offset."}
REASON = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT}
WHOLE_INSTANT = "write 2026-11-01T12:00:00Z, or with an offset such as +02:00: a local time may come twice, or not at all"

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)\Z", re.ASCII)


def read_body(request: Request, *members: str, example: str) -> Body:
    """Return the object in a body. Raises `RequestTooLarge`, `LengthRequired`, and `InputRefused` for what is no object."""
    return Body(read_object(body_of(request), example=example), members)


def reason_in(body: Body, member: str = "reason") -> str:
    """Return why something is done: it is required."""
    return body.text(member, required=True, limit=MAX_TEXT)


def instant_in(body: Body, member: str, *, required: bool = False) -> datetime | None:
    """Return an instant in UTC, None where it is absent or refused. One without an offset is refused, and so is a date alone."""
    given = body.text(member, required=required, limit=40)
    if not given:
        return None
    try:
        return parse_instant(given)
    except ValueError as fault:
        body.wrong(member, "it is no instant", str(fault), "not_an_instant")
        return None


def parse_instant(text: str) -> datetime:
    """Return the instant in UTC that a text states with its offset. Raises `ValueError` saying what to write instead."""
    if _INSTANT.match(text):
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise ValueError(WHOLE_INSTANT)


def instant(name: str, description: str) -> Parameter:
    """Return a query parameter that takes an instant with its offset."""
    return Parameter(name, parse_instant, {"type": "string", "format": "date-time"}, description)


def object_schema(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """Return the description of an object with these members and no others."""
    described: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**described, "required": list(required)} if required else described
