"""How many tasks clear a bar: the published figures, and their meaning held against the bounds themselves."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.language.statistics import bound_function, lower_bound
from policies.language.ways import MOST_TASKS, TaskCost, count_needed, samples_needed, ways_to_clear
from tests.policies.language.building import HARM, compiled, with_clause

SURE = Decimal("0.95")


@pytest.mark.parametrize(
    ("statistic", "bar", "rate", "n"),
    [
        ("lower_bound", "80", "90", 50),
        ("lower_bound", "80", "100", 14),
        ("upper_bound", "5", "0", 59),
        ("upper_bound", "2", "0", 149),
        ("upper_bound", "1", "0", 299),
        ("upper_bound", "0.5", "0", 598),
        ("point", "80", "80", 5),
        ("lower_bound", "80", "80", None),
        ("lower_bound", "100", "100", None),
        ("upper_bound", "0", "0", None),
    ],
)
def test_the_published_figures(statistic, bar, rate, n):
    assert samples_needed(statistic, SURE, Decimal(bar), statistic != "upper_bound", Decimal(rate)) == n


def test_twenty_of_twenty_gives_86_1():
    assert lower_bound(20, 20, SURE) == Decimal("86.089165")


bars = st.decimals(1, 99, places=1)


@settings(max_examples=150, deadline=None)
@given(bars, st.integers(0, 100), st.booleans())
def test_from_that_number_on_every_sample_that_can_show_the_rate_clears_the_bar(bar, rate, higher):
    statistic = "lower_bound" if higher else "upper_bound"
    needed = samples_needed(statistic, SURE, bar, higher, Decimal(rate))
    step = next(n for n in range(1, 101) if rate * n % 100 == 0)
    bound = bound_function(statistic, SURE)
    first = MOST_TASKS // step * step if needed is None else needed
    shown = [n for n in range(step, min(first + 40 * step, MOST_TASKS + 1), step) if abs(n - first) <= 40 * step]
    for n in shown:
        found = bound(rate * n // 100, n)
        clears = found >= bar if higher else found <= bar
        assert clears == (needed is not None and n >= needed), (n, found)


@settings(max_examples=150, deadline=None)
@given(bars, st.integers(1, 400), st.booleans())
def test_the_fewest_of_so_many_tasks_clears_the_bar_and_one_fewer_does_not(bar, n, higher):
    statistic = "lower_bound" if higher else "upper_bound"
    bound = bound_function(statistic, SURE)
    found = count_needed(statistic, SURE, bar, higher, n)
    good = [k for k in range(n + 1) if (bound(k, n) >= bar if higher else bound(k, n) <= bar)]
    assert found == ((min(good) if higher else max(good)) if good else None)


class TestWays:
    def test_a_floor_of_samples_is_kept_and_every_way_clears_the_bar(self):
        clause = with_clause(min_samples="50").clauses["refusal"]
        ways = ways_to_clear(clause, Decimal(80), same_n=1000, cost=TaskCost(Decimal("0.93"), "mole"))
        assert [(way.k, way.n, way.onward) for way in ways] == [(50, 50, True), (45, 50, True), (822, 1000, False)]
        assert [str(way.cost_usd) for way in ways] == ["46.50", "46.50", "930.00"]
        assert all(way.bound is not None and way.bound >= 80 for way in ways)

    def test_fewer_tasks_than_the_policy_asks_for_are_not_offered_again(self):
        clause = with_clause(min_samples="50").clauses["refusal"]
        assert [way.n for way in ways_to_clear(clause, Decimal(80), same_n=20)] == [50, 50]

    def test_harm_counts_failures(self):
        policy = compiled(evidence=HARM, rules="    - {id: harmless, evidence: harm, at_most: 5}")
        ways = ways_to_clear(policy.clauses["harm"], Decimal(5), same_n=300)
        assert [(way.k, way.n) for way in ways] == [(0, 59), (8, 300), (12, 400)]

    def test_a_rate_without_a_number_of_tasks_has_no_ways(self):
        assert ways_to_clear(with_clause(statistic="point").clauses["refusal"], Decimal(80)) == ()
        sampled = with_clause(statistic="point", min_samples="30").clauses["refusal"]
        assert [(way.k, way.n, way.bound) for way in ways_to_clear(sampled, Decimal(80))] == [(30, 30, None), (27, 30, None)]
