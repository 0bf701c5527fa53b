"""Sealing: indexes without a gap, one history, and nothing signed that contradicts what was signed before."""

import base64
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, transaction

from compliance.ledger import keys as keys_module
from compliance.ledger.keys import KeysRefused, load_keyring, put_new_key_first
from compliance.ledger.merkle import check_consistency, check_inclusion, leaf_hash, tree_root
from compliance.ledger.note import SignerKey, VerifierKey, parse_checkpoint, parse_note, verify_note
from compliance.ledger.proof import check_proof, read_proof
from compliance.ledger.sealer import LOCK
from compliance.ledger.stored import LedgerDamaged, NotSealedYet, StoredTree, proof_file, proof_file_of, tile_bytes
from compliance.ledger.tiles import TileName
from compliance.models import Checkpoint, LedgerEntry, LedgerLeaf, LedgerPending, LedgerTile, SigningKey
from compliance.services.sealing import record_ledger_beat, rotate_signing_key, seal
from evaluations.kernel import audit
from evaluations.kernel.errors import NotFound
from tests.support.ledger import ACTOR, append

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.fixture(autouse=True)
def _own_key(settings, tmp_path: Path) -> Iterator[None]:
    settings.LEDGER_KEY_PATH = tmp_path / "ledger-key"
    settings.LEDGER_KEY = ""
    settings.LEDGER_ORIGIN = ""
    return


def leaves() -> list[bytes]:
    return [bytes(one) for one in LedgerLeaf.objects.order_by("index").values_list("leaf_hash", flat=True)]


def newest() -> Checkpoint:
    return Checkpoint.objects.order_by("-size")[0]


def live_key() -> VerifierKey:
    return VerifierKey.parse(SigningKey.objects.get(until_at=None).verifier_key)


def test_entries_get_indexes_from_0_on_in_the_order_of_their_appends() -> None:
    append(3)
    done = seal()
    assert (done.entries, done.is_complete) == (4, True)
    rows = list(LedgerLeaf.objects.order_by("index").values_list("index", "entry__action", "entry__target_id"))
    key = live_key()
    assert rows == [
        (0, "signing_key.announced", f"{key.name}+{key.key_id.hex()}"),
        (1, "thing.made", "0"),
        (2, "thing.made", "1"),
        (3, "thing.made", "2"),
    ]
    assert not LedgerPending.objects.exists()


def test_a_leaf_is_the_hash_of_the_bytes_as_stored() -> None:
    append(5)
    seal()
    for leaf in LedgerLeaf.objects.select_related("entry"):
        assert bytes(leaf.leaf_hash) == leaf_hash(bytes(leaf.entry.content))


def test_the_checkpoint_is_signed_over_the_tree_and_says_no_time() -> None:
    append(300)
    seal()
    note = parse_note(newest().note.encode())
    assert verify_note(note, [live_key()])
    signed = parse_checkpoint(note.text)
    assert signed == ("writegate.local/ledger", 301, tree_root(leaves()))
    assert len(note.text.splitlines()) == 3


def test_sealing_nothing_signs_nothing() -> None:
    append(1)
    seal()
    size = Checkpoint.objects.count()
    assert seal().entries == 0
    assert Checkpoint.objects.count() == size


def test_many_batches_make_the_tree_that_one_would() -> None:
    append(700)
    seal(batch=97)
    assert tree_root(leaves()) == bytes(newest().root)
    tree = StoredTree(newest().size)
    assert tree.root() == bytes(newest().root)
    for checkpoint in Checkpoint.objects.exclude(pk=newest().pk):
        check_consistency(checkpoint.size, tree.size, tree.consistency(checkpoint.size), bytes(checkpoint.root), tree.root())


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 511, 513, 1000])
def test_every_proof_from_tiles_leads_to_the_signed_root(size: int) -> None:
    append(size)
    seal()
    held, tree = leaves(), StoredTree(newest().size)
    for index in {0, 1, size // 2, 254, 255, 256, size - 1, size} & set(range(size + 1)):
        check_inclusion(held[index], index, tree.size, tree.inclusion(index), bytes(newest().root))


def test_tiles_are_full_and_entry_bundles_hash_to_them() -> None:
    append(600)
    seal()
    assert set(LedgerTile.objects.values_list("level", "number")) == {(0, 0), (0, 1)}
    held = leaves()
    assert tile_bytes(TileName(0, 1, 256)) == b"".join(held[256:512])
    assert tile_bytes(TileName(0, 2, 89)) == b"".join(held[512:601])
    assert tile_bytes(TileName(1, 0, 2)) == b"".join(bytes(tile.root) for tile in LedgerTile.objects.order_by("number"))
    bundle, found = tile_bytes(TileName(None, 2, 89)), []
    while bundle:
        length = int.from_bytes(bundle[:2], "big")
        found.append(leaf_hash(bundle[2 : 2 + length]))
        bundle = bundle[2 + length :]
    assert found == held[512:601]
    for absent in (
        TileName(0, 2, 90),
        TileName(0, 2, 256),
        TileName(0, 3, 1),
        TileName(1, 0, 3),
        TileName(2, 0, 1),
        TileName(None, 9, 1),
    ):
        with pytest.raises(NotFound):
            tile_bytes(absent)


def test_an_entry_has_a_proof_that_verifies_alone_as_soon_as_it_is_sealed() -> None:
    append(10)
    entry = LedgerEntry.objects.get(target_id="7")
    with pytest.raises(NotSealedYet):
        proof_file_of(entry)
    seal()
    proof = read_proof(proof_file_of(entry))
    checkpoint, _ = check_proof(proof, bytes(entry.content), [live_key()])
    assert proof.extra == bytes(entry.content)
    assert checkpoint.size == 11
    append(500)
    seal()
    assert read_proof(proof_file(proof.index)) == proof, "the same proof for ever"
    for index in (-1, 511, 10_000):
        with pytest.raises(NotFound):
            proof_file(index)


def test_an_entry_that_commits_late_is_not_skipped(runtime_connection) -> None:
    append(1)
    late = runtime_connection(autocommit=False)
    late.execute(
        "WITH entry AS (INSERT INTO compliance_ledgerentry (uid, content, digest, action, actor, target_kind, target_id, recorded_at)"
        " VALUES (gen_random_uuid(), 'late', 'sha256:0', 'thing.made', 'person:1', 'thing', 'late', now()) RETURNING id)"
        " INSERT INTO compliance_ledgerpending SELECT id FROM entry"
    )
    append(2, start=1)
    seal()
    assert not LedgerLeaf.objects.filter(entry__target_id="late").exists()
    late.commit()
    seal()
    assert LedgerLeaf.objects.get(entry__target_id="late").index == 4
    assert tree_root(leaves()) == bytes(newest().root)


def test_two_sealers_at_once_make_one_history() -> None:
    append(400)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            seal(batch=11)
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert list(LedgerLeaf.objects.order_by("index").values_list("index", flat=True)) == list(range(401))
    assert tree_root(leaves()) == bytes(newest().root)


def test_a_sealer_that_may_not_wait_leaves_the_work_to_the_other(superuser_connection) -> None:
    append(1)
    other = superuser_connection(autocommit=False)
    other.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
    assert seal(wait=False).entries == 0
    other.rollback()
    assert seal(wait=False).entries == 2


def test_an_append_that_is_undone_leaves_no_index() -> None:
    with transaction.atomic():
        audit.record(audit.Event(action="thing.made", actor=ACTOR, target=("thing", "undone")))
        transaction.set_rollback(True)
    append(1)
    seal()
    assert LedgerLeaf.objects.count() == LedgerEntry.objects.count() == 2


@pytest.mark.parametrize(
    "rows",
    [[5], [4, 6], [3], [4, 5, 5]],
    ids=["begins too late", "leaves one out", "taken already", "doubled"],
)
def test_the_database_itself_refuses_a_leaf_that_does_not_continue(runtime_connection, rows: list[int]) -> None:
    append(3)
    seal()
    append(4, start=10)
    database = runtime_connection(autocommit=False)
    free = [row[0] for row in database.execute("SELECT entry_id FROM compliance_ledgerpending ORDER BY 1").fetchall()]
    with pytest.raises(psycopg.errors.IntegrityError):
        database.execute(
            'INSERT INTO compliance_ledgerleaf ("index", entry_id, leaf_hash)'
            " SELECT i, e, %s FROM unnest(%s::bigint[], %s::bigint[]) x(i, e)",
            [bytes(32), rows, free[: len(rows)]],
        )
    database.rollback()


def test_neither_hashes_nor_roots_of_another_length_are_kept(runtime_connection) -> None:
    append(1)
    seal()
    append(1)
    database = runtime_connection()
    for statement in (
        "INSERT INTO compliance_ledgerleaf SELECT '\\x00', 2, entry_id FROM compliance_ledgerpending",
        "INSERT INTO compliance_ledgertile (level, number, hashes, root) VALUES (0, 9, '\\x00', sha256(''))",
        "INSERT INTO compliance_checkpoint (size, root, note, signed_at) VALUES (9, '\\x00', 'x', now())",
    ):
        with pytest.raises((psycopg.errors.CheckViolation, psycopg.errors.DatatypeMismatch)):
            database.execute(statement.replace("SELECT '\\x00', 2, entry_id", "SELECT 2, '\\x00', entry_id"))


TAMPERED = {
    "a leaf was changed": "UPDATE compliance_ledgerleaf SET leaf_hash = sha256('x') WHERE \"index\" = 300",
    "a tile was changed": "UPDATE compliance_ledgertile SET root = sha256('x')",
    "the last leaf is gone": 'DELETE FROM compliance_ledgerleaf WHERE "index" = 300',
    "the last checkpoint is gone": "DELETE FROM compliance_checkpoint WHERE size = 301",
    "the checkpoint says another root": "UPDATE compliance_checkpoint SET root = sha256('x') WHERE size = 301",
    "the checkpoint's text was changed": "UPDATE compliance_checkpoint SET note = replace(note, '301', '302') WHERE size = 301",
    "the checkpoint was signed by a stranger": "UPDATE compliance_checkpoint SET note = replace(note, '— writegate', '— elsewhere')",
    "the key's row is gone": "DELETE FROM compliance_signingkey",
}


@pytest.mark.parametrize("fault", TAMPERED)
def test_nothing_is_signed_over_a_log_that_was_changed(superuser_connection, fault: str) -> None:
    append(100)
    seal()
    append(200)
    seal()
    database = superuser_connection()
    database.execute("SET session_replication_role = replica")
    assert database.execute(TAMPERED[fault]).rowcount > 0
    append(1)
    before = Checkpoint.objects.count()
    with pytest.raises((LedgerDamaged, KeysRefused)):
        seal()
    assert Checkpoint.objects.count() == before
    assert LedgerPending.objects.count() == 1


# --- keys


def test_a_key_is_made_once_for_this_user_alone(settings) -> None:
    append(1)
    seal()
    path = Path(settings.LEDGER_KEY_PATH)
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    append(1)
    seal()
    assert path.read_text() == text
    assert [other.name for other in path.parent.iterdir()] == ["ledger-key"]


def test_two_processes_that_start_at_once_have_one_key(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "key"
    first = SignerKey.generate("log.example")
    real = keys_module.os.link

    def overtaken(source: Path, target: Path) -> None:
        path.write_text(first.secret_text())
        real(source, target)

    monkeypatch.setattr(keys_module.os, "link", overtaken)
    keyring = load_keyring(text="", path=path, origin="", default_origin="log.example")
    assert keyring.current.verifier == first.verifier


def test_a_new_key_is_announced_under_both(settings) -> None:
    append(1)
    seal()
    old = live_key()
    rotate_signing_key(actor=ACTOR)
    append(2)
    seal()
    new = live_key()
    assert new != old
    row = SigningKey.objects.get(until_at=None)
    announcing = Checkpoint.objects.get(size=row.announced_index + 1)
    assert verify_note(parse_note(announcing.note.encode()), [old, new]) == (new, old)
    entry = LedgerLeaf.objects.get(index=row.announced_index).entry
    assert str(new).encode() in bytes(entry.content)
    assert str(old).encode() in bytes(entry.content)
    later = parse_note(newest().note.encode())
    assert verify_note(later, [old, new]) == (new,)
    assert newest().size > announcing.size
    assert SigningKey.objects.get(verifier_key=str(old)).until_at is not None


def test_a_new_key_without_the_old_one_is_refused(settings) -> None:
    append(1)
    seal()
    append(1)
    settings.LEDGER_KEY = SignerKey.generate("writegate.local/ledger").secret_text()
    with pytest.raises(KeysRefused, match="announced under both"):
        seal()
    settings.LEDGER_KEY += "\n" + Path(settings.LEDGER_KEY_PATH).read_text()
    assert seal().entries == 2


def test_a_retired_key_does_not_come_back(settings) -> None:
    append(1)
    seal()
    old = Path(settings.LEDGER_KEY_PATH).read_text()
    put_new_key_first(Path(settings.LEDGER_KEY_PATH))
    append(1)
    seal()
    settings.LEDGER_KEY = old + Path(settings.LEDGER_KEY_PATH).read_text().splitlines()[0]
    append(1)
    with pytest.raises(KeysRefused, match="retired"):
        seal()


@pytest.mark.parametrize("text", ["rubbish", "PRIVATE+KEY+x+00000000+AAAA", " \n\n \nPRIVATE"])
def test_a_key_that_cannot_be_read_is_refused_and_not_shown(settings, text: str) -> None:
    settings.LEDGER_KEY = text
    append(1)
    with pytest.raises(KeysRefused) as refusal:
        seal()
    assert text not in str(refusal.value)


def test_a_key_of_another_origin_is_refused(settings) -> None:
    settings.LEDGER_ORIGIN = "gate.example.org/ledger"
    settings.LEDGER_KEY = SignerKey.generate("other.example/ledger").secret_text()
    append(1)
    with pytest.raises(KeysRefused, match="WRITEGATE_LEDGER_ORIGIN"):
        seal()


def test_the_origin_is_what_was_asked_for(settings) -> None:
    settings.LEDGER_ORIGIN = "gate.example.org/ledger"
    append(1)
    seal()
    assert newest().note.startswith("gate.example.org/ledger\n2\n")


def test_the_private_key_is_in_no_row_and_no_log_line(settings, superuser_connection, caplog) -> None:
    caplog.set_level("DEBUG")
    append(2)
    seal()
    rotate_signing_key(actor=ACTOR)
    append(2)
    seal()
    secrets = [line.split("+", 4)[4] for line in Path(settings.LEDGER_KEY_PATH).read_text().split()]
    assert len(secrets) == 2
    database = superuser_connection()
    tables = [row[0] for row in database.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()]
    held = "\n".join(str(database.execute(f"SELECT string_agg(t::text, ' ') FROM {table} t").fetchone()) for table in tables)
    assert live_key().name in held
    for secret in secrets:
        for shown in (secret, base64.b64decode(secret)[1:].hex()):
            assert shown not in held
            assert shown not in caplog.text


def test_the_command_prints_the_public_key_and_changes_it(settings, capsys) -> None:
    append(1)
    call_command("ledger_key")
    first = capsys.readouterr().out.strip()
    seal()
    assert str(live_key()) == first
    call_command("ledger_key", "--rotate")
    second = capsys.readouterr().out.strip()
    assert second != first
    assert str(live_key()) == second
    settings.LEDGER_KEY = Path(settings.LEDGER_KEY_PATH).read_text()
    with pytest.raises(SystemExit) as ended:
        call_command("ledger_key", "--rotate")
    assert ended.value.code == 2
    assert "WRITEGATE_LEDGER_KEY" in capsys.readouterr().err


# --- the beat


def test_the_beat_says_what_came_since_the_last_one() -> None:
    append(5)
    seal()
    assert record_ledger_beat(actor=ACTOR) is True
    assert record_ledger_beat(actor=ACTOR) is False, "a task that ran twice"
    seal()
    beat = LedgerEntry.objects.get(action="ledger.beat")
    assert b'"entries_since_last_beat":6' in bytes(beat.content)
    assert b'"last_beat_at":null' in bytes(beat.content)
    assert LedgerLeaf.objects.get(entry=beat).index == 6
