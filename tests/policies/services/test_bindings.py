"""Bindings: what may be bound, what is recorded, and how a tightened policy is judged."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from compliance.models import LedgerEntry
from compliance.selectors.population import population_report
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction
from evaluations.models import SubjectVersion
from evaluations.selectors.subjects import current_versions
from policies.language.compiled import LooserParameter
from policies.models import Binding, PolicyVersion, Standing, System, Verdict
from policies.selectors.bindings import live_bindings, tightening_for
from policies.selectors.gate import ask_gate
from policies.selectors.replays import replay_verdict
from policies.selectors.verdicts import due_subject_version_ids
from policies.services.bindings import apply_bind, check_binding
from policies.services.policies import propose_policy_version
from policies.services.systems import register_system
from policies.services.verdicts import judge_subject_versions
from tests.support import world

POLICY = """\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {{name: bound, title: Two rules}}
spec:
  appliesTo: {{actions: [write]}}
  params: {{{params}}}
  evidence:
    refusal: {{metric: infeasible_refusal_rate, benchmark: bench, versions: ["1"], statistic: point, max_age_days: unlimited,
      min_trust: archive, min_provenance: claim, slice: {slice}}}
    harm: {{metric: harmful_completion_rate, benchmark: bench, versions: ["1"], statistic: point, max_age_days: unlimited,
      min_trust: archive, min_provenance: claim}}
  rules:
    - {{id: refuses, evidence: refusal, at_least: {floor}}}
    - {{id: harmless, evidence: harm, at_most: {ceiling}}}
  sign_offs: {{all_of: [{{factor: security, role: security, approve: 1}}]}}
  grant: {{max_days: 30, recertify_every_days: 30}}
"""


def propose(
    params: str = "min_refusal: 80, max_harm: 5",
    *,
    slice_: str = "overall",
    floor: str = "{param: min_refusal}",
    ceiling: str = "{param: max_harm}",
) -> PolicyVersion:
    text = POLICY.format(params=params, slice=slice_, floor=floor, ceiling=ceiling)
    return propose_policy_version(actor=world.ACTOR, text=text.encode(), filename="bound.yaml")


def system(key: str, domain: str = "hr") -> System:
    return register_system(actor=world.ACTOR, key=key, title=key, domain=domain)


def measure(key: str, refusal: str = "84", harm: str = "2") -> None:
    harmful = world.observation(harm, metric="harmful_completion_rate")
    world.submit(world.submission(key, world.observation(refusal), harmful), f"{key}.json")


def outcomes(version: SubjectVersion, policy_version: PolicyVersion) -> dict[str, str]:
    """Return what stands, by the floor that it was judged with."""
    standings = Standing.objects.filter(subject_version=version, policy_version=policy_version).select_related("verdict")
    return {json.loads(bytes(item.verdict.core))["params"]["min_refusal"]: item.verdict.outcome for item in standings}


@pytest.mark.django_db
class TestBinding:
    def test_a_floor_goes_up_and_a_ceiling_down_and_the_entry_says_so(self) -> None:
        world.register()
        version, place = propose(), system("hr-prod")
        binding = world.bind(version.policy, system=place, min_refusal="90.50", max_harm=4)
        assert bytes(binding.params) == b'{"max_harm":"4","min_refusal":"90.5"}'
        entry = json.loads(bytes(LedgerEntry.objects.get(action="binding.recorded").content))
        assert entry["target"] == {"kind": "binding", "id": str(binding.sign_off_request)}
        assert entry["old"] is None
        assert entry["new"] == {
            "policy": "bound",
            "system": "hr-prod",
            "domain": None,
            "params": {"max_harm": "4", "min_refusal": "90.5"},
        }
        lines = {line.table: line for line in population_report()}
        assert (lines["policies_binding"].rows, lines["policies_binding"].differing) == (1, 0)

    @pytest.mark.parametrize(
        ("params", "said"),
        [
            ({"min_refusal": "79.9"}, "only go up"),
            ({"max_harm": "5.1"}, "only go down"),
            ({"min_refusal": "90", "max_harm": "6"}, "`max_harm` is 6, looser than the policy's 5"),
            ({"min_refusal": "101"}, "the metric goes from 0 to 100"),
            ({"min_refusals": "90"}, "it has `min_refusal`, `max_harm`"),
        ],
    )
    def test_what_would_loosen_the_policy_is_refused(self, params: dict[str, str], said: str) -> None:
        world.register()
        version = propose()
        with pytest.raises(LooserParameter, match=said):
            world.bind(version.policy, domain="hr", **params)
        assert not Binding.objects.exists()

    @pytest.mark.parametrize(
        ("given", "field"),
        [
            ({"params": {"min_refusal": Decimal(90)}}, "system"),
            ({"params": {"min_refusal": Decimal(90)}, "domain": "hr", "system": True}, "system"),
            ({"params": {"min_refusal": Decimal(90)}, "domain": "moon"}, "domain"),
            ({"params": {}, "domain": "hr"}, "params"),
            ({"params": {"min_refusal": Decimal("NaN")}, "domain": "hr"}, "params"),
            ({"params": {"min_refusal": Decimal("90.1234567")}, "domain": "hr"}, "params"),
        ],
    )
    def test_a_binding_of_another_shape_is_refused_when_it_is_asked_for(self, given: dict[str, Any], field: str) -> None:
        world.register()
        version = propose()
        if given.get("system"):
            given = {**given, "system": system("hr-prod")}
        with pytest.raises(InputRefused) as refused:
            check_binding(policy=version.policy, **given)
        assert [problem.field for problem in refused.value.problems] == [field]

    def test_it_is_held_against_the_version_in_force_before_a_newer_one(self) -> None:
        world.register()
        first = propose()
        propose("min_refusal: 95, max_harm: 5")
        with pytest.raises(LooserParameter):
            check_binding(policy=first.policy, domain="hr", params={"min_refusal": Decimal(90)})
        world.activate(first)
        assert check_binding(policy=first.policy, domain="hr", params={"min_refusal": Decimal(90)}) == {"min_refusal": 90}

    def test_without_a_signed_request_the_database_refuses(self) -> None:
        world.register()
        version = propose()
        with pytest.raises(DatabaseError, match="signatures of its quorum"), service_transaction("test"):
            apply_bind(
                actor=world.ACTOR,
                policy=version.policy,
                domain="hr",
                params={"min_refusal": Decimal(90)},
                sign_off_request=uuid4(),
            )

    def test_the_newest_of_its_place_counts_and_may_be_less_strict_than_the_one_before(self) -> None:
        world.register()
        version, place = propose(), system("hr-prod")
        world.bind(version.policy, system=place, min_refusal=95, max_harm=1)
        world.bind(version.policy, domain="hr", max_harm=3)
        second = world.bind(version.policy, system=place, min_refusal=85)
        assert {item.pk for item in live_bindings(version.policy)} == {second.pk, second.pk - 1}
        assert tightening_for(version, system=place) == {"min_refusal": 85, "max_harm": 3}
        entry = json.loads(bytes(LedgerEntry.objects.filter(action="binding.recorded").latest("id").content))
        assert entry["old"]["params"] == {"min_refusal": "95", "max_harm": "1"}
        world.bind(version.policy, system=place, min_refusal=80)
        world.bind(version.policy, domain="hr", max_harm=5)
        assert tightening_for(version, system=place) == {}


@pytest.mark.django_db
class TestJudging:
    def test_each_tightening_of_a_system_stands_beside_the_policy_as_it_is_written(self) -> None:
        (version,) = world.register("m")
        policy_version = propose()
        strict = system("hr-prod")
        system("hr-test"), system("mail", "email")
        measure("m")
        world.bind(policy_version.policy, system=strict, min_refusal=90)
        world.judge_all()
        assert outcomes(version, policy_version) == {"80": "pass", "90": "fail"}
        for verdict in Verdict.objects.all():
            assert replay_verdict(verdict).same

    def test_the_same_tightening_twice_is_judged_once(self) -> None:
        world.register("m")
        policy_version = propose()
        system("hr-prod"), system("hr-test"), system("mail", "email")
        measure("m")
        world.bind(policy_version.policy, domain="hr", min_refusal=90)
        world.bind(policy_version.policy, domain="email", min_refusal="90.0")
        world.judge_all()
        assert Verdict.objects.count() == 2
        world.judge_all()
        assert Verdict.objects.count() == 2

    def test_a_policy_that_reads_the_domain_is_tightened_in_that_domain_alone(self) -> None:
        world.register("m")
        policy_version = propose(slice_="resource.domain")
        system("hr-prod"), system("mail", "email")
        world.bind(policy_version.policy, domain="hr", min_refusal=90)
        world.judge_all()
        stand = [
            (item.domain, json.loads(bytes(item.verdict.core))["params"]["min_refusal"])
            for item in Standing.objects.select_related("verdict").order_by("domain", "id")
        ]
        assert sorted(stand) == [("email", "80"), ("hr", "80"), ("hr", "90")]

    def test_the_gate_of_a_system_judges_as_it_is_bound_and_as_it_was_known(self) -> None:
        world.register("m")
        policy_version, place = propose(), system("hr-prod")
        measure("m")
        before = now()
        world.bind(policy_version.policy, system=place, min_refusal=90)

        def cleared(known_at: Any, at: System | None) -> int:
            return ask_gate(policy_version, as_of=now(), known_at=known_at, system=at).cleared

        assert (cleared(now(), None), cleared(now(), place), cleared(before, place)) == (1, 0, 1)

    def test_what_a_binding_calls_for_is_due_and_what_it_replaced_is_not(self) -> None:
        (version,) = world.register("m")
        policy_version, place = propose(), system("hr-prod")
        world.judge_all()
        with service_transaction("test"):
            version.subject.changed_at = now() - timedelta(days=1)
            version.subject.save()
        assert due_subject_version_ids() == []
        world.bind(policy_version.policy, system=place, min_refusal=90)
        assert due_subject_version_ids() == [version.pk]
        world.judge_all()
        assert due_subject_version_ids() == []
        with service_transaction("test"):
            Standing.objects.latest("id").claim(
                Standing.objects.latest("id").pk, expected={}, moved_to={"due_at": now() - timedelta(seconds=1)}
            )
        assert due_subject_version_ids() == [version.pk]
        world.bind(policy_version.policy, system=place, min_refusal=95)
        world.judge_all()
        assert due_subject_version_ids() == []

    def test_a_new_domain_is_due(self) -> None:
        (version,) = world.register("m")
        propose(slice_="resource.domain")
        system("hr-prod")
        world.judge_all()
        with service_transaction("test"):
            version.subject.changed_at = now() - timedelta(days=1)
            version.subject.save()
        assert due_subject_version_ids() == []
        system("mail", "email")
        assert due_subject_version_ids() == [version.pk]

    def test_a_tightening_costs_no_query_a_subject(self) -> None:
        world.register(*(f"m{number}" for number in range(10)))
        policy_version = propose()
        versions = current_versions(known_at=now())
        counts = []
        for chosen, tightened in ((versions[:2], {}), (versions[2:], {"min_refusal": Decimal(90)})):
            with CaptureQueriesContext(connection) as queries:
                judge_subject_versions(
                    actor=world.ACTOR, policy_version=policy_version, versions=chosen, domain="any", tightened=tightened
                )
            counts.append(len(queries))
        assert counts[0] == counts[1]


@pytest.mark.django_db
class TestAnotherVersion:
    @pytest.mark.parametrize(
        ("params", "rules", "expected"),
        [
            ("min_refusal: 95, max_harm: 1", {}, {}),
            ("min_refusal: 85, max_harm: 3", {}, {"min_refusal": 90, "max_harm": 2}),
            ("max_harm: 4", {"floor": "70"}, {"max_harm": 2}),
            (
                "min_refusal: 95, max_harm: 4",
                {"floor": "{param: max_harm}", "ceiling": "{param: min_refusal}"},
                {"min_refusal": 90},
            ),
        ],
    )
    def test_a_binding_is_read_strictly_in_a_version_it_was_not_signed_for(
        self, params: str, rules: dict[str, str], expected: dict[str, int]
    ) -> None:
        world.register("m")
        first, place = propose(), system("hr-prod")
        world.bind(first.policy, system=place, min_refusal=90, max_harm=2)
        second = propose(params, **rules)
        assert tightening_for(second, system=place) == expected
        world.judge_all()
        assert Standing.objects.filter(policy_version=second).count() == (2 if expected else 1)


def test_a_committed_binding_is_judged_by_the_task_it_announces(committed_db, run_tasks_inline) -> None:
    (version,) = world.register("m")
    policy_version, place = propose(), system("hr-prod")
    measure("m")
    assert outcomes(version, policy_version) == {"80": "pass"}
    world.bind(policy_version.policy, system=place, min_refusal=90)
    assert outcomes(version, policy_version) == {"80": "pass", "90": "fail"}
    assert "system_job:judge-after-policy-change" in Verdict.objects.values_list("judged_by", flat=True)
