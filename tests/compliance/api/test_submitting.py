"""POST /api/v1/evidence: what is taken, what is refused, and what a retry gets."""

import json
import uuid
from typing import Any

import pytest

from compliance.models import IdempotencyKey, LedgerEntry
from compliance.services import submissions
from evaluations.kernel.canonical import digest_of
from evaluations.models import Document, Evidence, Observation
from tests.compliance.api.world import Api, World, evidence_body


def state() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Document, Evidence, Observation, IdempotencyKey))


def test_a_body_is_kept_as_sent_and_its_evidence_recorded(world: World, api: Api) -> None:
    sent = json.dumps(evidence_body("82.50", "7"), indent=3).encode()
    answer = api.send(sent)
    assert answer.status_code == 201
    made = answer.json()
    assert (made["recorded"], made["repeated"], made["observations"]) == (1, 0, 2)
    assert made["document"] == digest_of(sent)
    assert api.client.get(answer.headers["Location"], headers=api.headers).json()["uid"] == made["evidence"][0]
    content = api.get(f"documents/{made['document']}/content")
    assert b"".join(content.streaming_content) == sent


def test_the_same_body_again_records_nothing_and_leads_to_the_same_evidence(world: World, api: Api) -> None:
    first, before = api.send(evidence_body("1")), state()
    again = api.send(evidence_body("1"))
    assert (again.status_code, again.json()["recorded"], again.json()["repeated"]) == (200, 0, 1)
    assert again.json()["evidence"] == first.json()["evidence"]
    assert again.headers["Location"] == first.headers["Location"]
    assert state() == before


def test_a_body_with_several_evidence_lists_their_ids_in_its_order(world: World, api: Api) -> None:
    body = evidence_body("1")
    body["evidence"].append({**body["evidence"][0], "subject": "Model Two"})
    answer = api.send(body)
    assert answer.status_code == 201
    assert "Location" not in answer.headers
    subjects = [Evidence.objects.get(uid=uid).subject_as_written for uid in answer.json()["evidence"]]
    assert subjects == ["Model One", "Model Two"]


def refused(api: Api, body: Any, field: str) -> dict[str, Any]:
    """Send a body that must be refused; return the problem that names the field."""
    before = state()
    answer = api.send(body)
    assert answer.status_code == 400, answer.content
    named = [problem for problem in answer.json()["problems"] if problem["field"].endswith(field)]
    assert named, answer.json()
    assert state() == before
    return dict(named[0])


@pytest.mark.parametrize("value", ["8e1", "80%", " 80", "80,0", "", "NaN", "Infinity", "+80", True, [80], {"v": 80}, None])
def test_o_03_what_is_no_plain_number_is_refused_by_field(api: Api, value: Any) -> None:
    problem = refused(api, evidence_body(value), "value")
    assert problem["field"] == "evidence[0].observations[0].value"
    assert problem["hint"]


@pytest.mark.parametrize(("value", "kept"), [(80, "80"), ("80", "80"), ("80.00", "80"), ("9", "9")])
def test_o_03_numbers_and_plain_texts_of_numbers_are_one_type(api: Api, value: Any, kept: str) -> None:
    made = api.send(evidence_body(value)).json()
    assert api.get(f"evidence/{made['evidence'][0]}").json()["observations"][0]["value"] == kept


def raw(number: str) -> bytes:
    """Return a body in which the value stands as given, whatever JSON libraries think of it."""
    return json.dumps(evidence_body("@@")).replace('"@@"', number).encode()


@pytest.mark.parametrize(("number", "kept"), [("79.999", "79.999"), ("79.9995", "79.9995"), ("80.0", "80"), ("80.00", "80")])
def test_o_05_the_exact_value_is_kept_and_shown(api: Api, number: str, kept: str) -> None:
    made = api.send(raw(number)).json()
    assert api.get(f"evidence/{made['evidence'][0]}").json()["observations"][0]["value"] == kept


@pytest.mark.parametrize("number", ["79.99999999", "80.0000001", "1234567890123"])
def test_o_05_more_digits_than_are_kept_are_refused_and_not_rounded(api: Api, number: str) -> None:
    refused(api, raw(number), "value")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1", "101"])
def test_o_06_what_is_not_finite_or_out_of_range_is_refused_by_field(api: Api, number: str) -> None:
    refused(api, raw(number), "value")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b"\xef\xbb\xbf{}",
        b"\xff\xfe{}",
        b'{"format": "\xe9"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"format": "writegate-evidence/1", "format": "writegate-evidence/1", "evidence": []}',
        json.dumps(evidence_body("1", subject="nul\x00name")).encode(),
        json.dumps(evidence_body("1", subject="\ud800")).encode(),
        json.dumps(evidence_body("1", format="writegate-evidence/2")).encode(),
        json.dumps(evidence_body("1", source="nobody")).encode(),
        json.dumps(evidence_body("1", provenance="hearsay")).encode(),
        json.dumps(evidence_body("1", evidence=[])).encode(),
        json.dumps(evidence_body("1", surprise=1)).encode(),
    ],
    ids=lambda body: repr(body[:30]),
)
def test_a_body_that_is_not_ours_is_400_and_leaves_nothing(api: Api, body: bytes) -> None:
    before = state()
    answer = api.send(body)
    assert answer.status_code == 400, answer.content
    assert answer.json()["problems"]
    assert state() == before


def test_a_date_in_the_future_is_refused(api: Api) -> None:
    body = evidence_body("1")
    body["evidence"][0]["run"]["ended_at"] = "2999-01-01T00:00:00Z"
    before = state()
    answer = api.send(body)
    assert (answer.status_code, answer.json()["problems"][0]["code"]) == (400, "future_date")
    assert state() == before


def test_a_refused_body_is_recorded_as_a_refusal(world: World, api: Api) -> None:
    api.send(evidence_body(True))
    entry = LedgerEntry.objects.get(action="evidence.refused")
    assert entry.actor == f"service:{world.token.pk}"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonl", ""]
)
def test_other_media_types_are_415(api: Api, kind: str) -> None:
    answer = api.send(json.dumps(evidence_body("1")).encode(), content_type=kind)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_a_charset_does_not_change_the_media_type(api: Api) -> None:
    assert api.send(evidence_body("1"), content_type="Application/JSON; charset=utf-8").status_code == 201


def test_a_body_over_the_limit_is_413_and_one_at_the_limit_is_read(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(evidence_body("1")).encode()
    at_limit = body + b" " * (submissions.MAX_BYTES - len(body))
    answer = api.send(at_limit + b" ")
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert api.send(at_limit).status_code == 201


def test_a_body_without_length_is_411_and_an_empty_one_is_400(api: Api) -> None:
    assert (
        api.client.generic("POST", "/api/v1/evidence", b"", content_type="application/json", headers=api.headers).status_code
        == 411
    )
    empty = api.client.generic(
        "POST", "/api/v1/evidence", b"", content_type="application/json", headers={**api.headers, "Content-Length": "0"}
    )
    assert (empty.status_code, empty.json()["problems"][0]["code"]) == (400, "empty")


def test_post_takes_no_query_parameters(api: Api) -> None:
    answer = api.client.post(
        "/api/v1/evidence?dry_run=true", json.dumps(evidence_body("1")), content_type="application/json", headers=api.headers
    )
    assert (answer.status_code, answer.json()["problems"][0]["field"]) == (400, "dry_run")


def test_a_retry_with_the_same_key_gets_the_first_answer_even_after_others_came(world: World, api: Api) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = api.send(evidence_body("1"), **key)
    api.send(evidence_body("2"))
    before = state()
    again = api.send(evidence_body("1"), **key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["Location"] == first.headers["Location"]
    assert state() == before


def test_the_first_answer_may_have_been_that_nothing_was_new(world: World, api: Api) -> None:
    api.send(evidence_body("1"))
    first = api.send(evidence_body("1"), **{"Idempotency-Key": "k"})
    again = api.send(evidence_body("1"), **{"Idempotency-Key": "k"})
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()


def test_another_body_under_a_used_key_is_409_and_records_nothing(world: World, api: Api) -> None:
    api.send(evidence_body("1"), **{"Idempotency-Key": "k"})
    before = state()
    answer = api.send(evidence_body("2"), **{"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_reused")
    assert state() == before


def test_a_refused_body_leaves_its_key_free(world: World, api: Api) -> None:
    assert api.send(evidence_body(True), **{"Idempotency-Key": "k"}).status_code == 400
    assert api.send(evidence_body("1"), **{"Idempotency-Key": "k"}).status_code == 201


def test_keys_of_two_callers_have_nothing_to_do_with_each_other(world: World, api: Api) -> None:
    assert api.send(evidence_body("1"), **{"Idempotency-Key": "k"}).status_code == 201
    other = world.api_with("submit_evidence")
    assert other.send(evidence_body("2"), **{"Idempotency-Key": "k"}).status_code == 201


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 201, "a\tb"])
def test_a_key_that_is_none_is_400(api: Api, key: str) -> None:
    answer = api.send(evidence_body("1"), **{"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["problems"][0]["field"]) == (400, "Idempotency-Key")
