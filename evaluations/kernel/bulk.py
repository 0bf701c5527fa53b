"""Many rows at once: which of them are new, and statements over arrays that are bound instead of written into the text."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

import psycopg
from django.db import connection
from django.db.models import Model
from psycopg.abc import Buffer
from psycopg.adapt import Loader

Row = TypeVar("Row", bound=Model)
_uid = attrgetter("uid")


def insert_new(rows: Sequence[Row]) -> list[Row]:
    """Insert rows of one model that has a `uid` in the present transaction, and return those that nobody had inserted before.

    Another transaction may be inserting the same: the unique keys decide, and each side finds its own rows by their `uid`.
    """
    if not rows:
        return []
    manager = type(rows[0])._default_manager
    manager.bulk_create(rows, ignore_conflicts=True)
    ours = set(manager.filter(uid__in=[_uid(row) for row in rows]).values_list("uid", flat=True))
    return [row for row in rows if _uid(row) in ours]


def execute_with_arrays(statement: str, parameters: Mapping[str, Any] | Sequence[Any]) -> int:
    """Run one statement in the present transaction and return how many rows it touched.

    Django's cursor quotes parameters into the text, which costs more than the statement itself when they are arrays of thousands;
    this one binds them on the server. Errors are Django's, as with any cursor.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(statement, parameters)
        return cursor.rowcount


def fetch_with_arrays(statement: str, parameters: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run one statement in the present transaction and return its rows; instants are aware, in UTC.

    Django's cursor reads each instant anew, in Python, which of many rows is most of what reading them costs; many rows hold few
    different ones.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.adapters.register_loader("timestamptz", _InstantLoader)
        return cursor.execute(statement, parameters).fetchall()


class _InstantLoader(Loader):
    def load(self, data: Buffer) -> datetime:
        return _instant(bytes(data))


@lru_cache(maxsize=65_536)
def _instant(text: bytes) -> datetime:
    return datetime.fromisoformat(text.decode()).astimezone(UTC)


def copy_rows(statement: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Send rows by a statement `COPY … FROM STDIN (FORMAT BINARY)` in the present transaction; `types` are those of its columns.

    Errors are Django's, as with any cursor.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor, cursor.copy(statement) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)
