"""A policy text on its way from a draft into force, over the API: saved, refused, proposed, and not signed by whoever wrote in it."""

from typing import Any

import pytest

from compliance.models import LedgerEntry, SignOffRequest
from compliance.selectors.proposals import plain_value
from compliance.services.sign_offs import SignerNotEligible
from compliance.vocabulary import Role
from evaluations.kernel.canonical import digest_of
from policies.models import PolicyDraft, PolicyVersion
from policies.selectors.policies import state_of, version_in_force
from tests.compliance.api.callers import as_person, as_token, post
from tests.compliance.api.world import V1, Api
from tests.support import signing, world

DRAFTS = "policies/two-keys/drafts"
WRONG = signing.fit_text(
    **{"benchmark: bench": "benchmark: bank", "at_most: 5": "at_most: 500", "role: security": "role: securty"}
)


def save(api: Api, text: bytes, replaces: str = "", path: str = DRAFTS, **headers: str) -> Any:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    address = f"{V1}/{path}" + (f"?replaces={replaces}" if replaces else "")
    return api.client.post(address, text, content_type="application/yaml", headers={**api.headers, **given})


@pytest.fixture
def author(land: signing.Ground) -> signing.User:
    return signing.human("Alice Author", Role.POLICY_AUTHOR)


def test_a_draft_is_kept_as_it_is_and_says_all_that_is_wrong_with_it(author: signing.User) -> None:
    alice = as_person(author)
    made = save(alice, WRONG, Idempotency_Key="d1")
    assert made.status_code == 201, made.content
    shown = made.json()
    assert (shown["text"].encode(), shown["digest"], shown["version"]) == (WRONG, digest_of(WRONG), None)
    assert {item["code"] for item in shown["problems"]} >= {"unknown_benchmark", "unknown_role", "bar_out_of_range"}
    assert all(item["line"] and item["column"] and item["hint"] for item in shown["problems"])
    assert save(alice, WRONG, Idempotency_Key="d1").json()["uid"] == shown["uid"]
    assert alice.get(f"{DRAFTS}/{shown['uid']}").json() == shown
    refused = post(alice, f"{DRAFTS}/{shown['uid']}/propose")
    assert (refused.status_code, refused.json()["code"]) == (400, "policy_refused")
    told = [(item["line"], item["column"], item["code"]) for item in refused.json()["problems"]]
    assert told == [(item["line"], item["column"], item["code"]) for item in shown["problems"]]
    assert PolicyVersion.objects.count() == 1
    assert PolicyDraft.objects.count() == LedgerEntry.objects.filter(action="policy_draft.saved").count() == 1


def test_nobody_overwrites_a_draft_that_she_has_not_seen(author: signing.User) -> None:
    alice, bob = as_person(author), as_person(signing.human("Bob Editor", Role.POLICY_APPROVER))
    first = save(alice, signing.fit_text(bar=85)).json()
    blind = save(bob, signing.fit_text(bar=75))
    assert (blind.status_code, blind.json()["code"]) == (409, "draft_changed")
    second = save(bob, signing.fit_text(bar=75), first["digest"])
    assert second.status_code == 201
    assert save(alice, signing.fit_text(bar=86), first["digest"]).json()["code"] == "draft_changed"
    assert post(alice, f"{DRAFTS}/{first['uid']}/propose").json()["code"] == "draft_changed"
    assert [row["uid"] for row in alice.get(DRAFTS).json()["results"]] == [second.json()["uid"], first["uid"]]


def test_who_edited_the_draft_does_not_sign_what_comes_of_it(land: signing.Ground, author: signing.User) -> None:
    """Case O-11: Alice drafts, Bob lowers the bar, Alice proposes it; Bob signs and is refused, Dave's signature counts."""
    bob = signing.human("Bob Editor", Role.POLICY_APPROVER)
    dave = signing.human("Dave Approver", Role.POLICY_APPROVER)
    for name in ("Dora", "Dirk"):
        signing.human(f"{name} Approver", Role.POLICY_APPROVER)
    alice = as_person(author)
    first = save(alice, signing.fit_text(bar=85)).json()
    second = save(as_person(bob), signing.fit_text(bar=75), first["digest"]).json()
    made = post(alice, f"{DRAFTS}/{second['uid']}/propose")
    assert (made.status_code, made.json()["number"], made.json()["state"]) == (201, 2, "proposed"), made.content
    assert made.json()["digest"] == second["digest"]
    assert post(alice, f"{DRAFTS}/{second['uid']}/propose").json()["number"] == 2
    assert alice.get(f"{DRAFTS}/{second['uid']}").json()["version"] == 2
    body = {"kind": "activation", "policy": "two-keys", "version": 2, "reason": "the bar was too high"}
    asked = post(alice, "requests", body)
    assert asked.status_code == 201, asked.content
    request = SignOffRequest.objects.get(uid=asked.json()["uid"])
    barred = {item["person"]["name"]: item["reasons"] for item in asked.json()["quorum"]["may_not_sign"]}
    assert barred["Bob Editor"][0] == "policy_author"
    with pytest.raises(SignerNotEligible, match="policy_author"):
        signing.sign(bob, request)
    assert signing.sign(dave, request).sign_off.person_id == dave.person_id


def test_copying_somebody_elses_draft_does_not_make_him_a_stranger_to_it(author: signing.User) -> None:
    bob = signing.human("Bob Editor", Role.POLICY_APPROVER)
    for name in ("Dave", "Dora", "Dirk"):
        signing.human(f"{name} Approver", Role.POLICY_APPROVER)
    text = signing.fit_text(bar=84)
    version = world.propose_text(text)
    save(as_person(bob), text, path="policies/two-keys/drafts")
    body = {"kind": "activation", "policy": "two-keys", "version": version.number, "reason": "stricter"}
    asked = post(as_person(author), "requests", body)
    barred = {item["person"]["name"]: item["reasons"] for item in asked.json()["quorum"]["may_not_sign"]}
    assert barred["Bob Editor"][0] == "policy_author"


def test_only_who_may_ask_for_an_activation_writes(land: signing.Ground, author: signing.User) -> None:
    for account in (land.asker, land.security, signing.human("Ada Auditor", Role.AUDITOR)):
        refused = save(as_person(account), WRONG)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_an_author")
    assert save(as_token(author, "request:hr-prod"), WRONG).json()["code"] == "scope_missing"
    assert save(as_token(author, "read"), WRONG).json()["code"] == "scope_missing"
    assert save(as_token(author, "request"), WRONG).status_code == 201
    assert as_token(author, "read:hr-prod").get(DRAFTS).status_code == 403
    assert PolicyDraft.objects.get().edited_by.startswith("service:")


@pytest.mark.parametrize(
    ("text", "path"), [(b"", DRAFTS), (b" \n", DRAFTS), (b"a" * 262_145, DRAFTS), (WRONG, "policies/No/drafts")]
)
def test_what_cannot_be_a_draft_is_refused(author: signing.User, text: bytes, path: str) -> None:
    assert save(as_person(author), text, path=path).status_code in (400, 404, 411)
    assert not PolicyDraft.objects.exists()


def test_a_draft_of_one_policy_does_not_become_another(author: signing.User) -> None:
    alice = as_person(author)
    made = save(alice, signing.fit_text("another"))
    (problem,) = made.json()["problems"]
    assert (problem["code"], problem["field"]) == ("other_policy", "metadata.name")
    assert post(alice, f"{DRAFTS}/{made.json()['uid']}/propose").json()["code"] == "policy_refused"


def test_an_older_version_comes_back_by_an_activation_of_its_own(land: signing.Ground, author: signing.User) -> None:
    """Rolling back is a new activation: its dossier says what goes back, and its signatures are new."""
    approvers = [signing.human(f"{name} Approver", Role.POLICY_APPROVER) for name in ("Dave", "Dora", "Dirk")]
    strict = signing.fit_draft(author, bar=85)
    world.activate(strict)
    world.activate(signing.fit_draft(author, bar=90))
    assert str(state_of(strict)) == "retired"
    body = {"kind": "activation", "policy": "two-keys", "version": strict.number, "reason": "too strict"}
    asked = post(as_person(author), "requests", body)
    assert asked.status_code == 201, asked.content
    request = SignOffRequest.objects.get(uid=asked.json()["uid"])
    (change, *_) = (
        item for item in plain_value(bytes(request.dossier.content))["changes"] if item["path"] == "spec.rules.refuses"
    )
    assert change["sentence"].endswith("90 % → 85 %, looser")
    for signer in (*approvers, land.owner):
        signing.sign(signer, request)
    assert signing.sign(land.security, request).completed
    assert version_in_force(strict.policy) == strict
