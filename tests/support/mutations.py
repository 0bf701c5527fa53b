"""Changed copies of good files, and what an importer must still keep to when it reads one.

`mutated` is deterministic in its dice, so that a failure can be made again. `check` reads one and returns how it ended.
"""

import io
import json
import random
import re
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable
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


def mutated(content: bytes, dice: random.Random) -> bytes:
    """Return a changed copy: bytes put in, taken out, doubled or swapped, a cut, another value in a JSON's place; or, of a zip, one
    with such a member in it, so that the change lies behind the archive's own checks."""
    if content.startswith(b"PK") and dice.random() < 0.8:
        try:
            return _other_member(content, dice)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, OSError, ValueError, KeyError, RuntimeError):
            pass  # a copy that was broken before, or a method of compression that Python does not know: its bytes are changed
    how = dice.randrange(8)
    at = dice.randrange(len(content))
    if how == 0:
        return content[:at]
    if how == 1:
        return content[:at] + dice.choice(JUNK) + content[at + dice.randrange(4) :]
    if how == 2:
        to = min(len(content), at + dice.randrange(1, 200))
        return content[:at] + content[at:to] * dice.randrange(3) + content[to:]
    if how == 3:
        lines = content.split(b"\n")
        first, second = dice.randrange(len(lines)), dice.randrange(len(lines))
        lines[first], lines[second] = lines[second], lines[first] if dice.random() < 0.5 else lines[second]
        return b"\n".join(lines)
    if how == 4:
        changed = bytearray(content)
        for _ in range(dice.randrange(1, 6)):
            changed[dice.randrange(len(changed))] = dice.randrange(256)
        return bytes(changed)
    if how == 5:
        # A digit for another: what is read must then be what is written now.
        digits = [place for place in (dice.randrange(len(content)) for _ in range(60)) if content[place : place + 1].isdigit()]
        if digits:
            return content[: digits[0]] + str(dice.randrange(10)).encode() + content[digits[0] + 1 :]
    if content.lstrip()[:1] in (b"{", b"["):
        try:
            return _other_value(content, dice)
        except (ValueError, RecursionError):
            lines = content.split(b"\n")
            which = dice.randrange(len(lines))
            try:
                lines[which] = _other_value(lines[which], dice)
            except (ValueError, RecursionError, TypeError):
                lines[which] = dice.choice(JUNK)
            return b"\n".join(lines)
    return content[:at] + dice.choice(JUNK) + content[at:]


def _other_member(content: bytes, dice: random.Random) -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        members = source.namelist()
        chosen = dice.choice(members)
        for member in members:
            data = source.read(member)
            if member == chosen and data:
                if dice.random() < 0.05:
                    continue
                data = mutated(data, dice)
            name = dice.choice(("../x", "/x", member)) if member == chosen and dice.random() < 0.05 else member
            if name not in archive.namelist():  # a copy of a copy may hold a name twice already
                archive.writestr(name, data)
    return out.getvalue()


def _other_value(content: bytes, dice: random.Random) -> bytes:
    value = json.loads(content)
    at: Any = value
    for _ in range(40):
        if not isinstance(at, dict | list) or not at:
            break
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
        sound(pair, content)
    return "read"


def sound(pair: Pair, content: bytes) -> None:
    """Whether a pair keeps what every importer promises: a value is its counts', or the number that is written in the file."""
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
    elif not content.startswith((b"PK", b"\xff\xfe", b"\xfe\xff")):
        written = seen.value_as_written.rstrip(" %")
        if re.fullmatch(r"-?[0-9.eE+-]+", written):
            assert written.encode() in content, f"{written} is not in the file"
            stated = Decimal(written)
            assert min(abs(seen.value - stated), abs(seen.value - stated * 100)) <= Decimal("0.000001"), seen
