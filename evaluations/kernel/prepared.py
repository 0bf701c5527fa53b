"""Statements that are asked so often that planning them would cost more than running them: planned once for each connection.

They go to the database through the driver's own lower half (`psycopg.pq`): parameters are text, and so is what comes back. What its
upper half does for any statement (types, cursors, a loop that waits) costs more than these statements do.
"""

from collections.abc import Sequence
from hashlib import sha256
from weakref import WeakKeyDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import pq

Row = tuple[bytes | None, ...]
Prepared = dict[str, bytes]

_prepared: "WeakKeyDictionary[psycopg.Connection[tuple[object, ...]], Prepared]" = WeakKeyDictionary()


def fetch_prepared(statement: str, given: Sequence[str]) -> list[Row]:
    """Run a statement with `$1`, `$2`, … under its kept plan, and return its rows as the database writes them. Errors are Django's."""
    database = connections[DEFAULT_DB_ALIAS]
    database.ensure_connection()
    connection: psycopg.Connection[tuple[object, ...]] = database.connection
    with database.wrap_database_errors:
        if database.in_atomic_block:
            # The upper half opens the transaction; the lower one knows nothing of it.
            with psycopg.RawCursor(connection) as cursor:
                cursor.execute(statement.encode(), given)
                return _rows(cursor.pgresult)
        names = _prepared.get(connection)
        if names is None:
            # The values say little about the plan, and a plan made anew for each of them takes four times as long as the answer.
            _checked(connection.pgconn.exec_(b"SET plan_cache_mode = force_generic_plan; SET jit = off"))
            names = _prepared[connection] = {}
        name = names.get(statement)
        if name is None:
            name = b"writegate_" + sha256(statement.encode()).hexdigest()[:16].encode()
            _checked(connection.pgconn.prepare(name, statement.encode()))
            names[statement] = name
        return _rows(_checked(connection.pgconn.exec_prepared(name, [value.encode() for value in given])))


def _checked(result: pq.abc.PGresult) -> pq.abc.PGresult:
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise psycopg.errors.error_from_result(result)
    return result


def _rows(result: pq.abc.PGresult | None) -> list[Row]:
    if result is None:
        return []
    columns = range(result.nfields)
    return [tuple(result.get_value(place, column) for column in columns) for place in range(result.ntuples)]
