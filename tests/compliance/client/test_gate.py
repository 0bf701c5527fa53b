"""The client of the gate: nothing but a whole, clear and current allow is one, whatever the other side does."""

import ssl
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from compliance.client import http
from compliance.client.answers import Answer, Question
from compliance.client.gate import AddressRefused, Gate
from tests.support.gate_answers import (
    DIGEST,
    ODD,
    SLOW,
    Reply,
    allow,
    answering,
    changed,
    cut,
    deny,
    hanging_up,
    plainly,
    resetting,
    right,
    wrong,
)
from tests.support.gate_server import EVALUATIONS, GateServer, gate_server, own_certificate

QUESTION = Question("hr-agent", "hr-prod", fingerprint=DIGEST)


def client(server: GateServer, **options: Any) -> Gate:
    return Gate(server.url, token="wg_secret", **{"timeout": 5, "retries": 0, **options})


def ask(*replies: Reply, **options: Any) -> tuple[Answer, GateServer]:
    with gate_server(*replies) as server:
        return client(server, **options).check("hr-agent", "hr-prod", fingerprint=DIGEST), server


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PAUSE_SECONDS", 0.001)


def test_an_allow_is_one_and_says_all_of_it() -> None:
    answer, server = ask(right)
    assert answer
    assert (answer.allowed, answer.certain, answer.reason, answer.reasons) == (True, True, "", ())
    assert answer.raw["context"]["evaluation_id"] == answer.evaluation_id
    assert answer.entry is not None
    assert answer.entry.id == answer.raw["context"]["entry"]["id"]
    assert answer.subject == ("hr-agent", 1, DIGEST)
    assert answer.valid_until is not None
    assert timedelta(minutes=4) < answer.valid_until - datetime.now(UTC) <= timedelta(minutes=5)
    (question,) = server.questions
    assert question.value == {
        "subject": {"type": "agent", "id": "hr-agent", "properties": {"fingerprint": DIGEST}},
        "action": {"name": "write"},
        "resource": {"type": "system", "id": "hr-prod"},
    }
    assert question.headers["authorization"] == "Bearer wg_secret"
    assert question.headers["x-request-id"] == answer.request_id


def test_a_deny_is_certain_and_says_why() -> None:
    answer, _ = ask(answering(lambda question: deny(question, "no_grant", "verdict_failed")))
    assert not answer
    assert answer.certain
    assert [one.code for one in answer.reasons] == ["no_grant", "verdict_failed"]
    assert answer.reasons[0].message == "because of no_grant"
    assert answer.evaluation_id
    bare, _ = ask(answering(lambda _: {"decision": False}))
    assert (bare.allowed, bare.certain, bare.reason) == (False, True, "no_reason")


def test_nothing_odd_is_an_allow() -> None:
    with gate_server(*ODD.values()) as server:
        gate = client(server)
        for name in ODD:
            answer = gate.check("hr-agent", "hr-prod", fingerprint=DIGEST)
            assert not answer.allowed, name
            assert not answer, name
            assert answer.reasons, name
            assert answer.certain is name.startswith("deny"), name
        assert len(server.questions) == len(ODD) > 80


@pytest.mark.parametrize("name", SLOW)
def test_one_time_limit_holds_for_all_of_an_exchange(name: str) -> None:
    began = time.monotonic()
    answer, server = ask(SLOW[name], timeout=0.5, retries=3)
    assert time.monotonic() - began < 2
    assert (answer.allowed, answer.certain, answer.reason) == (False, False, "no_answer")
    assert len(server.questions) == 1


def test_a_name_server_that_is_silent_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: time.sleep(3) or [])
    began = time.monotonic()
    answer = Gate("https://gate.example.org", token="wg_x", timeout=0.3).check("hr-agent", "hr-prod")
    assert time.monotonic() - began < 2
    assert answer.reason == "no_answer"


@pytest.mark.parametrize(
    "trouble",
    [hanging_up, resetting, cut(20), plainly(500), plainly(502), plainly(429), plainly(503, b'{"decision": false}')],
)
def test_trouble_is_tried_again_under_the_same_request_id(quick: None, trouble: Reply) -> None:
    answer, server = ask(trouble, trouble, right, retries=2)
    assert answer.allowed
    assert len(server.questions) == 3
    assert len({one.headers["x-request-id"] for one in server.questions}) == 1
    answer, server = ask(trouble, trouble, right, retries=1)
    assert not answer.allowed
    assert not answer.certain
    assert len(server.questions) == 2


@pytest.mark.parametrize(
    "name",
    [
        "deny",
        "deny without a context",
        "redirect 307",
        "400",
        "401",
        "empty",
        "a page",
        "decision 1",
        "valid_until past",
        "huge",
        "another request's answer",
        "a length that is no number",
    ],
)
def test_what_decides_or_will_not_change_is_not_asked_again(quick: None, name: str) -> None:
    answer, server = ask(ODD[name], right, retries=5)
    assert not answer.allowed
    assert len(server.questions) == 1


def test_an_allow_is_not_asked_again_either(quick: None) -> None:
    answer, server = ask(right, wrong, retries=5)
    assert answer.allowed
    assert len(server.questions) == 1


def test_each_call_has_a_request_id_of_its_own_and_a_missing_echo_is_no_fault() -> None:
    with gate_server(answering(allow, echo=False)) as server:
        gate = client(server)
        assert all(gate.check("hr-agent", "hr-prod") for _ in range(3))
        assert len({one.headers["x-request-id"] for one in server.questions}) == 3


def test_a_pause_that_the_server_asks_for_is_kept(quick: None) -> None:
    began = time.monotonic()
    answer, server = ask(plainly(429, Retry_After="1"), right, retries=1)
    assert answer.allowed
    assert 1 <= time.monotonic() - began < 3
    assert len(server.questions) == 2
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    began = time.monotonic()
    assert ask(plainly(503, Retry_After=later), right, retries=1)[0].allowed
    assert 0.5 < time.monotonic() - began < 4


def test_a_pause_beyond_the_time_limit_ends_it_at_once() -> None:
    for asked in ("30", format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True), "9" * 400):
        began = time.monotonic()
        answer, server = ask(plainly(429, Retry_After=asked), right, timeout=2, retries=5)
        assert time.monotonic() - began < 1
        assert not answer.allowed
        assert len(server.questions) == 1


def test_pauses_are_random_and_double_and_end_with_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[float] = []
    monkeypatch.setattr(http.random, "uniform", lambda low, high: bounds.append(high) or low)
    _, server = ask(plainly(500), retries=7)
    assert len(server.questions) == 8
    assert bounds == [0.5, 1, 2, 4, 8, 8, 8, 8]
    monkeypatch.setattr(http.random, "uniform", lambda low, high: high)
    began = time.monotonic()
    _, server = ask(plainly(500), timeout=1, retries=9)
    assert time.monotonic() - began < 1.5
    assert len(server.questions) == 2


def test_a_redirect_takes_the_token_nowhere() -> None:
    with gate_server() as other:
        answer, _ = ask(plainly(307, b"", Location=f"{other.url}/access/v1/evaluation"), retries=2)
        assert not answer.allowed
        assert not other.asked


def test_a_certificate_that_nobody_vouches_for_is_sent_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = own_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    with gate_server(tls=tls) as server:
        answer = client(server, retries=3).check("hr-agent", "hr-prod")
        assert (answer.allowed, answer.certain, answer.reason) == (False, False, "no_answer")
        assert "self-signed" in answer.reasons[0].message
        assert not server.asked
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        assert client(server).check("hr-agent", "hr-prod")
        assert not Gate(server.url.replace("127.0.0.1", "localhost"), token="wg_x", timeout=5).check("hr-agent", "hr-prod")
        assert len(server.asked) == 1


def test_a_service_that_cannot_judge_says_so_itself() -> None:
    answer, _ = ask(ODD["503 that denies"])
    assert (answer.allowed, answer.certain, answer.reason) == (False, False, "cannot_judge")
    answer, _ = ask(ODD["401"])
    assert (answer.reason, answer.reasons[0].message) == ("refused", "the service answered with status 401: who are you")


def test_nobody_at_the_address() -> None:
    with gate_server() as server:
        gate = client(server, retries=1)
    answer = gate.check("hr-agent", "hr-prod")
    assert (answer.allowed, answer.certain, answer.reason) == (False, False, "no_answer")


def test_many_questions_go_at_once_and_each_answer_is_judged_for_itself() -> None:
    questions = [Question("hr-agent", "hr-prod"), Question("hr-agent", "crm-prod"), Question("crm-agent", "crm-prod", "delete")]

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        first, second, third = body["evaluations"]
        return {"evaluations": [allow(first), deny(second, "no_grant"), allow(third, action="write")]}

    with gate_server(answering(answer)) as server:
        answers = client(server).check_all(questions)
        assert client(server).check_all([]) == []
    assert [one.allowed for one in answers] == [True, False, False]
    assert [one.certain for one in answers] == [True, True, False]
    assert [one.question for one in answers] == questions
    (asked,) = server.questions
    assert asked.path == EVALUATIONS
    assert asked.value == {"evaluations": [question.as_value() for question in questions]}


@pytest.mark.parametrize(
    "make",
    [
        lambda body: {"evaluations": [allow(one) for one in body["evaluations"]][:1]},
        lambda body: {"evaluations": [allow(one) for one in body["evaluations"]] * 2},
        lambda body: {"evaluations": [allow(one) for one in reversed(body["evaluations"])]},
        lambda body: {"evaluations": {"0": allow(body["evaluations"][0]), "1": allow(body["evaluations"][1])}},
        lambda body: [allow(one) for one in body["evaluations"]],
        lambda body: {"evaluations": [{"decision": False, "context": {"error": {"status": 404, "message": "no such"}}}, "true"]},
        lambda body: {**allow(body["evaluations"][0])},
    ],
)
def test_answers_to_many_that_do_not_belong_to_the_questions_deny_all(make: Callable[[Any], Any]) -> None:
    with gate_server(answering(make)) as server:
        answers = client(server).check_all([Question("hr-agent", "hr-prod"), Question("crm-agent", "crm-prod")])
    assert len(answers) == 2
    assert not any(one.allowed or one.certain for one in answers)


@pytest.mark.parametrize(
    ("subject", "told", "allowed"),
    [
        ("hr-agent", {"key": "hr-agent", "version": 7}, True),
        ("hr-agent@3", {"key": "hr-agent", "version": 3}, True),
        ("hr-agent@3", {"key": "hr-agent", "version": 4}, False),
        ("hr-agent@3", {"key": "hr-agent@3", "version": 1}, True),
        ("hr-agent@1", {"key": "hr-agent", "version": True}, False),
        ("hr-agent", {"key": "hr-agent", "version": "7"}, False),
        ("hr-agent", {"key": "hr-agent@7", "version": 7}, False),
        ("acme/a@b", {"key": "acme/a@b", "version": 1}, True),
    ],
)
def test_the_subject_is_the_one_that_was_asked_about(subject: str, told: dict[str, Any], allowed: bool) -> None:
    with gate_server(changed(subject={"digest": DIGEST, **told})) as server:
        assert client(server).check(subject, "hr-prod").allowed is allowed


def test_an_alias_may_mean_any_subject_but_not_another_fingerprint() -> None:
    with gate_server(changed(subject={"key": "model-a", "version": 1, "digest": DIGEST})) as server:
        assert client(server).check("Model A (high)", "hr-prod", type="alias")
        assert client(server).check("Model A (high)", "hr-prod", fingerprint=DIGEST, type="alias")
        assert not client(server).check("Model A (high)", "hr-prod", fingerprint="sha256:" + "b" * 64, type="alias")


def test_observing_says_so_and_changes_no_answer() -> None:
    with gate_server(wrong, right) as server:
        assert not client(server).check("hr-agent", "hr-prod", observe=True)
        assert client(server).check("hr-agent", "hr-prod", observe=True)
    assert all(one.value["context"] == {"observe": True} for one in server.questions)


def test_a_question_that_cannot_be_put_is_denied() -> None:
    with gate_server() as server:
        gate = client(server)
        assert not gate.check("hr-agent\ud800", "hr-prod")
        assert not gate.check(object(), "hr-prod")  # type: ignore[arg-type]
        assert not any(gate.check_all([Question("hr-agent", "hr\udfff")]))
        assert not server.asked


def test_a_gate_is_made_for_an_address_and_a_token() -> None:
    for wrong_one in ("", "wg_a b", "wg_\n", "wg_ä"):
        with pytest.raises(ValueError, match="token"):
            Gate("https://gate.example.org", token=wrong_one)
    for options in ({"timeout": 0}, {"timeout": float("nan")}, {"retries": -1}):
        with pytest.raises(ValueError, match="timeout"):
            Gate("https://gate.example.org", token="wg_x", **options)  # type: ignore[arg-type]
    with pytest.raises(AddressRefused, match="https"):
        Gate("http://gate.example.org", token="wg_x")
    assert "wg_x" not in repr(vars(Gate("https://gate.example.org", token="wg_x")))


def test_one_gate_serves_many_threads() -> None:
    with gate_server() as server:
        gate, answers = client(server), []
        threads = [threading.Thread(target=lambda: answers.append(gate.check("hr-agent", "hr-prod"))) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(answers) == 16
    assert all(answers)
    assert len({one.request_id for one in answers}) == 16
