"""How much one caller may ask of one process: buckets that fill by themselves. Each process counts for itself.

A bucket may be emptied below nothing by one large request, and is then closed until it has filled up again: so no request is too
large ever to be let in.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from threading import Lock

from django.conf import settings

FAILURES_PER_SECOND = 10
MOST_FAILURES = 100
MOST_TOKENS, MOST_ADDRESSES = 10_000, 10_000


class Buckets:
    """Buckets by key, each of `size` at most, filled by `rate` a second; of more than `most` keys the longest unused are forgotten."""

    def __init__(self, *, rate: float, size: float, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._size, self._most, self._clock = rate, size, most, clock
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)

    def wait(self, key: str) -> float:
        """Return the seconds until the key's bucket is open, 0 where it is."""
        with self._lock:
            return self._closed_for(self._level(key))

    def take(self, key: str, amount: float = 1) -> float:
        """Take from the key's bucket where it is open, and return 0; else take nothing, and return the seconds until it is."""
        with self._lock:
            level = self._level(key)
            closed = self._closed_for(level)
            if not closed:
                self._held[key] = (level - amount, self._clock())
                self._held.move_to_end(key)
                while len(self._held) > self._most:
                    self._held.popitem(last=False)
            return closed

    def forget(self, key: str) -> None:
        """Drop a key's bucket."""
        with self._lock:
            self._held.pop(key, None)

    def _level(self, key: str) -> float:
        level, since = self._held.get(key, (self._size, 0.0))
        return min(self._size, level + (self._clock() - since) * self._rate)

    def _closed_for(self, level: float) -> float:
        return 0.0 if level > 0 else (1 - level) / self._rate


@cache
def questions() -> Buckets:
    """Questions by token digest: only tokens that hold have a bucket."""
    rate = settings.DECISIONS_PER_SECOND
    return Buckets(rate=rate, size=2 * rate, most=MOST_TOKENS)


@cache
def failures() -> Buckets:
    """Refused callers, by client address."""
    return Buckets(rate=FAILURES_PER_SECOND, size=MOST_FAILURES, most=MOST_ADDRESSES)
