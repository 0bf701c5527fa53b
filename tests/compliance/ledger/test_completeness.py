"""No change without its entry (O-23), and no entry without somebody who did it (O-24)."""

import json

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from compliance.management.commands import audit_population
from compliance.models import AuditExport, LedgerEntry, ServiceToken, SigningKey
from compliance.selectors.population import EXEMPT, SEALING, TIES, population_report
from compliance.services.people import create_person, create_team, create_token, revoke_token
from compliance.services.sealing import record_ledger_beat, seal
from compliance.tasks import ledger_beat
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor, ActorKind, person, service, system_job
from evaluations.kernel.services import service as service_of
from evaluations.kernel.services import service_transaction
from evaluations.models import Source, Subject
from evaluations.services.sources import apply_register_source
from evaluations.services.subjects import register_subject
from policies.models import System
from policies.services.systems import register_system
from tests.support.ledger import ACTOR, append, export

pytestmark = pytest.mark.usefixtures("committed_db")

ROWS = 50


def entries(action: str) -> list[dict]:
    return [json.loads(bytes(entry.content)) for entry in LedgerEntry.objects.filter(action=action).order_by("id")]


@pytest.fixture
def systems() -> list[System]:
    for number in range(ROWS):
        register_system(
            actor=ACTOR, key=f"system-{number}", title="S", domain="hr", environment="production", reversible=True, owner=""
        )
    return list(System.objects.order_by("id"))


def changed() -> int:
    return System.objects.filter(open_incident=True).count()


ROADS = {
    "update": lambda rows: System.objects.update(open_incident=True),
    "bulk_update": lambda rows: System.objects.bulk_update([_with_incident(row) for row in rows], ["open_incident"]),
    "save": lambda rows: [_with_incident(row).save() for row in rows],
    "bulk_create": lambda rows: System.objects.bulk_create(System(key=f"new-{number}", domain="hr") for number in range(ROWS)),
    "delete": lambda rows: System.objects.all().delete(),
    "plain SQL": lambda rows: connection.cursor().execute("UPDATE policies_system SET open_incident = true"),
    "plain SQL in a transaction": lambda rows: _in_transaction("UPDATE policies_system SET open_incident = true"),
    "truncate": lambda rows: connection.cursor().execute("TRUNCATE policies_system CASCADE"),
    "copy": lambda rows: _copy(),
}


def _with_incident(row: System) -> System:
    row.open_incident = True
    return row


def _in_transaction(statement: str) -> None:
    with transaction.atomic():
        connection.cursor().execute(statement)


def _copy() -> None:
    with connection.cursor() as cursor, cursor.copy("COPY policies_system (key, title) FROM STDIN") as copy:
        copy.write_row(("copied", "x"))


@pytest.mark.parametrize("road", ROADS)
def test_50_rows_are_not_changed_past_the_services(systems: list[System], road: str) -> None:
    before = LedgerEntry.objects.count()
    with pytest.raises((DatabaseError, psycopg.Error), match=r"by services only|permission denied|append-only"):
        ROADS[road](systems)
    assert changed() == 0
    assert System.objects.count() == ROWS
    assert LedgerEntry.objects.count() == before


def test_nor_by_another_client_in_the_application_s_own_role(systems: list[System], runtime_connection) -> None:
    database = runtime_connection()
    for statement in ("UPDATE policies_system SET open_incident = true", "DELETE FROM policies_system"):
        with pytest.raises(psycopg.errors.Error):
            database.execute(statement)
    assert changed() == 0


def test_50_rows_changed_by_a_bulk_service_are_50_entries_with_actor_and_values(systems: list[System]) -> None:
    @service_of(refused="system.refused")
    def report_incidents(*, actor: Actor, rows: list[System]) -> int:
        moved = System.objects.filter(pk__in=[row.pk for row in rows], open_incident=False).update(open_incident=True)
        audit.record(
            *(
                audit.Event(
                    action="system.suspended",
                    actor=actor,
                    target=("system", row.key),
                    old={"open_incident": False},
                    new={"open_incident": True},
                )
                for row in rows
            )
        )
        return moved

    alice = person("11111111-1111-1111-1111-111111111111")
    assert report_incidents(actor=alice, rows=systems) == ROWS == changed()
    told = entries("system.suspended")
    assert [one["target"]["id"] for one in told] == [row.key for row in systems]
    for one in told:
        assert one["actor"] == {"id": alice.id, "kind": "person"}
        assert (one["old"], one["new"]) == ({"open_incident": False}, {"open_incident": True})


def test_the_ledger_s_own_state_is_guarded_too(tmp_path) -> None:
    append(1)
    export(tmp_path / "out.zip")
    for road in (
        lambda: SigningKey.objects.update(name="x"),
        lambda: AuditExport.objects.update(failure="x"),
        lambda: SigningKey.objects.create(name="x", key_id="x", verifier_key="x", announced_index=0),
        lambda: connection.cursor().execute("DELETE FROM compliance_ledgerpending"),
        lambda: connection.cursor().execute("UPDATE compliance_ledgerpending SET entry_id = 1"),
    ):
        with pytest.raises(DatabaseError):
            road()


# --- O-24


def test_background_work_names_the_job_its_task_and_on_whose_behalf() -> None:
    alice = person("11111111-1111-1111-1111-111111111111")
    token = service("22222222-2222-2222-2222-222222222222", on_behalf_of=alice)
    with transaction.atomic():
        for actor in (
            system_job("drift-check", on_behalf_of=alice, task_id="task-1"),
            system_job("drift-check", task_id="task-2"),
            token,
        ):
            audit.record(audit.Event(action="grant.suspended", actor=actor, target=("grant", "1")))
    on_behalf, scheduled, by_token = (one["actor"] for one in entries("grant.suspended"))
    assert on_behalf == {
        "id": "drift-check",
        "kind": "system_job",
        "on_behalf_of": {"id": alice.id, "kind": "person"},
        "task_id": "task-1",
    }
    assert scheduled == {"id": "drift-check", "kind": "system_job", "task_id": "task-2"}
    assert by_token == {"id": token.id, "kind": "service", "on_behalf_of": {"id": alice.id, "kind": "person"}}


def test_the_ledger_s_own_task_says_which_it_is(run_tasks_inline: None) -> None:
    ledger_beat.delay()
    (beat,) = entries("ledger.beat")
    assert beat["actor"]["id"] == "ledger-beat"
    assert len(beat["actor"]["task_id"]) == 36


def test_a_person_is_told_of_by_her_commitment_and_never_by_her_name() -> None:
    user = create_person(actor=ACTOR, name="Ada Lovelace", email="ada@example.com", password="a long password")
    append(1, actor=system_job("x", on_behalf_of=person(user.person_id)))
    assert entries("thing.made")[0]["actor"]["on_behalf_of"]["name_commitment"].startswith("sha256:")
    assert not any(
        b"Lovelace" in bytes(entry.content) or b"ada@example" in bytes(entry.content) for entry in LedgerEntry.objects.all()
    )


@pytest.mark.parametrize("actor", [None, "system", {"kind": "person", "id": "1"}])
def test_an_event_without_an_actor_cannot_be_made(actor: object) -> None:
    with pytest.raises(TypeError):
        audit.Event(action="thing.made", actor=actor, target=("thing", "1"))


@pytest.mark.parametrize("identity", ["", " "])
def test_nobody_is_no_actor(identity: str) -> None:
    with pytest.raises(ValueError, match="needs an id"):
        Actor(ActorKind.PERSON, identity)


# --- the population report


def populated() -> None:
    create_team(actor=ACTOR, key="team", title="Team")
    user = create_person(
        actor=ACTOR, name="Ada", email="a@example.com", password="a long password", roles=["auditor", "security"]
    )
    token = create_token(actor=ACTOR, name="t", scopes=["read"], person=user.person).token
    revoke_token(actor=ACTOR, token=token)
    register_subject(actor=ACTOR, key="m", kind="model")
    with service_transaction("test"):
        apply_register_source(actor=ACTOR, key="lab", title="Lab")
    register_system(actor=ACTOR, key="hr-prod", title="HR", domain="hr", environment="production", reversible=True, owner="")
    record_ledger_beat(actor=ACTOR)
    seal()


def test_every_model_is_tied_to_its_entries_or_excused() -> None:
    tables = {
        model._meta.db_table
        for model in apps.get_models()
        if model._meta.app_label in {"evaluations", "policies", "compliance"} and not model._meta.auto_created
    }
    # Not ours, and yet told of row by row: whoever plants one of these could sign as somebody else.
    assert tables | {"mfa_authenticator", "socialaccount_socialaccount"} == set(TIES) | set(EXEMPT)
    assert not set(TIES) & set(EXEMPT)


def test_every_row_has_its_entry_and_every_entry_its_row(tmp_path) -> None:
    populated()
    export(tmp_path / "out.zip")
    report = {line.table: line for line in population_report()}
    assert {table: line.examples for table, line in report.items() if line.differing} == {}
    for table in (
        "compliance_team",
        "compliance_servicetoken",
        "evaluations_subject",
        "policies_system",
        "compliance_auditexport",
    ):
        assert report[table].rows == report[table].events == 1
    assert report["compliance_rolemembership"].rows == 2
    assert report[SEALING].rows == LedgerEntry.objects.count()


SMUGGLED = {
    "compliance_team": ("INSERT INTO compliance_team (key, title, created_at) VALUES ('ghost', 'x', now())", "ghost"),
    "evaluations_subject": ("UPDATE evaluations_subject SET key = 'other' WHERE key = 'm'", "m"),
    "policies_system": ("DELETE FROM policies_system", "hr-prod"),
    "compliance_rolemembership": ("DELETE FROM compliance_rolemembership WHERE role = 'security'", None),
    "sealing": ("DELETE FROM compliance_ledgerleaf WHERE index = 0", None),
}


@pytest.mark.parametrize("table", SMUGGLED)
def test_a_row_that_came_or_went_past_the_services_is_named(superuser_connection, capsys, table: str) -> None:
    populated()
    statement, example = SMUGGLED[table]
    database = superuser_connection()
    database.execute("SET session_replication_role = replica")
    database.execute(statement)
    differing = {line.table: line for line in population_report() if line.differing}
    assert set(differing) == {table}
    assert example is None or example in differing[table].examples
    with pytest.raises(SystemExit) as ended:
        call_command("audit_population")
    assert ended.value.code == audit_population.DIFFERS
    assert f"{differing[table].differing} differ" in capsys.readouterr().out


def test_the_report_says_ok_where_all_is_well(capsys) -> None:
    populated()
    call_command("audit_population")
    assert "differ" not in capsys.readouterr().out
    assert ServiceToken.objects.count() == Source.objects.count() == Subject.objects.count() == 1
