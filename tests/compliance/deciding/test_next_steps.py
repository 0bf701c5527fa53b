"""What to do about a denial: one word for all its reasons, and the same table for machines and for readers."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from compliance.deciding.codes import Code, Reason
from compliance.deciding.next_steps import LONGEST_WAIT_SECONDS, STEPS, NextAction, Step, is_requestable, next_step
from evaluations.kernel.canonical import timestamp

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
RUNS = {"subject": {"version": 2, "running": 2}}


def step(*codes: Code) -> Step:
    return next_step([Reason(code, {"starts_at": timestamp(AT)}) for code in codes], RUNS, AT)


def test_every_code_has_one_and_in_their_order() -> None:
    assert list(STEPS) == list(Code)


def test_whoever_is_told_to_ask_again_is_told_when_and_nobody_else_is() -> None:
    for code, found in STEPS.items():
        assert (found.action is NextAction.RETRY) is (found.retry_after is not None), code
        assert found.retry_after is None or 0 < found.retry_after <= LONGEST_WAIT_SECONDS, code


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([Code.NO_GRANT], Step(NextAction.REQUEST)),
        ([Code.GRANT_EXPIRED, Code.SIGNER_NO_LONGER_ELIGIBLE, Code.ACTION_NOT_GRANTED], Step(NextAction.REQUEST)),
        ([Code.ALIAS_NOW_POINTS_TO, Code.NO_GRANT], Step(NextAction.REQUEST)),
        ([Code.NO_GRANT, Code.EVIDENCE_MISSING], Step(NextAction.NONE)),
        ([Code.UNKNOWN_SYSTEM, Code.NO_GRANT], Step(NextAction.NONE)),
        ([Code.GRANT_SUSPENDED], Step(NextAction.NONE)),
        ([Code.SUBJECT_CHANGED, Code.GRANT_EXPIRED], Step(NextAction.NONE)),
        ([Code.FACTS_MOVED], Step(NextAction.RETRY, 1)),
        ([Code.FACTS_MOVED, Code.NO_GRANT, Code.VERDICT_OVERDUE], Step(NextAction.RETRY, 60)),
        ([Code.VERDICT_OVERDUE, Code.EVIDENCE_STALE], Step(NextAction.NONE)),
        ([], Step(NextAction.NONE)),
    ],
)
def test_all_reasons_together_come_to_one_word(codes: list[Code], expected: Step) -> None:
    assert step(*codes) == expected


def test_two_reasons_are_requestable_exactly_where_each_of_them_is() -> None:
    for one, other in product(Code, Code):
        asked = step(one, other).action is NextAction.REQUEST
        assert is_requestable([one.value, other.value], RUNS) is asked
        assert asked is (is_requestable([one.value], RUNS) and is_requestable([other.value], RUNS)), (one, other)
    assert not is_requestable([], RUNS)


def test_nobody_is_asked_for_a_version_that_no_longer_runs() -> None:
    older = {"subject": {"version": 1, "running": 2}}
    reasons = [Reason(Code.NO_GRANT, {})]
    assert next_step(reasons, older, AT) == Step(NextAction.NONE)
    assert not is_requestable([Code.NO_GRANT], older)
    assert next_step(reasons, {"subject": None}, AT) == next_step(reasons, RUNS, AT) == Step(NextAction.REQUEST)
    assert next_step([Reason(Code.FACTS_MOVED, {})], older, AT) == Step(NextAction.RETRY, 1)


@pytest.mark.parametrize(
    ("ahead", "seconds"),
    [(timedelta(seconds=89.5), 90), (timedelta(days=3), LONGEST_WAIT_SECONDS), (timedelta(0), 60), (-timedelta(hours=1), 60)],
)
def test_a_grant_that_has_not_begun_is_asked_about_when_it_begins(ahead: timedelta, seconds: int) -> None:
    reason = Reason(Code.GRANT_NOT_BEGUN, {"grant": "g", "starts_at": timestamp(AT + ahead)})
    assert next_step([reason], RUNS, AT) == Step(NextAction.RETRY, seconds)
