"""Monotone: neither time, nor a dispute, nor less support, nor a tighter bar ever turns a fail into a pass.

The first properties take one step each. The last takes several of any kind after one another, in the engine and in each policy of
the library; marked `slow` it does so 20,000 and 2,000 times.
"""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import policies as library
from policies.language.compiled import Assertion, CompiledPolicy, Test
from policies.language.compiler import compile_policy
from policies.language.evaluator import judge
from policies.language.facts import Candidate, Facts
from policies.language.qualifying import hear
from tests.policies.language import weakening
from tests.policies.language.building import NAMES, NOW, facts, observation, with_clause
from tests.policies.language.strategies import FACTS, POLICIES
from tests.policies.language.weakening import State, states, weaker

CASES = settings(max_examples=250, deadline=None)
policies = st.sampled_from(POLICIES)


def outcome(policy: CompiledPolicy, given_facts: Facts, at: timedelta = timedelta()) -> str:
    return judge(policy, given_facts, as_of=NOW + at).outcome


def assertions(test: Test) -> Iterator[Assertion]:
    if isinstance(test, Assertion):
        yield test
    else:
        for branch in test.branches:
            yield from assertions(branch)


def adverse(policy: CompiledPolicy, given_facts: Facts, clause: str, place: int) -> bool:
    """Tell whether an observation speaks against the subject, or stops the judging, in any rule: then it supports none."""
    params = policy.effective_params(given_facts.params)
    hearing = hear(policy.clauses[clause], given_facts.candidates[clause], given_facts.domain, NOW)
    if place in hearing.broken or place in hearing.disputed:
        return True
    for rule in policy.rules:
        for assertion in assertions(rule.test):
            if assertion.clause.name != clause:
                continue
            bar = params[assertion.param] if assertion.param else assertion.bar
            for entry in hearing.live:
                met = entry.measure >= bar if assertion.floor else entry.measure <= bar
                if entry.place == place and not met:
                    return True
    return False


def places(given_facts: Facts) -> list[tuple[str, int]]:
    return [(clause, place) for clause, held in given_facts.candidates.items() for place in range(len(held))]


def changed(given_facts: Facts, clause: str, place: int, new: Candidate | None) -> Facts:
    held = list(given_facts.candidates[clause])
    held[place : place + 1] = [] if new is None else [new]
    return given_facts._replace(candidates={**given_facts.candidates, clause: tuple(held)})


def edges(given_facts: Facts) -> list[int]:
    """Return in how many days an observation grows too old for a clause (90 or 180 days), the only times that matter."""
    ages = [(NOW - item.ended_at).days for held in given_facts.candidates.values() for item in held if item.ended_at is not None]
    return [limit - age + 1 for age in ages for limit in (90, 180) if age <= limit]


@CASES
@given(policies, FACTS, st.data())
def test_ageing_never_turns_a_fail_into_a_pass(policy, given_facts, data):
    later = timedelta(days=data.draw(st.sampled_from([*edges(given_facts), 700])))
    newly_seen = any(
        item.ended_at is not None and NOW < item.ended_at <= NOW + later
        for held in given_facts.candidates.values()
        for item in held
    )
    assume(not newly_seen)  # a run that ends meanwhile is new evidence
    if outcome(policy, given_facts) == "fail":
        assert outcome(policy, given_facts, later) == "fail"


@CASES
@given(policies, FACTS, st.data())
def test_removing_support_never_turns_a_fail_into_a_pass(policy, given_facts, data):
    assume(places(given_facts))
    clause, place = data.draw(st.sampled_from(places(given_facts)))
    assume(not adverse(policy, given_facts, clause, place))
    if outcome(policy, given_facts) == "fail":
        assert outcome(policy, changed(given_facts, clause, place, None)) == "fail"


@CASES
@given(policies, FACTS, st.sampled_from(["disputed", "dispute_upheld"]), st.data())
def test_disputing_anything_never_turns_a_fail_into_a_pass(policy, given_facts, ruling, data):
    assume(places(given_facts))
    clause, place = data.draw(st.sampled_from(places(given_facts)))
    item = given_facts.candidates[clause][place]
    assume(item.ruling != "retracted")  # a retraction is signed by a quorum and is never followed by a mere dispute
    if outcome(policy, given_facts) == "fail":
        assert outcome(policy, changed(given_facts, clause, place, item._replace(ruling=ruling))) == "fail"


@CASES
@given(policies, FACTS, st.sampled_from(["45", "0.5"]), st.sampled_from(["one", "two", "four"]))
def test_contesting_never_turns_a_fail_into_a_pass(policy, given_facts, value, source):
    against = observation(value, n=1000, errored=0, unscored=0, source=source, evidence="ev-9", ended_at=NOW, run_ended=False)
    contested = {**given_facts.candidates, "refusal": (*given_facts.candidates["refusal"], against)}
    if outcome(policy, given_facts) == "fail":
        assert outcome(policy, given_facts._replace(candidates=contested)) == "fail"


@CASES
@given(policies, FACTS, st.decimals(80, 100, places=2), st.decimals(0, 5, places=2))
def test_tightening_never_turns_a_fail_into_a_pass(policy, given_facts, floor, ceiling):
    current = policy.effective_params(given_facts.params)
    assume(floor >= current["floor"] and ceiling <= current["ceiling"])
    if outcome(policy, given_facts) == "fail":
        assert outcome(policy, given_facts._replace(params={"floor": floor, "ceiling": ceiling})) == "fail"


@CASES
@given(policies, FACTS)
def test_what_the_property_is_about_does_happen(policy, given_facts):
    judgement = judge(policy, given_facts, as_of=NOW)
    assert (judgement.outcome == "pass") == (not judgement.blocking and not judgement.waivable)
    assert (judgement.outcome == "pass") == (judgement.result == "pass")


def test_removing_a_replacement_gives_the_replaced_run_back():
    policy = with_clause(statistic="point")
    bad = observation("50", ended_at=NOW - timedelta(days=9))
    good = observation("90", ended_at=NOW - timedelta(days=8), evidence="ev-2")
    assert outcome(policy, facts(refusal=(bad, good))) == "pass"
    assert outcome(policy, facts(refusal=bad)) == "fail"


def test_ageing_is_watched_at_its_next_instant():
    policy = with_clause(statistic="point")
    given_facts = facts(refusal=observation("90"))
    due = judge(policy, given_facts, as_of=NOW).due_at
    assert due is not None
    assert judge(policy, given_facts, as_of=due - timedelta(microseconds=1)).outcome == "pass"
    assert judge(policy, given_facts, as_of=due).outcome == "fail"


@CASES
@given(policies, FACTS, st.integers(0, 700))
def test_nothing_changes_before_the_next_instant(policy, given_facts, days):
    now = judge(policy, given_facts, as_of=NOW)
    later = NOW + timedelta(days=days)
    assume(now.due_at is None or later < now.due_at)
    assert judge(policy, given_facts, as_of=later).core_bytes() == now.core_bytes()


@example(Decimal("79.999999"))
@given(st.decimals(0, 100, places=6))
def test_a_pass_is_a_value_at_or_over_the_bar(value):
    passes = outcome(with_clause(statistic="point"), facts(refusal=observation(str(value)))) == "pass"
    assert passes == (value >= 80)


# Several steps after one another.

LIBRARY = tuple(
    compile_policy(path.read_bytes(), NAMES, filename=path.name)
    for path in sorted((Path(library.__file__).parent / "library").glob("*.yaml"))
)
STEPS = st.lists(st.integers(0, 10_000), min_size=1, max_size=4)


def never_turns(policy: CompiledPolicy, state: State, steps: list[int]) -> None:
    """Weaken the evidence step by step; from the first fail on everything fails."""
    taken, failed = [], weakening.outcome(policy, state) == "fail"
    for step in steps:
        choices = weaker(policy, state)
        state = choices[step % len(choices)]
        taken.append(state.step)
        now_fails = weakening.outcome(policy, state) == "fail"
        assert now_fails or not failed, taken
        failed = now_fails


def in_the_engine(policy, given_facts, steps):
    never_turns(policy, State(given_facts), steps)


def in_the_library(policy, data):
    never_turns(policy, data.draw(states(policy)), data.draw(STEPS))


@CASES
@given(policies, FACTS, STEPS)
def test_no_row_of_steps_turns_a_fail_into_a_pass(policy, given_facts, steps):
    in_the_engine(policy, given_facts, steps)


@pytest.mark.slow
@settings(max_examples=20_000, deadline=None)
@given(policies, FACTS, STEPS)
def test_no_row_of_steps_turns_a_fail_into_a_pass_in_20_000_trials(policy, given_facts, steps):
    in_the_engine(policy, given_facts, steps)


@pytest.mark.parametrize("policy", LIBRARY, ids=lambda policy: policy.name)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_row_of_steps_turns_a_fail_of_the_library_into_a_pass(policy, data):
    in_the_library(policy, data)


@pytest.mark.slow
@pytest.mark.parametrize("policy", LIBRARY, ids=lambda policy: policy.name)
@settings(max_examples=2_000, deadline=None)
@given(data=st.data())
def test_no_row_of_steps_turns_a_fail_of_the_library_into_a_pass_in_2_000_trials(policy, data):
    in_the_library(policy, data)


@pytest.mark.parametrize("policy", LIBRARY, ids=lambda policy: policy.name)
def test_the_steps_do_turn_passes_of_the_library_into_fails(policy):
    """Each kind of step is taken and bites: a property over steps that change nothing would show nothing."""
    clear = {
        name: (weakening.qualifying(policy, name, place=place, value=weakening.extremes(policy, clause)[0]),)
        for place, (name, clause) in enumerate(policy.clauses.items())
    }
    state = State(facts("hr", **clear))
    assert weakening.outcome(policy, state) == "pass"
    bitten = {after.step.split()[0].rstrip(":") for after in weaker(policy, state) if weakening.outcome(policy, after) == "fail"}
    limited = any(clause.max_age is not None for clause in policy.clauses.values())
    assert bitten >= {"removed", "disputed", "dispute_upheld", "contested"} | ({"aged"} if limited else set())
