"""Requests at once, on committed data and connections of their own."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from compliance.models import IdempotencyKey, ServiceToken
from evaluations.models import Document, Evidence
from tests.compliance.api.world import build_world, evidence_body

AT_ONCE = 6


def at_once(requests: list[Callable[[], Any]]) -> list[Any]:
    """Send requests from one thread each, released together."""
    barrier = Barrier(len(requests))

    def run(request: Callable[[], Any]) -> Any:
        try:
            barrier.wait(timeout=20)
            return request()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(run, requests))


@pytest.mark.slow
def test_retries_at_once_under_one_key_all_get_the_first_answer(committed_db: object) -> None:
    world = build_world()
    before = Evidence.objects.count()
    send = lambda: world.api().send(evidence_body("1"), **{"Idempotency-Key": "k"})  # noqa: E731
    answers = at_once([send] * AT_ONCE)
    assert [answer.status_code for answer in answers] == [201] * AT_ONCE, [answer.content for answer in answers]
    assert len({answer.content for answer in answers}) == 1
    assert Evidence.objects.count() == before + 1
    assert IdempotencyKey.objects.count() == 1


@pytest.mark.slow
def test_different_bodies_at_once_under_one_key_record_exactly_one(committed_db: object) -> None:
    world = build_world()
    before = (Evidence.objects.count(), Document.objects.count())
    requests = [
        lambda value=value: world.api().send(evidence_body(str(value)), **{"Idempotency-Key": "k"}) for value in range(AT_ONCE)
    ]
    statuses = Counter(answer.status_code for answer in at_once(requests))
    assert statuses == {201: 1, 409: AT_ONCE - 1}
    assert (Evidence.objects.count(), Document.objects.count()) == (before[0] + 1, before[1] + 1)


@pytest.mark.slow
def test_the_same_body_at_once_without_a_key_is_recorded_once_and_the_token_s_use_is_noted(committed_db: object) -> None:
    world = build_world()
    statuses = Counter(answer.status_code for answer in at_once([lambda: world.api().send(evidence_body("1"))] * AT_ONCE))
    assert statuses == {201: 1, 200: AT_ONCE - 1}
    assert ServiceToken.objects.get(pk=world.token.pk).last_used_at is not None
