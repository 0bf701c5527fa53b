"""What the owner of the database can do to a fact, and nobody else: switch its locks off, and write over it."""

from collections.abc import Mapping

import psycopg
from psycopg import sql


def overwrite(owner: psycopg.Connection, table: str, pk: int, changes: Mapping[str, object]) -> None:
    """Write these columns of one row, with the table's own triggers switched off meanwhile."""
    name = sql.Identifier(table)
    columns = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(column)) for column in changes)
    with owner.transaction():
        owner.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(name))
        done = owner.execute(sql.SQL("UPDATE {} SET {} WHERE id = %s").format(name, columns), [*changes.values(), pk])
        assert done.rowcount == 1
        owner.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(name))
