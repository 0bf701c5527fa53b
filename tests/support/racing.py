"""Several callers at the same moment, each in a thread with a connection of its own that it keeps from round to round."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any, NamedTuple

from django.db import connections

from evaluations.kernel.errors import DomainError

LONGEST_WAIT = 60


class Outcome(NamedTuple):
    """What a caller got: what was returned, or the code of the refusal."""

    value: Any
    refused: str


class Racers:
    """So many callers; whatever is no refusal of ours is raised, for it would be a 500 at a door."""

    def __init__(self, callers: int) -> None:
        self._pool = ThreadPoolExecutor(callers)
        self._callers = callers

    def run(self, *calls: Callable[[], Any]) -> list[Outcome]:
        """Start all calls at once and return what became of each, in their order."""
        start = Barrier(len(calls))

        def attempt(call: Callable[[], Any]) -> Outcome:
            start.wait(LONGEST_WAIT)
            try:
                return Outcome(call(), "")
            except DomainError as refusal:
                return Outcome(None, refusal.code)

        return [future.result(LONGEST_WAIT) for future in [self._pool.submit(attempt, call) for call in calls]]

    def close(self) -> None:
        # Each thread closes its own connections: the barrier keeps one from closing in another's place.
        self.run(*[connections.close_all] * self._callers)
        self._pool.shutdown()


@contextmanager
def racers(callers: int) -> Iterator[Racers]:
    made = Racers(callers)
    try:
        yield made
    finally:
        made.close()


def codes(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the codes of the refusals, sorted; "" for each call that went through."""
    return sorted(outcome.refused for outcome in outcomes)
