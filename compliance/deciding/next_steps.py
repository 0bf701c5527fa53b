"""What an agent that was denied does next, by reason code: published beside what the codes mean.

The words are those of the draft profile "Access Request and Approval" of AuthZEN 1.0 (`next_action`, `retry_after`). A denial is
requestable only where a new grant would cure every one of its reasons: people can sign one, and nothing else that denies.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from compliance.deciding.codes import Code, Reason
from compliance.deciding.facts import Value

REQUESTABLE_FOR = timedelta(hours=1)
"""So long after a denial may a request be filed about it."""
LONGEST_WAIT_SECONDS = 60 * 60
"""What is waited for may come sooner, such as a grant that begins in days and is replaced: nobody is sent away for longer."""


class NextAction(StrEnum):
    """What to do about a denial: ask people for a grant, ask the gate again after a while, or neither, for neither would help."""

    REQUEST = "request"
    RETRY = "retry"
    NONE = "none"


class Step(NamedTuple):
    """What to do next; `retry_after` is in seconds, None unless the gate is asked again."""

    action: NextAction
    retry_after: int | None = None


_REQUEST, _NONE = Step(NextAction.REQUEST), Step(NextAction.NONE)


def _retry(seconds: int) -> Step:
    return Step(NextAction.RETRY, seconds)


STEPS: Mapping[Code, Step] = {
    Code.CANNOT_RECORD: _retry(5),
    Code.CANNOT_JUDGE: _retry(1),
    Code.INTERNAL_ERROR: _NONE,
    Code.FACTS_MOVED: _retry(1),
    Code.OUT_OF_SCOPE: _NONE,
    Code.UNKNOWN_RESOURCE_TYPE: _NONE,
    Code.UNKNOWN_SYSTEM: _NONE,
    Code.UNKNOWN_SUBJECT: _NONE,
    Code.OTHER_KIND: _NONE,
    Code.UNKNOWN_FINGERPRINT: _NONE,
    # It only says why another is meant than before: the reasons beside it are those of the one that is meant now.
    Code.ALIAS_NOW_POINTS_TO: _REQUEST,
    Code.ALIAS_WITHDRAWN: _NONE,
    Code.ROUTE_NOT_CLOSED: _NONE,
    Code.ROUTE_REACHES_UNAPPROVED: _NONE,
    # Nobody is granted anything any more as the version that was asked about; who asks about the one that runs is told otherwise.
    Code.SUBJECT_CHANGED: _NONE,
    Code.GRANT_REVOKED: _REQUEST,
    # Somebody or something stopped it, and it comes back by its own quorum, asked for by who mended the cause.
    Code.GRANT_SUSPENDED: _NONE,
    Code.GRANT_EXPIRED: _REQUEST,
    Code.GRANT_NOT_BEGUN: _retry(60),
    Code.RECERTIFICATION_MISSED: _REQUEST,
    Code.SIGNER_NO_LONGER_ELIGIBLE: _REQUEST,
    Code.ACTION_NOT_GRANTED: _REQUEST,
    Code.NO_GRANT: _REQUEST,
    Code.NO_POLICY: _NONE,
    Code.POLICY_HAS_NO_REQUIREMENTS: _NONE,
    Code.POLICY_UNREADABLE: _NONE,
    Code.CONDITION_ERROR: _NONE,
    Code.FORBIDDEN_BY_GUARDRAIL: _retry(5 * 60),
    Code.GUARDRAIL_ERROR: _NONE,
    Code.NO_VERDICT: _retry(60),
    Code.VERDICT_OVERDUE: _retry(60),
    Code.EVIDENCE_RETRACTED: _NONE,
    Code.EVIDENCE_CONTESTED: _NONE,
    Code.EVIDENCE_ERROR: _NONE,
    Code.EVIDENCE_MISSING: _NONE,
    Code.EVIDENCE_STALE: _NONE,
    Code.EVIDENCE_INSUFFICIENT: _NONE,
}
"""What to do about one reason alone."""


def next_step(reasons: Iterable[Reason], facts: Value, at: datetime) -> Step:
    """Return what to do about all the reasons of a denial given at an instant, on these facts.

    What neither a request nor time cures decides. Else what passes by itself is waited for, and asked about again before people
    are asked: what is left then may be theirs to sign.
    """
    steps = [_step(reason, at) for reason in reasons]
    if not steps or any(step.action is NextAction.NONE for step in steps):
        return _NONE
    waits = [step.retry_after for step in steps if step.retry_after is not None]
    if waits:
        return _retry(max(waits))
    return _NONE if _is_older(facts) else _REQUEST


def is_requestable(codes: Iterable[str], facts: Value) -> bool:
    """True where a request may be filed about a denial with these reason codes, given on these facts."""
    found = [STEPS[Code(code)] for code in codes]
    return bool(found) and all(step.action is NextAction.REQUEST for step in found) and not _is_older(facts)


def _is_older(facts: Value) -> bool:
    """True where another version was asked about than the one that runs, for which alone people sign."""
    subject = facts["subject"]
    return subject is not None and bool(subject["running"] != subject["version"])


def _step(reason: Reason, at: datetime) -> Step:
    step = STEPS[reason.code]
    if reason.code is not Code.GRANT_NOT_BEGUN:
        return step
    left = (datetime.fromisoformat(reason.detail["starts_at"]) - at).total_seconds()
    return step if left <= 0 else _retry(min(int(left) + 1, LONGEST_WAIT_SECONDS))
