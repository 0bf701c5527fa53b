"""The driver's lower half: statements that run meanwhile, and transactions that are whole or nothing."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic

import pytest
from django.db import DEFAULT_DB_ALIAS, DataError, InterfaceError, InternalError, OperationalError, connections
from django.db import transaction as upper

from evaluations.kernel.prepared import Running, bigints, fetch_prepared, transaction
from tests.support.cluster import Database

NUMBERS = "SELECT n, repeat('x', 10000) FROM unnest($1::bigint[]) AS given(n)"
INSERT = "INSERT INTO lower_half SELECT n FROM unnest($1::bigint[]) AS given(n)"
DIVIDE = "SELECT 1 / n FROM unnest($1::bigint[]) AS given(n)"


@pytest.fixture
def table(committed_db: Database, superuser_connection) -> Iterator[str]:
    superuser = superuser_connection()
    superuser.execute("CREATE TABLE lower_half (n bigint)")
    superuser.execute("GRANT ALL ON lower_half TO PUBLIC")
    yield "lower_half"
    superuser.execute("DROP TABLE lower_half")


def held() -> list[int]:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT n FROM lower_half ORDER BY n")
        return [n for (n,) in cursor.fetchall()]


@pytest.mark.django_db
def test_a_running_statement_gives_the_rows_of_one_that_is_waited_for() -> None:
    given = (bigints(range(500)),)
    assert Running(NUMBERS, given).rows() == fetch_prepared(NUMBERS, given)
    assert Running(NUMBERS, (bigints([]),)).rows() == []


@pytest.mark.django_db
def test_it_runs_while_something_else_is_done() -> None:
    began = monotonic()
    running = Running("SELECT pg_sleep($1::float8)", ("1",))
    assert monotonic() - began < 1
    running.rows()
    assert monotonic() - began >= 1


def test_what_it_fails_with_is_told_when_its_rows_are_asked_for(table: str) -> None:
    running = Running(DIVIDE, (bigints([0]),))
    with pytest.raises(DataError, match="division by zero"):
        running.rows()
    assert fetch_prepared(DIVIDE, (bigints([1]),)) == [(b"1",)], "the connection goes on"


def test_a_connection_that_ends_meanwhile_is_an_error(table: str, superuser_connection) -> None:
    running = Running("SELECT pg_sleep($1::float8)", ("30",))
    pid = connections[DEFAULT_DB_ALIAS].connection.info.backend_pid
    superuser_connection().execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    with pytest.raises((OperationalError, InterfaceError)):
        running.rows()
    connections[DEFAULT_DB_ALIAS].close()


def test_a_transaction_is_whole(table: str) -> None:
    with transaction():
        Running(INSERT, (bigints([1]),)).rows()
        fetch_prepared(INSERT, (bigints([2]),))
    assert held() == [1, 2]


def _after_a_statement() -> None:
    fetch_prepared(INSERT, (bigints([2]),))
    raise ValueError("on our side")


def _while_one_runs() -> None:
    Running(INSERT, (bigints([2]),))
    raise ValueError("on our side")


def _in_a_statement() -> None:
    fetch_prepared(DIVIDE, (bigints([0]),))


@pytest.mark.parametrize("fail", [_after_a_statement, _while_one_runs, _in_a_statement])
def test_or_nothing(table: str, fail: Callable[[], None]) -> None:
    def work() -> None:
        with transaction():
            fetch_prepared(INSERT, (bigints([1]),))
            fail()

    with pytest.raises((ValueError, DataError), match=r"on our side|division by zero"):
        work()
    assert held() == []


def test_what_was_rolled_back_does_not_pass_for_committed(table: str) -> None:
    def work() -> None:
        with transaction():
            fetch_prepared(INSERT, (bigints([1]),))
            with suppress(DataError):
                _in_a_statement()

    with pytest.raises(InternalError, match="rolled back"):
        work()
    assert held() == []


def test_of_a_kind_it_is_held_to(table: str) -> None:
    with pytest.raises(InternalError, match="read-only"), transaction("READ ONLY"):
        fetch_prepared(INSERT, (bigints([1]),))
    assert held() == []


def test_inside_another_one_it_adds_nothing(table: str) -> None:
    with upper.atomic():
        with transaction():
            fetch_prepared(INSERT, (bigints([1]),))
        assert held() == [1]
        upper.set_rollback(True)
    assert held() == []
