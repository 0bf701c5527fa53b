"""The log as a whole: its checkpoint to keep, the server's own check of it, and rows counted beside entries."""

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape
from psycopg.errors import AdminShutdown, QueryCanceled

from compliance.admin import log
from compliance.ledger import recheck as checking
from compliance.ledger.findings import Kind
from compliance.ledger.note import VerifierKey, parse_note, verify_note
from compliance.ledger.recheck import BLOCK, recheck
from compliance.models import Checkpoint, LedgerEntry, SigningKey
from compliance.services.sealing import rotate_signing_key, seal
from compliance.vocabulary import Role
from evaluations.kernel.actor import system_job
from evaluations.models import Source
from tests.compliance.admin.test_trail import read, record, signed_in, text_of
from tests.compliance.admin.world import World, build_world
from tests.support.ledger import append

CHECKPOINT, VERIFY, POPULATION = (
    reverse(f"admin:compliance_ledgerentry_{name}") for name in ("checkpoint", "verify", "population")
)


# --- the checkpoint ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def world(db: None) -> World:
    """Made for each test: others here commit, or need an empty log."""
    return build_world()


def test_the_checkpoint_is_shown_with_its_key_and_comes_as_a_file(world: World, console: Client) -> None:
    newest = Checkpoint.objects.first()
    html = read(console, CHECKPOINT)
    assert escape(newest.note) in html
    key = SigningKey.objects.get().verifier_key
    assert f">{escape(key)}</pre>" in html
    assert f"writegate verify EXPORT.zip --key &#x27;KEY&#x27; --against checkpoint-{newest.size}.txt" in html.replace(
        "'", "&#x27;"
    )
    answer = console.get(reverse("admin:compliance_ledgerentry_note", args=[newest.size]))
    assert answer["Content-Disposition"] == f'attachment; filename="checkpoint-{newest.size}.txt"'
    assert verify_note(parse_note(answer.content), [VerifierKey.parse(key)])


def test_every_member_of_staff_may_keep_it(world: World) -> None:
    client = signed_in("bob@example.org", Role.REQUESTER)
    assert client.get(CHECKPOINT).status_code == 200
    assert client.get(reverse("admin:compliance_ledgerentry_note", args=[Checkpoint.objects.first().size])).status_code == 200


def test_an_earlier_checkpoint_is_shown_by_its_size_and_an_unknown_one_is_not_found(world: World, console: Client) -> None:
    oldest = Checkpoint.objects.last()
    html = read(console, CHECKPOINT, size=oldest.size)
    assert escape(oldest.note) in html
    assert "The newest one" in html
    for wrong in ("2", "0", "x", "-1", "9" * 19, "9" * 40):
        assert console.get(CHECKPOINT, {"size": wrong}).status_code == 404, wrong
    for wrong in (2, 0, int("9" * 25)):
        assert console.get(reverse("admin:compliance_ledgerentry_note", args=[wrong])).status_code == 404, wrong


@pytest.mark.django_db
def test_before_the_first_sealing_it_says_so() -> None:
    client = signed_in("carol@example.org", Role.AUDITOR)
    assert "Nothing is sealed yet" in text_of(read(client, CHECKPOINT))
    answer = client.post(VERIFY)
    assert "there is nothing to verify" in text_of(answer.content.decode())


def test_the_page_takes_few_queries(world: World, console: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        read(console, CHECKPOINT)
    assert len(queries) == 6


# --- the server's own check -------------------------------------------------------------------------------------------------


def test_verify_is_a_button_that_says_what_was_checked_and_what_that_is_worth(world: World, console: Client) -> None:
    before = LedgerEntry.objects.count()
    asked = text_of(read(console, VERIFY))
    assert "What was checked" not in asked
    answer = console.post(VERIFY)
    assert answer.status_code == 200
    text = text_of(answer.content.decode())
    assert "The log agrees with its checkpoint of 72 entries, as far as this server can say" in text
    assert "72 of 72 entries" in text
    assert text.count("agrees") >= 4
    for shown in (asked, text):
        assert "A server that vouches for itself proves little more" in shown
        assert "writegate verify" in shown
    assert LedgerEntry.objects.count() == before


def test_verify_needs_its_token(world: World) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(world.user)
    assert strict.post(VERIFY).status_code == 403


def test_damage_is_shown_first_and_named(world: World, console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(start: int, end: int) -> list:
        rows = checking_rows(start, end)
        rows[7].content = rows[7].content.replace(b"a", b"b", 1)
        return rows

    checking_rows = checking.read_entries
    monkeypatch.setattr(checking, "read_entries", damaged)
    text = text_of(console.post(VERIFY).content.decode())
    assert "The log does not agree with what was signed" in text
    assert "altered: entry 7: its bytes do not hash to the leaf that was sealed" in text
    assert text.index("entry 7") < text.index("What was checked")


def sealed_log(count: int) -> None:
    append(count)
    seal()


@pytest.mark.slow
def test_a_large_log_is_checked_as_far_as_the_time_goes_and_wholly_with_more(committed_db) -> None:
    sealed_log(BLOCK * 3 + 300)
    some = recheck(seconds=0)
    assert some is not None
    assert not some.is_whole
    # The newest block is always read, whole or not.
    assert some.read == some.size - BLOCK * 3
    assert some.head_agrees
    every = recheck(seconds=60)
    assert every is not None
    assert every.is_whole
    assert every.findings == []
    assert every.tiles == every.size >> 8


SPACE = "UPDATE compliance_ledgerentry SET content = content || ' ' WHERE id = {entry}"
LEAF = (
    "UPDATE compliance_ledgerleaf SET leaf_hash = sha256('\\x00'::bytea || content)"
    " FROM compliance_ledgerentry entry WHERE entry.id = entry_id AND entry_id = {entry}"
)
FAULTS = {
    "an entry's bytes": (SPACE, (Kind.ALTERED, 300)),
    "an entry's bytes and leaf": (
        f"{SPACE}; {LEAF}",
        (Kind.ALTERED, 300),
    ),
    "a leaf at the edge": (
        "UPDATE compliance_ledgerleaf SET leaf_hash = sha256('x') WHERE \"index\" = 600",
        (Kind.ALTERED, 600),
    ),
    "a leaf that is gone": ('DELETE FROM compliance_ledgerleaf WHERE "index" = 300', (Kind.MISSING, 300)),
    "a tile's root": ("UPDATE compliance_ledgertile SET root = sha256('x') WHERE number = 1", (Kind.ALTERED, None)),
    "a tile that is gone": ("DELETE FROM compliance_ledgertile WHERE number = 1", (Kind.MISSING, None)),
    "the last leaves": ('DELETE FROM compliance_ledgerleaf WHERE "index" >= 600', (Kind.MISSING, None)),
    "a checkpoint's root": (
        "UPDATE compliance_checkpoint SET root = sha256('x') WHERE size = (SELECT max(size) FROM compliance_checkpoint)",
        (Kind.ALTERED, None),
    ),
    "a checkpoint's text": (
        "UPDATE compliance_checkpoint SET note = replace(note, E'\\n' || size || E'\\n', E'\\n9000000000000000000\\n')",
        (Kind.BAD_SIGNATURE, None),
    ),
    "a checkpoint of nonsense": ("UPDATE compliance_checkpoint SET note = 'nonsense'", (Kind.BAD_SIGNATURE, None)),
    "the key": ("DELETE FROM compliance_signingkey", (Kind.BAD_SIGNATURE, None)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_was_changed_past_the_locks_is_named(committed_db, superuser_connection, fault: str) -> None:
    sealed_log(610)
    entry = LedgerEntry.objects.get(leaf__index=300).pk
    database = superuser_connection()
    database.execute("SET session_replication_role = replica")
    statement, (kind, index) = FAULTS[fault]
    for part in statement.format(entry=entry).split(";"):
        database.execute(part)
    done = recheck()
    assert done is not None
    assert (kind, index) in {(finding.kind, finding.index) for finding in done.findings}, done.findings
    assert done.seconds < 5


def test_the_key_that_was_replaced_signs_no_more(committed_db, settings, tmp_path) -> None:
    settings.LEDGER_KEY_PATH = tmp_path / "key"
    sealed_log(3)
    rotate_signing_key(actor=system_job("tests"))
    seal()
    done = recheck()
    assert done is not None
    assert done.findings == []
    assert done.signed_by == SigningKey.objects.get(until_at=None).verifier_key


# --- rows beside entries ----------------------------------------------------------------------------------------------------


def test_rows_and_entries_are_counted_and_agree(world: World, console: Client) -> None:
    text = text_of(read(console, POPULATION))
    assert "Every row has its entry, and every entry its row" in text
    assert "evaluations_evidence 4 4 " in text
    assert "does not agree" not in text
    assert "compliance_personname made to be erased" in text


def test_what_differs_comes_first_and_leads_to_its_entries(world: World, console: Client) -> None:
    Source(key="slipped-in", title="Nobody recorded it", registered_at=Source.objects.first().registered_at).save()
    html = read(console, POPULATION)
    text = text_of(html)
    assert "1 table does not agree with the trail" in text
    rows = text[text.index("Table by table") :]
    assert rows.index("evaluations_source ") < rows.index("compliance_auditexport ")
    assert "1 differ slipped-in" in rows
    assert "ledgerentry/?target_kind=source&amp;target_id=slipped-in" in html


def test_a_report_that_takes_too_long_is_given_up_and_leads_to_the_command(
    world: World, console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow() -> list:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(5)")
        return []

    monkeypatch.setattr(log, "population_report", slow)
    monkeypatch.setattr(log, "REPORT_SECONDS", 1)
    answer = console.get(POPULATION)
    assert answer.status_code == 503
    assert "manage.py audit_population" in text_of(answer.content.decode())


def test_another_trouble_of_the_database_is_not_called_slowness(
    world: World, console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> list:
        raise OperationalError("gone") from AdminShutdown("gone")

    monkeypatch.setattr(log, "population_report", gone)
    assert not issubclass(AdminShutdown, QueryCanceled)
    with pytest.raises(OperationalError, match="gone"):
        console.get(POPULATION)


def test_a_fresh_entry_is_found_by_the_next_sealing_and_the_next_check(world: World, console: Client) -> None:
    record()
    seal()
    size = Checkpoint.objects.first().size
    assert f"{size} of {size} entries" in text_of(console.post(VERIFY).content.decode())
