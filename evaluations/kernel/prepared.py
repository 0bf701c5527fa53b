"""Statements that are asked so often that planning them would cost more than running them: planned once for each connection.

They go to the database through the driver's own lower half (`psycopg.pq`): parameters are text or arrays in binary form, and what comes
back is text. What its upper half does for any statement (types, cursors, a loop that waits) costs more than these statements do.
"""

import select
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from weakref import WeakKeyDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import pq

Connection = psycopg.Connection[tuple[object, ...]]
Row = tuple[bytes | None, ...]
Given = str | bytes
Prepared = dict[str, bytes]

_prepared: "WeakKeyDictionary[Connection, Prepared]" = WeakKeyDictionary()


def fetch_prepared(statement: str, given: Sequence[Given]) -> list[Row]:
    """Run a statement with `$1`, `$2`, … under its kept plan, and return its rows as the database writes them. Errors are Django's.

    A `str` is sent as text, `bytes` as the binary form of an array, as the functions below make it.
    """
    database = connections[DEFAULT_DB_ALIAS]
    with database.wrap_database_errors:
        connection = _ready(database)
        return _rows(_checked(connection.pgconn.exec_prepared(_name_of(statement, connection), *_bound(given))))


class Running:
    """A statement that the database works on meanwhile. Nothing else goes over the connection until its rows were taken."""

    def __init__(self, statement: str, given: Sequence[Given]) -> None:
        self._database = connections[DEFAULT_DB_ALIAS]
        with self._database.wrap_database_errors:
            connection = _ready(self._database)
            self._pgconn = connection.pgconn
            self._pgconn.send_query_prepared(_name_of(statement, connection), *_bound(given))
            while self._pgconn.flush():
                _wait(self._pgconn, select.POLLIN | select.POLLOUT)
                self._pgconn.consume_input()

    def rows(self) -> list[Row]:
        """Wait until it is done, and return its rows. Errors are Django's."""
        with self._database.wrap_database_errors:
            while self._pgconn.is_busy():
                _wait(self._pgconn, select.POLLIN)
                self._pgconn.consume_input()
            result = self._pgconn.get_result()
            if result is None:
                raise psycopg.OperationalError("the connection broke off while a statement ran")
            while self._pgconn.get_result() is not None:
                pass
            return _rows(_checked(result))


@contextmanager
def transaction(kind: str = "") -> Iterator[None]:
    """Run statements of the lower half as one transaction, of a kind such as `READ ONLY`. Inside another one it adds nothing.

    Where the block raises it is rolled back; where not even that can be done, the connection is closed.
    """
    database = connections[DEFAULT_DB_ALIAS]
    if database.in_atomic_block:
        yield
        return
    with database.wrap_database_errors:
        pgconn = _ready(database).pgconn
        _checked(pgconn.exec_(f"BEGIN {kind}".encode()))
    try:
        yield
    except BaseException:
        if not _is_rolled_back(pgconn):
            database.close()
        raise
    with database.wrap_database_errors:
        if _checked(pgconn.exec_(b"COMMIT")).command_status != b"COMMIT":
            raise psycopg.InternalError("a statement failed, so the transaction was rolled back")


def _is_rolled_back(pgconn: pq.abc.PGconn) -> bool:
    """Roll back, and tell whether that was done: not where a statement is still running, or nobody is there."""
    try:
        running = pgconn.transaction_status == pq.TransactionStatus.ACTIVE
        return not running and pgconn.exec_(b"ROLLBACK").status == pq.ExecStatus.COMMAND_OK
    except psycopg.Error:
        return False


def _ready(database: BaseDatabaseWrapper) -> Connection:
    """Return the driver's connection, with plans that are kept, and in its transaction where there is one."""
    database.ensure_connection()
    connection: Connection = database.connection
    if database.in_atomic_block and connection.pgconn.transaction_status == pq.TransactionStatus.IDLE:
        # The upper half opens the transaction; the lower one knows nothing of it.
        connection.execute("SELECT")
    if connection not in _prepared:
        # The values say little about the plan, and a plan made anew for each of them takes four times as long as the answer.
        _checked(connection.pgconn.exec_(b"SET plan_cache_mode = force_generic_plan; SET jit = off"))
        _prepared[connection] = {}
    return connection


def _name_of(statement: str, connection: Connection) -> bytes:
    """Return the name under which a statement is prepared on the connection."""
    names = _prepared[connection]
    name = names.get(statement)
    if name is None:
        name = b"writegate_" + sha256(statement.encode()).hexdigest()[:16].encode()
        _checked(connection.pgconn.prepare(name, statement.encode()))
        names[statement] = name
    return name


def _bound(given: Sequence[Given]) -> tuple[list[bytes], list[int]]:
    """Return parameters and their formats, 0 for text and 1 for binary, as the lower half takes them."""
    return [value.encode() if isinstance(value, str) else value for value in given], [
        0 if isinstance(value, str) else 1 for value in given
    ]


def _wait(pgconn: pq.abc.PGconn, events: int) -> None:
    """Wait for the other side; other threads work meanwhile."""
    polled = select.poll()
    polled.register(pgconn.socket, events)
    polled.poll()


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
