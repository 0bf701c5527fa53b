"""Agents, routes and models registered whole: what is pinned, what makes a new version, and what is refused."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from compliance.models import LedgerEntry
from evaluations.kernel.errors import InputRefused
from evaluations.models import Subject, SubjectVersion
from evaluations.selectors.subjects import pinned_parts
from evaluations.services.agents import register_agent, register_model, register_route
from evaluations.services.subjects import SubjectExists
from evaluations.signals import subject_version_registered
from policies.models import Verdict
from tests.support import world

PROMPT, TOOLS = (f"sha256:{letter * 64}" for letter in "ab")
HARNESS = {"name": "gym-harness", "version": "2.1"}


def agent(**changes: Any) -> Any:
    given = {
        "key": "hr-agent",
        "title": "HR agent",
        "models": ["model-a", "model-b@1"],
        "prompt_digest": PROMPT,
        "tool_manifest_digest": TOOLS,
        "harness": HARNESS,
        **changes,
    }
    return register_agent(actor=world.ACTOR, **given)


def reached(version: SubjectVersion) -> list[str]:
    return sorted(str(one.member) for one in version.members.select_related("member__subject"))


@pytest.mark.django_db
class TestAgents:
    @pytest.fixture(autouse=True)
    def _models(self) -> None:
        world.register("model-a", "model-b")

    def test_a_registered_agent_is_pinned_by_its_models_prompts_tools_and_harness(self) -> None:
        subject, version, is_new = agent()
        assert (subject.kind, subject.candidate, version.number, is_new, version.closed) == ("agent", True, 1, True, True)
        assert pinned_parts(version) == {"prompt_digest": PROMPT, "tool_manifest_digest": TOOLS, "harness": HARNESS}
        assert reached(version) == ["model-a v1", "model-b v1"]
        actions = LedgerEntry.objects.filter(target_id__startswith="hr-agent").values_list("action", flat=True)
        assert sorted(actions) == ["subject.registered", "subject_version.registered"]

    def test_the_same_again_in_any_order_is_the_same_version(self) -> None:
        _, first, _ = agent()
        for models in (["model-b", "model-a"], ["model-b@1", "model-a@1", "model-a"]):
            _, again, is_new = agent(models=models)
            assert (again, is_new) == (first, False)
        assert LedgerEntry.objects.filter(action="subject_version.registered", target_id__startswith="hr-agent").count() == 1

    @pytest.mark.parametrize(
        "change",
        [
            {"models": ["model-a"]},
            {"prompt_digest": TOOLS},
            {"tool_manifest_digest": PROMPT},
            {"harness": {"name": "gym-harness", "version": "2.2"}},
            {"harness": {"name": "another", "version": "2.1"}},
            {"closed": False},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_any_change_makes_a_new_version(self, change: dict[str, Any]) -> None:
        agent()
        _, version, is_new = agent(**change)
        assert (version.number, is_new) == (2, True)

    def test_a_new_version_of_a_model_that_was_named_without_number_makes_a_new_version(self) -> None:
        agent()
        register_model(actor=world.ACTOR, key="model-a", provider="labs", snapshot="2026-11-01")
        _, version, is_new = agent()
        assert (reached(version), is_new) == (["model-a v2", "model-b v1"], True)

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"models": []}, "models"),
            ({"models": [], "closed": False}, "models"),
            ({"models": ["model-a"] * 101}, "models"),
            ({"models": ["model-c"]}, "models[0]"),
            ({"models": ["model-a", "model-a@2"]}, "models[1]"),
            ({"models": [7]}, "models[0]"),
            ({"models": ["mоdel-a"]}, "models[0]"),
            ({"prompt_digest": ""}, "prompt_digest"),
            ({"prompt_digest": "sha256:12"}, "prompt_digest"),
            ({"tool_manifest_digest": ""}, "tool_manifest_digest"),
            ({"harness": {}}, "harness"),
            ({"harness": {"name": "x"}}, "harness.version"),
            ({"harness": {"name": "x", "version": "1\n"}}, "harness.version"),
            ({"harness": {**HARNESS, "colour": "red"}}, "harness.colour"),
            ({"key": "hr-аgent"}, "key"),
            ({"key": "hr-agent@2"}, "key"),
        ],
    )
    def test_what_lacks_is_named_and_nothing_is_registered(self, change: dict[str, Any], field: str) -> None:
        with pytest.raises(InputRefused) as refused:
            agent(**change)
        assert field in [problem.field for problem in refused.value.problems]
        assert not Subject.objects.filter(kind="agent").exists()
        assert LedgerEntry.objects.filter(action="subject_version.refused").count() == 1

    def test_all_that_lacks_is_named_at_once(self) -> None:
        with pytest.raises(InputRefused) as refused:
            agent(models=["model-c"], prompt_digest="", harness={})
        assert [problem.field for problem in refused.value.problems] == ["prompt_digest", "harness", "models[0]"]
        assert "did you mean `model-" in refused.value.problems[-1].hint

    def test_o_08_a_look_alike_is_refused_with_its_code_point(self) -> None:
        for key in ("clаude-fable-5", "claude‑fable‑5"):
            with pytest.raises(InputRefused, match=r"U\+0430 CYRILLIC|U\+2011 NON-BREAKING HYPHEN"):
                agent(key=key)

    def test_an_agent_behind_an_agent_is_no_model(self) -> None:
        agent()
        with pytest.raises(InputRefused, match="not as a model"):
            agent(key="outer", models=["hr-agent"])

    def test_a_key_of_another_kind_is_refused(self) -> None:
        with pytest.raises(SubjectExists):
            agent(key="model-a", models=["model-b"])

    def test_an_open_set_gets_no_verdict(self) -> None:
        world.propose()
        _, version, _ = agent(closed=False)
        world.judge_all()
        assert not Verdict.objects.filter(subject_version=version).exists()
        _, closed, _ = agent()
        world.judge_all()
        assert Verdict.objects.filter(subject_version=closed).exists()

    def test_a_route_and_a_model_are_registered_the_same_way(self) -> None:
        subject, version, _ = register_route(actor=world.ACTOR, key="gateway/fast", provider="proxy", models=["model-a"])
        assert (subject.kind, reached(version)) == ("route", ["model-a v1"])
        subject, version, is_new = register_model(
            actor=world.ACTOR, key="fable-5", provider="labs", snapshot="2026-11-01", effort="high", fallbacks=["model-a"]
        )
        assert json.loads(bytes(version.pin))["pin"] == {
            "provider": "labs",
            "snapshot": "2026-11-01",
            "effort": "high",
            "fallbacks": ["model-a"],
        }
        assert is_new
        with pytest.raises(InputRefused) as refused:
            register_model(actor=world.ACTOR, key="fable-6", provider="", snapshot="", fallbacks=["é"])
        assert [problem.field for problem in refused.value.problems] == ["provider", "snapshot", "fallbacks[0]"]

    def test_a_version_that_runs_from_now_on_is_announced_after_the_commit(self, django_capture_on_commit_callbacks: Any) -> None:
        heard: list[int] = []

        def hear(subject_version_id: int, **_: Any) -> None:
            heard.append(subject_version_id)

        subject_version_registered.connect(hear)
        try:
            with django_capture_on_commit_callbacks(execute=True):
                _, first, _ = agent()
                _, second, _ = agent(prompt_digest=TOOLS)
                agent(prompt_digest=TOOLS)
                assert heard == []
            assert heard == [first.pk, second.pk]
            with django_capture_on_commit_callbacks(execute=True):
                _, rolled_back, is_new = agent()
            assert (rolled_back, is_new, heard[-1]) == (first, False, first.pk)
        finally:
            subject_version_registered.disconnect(hear)
        entry = LedgerEntry.objects.get(action="subject_version.reinstated")
        assert entry.target_id == "hr-agent@1"


@pytest.mark.slow
def test_registrations_at_once_make_one_version_of_one_pin(committed_db: object) -> None:
    world.register("model-a", "model-b")
    barrier = Barrier(6)

    def run(_: int) -> bool:
        try:
            barrier.wait(timeout=20)
            return bool(agent().is_new)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        assert Counter(pool.map(run, range(6))) == {True: 1, False: 5}
    assert SubjectVersion.objects.filter(subject__key="hr-agent").count() == 1
