"""What a policy text would change: who is newly permitted and refused, where, which grants, and who is near the edge."""

from decimal import Decimal

import pytest

from compliance.selectors.impact import Impact, Texts, measure_impact, read_impact, texts_of
from evaluations.kernel.clock import now
from policies.models import PolicyVersion
from policies.selectors.policies import compile_version
from policies.services.systems import register_system
from policies.vocabulary import Change
from tests.support import signing, world

pytestmark = pytest.mark.django_db

TEXT = """\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {{name: measured, title: Measured{profile}}}
spec:
  appliesTo: {{actions: [write]{when}}}
  params: {{least: {bar}}}
  evidence:
    refusal: {{metric: infeasible_refusal_rate, benchmark: bench, versions: ["1"], slice: {slice}, statistic: point,
      max_age_days: unlimited, min_trust: archive, min_provenance: claim}}
  rules: [{{id: refuses, evidence: refusal, at_least: {{param: least}}}}]
  sign_offs: {{all_of: [{{factor: security, role: security, approve: 1}}]}}
  grant: {{max_days: 30, recertify_every_days: 30}}
{forbid}
"""


def propose(bar: object, *, when: str = "", forbid: str = "", slice_: str = "overall", profile: str = "") -> PolicyVersion:
    text = TEXT.format(
        bar=bar,
        when=f", when: '{when}'" if when else "",
        forbid=f"  forbid: [{forbid}]" if forbid else "",
        slice=slice_,
        profile=f", profile: {profile}" if profile else "",
    )
    return world.propose_text(text.encode())


def measured(version: PolicyVersion, against: PolicyVersion | None = None) -> Impact:
    return measure_impact(texts_of(version, against), at=now())


def told(impact: Impact) -> tuple[list[str], list[str], int]:
    permitted, refused = ([row.subject for row in rows] for rows in (impact.newly_permitted, impact.newly_refused))
    return permitted, refused, impact.counts[Change.UNCHANGED]


@pytest.fixture
def fleet() -> PolicyVersion:
    """Four models that refuse 60, 70, 80 and 90 % of the time, one that nobody measured, and a bar of 75 in force."""
    world.register("m60", "m70", "m80", "m90", "unmeasured")
    for value in ("60", "70", "80", "90"):
        world.submit(world.submission(f"m{value}", world.observation(value)), f"{value}.json")
    version = propose(75)
    world.activate(version)
    world.judge_all()
    return version


def agreed(version: PolicyVersion) -> Impact:
    """Return what stands under a version; judging it afresh says the same."""
    world.judge_all()
    stands = read_impact(version, at=now())
    assert stands._replace(judged_at=None) == measured(version)
    return stands


class TestSubjects:
    def test_a_lower_bar_permits_and_a_higher_one_refuses(self, fleet) -> None:
        assert told(agreed(propose(65))) == (["m70"], [], 4)
        assert told(agreed(propose(85))) == ([], ["m80"], 4)

    def test_only_what_permits_nobody_anew_is_no_new_access(self, fleet) -> None:
        assert (agreed(propose(85)).no_new_access, agreed(propose(85)).why) == (True, [])
        looser = agreed(propose(65))
        assert (looser.no_new_access, looser.why) == (False, ["1 newly permitted"])

    def test_where_none_is_in_force_whoever_passes_is_newly_permitted(self, fleet) -> None:
        alone = measure_impact(Texts(compile_version(fleet)), at=now())
        assert told(alone) == (["m80", "m90"], [], 3)

    def test_the_nearest_to_the_edge_are_named_on_either_side_of_it(self, fleet) -> None:
        impact = agreed(propose("78.5"))
        assert [(row.subject, row.distance) for row in impact.nearest] == [
            ("m80", Decimal("1.5")), ("m70", Decimal("8.5")), ("m90", Decimal("11.5")), ("m60", Decimal("18.5")),
        ]  # fmt: skip
        assert impact.near == 1

    def test_no_more_is_kept_than_is_shown_and_everything_is_counted(self, fleet) -> None:
        impact = measure_impact(texts_of(propose(1), fleet), at=now(), shown=1)
        assert (len(impact.newly_permitted), impact.counts[Change.NEWLY_PERMITTED]) == (1, 2)
        assert impact.digest == measured(propose(1), fleet).digest != measured(propose(65), fleet).digest

    def test_what_the_newest_version_has_not_judged_it_may_permit(self, fleet) -> None:
        impact = read_impact(propose(85), at=now())
        assert (impact.unjudged, impact.why) == (5, ["5 not judged yet, which it may permit"])

    def test_a_version_to_go_back_to_is_judged_here(self, fleet) -> None:
        looser = propose(65)
        propose(70)
        world.judge_all()
        assert told(read_impact(looser, at=now())) == (["m70"], [], 4)


class TestPlaces:
    def test_each_domain_and_each_tightening_is_a_place_of_its_own(self, fleet) -> None:
        hr, mail = (
            register_system(actor=world.ACTOR, key=key, title=key, domain=domain, owner="hr")
            for key, domain in (("hr-prod", "hr"), ("mail", "email"))
        )
        for value in ("70", "90"):
            world.submit(world.submission(f"m{value}", world.observation(value, slice="hr")), f"{value}-hr.json")
        by_domain = propose(65, slice_="resource.domain")
        impact = agreed(by_domain)
        assert {(row.subject, row.domain, row.systems) for row in impact.newly_permitted} == {("m70", "hr", "hr-prod")}
        assert {(row.subject, row.domain) for row in impact.newly_refused} == {("m80", "hr"), ("m80", "email"), ("m90", "email")}
        world.bind(fleet.policy, system=hr, least=75)
        assert told(agreed(by_domain))[0] == []
        assert {row.systems for row in agreed(propose(65)).newly_permitted} == {mail.key}

    def test_covering_less_leaves_those_it_refused_to_others(self, fleet) -> None:
        for key, reversible in (("ledger", False), ("sandbox", True)):
            register_system(actor=world.ACTOR, key=key, title=key, domain="hr", owner="hr", reversible=reversible)
        impact = agreed(propose(75, when="resource.reversible == false"))
        permitted = {(row.subject, row.systems, row.after) for row in impact.newly_permitted}
        assert permitted == {(key, "sandbox", "not_asked") for key in ("m60", "m70", "unmeasured")}
        assert impact.why == ["3 newly permitted", "it covers under another condition"]

    def test_a_guardrail_that_is_gone_opens_access_whoever_is_measured(self, fleet) -> None:
        guarded = propose(75, forbid="{id: incident, when: resource.open_incident == true}")
        assert measured(guarded).no_new_access
        assert measured(fleet, guarded).why == ["its guardrail `incident` is gone or reads otherwise"]

    def test_a_supplement_permits_nobody_and_refuses_whom_it_fails(self, fleet) -> None:
        register_system(actor=world.ACTOR, key="hr-prod", title="HR", domain="hr", owner="hr")
        supplement = compile_version(propose(85, profile="supplement"))
        assert told(measure_impact(Texts(supplement), at=now())) == ([], ["m60", "m70", "m80", "unmeasured"], 1)


class TestGrants:
    def test_live_grants_that_it_would_no_longer_carry_are_named(self) -> None:
        land = signing.ground("91")
        grant = signing.granted(land)
        stricter = world.propose_text(
            signing.TWO_KEYS.format(name="two-keys", bar=95, age="unlimited", enforcement="hard").encode()
        )
        assert list(measured(stricter).grants_refused) == [str(grant.uid)]
        assert measured(stricter, stricter).grants_refused_count == 0
        assert list(measured(land.policy, stricter).grants_permitted) == [str(grant.uid)]
