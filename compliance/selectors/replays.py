"""Verdicts judged once more and held against the log, and which of them are looked at in a night."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Max, Q

from compliance.models import Grant, LedgerEntry
from compliance.vocabulary import GrantStatus
from evaluations.kernel.canonical import timestamp
from policies.models import Standing, Verdict
from policies.selectors.replays import Replay, replay_verdict
from policies.vocabulary import Differing, VerdictReplay

RECORDED = "verdict.recorded"


class Replayed(NamedTuple):
    """A verdict, and what came of judging it once more."""

    verdict: Verdict
    replay: Replay


def verdicts_to_replay(**chosen: Any) -> list[Verdict]:
    """Return verdicts, oldest first, each with all that a replay reads."""
    related = ("facts", "policy_version__policy", "subject_version__subject")
    return list(Verdict.objects.filter(**chosen).select_related(*related).order_by("pk"))


def replay_all(verdicts: Sequence[Verdict]) -> list[Replayed]:
    """Judge verdicts once more, and compare each with its entry in the log: who rewrites a verdict whole would have to rewrite both."""
    entries = _entries_of(verdicts)
    done = []
    for verdict in verdicts:
        replay = replay_verdict(verdict)
        if replay.outcome != VerdictReplay.PRUNED and not _is_told(verdict, entries.get(str(verdict.uid))):
            replay = replay._replace(outcome=VerdictReplay.MISMATCHED, differs=(*replay.differs, Differing.ENTRY))
        done.append(Replayed(verdict, replay))
    return done


def _entries_of(verdicts: Sequence[Verdict]) -> dict[str, LedgerEntry]:
    """Return the entry of each verdict, by its id: the first one, where somebody added another."""
    ids = [str(verdict.uid) for verdict in verdicts]
    entries = LedgerEntry.objects.filter(target_kind="verdict", target_id__in=ids, action=RECORDED).order_by("-id")
    return {entry.target_id: entry for entry in entries}


def _is_told(verdict: Verdict, entry: LedgerEntry | None) -> bool:
    if entry is None:
        return False
    try:
        told = json.loads(bytes(entry.content))
        said, digests = told["new"], told["digests"]
        version, policy_version = verdict.subject_version, verdict.policy_version
        return bool(
            said["outcome"] == verdict.outcome
            and said["subject_version"] == f"{version.subject.key}@{version.number}"
            and said["policy_version"] == f"{policy_version.policy.name}@{policy_version.number}"
            and said["domain"] == verdict.domain
            and said["as_of"] == timestamp(verdict.as_of)
            and (digests["core"], digests["facts"], digests["policy"])
            == (verdict.core_digest, verdict.facts.digest, policy_version.digest)
        )
    except (ValueError, LookupError, TypeError):
        return False


def unknown_verdicts(uids: Iterable[UUID]) -> list[UUID]:
    """Return those of the ids under which no verdict is kept, in their order."""
    wanted = list(uids)
    known = set(Verdict.objects.filter(uid__in=wanted).values_list("uid", flat=True))
    return [uid for uid in wanted if uid not in known]


def all_verdict_ids() -> list[int]:
    """Return the row ids of all verdicts, newest first."""
    return list(Verdict.objects.order_by("-pk").values_list("pk", flat=True))


def sampled_verdict_ids(size: int, *, at: datetime) -> list[int]:
    """Return the row ids of at most `size` verdicts: first those that stand under live grants, the newest, up to half of them; then
    those whose turn it is on that day; then the newest, where either left room.

    A day's turn follows on the turn of the day before, so that in time each verdict is judged once more, however many grants live.
    """
    turn = size // 2
    live = Grant.objects.filter(status=GrantStatus.ACTIVE, ends_at__gt=at).values("subject_version")
    standing = Standing.objects.filter(subject_version__in=live).order_by("-verdict")
    chosen = dict.fromkeys([*standing.values_list("verdict", flat=True)[: size - turn], *_whose_turn(turn, at=at)])
    others = Verdict.objects.exclude(pk__in=chosen).order_by("-pk").values_list("pk", flat=True)
    return [*chosen, *others[: size - len(chosen)]]


def _whose_turn(size: int, *, at: datetime) -> list[int]:
    """Return the verdicts among the `size` row ids of a day, newest first. Days go round over all ids."""
    newest = Verdict.objects.aggregate(newest=Max("pk"))["newest"] or 0
    # A round stays as long as it is until the ids have doubled: what is added meanwhile shifts nobody's turn.
    length = 1 << newest.bit_length()
    start = at.toordinal() * size % length
    turn = Verdict.objects.filter(Q(pk__gte=start, pk__lt=start + size) | Q(pk__lt=start + size - length))
    return list(turn.order_by("-pk").values_list("pk", flat=True))
