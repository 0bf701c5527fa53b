"""Both locks on facts, and the guard on state, for every table there is; and that the tests for them bite."""

import psycopg
import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection, models, transaction

from compliance.models import LedgerEntry, User
from evaluations.kernel import audit
from evaluations.kernel.actor import system_job
from evaluations.kernel.models import Fact, FactIsImmutable, State
from evaluations.kernel.services import service_transaction
from evaluations.models import Source, Subject, TrustAssignment
from evaluations.services.sources import apply_assign_trust, apply_register_source
from evaluations.services.subjects import register_subject

OWN_APPS = {"evaluations", "policies", "compliance"}
UNGUARDED_STATE = {"ServiceBeat"}
GUARDED_OTHERWISE = {"LedgerPending", "User"}
WORDS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
ACTOR = system_job("test")


def own_models() -> list[type[models.Model]]:
    return [model for model in apps.get_models() if model._meta.app_label in OWN_APPS]


def triggers_of(database: psycopg.Connection, table: str) -> set[tuple[str, str]]:
    """Return (function, events) of the enabled triggers of a table; events are letters of Insert, Update, Delete, Truncate."""
    rows = database.execute(
        """
        SELECT p.proname, concat(
            CASE WHEN t.tgtype & 4 > 0 THEN 'I' END, CASE WHEN t.tgtype & 16 > 0 THEN 'U' END,
            CASE WHEN t.tgtype & 8 > 0 THEN 'D' END, CASE WHEN t.tgtype & 32 > 0 THEN 'T' END)
        FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
        WHERE t.tgrelid = %s::regclass AND NOT t.tgisinternal AND t.tgenabled = 'O'
        """,
        [table],
    )
    return set(rows.fetchall())


def privileges_of(database: psycopg.Connection, role: str, table: str) -> set[str]:
    rows = database.execute(
        "SELECT word FROM unnest(%s::text[]) AS word WHERE has_table_privilege(%s, %s, word)", [list(WORDS), role, table]
    )
    return {word for (word,) in rows.fetchall()}


def is_locked(database: psycopg.Connection, role: str, table: str) -> bool:
    """True when a table has both locks of a fact."""
    wanted = {("writegate_refuse_change", "UD"), ("writegate_refuse_change", "T")}
    return triggers_of(database, table) >= wanted and privileges_of(database, role, table) == {"SELECT", "INSERT"}


@pytest.fixture
def runtime_role(runtime_connection) -> str:
    return runtime_connection().info.user


def test_every_model_says_which_kind_of_table_it_is() -> None:
    for model in own_models():
        if model._meta.auto_created:
            continue
        word = "Fact." if issubclass(model, Fact) else "State."
        assert (model.__doc__ or "").startswith(word), f"{model.__name__} does not begin its docstring with `{word}`"
        assert issubclass(model, Fact | State) or model.__name__ in GUARDED_OTHERWISE, model.__name__


def test_every_fact_table_has_both_locks(owner_connection, runtime_role: str) -> None:
    database = owner_connection()
    facts = [model for model in own_models() if issubclass(model, Fact)]
    assert len(facts) >= 17
    for model in facts:
        assert is_locked(database, runtime_role, model._meta.db_table), model.__name__


def test_every_state_table_is_guarded(owner_connection, runtime_role: str) -> None:
    database = owner_connection()
    for model in own_models():
        if issubclass(model, State) and model.__name__ not in UNGUARDED_STATE:
            found = triggers_of(database, model._meta.db_table)
            assert ("writegate_require_service", "IUD") in found, model.__name__
            assert ("writegate_refuse_change", "T") in found, model.__name__
            assert "TRUNCATE" not in privileges_of(database, runtime_role, model._meta.db_table), model.__name__


@pytest.mark.parametrize(
    "fault",
    [
        "ALTER TABLE evaluations_ruling DISABLE TRIGGER evaluations_ruling_append_only",
        "DROP TRIGGER evaluations_ruling_append_only ON evaluations_ruling",
        "DROP TRIGGER evaluations_ruling_no_truncate ON evaluations_ruling",
        "GRANT UPDATE ON evaluations_ruling TO {role}",
        "GRANT TRUNCATE ON evaluations_ruling TO {role}",
        "REVOKE INSERT ON evaluations_ruling FROM {role}",
    ],
)
def test_a_fact_table_that_lost_a_lock_is_found(owner_connection, runtime_role: str, fault: str) -> None:
    database = owner_connection(autocommit=False)
    assert is_locked(database, runtime_role, "evaluations_ruling")
    database.execute(fault.format(role=runtime_role))
    assert not is_locked(database, runtime_role, "evaluations_ruling")
    database.rollback()


@pytest.fixture
def trust(committed_db) -> TrustAssignment:
    with service_transaction("load_bundle"):
        source = apply_register_source(actor=ACTOR, key="a-lab", title="A lab")
        return apply_assign_trust(actor=ACTOR, source=source, tier="vendor", reason="test")


def test_a_fact_can_be_inserted_and_read(trust: TrustAssignment) -> None:
    assert TrustAssignment.objects.get().tier == "vendor"


ORM_CHANGES = {
    "save": lambda row: row.save(),
    "delete": lambda row: row.delete(),
    "update": lambda row: TrustAssignment.objects.update(tier="reproduced"),
    "delete set": lambda row: TrustAssignment.objects.all().delete(),
    "bulk_update": lambda row: TrustAssignment.objects.bulk_update([row], ["tier"]),
    "base manager": lambda row: models.QuerySet(TrustAssignment).update(tier="reproduced"),
    "raw update": lambda row: connection.cursor().execute("UPDATE evaluations_trustassignment SET tier = 'reproduced'"),
    "raw delete": lambda row: connection.cursor().execute("DELETE FROM evaluations_trustassignment"),
    "truncate": lambda row: connection.cursor().execute("TRUNCATE evaluations_trustassignment CASCADE"),
}


@pytest.mark.parametrize("road", ORM_CHANGES)
def test_the_runtime_role_changes_no_fact_by_any_road(trust: TrustAssignment, road: str) -> None:
    with pytest.raises((FactIsImmutable, DatabaseError)), service_transaction("test"):
        ORM_CHANGES[road](trust)
    assert TrustAssignment.objects.get().tier == "vendor"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE evaluations_trustassignment SET tier = 'reproduced'",
        "DELETE FROM evaluations_trustassignment",
        "TRUNCATE evaluations_trustassignment",
    ],
)
def test_the_owner_changes_no_fact_while_the_trigger_stands(trust: TrustAssignment, owner_connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
        owner_connection().execute(statement)
    assert TrustAssignment.objects.get().tier == "vendor"


def test_neither_role_may_switch_triggers_off(owner_connection, runtime_connection) -> None:
    for connect in (owner_connection, runtime_connection):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connect().execute("SET session_replication_role = replica")


def test_state_is_moved_by_services_only(committed_db, runtime_connection) -> None:
    register_subject(actor=ACTOR, key="m", kind="model", candidate=False)
    for road in (
        lambda: Subject.objects.update(candidate=True),
        lambda: Subject.objects.get().save(),
        lambda: Subject.objects.create(key="other", kind="model", title="Other"),
        lambda: Subject.objects.bulk_update([Subject.objects.get()], ["candidate"]),
    ):
        with pytest.raises(DatabaseError, match="by services only"):
            road()
    with pytest.raises(psycopg.errors.RestrictViolation, match="by services only"):
        runtime_connection().execute("UPDATE evaluations_subject SET candidate = true")
    assert Subject.objects.get().candidate is False


def test_an_account_gains_no_rights_outside_a_service(committed_db, runtime_connection) -> None:
    with pytest.raises(psycopg.errors.RestrictViolation, match="by services only"):
        runtime_connection().execute("UPDATE compliance_user SET is_superuser = true")
    with pytest.raises(psycopg.errors.RestrictViolation, match="by services only"):
        runtime_connection().execute(
            "INSERT INTO compliance_user (password, is_superuser, email, is_active, is_staff, must_change_password, date_joined, "
            "person_id) VALUES ('', true, 'x@example.com', true, true, false, now(), gen_random_uuid())"
        )
    assert not User.objects.exists()


def test_the_change_and_its_entry_commit_or_vanish_together(committed_db, settings, monkeypatch) -> None:
    register_subject(actor=ACTOR, key="kept", kind="model")
    assert LedgerEntry.objects.filter(action="subject.registered", target_id="kept").count() == 1

    def broken(events) -> None:
        raise RuntimeError("the ledger is full")

    monkeypatch.setattr(audit, "sink", lambda: broken)
    with pytest.raises(RuntimeError, match="full"):
        register_subject(actor=ACTOR, key="lost", kind="model")
    monkeypatch.undo()
    assert not Subject.objects.filter(key="lost").exists()
    assert not LedgerEntry.objects.filter(target_id="lost").exists()

    with pytest.raises(RuntimeError, match="after the change"):
        _register_and_fail("undone")
    assert not Source.objects.filter(key="undone").exists()
    assert not LedgerEntry.objects.filter(target_id="undone").exists()


def _register_and_fail(key: str) -> None:
    with service_transaction("test"):
        apply_register_source(actor=ACTOR, key=key, title="Undone")
        raise RuntimeError("after the change")


@pytest.mark.django_db
@pytest.mark.parametrize("sink", [None, "", "compliance.nowhere.append", "compliance.ledger.encoding.VERSION"])
def test_an_unwired_audit_sink_is_an_error_and_changes_nothing(settings, sink: str | None) -> None:
    settings.AUDIT_SINK = sink
    with pytest.raises(ImproperlyConfigured):
        register_subject(actor=ACTOR, key="m", kind="model")
    assert not Subject.objects.exists()


def test_nothing_is_recorded_outside_a_transaction(committed_db) -> None:
    event = audit.Event(action="thing.made", actor=ACTOR, target=("thing", "1"))
    with pytest.raises(audit.NoTransaction):
        audit.record(event)


@pytest.mark.django_db
def test_a_service_inside_a_service_is_refused() -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        register_subject(actor=ACTOR, key="m", kind="model")


@pytest.mark.parametrize("column", ["actor", "action", "content", "digest"])
def test_an_entry_without_an_actor_cannot_be_inserted(committed_db, runtime_connection, column: str) -> None:
    values = {
        "uid": "'00000000-0000-0000-0000-000000000001'",
        "content": "'{}'",
        "digest": "'sha256:0'",
        "action": "'thing.made'",
        "actor": "'person:1'",
        "target_kind": "'thing'",
        "target_id": "'1'",
        "recorded_at": "now()",
    }
    statement = "INSERT INTO compliance_ledgerentry ({}) VALUES ({})"
    database = runtime_connection()
    with pytest.raises(psycopg.errors.NotNullViolation):
        database.execute(statement.format(", ".join(values), ", ".join({**values, column: "NULL"}.values())))
    if column in {"actor", "action"}:
        with pytest.raises(psycopg.errors.CheckViolation):
            database.execute(statement.format(", ".join(values), ", ".join({**values, column: "''"}.values())))
