"""An entry's page, and the ways that lead to the trail from everywhere else."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from compliance.admin.head import lasting
from compliance.ledger.note import VerifierKey
from compliance.ledger.verifier import verify_proof_file
from compliance.models import LedgerEntry, PersonName, SigningKey, SignOffRequest
from compliance.services.sealing import seal
from evaluations.kernel.actor import person, service, system_job
from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import Document, Evidence, Source, SubjectVersion
from tests.compliance.admin.test_trail import HOME, LIST, count_queries, found, page_of, read, record, text_of
from tests.compliance.admin.world import NAME, World, add_intake, add_routes, add_waiver
from tests.support.asking import ask_gate, ask_token

OLD, NEW = {"bar": "80", "note": "same", "gone": True}, {"bar": "75", "note": "same", "nested": {"names": ["a", "b"]}}


# --- an entry ---------------------------------------------------------------------------------------------------------------


def test_an_entry_shows_old_beside_new_and_what_differs_first(world: World, console: Client) -> None:
    html = read(console, page_of(record(old=OLD, new=NEW)))
    rows = re.findall(r'<tr role="row">(?:<td role="cell" data-label="Field">(.*?)</tr>)', html)
    assert [" ".join(strip_tags(row.replace("</td>", " | ")).split()) for row in rows] == [
        "bar | 80 | 75 | yes |",
        "gone | yes | not there | yes |",
        "nested.names | not there | a, b | yes |",
        "note | same | same | no |",
    ]


def test_an_entry_names_the_actor_and_her_commitment_and_says_when_the_name_was_erased(world: World, console: Client) -> None:
    entry = LedgerEntry.objects.get(action="evidence.disputed")
    name = PersonName.objects.get(person=world.user.person)
    html = read(console, page_of(entry))
    text = text_of(html)
    assert f"Actor {NAME}" in text
    assert f"Commitment to the name {name.commitment}" in text
    assert f"Name behind the commitment {NAME}: agrees" in text
    assert reverse("admin:compliance_person_change", args=[world.user.person_id]) in html
    with service_transaction("tests"):
        PersonName.objects.filter(pk=name.pk).delete()
    text = text_of(read(console, page_of(entry)))
    assert NAME not in text
    assert f"Commitment to the name {name.commitment} Name behind the commitment erased; the commitment stands" in text


def test_an_entry_says_on_whose_behalf_and_in_which_task(world: World, console: Client) -> None:
    ada = person(world.user.person_id)
    acting = service(world.token.pk, on_behalf_of=ada)
    html = read(console, page_of(record(system_job("judge", on_behalf_of=acting, task_id="task-77"))))
    text = text_of(html)
    assert "Actor judge (system job)" in text
    assert f"On behalf of {world.token.name} (token)" in text
    assert f"On behalf of {NAME}" in text
    assert "Background task task-77" in text
    assert reverse("admin:compliance_servicetoken_change", args=[world.token.pk]) in html
    alone = text_of(read(console, page_of(record())))
    assert "On behalf of nobody else" in alone
    assert "Background task none" in alone


def test_digests_and_target_lead_to_what_they_name(world: World, console: Client) -> None:
    verdict = world.verdict("clears")
    leads = {
        ("verdict", str(verdict.uid)): [verdict, verdict.policy_version],
        ("evidence", str(Evidence.objects.get(subject_as_written="Clears").uid)): [Document.objects.get()],
        ("document", Document.objects.get().digest): [Document.objects.get()],
        ("subject_version", "clears@1"): [world.versions["clears"]],
        ("audit_export", str(world.export.uid)): [world.export],
    }
    for (kind, identity), rows in leads.items():
        html = read(console, page_of(LedgerEntry.objects.filter(target_kind=kind, target_id=identity).last()))
        for row in rows:
            assert reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk]) in html, (kind, row)
    key = LedgerEntry.objects.get(action="signing_key.announced")
    assert reverse("admin:compliance_ledgerentry_checkpoint") in read(console, page_of(key))


@pytest.mark.parametrize("target", [("nothing", "x"), ("person", "not-a-uuid"), ("policy_version", "x@y"), ("evidence", "gone")])
def test_a_target_that_no_page_shows_is_text(world: World, console: Client, target: tuple[str, str]) -> None:
    text = text_of(read(console, page_of(record(target=target, digests={"odd": {"a": 1}, "document": "sha256:00"}))))
    assert f"Target {target[0].replace('_', ' ')} {target[1]}" in text
    assert text.count("no page shows it") == 2


def test_the_proof_is_a_file_that_verifies_offline(world: World, console: Client) -> None:
    entry = LedgerEntry.objects.get(action="evidence.disputed")
    page = reverse("admin:compliance_ledgerentry_proof", args=[entry.pk])
    assert page in read(console, page_of(entry))
    answer = console.get(page)
    assert answer["Content-Disposition"] == f'attachment; filename="entry-{entry.leaf.index}.tlog-proof"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    key = VerifierKey.parse(SigningKey.objects.get().verifier_key)
    assert verify_proof_file(answer.content, keys=[key]).is_ok()
    assert not verify_proof_file(answer.content.replace(b"index ", b"index 1"), keys=[key]).is_ok()
    assert str(key) in text_of(read(console, page_of(entry))).replace("&#x27;", "'")


def test_an_entry_that_waits_says_when_to_try_again(world: World, console: Client) -> None:
    entry = record()
    html = read(console, page_of(entry))
    proof = reverse("admin:compliance_ledgerentry_proof", args=[entry.pk])
    assert proof not in html
    assert "look again in a moment" in html
    answer = console.get(proof)
    assert (answer.status_code, answer["Retry-After"]) == (409, "5")
    assert "Try again in 5 seconds" in text_of(answer.content.decode())
    seal()
    assert console.get(proof).status_code == 200
    assert proof in read(console, page_of(entry))
    assert console.get(reverse("admin:compliance_ledgerentry_proof", args=[10**9])).status_code == 404


def test_bytes_that_are_no_entry_are_shown_and_named(world: World, console: Client) -> None:
    entry = LedgerEntry(
        content=b"not json",
        digest="sha256:" + "0" * 64,
        action="thing.made",
        actor="system_job:x",
        target_kind="a",
        target_id="b",
    )
    entry.save()
    text = text_of(read(console, page_of(entry)))
    assert "Digest of the bytes stored error does not agree" in text
    assert "not json" in text


def test_an_entry_takes_few_queries(world: World, console: Client) -> None:
    assert count_queries(console, page_of(LedgerEntry.objects.get(action="evidence.disputed"))) == 11
    assert count_queries(console, page_of(LedgerEntry.objects.filter(action="verdict.recorded").first())) == 8


# --- the ways in ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_page_of_an_object_leads_to_its_entries(world: World, console: Client, tmp_path: Path) -> None:
    """But for the trail's own rows, each registered page names its entries as its service wrote them."""
    left_out = {"LedgerEntry"}
    review = SignOffRequest.objects.get()
    add_waiver(world)
    add_routes(world)
    add_intake(world, tmp_path / "uploads")
    ask_gate(ask_token(world.user))
    for model, page in admin.site._registry.items():
        if model.__name__ in left_out:
            continue
        assert isinstance(page, ReadOnlyAdmin)
        # A notice that waits or was sent has no entry of its own; one that was given up has.
        rows = model._default_manager.filter(status="dead") if model.__name__ == "OutboxMessage" else model._default_manager
        row = review if model is SignOffRequest else rows.first()
        html = read(console, reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[row.pk]))
        link = re.search(r'href="([^"]*ledgerentry/\?target_kind=[^"]*)">Its entries', html)
        assert link, model
        shown = console.get(link[1].replace("&amp;", "&")).context["cl"]
        assert shown.result_count > 0, (model, link[1])


def test_a_person_and_a_token_lead_to_what_they_did(world: World, console: Client) -> None:
    html = read(console, reverse("admin:compliance_person_change", args=[world.user.person_id]))
    link = re.search(r'href="([^"]*ledgerentry/\?actor=[^"]*)"', html)
    assert link
    assert console.get(link[1].replace("&amp;", "&")).context["cl"].result_count > 10
    assert f"actor=service%3A{world.token.pk}" in read(
        console, reverse("admin:compliance_servicetoken_change", args=[world.token.pk])
    )


def test_home_shows_how_the_log_stands(world: World, console: Client) -> None:
    text = text_of(read(console, HOME))
    assert re.search(
        r"Entries sealed 72 Last checkpoint .* UTC \d+ seconds? ago Entries waiting for their index 2, the oldest", text
    )
    assert "nothing is being sealed" not in text
    seal()
    assert "Entries waiting for their index none" in text_of(read(console, HOME))


def test_home_warns_when_entries_wait_too_long(world: World, console: Client) -> None:
    old = LedgerEntry(
        content=b"{}",
        digest="sha256:" + "0" * 64,
        action="thing.made",
        actor="system_job:x",
        target_kind="a",
        target_id="b",
        recorded_at=now() - timedelta(minutes=7, seconds=5),
    )
    old.save()
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO compliance_ledgerpending (entry_id) VALUES (%s)", [old.pk])
    assert "Entries have waited for their index for 7 minutes: nothing is being sealed" in text_of(read(console, HOME))


def test_home_warns_when_the_log_is_silent(world: World, console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    seal()
    for hours, silent in ((1, False), (3, True)):
        monkeypatch.setattr("compliance.admin.head.now", lambda hours=hours: now() + timedelta(hours=hours))
        assert ("The log was last signed 3 hours ago" in text_of(read(console, HOME))) is silent


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 seconds"),
        (0, "0 seconds"),
        (1, "1 second"),
        (59, "59 seconds"),
        (60, "1 minute"),
        (7300, "2 hours"),
        (90000, "1 day"),
    ],
)
def test_a_length_of_time_is_spelled_in_its_largest_unit(seconds: int, words: str) -> None:
    assert lasting(timedelta(seconds=seconds)) == words


def test_each_item_of_the_side_bar_is_lit_on_its_own_pages_alone(world: World, console: Client) -> None:
    for page in (
        HOME,
        LIST,
        reverse("admin:compliance_ledgerentry_checkpoint"),
        reverse("admin:compliance_ledgerentry_verify"),
        reverse("admin:compliance_auditexport_request"),
        page_of(LedgerEntry.objects.first()),
    ):
        groups = console.get(page).context["sidebar_navigation"]
        lit = [item["link"] for group in groups for item in group["items"] if item["active"]]
        assert len(lit) == 1, page
        assert page.startswith(lit[0])


def test_subject_versions_and_sources_are_found_by_the_words_of_their_entries(world: World, console: Client) -> None:
    version = SubjectVersion.objects.get(pk=world.versions["clears"].pk)
    source = Source.objects.get(key="paper")
    for kind, identity in (("subject_version", f"{version.subject.key}@{version.number}"), ("source", source.key)):
        assert found(console, target_kind=kind, target_id=identity)
