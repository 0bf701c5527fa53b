"""Statements over whole arrays of values, sent as they are instead of being written into the statement's text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import psycopg
from django.db import connection


def execute_with_arrays(statement: str, parameters: Mapping[str, Any] | Sequence[Any]) -> int:
    """Run one statement in the present transaction and return how many rows it touched.

    Django's cursor quotes parameters into the text, which costs more than the statement itself when they are arrays of thousands;
    this one binds them on the server. Errors are Django's, as with any cursor.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(statement, parameters)
        return cursor.rowcount


def copy_rows(statement: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Send rows by a statement `COPY … FROM STDIN (FORMAT BINARY)` in the present transaction; `types` are those of its columns.

    Errors are Django's, as with any cursor.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor, cursor.copy(statement) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)
