"""Reminders come 14, 7 and 1 days before, once each, to those who can act."""

from datetime import UTC, datetime, timedelta

import pytest

from compliance.models import OutboxMessage
from compliance.services.reminders import nearest, send_reminders
from compliance.services.stopping import revoke_grant
from compliance.tasks import send_reminders as task
from compliance.vocabulary import NoticeKind
from evaluations.kernel.clock import now
from tests.support import grants, signing

pytestmark = pytest.mark.django_db

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
WHEN = datetime(2026, 12, 31, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _mails(settings) -> None:
    settings.NOTICE_MAIL_URL, settings.NOTICE_CHAT_URLS = "mailto://127.0.0.1", []


def whats(kind: NoticeKind) -> list[str]:
    return sorted({message.title.split(": ", 1)[1] for message in OutboxMessage.objects.filter(kind=kind)})


@pytest.mark.parametrize(
    ("before", "days"),
    [
        (15 * DAY, None),
        (14 * DAY + SECOND, None),
        (14 * DAY, 14),
        (8 * DAY, 14),
        (7 * DAY, 7),
        (DAY + SECOND, 7),
        (DAY, 1),
        (SECOND, 1),
        (timedelta(0), None),
        (-DAY, None),
    ],
)
def test_only_the_nearest_is_told(before: timedelta, days: int | None) -> None:
    assert nearest(WHEN, since=None, at=WHEN - before) == days


def test_nobody_is_reminded_of_what_she_has_just_signed() -> None:
    assert nearest(WHEN, since=WHEN - 10 * DAY, at=WHEN - 9 * DAY) is None
    assert nearest(WHEN, since=WHEN - 10 * DAY, at=WHEN - 7 * DAY) == 7


def test_each_is_sent_once_to_whoever_asked_and_the_owners() -> None:
    land = signing.ground()
    grant = signing.granted(land, days=20)
    assert send_reminders(at=now()) == 0
    assert send_reminders(at=grant.ends_at - 14 * DAY) == 2
    assert send_reminders(at=grant.ends_at - 13 * DAY) == 0
    # Late by days: the one of seven days is left out.
    assert send_reminders(at=grant.ends_at - DAY) == 2
    assert whats(NoticeKind.GRANT_ENDING) == [
        "within 1 day it ends: ask for its renewal",
        "within 14 days it ends: ask for its renewal",
    ]
    assert grants.told(NoticeKind.GRANT_ENDING) == grants.people(land.asker, land.owner)
    assert send_reminders(at=grant.ends_at) == 0
    assert grants.entries("reminder.queued") == 2
    task.run()


def test_certification_and_evidence_are_told_too_and_nothing_of_what_has_ended() -> None:
    land = signing.ground(age=40)
    grant = signing.granted(land, days=60)
    assert send_reminders(at=now()) == 2
    # The run ended on 1 November, so it is too old on 11 December.
    (due,) = {message.data for message in OutboxMessage.objects.filter(kind=NoticeKind.EVIDENCE_ENDING)}
    assert '"at":"2026-12-11' in due
    assert send_reminders(at=grant.recertify_by - 7 * DAY) > 0
    assert whats(NoticeKind.GRANT_ENDING) == ["within 7 days it is suspended unless it is certified anew"]
    count = OutboxMessage.objects.count()
    revoke_grant(actor=signing.actor_of(land.owner), grant=grant, reason="done")
    told = OutboxMessage.objects.count()
    assert send_reminders(at=grant.recertify_by - DAY) == 0
    assert OutboxMessage.objects.count() == told > count
