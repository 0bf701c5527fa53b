"""Changes that hold only for what the caller saw: `ETag` on the way out, `If-Match` on the way in (RFC 9110, RFC 6585)."""

import re
from http import HTTPStatus

from rest_framework import exceptions
from rest_framework.request import Request

from compliance.api.parameters import Parameter

IF_MATCH = Parameter(
    "If-Match",
    str,
    {"type": "string", "pattern": '^"[!#-~]{1,200}"$'},
    "The ETag of what you saw; required. 412 where it is no longer so, 428 where it is not given.",
)
PRECONDITIONS = {
    "412": "It was changed since you saw it: look at it again.",
    "428": "The If-Match is missing.",
}

_STRONG = re.compile(r'"([!#-~]{1,200})"\Z')


class PreconditionFailed(exceptions.APIException):
    """What is to be changed is no longer as the caller saw it."""

    status_code = HTTPStatus.PRECONDITION_FAILED
    default_detail = "it was changed since you saw it: look at it again"
    default_code = "precondition_failed"


class PreconditionRequired(exceptions.APIException):
    """A change came without saying what the caller saw."""

    status_code = HTTPStatus.PRECONDITION_REQUIRED
    default_detail = "send If-Match with the ETag of what you saw, exactly one"
    default_code = "precondition_required"


def etag(digest: str) -> str:
    """Return the entity tag of a state by its digest."""
    return f'"{digest}"'


def seen_digest(request: Request) -> str:
    """Return the digest in `If-Match`. Raises `PreconditionRequired` where there is none, or anything but one strong tag:
    `*` says nothing of what was seen.
    """
    match = _STRONG.match(request.headers.get("If-Match", "").strip())
    if match is None:
        raise PreconditionRequired
    return match[1]
