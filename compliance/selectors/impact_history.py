"""Impact over a past span: the same comparison at the instants at which something was recorded, each on what was known then."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

from compliance.selectors.impact import Impact, Progress, measure_impact
from policies.selectors.comparing import Side
from policies.selectors.recorded import recorded_instants, thinned

MOST_INSTANTS = 24

SideAt = Callable[[datetime], Side | None]
"""Gives a side with its bindings as known at an instant; None where no version was in force then."""


class Moment(NamedTuple):
    """The comparison at one instant of the past; grants keep no past, so none are in it."""

    at: datetime
    impact: Impact


class Span(NamedTuple):
    """Which instants are asked, the first being the start of the span itself, and how many there were to choose from."""

    instants: list[datetime]
    recorded: int


def read_span(*, since: datetime, until: datetime, most: int = MOST_INSTANTS) -> Span:
    """Return the start of the span and the instants since at which something was recorded; of more than `most`, as many of them
    spread evenly over their order. What merely grew old between two of them shows at the later one."""
    recorded = recorded_instants(since=since, until=until)
    return Span([since, *thinned(recorded, most)], len(recorded))


def replay_impact(
    after: SideAt, before: SideAt, span: Span, *, progress: Callable[[datetime], Progress] | None = None
) -> Iterator[Moment]:
    """Yield the comparison at each instant of a span, judged as of it on what was known at it; systems are those of now."""
    for at in span.instants:
        side = after(at)
        if side is not None:
            heard = None if progress is None else progress(at)
            yield Moment(at, measure_impact(side, before(at), at=at, with_grants=False, progress=heard))
