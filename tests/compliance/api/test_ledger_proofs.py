"""What proves an entry and the log, and what the server says of itself, over the API."""

from typing import Any

import pytest
from django.db import connection

from compliance.ledger.merkle import check_consistency
from compliance.ledger.note import VerifierKey, decode_hash, encode_hash, parse_checkpoint, parse_note, verify_note
from compliance.ledger.proof import check_proof, read_proof
from compliance.models import LedgerEntry
from compliance.services.sealing import seal
from compliance.vocabulary import Role
from tests.compliance.api.test_ledger import get, listed, signed_in
from tests.compliance.api.world import Api, World, nobody
from tests.support.ledger import append

# --- proofs ------------------------------------------------------------------------------------------------------------------


def test_the_proof_of_an_entry_verifies_with_nothing_but_the_key(world: World, api: Api) -> None:
    shown = api.get(f"ledger/entries/{world.entry.uid}").json()
    answer = api.client.get(shown["proof_url"], headers=api.headers)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{world.entry.uid}.tlog-proof"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    proof = read_proof(answer.content)
    keys = [VerifierKey.parse(key) for key in api.get("ledger/checkpoint").json()["verifier_keys"]]
    assert proof.extra == shown["content"].encode()
    checkpoint, signed_by = check_proof(proof, proof.extra, keys)
    assert (proof.index, signed_by) == (shown["index"], tuple(keys))
    assert checkpoint.size > proof.index


def test_an_entry_that_is_not_sealed_yet_says_when_to_ask_again(world: World, api: Api) -> None:
    append(1)
    uid = listed(api, target="thing:0")[0]["uid"]
    answer = api.get(f"ledger/entries/{uid}/proof")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_sealed_yet")
    assert answer.headers["Retry-After"] == "2"
    assert "seconds" in answer.json()["detail"]
    seal()
    assert api.get(f"ledger/entries/{uid}/proof").status_code == 200


def test_the_checkpoint_is_the_newest_signed_note(world: World, api: Api) -> None:
    append(3)
    seal()
    shown = api.get("ledger/checkpoint").json()
    signed = parse_checkpoint(parse_note(shown["note"].encode()).text)
    assert (shown["size"], shown["root"]) == (signed.size, encode_hash(signed.root))
    assert verify_note(parse_note(shown["note"].encode()), [VerifierKey.parse(key) for key in shown["verifier_keys"]])
    assert shown["size"] == LedgerEntry.objects.count()


def test_a_checkpoint_held_is_proved_to_begin_the_log(world: World, api: Api) -> None:
    held = api.get("ledger/checkpoint").json()
    append(40)
    seal()
    proof = api.get("ledger/consistency", {"from": held["size"]}).json()
    signed = parse_checkpoint(parse_note(proof["note"].encode()).text)
    assert (proof["from_size"], proof["to_size"]) == (held["size"], signed.size)
    assert signed.size > held["size"]
    path = [decode_hash(one) for one in proof["path"]]
    assert path
    check_consistency(held["size"], signed.size, path, decode_hash(held["root"]), signed.root)
    same = api.get("ledger/consistency", {"from": signed.size}).json()
    assert same["path"] == []


def test_a_log_shorter_than_the_checkpoint_held_is_a_conflict(world: World, api: Api) -> None:
    size = api.get("ledger/checkpoint").json()["size"]
    answer = api.get("ledger/consistency", {"from": size + 1})
    assert (answer.status_code, answer.json()["code"]) == (409, "ledger_shorter")
    assert str(size) in answer.json()["detail"]


@pytest.mark.parametrize(
    ("query", "code"), [("", "missing"), ("from=0", "invalid"), ("from=x", "invalid"), ("to=4", "unknown_parameter")]
)
def test_consistency_needs_the_size_that_is_held(api: Api, query: str, code: str) -> None:
    answer = get(api, f"ledger/consistency?{query}")
    assert answer.status_code == 400
    assert code in {problem["code"] for problem in answer.json()["problems"]}


@pytest.mark.django_db
def test_before_the_first_sealing_there_is_no_checkpoint_to_speak_of() -> None:
    auditor = signed_in(Role.AUDITOR)
    for path in ("ledger/checkpoint", "ledger/consistency?from=1", "ledger/check"):
        assert get(auditor, path).status_code == 404, path
    assert get(nobody(), "/ledger/checkpoint").status_code == 404
    assert get(auditor, "ledger/entries").status_code == 200


# --- the log and the tables --------------------------------------------------------------------------------------------------


def test_the_server_s_own_check_finds_damage_by_index(world: World, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from compliance.ledger import recheck

    whole = api.get("ledger/check").json()
    assert (whole["head_agrees"], whole["is_whole"], whole["findings"]) == (True, True, [])
    assert whole["entries_read"] == whole["size"] == api.get("ledger/checkpoint").json()["size"]
    assert whole["signed_by"]
    real = recheck.read_entries

    def damaged(start: int, end: int) -> Any:
        rows = real(start, end)
        rows[3].content += b" "
        return rows

    monkeypatch.setattr(recheck, "read_entries", damaged)
    found = api.get("ledger/check").json()["findings"]
    assert {finding["index"] for finding in found} == {3}


def test_the_population_report_names_a_row_that_no_entry_tells_of(world: World, api: Api) -> None:
    report = api.get("ledger/population").json()
    assert report["agrees"] is True
    assert {line["table"] for line in report["lines"]} > {"policies_verdict", "compliance_servicetoken", "sealing"}
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('writegate.service', 'tests', true)")
        cursor.execute("INSERT INTO compliance_team (key, title, created_at) VALUES ('quiet', 'Quiet', now())")
    report = api.get("ledger/population").json()
    assert report["agrees"] is False
    differing = [line for line in report["lines"] if line["differing"]]
    assert [(line["table"], line["examples"]) for line in differing] == [("compliance_team", ["quiet"])]
