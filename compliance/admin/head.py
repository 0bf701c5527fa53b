"""How the log stands, in words: its size, its last checkpoint and that one's age, and what waits."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from compliance.selectors.trail import COUNTED_PENDING, LedgerHead, read_ledger_head
from evaluations.kernel.clock import now
from evaluations.kernel.display import Cell, instant

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True)
class ShownHead:
    """The head as a page shows it; `warnings` are whole sentences."""

    size: int
    signed: Cell
    age: str
    pending: str
    warnings: tuple[str, ...]


def shown_head() -> ShownHead:
    """Return the log's head as it stands now."""
    head, moment = read_ledger_head(), now()
    checkpoint = head.checkpoint
    return ShownHead(
        size=checkpoint.size if checkpoint else 0,
        signed=instant(checkpoint.signed_at) if checkpoint else "never: nothing is sealed yet",
        age=f"{lasting(moment - checkpoint.signed_at)} ago" if checkpoint else "",
        pending=_pending(head, moment),
        warnings=_warnings(head, moment),
    )


def lasting(length: timedelta) -> str:
    """Spell a length of time in its largest whole unit."""
    seconds = max(0, int(length.total_seconds()))
    size, word = next(((size, word) for size, word in _UNITS if seconds >= size), _UNITS[-1])
    count = seconds // size
    return f"{count} {word}{'' if count == 1 else 's'}"


def _pending(head: LedgerHead, moment: datetime) -> str:
    if head.oldest_pending_at is None:
        return "none"
    count = f"{head.pending:,}" if head.pending <= COUNTED_PENDING else f"more than {COUNTED_PENDING:,}"
    return f"{count}, the oldest for {lasting(moment - head.oldest_pending_at)}"


def _warnings(head: LedgerHead, moment: datetime) -> tuple[str, ...]:
    found = []
    if head.oldest_pending_at is not None and head.is_late(moment):
        found.append(
            f"Entries have waited for their index for {lasting(moment - head.oldest_pending_at)}: nothing is being sealed."
            " See whether the worker and the scheduler run, and what they log."
        )
    elif head.checkpoint is not None and head.is_silent(moment):
        found.append(
            f"The log was last signed {lasting(moment - head.checkpoint.signed_at)} ago, though it has an entry of its own"
            " every hour: see whether the scheduler runs."
        )
    return tuple(found)
