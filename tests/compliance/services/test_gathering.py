"""Jobs of many threads done as one: each gets its own result, once, whatever becomes of the others."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

import pytest

from compliance.services.gathering import Gathering

Together = Callable[[Sequence[int]], Sequence[int | None]]
PATIENCE = 20


def square(jobs: Sequence[int]) -> list[int]:
    sleep(0.0005)
    return [job * job for job in jobs]


def alone(job: int) -> int:
    return -job


def gathering(together: Together = square, *, most: int = 4, linger: float = 0.0) -> Gathering[int, int]:
    return Gathering(together=together, alone=alone, most=most, linger=linger)


@pytest.mark.parametrize("linger", [0.0, 0.001])
def test_every_job_is_done_once_and_gets_its_own_result(linger: float) -> None:
    done: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    busy = threading.Lock()

    def together(jobs: Sequence[int]) -> list[int]:
        assert busy.acquire(blocking=False), "two lead at once"
        try:
            sizes[len(jobs)] += 1
            done.update(jobs)
            return square(jobs)
        finally:
            busy.release()

    held = gathering(together, linger=linger)
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(held.do, range(1, 2_001), timeout=PATIENCE))
    assert results == [job * job for job in range(1, 2_001)]
    assert done == Counter(range(1, 2_001))
    assert max(sizes) == 4, "nobody ever had company, or there were too many"


def test_a_lone_job_waits_for_nobody() -> None:
    held = gathering(linger=30)
    assert [held.do(job) for job in (2, 3, 4)] == [4, 9, 16]


def test_those_who_come_again_are_waited_for_and_nobody_else() -> None:
    sizes: list[int] = []

    def together(jobs: Sequence[int]) -> list[int]:
        sizes.append(len(jobs))
        return square(jobs)

    def bring(jobs: range) -> None:
        for job in jobs:
            assert held.do(job) == job * job
            sleep(0.003)  # as long as it takes to come again

    held = gathering(together, most=8, linger=0.5)
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(bring, [range(50)] * 5, timeout=PATIENCE))
    assert sizes.count(5) > 40, "they were not waited for"
    assert len(sizes) < 70
    # The last who waited in vain knows that nobody comes any more.
    held.do(1)
    began = monotonic()
    held.do(2)
    assert monotonic() - began < 0.5


@pytest.mark.parametrize("result", [None, "raises", "too few"])
def test_what_cannot_be_done_together_is_done_alone_by_everybody(result: str | None) -> None:
    def together(jobs: Sequence[int]) -> Sequence[int | None]:
        sleep(0.0005)
        if result == "raises":
            raise RuntimeError("together it does not work")
        return [None] * len(jobs) if result is None else []

    held = gathering(together)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(held.do, range(1, 101), timeout=PATIENCE)) == [-job for job in range(1, 101)]


def test_one_that_fails_alone_raises_for_whoever_brought_it() -> None:
    def failing(job: int) -> int:
        raise ValueError(job)

    held: Gathering[int, int] = Gathering(
        together=lambda jobs: [None if job == 7 else job for job in jobs], alone=failing, most=4
    )
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(held.do, job) for job in range(20)]
        for job, future in enumerate(found):
            if job == 7:
                with pytest.raises(ValueError, match="7"):
                    future.result(PATIENCE)
            else:
                assert future.result(PATIENCE) == job
    assert held.do(1) == 1
