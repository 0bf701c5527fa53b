"""Metrics and benchmarks of one's own over HTTP: proposed, read, signed, and listed once they count."""

from typing import Any

import pytest

from compliance.models import SignOffRequest, User
from compliance.vocabulary import Role, Scope
from tests.compliance.api.callers import as_person, as_token, post
from tests.support import signing, world
from tests.support.definitions import BENCHMARK, METRIC, stewards

pytestmark = pytest.mark.django_db
OWN_METRIC = {"kind": "metric", **METRIC, "reason": "our own risk"}
OWN_BENCHMARK = {"kind": "benchmark", **BENCHMARK, "tasks": 120, "reason": "our own test"}


@pytest.fixture
def people() -> list[User]:
    world.register("model-a")
    return stewards()


def problems(answer: Any) -> dict[str, str]:
    return {item["field"]: item["message"] for item in answer.json()["problems"]}


def test_a_metric_is_proposed_signed_and_listed(people: list[User]) -> None:
    proposer, signer = (as_person(account) for account in people[:2])
    asked = post(proposer, "requests", OWN_METRIC, Idempotency_Key="k")
    assert asked.status_code == 201, asked.content
    shown = asked.json()
    assert (shown["kind"], shown["status"], shown["systems"]) == ("metric", "open", [])
    assert (shown["proposal"]["key"], shown["proposal"]["maximum"]) == (METRIC["key"], "100")
    assert [item["open"] for item in shown["quorum"]["factors"]] == [1]
    assert {item["person"]["name"] for item in shown["quorum"]["may_sign"]} == {"Stella Two", "Stella Three"}
    assert post(proposer, "requests", OWN_METRIC, Idempotency_Key="k").json()["uid"] == shown["uid"]
    assert proposer.get(f"metrics/{METRIC['key']}").status_code == 404
    read = signer.get(f"requests/{shown['uid']}")
    dossier = signer.get(f"requests/{shown['uid']}/dossier").json()
    assert dossier["metric"]["definition"] == METRIC["definition"]
    word = {"meaning": "approved", "reason": "clear and of use", "digest": shown["dossier"]["digest"]}
    path = f"requests/{shown['uid']}/sign-offs"
    own = post(proposer, path, word, If_Match=asked.headers["ETag"])
    assert (own.status_code, own.json()["code"]) == (409, "self_sign_off_refused")
    signed = post(signer, path, word, If_Match=read.headers["ETag"])
    assert (signed.status_code, signed.json()["status"]) == (201, "completed"), signed.content
    known = proposer.get(f"metrics/{METRIC['key']}").json()
    assert (known["sign_off_request"], known["digest"]) == (shown["uid"], dossier["question"]["digest"])
    assert proposer.get("metrics/over_refusal_rate").json()["sign_off_request"] is None


def test_a_benchmark_is_proposed_signed_and_listed(people: list[User]) -> None:
    asked = post(as_person(people[0]), "requests", OWN_BENCHMARK)
    assert asked.status_code == 201, asked.content
    request = SignOffRequest.objects.get(uid=asked.json()["uid"])
    assert as_person(people[0]).get("benchmarks/payroll-gym").status_code == 404
    signing.sign(people[1], request)
    (version,) = as_person(people[0]).get("benchmarks/payroll-gym").json()["versions"]
    assert (version["version"], version["tasks"], version["exposure"]) == ("2026-11", 120, "private")
    assert (version["metrics"], version["sign_off_request"]) == (["infeasible_refusal_rate"], str(request.uid))
    own, other = world.observation("91", benchmark="payroll-gym", version="2026-11"), world.observation("90")
    world.submit(world.submission("model-a", own, other))
    (evidence,) = as_person(people[0]).get("evidence").json()["results"]
    shown = as_person(people[0]).get(f"evidence/{evidence['uid']}").json()["observations"]
    assert {item["benchmark"]: item["exposure"] for item in shown} == {"payroll-gym": "private", "bench": "unknown"}


def test_a_token_proposes_for_its_person_and_never_signs(people: list[User]) -> None:
    asked = post(as_token(people[0], Scope.REQUEST), "requests", OWN_METRIC)
    assert (asked.status_code, asked.json()["requester"]["name"]) == (201, "Stella One"), asked.content
    machine = as_token(people[1], Scope.REQUEST, Scope.READ)
    word = {"meaning": "approved", "reason": "x", "digest": asked.json()["dossier"]["digest"]}
    refused = post(machine, f"requests/{asked.json()['uid']}/sign-offs", word, If_Match=asked.headers["ETag"])
    assert (refused.status_code, refused.json()["code"]) == (403, "token_cannot_sign")
    narrow = post(as_token(people[0], f"{Scope.REQUEST}:hr-prod"), "requests", OWN_METRIC)
    assert narrow.status_code == 403


def test_every_problem_is_named_with_its_field(people: list[User]) -> None:
    api = as_person(people[0])
    told = post(api, "requests", {**OWN_METRIC, "key": "p\N{CYRILLIC SMALL LETTER A}y", "unit": "fraction", "level": ""})
    assert told.status_code in (400, 422)
    assert {"key", "unit", "level"} <= problems(told).keys()
    assert "U+0430 CYRILLIC SMALL LETTER A" in problems(told)["key"]
    told = post(api, "requests", {**OWN_BENCHMARK, "metrics": ["nobody_knows"], "tasks": 0})
    assert {"metrics", "tasks"} <= problems(told).keys()
    assert problems(post(api, "requests", {**OWN_METRIC, "polarity": "up"})).keys() == {"polarity"}
    assert problems(post(api, "requests", {**OWN_METRIC, "reason": ""})).keys() == {"reason"}
    assert not SignOffRequest.objects.exists()


def test_what_a_key_measures_is_not_changed_and_others_propose_nothing(people: list[User]) -> None:
    turned = {**OWN_METRIC, "key": "over_refusal_rate", "better": "higher"}
    refused = post(as_person(people[0]), "requests", turned)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_cleared")
    assert "better" in refused.json()["detail"]
    other = as_person(signing.human("Otto Other", Role.POLICY_AUTHOR))
    assert post(other, "requests", OWN_METRIC).json()["code"] == "not_a_requester"
