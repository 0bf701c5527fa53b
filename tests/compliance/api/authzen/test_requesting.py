"""A denial becomes a request that people sign, is looked at until they have, and is asked again: over HTTP, and what is refused."""

from collections.abc import Iterator
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.db import OperationalError, connection
from django.http import HttpResponse

from compliance.api.authzen import limits, requesting
from compliance.api.authzen.limits import Buckets
from compliance.client.answers import Question, judge
from compliance.models import Decision, Grant, LedgerEntry, ServiceToken, SignOffRequest
from compliance.selectors.access_tasks import TASK_KEPT
from compliance.services import access_requests
from compliance.services.accounts import deactivate_account
from compliance.services.people import revoke_token, token_digest
from compliance.services.roles import end_role
from compliance.services.stopping import revoke_grant, suspend_grant
from compliance.vocabulary import Meaning, RequestKind, Role
from evaluations.kernel import clock
from evaluations.kernel.canonical import timestamp
from evaluations.kernel.clock import now
from evaluations.services.subjects import register_subject_version
from tests.compliance.api.authzen.doors import Doors, question
from tests.support import grants, signing, world
from tests.support.asking import ask_token
from tests.support.undoing import undone

URN = "urn:openid:authzen:access-request:error:"


class Land:
    """A subject without a grant, its agent that asks and files, and the people who sign."""

    def __init__(self, ground: signing.Ground, token: str) -> None:
        self.ground = ground
        self.agent = Doors(token)

    def denied(self, doors: Doors | None = None, **asked: Any) -> dict[str, Any]:
        answer = (doors or self.agent).send("evaluation", question(**asked)).json()
        assert answer["decision"] is False
        context: dict[str, Any] = answer["context"]
        return context

    def file(self, denied: dict[str, Any], doors: Doors | None = None, key: str = "", **more: Any) -> HttpResponse:
        """Send what an agent sends about a denial."""
        expires_at = denied.get("access_request", {}).get("expires_at", timestamp(now()))
        denial = {"evaluation_id": denied["evaluation_id"], "expires_at": expires_at}
        return (doors or self.agent).send("requests", {**question(), "denial": denial, **more}, **{"Idempotency-Key": key})

    def look(self, uid: str, doors: Doors | None = None) -> HttpResponse:
        return send(doors or self.agent, "get", f"requests/{uid}")

    def filed(self) -> tuple[str, SignOffRequest]:
        answer = self.file(self.denied())
        assert answer.status_code == 202, answer.content
        uid = answer.json()["task"]["id"]
        return uid, SignOffRequest.objects.get(uid=uid)

    def signed(self) -> tuple[str, Grant]:
        uid, request = self.filed()
        signing.sign(self.ground.owner, request)
        signing.sign(self.ground.security, request)
        return uid, Grant.objects.get(request=request)

    def approval(self, uid: str) -> dict[str, Any]:
        approval: dict[str, Any] = self.look(uid).json()["result"]["approval"]
        return approval

    def again(self, approval: Any, **asked: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.agent.send("evaluation", {**question(**asked), "context": {"approval": approval}}).json()
        return answer


def send(doors: Doors, method: str, path: str) -> HttpResponse:
    call = getattr(doors.client, method)
    answer: HttpResponse = call(f"/access/v1/{path}", headers={"Authorization": f"Bearer {doors.token}"} if doors.token else {})
    return answer


def asked() -> list[SignOffRequest]:
    return list(SignOffRequest.objects.filter(kind=RequestKind.GRANT))


def refused(answer: HttpResponse, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    return problem


@pytest.fixture(scope="module")
def _made(django_db_setup: None, django_db_blocker) -> Iterator[tuple[signing.Ground, str]]:
    with django_db_blocker.unblock(), undone():
        ground = signing.ground()
        yield ground, ask_token(ground.asker, "decide", "request")


@pytest.fixture
def land(_made: tuple[signing.Ground, str]) -> Iterator[Land]:
    with undone():
        yield Land(deepcopy(_made[0]), _made[1])


def test_what_was_denied_is_signed_and_then_allowed(land: Land) -> None:
    denied = land.denied()
    assert denied["next_action"] == "request"
    assert "retry_after" not in denied
    at = datetime.fromisoformat(denied["evaluated_at"])
    assert datetime.fromisoformat(denied["access_request"]["expires_at"]) == at + timedelta(hours=1)

    until = timestamp(now() + timedelta(days=7))
    answer = land.file(
        denied, context={"business_justification": "the nightly sync"}, requested_access={"requested_until": until}
    )
    assert answer.status_code == 202, answer.content
    task = answer.json()["task"]
    assert answer.headers["Location"] == task["status_endpoint"]
    assert (task["status"], task["progress"]["current_step"], task["progress"]["total_steps"]) == ("pending", 1, 2)
    assert "result" not in answer.json()

    request = SignOffRequest.objects.get(uid=task["id"])
    assert (request.kind, request.requester_id) == (RequestKind.GRANT, land.ground.asker.person_id)
    assert "the nightly sync" in request.reason
    assert denied["evaluation_id"] in request.reason
    signing.sign(land.ground.owner, request)
    waiting = land.look(task["id"])
    assert waiting.headers["Retry-After"] == str(requesting.POLL_SECONDS)
    assert waiting.json()["task"]["progress"] == {
        "current_step": 2,
        "total_steps": 2,
        "step_name": "security",
        "awaiting": ["security"],
    }
    assert land.denied()["reason"] == "no_grant"
    signing.sign(land.ground.security, request)

    done = land.look(task["id"])
    assert "Retry-After" not in done.headers
    assert (done.json()["task"]["status"], done.json()["result"]["mode"]) == ("approved", "reevaluate")
    approval, grant = done.json()["result"]["approval"], Grant.objects.get(request=request)
    assert (approval["id"], approval["approved_until"]) == (str(grant.uid), timestamp(grant.ends_at)) == (str(grant.uid), until)
    assert set(done.json()["task"]["links"]) == {"ticket", "review"}

    allowed = land.again(approval)
    assert allowed["decision"] is True
    assert judge(allowed, Question("model-a", "hr-prod", type="model"), at=now()).allowed
    assert not {"next_action", "access_request"} & allowed["context"].keys()


class TestDenials:
    def test_only_what_people_can_sign_may_be_asked_for(self, land: Land) -> None:
        unknown = land.denied(subject="nobody")
        assert (unknown["next_action"], "access_request" in unknown) == ("none", False)
        without = land.denied(action="delete")
        assert (without["reasons"][-1]["code"], without["next_action"]) == ("no_policy", "none")
        refused(land.file(unknown, subject={"type": "model", "id": "nobody"}), 400, "invalid_denial_binding")
        given = {"expires_at": timestamp(datetime.fromisoformat(without["evaluated_at"]) + timedelta(hours=1))}
        body = {**question(action="delete"), "denial": {"evaluation_id": without["evaluation_id"], **given}}
        problem = refused(land.agent.send("requests", body), 400, "not_requestable")
        assert problem["type"] == f"{URN}not_requestable"

    def test_what_passes_is_asked_again(self, land: Land) -> None:
        grants.starting(land.ground, days=3)
        context = land.denied()
        assert (context["reason"], context["next_action"]) == ("grant_not_begun", "retry")
        assert context["retry_after"] == 60 * 60
        assert "access_request" not in context

    def test_an_older_version_is_not_asked_for_but_the_one_that_runs_is(self, land: Land) -> None:
        signing.granted(land.ground)
        register_subject_version(actor=world.ACTOR, subject=land.ground.version.subject, pin={"snapshot": "2"})
        older = land.denied(subject="model-a@1")
        assert (older["reason"], older["next_action"]) == ("subject_changed", "none")
        world.judge_all()
        running = land.denied()
        assert {reason["code"] for reason in running["reasons"]} >= {"no_grant"}
        assert "access_request" not in running, "it is not judged, or not cleared"

    def test_the_address_is_told_where_it_is_known(self, land: Land, settings: Any) -> None:
        assert "endpoint" not in land.denied()["access_request"]
        settings.PUBLIC_URL = "https://gate.example.org/tenant"
        asking = land.denied()["access_request"]
        assert asking["endpoint"] == "https://gate.example.org/tenant/access/v1/requests"
        answer = land.file(land.denied())
        assert answer.json()["task"]["status_endpoint"] == f"{asking['endpoint']}/{answer.json()['task']['id']}"

    def test_each_denial_of_a_batch_says_it(self, land: Land) -> None:
        items = [{}, {"subject": {"type": "model", "id": "nobody"}}, {"resource": {}}]
        answers = land.agent.send("evaluations", {**question(), "evaluations": items}).json()["evaluations"]
        assert [answer["context"].get("next_action") for answer in answers] == ["request", "none", None]


class TestFiling:
    def test_the_same_again_is_the_same_task_and_another_body_is_refused(self, land: Land) -> None:
        denied = land.denied()
        first, second = (land.file(denied, key="k1") for _ in range(2))
        assert first.json() == second.json()
        assert len(asked()) == 1
        problem = refused(land.file(denied, key="k1", context={"x": 1.5}), 409, "duplicate_request")
        assert problem["type"] == f"{URN}duplicate_request"
        refused(land.file(denied, key="no spaces"), 400, "input_refused")

    def test_a_retry_gets_its_task_when_the_denial_is_long_past(self, land: Land) -> None:
        denied = land.denied()
        first = land.file(denied, key="k1")
        with patch.object(access_requests, "now", lambda: now() + timedelta(hours=3)):
            assert land.file(denied, key="k1").json()["task"]["id"] == first.json()["task"]["id"]

    def test_one_denial_makes_one_request_and_one_question_has_one_open(self, land: Land) -> None:
        denied, other = land.denied(), land.denied()
        uid = land.file(denied).json()["task"]["id"]
        for context in (denied, other):
            problem = refused(land.file(context), 409, "duplicate_request")
            assert problem["task"]["id"] == uid
            assert problem["task"]["status_endpoint"].endswith(f"/access/v1/requests/{uid}")
        assert send(land.agent, "post", f"requests/{uid}/cancel").status_code == 200
        refused(land.file(denied), 409, "duplicate_request")
        assert land.file(other).status_code == 202
        assert len(asked()) == 2

    def test_what_was_granted_meanwhile_needs_no_request(self, land: Land) -> None:
        denied = land.denied()
        signing.granted(land.ground)
        assert "by now" in refused(land.file(denied), 400, "not_requestable")["detail"]

    def test_a_grant_that_lost_a_signer_is_asked_for_anew(self, land: Land) -> None:
        signing.granted(land.ground)
        signing.human("Otto Owner", Role.SYSTEM_OWNER, team="hr")
        deactivate_account(actor=signing.actor_of(grants.administrator()), user=land.ground.owner, reason="left")
        denied = land.denied()
        assert (denied["reason"], denied["next_action"]) == ("signer_no_longer_eligible", "request")
        assert land.file(denied).status_code == 202

    def test_what_means_another_version_by_now_is_asked_anew(self, land: Land) -> None:
        denied = land.denied()
        register_subject_version(actor=world.ACTOR, subject=land.ground.version.subject, pin={"snapshot": "2"})
        assert "another version" in refused(land.file(denied), 400, "not_requestable")["detail"]

    def test_an_allow_is_nothing_to_ask_about(self, land: Land) -> None:
        signing.granted(land.ground)
        context = land.agent.send("evaluation", question()).json()["context"]
        at = datetime.fromisoformat(context["evaluated_at"]) + timedelta(hours=1)
        body = {**question(), "denial": {"evaluation_id": context["evaluation_id"], "expires_at": timestamp(at)}}
        refused(land.agent.send("requests", body), 400, "not_requestable")

    def test_an_old_denial_is_gone(self, land: Land) -> None:
        denied = land.denied()
        with patch.object(access_requests, "now", lambda: now() + timedelta(hours=1)):
            problem = refused(land.file(denied), 410, "expired_denial")
        assert problem["type"] == f"{URN}expired_denial"
        assert land.file(denied).status_code == 202, "refusing it took nothing"

    def test_a_denial_binds_to_who_was_denied_and_what(self, land: Land) -> None:
        denied = land.denied()
        stranger = Doors(ask_token(signing.human("Fred Foreign", Role.REQUESTER, team="it"), "decide", "request"))
        said = {
            refused(land.file(context, doors), 400, "invalid_denial_binding")["detail"]
            for context, doors in (
                (denied, stranger),
                ({**denied, "evaluation_id": "00000000-0000-4000-8000-000000000000"}, land.agent),
            )
        }
        assert len(said) == 1, "nobody learns whether there is one"
        for changed in (
            {"subject": {"type": "model", "id": "model-a@1"}},
            {"subject": {"type": "subject", "id": "model-a"}},
            {"subject": {"type": "model", "id": "model-a", "properties": {"fingerprint": land.ground.version.digest}}},
            {"action": {"name": "delete"}},
            {"resource": {"type": "system", "id": "it-prod"}},
            {"denial": {"evaluation_id": "dec_1", "expires_at": denied["access_request"]["expires_at"]}},
            {"denial": {"binding_token": "e30.e30.e30", "expires_at": denied["access_request"]["expires_at"]}},
            {"denial": {"evaluation_id": denied["evaluation_id"], "expires_at": timestamp(now() + timedelta(days=9))}},
        ):
            problem = refused(land.file(denied, **changed), 400, "invalid_denial_binding")
            assert problem["type"] == f"{URN}invalid_denial_binding", changed
        assert not asked()
        colleague = Doors(ask_token(land.ground.asker, "request:hr-prod"))
        assert land.file(denied, colleague).status_code == 202, "another token of the same person"

    @pytest.mark.parametrize(
        ("more", "field"),
        [
            ({"items": [{}]}, "items"),
            ({"callback": {"endpoint": "https://agent.example.org"}}, "callback"),
            ({"requested_access": {"requested_until": "tomorrow"}}, "requested_access.requested_until"),
            ({"requested_access": {"requested_until": "2020-01-01T00:00:00Z"}}, "requested_access.requested_until"),
            ({"requested_access": {"emergency": "yes"}}, "requested_access.emergency"),
            ({"context": {"business_justification": 7}}, "context.business_justification"),
            ({"context": {"business_justification": "x" * 3_501}}, "context.business_justification"),
            ({"context": {"business_justification": "a\x00b"}}, "context.business_justification"),
            ({"context": []}, "context"),
            ({"denial": {"evaluation_id": "00000000-0000-4000-8000-000000000000"}}, "denial.expires_at"),
        ],
    )
    def test_what_is_wrong_is_named(self, land: Land, more: dict[str, Any], field: str) -> None:
        problem = refused(land.file(land.denied(), **more), 400, "input_refused")
        assert [found["field"] for found in problem["problems"]] == [field]
        assert problem["type"].startswith("urn:problem-type:writegate:")

    @pytest.mark.parametrize(
        "body", [b"", b"{", b"[]", b'{"subject": 1, "subject": 2}', b"{}", b'{"subject": {"type": "model"}}']
    )
    def test_what_is_no_request_is_400(self, land: Land, body: bytes) -> None:
        refused(land.agent.send("requests", body), 400, "invalid")

    def test_an_emergency_is_told_to_who_signs_and_changes_nothing(self, land: Land) -> None:
        answer = land.file(land.denied(), requested_access={"emergency": True})
        request = SignOffRequest.objects.get(uid=answer.json()["task"]["id"])
        assert "emergency" in request.reason
        assert "No justification was given." in request.reason
        assert answer.json()["task"]["progress"]["total_steps"] == 2
        assert Grant.objects.count() == 0

    def test_without_an_end_it_is_for_as_long_as_is_usual(self, land: Land) -> None:
        _, grant = land.signed()
        assert timedelta(days=29) < grant.ends_at - now() <= timedelta(days=30)

    def test_the_filing_service_says_no_as_ever(self, land: Land) -> None:
        denied = land.denied()
        far = timestamp(now() + timedelta(days=400))
        refused(land.file(denied, requested_access={"requested_until": far}), 409, "not_cleared")
        end_role(actor=signing.actor_of(grants.administrator()), membership=land.ground.asker.person.roles.get())
        refused(land.file(denied), 403, "not_a_requester")
        assert not asked()

    def test_the_log_tells_of_both(self, land: Land) -> None:
        land.filed()
        land.file(land.denied())
        assert LedgerEntry.objects.filter(action="request.filed").count() == 1
        assert LedgerEntry.objects.filter(action="request.refused").count() == 1


class TestTasks:
    def test_it_is_there_for_those_who_see_the_request(self, land: Land) -> None:
        uid, _ = land.filed()
        for account, scopes, status in (
            (land.ground.asker, ["request:hr-prod"], 200),
            (land.ground.owner, ["request"], 200),
            (land.ground.asker, ["request:it-prod"], 404),
            (signing.human("Fred Foreign", Role.REQUESTER, team="it"), ["request"], 404),
            (land.ground.asker, ["decide", "read"], 403),
        ):
            assert land.look(uid, Doors(ask_token(account, *scopes))).status_code == status, scopes
        for unknown in ("00000000-0000-4000-8000-000000000000", "arq_1"):
            assert refused(land.look(unknown), 404, "unknown_task")["type"] == f"{URN}unknown_task"

    def test_only_requests_for_a_grant_are_tasks(self, land: Land) -> None:
        grant = signing.granted(land.ground)
        suspend_grant(actor=signing.actor_of(land.ground.security), grant=grant, reason="to look at it")
        made = grants.request_reinstatement(actor=signing.actor_of(land.ground.asker), grant=grant, reason="all is well")
        refused(land.look(str(made.uid)), 404, "unknown_task")
        assert land.look(str(grant.request.uid)).json()["task"]["status"] == "approved", "whoever filed it"

    def test_a_rejected_one_is_denied(self, land: Land) -> None:
        uid, request = land.filed()
        signing.sign(land.ground.security, request, Meaning.REJECTED)
        told = land.look(uid).json()
        assert (told["task"]["status"], "result" in told) == ("denied", False)

    def test_it_is_cancelled_once_and_by_who_asked(self, land: Land) -> None:
        uid, _ = land.filed()
        owner = Doors(ask_token(land.ground.owner, "request"))
        refused(send(owner, "post", f"requests/{uid}/cancel"), 403, "not_the_requester")
        told = send(land.agent, "post", f"requests/{uid}/cancel")
        assert (told.status_code, told.json()["task"]["status"]) == (200, "cancelled")
        assert refused(send(land.agent, "post", f"requests/{uid}/cancel"), 409, "invalid_task_state")["type"].startswith(URN)
        assert land.denied()["next_action"] == "request"

    def test_time_ends_it_and_then_it_is_told_of_no_more(self, land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
        uid, request = land.filed()
        for after, status in ((timedelta(0), "expired"), (TASK_KEPT - timedelta(seconds=1), "expired"), (TASK_KEPT, "")):
            monkeypatch.setattr(requesting, "now", lambda after=after: request.expires_at + after)
            if status:
                assert land.look(uid).json()["task"]["status"] == status
            else:
                assert refused(land.look(uid), 410, "task_expired")["type"] == f"{URN}task_expired"

    def test_an_approval_is_told_of_as_long_as_it_lasts(self, land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
        grant = signing.granted(land.ground, days=80)
        for after, status in ((-timedelta(seconds=1), 200), (timedelta(0), 410)):
            monkeypatch.setattr(requesting, "now", lambda after=after: grant.ends_at + after)
            assert land.look(str(grant.request.uid)).status_code == status


class TestAsking_again:  # noqa: N801
    """The approval changes nothing of the judgement; what became of it is said where the answer is no."""

    def test_what_is_not_covered_is_out_of_scope(self, land: Land) -> None:
        uid, _ = land.signed()
        approval = land.approval(uid)
        for other in ({"action": "delete"}, {"system": "it-prod"}, {"subject": "nobody"}):
            context = land.again(approval, **other)["context"]
            assert (context["reason"], context["next_action"]) == ("out_of_scope", "none"), other

    def test_a_revoked_one_is_over_and_may_be_asked_for_anew(self, land: Land) -> None:
        uid, grant = land.signed()
        approval = land.approval(uid)
        revoke_grant(actor=signing.actor_of(land.ground.security), grant=grant, reason="enough")
        context = land.again(approval)["context"]
        assert (context["reason"], context["reasons"][0]["code"]) == ("approval_expired", "grant_revoked")
        assert context["next_action"] == "request"
        assert land.file(context).status_code == 202

    def test_a_suspended_one_is_denied_by_what_is_now(self, land: Land) -> None:
        uid, grant = land.signed()
        approval = land.approval(uid)
        suspend_grant(actor=signing.actor_of(land.ground.security), grant=grant, reason="to look at it")
        context = land.again(approval)["context"]
        assert (context["reason"], context["next_action"]) == ("policy_denied", "none")

    def test_one_that_has_not_begun_is_pending(self, land: Land) -> None:
        grant = grants.starting(land.ground)
        context = land.again(land.approval(str(grant.request.uid)))["context"]
        assert (context["reason"], context["next_action"], context["retry_after"]) == ("grant_pending", "retry", 3_600)

    def test_what_passes_by_itself_keeps_its_own_reason(self, land: Land) -> None:
        uid, _ = land.signed()
        approval = land.approval(uid)
        world.submit(world.submission("model-a", world.observation("92")))
        later = clock.now() + timedelta(minutes=5)
        with patch("compliance.services.decisions.now", lambda: later):
            context = land.again(approval)["context"]
        assert (context["reason"], context["next_action"]) == ("verdict_overdue", "retry")

    @pytest.mark.parametrize("approval", [7, {}, {"id": 7}, {"id": "apr_1"}, {"id": "00000000-0000-4000-8000-000000000000"}])
    def test_what_is_no_approval_is_not_verified(self, land: Land, approval: Any) -> None:
        context = land.again(approval)["context"]
        assert (context["reason"], context["next_action"]) == ("approval_unverifiable", "request")

    def test_neither_is_a_changed_one_nor_somebody_elses(self, land: Land) -> None:
        uid, grant = land.signed()
        approval = land.approval(uid)
        revoke_grant(actor=signing.actor_of(land.ground.security), grant=grant, reason="enough")
        assert land.again({**approval, "state": "sha256:0"})["context"]["reason"] == "approval_unverifiable"
        stranger = Doors(ask_token(signing.human("Fred Foreign", Role.REQUESTER, team="it"), "decide"))
        body = {**question(), "context": {"approval": approval}}
        assert stranger.send("evaluation", body).json()["context"]["reason"] == "approval_unverifiable"

    def test_each_item_of_a_batch_has_its_own(self, land: Land) -> None:
        uid, _ = land.signed()
        approval = land.approval(uid)
        items = [{}, {"subject": {"type": "model", "id": "x"}, "context": {}}, {"action": {"name": "delete"}}, {"resource": {}}]
        body = {**question(), "context": {"approval": approval}, "evaluations": items}
        told = land.agent.send("evaluations", body).json()["evaluations"]
        assert [one["decision"] for one in told] == [True, False, False, False]
        assert [one["context"].get("reason") for one in told] == [None, "unknown_subject", "out_of_scope", None]

    def test_many_cost_no_more_queries_than_one(self, land: Land, django_assert_max_num_queries: Any) -> None:
        uid, grant = land.signed()
        approval = land.approval(uid)
        suspend_grant(actor=signing.actor_of(land.ground.security), grant=grant, reason="odd")
        others = [{"context": {"approval": {"id": f"00000000-0000-4000-8000-{number:012}"}}} for number in range(100)]
        body = {**question(), "context": {"approval": approval}, "evaluations": [{}] * 100 + others}
        with django_assert_max_num_queries(8):
            told = land.agent.send("evaluations", body).json()["evaluations"]
        assert [one["context"]["reason"] for one in told] == ["policy_denied"] * 100 + ["approval_unverifiable"] * 100

    def test_what_is_no_question_stays_what_it_is(self, land: Land) -> None:
        body = {**question(), "context": {"approval": {"id": "apr_1"}}, "evaluations": [{}, 5, None]}
        told = land.agent.send("evaluations", body).json()["evaluations"]
        assert [one["context"].get("reason", "error") for one in told] == ["approval_unverifiable", "error", "error"]
        for items in (5, "x", True, {"context": {}}):
            answer = land.agent.send("evaluation", {**body, "evaluations": items})
            assert answer.json()["context"]["reason"] == "approval_unverifiable"

    def test_it_is_recorded_as_if_it_had_not_been_there(self, land: Land) -> None:
        context = land.again({"id": "apr_1"})["context"]
        assert Decision.objects.get(uid=context["evaluation_id"]).codes == ["no_grant"]


class TestFrame:
    def test_without_a_token_that_holds_it_is_401(self, land: Land) -> None:
        other = ask_token(land.ground.asker, "request")
        revoke_token(actor=world.ACTOR, token=ServiceToken.objects.latest("created_at"))
        for secret in ("", "wg_é", f"{land.agent.token}x", other):
            answer = send(Doors(secret), "get", "requests/x")
            refused(answer, 401, "not_authenticated")
            assert answer.headers["WWW-Authenticate"] == "Bearer"

    def test_without_the_scope_it_is_403(self, land: Land) -> None:
        denied = land.denied()
        for scope in ("decide", "read", "request:it-prod"):
            refused(land.file(denied, Doors(ask_token(land.ground.asker, scope))), 403, "scope_missing")

    def test_another_method_is_405(self, land: Land) -> None:
        for method, path, allowed in (
            ("get", "requests", "POST"),
            ("delete", "requests/x", "GET"),
            ("get", "requests/x/cancel", "POST"),
        ):
            answer = send(land.agent, method, path)
            refused(answer, 405, "method_not_allowed")
            assert answer.headers["Allow"] == allowed

    def test_too_many_are_429(self, land: Land) -> None:
        held = Buckets(rate=10, size=20, most=3)
        with patch.object(limits, "questions", lambda: held):
            assert land.look("x").status_code == 404
            answer = land.look("x")
            refused(answer, 429, "too_many")
            assert int(answer.headers["Retry-After"]) >= 3
            assert land.agent.send("evaluation", question()).status_code == 429

    def test_what_a_token_may_not_do_is_counted_once_it_is_known(self, land: Land) -> None:
        held = Buckets(rate=1, size=requesting.COST + 3, most=3, clock=lambda: 100.0)
        filer, asker = (Doors(ask_token(land.ground.asker, scope)) for scope in ("request", "decide"))
        with patch.object(limits, "questions", lambda: held):
            assert land.look("x", filer).status_code == 404
            assert [filer.send("evaluation", question()).status_code for _ in range(4)] == [403, 403, 403, 429]
            land.denied(asker)
            held.take(token_digest(asker.token), requesting.COST)
            assert [land.look("x", asker).status_code for _ in range(3)] == [403, 403, 429]

    def test_a_closed_bucket_costs_no_query(self, land: Land, django_assert_num_queries: Any) -> None:
        held = Buckets(rate=10, size=20, most=3)
        held.take(token_digest(land.agent.token), 100)
        with patch.object(limits, "questions", lambda: held), django_assert_num_queries(0):
            refused(land.look("x"), 429, "too_many")

    def test_an_address_of_which_too_many_were_refused_waits_and_a_known_token_does_not(self, land: Land) -> None:
        held = Buckets(rate=1, size=2, most=3, clock=lambda: 100.0)
        with patch.object(limits, "failures", lambda: held):
            assert land.look("x").status_code == 404
            codes = [send(Doors("wg_guessed"), "get", "requests/x").status_code for _ in range(3)]
            assert codes == [401, 401, 429]
            assert land.look("x").status_code == 404

    def test_without_a_database_it_is_503(self, land: Land) -> None:
        with (
            patch.object(requesting, "find_task", side_effect=OperationalError("gone")),
            patch("compliance.api.authzen.problems.connections"),
        ):
            answer = land.look("00000000-0000-4000-8000-000000000000")
        refused(answer, 503, "database_unavailable")
        assert answer.headers["Retry-After"] == "1"

    def test_what_nobody_foresaw_is_500_and_shows_nothing(self, land: Land) -> None:
        with patch.object(requesting, "find_task", side_effect=KeyError("wg_secret")):
            answer = land.look("00000000-0000-4000-8000-000000000000")
        assert "wg_secret" not in str(refused(answer, 500, "internal_error"))

    def test_the_id_of_the_request_comes_back(self, land: Land) -> None:
        answer = land.agent.send("requests", b"{", **{"X-Request-ID": "run-7"})
        assert answer.headers["X-Request-ID"] == refused(answer, 400, "invalid")["request_id"] == "run-7"
        assert answer.headers["Cache-Control"] == "no-store"


def test_real_answers_are_as_the_schema_describes_them(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    # Requests that come over WSGI end by closing the connection, which here is the test's own.
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)
    described = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())
    headers = {"Authorization": f"Bearer {land.agent.token}"}

    def call(path: str, method: str, status: int, **given: Any) -> Any:
        operation = described[f"/access/v1/{path}"][method]
        got = operation.Case(**given).call(headers=headers)
        assert got.status_code == status, got.text
        operation.validate_response(got)
        return got.json()

    denied = call("evaluation", "POST", 200, body=question(), media_type="application/json")["context"]
    denial = {"evaluation_id": denied["evaluation_id"], "expires_at": denied["access_request"]["expires_at"]}
    filed = {"body": {**question(), "denial": denial}, "media_type": "application/json"}
    uid = {"path_parameters": {"id": call("requests", "POST", 202, **filed)["task"]["id"]}}
    call("requests", "POST", 409, **filed)
    call("requests", "POST", 400, body={**filed["body"], "items": []}, media_type="application/json")
    call("requests/{id}", "GET", 200, **uid)
    call("requests/{id}", "GET", 404, path_parameters={"id": "00000000-0000-4000-8000-000000000000"})
    call("requests/{id}/cancel", "POST", 200, **uid)
    call("requests/{id}/cancel", "POST", 409, **uid)
    signed = land.signed()[0]
    call("requests/{id}", "GET", 200, path_parameters={"id": signed})
