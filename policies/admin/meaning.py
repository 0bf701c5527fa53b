"""Differences in meaning between two policy versions, as pages show them."""

from collections.abc import Iterable, Mapping
from typing import Any

from evaluations.kernel.display import Cell, Mark, chip, ticked
from policies.language.meaning import Direction, MeaningChange

_MARKS = {
    Direction.LOOSER: Mark("looser", "fail", "lock_open"),
    Direction.TIGHTER: Mark("tighter", "pass", "lock"),
    Direction.OTHER: Mark("other", "neutral", "swap_horiz"),
}


def shown_meaning(changes: Iterable[Mapping[str, Any]]) -> list[tuple[Cell, Cell]]:
    """Return each change's chip and sentence; `changes` hold the fields of a `MeaningChange`, as dossiers keep them."""
    found = (MeaningChange(*(change[name] for name in MeaningChange._fields)) for change in changes)
    return [(chip(_MARKS[Direction(change.direction)]), ticked(change.sentence)) for change in found]
