"""What gateways serve: kept without secrets, registered as routes, held against grants, and told of once where it reaches too far."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from compliance import tasks
from compliance.models import DriftNotice, GrantEvent, LedgerEntry, OutboxMessage, RoutingInventory
from compliance.selectors.gateways import last_check_at
from compliance.selectors.population import population_report
from compliance.selectors.routing import (
    allowed_routing,
    newest_inventory,
    plain_report,
    read_routing_report,
    report_lines,
    route_keys,
    running_routes,
    versions_meant,
)
from compliance.services.idempotency import IdempotencyKeyReused
from compliance.services.registrations import RoleMissing
from compliance.services.routing import Imported, reconcile_routes
from compliance.vocabulary import GrantStatus, NoticeKind
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from evaluations.models import Subject, SubjectVersion
from evaluations.services.agents import register_route
from evaluations.services.subjects import assign_alias, register_subject, register_subject_version
from policies.language.routing import shown_path
from tests.support import routing, signing, world
from tests.support.undoing import undone
from tests.support.world import FIXTURES

pytestmark = pytest.mark.django_db

R = {"r": "lab/a", "b": "lab/b", "c": "lab/c"}
TO_BOTH = {"fallbacks": [{"r": ["b", "c"]}]}


@pytest.fixture(autouse=True)
def _mails(settings) -> None:
    settings.NOTICE_MAIL_URL = "mailto://127.0.0.1:9?from=gate@example.org"


@pytest.fixture(scope="module")
def _module_land(django_db_setup: None, django_db_blocker) -> Iterator[signing.Ground]:
    """The ground, whose own model is `lab/a` in every gateway, beside `lab/b` and `lab/c`."""
    with django_db_blocker.unblock(), undone():
        found = signing.ground("91")
        routing.models("a", "b", "c")
        yield found


def model(letter: str) -> SubjectVersion:
    return SubjectVersion.objects.select_related("subject").get(subject__key=f"model-{letter}")


def entries(action: str) -> int:
    return LedgerEntry.objects.filter(action=action).count()


def told() -> list[tuple[str, str, str]]:
    """Return of every notice of a route: whose grant, what is wrong, and the path."""
    rows = DriftNotice.objects.filter(cause="route_changed").select_related("grant__subject_version__subject").order_by("id")
    return [
        (row.grant.subject_version.subject.key, part["problem"], shown_path(part["path"]))
        for row in rows
        for part in row.detail["routes"]
    ]


def standing(land: signing.Ground, name: str = "litellm") -> dict[str, tuple[bool, list[str]]]:
    """Return by name whether it is cleared, and each path that stands against it."""
    inventory = newest_inventory(name=name)
    assert inventory is not None
    return {
        each.name: (
            each.cleared,
            [f"{reach.problem}: {shown_path(reach.path)}" for reach in each.members if reach.problem]
            + [f"{opened.reason}: {shown_path(opened.path)}" for opened in each.opens],
        )
        for each in read_routing_report(inventory, land.system, "write", now())
    }


class TestCaseO21:
    def test_a_grant_for_the_first_alone_names_the_others_with_their_paths(self, land: signing.Ground) -> None:
        routing.grant_for(land, land.version)
        routing.hand_in((FIXTURES / "routing" / "fallbacks.yaml").read_bytes())
        assert standing(land) == {
            "r": (False, ["no_grant: r → fallback → b → lab/b", "no_grant: r → fallback → c → lab/c"]),
            "b": (False, ["no_grant: b → lab/b"]),
            "c": (False, ["no_grant: c → lab/c"]),
        }

    def test_with_all_three_it_is_cleared_and_comes_back_as_it_was(self, land: signing.Ground) -> None:
        for letter in "abc":
            routing.grant_for(land, model(letter))
        inventory = routing.hand_in(routing.gateway(R, **TO_BOTH)).inventory
        assert standing(land) == {"r": (True, []), "b": (True, []), "c": (True, [])}
        allowed = allowed_routing(inventory, land.system, "write", now())
        assert [item["model_name"] for item in allowed["model_list"]] == ["r", "b", "c"]
        assert allowed["router_settings"] == TO_BOTH
        assert allowed_routing(inventory, land.system, "delete", now())["model_list"] == []

    def test_a_route_that_nobody_serves_is_not_there(self, land: signing.Ground) -> None:
        routing.hand_in(routing.gateway(R))
        assert "nobody" not in standing(land)
        assert not Subject.objects.filter(key="nobody").exists()

    def test_a_grant_elsewhere_or_for_another_act_or_that_ended_clears_nothing(self, land: signing.Ground) -> None:
        grant = routing.grant_for(land, land.version)
        inventory = routing.hand_in(routing.gateway({"r": "lab/a"})).inventory
        (here,) = read_routing_report(inventory, land.system, "write", now())
        (act,) = read_routing_report(inventory, land.system, "delete", now())
        (then,) = read_routing_report(inventory, land.system, "write", grant.ends_at + timedelta(seconds=1))
        assert (here.cleared, act.cleared, then.cleared) == (True, False, False)


class TestHandingIn:
    def test_it_keeps_no_secret_and_has_one_entry(self, land: signing.Ground) -> None:
        made = routing.hand_in((FIXTURES / "routing" / "fallbacks.yaml").read_bytes(), name="prod-gateway")
        assert (made.is_new, made.registered) == (True, ("b@1", "c@1", "r@1"))
        inventory = RoutingInventory.objects.get()
        assert b"made-up" not in bytes(inventory.content)
        entry = json.loads(bytes(LedgerEntry.objects.get(action="routing.imported").content))
        assert entry["new"] == {"name": "prod-gateway", "routes": 3, "open": 0}
        assert entry["digests"] == {"routing_inventory": inventory.digest}
        assert not any(b"made-up" in bytes(entry.content) for entry in LedgerEntry.objects.all())
        assert [line.examples for line in population_report() if line.table == "compliance_routinginventory"] == [()]

    def test_the_same_again_is_the_one_in_effect_and_going_back_is_another(self, land: signing.Ground) -> None:
        first = routing.hand_in(routing.gateway(R))
        again = routing.hand_in(routing.gateway(R).replace(b"sk-made-up", b"sk-rotated"))
        assert (again.inventory, again.is_new, again.registered) == (first.inventory, False, ())
        routing.hand_in(routing.gateway(R, **TO_BOTH))
        back = routing.hand_in(routing.gateway(R))
        assert (back.is_new, back.inventory.digest, back.registered) == (True, first.inventory.digest, ("r@1",))
        assert RoutingInventory.objects.count() == entries("routing.imported") == 3
        assert running_routes(["r"])["r"].number == 1

    def test_every_name_that_is_no_key_is_told_and_nothing_is_kept(self, land: signing.Ground) -> None:
        body = routing.gateway({"GPT": "lab/a", "hr аgent": "lab/b", "r@1": "lab/c", "lab/*": "lab/*"})
        with pytest.raises(InputRefused) as refused:
            routing.hand_in(body)
        assert [problem.message.split("`")[1] for problem in refused.value.problems] == ["GPT", "hr аgent", "r@1"]
        assert not RoutingInventory.objects.exists()
        assert entries("routing.refused") == 1

    def test_a_key_makes_a_retry_harmless_whatever_the_secrets(self, land: signing.Ground) -> None:
        first = routing.hand_in(routing.gateway(R), idempotency_key="k")
        again = routing.hand_in(routing.gateway(R).replace(b"sk-made-up", b"sk-rotated"), idempotency_key="k")
        assert (again.inventory, again.is_new) == (first.inventory, True)
        with pytest.raises(IdempotencyKeyReused):
            routing.hand_in(routing.gateway(R, **TO_BOTH), idempotency_key="k")
        with pytest.raises(IdempotencyKeyReused):
            routing.hand_in(routing.gateway(R), name="other", idempotency_key="k")

    def test_who_may_not_register_routes_hands_in_nothing(self, land: signing.Ground) -> None:
        with pytest.raises(RoleMissing):
            routing.hand_in(routing.gateway(R), kinds=["agent"])
        assert not RoutingInventory.objects.exists()

    def test_nor_has_them_reconciled_and_a_run_leaves_when_it_was(self, land: signing.Ground, run_tasks_inline) -> None:
        routing.hand_in(routing.gateway(R))
        with pytest.raises(RoleMissing):
            reconcile_routes(actor=world.ACTOR, kinds=["agent"])
        assert last_check_at() is None
        before = now()
        tasks.reconcile_routes.delay()
        assert before <= last_check_at() <= now()


class TestRoutes:
    def test_another_set_is_another_version_and_other_settings_are_none(self, land: signing.Ground) -> None:
        routing.hand_in(routing.gateway(R))
        assert routing.hand_in(routing.gateway(R, routing_strategy="least-busy")).registered == ()
        made = routing.hand_in(routing.gateway(R, **TO_BOTH))
        assert made.registered == ("r@2",)
        version = running_routes(["r"])["r"]
        assert version.closed
        assert {link.member.subject.key for link in version.members.all()} == {"model-a", "model-b", "model-c"}

    def test_the_same_model_at_another_endpoint_is_another_version(self, land: signing.Ground) -> None:
        text = "model_list: [{model_name: r, litellm_params: {model: lab/a, api_base: %s}}]"
        routing.hand_in((text % "https://one.example").encode())
        assert routing.hand_in((text % "https://two.example").encode()).registered == ("r@2",)

    def test_what_was_said_of_an_endpoint_goes_before_what_was_said_of_the_model(self, land: signing.Ground) -> None:
        assign_alias(actor=world.ACTOR, name_as_written="lab/a at https://two.example", subject_version=model("b"))
        made = routing.hand_in(b"model_list: [{model_name: r, litellm_params: {model: lab/a, api_base: https://two.example/}}]")
        ((reach,),) = [each.members for each in plain_report(made.inventory, now())]
        assert (reach.model, reach.at, reach.subject) == ("lab/a", "https://two.example", "model-b@1")

    def test_an_open_one_is_registered_open(self, land: signing.Ground) -> None:
        routing.hand_in(routing.gateway(R, fallbacks=[{"r": ["gone"]}]))
        assert not running_routes(["r"])["r"].closed
        assert standing(land)["r"] == (False, ["no_grant: r → lab/a", "unknown_name: r → fallback → gone"])

    def test_one_with_an_unknown_model_is_registered_open_and_not_cleared(self, land: signing.Ground) -> None:
        routing.grant_for(land, land.version)
        made = routing.hand_in(routing.gateway({"r": ["lab/a", "lab/unheard-of"], "u": "lab/unheard-of", "*": "*"}))
        assert made.registered == ("r@1",)
        assert not running_routes(["r"])["r"].closed
        assert standing(land) == {
            "r": (False, ["unknown_model: r → lab/unheard-of"]),
            "u": (False, ["unknown_model: u → lab/unheard-of"]),
            "*": (False, ["wildcard: *"]),
        }

    def test_one_that_is_no_longer_served_or_knows_nobody_any_more_is_open(self, land: signing.Ground) -> None:
        routing.hand_in(routing.gateway(R))
        made = routing.hand_in(routing.gateway({"r": "lab/unheard-of", "b": "lab/b"}))
        assert made.registered == ("c@2", "r@2")
        for version in running_routes(["r", "c"]).values():
            assert (version.closed, version.members.count()) == (False, 0)

    def test_two_gateways_that_serve_a_name_serve_one_route(self, land: signing.Ground) -> None:
        routing.hand_in(routing.gateway({"r": "lab/a"}), name="one")
        assert routing.hand_in(routing.gateway({"r": "lab/b"}), name="two").registered == ("r@2",)
        assert {link.member.subject.key for link in running_routes(["r"])["r"].members.all()} == {"model-a", "model-b"}
        routing.hand_in(routing.gateway({}), name="two")
        assert {link.member.subject.key for link in running_routes(["r"])["r"].members.all()} == {"model-a"}

    def test_one_whose_name_belongs_to_a_model_stands_beside_it(self, land: signing.Ground) -> None:
        assert routing.hand_in(routing.gateway({"model-a": "model-a", "x/*": "x/*"})).registered == ("route/model-a@1",)
        assert route_keys(["model-a", "other", "x/*"]) == {"model-a": "route/model-a", "other": "other"}

    def test_one_registered_by_hand_stays_as_long_as_the_same_answer(self, land: signing.Ground) -> None:
        register_route(actor=world.ACTOR, key="r", models=["model-a"])
        assert routing.hand_in(routing.gateway({"r": "lab/a"})).registered == ()


class TestNames:
    def test_a_name_means_by_its_assignment_else_by_its_key(self, land: signing.Ground) -> None:
        assert {
            name: found and found.subject.key for name, found in versions_meant(["lab/a", "model-b", "x"], at=now()).items()
        } == {
            "lab/a": "model-a",
            "model-b": "model-b",
        }

    def test_a_name_taken_back_means_nobody_also_where_it_is_a_key(self, land: signing.Ground) -> None:
        assign_alias(actor=world.ACTOR, name_as_written="model-b", subject_version=None)
        assert versions_meant(["model-b"], at=now()) == {"model-b": None}

    def test_a_name_of_an_agent_means_no_model(self, land: signing.Ground) -> None:
        agent = register_subject(actor=world.ACTOR, key="hr-agent", kind="agent")
        version = register_subject_version(actor=world.ACTOR, subject=agent, pin={"p": 1}, members=[land.version])
        assign_alias(actor=world.ACTOR, name_as_written="lab/agent", subject_version=version)
        assert versions_meant(["lab/agent", "hr-agent"], at=now()) == {"lab/agent": None}

    def test_one_that_is_to_hold_later_does_not_hold_yet(self, land: signing.Ground) -> None:
        later = now() + timedelta(days=1)
        assign_alias(actor=world.ACTOR, name_as_written="lab/a", subject_version=model("b"), effective_from=later)
        assert versions_meant(["lab/a"], at=now())["lab/a"] == land.version
        assert versions_meant(["lab/a"], at=later + timedelta(days=1))["lab/a"] == model("b")


class TestDrift:
    def test_what_was_cleared_and_is_no_longer_is_told_once_with_every_path(self, land: signing.Ground, run_tasks_inline) -> None:
        routing.grant_for(land, land.version)
        routing.hand_in(routing.gateway({"r": "lab/a", "b": "lab/b", "u": "lab/u"}))
        assert told() == []
        made = routing.hand_in(routing.gateway({"r": "lab/a", "b": "lab/b", "u": "lab/u"}, fallbacks=[{"r": ["b", "u", "gone"]}]))
        expected = [
            ("model-a", "no_grant", "r → fallback → b → lab/b"),
            ("model-a", "unknown_model", "r → fallback → u → lab/u"),
            ("model-a", "unknown_name", "r → fallback → gone"),
        ]
        assert (made.told, told()) == (3, expected)
        assert entries("drift.noticed") == 3
        messages = OutboxMessage.objects.filter(kind=NoticeKind.DRIFT_NOTICED)
        assert len({message.event_id for message in messages}) == 3
        people = {land.asker.person_id, land.owner.person_id, land.security.person_id}
        assert {message.person_id for message in messages} == people
        texts = " ".join(message.text for message in messages)
        assert "`r` reaches r → fallback → b → lab/b now: `lab/b` (model-b@1) has no grant for `write` on `hr-prod`." in texts
        assert "`r` is open now, since nothing in the inventory has this name: r → fallback → gone." in texts
        for _ in range(2):
            tasks.reconcile_routes.delay()
        assert told() == expected
        assert entries("drift.noticed") == 3

    def test_what_was_never_cleared_is_not_told(self, land: signing.Ground) -> None:
        routing.grant_for(land, land.version)
        routing.hand_in(routing.gateway(R, fallbacks=[{"r": ["b"]}]))
        assert routing.hand_in(routing.gateway(R, **TO_BOTH)).told == 0

    def test_what_stays_cleared_is_not_told(self, land: signing.Ground) -> None:
        for letter in "ab":
            routing.grant_for(land, model(letter))
        routing.hand_in(routing.gateway({"r": "lab/a", "b": "lab/b"}))
        assert routing.hand_in(routing.gateway({"r": "lab/a", "b": "lab/b"}, fallbacks=[{"r": ["b"]}])).told == 0

    def test_an_agent_whose_route_reaches_beyond_what_was_signed_is_told_and_stays(self, land: signing.Ground) -> None:
        subject = register_subject(actor=world.ACTOR, key="hr-agent", kind="agent")
        pinned = [land.version, model("b")]
        version = register_subject_version(actor=world.ACTOR, subject=subject, pin={"prompt": "p"}, members=pinned)
        for letter in "bc":
            world.submit(world.submission(f"model-{letter}", world.observation("91")), f"{letter}.json")
        world.judge_all()
        grant = signing.granted(land._replace(version=version))
        assert routing.hand_in(routing.gateway({"hr-agent": ["lab/a", "lab/b"]})).told == 0
        routing.hand_in(routing.gateway({"hr-agent": ["lab/a", "lab/b"], "c": "lab/c"}, fallbacks=[{"hr-agent": ["c"]}]))
        assert told() == [("hr-agent", "not_pinned", "hr-agent → fallback → c → lab/c")]
        text = OutboxMessage.objects.filter(kind=NoticeKind.DRIFT_NOTICED)[0].text
        assert "`lab/c` (model-c@1) is not among the models that were signed." in text
        assert grant.reload().status == GrantStatus.ACTIVE

    def test_a_route_with_a_grant_of_its_own_is_suspended(self, land: signing.Ground, request: pytest.FixtureRequest) -> None:
        routing.hand_in(routing.gateway(R))
        world.judge_all()
        grant = signing.granted(land._replace(version=running_routes(["r"])["r"]))
        request.getfixturevalue("run_tasks_inline")
        routing.hand_in(routing.gateway(R, **TO_BOTH))
        tasks.review_due_grants.delay()
        event = GrantEvent.objects.get(grant=grant, move="suspended")
        assert (event.cause, event.detail["newer_version"]) == ("subject_changed", "r@2")

    def test_a_name_that_moves_makes_another_version_without_a_new_inventory(
        self, land: signing.Ground, run_tasks_inline
    ) -> None:
        routing.hand_in(routing.gateway(R))
        assign_alias(actor=world.ACTOR, name_as_written="lab/a", subject_version=model("b"))
        done = reconcile_routes(actor=world.ACTOR)
        assert (done.routes, done.registered) == (3, ("r@2",))
        assert reconcile_routes(actor=world.ACTOR).registered == ()
        assign_alias(actor=world.ACTOR, name_as_written="lab/a", subject_version=land.version)
        assert reconcile_routes(actor=world.ACTOR).registered == ("r@1",)
        assert reconcile_routes(actor=world.ACTOR).registered == ()
        assert entries("subject_version.reinstated") == 1
        # And forward again: what ran in between runs no more.
        assign_alias(
            actor=world.ACTOR, name_as_written="lab/a", subject_version=SubjectVersion.objects.get(subject__key="model-b")
        )
        assert reconcile_routes(actor=world.ACTOR).registered == ("r@2",)
        assert running_routes(["r"])["r"].number == 2
        assert reconcile_routes(actor=world.ACTOR).registered == ()


AT_ONE = "lab/a at one (fp8)"
CLOSED = {"order": ["one"], "allow_fallbacks": False, "quantizations": ["fp8"]}


class TestOpenRouter:
    """What was said of a model says nothing of it at a provider; all else is as for every gateway."""

    def hand_in(self, **requests: object) -> Imported:
        return routing.hand_in(json.dumps({"openrouter_routes": requests}).encode())

    def test_it_is_a_gateway_of_its_own_and_a_model_at_a_provider_is_no_other(self, land: signing.Ground) -> None:
        routing.hand_in(routing.gateway({"r": "lab/a"}))
        routing.grant_for(land, land.version)
        made = self.hand_in(r={"model": "lab/a", "provider": CLOSED})
        assert (made.inventory.name, running_routes(["r"])["r"].closed) == ("openrouter", False)
        assert standing(land) == {"r": (True, [])}
        assert standing(land, "openrouter") == {"r": (False, [f"unknown_model: r → {AT_ONE}"])}
        assign_alias(actor=world.ACTOR, name_as_written=AT_ONE, subject_version=land.version)
        assert reconcile_routes(actor=world.ACTOR).registered == ("r@3",)
        assert standing(land, "openrouter") == {"r": (True, [])}

    def test_another_provider_or_quantisation_is_another_version(self, land: signing.Ground) -> None:
        for place in ("one (fp8)", "two (fp8)", "one (bf16)"):
            assign_alias(actor=world.ACTOR, name_as_written=f"lab/a at {place}", subject_version=land.version)
        made = [
            self.hand_in(r={"model": "lab/a", "provider": {**CLOSED, **more}}).registered
            for more in ({}, {"zdr": True}, {"order": ["two"]}, {"quantizations": ["bf16"]}, {"allow_fallbacks": True}, {})
        ]
        assert made == [("r@1",), (), ("r@2",), ("r@3",), ("r@4",), ("r@1",)]

    def test_each_path_to_what_is_not_cleared_is_told_and_what_is_cleared_comes_back(self, land: signing.Ground) -> None:
        routing.grant_for(land, land.version)
        assign_alias(actor=world.ACTOR, name_as_written=AT_ONE, subject_version=land.version)
        assign_alias(actor=world.ACTOR, name_as_written="lab/b at one (fp8)", subject_version=model("b"))
        request = {"model": "lab/a", "provider": CLOSED, "reasoning": None}
        made = self.hand_in(r=request, both={**request, "models": ["lab/b", "lab/c"]}, open={"model": "openrouter/auto"})
        assert standing(land, "openrouter") == {
            "r": (True, []),
            "both": (
                False,
                ["no_grant: both → fallback → lab/b at one (fp8)", "unknown_model: both → fallback → lab/c at one (fp8)"],
            ),
            "open": (
                False,
                [
                    "unknown_model: open → openrouter/auto",
                    "any_provider: open → provider",
                    "any_quantization: open → provider",
                    "auto_model: open → openrouter/auto",
                ],
            ),
        }
        lines = report_lines(read_routing_report(made.inventory, land.system, "write", now()), held=True)
        assert "  open, whichever provider serves the model may answer: open → provider; list the providers in" in "\n".join(
            lines
        )
        allowed = allowed_routing(made.inventory, land.system, "write", now())
        assert allowed == {"openrouter_routes": {"r": {"model": "lab/a", "provider": CLOSED}}}

    def test_what_was_cleared_and_is_no_longer_is_told_once(self, land: signing.Ground, run_tasks_inline) -> None:
        routing.grant_for(land, land.version)
        assign_alias(actor=world.ACTOR, name_as_written=AT_ONE, subject_version=land.version)
        request = {"model": "lab/a", "provider": CLOSED}
        self.hand_in(r=request)
        made = self.hand_in(r={**request, "models": ["lab/b"], "provider": {**CLOSED, "allow_fallbacks": True}})
        expected = [
            ("model-a", "unknown_model", "r → fallback → lab/b at one (fp8)"),
            ("model-a", "any_provider", "r → provider"),
        ]
        assert (made.told, told()) == (2, expected)
        texts = " ".join(message.text for message in OutboxMessage.objects.filter(kind=NoticeKind.DRIFT_NOTICED))
        assert "`r` is open now, since whichever provider serves the model may answer: r → provider." in texts
        for _ in range(2):
            tasks.reconcile_routes.delay()
        assert told() == expected

    def test_every_name_that_is_no_key_is_told_and_nothing_is_kept(self, land: signing.Ground) -> None:
        with pytest.raises(InputRefused) as refused:
            self.hand_in(**{"GPT": {}, "r@1": {}})
        assert {problem.field for problem in refused.value.problems} == {"openrouter_routes"}
        assert [problem.message.split("`")[1] for problem in refused.value.problems] == ["GPT", "r@1"]
        assert not RoutingInventory.objects.exists()
