"""Subjects and systems over the API: who may register and change them, what is refused, and what a retry gets."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from compliance.models import IdempotencyKey, LedgerEntry, RoleMembership, Team, User
from compliance.selectors.running import running_version
from compliance.services.people import apply_create_team, create_person, create_token
from compliance.vocabulary import Role
from evaluations.kernel.actor import system_job
from evaluations.kernel.services import service_transaction
from evaluations.models import Subject, SubjectVersion
from policies.models import System
from tests.compliance.api.world import V1, Api, World, with_token

PROMPT, TOOLS = (f"sha256:{letter * 64}" for letter in "ab")
AGENT = {
    "kind": "agent",
    "key": "hr-agent",
    "title": "HR agent",
    "models": ["labs/model-one"],
    "prompt_digest": PROMPT,
    "tool_manifest_digest": TOOLS,
    "harness": {"name": "gym", "version": "1"},
}
SYSTEM = {"key": "hr-prod", "title": "HR production", "domain": "hr", "owner": "hr-platform"}


def send(api: Api, path: str, body: Any, method: str = "POST", **headers: str) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return api.client.generic(
        method, f"{V1}/{path}", content, content_type="application/json", headers={**api.headers, **headers}
    )


@pytest.fixture
def registrar(world: World) -> Api:
    """A client with a token that may register, of a person who owns the systems of `hr-platform`."""
    with service_transaction("tests"):
        team = apply_create_team(actor=system_job("tests"), key="hr-platform", title="HR platform")
        apply_create_team(actor=system_job("tests"), key="finance", title="Finance")
        RoleMembership.objects.create(person=world.user.person, role=Role.SYSTEM_OWNER, team=team, given_by="tests")
    return world.api_with("register", "read")


def signed_in(*roles: Role, team: str = "hr-platform") -> Api:
    user = create_person(
        actor=system_job("tests"), name="Bob", email="bob@example.org", roles=roles, team=Team.objects.get(key=team)
    )
    client = Client()
    client.force_login(User.objects.get(pk=user.pk))
    return Api(client)


class TestSubjects:
    def test_an_agent_is_registered_with_its_version(self, registrar: Api) -> None:
        answer = send(registrar, "subjects", AGENT)
        assert answer.status_code == 201, answer.content
        made = answer.json()
        assert (made["subject"], made["number"], made["is_new"], made["closed"]) == ("hr-agent", 1, True, True)
        assert made["pin"] == {"prompt_digest": PROMPT, "tool_manifest_digest": TOOLS, "harness": {"name": "gym", "version": "1"}}
        assert [one["subject"] for one in made["reaches"]] == ["labs/model-one"]
        found = registrar.client.get(answer.headers["Location"], headers=registrar.headers).json()
        assert found["digest"] == made["digest"]

    def test_the_same_again_is_200_and_a_change_is_a_new_version(self, registrar: Api) -> None:
        send(registrar, "subjects", AGENT)
        again = send(registrar, "subjects", AGENT)
        assert (again.status_code, again.json()["is_new"]) == (200, False)
        changed = send(registrar, "subjects", {**AGENT, "prompt_digest": TOOLS})
        assert (changed.status_code, changed.json()["number"]) == (201, 2)
        of_it = {name: AGENT[name] for name in ("models", "tool_manifest_digest", "prompt_digest")}
        third = send(registrar, "subjects/hr-agent/versions", {**of_it, "harness": {"name": "gym", "version": "2"}})
        assert (third.status_code, third.json()["number"]) == (201, 3)
        assert send(registrar, "subjects/nobody/versions", of_it).status_code == 404

    def test_what_is_registered_again_runs_again_however_often_it_goes_back_and_forth(self, registrar: Api) -> None:
        """A way forward that nobody noted left the version it came from as the one that is asked about."""
        first, second = AGENT, {**AGENT, "prompt_digest": TOOLS}
        for number, body in ((1, first), (2, second), (1, first), (1, first), (2, second), (2, second), (1, first), (2, second)):
            assert send(registrar, "subjects", body).json()["number"] == number
            running = running_version(Subject.objects.get(key="hr-agent"))
            assert running is not None
            assert running.number == number
        again = LedgerEntry.objects.filter(action="subject_version.reinstated").order_by("id")
        told = [(entry.target_id, json.loads(bytes(entry.content))["old"]) for entry in again]
        assert told == [
            ("hr-agent@1", {"version": 2}),
            ("hr-agent@2", {"version": 1}),
            ("hr-agent@1", {"version": 2}),
            ("hr-agent@2", {"version": 1}),
        ]

    def test_a_model_and_a_route_are_registered_too(self, registrar: Api) -> None:
        model = send(registrar, "subjects", {"kind": "model", "key": "m", "provider": "labs", "snapshot": "2026-11-01"})
        assert model.status_code == 201, model.content
        assert model.json()["pin"] == {"provider": "labs", "snapshot": "2026-11-01", "effort": None, "fallbacks": []}
        route = send(registrar, "subjects", {"kind": "route", "key": "r", "models": ["m@1"], "closed": False})
        assert (route.status_code, route.json()["closed"]) == (201, False)
        further = send(registrar, "subjects/m/versions", {"snapshot": "2026-12-01", "effort": "high"})
        assert (further.json()["number"], further.json()["pin"]["provider"]) == (2, "labs")

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({**AGENT, "model": ["x"]}, "model"),
            ({**AGENT, "models": []}, "models"),
            ({**AGENT, "models": "labs/model-one"}, "models"),
            ({**AGENT, "models": ["labs/model-onf"]}, "models[0]"),
            ({**AGENT, "harness": {"name": "gym", "verson": "1"}}, "harness.verson"),
            ({**AGENT, "prompt_digest": 7}, "prompt_digest"),
            ({**AGENT, "closed": "no"}, "closed"),
            ({**AGENT, "key": "hr-аgent"}, "key"),
            ({**AGENT, "kind": "robot"}, "kind"),
            ({"key": "x"}, "kind"),
            ({"kind": "model", "key": "m", "provider": "labs"}, "snapshot"),
            ({"kind": "model", "key": "m", "provider": "labs", "snapshot": "1", "models": ["x"]}, "models"),
            (json.dumps(AGENT)[:-1].encode() + b', "key": "other"}', "key"),
            (b"[]", ""),
            (b"\xff", ""),
            (b"{", ""),
        ],
    )
    def test_what_is_wrong_is_400_with_the_field_and_leaves_nothing(self, registrar: Api, body: Any, field: str) -> None:
        before = (Subject.objects.count(), SubjectVersion.objects.count())
        answer = send(registrar, "subjects", body, **{"Idempotency-Key": "k"})
        assert answer.status_code == 400, answer.content
        assert field in [problem["field"] for problem in answer.json()["problems"]]
        assert (Subject.objects.count(), SubjectVersion.objects.count()) == before
        assert not IdempotencyKey.objects.exists()
        assert send(registrar, "subjects", AGENT, **{"Idempotency-Key": "k"}).status_code == 201

    def test_a_misspelt_member_and_an_unknown_model_get_the_nearest_name(self, registrar: Api) -> None:
        hints = [
            problem["hint"]
            for body in ({**AGENT, "prompt_digets": PROMPT}, {**AGENT, "models": ["labs/model-onf"]})
            for problem in send(registrar, "subjects", body).json()["problems"]
        ]
        assert hints == ["did you mean `prompt_digest`?", "did you mean `labs/model-one`?"]

    def test_a_retry_gets_the_first_answer_and_another_body_a_409(self, registrar: Api) -> None:
        key = {"Idempotency-Key": "run-7"}
        first = send(registrar, "subjects", AGENT, **key)
        entries = LedgerEntry.objects.count()
        again = send(registrar, "subjects", AGENT, **key)
        assert (again.status_code, again.json()) == (201, first.json())
        assert LedgerEntry.objects.count() == entries
        for path, body in (("subjects", {**AGENT, "title": "X"}), ("subjects/hr-agent/versions", AGENT), ("systems", SYSTEM)):
            assert send(registrar, path, body, **key).status_code == 409

    def test_a_key_of_another_kind_is_409(self, registrar: Api) -> None:
        answer = send(registrar, "subjects", {**AGENT, "key": "labs/model-one"})
        assert (answer.status_code, answer.json()["code"]) == (409, "subject_exists")

    @pytest.mark.parametrize(
        ("roles", "agent", "model"),
        [
            ((Role.ADMINISTRATOR,), 201, 201),
            ((Role.SYSTEM_OWNER,), 201, 403),
            ((Role.REQUESTER,), 201, 403),
            ((Role.SECURITY,), 403, 403),
            ((Role.AUDITOR, Role.POLICY_AUTHOR, Role.POLICY_APPROVER, Role.EVIDENCE_STEWARD), 403, 403),
        ],
    )
    def test_a_person_registers_by_her_role(self, registrar: Api, roles: tuple[Role, ...], agent: int, model: int) -> None:
        api = signed_in(*roles)
        assert send(api, "subjects", AGENT).status_code == agent
        body = {"kind": "model", "key": "m", "provider": "labs", "snapshot": "1"}
        answer = send(api, "subjects", body)
        assert answer.status_code == model
        assert model == 201 or answer.json()["code"] in ("role_missing", "scope_missing")

    def test_a_token_needs_the_scope_for_everything(self, world: World, registrar: Api) -> None:
        for scope in ("read", "register:hr-prod", "request"):
            assert send(world.api_with(scope), "subjects", AGENT).status_code == 403


class TestSystems:
    @pytest.fixture
    def system(self, registrar: Api) -> dict[str, Any]:
        answer = send(registrar, "systems", SYSTEM)
        assert answer.status_code == 201, answer.content
        return dict(answer.json())

    def test_a_system_shows_its_blast_radius_with_parts(self, registrar: Api, system: dict[str, Any]) -> None:
        answer = registrar.get("systems/hr-prod")
        assert answer.json() == system
        assert answer.headers["ETag"]
        radius = system["blast_radius"]
        assert (radius["level"], radius["score"]) == ("severe", sum(part["weight"] for part in radius["parts"]))
        assert {part["name"] for part in radius["parts"] if part["value"] == "not stated"} == {
            "people affected",
            "personal data",
            "money at stake",
            "writes a day",
        }
        assert [one["key"] for one in registrar.get("systems", {"owner": "hr-platform"}).json()["results"]] == ["hr-prod"]
        assert registrar.get("systems", {"reversible": "true"}).json()["results"] == []
        assert registrar.get("systems/hr-prod-2").status_code == 404

    def test_the_same_again_is_200_and_other_facts_are_409(self, registrar: Api, system: dict[str, Any]) -> None:
        assert send(registrar, "systems", SYSTEM).status_code == 200
        other = send(registrar, "systems", {**SYSTEM, "reversible": True})
        assert (other.status_code, other.json()["code"]) == (409, "system_exists")
        assert System.objects.get(key="hr-prod").reversible is False

    def test_a_change_needs_what_was_seen(self, registrar: Api, system: dict[str, Any]) -> None:
        seen = registrar.get("systems/hr-prod").headers["ETag"]
        body = {"reversible": True, "money_at_stake_usd": "2500.50", "reason": "restored in a drill"}
        for headers in ({}, {"If-Match": "*"}, {"If-Match": f"W/{seen}"}, {"If-Match": f'{seen}, "x"'}):
            missing = send(registrar, "systems/hr-prod", body, "PATCH", **headers)
            assert (missing.status_code, missing.json()["code"]) == (428, "precondition_required")
        changed = send(registrar, "systems/hr-prod", body, "PATCH", **{"If-Match": seen})
        assert (changed.status_code, changed.json()["money_at_stake_usd"]) == (200, "2500.5")
        assert changed.headers["ETag"] == registrar.get("systems/hr-prod").headers["ETag"] != seen
        stale = send(registrar, "systems/hr-prod", {"title": "X", "reason": "x"}, "PATCH", **{"If-Match": seen})
        assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")
        entry = json.loads(bytes(LedgerEntry.objects.get(action="system.changed").content))
        assert entry["old"] == {"reversible": False, "money_at_stake_usd": None}

    def test_null_takes_a_statement_back(self, registrar: Api, system: dict[str, Any]) -> None:
        for body in ({"people_affected": 5}, {"people_affected": None}):
            seen = registrar.get("systems/hr-prod").headers["ETag"]
            answer = send(registrar, "systems/hr-prod", {**body, "reason": "x"}, "PATCH", **{"If-Match": seen})
            assert answer.json()["people_affected"] == body["people_affected"]

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"reason": "x"}, "reason"),
            ({"title": "X"}, "reason"),
            ({"titel": "X", "reason": "x"}, "titel"),
            ({"open_incident": True, "reason": "x"}, "open_incident"),
            ({"domain": None, "reason": "x"}, "domain"),
            ({"domain": "payroll", "reason": "x"}, "domain"),
            ({"owner": "nobody", "reason": "x"}, "owner"),
            ({"people_affected": -1, "reason": "x"}, "people_affected"),
            ({"people_affected": 1.5, "reason": "x"}, "people_affected"),
            ({"money_at_stake_usd": "1e9", "reason": "x"}, "money_at_stake_usd"),
            (b'{"money_at_stake_usd": NaN, "reason": "x"}', "money_at_stake_usd"),
            (b'{"title": "A", "title": "B", "reason": "x"}', "title"),
        ],
    )
    def test_a_change_that_is_wrong_is_400(self, registrar: Api, system: dict[str, Any], body: Any, field: str) -> None:
        seen = registrar.get("systems/hr-prod").headers["ETag"]
        answer = send(registrar, "systems/hr-prod", body, "PATCH", **{"If-Match": seen})
        assert answer.status_code == 400, answer.content
        assert field in [problem["field"] for problem in answer.json()["problems"]]
        assert registrar.get("systems/hr-prod").headers["ETag"] == seen

    def test_an_incident_is_opened_and_closed(self, registrar: Api, system: dict[str, Any]) -> None:
        key = {"Idempotency-Key": "i"}
        for _ in range(2):
            opened = send(registrar, "systems/hr-prod/incident", {"open": True, "reason": "down"}, **key)
            assert (opened.status_code, opened.json()["open_incident"]) == (200, True)
        assert LedgerEntry.objects.filter(action="incident.opened").count() == 1
        assert send(registrar, "systems/hr-prod/incident", {"open": False, "reason": "up"}, **key).status_code == 409
        assert send(registrar, "systems/hr-prod/incident", {"open": False, "reason": "up"}).json()["open_incident"] is False
        assert send(registrar, "systems/hr-prod/incident", {"open": "yes", "reason": "x"}).status_code == 400
        assert send(registrar, "systems/hr-prod/incident", {"open": True}).status_code == 400
        assert registrar.get("systems/hr-prod/incident").status_code == 405

    @pytest.mark.parametrize(
        ("roles", "team", "status"),
        [
            ((Role.ADMINISTRATOR,), "finance", 200),
            ((Role.SECURITY,), "finance", 200),
            ((Role.SYSTEM_OWNER,), "hr-platform", 200),
            ((Role.SYSTEM_OWNER,), "finance", 403),
            ((Role.REQUESTER, Role.AUDITOR), "hr-platform", 403),
        ],
    )
    def test_only_who_manages_a_system_changes_it(
        self, registrar: Api, system: dict[str, Any], roles: tuple[Role, ...], team: str, status: int
    ) -> None:
        api = signed_in(*roles, team=team)
        seen = api.get("systems/hr-prod").headers["ETag"]
        acts: list[Callable[[], Any]] = [
            lambda: send(api, "systems/hr-prod/incident", {"open": False, "reason": "x"}),
            lambda: send(api, "systems/hr-prod", {"title": "X", "reason": "x"}, "PATCH", **{"If-Match": seen}),
            lambda: send(api, "systems", {**SYSTEM, "key": "another"}),
        ]
        for act, allowed in zip(acts, (200, 200, 201), strict=True):
            answer = act()
            assert answer.status_code == (allowed if status == 200 else 403), answer.content
        if status == 403 and Role.SYSTEM_OWNER in roles:
            assert LedgerEntry.objects.filter(action="system.refused").count() == 2

    def test_a_token_narrowed_to_a_system_reaches_that_one_alone(
        self, world: World, registrar: Api, system: dict[str, Any]
    ) -> None:
        send(registrar, "systems", {**SYSTEM, "key": "hr-test"})
        narrow = world.api_with("register:hr-prod", "read:hr-prod")
        assert send(narrow, "systems/hr-prod/incident", {"open": True, "reason": "x"}).status_code == 200
        assert narrow.get("systems/hr-prod").status_code == 200
        for answer in (
            send(narrow, "systems/hr-test/incident", {"open": True, "reason": "x"}),
            send(narrow, "systems", {**SYSTEM, "key": "hr-new"}),
            narrow.get("systems/hr-test"),
            narrow.get("systems"),
        ):
            assert answer.status_code == 403
        assert send(narrow, "systems", SYSTEM).status_code == 200

    def test_a_token_does_what_its_person_may_and_no_more(self, registrar: Api, system: dict[str, Any]) -> None:
        user = create_person(actor=system_job("tests"), name="Eve", email="eve@example.org", roles=[Role.REQUESTER])
        made = create_token(actor=system_job("tests"), name="ci", scopes=["register", "read"], person=user.person)
        answer = send(with_token(made.secret), "systems/hr-prod/incident", {"open": True, "reason": "x"})
        assert (answer.status_code, answer.json()["code"]) == (403, "role_missing")
        assert System.objects.get(key="hr-prod").open_incident is False
