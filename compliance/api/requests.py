"""What every answer and every record says about the request it belongs to."""

import re
import uuid

from django.http import HttpRequest, HttpResponseBase

REQUEST_ID_HEADER = "X-Request-ID"

_GIVEN = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_ATTRIBUTE = "writegate_request_id"


def request_id_of(request: HttpRequest) -> str:
    """Return the caller's `X-Request-ID` where it is plain (to 64 letters, digits, `.`, `_`, `-`), else one made here, once."""
    known: str | None = getattr(request, _ATTRIBUTE, None)
    if known is None:
        given = request.headers.get(REQUEST_ID_HEADER, "")
        known = given if _GIVEN.match(given) else uuid.uuid4().hex
        setattr(request, _ATTRIBUTE, known)
    return known


def stamp(request: HttpRequest, response: HttpResponseBase) -> None:
    """Mark an answer with its request, and keep it out of every cache: what may be read is decided anew each time."""
    response.headers[REQUEST_ID_HEADER] = request_id_of(request)
    response.headers.setdefault("Cache-Control", "no-store")
