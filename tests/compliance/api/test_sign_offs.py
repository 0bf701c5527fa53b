"""Signing over the API: by people in their own session, on what they were shown, and never by a token."""

from datetime import timedelta
from typing import Any

from django.test import Client

from compliance.models import LedgerEntry, RoleMembership, SignOff, SignOffRequest
from compliance.vocabulary import Role
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from tests.compliance.api.callers import as_person, as_token, post
from tests.compliance.api.world import Api
from tests.support import signing, world


def sign(api: Api, request: SignOffRequest, meaning: str = "approved", **headers: str) -> Any:
    """Sign what the request's address shows now."""
    shown = api.get(f"requests/{request.uid}")
    body = {"meaning": meaning, "reason": "looked at it", "digest": shown.json()["dossier"]["digest"]}
    return post(api, f"requests/{request.uid}/sign-offs", body, **{"If_Match": shown.headers["ETag"], **headers})


def refusals() -> list[str]:
    return [entry.action for entry in LedgerEntry.objects.filter(action="sign_off.refused")]


def test_two_people_sign_and_the_last_one_makes_the_grant(land: signing.Ground) -> None:
    request = signing.ask(land)
    owner, security = as_person(land.owner), as_person(land.security)
    first = sign(owner, request)
    assert first.status_code == 201, first.content
    assert first.headers["Location"].endswith(f"/requests/{request.uid}/sign-offs")
    quorum = first.json()["quorum"]
    assert [(item["open"], len(item["seats"])) for item in quorum["factors"]] == [(0, 1), (1, 0)]
    assert {item["person"]["name"]: item["reasons"] for item in quorum["may_not_sign"]} == {"Olga Owner": ["already_signed"]}
    last = sign(security, request)
    shown = last.json()
    assert (shown["status"], shown["quorum"]["met"]) == ("completed", True)
    assert [seat["person"]["name"] for item in shown["quorum"]["factors"] for seat in item["seats"]] == [
        "Olga Owner",
        "Sven Security",
    ]
    assert [(word["meaning"], word["roles"], word["method"], word["void"]) for word in shown["sign_offs"]] == [
        ("approved", ["system_owner"], "totp", False),
        ("approved", ["security"], "totp", False),
    ]
    assert owner.get(f"grants/{shown['made_grant']}").json()["status"] == "active"
    listed = owner.get(f"requests/{request.uid}/sign-offs").json()["results"]
    assert [row["uid"] for row in listed] == [word["uid"] for word in shown["sign_offs"]]


def test_no_token_signs_and_the_attempt_is_on_record(land: signing.Ground) -> None:
    request = signing.ask(land)
    for scopes in (("read",), ("request",), ("read", "request"), ("read:hr-prod",)):
        refused = post(as_token(land.owner, *scopes), f"requests/{request.uid}/sign-offs", {"meaning": "approved"})
        assert (refused.status_code, refused.json()["code"]) == (403, "token_cannot_sign")
    assert refusals() == ["sign_off.refused"] * 4
    assert not SignOff.objects.filter(request=request).exists()


def test_nobody_signs_her_own_request(land: signing.Ground) -> None:
    asker = signing.human("Super User", *Role, team="hr")
    request = signing.ask(land, account=asker)
    refused = sign(as_person(asker), request)
    assert (refused.status_code, refused.json()["code"]) == (409, "self_sign_off_refused")
    assert refusals() == ["sign_off.refused"]


def test_whoever_signs_shows_again_that_it_is_she_in_this_session(land: signing.Ground) -> None:
    request = signing.ask(land)
    client = Client()
    client.force_login(land.owner)
    as_person(land.owner)  # in another session of hers
    refused = sign(Api(client), request)
    assert (refused.status_code, refused.json()["code"]) == (403, "reauthentication_needed")


def test_a_signature_holds_for_what_was_seen(land: signing.Ground) -> None:
    request = signing.ask(land)
    owner, path = as_person(land.owner), f"requests/{request.uid}/sign-offs"
    tag = owner.get(f"requests/{request.uid}").headers["ETag"]
    body = {"meaning": "approved", "reason": "looked at it", "digest": request.dossier.digest}
    assert post(owner, path, body).status_code == 428
    assert post(owner, path, {**body, "digest": "sha256:" + "0" * 64}, If_Match=tag).json()["code"] == "dossier_changed"
    assert post(owner, path, {**body, "meaning": "yes"}, If_Match=tag).status_code == 400
    assert post(owner, path, {"meaning": "approved", "why": "x"}, If_Match=tag).status_code == 400
    for _ in range(2):
        assert post(owner, path, body, If_Match=tag, Idempotency_Key="s").status_code == 201
    assert post(owner, path, body, If_Match=tag).status_code == 412
    assert SignOff.objects.filter(request=request).count() == 1


def test_signatures_on_an_earlier_dossier_are_shown_as_void(land: signing.Ground) -> None:
    request = signing.ask(land)
    owner, security = as_person(land.owner), as_person(land.security)
    sign(owner, request)
    run = {"status": "complete", "ended_at": "2026-11-20T00:00:00Z"}
    world.submit(world.submission("model-a", world.observation("93"), run=run))
    world.judge_all()
    stale = owner.get(f"requests/{request.uid}").json()
    assert (stale["quorum"]["is_current"], stale["sign_offs"][0]["void"]) == (False, True)
    assert sign(security, request).json()["code"] == "dossier_changed"
    fresh = owner.get(f"requests/{request.uid}").json()
    assert (fresh["dossier"]["number"], fresh["quorum"]["is_current"]) == (2, True)
    assert [(word["dossier"], word["void"], word["lapsed"]) for word in fresh["sign_offs"]] == [(1, True, [])]
    assert [row["void"] for row in owner.get(f"requests/{request.uid}/sign-offs").json()["results"]] == [True]
    assert request.uid.hex in [row["uid"].replace("-", "") for row in owner.get("requests?waiting_for_me=true").json()["results"]]


def test_a_lapsed_signature_is_shown_and_completing_says_whose(land: signing.Ground) -> None:
    request = signing.ask(land)
    owner = as_person(land.owner)
    sign(owner, request)
    with service_transaction("tests"):
        RoleMembership.objects.filter(person=land.owner.person).update(ends_at=now() - timedelta(seconds=1))
    security = as_person(land.security)
    shown = security.get(f"requests/{request.uid}")
    assert shown.json()["sign_offs"][0]["lapsed"] == ["no_role"]
    assert sign(security, request).json()["status"] == "open"
    tag = security.get(f"requests/{request.uid}").headers["ETag"]
    refused = post(security, f"requests/{request.uid}/complete", None, If_Match=tag)
    assert (refused.status_code, refused.json()["code"]) == (409, "quorum_not_met")
    with service_transaction("tests"):
        RoleMembership.objects.filter(person=land.owner.person).update(ends_at=None)
    done = post(security, f"requests/{request.uid}/complete", None, If_Match=tag)
    assert (done.status_code, done.json()["status"]) == (200, "completed"), done.content


def test_one_rejection_ends_it(land: signing.Ground) -> None:
    request = signing.ask(land)
    done = sign(as_person(land.security), request, "rejected")
    assert (done.status_code, done.json()["status"]) == (201, "rejected")
    assert sign(as_person(land.owner), request).json()["code"] == "request_closed"
