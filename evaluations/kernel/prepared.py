"""Statements that are asked so often that planning them would cost more than running them: planned once for each connection.

They go to the database through the driver's own lower half (`psycopg.pq`): parameters are text or arrays in binary form, and what comes
back is text. What its upper half does for any statement (types, cursors, a loop that waits) costs more than these statements do.
"""

import struct
from collections.abc import Iterable, Sequence
from hashlib import sha256
from weakref import WeakKeyDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import pq

Row = tuple[bytes | None, ...]
Given = str | bytes
Prepared = dict[str, bytes]

_prepared: "WeakKeyDictionary[psycopg.Connection[tuple[object, ...]], Prepared]" = WeakKeyDictionary()


def fetch_prepared(statement: str, given: Sequence[Given]) -> list[Row]:
    """Run a statement with `$1`, `$2`, … under its kept plan, and return its rows as the database writes them. Errors are Django's.

    A `str` is sent as text, `bytes` as the binary form of an array, as the functions below make it.
    """
    database = connections[DEFAULT_DB_ALIAS]
    database.ensure_connection()
    connection: psycopg.Connection[tuple[object, ...]] = database.connection
    with database.wrap_database_errors:
        if database.in_atomic_block and connection.pgconn.transaction_status == pq.TransactionStatus.IDLE:
            # The upper half opens the transaction; the lower one knows nothing of it.
            connection.execute("SELECT")
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
        values = [value.encode() if isinstance(value, str) else value for value in given]
        formats = [0 if isinstance(value, str) else 1 for value in given]
        return _rows(_checked(connection.pgconn.exec_prepared(name, values, formats)))


def _checked(result: pq.abc.PGresult) -> pq.abc.PGresult:
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise psycopg.errors.error_from_result(result)
    return result


def _rows(result: pq.abc.PGresult) -> list[Row]:
    columns = range(result.nfields)
    return [tuple(result.get_value(place, column) for column in columns) for place in range(result.ntuples)]


# --- arrays in binary form: PostgreSQL's array_recv (one dimension, counted from 1), each element by its type's own binary form

_BOOL, _BYTEA, _INT8, _INT4, _TEXT, _XID, _UUID = 16, 17, 20, 23, 25, 28, 2950
_NULL = b"\xff\xff\xff\xff"
_length = struct.Struct("!i").pack
_header = struct.Struct("!iiIii").pack
_bigint = struct.Struct("!iq").pack
_int = struct.Struct("!ii").pack
_xid = struct.Struct("!iI").pack


def texts(values: Iterable[str]) -> bytes:
    """Return `text[]`."""
    return _array(_TEXT, [_length(len(content)) + content for content in map(str.encode, values)])


def byteas(values: Iterable[bytes]) -> bytes:
    """Return `bytea[]`."""
    return _array(_BYTEA, [_length(len(value)) + value for value in values])


def uuids(values: Iterable[bytes]) -> bytes:
    """Return `uuid[]`, of values of 16 bytes."""
    return _array(_UUID, [b"\x00\x00\x00\x10" + value for value in values])


def bools(values: Iterable[bool]) -> bytes:
    """Return `boolean[]`."""
    return _array(_BOOL, [b"\x00\x00\x00\x01\x01" if value else b"\x00\x00\x00\x01\x00" for value in values])


def bigints(values: Iterable[int | None]) -> bytes:
    """Return `bigint[]`; None is null."""
    return _array(_INT8, [_NULL if value is None else _bigint(8, value) for value in values])


def ints(values: Iterable[int]) -> bytes:
    """Return `int[]`."""
    return _array(_INT4, [_int(4, value) for value in values])


def xids(values: Iterable[int]) -> bytes:
    """Return `xid[]`."""
    return _array(_XID, [_xid(4, value) for value in values])


def _array(oid: int, parts: list[bytes]) -> bytes:
    return _header(1, 1, oid, len(parts), 1) + b"".join(parts)
