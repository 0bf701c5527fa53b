"""The client of access requests: a task is approved only where its answer says so in full, and a wait outlasts a service's absence."""

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from compliance.client import access_requests, http
from compliance.client.access_requests import NoAnswer, RequestRefused, Task, denied_value, file_request, read_task, wait_for
from compliance.client.answers import Question, judge
from compliance.client.http import Server
from evaluations.kernel.clock import now
from tests.compliance.client.test_cli import run
from tests.compliance.client.test_register import answering, hang_up, reply
from tests.support.gate_answers import DIGEST, deny
from tests.support.gate_answers import answering as deciding
from tests.support.gate_server import gate_server

UID = "11111111-1111-4111-8111-111111111111"
APPROVAL = {"id": UID, "approved_until": "2099-01-01T00:00:00Z", "state": "sha256:1"}
UNTIL = "2099-01-01T00:00:00.000000Z"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(access_requests, "POLL_SECONDS", 0.001)
    for variable in ("WRITEGATE_TOKEN", "WRITEGATE_SERVER"):
        monkeypatch.delenv(variable, raising=False)


def told(status: str = "pending", **more: Any) -> dict[str, Any]:
    task = {"id": UID, "status": status, "progress": {"current_step": 2, "total_steps": 3, "awaiting": ["security"]}}
    return {"task": {**task, "links": {"ticket": "https://gate.example.org/r"}}, **more}


def approved(**changes: Any) -> dict[str, Any]:
    return told("approved", result={"mode": "reevaluate", "approval": APPROVAL, **changes})


def server(url: str) -> Server:
    return Server(urlsplit(url), "wg_secret")


def denied(**context: Any) -> Any:
    question = Question("hr-agent@3", "hr-prod", "write", DIGEST, observe=True, type="agent", approval={"id": "old"})
    answer = deny(question.as_value(), "no_grant")
    answer["context"] |= {"next_action": "request", "access_request": {"expires_at": UNTIL}, **context}
    return judge(answer, question, at=now())


def test_a_denial_says_the_way_on() -> None:
    answer = denied()
    assert (answer.certain, answer.next_action, answer.retry_after) == (True, "request", None)
    assert answer.requestable_until is not None
    later = denied(next_action="retry", retry_after=60, access_request=None)
    assert (later.next_action, later.retry_after, later.requestable_until) == ("retry", 60, None)
    odd = denied(next_action="sudo", retry_after=True, access_request={"expires_at": "soon"})
    assert (odd.certain, odd.next_action, odd.retry_after, odd.requestable_until) == (True, "", None, None)


def test_what_was_denied_is_asked_for_and_nothing_else() -> None:
    answer = denied()
    value = denied_value(answer, justification="needed")
    assert value == {
        "subject": {"type": "agent", "id": "hr-agent@3", "properties": {"fingerprint": DIGEST}},
        "action": {"name": "write"},
        "resource": {"type": "system", "id": "hr-prod"},
        "context": {"business_justification": "needed"},
        "denial": {"evaluation_id": answer.evaluation_id, "expires_at": "2099-01-01T00:00:00+00:00"},
    }
    with pytest.raises(ValueError, match="no_grant"):
        denied_value(denied(access_request=None))


def test_it_is_filed_under_one_key_however_often_it_is_sent() -> None:
    value = denied_value(denied(), justification="needed")
    with answering(hang_up, reply(503), reply(202, told(), **{"Retry-After": "7"})) as (url, seen):
        task = file_request(server(url), value)
        file_request(server(url), {**value, "context": {}})
    assert task == Task(UID, "pending", 1, 3, ("security",), page="https://gate.example.org/r", wait_seconds=7.0)
    keys = [one["idempotency-key"] for one in seen]
    assert keys[0] == keys[1] == keys[2] != keys[3]


def test_one_that_is_there_already_is_the_task() -> None:
    there = {
        "code": "duplicate_request",
        "detail": "open",
        "task": {"id": UID, "status_endpoint": "https://elsewhere.example.org"},
    }
    with answering(reply(409, there), reply(200, approved())) as (url, seen):
        task = file_request(server(url), {})
    assert task.is_approved
    assert len(seen) == 2, "asked of the server that was named, and of no other"
    for odd in ({"task": {"id": "../../x"}}, {"task": UID}, {}):
        with answering(reply(409, {"code": "duplicate_request", "detail": "open", **odd})) as (url, seen):
            with pytest.raises(RequestRefused) as refused:
                file_request(server(url), {})
            assert (refused.value.code, str(refused.value), len(seen)) == ("duplicate_request", "open", 1)


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"[]",
        b"{}",
        {"task": None},
        {"task": {"id": "1", "status": "approved"}},
        {"task": {"id": UID}},
        {"task": {"id": UID, "status": 7}},
        told(result=[]),
        told(result={"mode": "reevaluate"}),
        approved(approval="yes"),
        told(progress=7) | {"task": {**told()["task"], "progress": {"total_steps": "many"}}},
    ],
)
def test_an_odd_answer_is_no_task(odd: Any) -> None:
    with answering(reply(200, odd)) as (url, _), pytest.raises(NoAnswer):
        read_task(server(url), UID)


@pytest.mark.parametrize(
    "value", [told("approved"), approved(mode="token"), told("partial"), {**approved(), "task": told("unknown")["task"]}]
)
def test_nothing_but_approved_with_an_approval_is_a_yes(value: dict[str, Any]) -> None:
    with answering(reply(200, value)) as (url, _):
        assert not read_task(server(url), UID).is_approved


def test_it_waits_while_the_service_is_away_and_tells_what_moved() -> None:
    moved = {"task": {**told()["task"], "progress": {"current_step": 3, "total_steps": 3}}}
    seen: list[tuple[str, int]] = []
    with answering(reply(200, told()), hang_up, reply(502), reply(200, moved), reply(200, approved())) as (url, _):
        first = read_task(server(url), UID)
        done = wait_for(
            server(url),
            first,
            seconds=10,
            retries=0,
            tell=lambda task: seen.append((task.status, task.signed)),
            sleep=lambda _: None,
        )
    assert done.approval == APPROVAL
    assert seen == [("pending", 2), ("approved", 1)]


def test_it_waits_as_long_as_the_service_asks_and_not_past_its_end() -> None:
    slept: list[float] = []
    task = Task(UID, "pending", wait_seconds=0.05)
    with answering(reply(200, told(), **{"Retry-After": "9"})) as (url, _):
        left = wait_for(
            server(url), task, seconds=0.2, retries=0, sleep=lambda seconds: (slept.append(seconds), time.sleep(seconds))
        )
    assert left.is_pending
    assert slept[0] == pytest.approx(0.05)
    assert sum(slept) < 0.4


def test_one_that_is_gone_is_not_waited_for() -> None:
    with answering(reply(410, {"code": "task_expired", "detail": "over"})) as (url, _):
        with pytest.raises(RequestRefused) as refused:
            wait_for(server(url), Task(UID, "pending"), seconds=10, sleep=lambda _: None)
        assert refused.value.code == "task_expired"
        ended = Task(UID, "denied")
        assert wait_for(server(url), ended, seconds=10) is ended


class TestCommand:
    @pytest.fixture
    def token(self, tmp_path: Path) -> Path:
        path = tmp_path / "token"
        path.write_text("wg_very-secret")
        return path

    def give(self, token: Path, *arguments: object, url: str = "http://127.0.0.1:1") -> tuple[int, str, str]:
        return run(*arguments, "--server", url, "--token-file", token, "--retries", 0)

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("--subject", "a@1"), "say --system and --until"),
            (("--denial", "none.json"), "no answer can be read from none.json"),
            (("--denial", "x", "--subject", "a@1", "--action", "write"), "leave out --subject and --action"),
            (("--subject", "a@1", "--system", "s", "--until", "2026-12-31", "--emergency"), "--emergency is said of a denial"),
        ],
    )
    def test_what_was_given_is_refused(self, token: Path, arguments: tuple[object, ...], said: str) -> None:
        code, out, err = self.give(token, "request", *arguments, "--reason", "x")
        assert (code, out) == (2, "")
        assert said in err

    @pytest.mark.parametrize("content", ["{", "[]", '{"allowed": true}', '{"access_request": 7}'])
    def test_a_file_that_is_no_denial_is_refused(self, token: Path, content: str, tmp_path: Path) -> None:
        path = tmp_path / "denied.json"
        path.write_text(content)
        code, _, err = self.give(token, "request", "--denial", path, "--reason", "x")
        assert code == 2
        assert "denied.json" in err

    @pytest.mark.parametrize(
        "given",
        [
            ("--request",),
            ("--reason", "x"),
            ("--request", "--reason", "x", "--wait", "0"),
            ("--request", "--reason", "x", "--offline", "hr-prod.bundle"),
        ],
    )
    def test_check_asks_only_with_a_reason(self, token: Path, given: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            self.give(token, "check", "--subject", "a", "--system", "s", *given)
        assert ended.value.code == 2
        assert "error" in capsys.readouterr().err

    def test_check_tells_the_way_on(self, token: Path) -> None:
        def make(question: Any) -> Any:
            answer = deny(question, "facts_moved")
            answer["context"] |= {"next_action": "retry", "retry_after": 60}
            return answer

        with gate_server(deciding(make)) as gate:
            ask = ("check", "--subject", "hr-agent", "--system", "hr-prod")
            code, out, err = self.give(token, *ask, url=gate.url)
            assert (code, err) == (1, "")
            assert "next        ask the gate again in 60 seconds" in out
            _, out, _ = self.give(token, *ask, "--json", url=gate.url)
            shown = json.loads(out)
            assert (shown["next_action"], shown["retry_after"], "access_request" in shown) == ("retry", 60, False)
            code, _, err = self.give(token, *ask, "--request", "--reason", "x", url=gate.url)
            assert (code, err) == (1, "no request was filed: none would change this answer: ask again in 60 seconds\n")
            assert not [one for one in gate.asked if one.path.endswith("/requests")]
