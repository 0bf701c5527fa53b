"""What would flip a refusal: what is offered is tried on the judge, and said in plain sentences."""

from datetime import timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.language.compiled import CompiledPolicy
from policies.language.evaluator import judge
from policies.language.facts import Facts, Member
from policies.language.flip_sentences import flip_sentence, flip_value
from policies.language.flipping import Costs, Flip, Remedy, brought, flips_of
from policies.language.ways import TaskCost
from tests.policies.language.building import HARM, NOW, REFUSAL, compiled, facts, harm, observation, with_clause
from tests.policies.language.strategies import FACTS, POLICIES

STRICT = with_clause(min_samples="50")
COSTS: Costs = {"sha256:" + "1" * 64: [TaskCost(Decimal("0.93"), "enterpriseops-gym-aa"), TaskCost(Decimal(2), "mole")]}
JUST_AFTER = NOW + timedelta(microseconds=1)


def flips(policy: CompiledPolicy, costs: Costs | None = None, **candidates: object) -> list[Flip]:
    given_facts = facts(**candidates)
    return list(flips_of(policy, given_facts, judge(policy, given_facts, as_of=NOW), as_of=NOW, costs=costs))


def told(policy: CompiledPolicy, costs: Costs | None = None, **candidates: object) -> str:
    (flip,) = flips(policy, costs, **candidates)
    return flip_sentence(flip, policy)


class TestTheOfferIsGood:
    @settings(max_examples=400, deadline=None)
    @given(st.sampled_from(POLICIES), FACTS, st.integers(0, 2))
    def test_the_runs_that_are_asked_for_make_the_rule_pass(self, policy, given_facts, choice):
        found = flips_of(policy, given_facts, judge(policy, given_facts, as_of=NOW), as_of=NOW)
        failing = {rule.id for rule in judge(policy, given_facts, as_of=NOW).rules if rule.result != "pass"}
        assert {flip.rule for flip in found} == failing
        for rule in failing:
            needed = [flip for flip in found if flip.rule == rule]
            if not all(flip.remedy in {Remedy.RUN, Remedy.LATER_RUN} for flip in needed):
                continue
            candidates = dict(given_facts.candidates)
            for flip in needed:
                way = flip.ways[min(choice, len(flip.ways) - 1)] if flip.ways else None
                runs = brought(policy.clauses[flip.clause], flip, way, as_of=JUST_AFTER)
                candidates[flip.clause] = (*candidates.get(flip.clause, ()), *runs)
            after = judge(policy, given_facts._replace(candidates=candidates), as_of=JUST_AFTER)
            assert {item.id: item.result for item in after.rules}[rule] == "pass"

    @settings(max_examples=200, deadline=None)
    @given(st.sampled_from(POLICIES), FACTS)
    def test_a_dismissal_that_is_asked_for_makes_the_rule_pass_and_every_flip_has_its_sentence(self, policy, given_facts):
        judgement = judge(policy, given_facts, as_of=NOW)
        found = flips_of(policy, given_facts, judgement, as_of=NOW)
        for flip in found:
            assert flip_sentence(flip, policy).endswith(".")
            assert flip_value(flip, policy)["remedy"] == flip.remedy
        rulings = [flip for flip in found if flip.remedy == Remedy.RULING]
        if rulings and len(found) == len(rulings):
            dismissed = {
                name: tuple(
                    item._replace(ruling="dispute_dismissed" if item.ruling == "disputed" else item.ruling) for item in held
                )
                for name, held in given_facts.candidates.items()
            }
            assert judge(policy, given_facts._replace(candidates=dismissed), as_of=NOW).outcome == "pass"

    def test_a_pass_has_nothing_to_flip(self):
        assert flips(STRICT, refusal=observation(k=950, n=1000)) == []

    def test_an_advisory_rule_refuses_nothing(self):
        policy = compiled(
            evidence=f"{REFUSAL}\n{HARM}",
            rules="    - {id: a, evidence: refusal, at_least: 80}\n    - {id: b, evidence: harm, at_most: 5, enforcement: advisory}",
        )
        assert [flip.rule for flip in flips(policy)] == ["a"]


class TestSentences:
    def test_a_value_that_misses(self):
        assert told(STRICT, COSTS, refusal=observation(k=539, n=1000)) == (
            "Short by 28.75 percentage points (`lab`). It passes by a later run of `lab`, which replaces what stands against it, with "
            "50 of 50, 90 % from n = 50 on or at least 822 of 1000. A run of another source alone leaves it contested. "
            "50 tasks cost about 46.50 USD, at 0.93 USD a task on `enterpriseops-gym-aa`."
        )

    def test_nothing_known(self):
        assert told(STRICT) == (
            "It passes by a run on `enterpriseops-gym-aa` `2026-07` from a source trusted as `independent` or better, "
            "ended on 2026-06-03 or later, with 50 of 50 or 90 % from n = 50 on."
        )

    def test_harm_over_its_bar_and_a_cost_on_another_benchmark(self):
        policy = compiled(evidence=HARM, rules="    - {id: harmless, evidence: harm, at_most: 5}")
        costs = {"sha256:" + "1" * 64: [TaskCost(Decimal("0.1"), "demo-bench")]}
        assert told(policy, costs, harm=harm(k=30, n=400)) == (
            "Over by 5.04 percentage points (`lab`). It passes by a later run of `lab`, which replaces what stands against it, with "
            "0 of 59 or 3 % from n = 400 on. A run of another source alone leaves it contested. "
            "59 tasks cost about 5.90 USD, at 0.1 USD a task on `demo-bench`."
        )

    def test_too_old(self):
        assert "with the same numbers, 50 of 50" in told(
            STRICT, refusal=observation(k=950, n=1000, ended_at=NOW - timedelta(100))
        )

    def test_one_thing_alone_is_wrong(self):
        vendor = observation(k=950, n=1000, trust="vendor")
        assert told(STRICT, refusal=vendor).endswith("The nearest would pass if its source were trusted as `independent`.")
        nameless = observation(k=950, n=1000, identity_problem="identity_unresolved")
        assert "if the name it was measured under were assigned" in told(STRICT, refusal=nameless)
        assert "The nearest would pass" not in told(STRICT, refusal=observation(k=500, n=1000, trust="vendor"))

    def test_disputed(self):
        disputed = observation(k=950, n=1000, ruling="disputed")
        assert told(STRICT, refusal=disputed) == "It passes if the dispute is dismissed, which a quorum signs."
        (flip,) = flips(STRICT, refusal=disputed._replace(ruling="dispute_upheld"))
        assert flip.remedy == Remedy.LATER_RUN

    def test_two_sources_against_it_are_both_named(self):
        one, two = observation(k=500, n=1000), observation(k=600, n=1000, source="vendor", evidence="ev-2", harness="react 2")
        assert "later run of `lab` and `vendor` (harness `react 2`)" in told(STRICT, refusal=(one, two))
        assert "50 tasks each cost" in told(STRICT, COSTS, refusal=(one, two))

    def test_a_source_that_the_policy_prefers_settles_it(self):
        policy = with_clause(min_samples="50", prefer="[audit]")
        assert "a run of `audit`, which the policy prefers," in told(policy, refusal=observation(k=500, n=1000))

    def test_what_states_no_run_is_not_replaced(self):
        published = observation("53.9", n=1000, run_ended=False)
        assert "must be retracted" in told(STRICT, refusal=published)

    def test_a_row_that_cannot_be_right(self):
        (flip,) = flips(STRICT, refusal=observation("180", n=100))
        assert (flip.remedy, flip.gap) == (Remedy.RETRACTION, None)
        assert "cannot be right must be retracted" in flip_sentence(flip, STRICT)

    def test_a_bar_that_no_run_clears(self):
        policy = compiled(rules="    - {id: refuses, evidence: refusal, at_least: 100}")
        assert told(policy) == "No run of up to 20000 tasks clears 100 %, not even one without a miss."

    def test_a_domain_is_asked_for(self):
        policy = with_clause(slice="resource.domain")
        assert told(policy, refusal=observation("90")) == "Ask about a system: the policy judges by its domain."

    def test_what_is_no_rate_passes_at_its_bar(self):
        clause = "    cost: {metric: cost_per_task_usd, benchmark: mole, versions: ['2026-09'], max_age_days: unlimited}"
        policy = compiled(evidence=clause, rules="    - {id: cheap, evidence: cost, at_most: 3}")
        price = observation("3.2", metric="cost_per_task_usd", benchmark="mole", version="2026-09")
        assert told(policy, cost=price).startswith("Over by 0.2 USD (`lab`). It passes by a later run")
        assert "with at most 3 USD." in told(policy, cost=price)

    def test_the_easiest_of_two_parts_is_told(self):
        rules = "    - id: either\n      any_of: [{evidence: harm, at_most: 1}, {evidence: refusal, at_least: 80}]"
        policy = compiled(evidence=f"{REFUSAL}\n{HARM}", rules=rules)
        assert [flip.clause for flip in flips(policy)] == ["refusal"]
        both = compiled(evidence=f"{REFUSAL}\n{HARM}", rules=rules.replace("any_of", "all_of"))
        assert [flip.clause for flip in flips(both)] == ["harm", "refusal"]


def test_each_model_that_a_route_reaches_is_told_by_its_name():
    good = Member("good", "sha256:g", {"refusal": (observation(k=990, n=1000),)})
    bad = Member("bad", "sha256:b", {"refusal": (observation(k=100, n=1000),)})
    unknown = Member("unknown", "sha256:u", {})
    agent = Facts("agent", "sha256:a", route=(good, bad, unknown))
    found = flips_of(STRICT, agent, judge(STRICT, agent, as_of=NOW), as_of=NOW)
    assert [(flip.model, flip.remedy) for flip in found] == [("bad", Remedy.LATER_RUN), ("unknown", Remedy.RUN)]
    assert flip_sentence(found[1], STRICT).startswith("For `unknown`: it passes by a run")


def test_the_value_for_programs():
    (flip,) = flips(STRICT, COSTS, refusal=observation(k=539, n=1000))
    value = flip_value(flip, STRICT)
    assert value.pop("message") == flip_sentence(flip, STRICT)
    assert value.pop("ways")[0] == {"k": 50, "n": 50, "rate": "100", "bound": "94.184492", "onward": True, "cost_usd": "46.5"}
    assert value == {
        "remedy": "later_run",
        "clause": "refusal",
        "model": "",
        "evidence": "ev-1",
        "source": "lab",
        "gap": "28.748847",
        "unit": "percent",
        "sources": ["lab"],
        "since": "2026-06-03T00:00:00Z",
    }
