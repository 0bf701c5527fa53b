"""Waivers and disputes over the API."""

from datetime import timedelta

import pytest

from compliance.models import SignOffRequest, Waiver
from compliance.vocabulary import Meaning, Role
from evaluations.kernel.clock import now
from evaluations.models import Evidence, Ruling
from tests.compliance.api.callers import as_person, as_token, post
from tests.support import signing

SOFT = {"policy": "two-keys", "rule": "refuses", "system": "hr-prod", "reason": "the pilot is watched"}


@pytest.fixture
def waived(db: None) -> tuple[signing.Ground, Waiver]:
    """A grant that rests on a waiver, asked for over the API and signed as such."""
    land = signing.ground("79", bar=80, enforcement="soft")
    body = {
        "kind": "grant",
        "subject": "model-a",
        "systems": ["hr-prod"],
        "actions": ["write"],
        "ends_at": (now() + timedelta(days=30)).isoformat(),
        "reason": "pilot",
        "waivers": [SOFT],
    }
    made = post(as_person(land.asker), "requests", body)
    assert made.status_code == 201, made.content
    request = SignOffRequest.objects.get(uid=made.json()["uid"])
    signing.sign(land.owner, request, Meaning.ACCEPTED_RESIDUAL_RISK)
    signing.sign(land.security, request, Meaning.ACCEPTED_RESIDUAL_RISK)
    return land, Waiver.objects.get()


def test_a_waiver_is_shown_and_taken_back_once_by_whoever_saw_it(waived: tuple[signing.Ground, Waiver]) -> None:
    land, waiver = waived
    owner, path = as_person(land.owner), f"waivers/{waiver.uid}"
    answer = owner.get(path)
    shown = answer.json()
    assert (shown["rule"], shown["measured"], shown["live"], shown["system"]) == ("refuses", "79", True, "hr-prod")
    assert owner.get("waivers", {"live": "true", "subject": "model-a"}).json()["results"] == [shown]
    assert owner.get("waivers", {"live": "false"}).json()["results"] == []
    stranger = as_person(signing.human("Otto Other", Role.SYSTEM_OWNER, team="elsewhere"))
    assert stranger.get(path).status_code == 404
    assert stranger.get("waivers").json()["results"] == []
    assert post(stranger, f"{path}/revoke", {"reason": "x"}, If_Match='"x"').status_code == 404
    assert post(owner, f"{path}/revoke", {"reason": "x"}).status_code == 428
    auditor = as_person(signing.human("Ada", Role.AUDITOR))
    assert post(auditor, f"{path}/revoke", {"reason": "x"}, If_Match=answer.headers["ETag"]).json()["code"] == "may_not_close"
    for _ in range(2):
        done = post(owner, f"{path}/revoke", {"reason": "x"}, If_Match=answer.headers["ETag"], Idempotency_Key="w")
        assert (done.status_code, done.json()["live"], done.json()["revocation"]["reason"]) == (200, False, "x"), done.content
    assert post(owner, f"{path}/revoke", {"reason": "x"}, If_Match=answer.headers["ETag"]).status_code == 412
    assert post(owner, f"{path}/revoke", {"reason": "x"}, If_Match=done.headers["ETag"]).json()["code"] == "waiver_revoked"


def test_everybody_who_reads_evidence_may_dispute_it_and_no_token_does(land: signing.Ground) -> None:
    evidence = Evidence.objects.get()
    path = f"evidence/{evidence.uid}/dispute"
    assert post(as_token(land.owner, "read", "request"), path, {"reason": "x"}).json()["code"] == "person_needed"
    anybody = as_person(signing.human("Nora None"))
    assert post(anybody, path, {}).json()["problems"][0]["field"] == "reason"
    for _ in range(2):
        made = post(anybody, path, {"reason": "the run was cut short", "link": "https://example.org/1"}, Idempotency_Key="d")
        assert (made.status_code, made.json()["kind"]) == (201, "disputed"), made.content
    assert Ruling.objects.filter(evidence=evidence).count() == 1
