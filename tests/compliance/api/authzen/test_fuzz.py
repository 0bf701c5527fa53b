"""Whatever is sent: never an error on our side, and never a permission that was not asked for in full."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compliance.api.authzen.reading import Refused, parse_json
from tests.compliance.api.authzen.doors import Doors, question

PATHS = ("evaluation", "evaluations", "search/subject", "search/resource", "search/action")
WORDS = (
    *("subject", "action", "resource", "context", "evaluations", "options", "page", "type", "id", "name", "properties"),
    *("fingerprint", "limit", "token", "evaluations_semantic", "deny_on_first_deny", "model", "system", "write", "observe"),
)
FUZZ = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

# Names that mean something in the protocol, so that what is made gets past the first check; none is the granted subject.
words = st.sampled_from(WORDS) | st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5), max_leaves=12
)


def bodies() -> st.SearchStrategy[dict[str, Any]]:
    """Return questions about somebody else, with parts of them replaced by anything."""
    asked = question("nobody")
    part = st.sampled_from(["subject", "action", "resource", "context", "evaluations", "options", "page", "other"])
    return st.builds(lambda changes: {**asked, **changes}, st.dictionaries(part, values, max_size=4))


def check(doors: Doors, path: str, body: bytes, kind: str = "application/json") -> None:
    answer = doors.send(path, body, Content_Type=kind)
    assert answer.status_code in (200, 400, 413), (answer.status_code, answer.content)
    if answer.status_code != 200:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return
    found = answer.json()
    decisions = found.get("evaluations", [found] if "decision" in found else [])
    assert not any(one["decision"] for one in decisions)
    assert found.get("results", []) == [] or path.startswith("search/")


@pytest.mark.parametrize("path", PATHS)
def test_any_bytes(doors: Doors, path: str) -> None:
    @FUZZ
    @given(st.binary(max_size=200))
    def sent(body: bytes) -> None:
        check(doors, path, body)

    sent()


@pytest.mark.parametrize("path", PATHS)
def test_any_json(doors: Doors, path: str) -> None:
    @FUZZ
    @given(values)
    def sent(value: Any) -> None:
        check(doors, path, json.dumps(value).encode())

    sent()


@pytest.mark.parametrize("path", PATHS)
def test_questions_with_parts_of_anything(doors: Doors, path: str) -> None:
    @FUZZ
    @given(bodies())
    def sent(value: Any) -> None:
        check(doors, path, json.dumps(value).encode())

    sent()


@FUZZ
@given(st.text(max_size=40).filter(lambda text: "\x00" not in text and "\n" not in text and "\r" not in text))
def test_any_content_type(doors: Doors, kind: str) -> None:
    latin = kind.encode("utf-8").decode("latin-1")
    check(doors, "evaluation", json.dumps(question("nobody")).encode(), latin)


@given(st.binary(max_size=300) | values.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
def test_what_is_read_can_be_written_again(body: bytes) -> None:
    try:
        value = parse_json(body)
    except Refused:
        return
    assert parse_json(json.dumps(value, ensure_ascii=False).encode("utf-8")) == value
