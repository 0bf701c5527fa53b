"""From a denial to an allow, over a real server: an agent is denied, asks, people sign, it waits, asks again and may."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connections
from pytest_django.live_server_helper import LiveServer

from compliance.api.authzen import limits, requesting
from compliance.client import access_requests as asking
from compliance.client.gate import Gate, RequestRefused
from compliance.models import Grant, LedgerEntry, ServiceToken, SignOffRequest
from compliance.services.people import revoke_token
from compliance.services.stopping import revoke_grant
from compliance.vocabulary import Meaning, RequestKind, Role
from evaluations.kernel.clock import now
from tests.compliance.client.test_cli import run
from tests.support import signing, world
from tests.support.asking import ask_token

pytestmark = pytest.mark.slow
QUESTION = ("--subject", "model-a", "--type", "model", "--system", "hr-prod")


@pytest.fixture
def land(
    committed_db: object, run_tasks_inline: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[tuple[signing.Ground, str, Path]]:
    """The ground of a grant, the address of a server on it, and a file with the token of the requester's agent."""
    limits.failures.cache_clear()
    monkeypatch.setattr(requesting, "POLL_SECONDS", 1)
    monkeypatch.setattr(asking, "POLL_SECONDS", 0.1)
    ground = signing.ground()
    file = tmp_path / "token"
    file.write_text(ask_token(ground.asker, "decide:hr-prod", "request:hr-prod"))
    live = LiveServer("127.0.0.1")
    yield ground, live.url, file
    live.stop()
    connections.close_all()


def meanwhile(act: Callable[[SignOffRequest], object]) -> threading.Thread:
    """Do something, as other people, to the request that is about to be filed."""
    filed = threading.Event()

    def work() -> None:
        try:
            while not filed.wait(0.1):
                request = SignOffRequest.objects.filter(kind=RequestKind.GRANT).last()
                if request is not None:
                    act(request)
                    filed.set()
        finally:
            connections.close_all()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def both(ground: signing.Ground) -> Callable[[SignOffRequest], object]:
    return lambda request: [signing.sign(account, request) for account in (ground.owner, ground.security)]


def test_a_program_is_denied_asks_waits_and_may(land: tuple[signing.Ground, str, Path]) -> None:
    ground, url, file = land
    gate = Gate(url, token=file.read_text(), retries=0)
    denied = gate.check("model-a", "hr-prod", type="model")
    assert (denied.allowed, denied.certain, denied.reason, denied.next_action) == (False, True, "no_grant", "request")
    assert denied.requestable_until is not None

    task = gate.request(denied, justification="the nightly sync", until=now() + timedelta(days=5))
    assert (task.status, task.signed, task.needed, task.is_approved) == ("pending", 0, 2, False)
    assert gate.request(denied, justification="another word").id == task.id, "it is there already"
    request = SignOffRequest.objects.get(uid=task.id)
    signing.sign(ground.owner, request)
    assert (gate.task(task.id).signed, gate.task(task.id).awaiting) == (1, ("security",))
    assert not gate.check("model-a", "hr-prod", type="model", approval={"id": task.id})
    assert gate.wait(task, seconds=0.2).is_pending
    signing.sign(ground.security, request)

    done = gate.wait(task, seconds=20)
    assert done.is_approved
    answer = gate.check("model-a", "hr-prod", type="model", approval=done.approval)
    assert answer.allowed, answer.reasons
    grant = Grant.objects.get(request=request)
    assert answer.valid_until is not None
    assert answer.valid_until <= grant.ends_at

    revoke_grant(actor=signing.actor_of(ground.security), grant=grant, reason="enough")
    over = gate.check("model-a", "hr-prod", type="model", approval=done.approval)
    assert (over.allowed, over.next_action, over.raw["context"]["reason"]) == (False, "request", "approval_expired")
    actions = list(LedgerEntry.objects.filter(target_kind="request").order_by("id").values_list("action", flat=True))
    assert [action for action in actions if action in ("request.filed", "sign_off.given", "request.completed")][-4:] == [
        "request.filed",
        "sign_off.given",
        "sign_off.given",
        "request.completed",
    ]


def test_a_pipeline_asks_in_the_same_step(land: tuple[signing.Ground, str, Path]) -> None:
    ground, url, file = land
    signed = meanwhile(both(ground))
    said = ("--request", "--reason", "the nightly sync", "--until", f"{now() + timedelta(days=9):%Y-%m-%d}", "--wait", 30)
    code, out, err = run("check", *QUESTION, "--server", url, "--token-file", file, *said)
    signed.join()
    assert (code, out.startswith("allow  model-a@1 may write at hr-prod")) == (0, True), err
    assert "is pending, 0 of 2 signatures, waits for system_owner and security" in err
    assert err.rstrip().endswith("is approved")
    assert "the nightly sync" in SignOffRequest.objects.filter(kind=RequestKind.GRANT).get().reason


def test_a_pipeline_asks_in_another_step(land: tuple[signing.Ground, str, Path], tmp_path: Path) -> None:
    ground, url, file = land
    server = ("--server", url, "--token-file", file)
    code, out, _ = run("check", *QUESTION, *server, "--json")
    told = json.loads(out)
    assert (code, told["next_action"]) == (1, "request")
    denial = tmp_path / "denied.json"
    denial.write_text(out)
    ask = ("request", "--denial", denial, *server, "--reason", "the sync")
    code, out, err = run(*ask, "--emergency")
    request = SignOffRequest.objects.get(kind=RequestKind.GRANT)
    assert (code, out) == (0, f"{request.uid}\n"), err
    assert "emergency" in request.reason
    code, _, err = run(*ask, "--wait", 1)
    assert (code, "is pending" in err) == (1, True), "nobody has signed within the time"
    rejected = meanwhile(lambda found: signing.sign(ground.security, found, Meaning.REJECTED))
    code, _, err = run(*ask, "--wait", 30)
    rejected.join()
    assert (code, err.rstrip().endswith("is denied")) == (2, True), err


def test_what_was_asked_without_a_denial_is_waited_for_too(land: tuple[signing.Ground, str, Path]) -> None:
    ground, url, file = land
    signed = meanwhile(both(ground))
    until = f"{now() + timedelta(days=9):%Y-%m-%d}"
    told = ("--subject", "model-a@1", "--system", "hr-prod", "--until", until, "--reason", "the sync")
    code, out, err = run("request", *told, "--server", url, "--token-file", file, "--wait", 30)
    signed.join()
    assert (code, err.rstrip().endswith("is approved")) == (0, True), (out, err)


class TestRefusals:
    def test_somebody_elses_denial_is_not_there(self, land: tuple[signing.Ground, str, Path]) -> None:
        _, url, file = land
        denied = Gate(url, token=file.read_text(), retries=0).check("model-a", "hr-prod", type="model")
        other = signing.human("Fred Foreign", Role.REQUESTER, team="it")
        foreign = Gate(url, token=ask_token(other, "decide", "request"), retries=0)
        with pytest.raises(RequestRefused) as refused:
            foreign.request(denied, justification="mine")
        assert refused.value.code == "invalid_denial_binding"
        task = Gate(url, token=file.read_text()).request(denied, justification="mine")
        with pytest.raises(RequestRefused) as refused:
            foreign.task(task.id)
        assert refused.value.code == "unknown_task"

    def test_an_allow_and_what_no_request_changes_are_not_asked_for(self, land: tuple[signing.Ground, str, Path]) -> None:
        ground, url, file = land
        gate = Gate(url, token=file.read_text(), retries=0)
        with pytest.raises(ValueError, match="unknown_subject"):
            gate.request(gate.check("nobody", "hr-prod", type="model"), justification="x")
        signing.granted(ground)
        with pytest.raises(ValueError, match="it allows"):
            gate.request(gate.check("model-a", "hr-prod", type="model"), justification="x")
        asked = ("check", "--subject", "nobody", "--type", "model", "--system", "hr-prod", "--server", url, "--token-file", file)
        code, _, err = run(*asked, "--request", "--reason", "x")
        assert (code, err) == (1, "no request was filed: none would change this answer\n")

    def test_a_revoked_token_files_and_sees_nothing(self, land: tuple[signing.Ground, str, Path]) -> None:
        ground, url, file = land
        gate = Gate(url, token=file.read_text(), retries=0)
        denied = gate.check("model-a", "hr-prod", type="model")
        task = gate.request(denied, justification="x")
        revoke_token(actor=world.ACTOR, token=ServiceToken.objects.get(person=ground.asker.person))
        for call in (lambda: gate.task(task.id), lambda: gate.request(denied, justification="y")):
            with pytest.raises(RequestRefused) as refused:
                call()
            assert refused.value.code == "not_authenticated"
