"""The trail in the API: entries as they were hashed, who may read them, and what proves them."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from compliance.ledger.merkle import leaf_hash
from compliance.ledger.note import decode_hash
from compliance.models import Checkpoint, LedgerEntry, PersonName, RoleMembership, User
from compliance.services.people import create_person, create_token
from compliance.services.sealing import seal
from compliance.vocabulary import Role, Scope
from evaluations.kernel.actor import system_job
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from policies.models import Verdict
from tests.compliance.api.test_reading import addresses
from tests.compliance.api.world import Api, World, evidence_body, nobody, with_token
from tests.support.ledger import append


def trail_addresses(world: World) -> list[str]:
    """Return every address of the trail, the log's entry bundles included."""
    own = [path for name, path in addresses(world).items() if name.startswith("ledger-")]
    return [*own, "/ledger/tile/entries/000.p/1"]


def get(api: Api, path: str) -> Any:
    return api.client.get(path if path.startswith("/") else f"/api/v1/{path}", headers=api.headers)


def signed_in(*roles: Role, is_staff: bool = True) -> Api:
    user = create_person(actor=system_job("tests"), name="Bob", email="bob@example.org", roles=roles, is_staff=is_staff)
    client = Client()
    client.force_login(User.objects.get(pk=user.pk))
    return Api(client)


def listed(api: Api, **query: Any) -> list[dict[str, Any]]:
    answer = api.get("ledger/entries", {"page_size": 200, **query})
    assert answer.status_code == 200, answer.content
    return list(answer.json()["results"])


# --- who may -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("roles", "status"),
    [
        ((Role.AUDITOR,), 200),
        ((Role.ADMINISTRATOR,), 200),
        (tuple(role for role in Role if role not in (Role.AUDITOR, Role.ADMINISTRATOR)), 403),
        ((), 403),
    ],
)
def test_the_trail_is_for_auditors_and_administrators(world: World, roles: tuple[Role, ...], status: int) -> None:
    api = signed_in(*roles)
    assert api.get("subjects").status_code == 200
    for path in trail_addresses(world):
        answer = get(api, path)
        assert answer.status_code == status, path
        if status == 403:
            assert answer.json()["code"] == "role_missing", path
    assert api.order().status_code == (202 if status == 200 else 403)


def test_an_auditor_who_may_not_use_the_console_reads_nothing_by_session(world: World) -> None:
    api = signed_in(Role.AUDITOR, is_staff=False)
    assert {get(api, path).status_code for path in trail_addresses(world)} == {403}


def test_a_token_reads_the_trail_only_while_its_person_holds_the_role(world: World, api: Api) -> None:
    for path in trail_addresses(world):
        assert get(api, path).status_code == 200, path
    held, auditor = RoleMembership.objects, {"person": world.user.person, "role": Role.AUDITOR}
    changes = (
        lambda: held.filter(**auditor).update(ends_at=now()),
        lambda: held.create(**auditor, given_by="person:x", starts_at=now() + timedelta(hours=1)),
    )
    for change in changes:
        with service_transaction("tests"):
            change()
        assert api.get("subjects").status_code == 200
        for path in trail_addresses(world):
            assert (get(api, path).status_code, get(api, path).json()["code"]) == (403, "role_missing"), path


def test_a_token_of_an_auditor_without_the_scope_or_of_another_person_reads_nothing(world: World) -> None:
    bob = create_person(actor=world.actor, name="Bob", email="bob@example.org", roles=[Role.SECURITY])
    others = with_token(create_token(actor=world.actor, name="his", scopes=[Scope.READ], person=bob.person).secret)
    for path in trail_addresses(world):
        for scope in (Scope.SUBMIT_EVIDENCE, Scope.DECIDE, "read:hr-prod"):
            assert get(world.api_with(scope), path).json()["code"] == "scope_missing", path
        assert get(others, path).json()["code"] == "role_missing", path
        assert (nobody().get(path) if path.startswith("/api") else get(nobody(), path)).status_code == 401, path


def test_checkpoint_and_hashes_of_the_log_are_open_and_its_entries_are_not(world: World, api: Api) -> None:
    newest = Checkpoint.objects.order_by("-size")[0]
    answer = get(nobody(), "/ledger/checkpoint")
    assert (answer.status_code, answer.content.decode()) == (200, newest.note)
    hashes = get(nobody(), f"/ledger/tile/0/000.p/{newest.size}")
    assert (hashes.status_code, len(hashes.content)) == (200, 32 * newest.size)
    bundle = f"/ledger/tile/entries/000.p/{newest.size}"
    refused = get(nobody(), bundle)
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    data = get(api, bundle).content
    first = data[2 : 2 + int.from_bytes(data[:2], "big")]
    assert leaf_hash(first) == hashes.content[:32]
    assert get(api, bundle).headers["Cache-Control"].startswith("private")
    assert get(api, "/ledger/tile/entries/009").status_code == 404


# --- entries -----------------------------------------------------------------------------------------------------------------


def test_an_entry_is_shown_from_the_bytes_that_were_hashed(world: World, api: Api) -> None:
    shown = api.get(f"ledger/entries/{world.entry.uid}").json()
    content = shown["content"].encode()
    assert content == bytes(world.entry.content)
    assert digest_of(content) == shown["digest"]
    assert decode_hash(shown["leaf_hash"]) == leaf_hash(content)
    assert shown["index"] == world.entry.leaf.index
    assert shown["intact"] is True
    assert shown["actor"] == {"kind": "person", "id": str(world.user.person_id), "name": "Alice", "task_id": ""}
    assert shown["on_behalf_of"] == []
    assert shown["target"] == {"kind": "policy_version", "id": "refusal-only@1"}
    held = json.loads(content)
    assert (shown["at"], shown["new"], shown["old"], shown["digests"]) == (held["at"], held["new"], held["old"], held["digests"])


def test_old_and_new_stand_side_by_side_with_what_differs(world: World, api: Api) -> None:
    append(1, start=7)
    shown = listed(api, target="thing:7")[0]
    assert (shown["old"], shown["new"], shown["changed"]) == ({"value": 7}, {"value": 8}, ["value"])
    assert (shown["index"], shown["leaf_hash"]) == (None, None)
    seal()
    shown = listed(api, target="thing:7")[0]
    assert shown["index"] == Checkpoint.objects.order_by("-size")[0].size - 1


def test_who_acted_for_whom_is_shown_and_a_name_only_while_it_is_kept(world: World, api: Api) -> None:
    ordered = listed(api, action="audit_export.completed")[0]
    assert (ordered["actor"]["kind"], ordered["actor"]["name"]) == ("system_job", "export-audit")
    assert [(each["kind"], each["name"]) for each in ordered["on_behalf_of"]] == [("service", "ci")]
    asked = listed(api, action="audit_export.requested")[0]
    assert [each["name"] for each in (asked["actor"], *asked["on_behalf_of"])] == ["ci", "Alice"]
    with service_transaction("tests"):
        PersonName.objects.filter(person=world.user.person).delete()
    again = listed(api, action="audit_export.requested")[0]
    assert again == {**asked, "on_behalf_of": [{**asked["on_behalf_of"][0], "name": None}]}
    assert "Alice" not in json.dumps(listed(api)) + api.get(f"ledger/entries/{world.entry.uid}").content.decode()


def test_the_request_id_of_a_call_is_in_its_entries(world: World, api: Api) -> None:
    made = api.send(evidence_body("1"), **{"X-Request-ID": "run-42.a"}).json()
    shown = listed(api, target=f"evidence:{made['evidence'][0]}")[0]
    assert (shown["action"], shown["request_id"]) == ("evidence.recorded", "run-42.a")
    assert api.send(evidence_body(True), **{"X-Request-ID": "run-43"}).status_code == 400
    assert listed(api, action="evidence.refused")[0]["request_id"] == "run-43"
    assert api.order({"format": "pdf"}, **{"X-Request-ID": "run-44"}).status_code == 400
    assert listed(api, action="audit_export.refused")[0]["request_id"] == "run-44"


def test_each_filter_keeps_what_it_names_and_drops_the_rest(world: World, api: Api) -> None:
    everything = listed(api)
    assert len(everything) == LedgerEntry.objects.count() > 20
    verdict = Verdict.objects.get()
    trail = listed(api, target=f"verdict:{verdict.uid}")
    assert [each["action"] for each in trail] == ["verdict.recorded"]
    document = f"document:{world.evidence.document.digest}"
    assert [each["target"]["id"] for each in listed(api, target=document)] == [world.evidence.document.digest]
    for query, kept in (
        ({"actor": "system_job:tests"}, lambda each: each["actor"]["id"] == "tests"),
        ({"actor": f"person:{world.user.person_id}"}, lambda each: each["actor"]["kind"] == "person"),
        ({"action": "metric.registered"}, lambda each: each["action"] == "metric.registered"),
        ({"target": "subject"}, lambda each: each["target"]["kind"] == "subject"),
        ({"from_index": 5, "to_index": 9}, lambda each: each["index"] is not None and 5 <= each["index"] <= 9),
        ({"from_index": 0}, lambda each: each["index"] is not None),
        ({"to_index": 0}, lambda each: each["index"] == 0),
        ({"target": "subject", "action": "metric.registered"}, lambda each: False),
    ):
        expected = [each["uid"] for each in everything if kept(each)]
        assert [each["uid"] for each in listed(api, **query)] == expected, query
        assert bool(expected) == (len(query) == 1 or "from_index" in query), query


def test_a_period_begins_at_since_and_ends_before_until(world: World, api: Api) -> None:
    at = listed(api, action="policy_version.proposed")[0]["at"]
    assert listed(api, action="policy_version.proposed", since=at) != []
    assert listed(api, action="policy_version.proposed", until=at) == []
    assert listed(api, since="2026-01-01", until=at) == [each for each in listed(api) if each["at"] < at] != []
    assert listed(api, until="1971-01-01") == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("actor=Alice", "actor"),
        ("actor=robot:1", "actor"),
        ("actor=person:%0A", "actor"),
        ("action=recorded", "action"),
        ("action=%27%20or%201=1", "action"),
        ("target=Verdict:1", "target"),
        ("target=verdict:", "target"),
        ("target=verdict:%00", "target"),
        ("target=verdict:" + "x" * 300, "target"),
        ("since=yesterday", "since"),
        ("since=2026-01-01T00:00:00", "since"),
        ("since=0001-01-01T00:00:00%2B10:00", "since"),
        ("until=1969-12-31", "until"),
        ("until=9999-12-31T23:59:59-10:00", "until"),
        ("from_index=-1", "from_index"),
        ("to_index=1e3", "to_index"),
        ("to_index=99999999999999999999", "to_index"),
        ("index=1", "index"),
    ],
)
def test_a_search_word_that_cannot_be_read_is_400_and_named(api: Api, query: str, field: str) -> None:
    answer = get(api, f"ledger/entries?{query}")
    assert answer.status_code == 400, answer.content
    assert answer.json()["problems"][0]["field"] == field


def test_a_plus_that_became_a_space_is_told_how_to_write_it(api: Api) -> None:
    answer = get(api, "ledger/entries?since=2026-01-01T00:00:00+01:00")
    assert "%2B" in answer.json()["problems"][0]["hint"]


@pytest.mark.parametrize(
    "change",
    [
        {"content": b"{}"},
        {"content": b"\xff not JSON"},
        {"content": b'{"actor":null}'},
        {"digest": "sha256:" + "0" * 64},
        {"action": "subject.registered"},
        {"actor": "person:somebody-else"},
        {"target_id": "another"},
        {"uid": "00000000-0000-0000-0000-00000000000a"},
    ],
    ids=str,
)
def test_a_row_changed_past_the_locks_is_shown_and_is_not_intact(
    world: World, api: Api, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    from compliance.api.v1 import ledger

    entry = LedgerEntry.objects.select_related("leaf").get(pk=world.entry.pk)
    for name, value in change.items():
        setattr(entry, name, value)
    monkeypatch.setattr(ledger.entries, "get_entry", lambda **_: entry)
    answer = api.get(f"ledger/entries/{entry.uid}")
    assert answer.status_code == 200
    assert answer.json()["intact"] is False
    assert answer.json()["action"]
    assert answer.json()["actor"]["kind"] == "person"


# --- pages -------------------------------------------------------------------------------------------------------------------


def walk(api: Api, address: str | None, direction: str, between: Any = lambda: None) -> tuple[list[str], list[Any]]:
    """Follow `next` or `previous` to the end; return the targets met in the order of the list, and the pages."""
    met: list[str] = []
    pages = []
    while address is not None:
        page = api.client.get(address, headers=api.headers).json()
        ids = [each["target"]["id"] for each in page["results"]]
        met = met + ids if direction == "next" else ids + met
        pages.append(page)
        address = page[direction]
        between()
    return met, pages


@pytest.mark.parametrize("size", [50, 7])
def test_o_29_each_of_120_entries_of_one_instant_is_seen_once_forward_and_once_back_while_30_come_in(api: Api, size: int) -> None:
    append(120)  # one call: one timestamp
    assert LedgerEntry.objects.filter(target_kind="thing").values("recorded_at").distinct().count() == 1
    newest_first = [str(number) for number in reversed(range(120))]
    fresh = iter(range(1000, 1030))

    def insert_and_seal() -> None:
        # Sealing meanwhile must not move a page either: indexes come after the order is fixed.
        for number, _ in zip(fresh, range(3), strict=False):
            append(1, start=number)
        seal()

    start = f"/api/v1/ledger/entries?target=thing&page_size={size}"
    met, forward = walk(api, start, "next", insert_and_seal)
    assert met == newest_first
    assert forward[0]["previous"] is None
    back, backward = walk(api, forward[-1]["previous"], "previous", insert_and_seal)
    seen = back + [each["target"]["id"] for each in forward[-1]["results"]]
    assert [one for one in seen if one in newest_first] == newest_first
    assert len(seen) == len(set(seen)) > 120
    assert not any(page["results"] == [] for page in forward + backward)
