"""Jobs that several threads bring at once, done as one: whoever finds nobody at work leads, and takes all that has gathered meanwhile.

What a database charges for a transaction is then paid once for all who wait; databases write their logs so, and call it group commit.
"""

import logging
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

logger = logging.getLogger("compliance.gathering")


class _Place(Generic[Job, Result]):
    """Where a thread waits, until its result is there or it is its turn to lead."""

    __slots__ = ("job", "leads", "result", "woken")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.result: Result | None = None
        self.leads = False
        self.woken = Lock()
        self.woken.acquire()


class Gathering(Generic[Job, Result]):
    """Gathers jobs of many threads.

    `together` gets jobs, `most` at the most, and returns a result for each, None for a job that is to be done `alone`. Should it raise,
    all of them are, by the threads that brought them. As many as were there at the end of the last round are waited for, `linger`
    seconds at the most: those just answered may come again, and have then the company of those who came while they were answered.
    """

    def __init__(
        self,
        *,
        together: Callable[[Sequence[Job]], Sequence[Result | None]],
        alone: Callable[[Job], Result],
        most: int,
        linger: float = 0.0,
    ) -> None:
        self._together, self._alone, self._most, self._linger = together, alone, most, linger
        self._waiting: list[_Place[Job, Result]] = []
        self._led = False
        self._expected = 1
        # So many must have come for the leader to go on; 0 where she waits for nobody.
        self._awaited = 0
        self._complete = Lock()
        self._complete.acquire()
        self._lock = Lock()

    def do(self, job: Job) -> Result:
        """Return the job's result. Raises what `alone` does."""
        place: _Place[Job, Result] = _Place(job)
        with self._lock:
            if not self._led:
                self._led = place.leads = True
            else:
                self._waiting.append(place)
                if 0 < self._awaited <= len(self._waiting):
                    self._awaited = 0
                    self._complete.release()
        if not place.leads:
            place.woken.acquire()
        if place.leads:
            self._lead(place)
        return self._alone(job) if place.result is None else place.result

    def _lead(self, own: _Place[Job, Result]) -> None:
        """Do what has gathered, the own job among it, and let the first of those who came meanwhile lead next."""
        others = self._most - 1
        self._wait_for(min(self._expected - 1, others))
        with self._lock:
            taken, self._waiting = [own, *self._waiting[:others]], self._waiting[others:]
        try:
            for place, result in zip(taken, self._together([place.job for place in taken]), strict=True):
                place.result = result
        except Exception:
            logger.exception("%s jobs could not be done together", len(taken))
        finally:
            for place in taken:
                if place is not own:
                    place.woken.release()
            with self._lock:
                self._expected = len(taken) + len(self._waiting)
                following = self._waiting.pop(0) if self._waiting else None
                self._led = following is not None
            if following is not None:
                following.leads = True
                following.woken.release()

    def _wait_for(self, others: int) -> None:
        """Wait until so many others are there, or the time is over."""
        with self._lock:
            if len(self._waiting) >= others:
                return
            self._awaited = others
        if not self._complete.acquire(timeout=self._linger):
            with self._lock:
                if self._awaited:
                    self._awaited = 0
                    return
            # The last of them came at that very moment.
            self._complete.acquire()
