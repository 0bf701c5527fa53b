"""Large JSON piece by piece: the same values as at once, wherever the chunks end, and no memory for what is let go."""

import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.importers import jsonstream
from evaluations.importers.fields import NumberText
from evaluations.importers.jsonstream import Reader
from evaluations.kernel.errors import InputRefused
from tests.evaluations.importers.helpers import only

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def reader(data: bytes, *, limit: int = 10_000) -> Reader:
    return Reader(io.BytesIO(data), name="a.json", limit=limit)


def walk(data: bytes, *, keys: bool, limit: int) -> None:
    found = reader(data, limit=limit)
    if keys:
        for _ in found.keys():  # noqa: SIM118
            found.value()
    else:
        list(found.items())
    found.end()


def problem(data: bytes, *, keys: bool = False, limit: int = 10_000) -> Any:
    with pytest.raises(InputRefused) as caught:
        walk(data, keys=keys, limit=limit)
    return only(list(caught.value.problems))


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=4), st.lists(JSON, max_size=5), max_size=4), st.integers(1, 9))
def test_values_are_the_same_as_read_at_once(value, chunk):
    data = json.dumps(value, indent=chunk % 3, ensure_ascii=chunk % 2 == 0).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonstream, "CHUNK_BYTES", chunk)
        found = reader(data)
        assert {key: list(found.items()) for key in found.keys()} == value  # noqa: SIM118
        found.end()


def test_fractions_and_words_keep_their_text_and_whole_numbers_are_numbers():
    half, nan, far, whole = reader(b"[0.50, NaN, -Infinity, 7]").items()
    assert (half, nan, far, whole) == ("0.50", "NaN", "-Infinity", 7)
    assert all(isinstance(each, NumberText) for each in (half, nan, far))


def test_a_mark_before_the_text_is_passed_over():
    assert list(reader(b"\xef\xbb\xbf[1]").items()) == [1]


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b"[1, 2", "malformed", "breaks off"),
        (b'["a', "malformed", "breaks off"),
        (b"[1 2]", "malformed", "a comma is missing"),
        (b"[1, ]", "malformed", "no JSON"),
        (b"{}", "malformed", "`[` was expected"),
        (b"[1] x", "malformed", "more after the end"),
        (b"[" * 100_000, "malformed", "nested too deeply"),
        (b"[" + b"9" * 9000 + b"]", "malformed", "too many digits"),
        (b'["' + b"a" * 20_000 + b'"]', "too_large", "more than 10000 characters"),
        (b'["\xff"]', "encoding", "byte 0xff"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(data, code, message):
    found = problem(data)
    assert found.code == code
    assert message in found.message


def test_a_key_twice_and_a_missing_colon_are_refused():
    assert problem(b'{"a": 1, "a": 2}', keys=True).code == "duplicate_key"
    assert "a colon is missing" in problem(b'{"a" 1}', keys=True).message
    assert "a key is no text" in problem(b"{1: 1}", keys=True).message


def test_a_long_list_takes_the_memory_of_one_value():
    data = b"[" + b",".join(b'"' + b"x" * 1000 + b'"' for _ in range(20_000)) + b"]"
    tracemalloc.start()
    assert sum(1 for _ in reader(data).items()) == 20_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 1024 * 1024
