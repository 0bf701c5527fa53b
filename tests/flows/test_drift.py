"""Drift end to end: what is announced after commit reaches the grants, and whatever runs twice does its work once."""

import threading
from collections.abc import Callable

import pytest
from django.db import connections

from compliance import tasks
from compliance.models import Dossier, Grant, GrantEvent, LedgerEntry, OutboxMessage
from compliance.services.drift import Reviewed, review_grants
from compliance.vocabulary import Cause, GrantStatus, NoticeKind
from evaluations.kernel.actor import system_job
from tests.support import signing, world

LATER = {"status": "complete", "ended_at": "2026-11-20T00:00:00Z"}
JOB = system_job("drift-check")


@pytest.fixture
def land(committed_db, settings) -> signing.Ground:
    settings.NOTICE_MAIL_URL = "mailto://127.0.0.1:9?from=gate@example.org"
    return signing.ground("91")


def news(value: object) -> None:
    world.submit(world.submission("model-a", world.observation(str(value)), run=LATER))


def suspensions() -> tuple[int, int, int]:
    """Return how many events, entries and distinct notices tell of suspensions."""
    return (
        GrantEvent.objects.filter(move="suspended").count(),
        LedgerEntry.objects.filter(action="grant.suspended").count(),
        OutboxMessage.objects.filter(kind=NoticeKind.GRANT_SUSPENDED).values("event_id").distinct().count(),
    )


def at_once(*works: Callable[[], object]) -> list[object]:
    """Run each in a thread with a connection of its own, all let go at once, and return what they gave."""
    gate, found, failed = threading.Barrier(len(works)), [], []

    def run(work: Callable[[], object]) -> None:
        try:
            gate.wait(10)
            found.append(work())
        except Exception as error:  # a thread's error is the test's
            failed.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed
    return found


def test_evidence_below_the_bar_suspends_by_itself(land: signing.Ground, run_tasks_inline) -> None:
    grant = signing.granted(land)
    news("71")
    assert (grant.reload().status, grant.cause) == (GrantStatus.SUSPENDED, Cause.VERDICT_FAILED)
    assert suspensions() == (1, 1, 1)


def test_a_policy_in_force_with_a_stricter_bar_suspends_by_itself(land: signing.Ground, run_tasks_inline) -> None:
    grant = signing.granted(land)
    signing.policy_in_force(bar=95)
    assert (grant.reload().status, grant.cause) == (GrantStatus.SUSPENDED, Cause.VERDICT_FAILED)
    assert suspensions() == (1, 1, 1)


def test_news_about_the_subject_refreshes_open_dossiers_at_once(land: signing.Ground, run_tasks_inline) -> None:
    request = signing.ask(land)
    signing.sign(land.owner, request)
    news("93")
    request.refresh_from_db()
    assert (request.dossier.number, Dossier.objects.filter(request=request).count()) == (2, 2)
    assert not signing.sign(land.security, request).completed


def test_a_lost_message_costs_one_run_of_the_clock(land: signing.Ground) -> None:
    grant = signing.granted(land)
    news("71")
    world.judge_all()
    assert grant.reload().status == GrantStatus.ACTIVE
    assert tasks.review_due_grants.apply().get() == {"looked_at": 1, "suspended": 1, "noticed": 0}
    assert tasks.review_due_grants.apply().get() == {"looked_at": 0, "suspended": 0, "noticed": 0}
    assert suspensions() == (1, 1, 1)


def test_two_reviews_at_once_make_one_event(land: signing.Ground) -> None:
    grants = [signing.granted(land) for _ in range(3)]
    news("71")
    world.judge_all()
    ids = [grant.pk for grant in grants]
    found = at_once(*[lambda: review_grants(actor=JOB, grant_ids=ids)] * 2)
    assert sum(done.suspended for done in found if isinstance(done, Reviewed)) == 3
    assert suspensions() == (3, 3, 3)
    assert not Grant.objects.filter(status=GrantStatus.ACTIVE).exists()


def test_two_reviews_at_once_tell_of_a_thing_once(land: signing.Ground) -> None:
    text = bytes(land.policy.text).decode().replace("on_fail: suspend", "on_fail: notify")
    world.activate(world.propose_text(text.encode()))
    world.judge_all()
    signing.granted(land)
    news("71")
    world.judge_all()
    found = at_once(*[lambda: review_grants(actor=JOB, subject_version_ids=[land.version.pk])] * 2)
    assert sum(done.noticed for done in found if isinstance(done, Reviewed)) == 1
    assert LedgerEntry.objects.filter(action="drift.noticed").count() == 1
