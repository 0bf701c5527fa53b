"""What is said of an approval comes from a connection that may break: the denial stands, and the next one is told in full again."""

from collections.abc import Callable
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

from tests.compliance.api.authzen.doors import Doors, question
from tests.support import signing
from tests.support.asking import ask_token
from tests.support.cluster import Database

Connect = Callable[[], "psycopg.Connection[Any]"]


def test_a_connection_that_breaks_off_costs_one_word(committed_db: Database, superuser_connection: Connect) -> None:
    agent = Doors(ask_token(signing.ground().asker))
    body = {**question(), "context": {"approval": {"id": "apr_1"}}}
    pid = connections[DEFAULT_DB_ALIAS].connection.info.backend_pid
    superuser_connection().execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    answers = [agent.send("evaluation", body).json() for _ in range(2)]
    assert [answer["decision"] for answer in answers] == [False, False]
    assert [answer["context"]["reason"] for answer in answers] == ["no_grant", "approval_unverifiable"]
