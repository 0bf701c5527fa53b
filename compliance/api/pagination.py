"""Pages by cursor, over a unique, rising key: no row is skipped or shown twice, whatever is inserted meanwhile."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from compliance.api.parameters import Parameter, number

DEFAULT_SIZE = 50
MAX_SIZE = 200
MAX_KEY = 2**63 - 1

_CURSOR = re.compile(r"([np])([0-9]{1,19})\Z")


class Cursor(NamedTuple):
    """Where a page begins: after (`forward`) or before the row with this key, in the order of the list."""

    forward: bool
    key: int

    def __str__(self) -> str:
        plain = f"{'n' if self.forward else 'p'}{self.key}"
        return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")


def read_cursor(given: str) -> Cursor:
    """Return the cursor that one of our links carried. Raises `ValueError` for any other text."""
    try:
        plain = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, UnicodeError, ValueError):
        plain = ""
    match = _CURSOR.match(plain)
    if match is None or int(match[2]) > MAX_KEY:
        raise ValueError("take it from `next` or `previous` of an answer")
    return Cursor(match[1] == "n", int(match[2]))


class CursorPages(BasePagination):
    """`{next, previous, results}`, ordered by the view's `page_key` alone: newest first, or oldest with `oldest_first`.

    A cursor holds the key of the row at the edge of the page it came from, and nothing else. There is no count: it would cost a
    scan, and be wrong by the next page.
    """

    parameters = (
        Parameter("cursor", read_cursor, {"type": "string", "maxLength": 60}, "From `next` or `previous` of another page."),
        number("page_size", f"Rows on a page, at most {MAX_SIZE}; {DEFAULT_SIZE} unless given.", maximum=MAX_SIZE),
    )

    def __init__(self) -> None:
        self._next: Cursor | None = None
        self._previous: Cursor | None = None
        self._address = ""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Return the rows of the page that `view.page` (the read parameters) asks for."""
        asked: Mapping[str, Any] = view.page
        size: int = asked.get("page_size", DEFAULT_SIZE)
        cursor: Cursor | None = asked.get("cursor")
        key: str = view.page_key
        forward = cursor is None or cursor.forward
        # Rising keys are walked upwards when exactly one of "oldest first" and "backwards" holds.
        rising = view.oldest_first == forward
        rows = queryset.order_by(key if rising else f"-{key}")
        if cursor is not None:
            rows = rows.filter(**{f"{key}__{'gt' if rising else 'lt'}": cursor.key})
        found = list(rows[: size + 1])
        more, page = len(found) > size, found[:size]
        if not forward:
            page.reverse()
        self._address = request.build_absolute_uri()
        if page:
            edge = cursor is not None
            if more if forward else edge:
                self._next = Cursor(True, getattr(page[-1], key))
            if edge if forward else more:
                self._previous = Cursor(False, getattr(page[0], key))
        return page

    def get_paginated_response(self, data: Sequence[Any]) -> Response:
        return Response({"next": self._link(self._next), "previous": self._link(self._previous), "results": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": "string", "format": "uri", "nullable": True}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {
                "next": {**link, "description": "The following page; null on the last one."},
                "previous": {**link, "description": "The page before; null on the first one."},
                "results": schema,
            },
        }

    def _link(self, cursor: Cursor | None) -> str | None:
        if cursor is None:
            return None
        return replace_query_param(remove_query_param(self._address, "cursor"), "cursor", str(cursor))
