"""Exports over the API: ordered once, made by the worker in slices, taken away whole."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from compliance import tasks
from compliance.ledger.note import VerifierKey
from compliance.ledger.parts import MemoryParts
from compliance.ledger.verifier import verify_parts
from compliance.models import AuditExport, IdempotencyKey, LedgerEntry, SigningKey
from compliance.selectors.ledger import leaf_count
from compliance.services import exports
from evaluations.kernel.canonical import digest_of
from tests.compliance.api.world import Api, World, evidence_body
from tests.support.ledger import ACTOR, append, members_of


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The exports that the worker was told of."""
    told: list[str] = []
    monkeypatch.setattr(tasks.advance_audit_export, "delay", told.append)
    return told


def ordered(api: Api, capture: Any, body: Any = b"{}", **headers: str) -> Any:
    """Order an export, and let what waits for the commit happen."""
    with capture(execute=True):
        return api.order(body, **headers)


def state() -> tuple[int, int]:
    return AuditExport.objects.count(), IdempotencyKey.objects.count()


def test_an_order_is_accepted_made_by_the_worker_and_taken_away(
    world: World, api: Api, sent: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    append(5)
    answer = ordered(api, django_capture_on_commit_callbacks, {"format": "csv"})
    assert answer.status_code == 202
    job = answer.json()
    assert (job["status"], job["done"], job["content_url"], job["file_digest"]) == ("queued", 0, None, None)
    assert job["to_index"] == leaf_count() - 1, "everything that waited was sealed first"
    assert job["requested_by"] == f"service:{world.token.pk}"
    assert sent == [job["uid"]]
    location = answer.headers["Location"]
    early = api.get(f"ledger/exports/{job['uid']}/content")
    assert (early.status_code, early.json()["code"], early.headers["Retry-After"]) == (409, "export_not_ready", "2")

    tasks.advance_audit_export(job["uid"])
    done = api.client.get(location, headers=api.headers).json()
    assert (done["status"], done["done"], done["failure"]) == ("done", done["total"], "")
    assert done["entries"] == job["to_index"] + 1
    content = api.client.get(done["content_url"], headers=api.headers)
    data = b"".join(content.streaming_content)
    assert digest_of(data) == done["file_digest"]
    assert content.headers["Content-Type"] == "application/zip"
    assert content.headers["Content-Disposition"] == f'attachment; filename="audit-{job["to_index"]}-{job["uid"]}.zip"'
    assert content.headers["X-Content-Type-Options"] == "nosniff"
    assert content.headers["Content-Length"] == str(len(data)) == str(done["file_bytes"])
    assert "sandbox" in content.headers["Content-Security-Policy"]
    keys = [VerifierKey.parse(key.verifier_key) for key in SigningKey.objects.all()]
    assert verify_parts(MemoryParts(members_of(data)), keys=keys).findings == []
    assert "entries.csv" in zipfile.ZipFile(io.BytesIO(data)).namelist()


def test_an_export_of_slices_shows_how_far_it_is(world: World, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from compliance.ledger import exporter

    monkeypatch.setattr(exporter, "CHUNK", 10)
    asked: list[str] = []
    monkeypatch.setattr(tasks.advance_audit_export, "apply_async", lambda args, countdown: asked.append(args[0]))
    monkeypatch.setattr(exports.advance_export, "__kwdefaults__", {"seconds": 0.0, "task_id": ""})
    uid = api.order().json()["uid"]
    seen = []
    for _ in range(1000):
        tasks.advance_audit_export(uid)
        shown = api.get(f"ledger/exports/{uid}").json()
        seen.append((shown["status"], shown["done"]))
        if shown["status"] == "done":
            break
    statuses = [status for status, _ in seen]
    counts = [count for _, count in seen]
    assert statuses == ["running"] * (len(seen) - 1) + ["done"]
    assert len(seen) > 3
    assert counts == sorted(counts)
    assert counts[-1] == shown["total"]
    assert asked == [uid] * (len(seen) - 1), "each slice asks for the next"


def test_an_order_takes_filters_a_range_and_sizes_that_are_held(world: World, api: Api) -> None:
    order = {
        "format": "jsonl",
        "to_index": 12,
        "filters": {"actor": f"person:{world.user.person_id}", "since": "2026-01-01T00:00:00+01:00", "target": None},
        "with_names": False,
        "consistent_with": [3, 2, 3],
    }
    job = api.order(order).json()
    assert job["filters"] == {"actor": order["filters"]["actor"], "since": "2025-12-31T23:00:00.000000Z"}
    assert (job["to_index"], job["with_names"], job["consistent_with"]) == (12, False, [2, 3])
    tasks.advance_audit_export(job["uid"])
    data = b"".join(api.get(f"ledger/exports/{job['uid']}/content").streaming_content)
    members = members_of(data)
    assert "names.json" not in members
    lines = members["entries.jsonl"].splitlines()
    assert lines
    assert {json.loads(line)["actor"]["id"] for line in lines} == {str(world.user.person_id)}


def test_the_same_range_is_the_same_bytes(world: World, api: Api) -> None:
    digests = set()
    for _ in range(2):
        uid = api.order({"to_index": 9}).json()["uid"]
        tasks.advance_audit_export(uid)
        digests.add(api.get(f"ledger/exports/{uid}").json()["file_digest"])
        append(3)
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{", ""),
        (b"\xff", ""),
        (b"[]", ""),
        (b"[" * 5000, ""),
        (b'{"format":"csv","format":"jsonl"}', "format"),
        ({"formt": "csv"}, "formt"),
        ({"format": "pdf"}, "format"),
        ({"format": 1}, "format"),
        ({"to_index": -1}, "to_index"),
        ({"to_index": 1.5}, "to_index"),
        ({"to_index": "3"}, "to_index"),
        ({"to_index": True}, "to_index"),
        ({"to_index": 10**6}, "to_index"),
        ({"to_index": 10**30}, "to_index"),
        (b'{"to_index": 1e3}', "to_index"),
        ({"with_names": "yes"}, "with_names"),
        ({"consistent_with": 5}, "consistent_with"),
        ({"consistent_with": [1, "x"]}, "consistent_with[1]"),
        ({"consistent_with": [0]}, "consistent_with"),
        ({"consistent_with": [10**9]}, "consistent_with"),
        ({"consistent_with": [1] * 101}, "consistent_with"),
        ({"filters": []}, "filters"),
        ({"filters": {"who": "x"}}, "filters.who"),
        ({"filters": {"actor": "Alice"}}, "filters.actor"),
        ({"filters": {"actor": 7}}, "filters.actor"),
        ({"filters": {"actor": "person:\x00"}}, "filters.actor"),
        ({"filters": {"actor": "person:\ud800"}}, "filters.actor"),
        ({"filters": {"since": "soon"}}, "filters.since"),
        ({"filters": {"until": "0001-01-01T00:00:00Z"}}, "filters.until"),
        ({"path": "/etc/passwd"}, "path"),
    ],
    ids=str,
)
def test_an_order_that_cannot_be_read_is_400_names_its_field_and_records_only_the_refusal(
    world: World, api: Api, body: Any, field: str
) -> None:
    before, refusals = state(), LedgerEntry.objects.filter(action="audit_export.refused").count()
    answer = api.order(body, **{"Idempotency-Key": "k"})
    assert answer.status_code == 400, answer.content
    problem = answer.json()["problems"][0]
    assert problem["field"] == field
    assert problem["hint"] or problem["message"]
    assert state() == before
    assert LedgerEntry.objects.filter(action="audit_export.refused").count() == refusals + 1


def test_an_empty_body_orders_everything_and_one_without_its_length_is_refused(world: World, api: Api) -> None:
    assert api.order(b"").status_code == 411
    answer = api.order(b"", **{"Content-Length": "0"})
    assert answer.status_code == 202
    assert (answer.json()["format"], answer.json()["filters"], answer.json()["to_index"]) == ("jsonl", {}, leaf_count() - 1)


def test_an_order_that_is_too_large_or_of_another_type_is_refused(world: World, api: Api) -> None:
    assert api.order(b" " * (64 * 1024 + 1)).status_code == 413
    answer = api.client.post("/api/v1/ledger/exports", b"a=1", content_type="text/plain", headers=api.headers)
    assert answer.status_code == 415


def test_a_retry_under_one_key_gets_the_same_export_and_sends_the_worker_again_while_it_waits(
    world: World, api: Api, sent: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    key = {"Idempotency-Key": "nightly-1"}
    first = ordered(api, django_capture_on_commit_callbacks, {"to_index": 3}, **key)
    before = state()
    again = ordered(api, django_capture_on_commit_callbacks, {"to_index": 3}, **key)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert again.headers["Location"] == first.headers["Location"]
    uid = first.json()["uid"]
    assert (state(), sent) == (before, [uid, uid])
    tasks.advance_audit_export(uid)
    late = ordered(api, django_capture_on_commit_callbacks, {"to_index": 3}, **key)
    assert (late.json()["uid"], late.json()["status"], sent) == (uid, "done", [uid, uid])
    other = api.order({"to_index": 4}, **key)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert state() == before


def test_a_key_used_for_evidence_orders_nothing(world: World, api: Api) -> None:
    body = json.dumps(evidence_body("1")).encode()
    assert api.send(body, **{"Idempotency-Key": "k"}).status_code == 201
    assert api.order(body, **{"Idempotency-Key": "k"}).status_code == 409
    assert api.order({"to_index": 1}, **{"Idempotency-Key": "l"}).status_code == 202
    assert api.send({"to_index": 1}, **{"Idempotency-Key": "l"}).status_code == 409


def test_an_order_that_is_refused_sends_nothing_and_one_that_rolls_back_neither(
    world: World, api: Api, sent: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    assert ordered(api, django_capture_on_commit_callbacks, {"format": "pdf"}).status_code == 400
    assert sent == []
    with django_capture_on_commit_callbacks() as waiting:
        assert api.order().status_code == 202
    assert len(waiting) == 1
    assert sent == [], "the worker is told after the commit, and not before"


def test_a_broker_that_is_down_does_not_lose_the_order(
    world: World, api: Api, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    def broken(uid: str) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(tasks.advance_audit_export, "delay", broken)
    answer = ordered(api, django_capture_on_commit_callbacks, {"to_index": 1}, **{"Idempotency-Key": "k"})
    assert answer.status_code == 202
    assert api.get(f"ledger/exports/{answer.json()['uid']}").json()["status"] == "queued"


def test_the_list_shows_all_exports_newest_first_and_filters_them(world: World, api: Api) -> None:
    made = [api.order({"format": name}).json()["uid"] for name in ("jsonl", "csv")]
    assert [each["uid"] for each in api.get("ledger/exports").json()["results"]] == [*reversed(made), str(world.export.uid)]
    assert [each["uid"] for each in api.get("ledger/exports", {"status": "done"}).json()["results"]] == [str(world.export.uid)]
    assert [each["uid"] for each in api.get("ledger/exports", {"format": "csv"}).json()["results"]] == [made[1]]
    assert api.get("ledger/exports", {"status": "lost"}).status_code == 400


def test_a_file_that_is_not_kept_here_is_not_served(world: World, api: Api, tmp_path: Path) -> None:
    elsewhere = exports.start_export(actor=ACTOR, path=tmp_path / "out.zip", to_index=2)
    exports.advance_export(elsewhere.uid, seconds=60)
    assert (tmp_path / "out.zip").exists()
    shown = api.get(f"ledger/exports/{elsewhere.uid}").json()
    assert (shown["status"], shown["content_url"]) == ("done", None)
    assert str(tmp_path) not in json.dumps(shown)
    assert api.get(f"ledger/exports/{elsewhere.uid}/content").status_code == 404
    path = Path(world.export.path)
    assert path.parent == Path(settings.AUDIT_EXPORT_DIR)
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[:-1])
        assert api.get(f"ledger/exports/{world.export.uid}/content").status_code == 404
        path.unlink()
        assert api.get(f"ledger/exports/{world.export.uid}/content").status_code == 404
    finally:
        path.write_bytes(whole)
    assert api.get(f"ledger/exports/{world.export.uid}/content").status_code == 200


def test_a_failed_export_says_why_and_has_no_file(world: World, api: Api) -> None:
    uid = api.order().json()["uid"]
    exports.abandon_export(actor=ACTOR, job=AuditExport.objects.get(uid=uid))
    shown = api.get(f"ledger/exports/{uid}").json()
    assert (shown["status"], shown["failure"], shown["content_url"]) == ("failed", "abandoned", None)
    answer = api.get(f"ledger/exports/{uid}/content")
    assert answer.status_code == 409
    assert "Retry-After" not in answer.headers
