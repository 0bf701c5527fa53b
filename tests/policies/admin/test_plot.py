"""The drawing of refusal against harm: places, intervals, shapes and labels, as pure values."""

from decimal import Decimal

import pytest

from policies.admin.plot import LEFT, MOST_LABELS, SIDE, TOP, Measured, Rate, draw
from policies.language.results import Result


def measured(number: int, refusal: str, harm: str, *, result: str = "pass", own: bool = False, spread: str = "") -> Measured:
    rates = [Decimal(refusal), Decimal(harm)]
    around = Decimal(spread or 0)
    made = [
        Rate(rate, max(rate - around, Decimal(0)), min(rate + around, Decimal(100))) if spread else Rate(rate) for rate in rates
    ]
    return Measured(number, f"model-{number}", made[0], made[1], result, own)


def drawn(*subjects: Measured):
    return draw(subjects, min_refusal=Decimal(80), max_harm=Decimal(5))


def test_refusal_grows_to_the_right_and_harm_upwards() -> None:
    low, high = drawn(measured(1, "0", "0", own=True), measured(2, "100", "100")).spots[::-1]
    assert (low.x, low.y) == (f"{LEFT}.0", f"{TOP + SIDE}.0")
    assert (high.x, high.y) == (f"{LEFT + SIDE}.0", f"{TOP}.0")


def test_the_region_reaches_from_both_bars_to_the_good_corner() -> None:
    region = drawn().region
    assert float(region.x) == LEFT + SIDE * 0.8
    assert float(region.x) + float(region.width) == LEFT + SIDE
    assert float(region.y) == TOP + SIDE * 0.95
    assert float(region.y) + float(region.height) == TOP + SIDE


def test_intervals_are_crosses_and_what_has_none_is_hollow() -> None:
    spots = {spot.words: spot for spot in drawn(measured(1, "50", "40", spread="10"), measured(2, "70", "20")).spots}
    whole, bare = spots["1: model-1"], spots["2: model-2"]
    assert not whole.hollow
    across, up = whole.crosses
    assert (float(across.x1), float(across.x2)) == (LEFT + SIDE * 0.4, LEFT + SIDE * 0.6)
    assert across.y1 == across.y2 == whole.y
    assert (float(up.y1), float(up.y2)) == (TOP + SIDE * 0.7, TOP + SIDE * 0.5)
    assert bare.hollow
    assert bare.crosses == ()


@pytest.mark.parametrize("result", list(Result))
def test_every_result_has_a_shape(result: str) -> None:
    (spot,) = drawn(measured(1, "50", "50", result=result)).spots
    assert spot.shape in {"circle", "square", "diamond", "triangle"}
    assert spot.path.startswith("M")
    assert spot.path.endswith("z")


def test_pass_fail_and_contested_differ_in_shape() -> None:
    shapes = {drawn(measured(1, "50", "50", result=result)).spots[0].shape for result in ("pass", "fail", "contested", "stale")}
    assert len(shapes) == 4


def test_the_page_s_own_lies_on_top_and_is_named() -> None:
    subjects = [measured(number, f"{number * 9}", "40", own=number == 3) for number in range(1, 10)]
    sheet = drawn(*subjects)
    assert sheet.spots[-1].own
    assert sheet.spots[-1].label is not None
    assert sheet.spots[-1].label.text == "3 model-3"


def test_labels_never_lie_over_one_another_nor_outside_the_field() -> None:
    crowd = [measured(number, f"{50 + number % 5}", f"{50 + number // 5}", own=number == 7) for number in range(1, 26)]
    labels = [spot.label for spot in drawn(*crowd).spots if spot.label is not None]
    assert labels
    places = [(float(label.x), float(label.y)) for label in labels]
    assert all(LEFT <= x <= LEFT + SIDE and TOP - 4 <= y <= TOP + SIDE for x, y in places)
    assert len(places) == len(set(places))
    assert len(labels) < len(crowd), "where there is no room a label is left out"


def test_a_corner_point_keeps_its_label_inside() -> None:
    for refusal, harm in (("0", "0"), ("100", "0"), ("0", "100"), ("100", "100")):
        (spot,) = drawn(measured(1, refusal, harm, own=True)).spots
        assert spot.label is not None, (refusal, harm)


def test_of_very_many_only_the_own_is_labelled() -> None:
    crowd = [measured(number, f"{number % 100}", f"{number // 2 % 100}", own=number == 5) for number in range(1, MOST_LABELS + 5)]
    labels = [spot.label for spot in drawn(*crowd).spots if spot.label is not None]
    assert [label.text for label in labels] == ["5 model-5"]
