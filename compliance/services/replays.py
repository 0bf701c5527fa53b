"""Verdicts judged once more. One that does not match is an incident: on the log, told to people, and nothing rests on it any more."""

import time
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from compliance.selectors.recipients import holders_of
from compliance.selectors.replays import Replayed, replay_all, verdicts_to_replay
from compliance.services.idempotency import apply_first_time
from compliance.services.outbox import Notice, apply_notify_all
from compliance.vocabulary import NoticeKind, Role
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.bulk import insert_new
from evaluations.kernel.canonical import digest
from evaluations.kernel.clock import now
from evaluations.kernel.services import service
from policies.models import Verdict, VerdictMismatch
from policies.services.verdicts import apply_distrust
from policies.vocabulary import Differing, VerdictReplay

AT_ONCE = 50
"""So many verdicts are read and judged before the clock is looked at."""
TOLD_ROLES = (Role.SECURITY, Role.ADMINISTRATOR)


def replay_verdicts(
    *, actor: Actor, verdicts: Sequence[Verdict], idempotency_key: str | None = None, request_id: str = ""
) -> list[Replayed]:
    """Judge verdicts (as `verdicts_to_replay` gives them) once more, and note each that does not match.

    Not a service itself: where all match, nothing is written but the key. Raises `InputRefused`, `IdempotencyKeyReused`.
    """
    if idempotency_key is not None:
        claim_replay(actor=actor, verdicts=verdicts, idempotency_key=idempotency_key)
    done = replay_all(verdicts)
    wrong = [item for item in done if item.replay.outcome == VerdictReplay.MISMATCHED]
    if wrong:
        note_mismatches(actor=actor, mismatches=wrong, request_id=request_id)
    return done


@service(refused="verdict.refused")
def claim_replay(*, actor: Actor, verdicts: Sequence[Verdict], idempotency_key: str) -> None:
    """Hold the key of a call that has verdicts judged once more; the same call again is answered anew, since nothing is made.

    Raises `InputRefused` for a key that is not well formed, `IdempotencyKeyReused` for one used for something else.
    """
    apply_first_time(
        actor=actor, key=idempotency_key, act=f"verdict.replayed {digest([str(verdict.uid) for verdict in verdicts])}"
    )


def replay_slice(*, actor: Actor, verdict_ids: Sequence[int], seconds: float) -> list[int]:
    """Judge verdicts once more, in the given order, for so long; return the ids that are left."""
    until = time.monotonic() + seconds
    left = list(verdict_ids)
    while left:
        replay_verdicts(actor=actor, verdicts=verdicts_to_replay(pk__in=left[:AT_ONCE]))
        left = left[AT_ONCE:]
        if time.monotonic() >= until:
            break
    return left


@service(refused="verdict.refused")
def note_mismatches(*, actor: Actor, mismatches: Sequence[Replayed], request_id: str = "") -> int:
    """Note verdicts that did not match when judged once more; return how many nobody had noted before.

    Whatever stands on them denies from this commit on, until it is judged anew. Each is recorded and told of once.
    """
    moment = now()
    apply_distrust(verdicts=[item.verdict for item in mismatches])
    fresh = _noted(actor, mismatches, moment)
    if not fresh:
        return 0
    people = holders_of(TOLD_ROLES, at=moment)
    apply_notify_all([_notice(item, people) for item in fresh], at=moment)
    audit.record(
        *(
            audit.Event(
                action="verdict.mismatched",
                actor=actor,
                target=("verdict", str(item.verdict.uid)),
                new={
                    "differs": [str(word) for word in item.replay.differs],
                    "policy_version": _policy(item.verdict),
                    "subject_version": _subject(item.verdict),
                    "trouble": item.replay.trouble[:500],
                },
                digests={"core": item.verdict.core_digest, "facts": item.verdict.facts.digest},
                request_id=request_id,
            )
            for item in fresh
        )
    )
    return len(fresh)


def _noted(actor: Actor, mismatches: Sequence[Replayed], moment: datetime) -> list[Replayed]:
    rows = {
        item.verdict.pk: VerdictMismatch(
            verdict=item.verdict, differs=list(item.replay.differs), found_by=actor.reference, recorded_at=moment
        )
        for item in mismatches
    }
    fresh = {row.verdict_id for row in insert_new(list(rows.values()))}
    return [item for item in mismatches if item.verdict.pk in fresh]


def _notice(item: Replayed, people: set[UUID]) -> Notice:
    verdict = item.verdict
    return Notice(
        NoticeKind.VERDICT_MISMATCHED,
        ("verdict", str(verdict.uid)),
        f"A stored verdict does not match what it was judged on: {_policy(verdict)} on {_subject(verdict)}",
        cause="mismatched",
        lines=[
            *(f"{Differing(word).label.capitalize()}." for word in item.replay.differs),
            "Nobody but the owner of the database can change such a row. What stood on it denies until it is judged anew.",
        ],
        link=f"/admin/policies/verdict/{verdict.pk}/change/",
        data={
            "verdict": str(verdict.uid),
            "differs": [str(word) for word in item.replay.differs],
            "policy_version": _policy(verdict),
            "subject_version": _subject(verdict),
        },
        people=people,
    )


def _policy(verdict: Verdict) -> str:
    return f"{verdict.policy_version.policy.name}@{verdict.policy_version.number}"


def _subject(verdict: Verdict) -> str:
    return f"{verdict.subject_version.subject.key}@{verdict.subject_version.number}"
