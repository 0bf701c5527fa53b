"""What facts are bound by: no raw SQL, though it calls itself a service, moves the columns that tell one row of state from another."""

import io
import json
from pathlib import Path

import psycopg
import pytest
from django.apps import apps

from compliance.services.accounts import apply_place_hold
from compliance.services.people import create_token
from compliance.services.sealing import seal
from compliance.services.uploads import Told, receive_upload
from compliance.vocabulary import HoldCause, Role
from evaluations.kernel.fields import KeyField
from evaluations.kernel.models import State
from evaluations.kernel.services import service_transaction
from tests.architecture.test_facts import own_models, triggers_of
from tests.support import signing, sources, world

MOVED = {
    "evaluations_subject": ("candidate = true", ("id = id + 1000", "key = 'other'", "kind = 'agent'")),
    "evaluations_benchmark": ("registered_at = now()", ("id = id + 1000", "key = 'other'", "publisher = 'Somebody'")),
    "evaluations_source": ("notes = 'told'", ("id = id + 1000", "key = 'other'", "url = 'https://example.org/other'")),
    "evaluations_sourceschedule": ("paused_at = now()", ("source_id = (SELECT max(id) FROM evaluations_source)",)),
    "policies_policy": ("title = 'told'", ("id = id + 1000", "name = 'other'")),
    "policies_system": ("open_incident = true", ("id = id + 1000", "key = 'other'")),
    "compliance_team": ("title = 'told'", ("id = id + 1000", "key = 'other'")),
    "compliance_person": ("created_at = now()", ("id = gen_random_uuid()",)),
    "compliance_user": ("must_change_password = true", ("person_id = (SELECT person_id FROM compliance_servicetoken)",)),
    "compliance_rolemembership": (
        "ends_at = now()",
        ("person_id = (SELECT person_id FROM compliance_servicetoken)", "role = 'auditor'", "given_by = 'job:x'"),
    ),
    "compliance_servicetoken": (
        "last_used_at = now()",
        (
            "person_id = (SELECT u.person_id FROM compliance_user u WHERE u.person_id <> compliance_servicetoken.person_id LIMIT 1)",
            "token_digest = 'x'",
            "scopes = '{decide}'",
        ),
    ),
    "compliance_signinghold": (
        "lifted_by = 'person:x', lifted_at = now()",
        ("person_id = (SELECT person_id FROM compliance_servicetoken)", "placed_by = 'person:x'"),
    ),
    "compliance_signingkey": ("until_at = NULL", ("verifier_key = 'other'", "announced_index = 7")),
    "compliance_upload": ("bytes_read = 1", ("submitted_by = 'person:x'", "submitted_as = '{}'", "source = 'other'")),
}
"""By table: what a service may move, and what none may."""


@pytest.fixture
def _state(committed_db, tmp_path: Path, settings) -> None:
    """Leave a row, or a few, of every table in `MOVED`."""
    settings.UPLOAD_DIR = tmp_path / "uploads"
    signing.ground("91")
    seal()
    sources.scheduled("https://example.org/board.json")
    sources.source("later", title="Later")
    holder = signing.human("Tessa Token", Role.SECURITY)
    create_token(actor=world.ACTOR, name="ci", scopes=["read"], person=holder.person)
    held = signing.human("Hilda Held").person
    with service_transaction("test"):
        apply_place_hold(actor=world.ACTOR, person=held, cause=HoldCause.PASSWORD_RESET)
    body = json.dumps(world.submission("model-a")).encode()
    receive_upload(actor=world.ACTOR, stream=io.BytesIO(body), length=len(body), told=Told())


def run(database: psycopg.Connection, table: str, change: str) -> int:
    with database.transaction():
        database.execute("SELECT set_config('writegate.service', 'smuggle', true)")
        return database.execute(f"UPDATE {table} SET {change}").rowcount


def kept(database: psycopg.Connection, table: str) -> bool:
    return ("writegate_keep_columns", "U") in triggers_of(database, table)


@pytest.mark.usefixtures("_state")
@pytest.mark.parametrize("table", MOVED)
def test_what_tells_a_row_from_another_is_moved_by_no_raw_sql_of_either_role(
    runtime_connection, owner_connection, table: str
) -> None:
    may_move, may_not = MOVED[table]
    runtime = runtime_connection()
    assert run(runtime, table, may_move) > 0
    for database in (runtime, owner_connection()):
        before = database.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
        for change in may_not:
            column = change.partition(" ")[0]
            with pytest.raises(psycopg.errors.RestrictViolation, match=f"stays as it is: a change of .*{column}"):
                run(database, table, change)
        assert database.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() == before


def test_every_state_with_a_key_of_its_own_keeps_it(owner_connection) -> None:
    database = owner_connection()
    keyed = {
        model._meta.db_table
        for model in own_models()
        if issubclass(model, State) and any(isinstance(field, KeyField) and field.unique for field in model._meta.fields)
    }
    assert len(keyed) >= 6
    assert {table for table in keyed if not kept(database, table)} == set()
    assert {model._meta.db_table for model in apps.get_models() if kept(database, model._meta.db_table)} == set(MOVED)


def test_a_table_that_lost_its_lock_is_found(owner_connection) -> None:
    database = owner_connection(autocommit=False)
    assert kept(database, "evaluations_source")
    database.execute("ALTER TABLE evaluations_source DISABLE TRIGGER evaluations_source_keep")
    assert not kept(database, "evaluations_source")
    database.rollback()
