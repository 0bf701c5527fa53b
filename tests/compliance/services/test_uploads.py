"""Files handed in: on disk while they come, then read whole or not at all, by one worker, whatever dies in between."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from compliance import tasks
from compliance.models import LedgerEntry, Upload
from compliance.services import uploads
from compliance.services.idempotency import IdempotencyKeyReused
from compliance.services.uploads import MOST_ATTEMPTS, NoRoom, Told, UploadTooLarge, read_upload, receive_upload, stalled_uploads
from compliance.vocabulary import Role, UploadStatus
from evaluations.importers.base import MAX_BYTES
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction
from evaluations.models import Document, Evidence, Observation
from tests.evaluations.importers.test_fuzz import Endless
from tests.support import signing, world

CODE = """
import time, django
django.setup()
from compliance.services import uploads
def stay(imported):
    print("in hand", flush=True)
    time.sleep(60)
uploads.result_of = stay
uploads.read_upload({uid!r})
"""


@pytest.fixture
def folder(tmp_path: Path, settings) -> Path:
    settings.UPLOAD_DIR = tmp_path / "uploads"
    return settings.UPLOAD_DIR


def body(*subjects: str, **more: object) -> bytes:
    document = world.submission(subjects[0], **more)
    document["evidence"] = [world.submission(subject, **more)["evidence"][0] for subject in subjects]
    return json.dumps(document).encode()


def hand_in(content: bytes, *, length: int | None = None, actor=world.ACTOR, key: str | None = None, **told: str) -> Upload:
    return receive_upload(
        actor=actor,
        stream=io.BytesIO(content),
        length=len(content) if length is None else length,
        told=Told(**told),
        idempotency_key=key,
    )


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.django_db
class TestReceiving:
    def test_it_lies_under_its_own_name_until_it_is_read(self, folder: Path) -> None:
        content = body("m")
        upload = hand_in(content, file_name="../../etc/re\u0430d \x07me.json")
        assert (upload.status, upload.file_name, upload.file_bytes) == ("queued", "red me.json", len(content))
        assert files(folder) == [str(upload.uid)]
        assert (folder / str(upload.uid)).read_bytes() == content

    @pytest.mark.parametrize(
        ("given", "kept"), [("", "upload"), ("..", "upload"), ("C:\\a\\b.csv", "b.csv"), ("x" * 300 + ".csv", "x" * 196 + ".csv")]
    )
    def test_names_are_made_safe(self, given: str, kept: str) -> None:
        assert uploads.safe_name(given) == kept

    def test_what_no_importer_would_read_is_refused_by_its_first_bytes(self, folder: Path, settings) -> None:
        endless = Endless(b"subject,source\n", size=MAX_BYTES + 1)
        with pytest.raises(UploadTooLarge, match="larger than 512 MiB, the most of any file that is no zip archive"):
            receive_upload(actor=world.ACTOR, stream=endless, length=MAX_BYTES + 1, told=Told())
        assert endless.given <= uploads.PART_BYTES
        assert files(folder) == []
        # An archive may be larger, and is only refused where it is cut off.
        archive = Endless(b"PK\x03\x04", size=2 * uploads.PART_BYTES)
        with pytest.raises(InputRefused, match="the body ended after"):
            receive_upload(actor=world.ACTOR, stream=archive, length=MAX_BYTES + 1, told=Told())

    def test_the_same_key_with_the_same_file_is_the_same_upload(self, folder: Path) -> None:
        first, again = hand_in(body("m"), key="k"), hand_in(body("m"), key="k")
        assert (first, Upload.objects.count(), files(folder)) == (again, 1, [str(first.uid)])

    @pytest.mark.parametrize("change", [{"content": body("n")}, {"content": body("m"), "source": "lab"}])
    def test_the_same_key_with_another_file_is_refused_and_leaves_nothing(self, folder: Path, change) -> None:
        first = hand_in(body("m"), key="k")
        with pytest.raises(IdempotencyKeyReused):
            hand_in(change.pop("content"), key="k", **change)
        assert (Upload.objects.count(), files(folder)) == (1, [str(first.uid)])

    def test_a_body_that_is_cut_off_is_refused_and_leaves_nothing(self, folder: Path) -> None:
        with pytest.raises(InputRefused, match="ended after 10 of 20 bytes"):
            hand_in(b"0123456789", length=20)
        assert (Upload.objects.count(), files(folder)) == (0, [])

    def test_what_is_too_large_too_slow_or_finds_no_room_is_refused(self, folder: Path, settings) -> None:
        settings.UPLOAD_MAX_BYTES = 100
        with pytest.raises(UploadTooLarge):
            hand_in(b"x", length=101)
        settings.UPLOAD_QUOTA_BYTES = 4
        with pytest.raises(NoRoom, match="waits"):
            hand_in(b"12345")
        settings.UPLOAD_QUOTA_BYTES, settings.UPLOAD_FREE_BYTES = 100, 2**60
        with pytest.raises(NoRoom, match="disk"):
            hand_in(b"12345")
        settings.UPLOAD_FREE_BYTES, settings.UPLOAD_SECONDS = 0, -1
        with pytest.raises(InputRefused, match="longer"):
            hand_in(b"12345")
        assert files(folder) == []

    @pytest.mark.parametrize(("told", "field"), [({"format_name": "xml"}, "format"), ({"source": "L\u0430b"}, "source")])
    def test_what_is_told_beside_it_is_checked_first(self, folder: Path, told: dict[str, str], field: str) -> None:
        with pytest.raises(InputRefused) as refused:
            hand_in(body("m"), **told)
        assert refused.value.problems[0].field == field

    def test_nothing_is_not_a_file(self, folder: Path) -> None:
        with pytest.raises(InputRefused, match="empty"):
            hand_in(b"")


@pytest.mark.django_db
class TestReading:
    def test_rows_are_taken_and_held_by_name(self, folder: Path) -> None:
        world.register("m")
        person = signing.actor_of(signing.human("Stella Steward", Role.EVIDENCE_STEWARD))
        upload = read_upload(hand_in(body("m", "stranger"), actor=person, file_name="run.json").uid)
        assert (upload.status, upload.taken, upload.evidence, upload.held) == ("done", 2, 2, {"stranger": 1})
        assert upload.document == Document.objects.get()
        # Whoever handed it in stays who submitted it: she does not sign what rests on it.
        assert set(Evidence.objects.values_list("submitted_by", flat=True)) == {person.reference}
        assert files(folder) == []
        assert list(LedgerEntry.objects.filter(action__startswith="upload.").order_by("id").values_list("action", flat=True)) == [
            "upload.received",
            "upload.completed",
        ]

    def test_the_same_bytes_again_are_repeated_not_taken(self, folder: Path) -> None:
        world.register("m")
        read_upload(hand_in(body("m")).uid)
        again = read_upload(hand_in(body("m")).uid)
        assert (again.status, again.taken, again.repeated, Evidence.objects.count()) == ("done", 0, 1, 1)

    def test_one_bad_row_refuses_all_with_its_place(self, folder: Path) -> None:
        world.register("m")
        document = json.loads(body("m", "m"))
        document["evidence"][1]["observations"][0]["value"] = "a lot"
        upload = read_upload(hand_in(json.dumps(document, indent=1).encode(), file_name="run.json").uid)
        assert (upload.status, upload.taken, Observation.objects.count(), Document.objects.count()) == ("refused", 0, 0, 0)
        (problem,) = upload.refused
        assert (problem["file"], problem["field"]) == ("run.json", "evidence[1].observations[0].value")
        assert problem["line"] > 10
        assert files(folder) == []

    def test_what_nobody_recognises_is_refused(self, folder: Path) -> None:
        upload = read_upload(hand_in(b"what is this?\n", file_name="what.bin").uid)
        assert (upload.status, files(folder)) == ("refused", [])
        assert "format" in upload.failure

    def test_it_is_read_once_however_often_it_is_asked_for(self, folder: Path) -> None:
        world.register("m")
        upload = hand_in(body("m"))
        assert [read_upload(upload.uid).status for _ in range(3)] == ["done"] * 3
        assert (Evidence.objects.count(), upload.reload().attempts) == (1, 1)

    def test_a_file_that_is_gone_fails(self, folder: Path) -> None:
        upload = hand_in(body("m"))
        (folder / str(upload.uid)).unlink()
        with pytest.raises(uploads.UploadFailed):
            read_upload(upload.uid)
        assert upload.reload().status == UploadStatus.FAILED

    def test_one_that_was_lost_too_often_fails_for_good(self, folder: Path) -> None:
        upload = hand_in(body("m"))
        with service_transaction("test"):
            Upload.objects.update(status="running", attempts=MOST_ATTEMPTS)
        assert (read_upload(upload.uid).status, files(folder)) == ("failed", [])
        assert "lost" in upload.reload().failure

    def test_one_that_takes_too_long_fails(self, folder: Path, monkeypatch) -> None:
        upload = hand_in(body("m"))

        def late(*_: object, **__: object) -> None:
            raise tasks.SoftTimeLimitExceeded

        monkeypatch.setattr(uploads, "apply_import_files", late)
        tasks.read_upload(str(upload.uid))
        assert (upload.reload().status, files(folder)) == ("failed", [])


@pytest.mark.django_db
def test_what_nobody_reads_is_asked_for_again_and_what_belongs_to_none_is_taken_away(folder: Path) -> None:
    upload, fresh = hand_in(body("m")), hand_in(body("n"))
    stray = folder / "stray"
    stray.write_bytes(b"x")
    os.utime(stray, (1, 1))
    with service_transaction("test"):
        Upload.objects.filter(pk=upload.pk).update(touched_at=now() - timedelta(minutes=5))
    assert stalled_uploads() == [upload.uid]
    assert files(folder) == sorted([str(upload.uid), str(fresh.uid)])


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_leaves_nothing_and_the_next_one_reads_it(
    committed_db, folder: Path, runtime_connection
) -> None:
    world.register("m")
    upload = hand_in(body(*["m"] * 1, *[f"m-{number}" for number in range(4_999)]))
    about = runtime_connection().info
    address = f"postgresql://{about.user}:{about.password}@/{about.dbname}?host={about.host}&port={about.port}"
    environment = {**os.environ, "DATABASE_URL": address, "WRITEGATE_UPLOAD_DIR": str(folder)}
    command = [sys.executable, "-c", CODE.format(uid=str(upload.uid))]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "in hand\n"
        try:
            # Everything is in the tables but for the commit. Another worker finds the file in hand, and leaves it.
            assert (read_upload(upload.uid).status, Evidence.objects.count()) == ("running", 0)
        finally:
            worker.send_signal(signal.SIGKILL)
    assert (Evidence.objects.count(), Document.objects.count(), files(folder)) == (0, 0, [str(upload.uid)])
    done = read_upload(upload.uid)
    assert (done.status, done.attempts, done.taken, Evidence.objects.count()) == ("done", 2, 5_000, 5_000)
    assert files(folder) == []


def test_twenty_at_once_under_one_key_are_one_upload(committed_db, folder: Path) -> None:
    made: list[object] = []

    def send() -> None:
        try:
            made.append(hand_in(body("m"), key="k").uid)
        finally:
            uploads.connection.close()

    threads = [threading.Thread(target=send) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(set(made)), Upload.objects.count()) == (20, 1, 1)
    assert files(folder) == [str(made[0])]
