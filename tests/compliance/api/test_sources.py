"""Sources of one's own over HTTP: proposed with their trust, read, signed, and listed once they count."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from compliance.models import SignOffRequest, User
from compliance.vocabulary import Role, Scope
from tests.compliance.api.callers import as_person, as_token, post
from tests.support import signing, world
from tests.support.definitions import SOURCE, stewards

pytestmark = pytest.mark.django_db
OWN = {"kind": "source", **SOURCE, "reason": "our own lab"}


@pytest.fixture
def people() -> list[User]:
    world.register("model-a")
    return stewards()


def problems(answer: Any) -> dict[str, str]:
    return {item["field"]: item["message"] for item in answer.json()["problems"]}


def test_a_source_is_proposed_signed_and_listed_and_its_evidence_is_taken(people: list[User]) -> None:
    proposer, signer = (as_person(account) for account in people[:2])
    asked = post(proposer, "requests", OWN, Idempotency_Key="k")
    assert asked.status_code == 201, asked.content
    shown = asked.json()
    assert (shown["kind"], shown["status"], shown["systems"], shown["proposal"]) == ("source", "open", [], SOURCE)
    assert {item["person"]["name"] for item in shown["quorum"]["may_sign"]} == {"Stella Two", "Stella Three"}
    assert post(proposer, "requests", OWN, Idempotency_Key="k").json()["uid"] == shown["uid"]
    assert proposer.get(f"sources/{SOURCE['key']}").status_code == 404
    assert proposer.get("requests", {"kind": "source"}).json()["results"][0]["uid"] == shown["uid"]
    read = signer.get(f"requests/{shown['uid']}")
    dossier = signer.get(f"requests/{shown['uid']}/dossier").json()
    assert dossier["question"] == {"source": SOURCE["key"], "tier": "secondary", "replaces": None}
    assert dossier["source"]["url"] == SOURCE["url"]
    word = {"meaning": "approved", "reason": "known to us", "digest": shown["dossier"]["digest"]}
    path = f"requests/{shown['uid']}/sign-offs"
    own = post(proposer, path, word, If_Match=asked.headers["ETag"])
    assert (own.status_code, own.json()["code"]) == (409, "self_sign_off_refused")
    signed = post(signer, path, word, If_Match=read.headers["ETag"])
    assert (signed.status_code, signed.json()["status"]) == (201, "completed"), signed.content
    known = proposer.get(f"sources/{SOURCE['key']}").json()
    assert (known["title"], known["trust"]["tier"], known["trust"]["reason"]) == (SOURCE["title"], "secondary", "our own lab")
    assert known["trust"]["sign_off_request"] == shown["uid"]
    assert proposer.get("sources/lab").json()["trust"]["sign_off_request"] is None
    told = {**world.submission("model-a", world.observation("91")), "source": SOURCE["key"]}
    handed_in = post(as_token(people[0], Scope.SUBMIT_EVIDENCE), "evidence", told)
    assert handed_in.status_code == 201, handed_in.content


def test_a_token_proposes_for_its_person_and_a_narrow_one_does_not(people: list[User]) -> None:
    asked = post(as_token(people[0], Scope.REQUEST), "requests", OWN)
    assert (asked.status_code, asked.json()["requester"]["name"]) == (201, "Stella One"), asked.content
    assert post(as_token(people[0], f"{Scope.REQUEST}:hr-prod"), "requests", OWN).status_code == 403


def test_every_problem_is_named_with_its_field_and_nothing_is_filed(people: list[User]) -> None:
    api = as_person(people[0])
    told = post(api, "requests", {**OWN, "key": "\N{CYRILLIC SMALL LETTER A}cme", "tier": "gold", "url": "ftp://x"})
    assert problems(told).keys() == {"key", "tier", "url"}
    assert problems(post(api, "requests", {**OWN, "notes": "x"})).keys() == {"notes"}
    assert problems(post(api, "requests", {**OWN, "reason": "r" * 501})).keys() == {"reason"}
    assert not SignOffRequest.objects.exists()


def test_a_known_source_keeps_its_title_and_others_propose_nothing(people: list[User]) -> None:
    refused = post(
        as_person(people[0]), "requests", {"kind": "source", "key": "lab", "title": "X", "tier": "archive", "reason": "r"}
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "not_cleared")
    assert "another title" in refused.json()["detail"]
    other = as_person(signing.human("Otto Other", Role.POLICY_AUTHOR))
    assert post(other, "requests", OWN).json()["code"] == "not_a_requester"


def test_the_example_of_the_readme_is_taken(people: list[User]) -> None:
    readme = Path("README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"api/v1/requests -d '\s*(\{\"kind\": \"source\".*?\})'", readme, re.DOTALL)
    asked = post(as_token(people[0], Scope.REQUEST), "requests", json.loads(example))
    assert asked.status_code == 201, asked.content
    signing.sign(people[1], SignOffRequest.objects.get(uid=asked.json()["uid"]))
    told = {**world.submission("model-a", world.observation("91")), "source": json.loads(example)["key"]}
    assert post(as_token(people[0], Scope.SUBMIT_EVIDENCE), "evidence", told).status_code == 201
