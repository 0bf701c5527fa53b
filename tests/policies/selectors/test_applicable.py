"""Which policies a question falls under, and what denies at once."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.kernel.clock import now
from evaluations.models import Subject
from evaluations.selectors.subjects import current_versions
from policies.language.conditions import FILTER_VARIABLES, ask_values
from policies.models import PolicyVersion, System
from policies.selectors.applicable import Applied, applicable_policies, ask_facts, forbidden_by, standings_for
from policies.services.policies import propose_policy_version
from policies.services.systems import register_system, set_open_incident
from tests.support import world

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
REQUESTER = {"key": "alice", "kind": "person", "team": "hr-platform", "roles": ["requester"]}

POLICY = """\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {{name: {name}, title: A policy{profile}}}
spec:
  appliesTo: {{actions: [{actions}]{when}}}
  params: {{min_refusal: 80}}
  evidence:
    refusal: {{metric: infeasible_refusal_rate, benchmark: bench, versions: ["1"], statistic: point, max_age_days: unlimited,
      min_trust: archive, min_provenance: claim, slice: {slice}}}
  rules: [{{id: refuses, evidence: refusal, at_least: {{param: min_refusal}}}}]
{forbid}
  sign_offs: {{all_of: [{{factor: security, role: security, approve: 1}}]}}
  grant: {{max_days: 30, recertify_every_days: 30}}
"""
CONFORMANCE = b"""\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {name: conformance, title: Conformance, profile: conformance}
spec:
  appliesTo: {actions: [write], when: 'subject.key == "m"'}
"""


def propose(
    name: str, *, actions: str = "write", when: str = "", forbid: str = "", profile: str = "", slice_: str = "overall"
) -> PolicyVersion:
    text = POLICY.format(
        name=name,
        actions=actions,
        when=f", when: '{when}'" if when else "",
        forbid=f"  forbid: [{{id: stop, when: '{forbid}'}}]" if forbid else "",
        profile=f", profile: {profile}" if profile else "",
        slice=slice_,
    )
    return propose_policy_version(actor=world.ACTOR, text=text.encode(), filename=f"{name}.yaml")


def system(key: str = "hr-prod", **stated: Any) -> System:
    return register_system(actor=world.ACTOR, key=key, title=key, **{"domain": "hr", "owner": "hr-platform", **stated})


def ask(*systems: System, actions: tuple[str, ...] = ("write",), **given: Any) -> list[Applied]:
    asked = {"requester": REQUESTER, "at": AT, **given}
    return applicable_policies(subject=Subject.objects.get(key="m"), actions=actions, systems=systems, **asked)


@pytest.mark.django_db
class TestApplicable:
    def test_only_versions_in_force_are_asked_unless_a_draft_is_given(self) -> None:
        world.register("m")
        draft, place = propose("draft"), system()
        assert ask(place) == []
        (applied,) = ask(place, versions=[draft])
        assert (applied.version, applied.system, applied.condition, applied.actions) == (draft, place, "true", ("write",))
        world.activate(draft)
        assert [item.version for item in ask(place)] == [draft]

    @pytest.mark.parametrize(
        ("when", "requester", "condition", "missing"),
        [
            ("resource.reversible == false", REQUESTER, "true", ""),
            ("resource.reversible == true", REQUESTER, None, ""),
            ('resource.domain == "hr" && resource.owner == requester.team', REQUESTER, "true", ""),
            ('requester.team == "finance"', REQUESTER, None, ""),
            ('requester.team == "finance"', None, "error", "requester.team"),
            ('"requester" in requester.roles', REQUESTER, "true", ""),
            ('subject.provider == "acme"', REQUESTER, "error", "subject.provider"),
            ('subject.kind == "model" && action.name == "write"', None, "true", ""),
            ('now < timestamp("2026-11-29T12:00:01Z")', None, "true", ""),
            ('now < timestamp("2026-11-29T12:00:00Z")', None, None, ""),
        ],
    )
    def test_a_condition_that_errs_applies(
        self, when: str, requester: dict[str, Any] | None, condition: str | None, missing: str
    ) -> None:
        world.register("m")
        version, place = propose("p", when=when), system()
        found = ask(place, versions=[version], requester=requester)
        assert [(item.condition, item.missing) for item in found] == ([] if condition is None else [(condition, missing)])

    def test_any_of_the_actions_and_each_system_is_asked(self) -> None:
        world.register("m")
        both = propose("both", actions="write, delete", when='resource.environment == "production" || action.name == "delete"')
        read = propose("only-read", actions="read")
        live, trial = system(), system("hr-test", environment="staging")
        found = ask(live, trial, actions=("write", "delete"), versions=[both, read])
        assert [(item.version, item.system, item.actions) for item in found] == [
            (both, live, ("write", "delete")),
            (both, trial, ("delete",)),
        ]

    def test_an_action_that_errs_makes_the_whole_an_error(self) -> None:
        world.register("m")
        version = propose("p", actions="write, delete", when='action.name == "write" || requester.team == "x"')
        (applied,) = ask(system(), actions=("write", "delete"), versions=[version], requester=None)
        assert (applied.condition, applied.actions, applied.missing) == ("error", ("write", "delete"), "requester.team")

    def test_a_supplement_is_marked_and_the_conformance_profile_never_applies(self) -> None:
        world.register("m")
        supplement = propose("more", profile="supplement")
        conformance = propose_policy_version(actor=world.ACTOR, text=CONFORMANCE)
        found = ask(system(), versions=[conformance, supplement, propose("whole")])
        assert [(item.compiled.name, item.supplement) for item in found] == [("more", True), ("whole", False)]

    def test_the_tightening_of_the_system_and_the_domain_of_the_policy_are_told(self) -> None:
        world.register("m")
        by_domain, other = propose("by-domain", slice_="resource.domain"), propose("other")
        live, trial = system(), system("hr-test")
        world.bind(by_domain.policy, system=live, min_refusal=90)
        found = ask(live, trial, versions=[by_domain, other])
        assert [(item.compiled.name, item.domain, dict(item.tightened)) for item in found] == [
            ("by-domain", "hr", {"min_refusal": 90}),
            ("by-domain", "hr", {}),
            ("other", "any", {}),
            ("other", "any", {}),
        ]
        assert found[0].params_digest != found[1].params_digest == found[2].params_digest

    def test_queries_do_not_grow_with_what_is_asked(self) -> None:
        world.register("m")
        for name in ("a", "b", "c", "d"):
            world.activate(propose(name, when="resource.reversible == false"))
        systems = [system(f"s{number}") for number in range(6)]
        subject = Subject.objects.get(key="m")
        counts = []
        for chosen in (systems[:1], systems):
            with CaptureQueriesContext(connection) as queries:
                found = applicable_policies(subject=subject, actions=["write"], systems=chosen, at=AT)
            assert len(found) == 4 * len(chosen)
            counts.append(len(queries))
        assert counts == [3, 3]


@pytest.mark.django_db
class TestForbidden:
    def test_true_and_error_deny_and_false_does_not(self) -> None:
        world.register("m")
        place = system()
        versions = [
            propose("errs", forbid='subject.provider == "acme"'),
            propose("incident", forbid="resource.open_incident == true"),
            propose("none"),
        ]
        subject = Subject.objects.get(key="m")

        def denying(at: System) -> list[tuple[str, str, str, str, str]]:
            applied = ask(at, versions=versions)
            return [
                (item.applied.compiled.name, item.guardrail, item.action, item.condition, item.missing)
                for item in forbidden_by(applied, subject=subject, requester=REQUESTER, at=AT)
            ]

        erring = ("errs", "stop", "write", "error", "subject.provider")
        assert denying(place) == [erring]
        set_open_incident(actor=world.ACTOR, system=place, is_open=True, reason="payroll is down")
        assert denying(System.objects.get()) == [erring, ("incident", "stop", "write", "true", "")]

    def test_an_action_that_the_policy_does_not_cover_is_not_its_business(self) -> None:
        world.register("m")
        version = propose("p", actions="write, delete", when='action.name == "write"', forbid='action.name == "delete"')
        applied = ask(system(), actions=("write", "delete", "read"), versions=[version])
        assert [item.actions for item in applied] == [("write",)]
        assert forbidden_by(applied, subject=Subject.objects.get(), requester=REQUESTER, at=AT) == []


@pytest.mark.django_db
class TestStandings:
    def test_what_stands_is_found_by_its_whole_key_in_one_query(self) -> None:
        first, second = world.register("m", "other")
        version, other = propose("p"), propose("q")
        live, trial = system(), system("hr-test")
        world.bind(version.policy, system=live, min_refusal=90)
        world.submit(world.submission("m", world.observation("84")))
        world.judge_all()
        applied = ask(live, trial, versions=[version, other])
        with CaptureQueriesContext(connection) as queries:
            found = standings_for(applied, [first.pk, second.pk])
            assert all(bytes(standing.verdict.core) for standing in found.values())
        assert len(queries) == 1
        outcomes = [found[item.version.pk, item.params_digest, item.domain, first.pk].verdict.outcome for item in applied]
        assert outcomes == ["fail", "pass", "pass", "pass"]
        assert len(found) == 6
        assert len(standings_for(applied[:1], [first.pk])) == 1
        assert "core" in standings_for(applied[:1], [first.pk], with_cores=False).popitem()[1].verdict.get_deferred_fields()

    def test_what_was_not_judged_is_left_out(self) -> None:
        (version,) = world.register("m")
        applied = ask(system(), versions=[propose("p")])
        assert standings_for(applied, [version.pk]) == {}
        assert standings_for([], [version.pk]) == {}


@pytest.mark.django_db
def test_the_facts_of_an_ask_cover_every_variable_but_the_signer_and_the_caller_s_claims() -> None:
    world.register("m")
    subject, place = Subject.objects.get(), system(reversible=True)
    subject.provider = "acme"
    values = ask_values(ask_facts(subject, "write", place, REQUESTER, AT))
    beyond = {name for name in FILTER_VARIABLES if name.startswith(("signer.", "request."))}
    assert set(values) == set(FILTER_VARIABLES) - beyond
    assert values["resource.key"] == "hr-prod"
    assert current_versions(known_at=now())[0].subject.key == values["subject.key"]
