"""How much one caller may ask: buckets with a clock of their own, and what they do at the door."""

from typing import Any
from unittest.mock import patch

import pytest

from compliance.api.authzen import limits
from compliance.api.authzen.limits import Buckets
from compliance.services.people import token_digest
from tests.compliance.api.authzen.doors import Doors, question


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def buckets(clock: Clock, **changes: Any) -> Buckets:
    return Buckets(**{"rate": 10, "size": 20, "most": 3, "clock": clock, **changes})


def test_a_bucket_gives_what_it_holds_and_fills_again(clock: Clock) -> None:
    held = buckets(clock)
    assert [held.take("a") for _ in range(20)] == [0] * 20
    assert held.take("a") == pytest.approx(0.1)
    assert held.take("b") == 0
    clock.now += 0.5
    assert [held.take("a") == 0 for _ in range(6)] == [True] * 5 + [False]
    clock.now += 60
    assert [held.take("a") == 0 for _ in range(21)] == [True] * 20 + [False]


def test_one_large_request_is_let_in_and_pays_for_itself_afterwards(clock: Clock) -> None:
    held = buckets(clock)
    assert held.take("a", 120) == 0
    assert held.wait("a") == pytest.approx(10.1)
    clock.now += 9.9
    assert held.take("a") > 0
    clock.now += 0.3
    assert held.take("a") == 0


def test_the_number_of_buckets_is_bounded_and_the_longest_unused_goes(clock: Clock) -> None:
    held = buckets(clock)
    for key in ("a", "b", "c", "a", "d"):
        held.take(key)
    assert len(held) == 3
    assert "b" not in held
    assert "a" in held
    held.forget("a")
    assert "a" not in held


def test_waiting_takes_nothing_and_makes_no_bucket(clock: Clock) -> None:
    held = buckets(clock)
    assert held.wait("a") == 0
    assert len(held) == 0


def test_too_many_questions_of_one_token_are_429_until_they_are_few_again(doors: Doors, clock: Clock) -> None:
    with patch.object(limits, "questions", lambda: held), patch.object(limits, "failures", lambda: buckets(clock)):
        held = buckets(clock)
        assert doors.decisions({**question(), "evaluations": [{}] * 25}) == [True] * 25
        answer = doors.send("evaluation", question())
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert doors.send("search/action", question()).status_code == 429
        clock.now += 1
        assert doors.decide(question()) is True


def test_a_closed_bucket_costs_no_query(doors: Doors, clock: Clock, django_assert_num_queries: Any) -> None:
    held = buckets(clock)
    held.take(token_digest(doors.token), 100)
    with patch.object(limits, "questions", lambda: held), django_assert_num_queries(0):
        assert doors.send("evaluation", question()).status_code == 429


def test_an_address_that_guesses_is_429_and_who_holds_a_token_there_is_heard(doors: Doors, clock: Clock) -> None:
    with patch.object(limits, "failures", lambda: held):
        held = buckets(clock, size=5)
        assert doors.decide(question()) is True
        wrong = Doors("wg_" + "x" * 43)
        assert [wrong.send("evaluation", question()).status_code for _ in range(6)] == [401] * 5 + [429]
        assert Doors("").send("evaluation", question()).status_code == 429
        assert doors.decide(question()) is True
        clock.now += 60
        assert wrong.send("evaluation", question()).status_code == 401


def test_behind_a_proxy_the_address_is_the_one_that_it_states(doors: Doors, clock: Clock, settings: Any) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    with patch.object(limits, "failures", lambda: held):
        held = buckets(clock, size=1)
        wrong = Doors("wg_nobody")
        for given, status in (("192.0.2.1", 401), ("192.0.2.9, 192.0.2.1", 429), ("192.0.2.1, 192.0.2.2", 401)):
            answer = wrong.send("evaluation", question(), X_Forwarded_For=given)
            assert answer.status_code == status, given


def test_a_token_that_was_revoked_loses_its_place(doors: Doors) -> None:
    assert doors.decide(question()) is True
    digest = token_digest(doors.token)
    assert digest in limits.questions()
    with patch("compliance.selectors.deciding.read._caller", return_value=None):
        assert doors.send("evaluation", question()).status_code == 401
    assert digest not in limits.questions()
