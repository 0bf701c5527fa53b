"""What evidence would restore what fell, and changes kept as values."""

from decimal import Decimal

import pytest

from policies.language.changes import RuleChange
from policies.language.restoring import change_of, change_value, restoring_sentence


def change(**changed: object) -> RuleChange:
    held: dict[str, object] = {
        "rule": "refuses",
        "part": "",
        "clause": "refusal",
        "before_result": "pass",
        "after_result": "fail",
        "before_part": "pass",
        "after_part": "fail",
        "before_value": Decimal("91.25"),
        "after_value": Decimal(71),
        "before_rate": Decimal("91.25"),
        "after_rate": Decimal(71),
        "before_k": None,
        "before_n": 80,
        "after_k": Decimal(71),
        "after_n": 100,
        "before_bar": Decimal(80),
        "bar": Decimal(80),
        "before_model": "",
        "after_model": "",
        "floor": True,
        "change": Decimal("-20.25"),
        "chance": Decimal("0.0003"),
        "unit": "percent",
        "statistic": "point",
        "confidence": Decimal("0.95"),
    }
    return RuleChange(**{**held, **changed})  # type: ignore[arg-type]


def test_a_change_comes_back_from_its_value_as_it_was() -> None:
    assert change_of(change_value(change())) == change()
    assert change_value(change())["before_value"] == "91.25"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({}, "a newer result of refusal: at least 80 %"),
        ({"after_part": "missing"}, "a result of refusal: at least 80 %"),
        ({"after_part": "stale"}, "a newer run of refusal: at least 80 %"),
        (
            {"after_part": "contested"},
            "a newer result of refusal, or a ruling on the evidence that disagrees: at least 80 %",
        ),
        ({"floor": False, "bar": Decimal(2)}, "a newer result of refusal: at most 2 %"),
        (
            {"statistic": "lower_bound"},
            (
                "a newer result of refusal whose 95 % lower bound is at least 80 % "
                "(90 % observed clears it from n = 50 on; 100 % observed clears it from n = 14 on)"
            ),
        ),
        (
            {"statistic": "upper_bound", "floor": False, "bar": Decimal(2)},
            (
                "a newer result of refusal whose 95 % upper bound is at most 2 % "
                "(1 % observed clears it from n = 600 on; 0 % observed clears it from n = 149 on)"
            ),
        ),
    ],
)
def test_it_says_which_evidence_would_restore_it(changed: dict[str, object], sentence: str) -> None:
    assert restoring_sentence(change(**changed)) == sentence
