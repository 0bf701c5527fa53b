"""Exports in the console: asked for by a form, watched, and taken away as files that verify."""

import io
import re
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from kombu.exceptions import OperationalError

from compliance.admin import exports
from compliance.ledger.note import VerifierKey
from compliance.ledger.verifier import verify_export
from compliance.models import AuditExport, LedgerEntry, SigningKey
from compliance.services.exports import abandon_export, advance_export, start_export
from compliance.vocabulary import ExportStatus
from evaluations.kernel.actor import person, system_job
from tests.compliance.admin.test_trail import read, record, text_of
from tests.compliance.admin.world import World

REQUEST = reverse("admin:compliance_auditexport_request")
LIST = reverse("admin:compliance_auditexport_changelist")
EVERY_SECOND = 'hx-trigger="every 1s"'


def at(job: AuditExport, name: str = "change") -> str:
    return reverse(f"admin:compliance_auditexport_{name}", args=[job.pk])


def asked(console: Client, **given: object) -> AuditExport:
    """Ask by the form; return the export that was recorded."""
    answer = console.post(REQUEST, {"format": "jsonl", **given})
    assert answer.status_code == 302, answer.content
    job = AuditExport.objects.order_by("-pk").first()
    assert answer["Location"] == at(job)
    return job


def test_asking_records_the_order_under_the_reader_s_own_name_and_wakes_the_worker(
    world: World, console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[str] = []
    monkeypatch.setattr(exports.advance_audit_export, "delay", woken.append)
    before = AuditExport.objects.count()
    record()
    job = asked(console, format="csv", with_names="on")
    assert AuditExport.objects.count() == before + 1
    assert job.status == ExportStatus.QUEUED
    assert (job.format, job.filters, job.with_names, job.consistent_with) == ("csv", {}, True, [])
    # What waited was sealed first, so the newest entry before the order is in it.
    assert LedgerEntry.objects.get(leaf__index=job.to_index).action == "bar.moved"
    assert job.requested_by == person(world.user.person_id).reference
    assert woken == [str(job.uid)]
    entry = LedgerEntry.objects.get(action="audit_export.requested", target_id=str(job.uid))
    assert entry.actor == job.requested_by


def test_filters_end_and_checkpoints_reach_the_service(world: World, console: Client) -> None:
    job = asked(
        console,
        actor="lovelace",
        action="trust.assigned",
        target_kind="source",
        target_id="board",
        since="2026-01-01T00:00:00",
        until="2126-01-01T10:30",
        to_index="40",
        consistent_with="1, 40",
    )
    assert job.to_index == 40
    assert job.with_names is False
    assert job.consistent_with == [1, 40]
    assert job.filters == {
        "actor": person(world.user.person_id).reference,
        "action": "trust.assigned",
        "target": "source:board",
        "since": "2026-01-01T00:00:00.000000Z",
        "until": "2126-01-01T10:30:00.000000Z",
    }
    done = advance_export(job.uid, seconds=60)
    assert done.entries == 1
    text = text_of(read(console, at(job)))
    assert "A part of the trail" in text
    assert "target source:board" in text


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"to_index": "100000"}, "to_index", "is not in the log"),
        ({"to_index": "-1"}, "to_index", "greater than or equal to 0"),
        ({"format": "xml"}, "format", "not one of the available choices"),
        ({"consistent_with": "1,x"}, "consistent_with", "whole numbers"),
        ({"consistent_with": "100000"}, "consistent_with", "sizes go from 1 to"),
        ({"actor": "nobody at all"}, "actor", "nobody has this in the name"),
        ({"actor": "person:"}, "actor", "is no actor"),
        ({"target_id": "board"}, "target_kind", "name the kind"),
        ({"since": "yesterday"}, "since", "valid date"),
    ],
)
def test_what_is_refused_is_said_beside_its_field_and_nothing_is_ordered(
    world: World, console: Client, given: dict[str, str], field: str, words: str
) -> None:
    before = AuditExport.objects.count()
    answer = console.post(REQUEST, {"format": "jsonl", **given})
    assert answer.status_code == 422
    assert words in str(answer.context["form"].errors[field])
    assert f'id="id_{field}_error"' in answer.content.decode()
    assert AuditExport.objects.count() == before


def test_a_search_of_the_trail_fills_the_form(world: World, console: Client) -> None:
    trail = reverse("admin:compliance_ledgerentry_changelist")
    html = read(console, trail, actor="ada", action="trust.assigned", target_kind="source")
    link = re.search(rf'href="({REQUEST}\?[^"]*)"', html)
    assert link
    form = console.get(link[1].replace("&amp;", "&")).context["form"]
    assert (form["actor"].value(), form["action"].value(), form["target_kind"].value()) == (
        "ada",
        "trust.assigned",
        "source",
    )
    assert console.get(REQUEST).context["form"].errors == {}
    assert f'href="{REQUEST}' not in read(console, trail, q="ada"), "a line of free text is no filter of an export"


def test_the_form_is_no_get_and_needs_its_token(world: World) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(world.user)
    before = AuditExport.objects.count()
    assert strict.post(REQUEST, {"format": "jsonl"}).status_code == 403
    assert strict.get(REQUEST, {"format": "jsonl"}).status_code == 200
    assert AuditExport.objects.count() == before


def test_a_queue_that_does_not_answer_leaves_the_order_and_says_so(
    world: World, console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(uid: str) -> None:
        raise OperationalError("down")

    monkeypatch.setattr(exports.advance_audit_export, "delay", unreachable)
    job = asked(console)
    assert "the worker could not be told" in read(console, at(job))
    woken: list[str] = []
    monkeypatch.setattr(exports.advance_audit_export, "delay", woken.append)
    assert console.post(at(job, "wake")).status_code == 302
    assert console.get(at(job, "wake")).status_code == 302
    assert woken == [str(job.uid)]


def test_progress_is_followed_without_script_of_ours_until_it_ends(world: World, console: Client) -> None:
    job = asked(console)
    html = read(console, at(job))
    assert f'hx-get="{at(job, "progress")}"' in html
    assert at(job, "download") not in html
    answer = console.get(at(job, "progress"))
    assert "<html" not in answer.content.decode()
    assert 'value="0"' in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    assert "HX-Refresh" not in answer
    advance_export(job.uid, seconds=60)
    ended = console.get(at(job, "progress"))
    assert ended["HX-Refresh"] == "true"
    assert EVERY_SECOND not in ended.content.decode()
    html = read(console, at(job))
    assert EVERY_SECOND not in html
    assert at(job, "download") in html


@pytest.mark.parametrize(("done", "total", "percent"), [(0, 0, 0), (0, 10, 0), (1, 3, 33), (10, 10, 99), (20, 10, 99)])
def test_an_export_is_at_a_hundred_only_when_it_is_whole(world: World, done: int, total: int, percent: int) -> None:
    job = world.export
    job.status, job.done, job.total = ExportStatus.RUNNING, done, total
    assert exports.progress_of(job)["percent"] == percent


def test_the_worker_s_task_makes_the_file_that_is_taken_away(world: World, console: Client, run_tasks_inline: None) -> None:
    job = asked(console, format="csv")
    job.refresh_from_db()
    assert job.status == ExportStatus.DONE
    answer = console.get(at(job, "download"))
    content = b"".join(answer.streaming_content)
    assert answer["Content-Disposition"] == f'attachment; filename="writegate-trail-{job.to_index}.zip"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert len(content) == job.file_bytes == int(answer["Content-Length"])
    report = verify_export(io.BytesIO(content), keys=[VerifierKey.parse(SigningKey.objects.get().verifier_key)])
    assert report.is_ok(), report.findings


def test_a_file_that_is_gone_replaced_or_elsewhere_is_not_given(world: World, console: Client, tmp_path: Path) -> None:
    elsewhere = advance_export(start_export(actor=system_job("tests"), path=tmp_path / "trail.zip").uid, seconds=60)
    answer = console.get(at(elsewhere, "download"))
    assert answer.status_code == 404
    assert "outside the export directory" in text_of(answer.content.decode())
    assert at(elsewhere, "download") not in read(console, at(elsewhere))
    path = Path(world.export.path)
    whole = path.read_bytes()
    path.unlink()
    path.symlink_to(tmp_path / "trail.zip")
    assert "outside the export directory" in text_of(console.get(at(world.export, "download")).content.decode())
    path.unlink()
    path.write_bytes(whole + b"more")
    assert "is not the file that was written" in text_of(console.get(at(world.export, "download")).content.decode())
    path.unlink()
    assert "no longer where it was written" in text_of(console.get(at(world.export, "download")).content.decode())


def test_a_failed_export_says_why(world: World, console: Client) -> None:
    job = asked(console)
    abandon_export(actor=system_job("tests"), job=job)
    text = text_of(read(console, at(job)))
    assert "The export was not made: abandoned" in text
    assert console.get(at(job, "download")).status_code == 404


def test_an_export_that_no_worker_begins_is_pointed_out(world: World, console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    job = asked(console)
    assert "No worker has begun it yet" not in text_of(read(console, at(job)))
    monkeypatch.setattr(exports, "UNMOVED_SECONDS", -1)
    assert "No worker has begun it yet" in text_of(read(console, at(job)))


def test_the_list_shows_every_state_and_takes_few_queries(world: World, console: Client) -> None:
    def count() -> int:
        console.get(LIST)
        with CaptureQueriesContext(connection) as queries:
            assert console.get(LIST).status_code == 200
        return len(queries)

    few = count()
    for _ in range(3):
        asked(console)
    assert few == count() == 6
    html = read(console, LIST)
    assert html.count(EVERY_SECOND) == 3
    assert "none: every entry" in html


def test_pages_of_no_export_are_not_found(world: World, console: Client) -> None:
    for name in ("progress", "download", "wake", "change"):
        assert console.get(reverse(f"admin:compliance_auditexport_{name}", args=[10**9])).status_code == 404
