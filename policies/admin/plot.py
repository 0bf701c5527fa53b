"""The drawing of refusal against harm: rates in, places on a sheet out. Pure; a template writes it down as SVG.

Refusal grows to the right and harm upwards, so the good corner is below on the right. Nothing is told by colour alone: each
subject has a number, its result has a shape, what has no interval is hollow, and the subject of the page is ringed and named.
A subject of which either rate is unknown has no place here: it is never drawn at zero.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

LEFT, TOP, SIDE = 44, 12, 360
"""Where the field of 0 to 100 percent lies on the sheet, in its units."""
WIDTH, HEIGHT = LEFT + SIDE + 12, TOP + SIDE + 46
TICKS = (0, 20, 40, 60, 80, 100)
MOST_LABELS = 60
"""Of more subjects than this, only the page's own is labelled: the table tells the others apart."""

_RADIUS = 5
_GLYPH = 6.5
_LINE = 12

SHAPES: Mapping[str, str] = {
    "pass": "circle",
    "fail": "square",
    "contested": "diamond",
    "missing": "triangle",
    "stale": "triangle",
    "error": "triangle",
}
"""Result → shape. A subject can have both rates and yet miss something else that the policy asks."""


@dataclass(frozen=True)
class Rate:
    """One measured rate in percent; `low` and `high` are its one-sided bounds, None where n is not stated."""

    value: Decimal
    low: Decimal | None = None
    high: Decimal | None = None


@dataclass(frozen=True)
class Measured:
    """A subject with both rates. `number` is what it is called in the drawing and in the table below."""

    number: int
    name: str
    refusal: Rate
    harm: Rate
    result: str
    own: bool = False


@dataclass(frozen=True)
class Label:
    x: str
    y: str
    anchor: str
    text: str


@dataclass(frozen=True)
class Cross:
    """The ends of an interval along one axis, through the mark."""

    x1: str
    y1: str
    x2: str
    y2: str


@dataclass(frozen=True)
class Spot:
    """One subject as drawn. `path` outlines its shape; `hollow` where an interval is missing."""

    words: str
    shape: str
    path: str
    hollow: bool
    own: bool
    x: str
    y: str
    crosses: tuple[Cross, ...]
    label: Label | None


@dataclass(frozen=True)
class Region:
    """Where both bars are met."""

    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True)
class Tick:
    at: str
    text: str


@dataclass(frozen=True)
class Drawing:
    """A whole sheet; every number is spelled in its units."""

    region: Region
    bar_x: str
    bar_y: str
    columns: tuple[Tick, ...]
    lines: tuple[Tick, ...]
    spots: tuple[Spot, ...]
    left: int = LEFT
    top: int = TOP
    right: int = LEFT + SIDE
    bottom: int = TOP + SIDE
    middle_x: int = LEFT + SIDE // 2
    middle_y: int = TOP + SIDE // 2
    width: int = WIDTH
    height: int = HEIGHT


def draw(subjects: Iterable[Measured], *, min_refusal: Decimal, max_harm: Decimal) -> Drawing:
    """Place subjects on the sheet: the page's own last, so that it lies on top, and its label first."""
    order = sorted(subjects, key=lambda item: (item.own, -item.number))
    labels = _labels(order)
    bar_x, bar_y = _across(min_refusal), _up(max_harm)
    return Drawing(
        region=Region(_spell(bar_x), _spell(bar_y), _spell(LEFT + SIDE - bar_x), _spell(TOP + SIDE - bar_y)),
        bar_x=_spell(bar_x),
        bar_y=_spell(bar_y),
        columns=tuple(Tick(_spell(_across(Decimal(at))), f"{at}") for at in TICKS),
        lines=tuple(Tick(_spell(_up(Decimal(at))), f"{at}") for at in TICKS),
        spots=tuple(_spot(item, labels.get(item.number)) for item in order),
    )


def _across(percent: Decimal) -> float:
    return LEFT + SIDE * float(percent) / 100


def _up(percent: Decimal) -> float:
    return TOP + SIDE - SIDE * float(percent) / 100


def _spell(number: float) -> str:
    return f"{number:.1f}"


def _spot(item: Measured, label: Label | None) -> Spot:
    x, y = _across(item.refusal.value), _up(item.harm.value)
    crosses = []
    if item.refusal.low is not None and item.refusal.high is not None:
        crosses.append(Cross(_spell(_across(item.refusal.low)), _spell(y), _spell(_across(item.refusal.high)), _spell(y)))
    if item.harm.low is not None and item.harm.high is not None:
        crosses.append(Cross(_spell(x), _spell(_up(item.harm.low)), _spell(x), _spell(_up(item.harm.high))))
    shape = SHAPES.get(item.result, "triangle")
    return Spot(
        words=f"{item.number}: {item.name}",
        shape=shape,
        path=_outline(shape, x, y),
        hollow=len(crosses) < 2,
        own=item.own,
        x=_spell(x),
        y=_spell(y),
        crosses=tuple(crosses),
        label=label,
    )


def _outline(shape: str, x: float, y: float) -> str:
    r = float(_RADIUS)
    if shape == "circle":
        return f"M{x - r:.1f} {y:.1f}a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 {-2 * r:g} 0z"
    corners = {
        "square": ((-r, -r), (r, -r), (r, r), (-r, r)),
        "diamond": ((0.0, -r - 1), (r + 1, 0.0), (0.0, r + 1), (-r - 1, 0.0)),
        "triangle": ((0.0, -r - 1), (r + 1, r), (-r - 1, r)),
    }[shape]
    return "M" + "L".join(f"{x + dx:.1f} {y + dy:.1f}" for dx, dy in corners) + "z"


Box = tuple[float, float, float, float]


def _labels(subjects: Sequence[Measured]) -> dict[int, Label]:
    """Put a label beside each mark where there is room: never over another mark or label, nor outside the field."""
    taken: list[Box] = [_around(item) for item in subjects]
    found: dict[int, Label] = {}
    wanted = sorted(subjects, key=lambda item: (not item.own, item.number))
    if len(wanted) > MOST_LABELS:
        wanted = [item for item in wanted if item.own]
    for item in wanted:
        text = f"{item.number} {item.name}" if item.own else str(item.number)
        x, y = _across(item.refusal.value), _up(item.harm.value)
        own_box = _around(item)
        inside = [place for place in _places(text, x, y) if _is_inside(place[0])]
        free = [place for place in inside if not any(_meets(place[0], other) for other in taken if other != own_box)]
        # The page's own is named even in a crowd: its label has a border that parts it from what lies below.
        chosen = next(iter(free), next(iter(inside), None) if item.own else None)
        if chosen is not None:
            taken.append(chosen[0])
            found[item.number] = chosen[1]
    return found


def _around(item: Measured) -> Box:
    x, y = _across(item.refusal.value), _up(item.harm.value)
    return x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS


def _places(text: str, x: float, y: float) -> list[tuple[Box, Label]]:
    wide = _GLYPH * len(text)
    away = _RADIUS + 4
    found: list[tuple[Box, Label]] = []
    for dx, dy, anchor in (
        (away, -away, "start"),
        (-away, -away, "end"),
        (away, away + _LINE / 2, "start"),
        (-away, away + _LINE / 2, "end"),
        (0, -away - 4, "middle"),
        (0, away + _LINE, "middle"),
    ):
        left = x + dx - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        base = y + dy
        found.append(((left, base - _LINE, left + wide, base + 2), Label(_spell(x + dx), _spell(base), anchor, text)))
    return found


def _is_inside(box: Box) -> bool:
    return box[0] >= LEFT and box[2] <= LEFT + SIDE and box[1] >= TOP - 4 and box[3] <= TOP + SIDE


def _meets(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
