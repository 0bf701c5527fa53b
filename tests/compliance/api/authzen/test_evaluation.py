"""One question over HTTP on real grants: what an answer holds, and what is an error and no decision."""

import base64
import json
import uuid
from datetime import datetime
from typing import Any
from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.test import Client

from compliance.api.authzen import reading
from compliance.api.authzen.openapi_examples import ALLOW, BATCH, DENY, QUESTION, SEARCHES, found_page
from compliance.client.answers import Question, judge
from compliance.models import Decision, Grant, LedgerEntry, ServiceToken
from compliance.services.accounts import deactivate_account
from compliance.services.people import revoke_token
from compliance.services.stopping import revoke_grant
from evaluations.kernel.clock import now
from tests.compliance.api.authzen.doors import Doors, question
from tests.support import signing, world
from tests.support.asking import ask_token
from tests.support.grants import administrator


def test_an_allow_says_what_it_rests_on_and_until_when(doors: Doors, granted: signing.Ground) -> None:
    body = doors.send("evaluation", question()).json()
    assert body["decision"] is True
    context, grant = body["context"], Grant.objects.get()
    assert context["reasons"] == []
    assert "reason" not in context
    assert context["subject"] == {"key": "model-a", "version": 1, "digest": granted.version.digest}
    assert (context["system"], context["action"]) == ("hr-prod", "write")
    assert context["grants"] == [str(grant.uid)]
    assert [policy["policy"] for policy in context["policies"]] == ["two-keys"]
    assert len(context["evidence"]) == 1
    assert now() < datetime.fromisoformat(context["valid_until"]) <= grant.ends_at
    row = Decision.objects.get(uid=context["evaluation_id"])
    entry = LedgerEntry.objects.get(uid=context["entry"]["id"])
    assert (row.allowed, row.entry, row.observed) == (True, entry.uid, False)
    assert len(base64.b64decode(context["entry"]["leaf_hash"])) == 32


def test_our_own_client_takes_an_allow_for_one(doors: Doors, granted: signing.Ground) -> None:
    asked = Question("model-a", "hr-prod", fingerprint=granted.version.digest, type="model")
    answer = doors.send("evaluation", asked.as_value()).json()
    found = judge(answer, asked, at=now())
    assert (found.allowed, found.certain) == (True, True)


def test_a_denial_is_an_answer_with_its_reasons_in_order(doors: Doors, granted: signing.Ground) -> None:
    revoke_grant(actor=signing.actor_of(granted.security), grant=Grant.objects.get(), reason="enough")
    answer = doors.send("evaluation", question())
    assert answer.status_code == 200
    body = answer.json()
    assert body["decision"] is False
    assert body["context"]["reason"] == body["context"]["reasons"][0]["code"] == "grant_revoked"
    assert body["context"]["reasons"][0]["message"]
    assert "valid_until" not in body["context"]
    assert Decision.objects.get(uid=body["context"]["evaluation_id"]).codes == ["grant_revoked"]


def test_the_fingerprint_is_compared(doors: Doors, granted: signing.Ground) -> None:
    def ask(fingerprint: Any) -> Any:
        body = question()
        return doors.send("evaluation", {**body, "subject": {**body["subject"], "properties": {"fingerprint": fingerprint}}})

    assert ask(granted.version.digest).json()["decision"] is True
    assert ask("sha256:" + "0" * 64).json()["context"]["reason"] == "unknown_fingerprint"
    # Passed over, it would be answered as if it had been compared.
    for wrong in (7, "", None, ["sha256:"], "x" * 301):
        assert ask(wrong).status_code == 400, wrong


def test_who_only_looks_on_is_marked_and_answered_the_same(doors: Doors) -> None:
    allowed = doors.send("evaluation", {**question(), "context": {"observe": True}}).json()
    assert (allowed["decision"], allowed["context"]["observed"]) == (True, True)
    assert Decision.objects.get(uid=allowed["context"]["evaluation_id"]).observed
    for word in ("true", 1, None, False):
        answer = doors.send("evaluation", {**question("nobody"), "context": {"observe": word}}).json()
        assert answer["decision"] is False
        assert not Decision.objects.get(uid=answer["context"]["evaluation_id"]).observed, word


def test_a_token_for_another_system_learns_nothing_of_this_one(doors: Doors, granted: signing.Ground) -> None:
    narrow = Doors(ask_token(granted.asker, "decide:it-prod"))
    context = narrow.send("evaluation", question()).json()["context"]
    assert (context["reason"], context["policies"], context["grants"]) == ("out_of_scope", [], [])
    assert "subject" not in context


class TestTransport:
    def test_without_a_token_it_is_401_and_says_how(self, doors: Doors, granted: signing.Ground) -> None:
        secret, other = doors.token, ask_token(granted.asker)
        revoke_token(actor=world.ACTOR, token=ServiceToken.objects.latest("created_at"))
        for given in ("", "Bearer", "Basic abc", f"Bearer {secret}x", "Bearer wg_" + "a" * 300, "Bearer wg_é", f"Bearer {other}"):
            answer = doors.send("evaluation", question(), Authorization=given)
            assert answer.status_code == 401, given
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert answer.headers["Content-Type"].startswith("text/plain")
            said = answer.content.decode()
            assert ("unknown, expired or revoked" in said) is given.startswith("Bearer"), (given, said)
            assert ("send a token" in said) is not given.startswith("Bearer"), (given, said)

    def test_a_session_is_no_token(self, granted: signing.Ground) -> None:
        client = Client()
        client.force_login(granted.security)
        answer = client.post("/access/v1/evaluation", question(), content_type="application/json")
        assert answer.status_code == 401
        assert "sessionid" not in answer.cookies

    def test_without_the_scope_it_is_403(self, granted: signing.Ground) -> None:
        answer = Doors(ask_token(granted.asker, "read")).send("evaluation", question())
        assert (answer.status_code, answer.headers["Content-Type"]) == (403, "text/plain; charset=utf-8")

    @pytest.mark.parametrize("method", ["get", "put", "delete", "options", "head"])
    def test_another_method_is_405(self, doors: Doors, method: str) -> None:
        answer = getattr(doors.client, method)("/access/v1/evaluation")
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")

    def test_a_large_body_is_413_before_it_is_read(self, doors: Doors) -> None:
        body = json.dumps({**question(), "context": {"x": "y" * reading.MOST_BYTES}}).encode()
        assert doors.send("evaluation", body).status_code == 413

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            (b'{"subject": 1, "subject": 2}', "member twice"),
            (b'{"a": {"b": 1, "b": 1}}', "member twice"),
            (b'{"a": NaN}', "`NaN`"),
            (b'{"a": -Infinity}', "Infinity"),
            (b'{"a": 1e400}', "double"),
            (b'{"a": %s}' % (b"9" * 5_000), "double"),
            (b'{"a": "\xff"}', "UTF-8"),
            (b'{"a": "\\ud800"}', "surrogate"),
            (b'{"\\ud800": 1}', "surrogate"),
            (b'{"a":' * 17 + b"1" + b"}" * 17, "16 levels"),
            (b"[" * 100_000, "no JSON"),
            (b"\xef\xbb\xbf{}", "no JSON"),
        ],
        ids=lambda value: value[:24].decode("latin-1") if isinstance(value, bytes) else value,
    )
    def test_what_is_no_i_json_is_400(self, doors: Doors, body: bytes, said: str) -> None:
        answer = doors.send("evaluation", body)
        assert answer.status_code == 400
        assert said in answer.content.decode()

    def test_sixteen_levels_and_large_unknown_numbers_are_taken(self, doors: Doors) -> None:
        deep: Any = 1
        for _ in range(14):
            deep = [deep]
        assert doors.decide({**question(), "context": {"deep": deep, "large": 10**30, "many": 1e300}}) is True

    @pytest.mark.parametrize(
        "changed",
        [
            {"subject": {"type": "model", "id": "m" * 301}},
            {"subject": {"type": "m" * 301, "id": "m"}},
            {"subject": {"type": "model", "id": ""}},
            {"resource": {"type": "system", "id": "s" * 301}},
            {"action": {"name": "a" * 201}},
            {"subject": {"type": "model", "id": "m", "properties": []}},
            {"context": "now"},
        ],
    )
    def test_what_is_too_long_or_misshapen_is_400(self, doors: Doors, changed: dict[str, Any]) -> None:
        assert doors.send("evaluation", {**question(), **changed}).status_code == 400

    @pytest.mark.parametrize("name", ["m" * 300, "a\x00b", "modèl-a", "𝕞", "model-a ", "model-a@0", "model-a@999999999"])
    def test_odd_names_are_denied_and_on_record(self, doors: Doors, name: str) -> None:
        context = doors.send("evaluation", question(name)).json()["context"]
        assert context["reason"] == "unknown_subject"
        assert Decision.objects.filter(uid=context["evaluation_id"]).exists()

    def test_the_request_s_id_is_printable_and_short_or_made_anew(self, doors: Doors) -> None:
        def back(given: str) -> str:
            return doors.send("evaluation", question(), X_Request_ID=given).headers["X-Request-ID"]

        assert back("x" * 128) == "x" * 128
        assert Decision.objects.filter(request_id="x" * 128).exists()
        for odd in ("x" * 129, "a\tb", "é"):
            assert uuid.UUID(back(odd))

    def test_answers_are_kept_by_nobody_and_mean_nothing_to_a_browser(self, doors: Doors) -> None:
        for answer in (doors.send("evaluation", question()), doors.send("evaluation", b"{")):
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert not answer.cookies

    def test_another_host_and_another_address_are_refused_in_text(self, doors: Doors) -> None:
        foreign = doors.send("evaluation", question(), Host="evil.example.org")
        assert (foreign.status_code, foreign.headers["Content-Type"]) == (400, "text/plain; charset=utf-8")
        for path in ("", "evaluation/", "nothing", "search"):
            assert doors.send(path, question()).status_code == 404

    def test_without_a_database_it_is_503_and_a_denial(self, doors: Doors) -> None:
        with (
            patch("compliance.selectors.deciding.conformance.read_questions", side_effect=OperationalError("gone")),
            patch("compliance.services.decisions.connections"),
            patch("compliance.services.searches.connections"),
        ):
            answer = doors.send("evaluation", question())
            search = doors.send("search/action", question())
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert answer.json()["decision"] is False
        assert answer.json()["context"]["reason"] == "cannot_judge"
        assert search.status_code == 503
        assert search.headers["Content-Type"].startswith("text/plain")

    def test_what_nobody_foresaw_is_500_and_no_decision(self, doors: Doors) -> None:
        with patch("compliance.api.authzen.views.decide", side_effect=RuntimeError("secret")):
            answer = doors.send("evaluation", question(), X_Request_ID="the-one")
        assert answer.status_code == 500
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert "the-one" in answer.content.decode()
        assert "secret" not in answer.content.decode()


def test_a_person_without_an_account_asks_nothing_any_more(doors: Doors, granted: signing.Ground) -> None:
    deactivate_account(actor=signing.actor_of(administrator()), user=granted.asker, reason="she left")
    assert doors.send("evaluation", question()).status_code == 401


# --- the published examples


def test_an_example_holds_what_an_answer_holds(granted: signing.Ground, doors: Doors, settings: Any) -> None:
    settings.PUBLIC_URL = "https://gate.example.org"
    (model_b,) = world.register("model-b")
    world.submit(world.submission("model-b", world.observation("93")))
    world.judge_all()
    assert model_b.number == 1
    for asked, example in ((question(), ALLOW), (question("model-b"), DENY)):
        told = doors.send("evaluation", asked).json()
        assert told["decision"] is example["decision"]
        assert told["context"].keys() == example["context"].keys()
        for member in ("subject", "entry", "access_request"):
            assert told["context"].get(member, {}).keys() == example["context"].get(member, {}).keys()
        for member in ("policies", "reasons"):
            (each, *_), (shown, *_) = (held["context"][member] or [{}] for held in (told, example))
            assert each.keys() == shown.keys()


def test_an_example_is_taken_at_its_door(doors: Doors) -> None:
    assert doors.send("evaluation", QUESTION).status_code == 200
    assert len(doors.decisions(BATCH)) == 2
    for sought, (asked, results) in SEARCHES.items():
        answer = doors.send(f"search/{sought}", asked)
        assert (answer.status_code, answer.json().keys()) == (200, found_page(results).keys())
