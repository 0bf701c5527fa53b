"""What a scrape asks the database: how long services have been silent, and what waits. A few index look-ups, however much there is."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from compliance.models import OutboxMessage, ServiceBeat
from compliance.selectors.trail import read_ledger_head
from compliance.vocabulary import NoticeStatus
from policies.models import UnreadableVersion, VerdictMismatch

COUNTED_MESSAGES = 10_000
COUNTED_INCIDENTS = 10_000


class Gauges(NamedTuple):
    """Ages in seconds. `checkpoint_age` is None before the first sealing; counts stop a little above ten thousand."""

    beat_ages: Mapping[str, float]
    pending_entries: int
    oldest_pending_age: float
    checkpoint_age: float | None
    messages: Mapping[str, int]
    mismatches: int
    unreadable: int


def read_gauges(*, at: datetime) -> Gauges:
    """Return how things stand at an instant. The sealer has no beat: it lives as long as nothing waits for it."""

    def age(moment: datetime) -> float:
        # Clocks of several machines differ a little; nothing is younger than now.
        return max(0.0, (at - moment).total_seconds())

    head = read_ledger_head()
    return Gauges(
        {name: age(beat_at) for name, beat_at in ServiceBeat.objects.values_list("name", "beat_at")},
        head.pending,
        0.0 if head.oldest_pending_at is None else age(head.oldest_pending_at),
        None if head.checkpoint is None else age(head.checkpoint.signed_at),
        {str(status): _counted(status) for status in (NoticeStatus.WAITING, NoticeStatus.DEAD)},
        VerdictMismatch.objects.order_by().values("pk")[: COUNTED_INCIDENTS + 1].count(),
        UnreadableVersion.objects.order_by().values("pk")[: COUNTED_INCIDENTS + 1].count(),
    )


def _counted(status: NoticeStatus) -> int:
    return OutboxMessage.objects.filter(status=status).order_by().values("pk")[: COUNTED_MESSAGES + 1].count()
