"""Decisions over REST: found by those who may see them, explained, judged once more, proved; and the vocabulary of reasons."""

import json

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compliance.deciding.codes import Code
from compliance.deciding.meanings import MEANINGS
from compliance.ledger.note import VerifierKey
from compliance.ledger.verifier import verify_proof_file
from compliance.models import Decision, LedgerEntry
from compliance.selectors.ledger import signing_keys
from compliance.services.recording import Decided
from compliance.services.sealing import seal
from compliance.services.stopping import suspend_grant
from compliance.vocabulary import Role
from tests.compliance.api.callers import as_person, as_token
from tests.compliance.api.world import V1, Api, nobody
from tests.support import signing
from tests.support.asking import ask_gate, ask_token, file_about
from tests.support.signing import Ground


@pytest.fixture
def token(land: Ground) -> str:
    return ask_token(land.asker)


@pytest.fixture
def reader(land: Ground) -> Api:
    return as_token(land.security, "read")


def uids(api: Api, **query: str) -> list[str]:
    answer = api.get("decisions", query)
    assert answer.status_code == 200, answer.content
    return [row["uid"] for row in answer.json()["results"]]


def path(answer: Decided, word: str = "") -> str:
    return f"decisions/{answer.uid}{word}"


def test_a_decision_is_read_as_it_was_answered(land: Ground, token: str, reader: Api) -> None:
    grant = signing.granted(land)
    answer = ask_gate(token)
    shown = reader.get(path(answer)).json()
    (listed,) = reader.get("decisions").json()["results"]
    assert {name: shown[name] for name in listed} == listed
    assert (listed["allowed"], listed["codes"], listed["observed"]) == (True, [], False)
    assert (listed["subject"], listed["action"], listed["resource"]) == ("model-a", "write", "hr-prod")
    assert (listed["subject_version"], listed["system"], listed["grant"]) == ("model-a@1", "hr-prod", str(grant.uid))
    assert (listed["entry"], shown["index"]) == (str(answer.entry), None)
    why = shown["explanation"]
    assert (why["reasons"], why["grants"], why["replaced_by"]) == ([], [str(grant.uid)], None)
    assert why["policies"][0]["outcome"] == "pass"
    assert why["facts"] == json.loads(bytes(Decision.objects.get(uid=answer.uid).body.content))["facts"]
    assert shown["proof_url"].endswith(f"{V1}/{path(answer)}/proof")


def test_a_denial_says_why_in_words_and_numbers(land: Ground, token: str, reader: Api) -> None:
    grant = signing.granted(land)
    suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="odd")
    shown = reader.get(path(ask_gate(token))).json()
    (reason,) = shown["explanation"]["reasons"]
    assert reason["code"] == "grant_suspended"
    assert reason["detail"] == {"grant": str(grant.uid), "cause": "taken_back"}
    assert shown["explanation"]["sentence"].endswith(f"{reason['message']}.")


def test_a_denial_that_was_asked_about_names_its_request(land: Ground, reader: Api) -> None:
    token = ask_token(land.asker, "decide", "request")
    answer, other = ask_gate(token), ask_gate(token)
    made = file_about(answer, token)
    assert [reader.get(path(one)).json()["request"] for one in (answer, other)] == [str(made.uid), None]


def test_filters_find_what_they_name_and_refuse_what_they_cannot_read(land: Ground, token: str, reader: Api) -> None:
    elsewhere = ask_gate(token, system="nowhere")
    grant = signing.granted(land)
    allowed = ask_gate(token)
    both = [str(allowed.uid), str(elsewhere.uid)]
    assert uids(reader) == both
    for query, found in (
        ({"system": "nowhere"}, both[1:]),
        ({"system": "hr-prod"}, both[:1]),
        ({"subject": "model-a"}, both),
        ({"subject": "nobody"}, []),
        ({"grant": str(grant.uid)}, both[:1]),
        ({"code": "unknown_system"}, both[1:]),
        ({"allowed": "true"}, both[:1]),
        ({"observed": "true"}, []),
        ({"since": "2020-01-01T00:00:00Z"}, both),
        ({"until": "2020-01-01T00:00:00Z"}, []),
    ):
        assert uids(reader, **query) == found, query
    for query in ({"code": "no"}, {"grant": "x"}, {"allowed": "yes"}, {"since": "today"}, {"sistem": "hr-prod"}):
        answer = reader.get("decisions", query)
        assert (answer.status_code, answer.json()["problems"][0]["field"]) == (400, next(iter(query)))


def test_pages_by_cursor_show_each_once_whatever_comes_meanwhile(land: Ground, token: str, reader: Api) -> None:
    made = [str(ask_gate(token, f"s{number}").uid) for number in range(5)]
    first = reader.get("decisions", {"page_size": "2"}).json()
    ask_gate(token, "later")
    seen = [row["uid"] for row in first["results"]]
    following = first["next"]
    while following:
        page = reader.client.get(following, headers=reader.headers).json()
        seen += [row["uid"] for row in page["results"]]
        following = page["next"]
    assert seen == made[::-1]


def test_who_may_not_see_it_is_told_that_it_is_not_there(land: Ground, token: str) -> None:
    answer, unknown = ask_gate(token), ask_gate(token, system="nowhere")
    seal()
    words = ("", "/replay", "/proof")
    callers = {
        "security": as_token(land.security, "read"),
        "owner": as_person(land.owner),
        "narrowed": as_token(land.security, "read:hr-prod"),
        "elsewhere": as_token(land.security, "read:it-prod"),
        "asker": as_token(land.asker, "read"),
        "auditor": as_person(signing.human("Ada Auditor", Role.AUDITOR)),
    }
    see = {"security": (200, 200), "owner": (200, 404), "narrowed": (200, 404), "auditor": (200, 200)}
    for name, api in callers.items():
        got = [{api.get(path(one, word)).status_code for word in words} for one in (answer, unknown)]
        assert got == [{status} for status in see.get(name, (404, 404))], name
        assert len(uids(api)) == got.count({200}), name
    for refused in (as_token(land.security, "decide"), nobody()):
        assert refused.get(path(answer)).status_code in (401, 403)
        assert refused.get("reason-codes").status_code in (401, 403)
    assert callers["security"].get("decisions/00000000-0000-4000-8000-000000000000").status_code == 404


def test_it_is_judged_once_more_and_nothing_is_recorded(land: Ground, token: str, reader: Api) -> None:
    signing.granted(land)
    answers = [ask_gate(token), ask_gate(token, action="delete"), ask_gate(ask_token(land.asker, "decide:other"))]
    before = LedgerEntry.objects.count()
    for answer, replaced in zip(answers, (None, None, "out_of_scope"), strict=True):
        done = reader.get(path(answer, "/replay")).json()
        assert (done["outcome"], done["same"], done["replaced_by"]) == ("same", True, replaced)
        assert done["stored"] == done["replayed"]
        assert done["stored"]["allowed"] is answer.judgement.allowed
    assert done["judged"]["allowed"] is True, "what the facts gave"
    assert LedgerEntry.objects.count() == before
    assert reader.client.post(f"{V1}/{path(answers[0], '/replay')}", headers=reader.headers).status_code == 405


def test_its_proof_follows_within_seconds_and_holds_offline(land: Ground, token: str, reader: Api) -> None:
    answer = ask_gate(token)
    waits = reader.get(path(answer, "/proof"))
    assert (waits.status_code, waits.json()["code"], waits.headers["Retry-After"]) == (409, "not_sealed_yet", "2")
    seal()
    proof = reader.get(path(answer, "/proof"))
    assert proof.headers["Content-Type"] == "text/plain; charset=utf-8"
    keys = [VerifierKey.parse(key.verifier_key) for key in signing_keys(up_to_size=10_000)]
    report = verify_proof_file(proof.content, keys=keys)
    assert report.is_ok()
    shown = reader.get(path(answer)).json()
    assert report.facts["entry"].startswith(f"{shown['index']}, of ")
    assert json.loads(report.facts["content"])["digests"]["decision"] == shown["body_digest"]


def test_the_vocabulary_is_whole_and_in_order(reader: Api) -> None:
    shown = reader.get("reason-codes").json()
    assert [row["code"] for row in shown["reason_codes"]] == [code.value for code in Code]
    assert set(MEANINGS) == set(Code)
    for row in shown["reason_codes"]:
        assert all(row[part].endswith(".") and "  " not in row[part] for part in ("means", "remedy")), row
    said = {row["code"]: (row["next_action"], row["retry_after"]) for row in shown["reason_codes"]}
    assert said["no_grant"] == ("request", None)
    assert said["facts_moved"] == ("retry", 1)
    assert said["evidence_missing"] == ("none", None)


def test_the_list_makes_the_same_queries_however_long_it_is(land: Ground, token: str, reader: Api) -> None:
    def count(address: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            reader.get(address)
        return len(queries)

    signing.granted(land)
    first = ask_gate(token)
    reader.get("decisions")
    before = {address: count(address) for address in ("decisions", path(first), path(first, "/replay"))}
    for number in range(4):
        ask_gate(token, f"s{number}")
    assert {address: count(address) for address in before} == before
    assert max(before.values()) <= 8, before


def test_real_answers_are_as_the_schema_describes_them(
    land: Ground, token: str, reader: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Requests that come over WSGI end by closing the connection, which here is the test's own.
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)
    described = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())
    signing.granted(land)
    answers = [ask_gate(token), ask_gate(token, "nobody"), ask_gate(ask_token(land.asker, "decide:other"))]
    seal()
    for answer in answers:
        for word in ("", "/replay", "/proof"):
            operation = described[f"{V1}/decisions/{{uid}}{word}"]["GET"]
            got = operation.Case(path_parameters={"uid": str(answer.uid)}).call(headers=reader.headers)
            assert got.status_code == 200, word
            operation.validate_response(got)
    for name in ("decisions", "reason-codes"):
        operation = described[f"{V1}/{name}"]["GET"]
        operation.validate_response(operation.Case().call(headers=reader.headers))
