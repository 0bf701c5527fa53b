"""Changed copies of files of every format: each is read soundly or refused with file and place, within 300 MB and without a hang."""

import gzip
import io
import json
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack

import pytest

from evaluations.importers.registry import IMPORTERS, pick, read_files
from evaluations.kernel.errors import InputRefused
from tests.evaluations.importers import fuzz
from tests.support.world import ROOT

PROCESSES = 2
EACH = 50_000


def test_every_format_has_a_seed_that_is_read_without_a_complaint() -> None:
    assert fuzz.formats() >= {importer.NAME for importer in IMPORTERS}
    for seed in fuzz.seeds():
        last = list(seed.files)[-1]
        # An attestation holds no number: alone it is always refused.
        assert fuzz.format_of(seed) == "in-toto" or fuzz.read(seed, seed.files[last]), last


def test_a_few_hundred_changed_copies_of_every_format() -> None:
    ends = Counter(how for _, how in fuzz.run(1_000_000, 500))
    assert {how for how in ends if how.startswith("failed")} == set()
    assert ends["read"] > 50
    assert ends["refused"] > 50


@pytest.mark.slow
def test_a_hundred_thousand_changed_copies() -> None:
    command = [sys.executable, "-m", "tests.evaluations.importers.fuzz"]
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, str(place * EACH), str(EACH)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                )
            )
            for place in range(PROCESSES)
        ]
        told = [(process.communicate(timeout=3000), process.returncode) for process in running]
    for (out, err), code in told:
        assert code == 0, err[-4000:] + out
        ended = json.loads(out)
        assert ended["read"] + ended["refused"] == EACH
        assert ended["megabytes"] <= fuzz.MEGABYTES


class Endless(io.RawIOBase):
    """A stream of one line of a gigabyte, which is nowhere held."""

    def __init__(self, first: bytes, size: int = 1024**3) -> None:
        self.first = first
        self.size = size
        self.place = 0
        self.given = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.place = offset + (0 if whence == io.SEEK_SET else self.place if whence == io.SEEK_CUR else self.size)
        return self.place

    def read(self, size: int = -1) -> bytes:
        size = min(self.size - self.place, size if size >= 0 else self.size)
        self.given += size
        assert self.given <= 600 * 1024**2, "it reads on where it should have refused"
        data = self.first[self.place : self.place + size]
        self.place += size
        return data + b"x" * (size - len(data))


@pytest.mark.parametrize("importer", IMPORTERS, ids=lambda importer: importer.NAME)
@pytest.mark.parametrize("first", [b'{"a": "', b"a,b,", b'[{"task_id": "'])
def test_a_line_of_a_gigabyte_is_refused_without_being_held(importer, first: bytes) -> None:
    seed = next((each for each in fuzz.seeds() if fuzz.format_of(each) == importer.NAME), None)
    assert seed is not None
    name = list(seed.files)[-1]
    told = {"source": "lab", "subject": seed.subject, "profile": seed.profile}
    pairs = read_files(importer, {name: Endless(first)}, registry=fuzz.REGISTRY, **told)
    with pytest.raises(InputRefused) as caught:
        list(pairs)
    assert caught.value.problems[0].file.startswith(name)


@pytest.mark.parametrize("deep", [b"[" * 200_000, b'{"a":' * 200_000, b"[[" * 20 + b"1" + b"]]" * 20])
def test_deep_nesting_is_refused(deep: bytes) -> None:
    for importer in IMPORTERS:
        seed = next(each for each in fuzz.seeds() if fuzz.format_of(each) == importer.NAME)
        with pytest.raises(InputRefused):
            fuzz.read(seed._replace(format_name=importer.NAME), deep)


def test_a_gzip_bomb_is_refused_by_every_format() -> None:
    bomb = gzip.compress(b" " * (64 * 1024 * 1024))
    for importer in IMPORTERS:
        seed = next(each for each in fuzz.seeds() if fuzz.format_of(each) == importer.NAME)
        with pytest.raises(InputRefused):
            fuzz.read(seed._replace(format_name=importer.NAME), bomb)
    with pytest.raises(InputRefused):
        pick(None, bomb, "x")
