"""Blast radius: the sum of its parts, never smaller for what is not said, and the worst of several."""

from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from evaluations.kernel.canonical import canonical_bytes
from evaluations.vocabulary import Domain
from policies.models import System
from policies.selectors.blast_radius import MOST, UNKNOWN, blast_radius, joined
from policies.vocabulary import Environment


def system(**changes: Any) -> System:
    known = {
        "key": "hr-prod",
        "title": "HR",
        "domain": "hr",
        "environment": "production",
        "reversible": True,
        "people_affected": 50,
        "writes_per_day": 10,
        "holds_personal_data": False,
        "money_at_stake_usd": Decimal(0),
    }
    return System(**{**known, **changes})


def score(**changes: Any) -> int:
    return blast_radius(system(**changes), ["write"]).score


def test_the_score_is_the_sum_of_its_parts_and_each_part_says_why() -> None:
    radius = blast_radius(system(), ["write"])
    assert radius.score == sum(part.weight for part in radius.parts) == 5 + 15 + 15 + 4 + 0 + 0 + 1 + 3
    assert radius.level == "medium"
    assert sum(part.most for part in radius.parts) == MOST
    assert all(part.why and part.value_text and 0 <= part.weight <= part.most for part in radius.parts)


def test_what_is_not_stated_counts_as_the_worst() -> None:
    unknown = dict.fromkeys(("people_affected", "writes_per_day", "holds_personal_data", "money_at_stake_usd"))
    worst = {
        "people_affected": 10**6,
        "writes_per_day": 10**6,
        "holds_personal_data": True,
        "money_at_stake_usd": Decimal(10) ** 9,
    }
    assert score(**unknown) == score(**worst)
    parts = blast_radius(system(**unknown), ["write"]).parts
    assert [part.weight == part.most for part in parts if part.value_text == UNKNOWN] == [True] * 4
    whole = blast_radius(system(**unknown, reversible=False), ["delete_everything"])
    assert (whole.score, whole.level) == (100, "severe")


@pytest.mark.parametrize(
    ("field", "growing"),
    [
        ("reversible", [True, False]),
        ("environment", ["development", "staging", "production"]),
        ("domain", ["calendar", "teams", "drive", "email", "customer_service", "hybrid", "hr", "it_service_management"]),
        ("people_affected", [0, 1, 100, 101, 1000, 10_001, None]),
        ("writes_per_day", [0, 1, 101, 10_001, None]),
        ("holds_personal_data", [False, True, None]),
        ("money_at_stake_usd", [Decimal(0), Decimal("0.01"), Decimal(1001), Decimal("100000.01"), Decimal(2_000_000), None]),
    ],
)
def test_more_harm_never_scores_less(field: str, growing: list[Any]) -> None:
    scores = [score(**{field: value}) for value in growing]
    assert all(less <= more for less, more in pairwise(scores))
    assert scores[0] < scores[-1]


def test_actions_count_and_no_action_counts_as_the_worst() -> None:
    scores = [blast_radius(system(), actions).score for actions in (["read"], ["read", "write"], ["write", "delete"], [])]
    assert scores == sorted(scores)
    assert scores[2] == scores[3]


def test_the_same_is_always_the_same_bytes() -> None:
    one, two = (blast_radius(system(), actions) for actions in (["write", "read"], ["read", "write", "read"]))
    assert canonical_bytes(one.as_value()) == canonical_bytes(two.as_value())


def test_several_systems_are_as_bad_as_the_worst() -> None:
    small, big = blast_radius(system(key="a", domain="calendar")), blast_radius(system(key="b", reversible=False))
    assert joined([small, big]) == joined([big, small]) == big
    twin = blast_radius(system(key="aa", reversible=False))
    assert joined([big, twin]) == twin
    with pytest.raises(ValueError, match="at least one"):
        joined([])


def test_every_word_of_the_closed_lists_has_a_weight_of_its_own() -> None:
    for field, words in (("domain", Domain.values), ("environment", Environment.values)):
        for word in words:
            part = next(part for part in blast_radius(system(**{field: word})).parts if part.name == field)
            assert 0 < part.weight <= part.most
