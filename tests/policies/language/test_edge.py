"""How far a judgement is from its edge."""

import json
from decimal import Decimal

import pytest

from policies.language.edge import distance, seen_in
from policies.language.evaluator import judge
from tests.policies.language.building import HARM, NOW, REFUSAL, compiled, facts, observation, policy_text

POINTS = (REFUSAL + "\n" + HARM).replace("max_age_days", "statistic: point, max_age_days")
BOTH = "    - {id: refuses, evidence: refusal, at_least: 80}\n    - {id: harmless, evidence: harm, at_most: 5}"
ANY_OF = """\
    - id: either
      any_of:
        - {evidence: refusal, at_least: 80}
        - all_of: [{evidence: refusal, at_least: 60}, {evidence: harm, at_most: 5}]"""


def edge(rules: str, refusal: str | None, harm: str | None) -> Decimal | None:
    policy = compiled(policy_text(rules, evidence=POINTS))
    given = {}
    if refusal is not None:
        given["refusal"] = observation(refusal)
    if harm is not None:
        given["harm"] = observation(
            harm, metric="harmful_completion_rate", benchmark="mole", version="2026-09", evidence="ev-harm"
        )
    judgement = judge(policy, facts(**given), as_of=NOW)
    found = distance(policy, judgement.rules)
    # What is read back from a stored core is as far from its edge as what was judged.
    assert distance(policy, seen_in(json.loads(judgement.core_bytes()))) == found
    return found


@pytest.mark.parametrize(
    ("rules", "refusal", "harm", "expected"),
    [
        (BOTH, "84", "3", "2"),  # passes: the rule with the smallest margin falls first
        (BOTH, "84", "5.5", "0.5"),  # fails: one rule must move
        (BOTH, "70", "5.5", "10"),  # fails: both must, the farther decides
        (BOTH, "84", None, None),  # what is missing has no distance
        (BOTH, None, "9", None),
        (ANY_OF, "84", "9", "4"),  # one branch carries it
        (ANY_OF, "84", "4", "4"),  # two do: both must fall, the one by 4, the other by 1
        (ANY_OF, "70", "6", "1"),  # the nearer branch is enough
        (ANY_OF, "50", "6", "10"),
    ],
)
def test_it_is_what_would_have_to_move_for_the_outcome_to_turn(rules, refusal, harm, expected) -> None:
    assert edge(rules, refusal, harm) == (None if expected is None else Decimal(expected))


def test_an_advisory_rule_turns_nothing() -> None:
    assert edge(BOTH.replace("at_most: 5}", "at_most: 5, enforcement: advisory}"), "84", "9") == 4
