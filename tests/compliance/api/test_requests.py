"""Requests over the API: asked, shown to those who may see them, and refused by field."""

import json
from datetime import timedelta
from typing import Any

import pytest

from compliance.models import LedgerEntry, SignOffRequest
from compliance.vocabulary import Role
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.clock import now
from evaluations.models import Evidence
from policies.services.systems import register_system
from tests.compliance.api.callers import as_person, as_token, post
from tests.compliance.api.world import Api
from tests.support import signing, world


def grant_body(**changes: Any) -> dict[str, Any]:
    whole = {
        "kind": "grant",
        "subject": "model-a",
        "systems": ["hr-prod"],
        "actions": ["write"],
        "ends_at": (now() + timedelta(days=30)).isoformat(),
        "reason": "the nightly sync needs it",
        **changes,
    }
    return {member: value for member, value in whole.items() if value is not None}


def test_a_grant_is_asked_for_and_shown_with_its_quorum(land: signing.Ground) -> None:
    asker = as_person(land.asker)
    made = post(asker, "requests", grant_body(subject="model-a@1"), Idempotency_Key="k1")
    assert made.status_code == 201, made.content
    shown = made.json()
    assert made.headers["Location"].endswith(f"/requests/{shown['uid']}")
    assert (shown["kind"], shown["status"], shown["systems"], shown["subject_version"]) == (
        "grant",
        "open",
        ["hr-prod"],
        "model-a@1",
    )
    assert shown["requester"] == {"person": str(land.asker.person_id), "name": "Rita Asker"}
    quorum = shown["quorum"]
    assert [(item["factor"], item["open"], item["seats"]) for item in quorum["factors"]] == [
        ("owner", 1, []),
        ("security", 1, []),
    ]
    assert {item["person"]["name"] for item in quorum["may_sign"]} == {"Olga Owner", "Sven Security"}
    assert (quorum["is_current"], quorum["met"]) == (True, False)
    again = asker.get(f"requests/{shown['uid']}")
    assert again.json() == shown
    assert again.headers["ETag"] == made.headers["ETag"]
    repeated = post(
        asker, "requests", grant_body(subject="model-a@1", ends_at=shown["proposal"]["ends_at"]), Idempotency_Key="k1"
    )
    assert (repeated.status_code, repeated.json()["uid"]) == (201, shown["uid"])
    other = post(asker, "requests", grant_body(reason="something else"), Idempotency_Key="k1")
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert SignOffRequest.objects.filter(kind="grant").count() == 1


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"ends_at": "2026-12-31T12:00:00"}, "ends_at", "not_an_instant"),
        ({"ends_at": "2026-12-31"}, "ends_at", "not_an_instant"),
        ({"starts_at": "2026-10-25 02:30:00+01:00"}, "starts_at", "not_an_instant"),
        ({"ends_at": None}, "ends_at", "missing"),
        ({"ends_att": "x"}, "ends_att", "unknown_field"),
        ({"systems": ["hr-prot"]}, "systems[0]", "unknown"),
        ({"subject": "model-b"}, "subject", "unknown"),
        ({"subject": "model-a@7"}, "subject", "unknown"),
        ({"kind": "grand"}, "kind", "unknown_word"),
        ({"kind": "break_glass_review"}, "kind", "unknown_word"),
        ({"waivers": [{"policy": "two-keys", "rool": "x"}]}, "waivers[0].rool", "unknown_field"),
        ({"systems": []}, "systems", ""),
        ({"reason": ""}, "reason", "missing"),
    ],
)
def test_what_is_wrong_is_named_by_field(land: signing.Ground, changes: dict[str, Any], field: str, code: str) -> None:
    refused = post(as_person(land.asker), "requests", grant_body(**changes))
    assert refused.status_code == 400, refused.content
    found = {problem["field"]: problem["code"] for problem in refused.json()["problems"]}
    assert found.get(field) == code, found
    assert not SignOffRequest.objects.filter(requester=land.asker.person).exists()


def test_an_unknown_member_is_answered_with_the_nearest_one_and_a_member_twice_is_refused(land: signing.Ground) -> None:
    asker = as_person(land.asker)
    refused = post(asker, "requests", grant_body(action=["write"]))
    assert "did you mean `actions`?" in refused.content.decode()
    twice = json.dumps(grant_body()).encode()[:-1] + b', "kind": "grant"}'
    assert "stands twice" in post(asker, "requests", twice).json()["problems"][0]["message"]


def test_the_same_instant_by_another_offset_is_the_same_request(land: signing.Ground) -> None:
    asker = as_person(land.asker)
    made = post(asker, "requests", grant_body(ends_at="2027-01-25T02:30:00+01:00"))
    assert made.json()["proposal"]["ends_at"] == "2027-01-25T01:30:00.000000Z"


def test_who_may_ask_is_told_by_the_roles_of_the_person(land: signing.Ground) -> None:
    assert post(as_person(land.owner), "requests", grant_body()).status_code == 409  # nobody else could sign as owner
    for account in (land.security, signing.human("Ada Auditor", Role.AUDITOR), signing.human("Nora None")):
        assert post(as_person(account), "requests", grant_body()).status_code == 403
    approver = signing.human("Paul Approver", Role.POLICY_APPROVER)
    assert post(as_person(approver), "requests", grant_body()).json()["code"] == "not_a_requester"


def test_a_token_asks_for_its_person_within_its_scope(land: signing.Ground) -> None:
    register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="hr")
    made = post(as_token(land.asker, "request:hr-prod"), "requests", grant_body())
    assert made.status_code == 201, made.content
    assert made.json()["requester"]["person"] == str(land.asker.person_id)
    for body in (grant_body(systems=["it-prod"]), grant_body(systems=["hr-prod", "it-prod"]), grant_body(systems=[])):
        refused = post(as_token(land.asker, "request:hr-prod"), "requests", body)
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
    activation = {"kind": "activation", "policy": "two-keys", "version": 1, "reason": "again"}
    assert post(as_token(land.asker, "request:hr-prod"), "requests", activation).status_code == 403
    assert post(as_token(land.asker, "read"), "requests", grant_body()).status_code == 403
    assert post(as_token(land.security, "request"), "requests", grant_body()).json()["code"] == "not_a_requester"


def test_a_narrowed_token_sees_only_what_is_about_its_system(land: signing.Ground) -> None:
    elsewhere = register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="hr")
    here, both = signing.ask(land), signing.ask(land, systems=[land.system, elsewhere])
    seen = as_token(land.security, "read:hr-prod")
    assert [row["uid"] for row in seen.get("requests").json()["results"]] == [str(here.uid)]
    assert seen.get(f"requests/{both.uid}").status_code == 404
    assert seen.get("requests", {"system": "it-prod"}).json()["results"] == []
    assert len(as_token(land.security, "read").get("requests", {"kind": "grant"}).json()["results"]) == 2


def test_what_one_may_not_see_is_not_there_wherever_one_looks(land: signing.Ground) -> None:
    request = signing.ask(land)
    stranger = as_person(signing.human("Otto Other", Role.REQUESTER, Role.SYSTEM_OWNER, team="elsewhere"))
    for path in ("", "/dossier", "/dossiers", "/sign-offs", "/comments"):
        assert stranger.get(f"requests/{request.uid}{path}").status_code == 404, path
        assert as_person(land.owner).get(f"requests/{request.uid}{path}").status_code == 200, path
    for path, body in (("sign-offs", {}), ("comments", {"text": "x"}), ("withdraw", {"reason": "x"}), ("complete", None)):
        assert post(stranger, f"requests/{request.uid}/{path}", body, If_Match='"x"').status_code == 404, path
    for query in ({}, {"system": "hr-prod"}, {"subject": "model-a"}, {"kind": "grant"}, {"status": "open"}, {"mine": "false"}):
        assert stranger.get("requests", query).json()["results"] == [], query
    assert post(stranger, "requests", {"kind": "reinstatement", "grant": str(request.uid), "reason": "x"}).status_code == 400


def test_the_lists_are_filtered_by_what_waits_and_what_is_mine(land: signing.Ground) -> None:
    request = signing.ask(land)
    owner, asker = as_person(land.owner), as_person(land.asker)

    def found(api: Api, **query: str) -> list[str]:
        return [row["uid"] for row in api.get("requests", query).json()["results"]]

    assert found(owner, waiting_for_me="true") == found(asker, mine="true") == [str(request.uid)]
    assert found(asker, waiting_for_me="true") == found(owner, mine="true") == []
    signing.sign(land.owner, request)
    assert found(owner, waiting_for_me="true") == []
    assert found(owner, waiting_for_me="false", status="open") == [str(request.uid)]


def test_an_open_request_past_its_end_is_shown_as_expired(land: signing.Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    request = signing.ask(land)
    asker = as_person(land.asker)
    before = asker.get(f"requests/{request.uid}").headers["ETag"]
    late = request.expires_at
    monkeypatch.setattr("compliance.api.v1.requests.now", lambda: late)
    answer = asker.get(f"requests/{request.uid}")
    assert (answer.json()["status"], answer.json()["quorum"]["may_sign"]) == ("expired", [])
    assert answer.headers["ETag"] != before
    assert [row["status"] for row in asker.get("requests", {"status": "expired"}).json()["results"]] == ["expired"]
    assert asker.get("requests", {"status": "open"}).json()["results"] == []
    assert as_person(land.owner).get("requests", {"waiting_for_me": "true"}).json()["results"] == []


def test_the_dossier_is_served_as_the_bytes_that_are_signed(land: signing.Ground) -> None:
    request = signing.ask(land)
    answer = as_person(land.owner).get(f"requests/{request.uid}/dossier")
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["ETag"] == f'"{digest_of(answer.content)}"' == f'"{request.dossier.digest}"'
    (listed,) = as_person(land.owner).get(f"requests/{request.uid}/dossiers").json()["results"]
    assert (listed["number"], listed["digest"]) == (1, request.dossier.digest)


def test_comments_are_kept_once_under_a_key(land: signing.Ground) -> None:
    request = signing.ask(land)
    owner = as_person(land.owner)
    for _ in range(2):
        said = post(
            owner, f"requests/{request.uid}/comments", {"text": "why so long?", "change_requested": True}, Idempotency_Key="c"
        )
        assert said.status_code == 201, said.content
    (comment,) = owner.get(f"requests/{request.uid}/comments").json()["results"]
    assert (comment["kind"], comment["author"]["name"]) == ("change_requested", "Olga Owner")
    assert post(owner, f"requests/{request.uid}/comments", {}).status_code == 400


def test_a_request_is_withdrawn_by_whoever_asked_and_saw_it(land: signing.Ground) -> None:
    request = signing.ask(land)
    asker, path = as_person(land.asker), f"requests/{request.uid}/withdraw"
    tag = asker.get(f"requests/{request.uid}").headers["ETag"]
    assert post(asker, path, {"reason": "no need"}).status_code == 428
    assert post(asker, path, {"reason": "no need"}, If_Match="*").status_code == 428
    assert post(as_person(land.owner), path, {"reason": "no"}, If_Match=tag).json()["code"] == "signer_not_eligible"
    signing.sign(land.owner, request)
    assert post(asker, path, {"reason": "no need"}, If_Match=tag).status_code == 412
    tag = asker.get(f"requests/{request.uid}").headers["ETag"]
    for _ in range(2):
        done = post(asker, path, {"reason": "no need"}, If_Match=tag, Idempotency_Key="w")
        assert (done.status_code, done.json()["status"]) == (200, "withdrawn"), done.content
    assert post(asker, path, {"reason": "no need"}, If_Match=done.headers["ETag"]).json()["code"] == "request_closed"
    assert LedgerEntry.objects.filter(action="request.withdrawn").count() == 1


def test_other_kinds_are_asked_for_too(land: signing.Ground) -> None:
    approvers = [signing.human(f"Approver {letter}", Role.POLICY_APPROVER) for letter in "abcd"]
    stewards = [signing.human(f"Steward {letter}", Role.EVIDENCE_STEWARD) for letter in "abc"]
    world.propose_text(signing.fit_text(bar=85))
    asked = post(
        as_person(approvers[0]), "requests", {"kind": "activation", "policy": "two-keys", "version": 2, "reason": "stricter"}
    )
    assert (asked.status_code, asked.json()["policy_version"]) == (201, 2), asked.content
    body = {"kind": "ruling", "evidence": str(Evidence.objects.get().uid), "ruling": "retracted", "reason": "wrong run"}
    asked = post(as_person(stewards[0]), "requests", body)
    assert asked.status_code == 201, asked.content
    assert asked.json()["proposal"] == {"kind": "retracted", "link": ""}
    disputed = post(as_person(stewards[0]), "requests", {**body, "ruling": "disputed"})
    assert disputed.status_code == 400
    grant = signing.granted(land)
    renewal = {
        "kind": "renewal",
        "grant": str(grant.uid),
        "ends_at": (now() + timedelta(days=80)).isoformat(),
        "reason": "goes on",
    }
    asked = post(as_person(land.asker), "requests", renewal)
    assert (asked.status_code, asked.json()["grant"]) == (201, str(grant.uid)), asked.content
    back = post(as_person(land.asker), "requests", {"kind": "reinstatement", "grant": str(grant.uid), "reason": "x"})
    assert back.json()["code"] == "grant_not_live"
