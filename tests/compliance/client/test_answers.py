"""What an answer means, whatever bytes it is: nothing allows but by the contract."""

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compliance.client.answers import Answer, Doubtful, Question, judge, read_body
from compliance.client.http import Reply as Received
from tests.support.gate_answers import DIGEST, allow

QUESTION = Question("hr-agent", "hr-prod", fingerprint=DIGEST)
AT = datetime(2026, 11, 1, tzinfo=UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def decide(content: bytes, question: Question = QUESTION) -> Answer | None:
    """What the client makes of a body, without the wire; None where it is no answer."""
    try:
        body = read_body(Received(200, {"content-type": "application/json"}, content), "x")
    except Doubtful:
        return None
    return judge(body, question, at=AT)


def right_answer() -> dict[str, Any]:
    return allow(QUESTION.as_value(), valid_until="2026-11-01T00:05:00Z")


def may_allow(value: Any) -> bool:
    """The contract once more, in other words than the client's."""
    try:
        context = value["context"]
        return (
            repr(value["decision"]) == "True"
            and len(context["evaluation_id"]) == 36
            and len(context["entry"]["id"]) == 36
            and len(context["entry"]["leaf_hash"]) == 44
            and datetime.fromisoformat(context["valid_until"]) > AT
            and (context["system"], context["action"]) == ("hr-prod", "write")
            and context["subject"]["key"] == "hr-agent"
            and context["subject"]["digest"] == DIGEST
            and not context.get("reasons")
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


@given(st.binary(max_size=200))
def test_random_bytes_allow_nothing(content: bytes) -> None:
    answer = decide(content)
    assert answer is None or not answer.allowed


@given(JSON)
def test_random_values_allow_nothing_and_break_nothing(value: Any) -> None:
    assert not judge(value, QUESTION, at=AT).allowed
    assert not judge({"decision": True, "context": value}, QUESTION, at=AT).allowed
    assert not judge({"decision": value, "context": value}, QUESTION, at=AT).allowed


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for name, one in inner for found in places(one, (*path, name)))]


@settings(max_examples=200)
@given(st.data())
def test_an_allow_changed_in_any_place_allows_only_by_the_contract(data: st.DataObject) -> None:
    value: Any = copy.deepcopy(right_answer())
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([one for one in places(value) if one]))
        target = value
        for name in path[:-1]:
            target = target[name]
        if data.draw(st.booleans()) and isinstance(target, dict):
            del target[path[-1]]
        else:
            target[path[-1]] = data.draw(JSON | st.sampled_from(["hr-prod", "write", "hr-agent", DIGEST, 1, True]))
        if not value:
            break
    answer = decide(json.dumps(value).encode())
    assert answer is not None
    assert not answer.allowed or may_allow(value)


@settings(max_examples=200)
@given(st.data())
def test_an_allow_with_bytes_changed_or_missing_allows_only_by_the_contract(data: st.DataObject) -> None:
    content = bytearray(json.dumps(right_answer()).encode())
    place = data.draw(st.integers(0, len(content) - 1))
    how = data.draw(st.sampled_from(["flip", "cut", "put in", "take out"]))
    if how == "flip":
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    elif how == "cut":
        del content[place:]
    elif how == "put in":
        content[place:place] = data.draw(st.binary(min_size=1, max_size=3))
    else:
        del content[place]
    answer = decide(bytes(content))
    if answer is not None and answer.allowed:
        assert may_allow(json.loads(content))
    if how == "cut":
        assert answer is None


def test_the_right_answer_would_have_been_allowed() -> None:
    answer = decide(json.dumps(right_answer()).encode())
    assert answer is not None
    assert answer.allowed
    assert may_allow(right_answer())


def test_the_last_line_break_of_a_refusal_is_no_part_of_what_it_says() -> None:
    reply = Received(403, {"content-type": "text/plain; charset=utf-8"}, b"the token lacks the scope `decide`\n")
    with pytest.raises(Doubtful) as refused:
        read_body(reply, "x")
    assert str(refused.value) == "the service answered with status 403: the token lacks the scope `decide`"
