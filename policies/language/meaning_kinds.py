"""The kinds of differences between two meanings: a value, a limit, a word of a ranking, a set, a named part. See `meaning`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from evaluations.kernel.numbers import plain


class Direction(StrEnum):
    """Whether the newer version asks less, more, or something else."""

    LOOSER = "looser"
    TIGHTER = "tighter"
    OTHER = "other"


class MeaningChange(NamedTuple):
    """One difference in meaning.

    `path` names the part as in the text (`spec.evidence.refusal.max_age_days`), `what` does in words, with names in back-ticks.
    `before` and `after` are texts as people read them, "" where that side has no such part.
    """

    path: str
    what: str
    before: str
    after: str
    direction: str

    @property
    def sentence(self) -> str:
        """The change in one sentence without a full stop: `the bar of … 80 % → 75 %, looser`."""
        if not self.before:
            told = f"{self.what} is new: {self.after}"
        elif not self.after:
            told = f"{self.what} is gone: {self.before}"
        else:
            told = f"{self.what} {self.before} → {self.after}"
        return told if self.direction == Direction.OTHER else f"{told}, {self.direction}"


Found = Iterator[MeaningChange]


def value_change(path: str, what: str, before: str, after: str, direction: Direction = Direction.OTHER) -> Found:
    if before != after:
        yield MeaningChange(path, what, before, after, direction)


def limit_change(
    path: str,
    what: str,
    before: Decimal | int | None,
    after: Decimal | int | None,
    *,
    tighter_up: bool,
    unit: str = "",
    none: str = "no limit",
) -> Found:
    """Tell of a limit; none at all is the loosest."""
    old, new = (none if held is None else f"{plain(Decimal(held))}{unit}" for held in (before, after))
    if before is None or after is None:
        yield from value_change(path, what, old, new, Direction.TIGHTER if before is None else Direction.LOOSER)
    else:
        yield from value_change(path, what, old, new, direction_of(before, after, tighter_up=tighter_up))


def rank_change(path: str, what: str, before: str, after: str, order: Sequence[str]) -> Found:
    """Tell of a word of a list that goes from the loosest to the tightest."""
    yield from value_change(path, what, before, after, direction_of(order.index(before), order.index(after), tighter_up=True))


def set_change(path: str, what: str, before: frozenset[str], after: frozenset[str], added: Direction) -> Found:
    """Tell of a set of words; one that only grows goes into the direction `added`, one that only shrinks into the other."""
    direction = Direction.OTHER
    if before < after or after < before:
        opposite = Direction.LOOSER if added == Direction.TIGHTER else Direction.TIGHTER
        direction = added if before < after else opposite
    yield from value_change(path, what, listed(sorted(before)), listed(sorted(after)), direction)


def direction_of(before: Any, after: Any, *, tighter_up: bool) -> Direction:
    if before == after:
        return Direction.OTHER
    return Direction.TIGHTER if (after > before) == tighter_up else Direction.LOOSER


def named_changes(
    path: str,
    kind: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    words: Callable[[Any], str],
    differing: Callable[[str, Any, Any], Found],
    *,
    added: Direction = Direction.OTHER,
) -> Found:
    """Tell of parts that have names: what came, what went, and what differs in those that stayed."""
    dropped = {Direction.TIGHTER: Direction.LOOSER, Direction.LOOSER: Direction.TIGHTER}.get(added, Direction.OTHER)
    for name in dict.fromkeys([*before, *after]):
        at = f"{path}.{name}"
        if name not in after:
            yield MeaningChange(at, f"the {kind} `{name}`", words(before[name]), "", dropped)
        elif name not in before:
            yield MeaningChange(at, f"the {kind} `{name}`", "", words(after[name]), added)
        else:
            yield from differing(at, before[name], after[name])


def section_change(path: str, what: str, before: Any, after: Any, differing: Callable[[str, Any, Any], Found]) -> Found:
    """Tell of a section that policies of the profile `conformance` lack."""
    if before is not None and after is not None:
        yield from differing(path, before, after)
    elif before is not None or after is not None:
        yield MeaningChange(path, what, "there" if before else "", "there" if after else "", Direction.OTHER)


def listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"
