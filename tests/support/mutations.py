"""Changed copies of good files, and what an importer must still keep to when it reads one.

`mutations` is deterministic in its seed, so that a failure can be made again. `check` reads one and returns how it ended.
"""

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

from evaluations.importers.base import RUN_STATUSES, Pair
from evaluations.importers.worth import rate_from_counts
from evaluations.kernel.errors import InputRefused

SECONDS = 5.0
"""CPU time that one small file may take."""

JUNK: tuple[bytes, ...] = (
    b'"',
    b",",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"\n",
    b"\r",
    b"\x00",
    b"\xff",
    b"\xd0\xb0",
    b"NaN",
    b"-1",
    b"1e999",
    b"1" * 400,
    b"null",
    b"true",
    b"false",
    b"0.511",
    b"51.1",
    b"=1+1",
    b"../",
    b"[" * 3000,
    b"\\ud800",
)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**70, 0.511, 51.1, 1e300, float("nan"), "", " ", "80", "NaN", "а", "x" * 5000, [], {}, [None],
    {"a": 1}, "2026-11-01T00:00:00Z", "\ud800", "\x00", "=1", "../x",
)  # fmt: skip

Reader = Callable[[bytes], Iterable[Pair]]


def mutations(content: bytes, *, count: int, seed: int) -> Iterator[bytes]:
    """Yield `count` changed copies: bytes put in, taken out, doubled or swapped, cuts, and other values in a JSON's places."""
    dice = random.Random(seed)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    lines = content.split(b"\n")
    for _ in range(count):
        how = dice.randrange(8 if isinstance(value, dict | list) else 5)
        if how == 0:
            yield content[: dice.randrange(len(content))]
        elif how == 1:
            at = dice.randrange(len(content))
            yield content[:at] + dice.choice(JUNK) + content[at + dice.randrange(4) :]
        elif how == 2:
            at = dice.randrange(len(content))
            to = min(len(content), at + dice.randrange(1, 200))
            yield content[:at] + content[at:to] * dice.randrange(3) + content[to:]
        elif how == 3:
            mixed = list(lines)
            at, to = dice.randrange(len(mixed)), dice.randrange(len(mixed))
            mixed[at], mixed[to] = mixed[to], mixed[at] if dice.random() < 0.5 else mixed[to]
            yield b"\n".join(mixed)
        elif how == 4:
            changed = bytearray(content)
            for _ in range(dice.randrange(1, 6)):
                changed[dice.randrange(len(changed))] = dice.randrange(256)
            yield bytes(changed)
        else:
            yield _other_value(content, dice)


def _other_value(content: bytes, dice: random.Random) -> bytes:
    value = json.loads(content)
    at: Any = value
    for _ in range(40):
        key = dice.choice(sorted(at)) if isinstance(at, dict) else dice.randrange(len(at))
        inner = at[key]
        if isinstance(inner, dict | list) and inner and dice.random() < 0.75:
            at = inner
            continue
        if isinstance(at, dict) and dice.random() < 0.2:
            del at[key]
        else:
            at[key] = dice.choice(VALUES)
        break
    return json.dumps(value).encode("utf-8", "surrogatepass")


def check(read: Reader, content: bytes, *, names: Iterable[str]) -> str:
    """Read one file. Returns "refused" or "read"; fails on any other end, on a refusal without a place, and on bad pairs."""
    begun = time.process_time()
    try:
        pairs = list(read(content))
    except InputRefused as refused:
        for problem in refused.problems:
            assert any(problem.file.startswith(name) for name in names), f"no file: {problem!r}"
            assert problem.message, problem
            assert "\n" not in str(problem), problem
        return "refused"
    finally:
        assert time.process_time() - begun < SECONDS, "too slow"
    for pair in pairs:
        sound(pair)
    return "read"


def sound(pair: Pair) -> None:
    """Whether a pair keeps what every importer promises."""
    evidence, seen = pair
    assert evidence.run_status in RUN_STATUSES
    assert evidence.subject_as_written.isprintable()
    assert evidence.subject_as_written
    assert evidence.source
    assert isinstance(seen.value, Decimal)
    assert seen.value.is_finite()
    assert seen.value >= 0
    assert seen.value == seen.value.quantize(Decimal("0.000001")), seen
    assert len(seen.value_as_written) <= 60
    missing = (seen.errored or 0) + (seen.unscored or 0)
    if seen.k is not None:
        assert seen.n
        assert seen.value <= 100
        assert 0 <= seen.k <= seen.n, seen
        assert missing <= seen.n, seen
        rates = {rate_from_counts(seen.k, seen.n, better=better, missing=missing) for better in ("higher", "lower")}
        assert seen.value in rates, seen
