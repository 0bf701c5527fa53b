"""What gateways serve, over the API: handed in as YAML or JSON, shown with what stands against each name, and given back as allowed."""

from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.db import connection

from compliance.models import LedgerEntry, RoutingInventory
from compliance.vocabulary import Role
from evaluations.services.subjects import assign_alias
from policies.language.routing_forms import names_in, read_routing
from policies.language.routing_inventory import inventory_of
from tests.compliance.api.callers import as_person, as_token, post
from tests.compliance.api.world import V1, Api
from tests.support import routing, signing, world

YAML = """\
model_list:
  - {model_name: r, litellm_params: {model: lab/a, api_key: sk-made-up}}
  - {model_name: b, litellm_params: {model: lab/b}}
router_settings:
  fallbacks: [{r: [b]}]
"""


@pytest.fixture
def named(land: signing.Ground) -> signing.Ground:
    """The ground, whose own model is `lab/a`; `lab/b` is nobody's."""
    assign_alias(actor=world.ACTOR, name_as_written="lab/a", subject_version=land.version)
    world.judge_all()
    return land


@pytest.fixture
def machine(named: signing.Ground) -> Api:
    return as_token(signing.human("Ada Admin", Role.ADMINISTRATOR), "register", "read")


def hand_in(api: Api, body: str = YAML, query: str = "", content_type: str = "application/yaml", **headers: str) -> Any:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.client.post(f"{V1}/routing{query}", body.encode(), content_type=content_type, headers={**api.headers, **given})


class TestHandingIn:
    def test_yaml_is_taken_as_it_is_sent(self, machine: Api) -> None:
        answer = hand_in(machine, query="?name=prod-gateway")
        assert answer.status_code == 201, answer.content
        made = answer.json()
        assert (made["name"], made["previous"], made["is_new"], made["registered"]) == ("prod-gateway", None, True, ["r@1"])
        assert "sk-made-up" not in answer.content.decode()
        shown = machine.client.get(answer.headers["Location"], headers=machine.headers).json()
        assert {part: made[part] for part in ("uid", "digest", "name")} == {
            part: shown[part] for part in ("uid", "digest", "name")
        }

    def test_json_carries_the_name_and_the_text(self, machine: Api) -> None:
        first = post(machine, "routing", {"name": "edge", "content": YAML})
        assert (first.status_code, first.json()["name"]) == (201, "edge")
        again = post(machine, "routing", {"content": YAML, "name": "edge"})
        assert (again.status_code, again.json()["uid"], again.json()["is_new"]) == (200, first.json()["uid"], False)
        assert post(machine, "routing", {"content": YAML}).json()["name"] == "litellm"

    def test_a_retry_gets_the_first_answer(self, machine: Api) -> None:
        first = hand_in(machine, Idempotency_Key="k")
        entries = LedgerEntry.objects.count()
        again = hand_in(machine, Idempotency_Key="k")
        assert (again.status_code, again.json()["uid"]) == (201, first.json()["uid"])
        assert LedgerEntry.objects.count() == entries
        other = hand_in(machine, YAML.replace("lab/b", "lab/c"), Idempotency_Key="k")
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")

    @pytest.mark.parametrize(
        ("body", "content_type", "status", "line"),
        [
            (YAML + "router_settings: {}\n", "application/yaml", 400, 6),
            (YAML.replace("model_name: b", "model_name: B"), "application/yaml", 400, None),
            ("# nothing", "application/yaml", 400, 1),
            (YAML, "text/plain", 415, None),
            ("[]", "application/json", 400, None),
            ('{"content": 7}', "application/json", 400, None),
            ('{"content": "", "nmae": "x"}', "application/json", 400, None),
            ('{"content": "", "content": ""}', "application/json", 400, None),
            ('{"content": "model_list: []", "name": "A B"}', "application/json", 400, None),
            ('{"content": "\\ud800"}', "application/json", 400, None),
            ("{", "application/json", 400, None),
        ],
    )
    def test_what_is_wrong_is_told_with_its_line_and_changes_nothing(
        self, machine: Api, body: str, content_type: str, status: int, line: int | None
    ) -> None:
        answer = hand_in(machine, body, content_type=content_type)
        assert answer.status_code == status, answer.content
        assert "sk-made-up" not in answer.content.decode()
        if status == 400:
            assert answer.json()["problems"][0]["line"] == line
        assert not RoutingInventory.objects.exists()

    @pytest.mark.parametrize(
        ("role", "status"), [(Role.ADMINISTRATOR, 201), (Role.SECURITY, 403), (Role.REQUESTER, 403), (Role.AUDITOR, 403)]
    )
    def test_a_person_needs_to_be_an_administrator(self, named: signing.Ground, role: Role, status: int) -> None:
        assert hand_in(as_person(signing.human("Pat Person", role))).status_code == status

    @pytest.mark.parametrize("scope", ["read", "request", "register:hr-prod"])
    def test_a_token_needs_the_whole_scope(self, named: signing.Ground, scope: str) -> None:
        assert hand_in(as_token(named.security, scope)).status_code == 403


OPENROUTER = """\
openrouter_routes:
  r: {model: lab/a, provider: {order: [one], allow_fallbacks: false, quantizations: [fp8]}, user: sk-made-up}
  o: {model: "lab/a:online", provider: {order: [one/fp8], allow_fallbacks: false}}
"""


class TestOpenRouter:
    def test_requests_are_taken_shown_and_given_back_like_a_gateways_names(self, named: signing.Ground, machine: Api) -> None:
        signing.granted(named)
        assign_alias(actor=world.ACTOR, name_as_written="lab/a at one (fp8)", subject_version=named.version)
        made = hand_in(machine, OPENROUTER)
        assert (made.status_code, made.json()["name"], made.json()["registered"]) == (201, "openrouter", ["r@1"])
        again = post(machine, "routing", {"content": OPENROUTER.replace("sk-made-up", "sk-rotated")})
        assert (again.status_code, again.json()["uid"]) == (200, made.json()["uid"])
        opened, cleared = machine.get(f"routing/{made.json()['uid']}", {"system": "hr-prod"}).json()["routes"]
        assert (cleared["name"], cleared["cleared"], cleared["opens"]) == ("r", True, [])
        assert cleared["members"] == [
            {"model": "lab/a", "at": "one (fp8)", "path": "r → lab/a at one (fp8)", "subject": "model-a@1", "problem": ""}
        ]
        assert (opened["name"], opened["cleared"]) == ("o", False)
        assert [(each["reason"], each["path"], each["change"]) for each in opened["opens"]] == [
            ("router_variant", "o → lab/a:online", "name the model without the variant")
        ]
        assert machine.get("routing/allowed", {"system": "hr-prod"}).status_code == 404
        allowed = machine.get("routing/allowed", {"system": "hr-prod", "name": "openrouter"})
        assert "sk-made-up" not in allowed.content.decode()
        assert names_in(read_routing(allowed.content)) == ("r",)

    @pytest.mark.parametrize(
        ("body", "line"), [("model: lab/a\n", 1), (OPENROUTER + "model_list: []\n", 4), (OPENROUTER.replace("[one]", "one"), 2)]
    )
    def test_what_is_wrong_is_told_with_its_line_and_changes_nothing(self, machine: Api, body: str, line: int) -> None:
        answer = hand_in(machine, body)
        assert (answer.status_code, answer.json()["problems"][0]["line"]) == (400, line)
        assert "sk-made-up" not in answer.content.decode()
        assert not RoutingInventory.objects.exists()


class TestReading:
    def test_a_report_names_each_path_that_stands_against_a_name(self, named: signing.Ground, machine: Api) -> None:
        signing.granted(named)
        uid = hand_in(machine).json()["uid"]
        routes = machine.get(f"routing/{uid}", {"system": "hr-prod"}).json()["routes"]
        assert [(route["name"], route["cleared"]) for route in routes] == [("r", False), ("b", False)]
        assert routes[0]["members"] == [
            {"model": "lab/a", "at": "", "path": "r → lab/a", "subject": "model-a@1", "problem": ""},
            {"model": "lab/b", "at": "", "path": "r → fallback → b → lab/b", "subject": "", "problem": "unknown_model"},
        ]
        assign_alias(actor=world.ACTOR, name_as_written="lab/b", subject_version=named.version)
        routes = machine.get(f"routing/{uid}", {"system": "hr-prod", "action": "write"}).json()["routes"]
        assert [(route["name"], route["cleared"]) for route in routes] == [("r", True), ("b", True)]
        routes = machine.get(f"routing/{uid}", {"system": "hr-prod", "action": "delete"}).json()["routes"]
        assert [route["cleared"] for route in routes] == [False, False]

    def test_without_a_system_it_says_who_answers_alone(self, machine: Api) -> None:
        uid = hand_in(machine, YAML.replace("[b]", "[gone]")).json()["uid"]
        routes = machine.get(f"routing/{uid}").json()["routes"]
        assert [route["cleared"] for route in routes] == [None, None]
        (opened,) = routes[0]["opens"]
        assert (opened["reason"], opened["path"]) == ("unknown_name", "r → fallback → gone")

    def test_inventories_are_listed_newest_first(self, machine: Api) -> None:
        first = hand_in(machine).json()
        second = hand_in(machine, YAML.replace("lab/b", "lab/c")).json()
        other = hand_in(machine, query="?name=edge").json()
        assert second["previous"] == first["uid"]
        listed = machine.get("routing").json()["results"]
        assert [each["uid"] for each in listed] == [other["uid"], second["uid"], first["uid"]]
        assert [each["uid"] for each in machine.get("routing", {"name": "edge"}).json()["results"]] == [other["uid"]]

    def test_what_is_allowed_comes_back_as_yaml(self, named: signing.Ground, machine: Api) -> None:
        signing.granted(named)
        hand_in(machine, YAML.replace("lab/b", "lab/a") + "  model_group_alias: {x: b, y: gone}\n")
        answer = machine.get("routing/allowed", {"system": "hr-prod"})
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/yaml; charset=utf-8")
        allowed = inventory_of(read_routing(answer.content))
        assert [deployment.group for deployment in allowed.deployments] == ["r", "b"]
        assert allowed.aliases == (("x", "b"),)
        nothing = machine.get("routing/allowed", {"system": "hr-prod", "action": "delete"})
        assert read_routing(nothing.content) == {"model_list": [], "router_settings": {"fallbacks": []}}

    def test_what_is_not_there_is_404(self, machine: Api) -> None:
        assert machine.get("routing/allowed", {"system": "hr-prod"}).status_code == 404
        uid = hand_in(machine).json()["uid"]
        for path, query in (
            ("routing/allowed", {"system": "nowhere"}),
            ("routing/allowed", {"system": "hr-prod", "name": "edge"}),
            (f"routing/{uid}", {"system": "nowhere"}),
            ("routing/00000000-0000-4000-8000-000000000000", {}),
        ):
            assert machine.get(path, query).status_code == 404, path
        assert machine.get("routing/allowed").status_code == 400

    def test_reading_needs_the_scope_and_what_is_granted_is_told_to_who_may_see_it(
        self, named: signing.Ground, machine: Api
    ) -> None:
        uid = hand_in(machine).json()["uid"]
        held, allowed = f"routing/{uid}?system=hr-prod", "routing/allowed?system=hr-prod"
        for account, scope, statuses in (
            (named.security, "register", (403, 403, 403, 403)),
            (named.security, "read", (200, 200, 200, 200)),
            (named.owner, "read", (200, 200, 200, 200)),
            (named.asker, "read", (200, 200, 404, 404)),
            (named.owner, "read:hr-prod", (403, 403, 403, 200)),
            (named.owner, "read:it-prod", (403, 403, 403, 404)),
        ):
            other = as_token(account, scope)
            assert tuple(other.get(path).status_code for path in ("routing", f"routing/{uid}", held, allowed)) == statuses


def test_real_answers_are_as_the_schema_describes_them(
    named: signing.Ground, machine: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Requests that come over WSGI end by closing the connection, which here is the test's own, with its transaction.
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)
    described = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())
    uid = str(routing.hand_in(YAML.replace("[b]", "[gone]").encode()).inventory.uid)
    for path, parts, query in (
        ("routing", {}, {}),
        ("routing/{uid}", {"uid": uid}, {"system": "hr-prod"}),
        ("routing/{uid}", {"uid": uid}, {}),
        ("routing/allowed", {}, {"system": "hr-prod"}),
    ):
        operation = described[f"{V1}/{path}"]["GET"]
        answer = operation.Case(path_parameters=parts, query=query).call(headers=machine.headers)
        assert answer.status_code == 200, path
        operation.validate_response(answer)
    operation = described[f"{V1}/routing"]["POST"]
    answer = operation.Case(body={"content": YAML}, media_type="application/json").call(headers=machine.headers)
    assert answer.status_code == 201
    operation.validate_response(answer)
