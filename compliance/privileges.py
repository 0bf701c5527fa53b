"""What the runtime role may do outside our own tables, granted by the owner role after every migration.

Our apps' migrations grant their own tables one by one, facts for INSERT and SELECT alone, and those of the apps that sign people
in. Here stand the tables of other people's apps (sessions, permissions, the admin's log), Django's migration list, and the message
queue's schema.
"""

from typing import Any

from django.apps import apps
from django.db import connections
from pgmq.install import get_embedded_install_sql
from psycopg import sql

GRANTED_ONE_BY_ONE = frozenset({"evaluations", "policies", "compliance", "account", "mfa", "socialaccount"})
# The queue's own books. Queue tables are made, and so owned, by the runtime role: kombu declares them when it first sends.
_QUEUE_TABLES = ("meta", "notify_insert_throttle", "topic_bindings")


def grant_runtime_privileges() -> None:
    """Grant what is missing to the role that the owner connection names; safe to run again."""
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT current_setting('writegate.runtime_role', true)")
        role = cursor.fetchone()[0]
        if not role:
            raise RuntimeError("the owner connection does not carry `writegate.runtime_role`; see compliance.connections")
        runtime = sql.Identifier(role)
        existing = set(connections["owner"].introspection.table_names(cursor))
        others = {
            model._meta.db_table
            for model in apps.get_models(include_auto_created=True)
            if model._meta.app_label not in GRANTED_ONE_BY_ONE and model._meta.managed
        }
        for table in sorted(others & existing):
            _grant(cursor, "SELECT, INSERT, UPDATE, DELETE", sql.Identifier(table), runtime)
        _grant(cursor, "SELECT", sql.Identifier("django_migrations"), runtime)
        _install_queue(cursor)
        cursor.execute(sql.SQL("GRANT USAGE, CREATE ON SCHEMA pgmq TO {}").format(runtime))
        for table in _QUEUE_TABLES:
            _grant(cursor, "SELECT, INSERT, UPDATE, DELETE", sql.Identifier("pgmq", table), runtime)


def _grant(cursor: Any, rights: str, table: sql.Identifier, role: sql.Identifier) -> None:
    cursor.execute(sql.SQL("GRANT {} ON {} TO {}").format(sql.SQL(rights), table, role))


def _install_queue(cursor: Any) -> None:
    cursor.execute("SELECT to_regclass('pgmq.topic_bindings') IS NOT NULL")
    if not cursor.fetchone()[0]:
        # Written without parameters, so the script's percent signs stay as they are.
        cursor.cursor.execute(get_embedded_install_sql())
