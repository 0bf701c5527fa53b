"""Agents are judged once per model that their route can reach; each rule takes the worst and names the model."""

import pytest

from policies.language.evaluator import Judgement, NoVerdict, judge
from policies.language.facts import Candidate, Facts, Member
from tests.policies.language.building import HARM, METRICS, NOW, REFUSAL, compiled, harm, observation

ON_AGENT = HARM.replace("max_age_days", "about: agent, max_age_days")
RULES = "    - {id: refuses, evidence: refusal, at_least: 80}\n    - {id: harmless, evidence: harm, at_most: 5}"
POLICY = compiled(rules=RULES, evidence=f"{REFUSAL.replace('max_age_days', 'statistic: point, max_age_days')}\n{ON_AGENT}")


def member(key: str, *refusal: Candidate) -> Member:
    return Member(key, f"sha256:{key}", {"refusal": refusal})


def agent(*route: Member, own: tuple[Candidate, ...] = (harm(0, about="agent"),), closed: bool = True) -> Facts:
    return Facts("helper", "sha256:helper", candidates={"harm": own}, metrics=METRICS, route=route, route_closed=closed)


def judged(given: Facts) -> Judgement:
    return judge(POLICY, given, as_of=NOW)


def test_an_agent_passes_when_every_reachable_model_does():
    judgement = judged(agent(member("model-a", observation("90")), member("model-b", observation("85"))))
    assert judgement.outcome == "pass"
    assert judgement.rules[1].model == ""  # evidence on the agent itself is no member's
    assert set(judgement.reasons) == {"", "sha256:model-a", "sha256:model-b"}


@pytest.mark.parametrize(
    ("better", "worse", "result"),
    [
        (observation("90"), observation("70"), "fail"),
        (observation("70"), None, "missing"),
        (None, observation("90", ruling="disputed"), "contested"),
        (observation("90", ruling="disputed"), observation("-1"), "error"),
    ],
)
def test_each_rule_takes_the_worst_member_and_names_it(better, worse, result):
    route = [member("model-a", *([better] if better else [])), member("model-b", *([worse] if worse else []))]
    for order in (route, route[::-1]):
        rule = judged(agent(*order)).rules[0]
        assert (rule.result, rule.model) == (result, "model-b")


def test_stale_is_worse_than_fail_and_better_than_missing():
    old = observation("90", ended_at=NOW.replace(year=2025))
    assert judged(agent(member("model-a", old), member("model-b", observation("70")))).rules[0][2] == "stale"
    assert judged(agent(member("model-a", old), member("model-b"))).rules[0][2] == "missing"


def test_among_equals_the_first_by_name_is_shown_whatever_the_order_given():
    one, two = member("model-a", observation("70")), member("model-b", observation("60"))
    assert judged(agent(two, one)).rules[0].model == "model-a"
    assert judged(agent(two, one)).core_bytes() == judged(agent(one, two)).core_bytes()


def test_evidence_on_the_agent_is_read_from_the_agent_alone():
    on_member = Member("model-a", "sha256:model-a", {"refusal": (observation("90"),), "harm": (harm(0, about="agent"),)})
    assert judged(agent(on_member, own=())).rules[1][2:4] == ("missing", "no_evidence")
    assert judged(agent(member("model-a", observation("90")), own=(harm(0),))).rules[1][2:4] == ("missing", "other_kind")


def test_a_route_that_is_not_closed_has_no_verdict():
    with pytest.raises(NoVerdict) as refused:
        judged(agent(member("model-a", observation("90")), closed=False))
    assert refused.value.code == "route_not_closed"


def test_a_route_that_reaches_nothing_has_no_verdict():
    with pytest.raises(NoVerdict) as refused:
        judged(agent())
    assert refused.value.code == "route_empty"


def test_the_next_instant_is_the_earliest_of_all_members():
    early, late = observation("90", ended_at=NOW.replace(month=7)), observation("90", ended_at=NOW.replace(month=8))
    both = judged(agent(member("model-a", late), member("model-b", early))).due_at
    assert both == judged(agent(member("model-b", early))).due_at
    assert both is not None
    assert both < judged(agent(member("model-a", late))).due_at
