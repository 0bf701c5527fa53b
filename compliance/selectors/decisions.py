"""Decisions read back: found by those who may see them, explained in sentences, counted by days, and judged once more."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery

from compliance.deciding.codes import sentence_of
from compliance.deciding.facts import Value, plain_bytes
from compliance.deciding.replay import UnknownSemantics, digests_of, judge_again, replaced_by
from compliance.models import Decision, Grant, LedgerEntry
from compliance.selectors.sight import Sight, visible_decisions, visible_grants
from compliance.vocabulary import ReplayOutcome
from evaluations.kernel.canonical import timestamp
from policies.models import PolicyVersion, System
from policies.selectors.policies import compile_versions

MOST_COUNTED = 200_000
"""So many of a grant's decisions are counted by days, the newest: pages are shown in a moment, however much is asked."""

_BY_DAY = """
SELECT (newest.at AT TIME ZONE 'UTC')::date, newest.allowed, count(*), min(newest.at)
FROM ({newest}) newest GROUP BY 1, 2
"""


class DecisionsWanted(NamedTuple):
    """Which decisions are asked for; parts that are None ask for nothing.

    `system` and `subject` are what was asked about, in the words of whoever asked; a subject is also found by its key. What was asked
    about a system before it was registered is not found by its key. `code` is among the reasons. `since` is inclusive, `until` is not.
    """

    system: str | None = None
    subject: str | None = None
    grant: UUID | None = None
    code: str | None = None
    allowed: bool | None = None
    observed: bool | None = None
    since: datetime | None = None
    until: datetime | None = None


def find_decisions(sight: Sight, **wanted: Any) -> QuerySet[Any]:
    """Return the decisions that somebody may see, newest first, each with its subject version, system and `seen_grant` (a grant's
    id, None where there is none that she sees). `wanted` are parts of `DecisionsWanted`.
    """
    rows = narrowed(visible_decisions(sight), DecisionsWanted(**wanted))
    seen = visible_grants(sight).filter(pk=OuterRef("grant")).order_by().values("uid")[:1]
    return rows.select_related("subject_version__subject", "system").annotate(seen_grant=Subquery(seen)).order_by("-id")


def narrowed(rows: QuerySet[Any], wanted: DecisionsWanted) -> QuerySet[Any]:
    """Return the decisions among `rows` that are asked for."""
    if wanted.system is not None:
        known = System.objects.filter(key=wanted.system).values_list("pk", flat=True).first()
        rows = rows.filter(system=None, resource=wanted.system) if known is None else rows.filter(system=known)
    if wanted.subject is not None:
        rows = rows.filter(Q(subject=wanted.subject) | Q(subject_version__subject__key=wanted.subject))
    if wanted.grant is not None:
        rows = rows.filter(grant__in=list(Grant.objects.filter(uid=wanted.grant).values_list("pk", flat=True)))
    if wanted.code is not None:
        rows = rows.filter(codes__contains=[wanted.code])
    if wanted.allowed is not None:
        rows = rows.filter(allowed=wanted.allowed)
    if wanted.observed is not None:
        rows = rows.filter(observed=wanted.observed)
    if wanted.since is not None:
        rows = rows.filter(at__gte=wanted.since)
    return rows if wanted.until is None else rows.filter(at__lt=wanted.until)


def find_decision(sight: Sight, *, uid: UUID) -> Any:
    """Return one decision as `find_decisions` gives it, with its body, None where there is none that somebody sees."""
    return find_decisions(sight).select_related("subject_version__subject", "system", "body").filter(uid=uid).first()


def entry_of(decision: Decision) -> LedgerEntry | None:
    """Return a decision's entry, with its leaf once it is sealed."""
    return LedgerEntry.objects.select_related("leaf").filter(uid=decision.entry).first()


# --- one decision explained


class Explanation(NamedTuple):
    """What a decision says and what it was read from. Members are those of the body; each of `reasons` has its sentence, `message`.

    `valid_until` is the instant, as facts write it, at which time alone ended an allow, None for a denial.
    """

    sentence: str
    question: Value
    alias: Value | None
    reasons: Sequence[Value]
    policies: Sequence[Value]
    grants: Sequence[str]
    evidence: Sequence[str]
    waived: Sequence[Value]
    valid_until: str | None
    break_glass: bool
    replaced_by: str | None
    semantics: int
    facts: Value


def body_of(decision: Decision) -> Value:
    """Return what stands in a decision's body."""
    found: Value = json.loads(bytes(decision.body.content))
    return found


def _replaced_by(body: Value) -> str | None:
    code = replaced_by(body)
    return None if code is None else code.value


def explain(decision: Decision) -> Explanation:
    """Return a decision in words and parts, all of it from its body."""
    body = body_of(decision)
    said, facts = body["judgement"], body["facts"]
    reasons = [{**reason, "message": sentence_of(reason["code"], reason["detail"])} for reason in said["reasons"]]
    return Explanation(
        _sentence(decision, said, reasons),
        facts["question"],
        facts["alias"],
        reasons,
        said["policies"],
        said["grants"],
        said["evidence"],
        said["waived"],
        said["valid_until"],
        said["break_glass"],
        _replaced_by(body),
        said["semantics"],
        facts,
    )


def _sentence(decision: Decision, said: Value, reasons: Sequence[Value]) -> str:
    asked = f"to `{decision.action}` on `{decision.resource}`"
    if not decision.allowed:
        return f"`{decision.subject}` was not allowed {asked}: {reasons[0]['message']}."
    why = "a grant stood, and every policy in force was met"
    if said["break_glass"]:
        why = "one person had opened it as break-glass"
    if decision.conformance:
        why = "the conformance profile answered, which rests on nothing and clears nobody"
    return f"`{decision.subject}` was allowed {asked}: {why}."


# --- judging again


class Replay(NamedTuple):
    """The judgement as recorded, and as judged again from the stored facts and policy texts at the recorded instant.

    `stored` and `replayed` are canonical bytes, `replayed` b"" where nothing can be judged. Where `replaced_by` is not None, the
    answer was not what the facts gave but this; it stands in the replayed one too, and `judged` is what judging gives, None where
    that ends in an error.
    """

    outcome: ReplayOutcome
    stored: bytes
    replayed: bytes
    judged: Value | None
    replaced_by: str | None

    @property
    def same(self) -> bool:
        return self.outcome == ReplayOutcome.SAME


def replay_decision(decision: Decision) -> Replay:
    """Judge again: nothing is read but the decision's body and the policy texts that it cites by digest. It records nothing."""
    body = body_of(decision)
    stored = plain_bytes(body["judgement"])
    why = _replaced_by(body)
    wanted = digests_of(body)
    # The same text twice is the same policy: whichever row holds it.
    versions = {version.digest: version for version in PolicyVersion.objects.filter(digest__in=wanted)}
    if wanted - versions.keys():
        return Replay(ReplayOutcome.PRUNED, stored, b"", None, why)
    compiled = dict(zip(versions, compile_versions(list(versions.values())), strict=True))
    try:
        again = judge_again(body, compiled, decision.at, timestamp(decision.at))
    except UnknownSemantics:
        return Replay(ReplayOutcome.UNKNOWN_SEMANTICS, stored, b"", None, why)
    replayed = plain_bytes(again.core)
    outcome = ReplayOutcome.SAME if replayed == stored else ReplayOutcome.DIFFERS
    return Replay(outcome, stored, replayed, None if again.judged is None else again.judged.core(), why)


# --- counted


class Day(NamedTuple):
    """How often a grant was asked for on one day (UTC)."""

    day: date
    allowed: int
    denied: int


class Days(NamedTuple):
    """A grant's decisions by days, every day of the period, oldest first. `counted_from` is the instant before which nothing was
    counted since there was too much, None where all was."""

    days: Sequence[Day]
    counted_from: datetime | None


def decisions_by_day(sight: Sight, grant: Grant, *, days: int, at: datetime) -> Days:
    """Return how often a grant was used, and refused by, on each of the last days up to an instant, as far as somebody sees it."""
    last = at.astimezone(UTC).date()
    first = last - timedelta(days=days - 1)
    since = datetime(first.year, first.month, first.day, tzinfo=UTC)
    seen = visible_decisions(sight).filter(grant=grant)
    newest = seen.filter(at__gte=since).order_by("-id").values("at", "allowed")[:MOST_COUNTED]
    try:
        statement, given = newest.query.sql_with_params()
    except EmptyResultSet:
        # She sees no system at all.
        rows: list[tuple[date, bool, int, datetime]] = []
    else:
        with connection.cursor() as cursor:
            cursor.execute(_BY_DAY.format(newest=statement), given)
            rows = cursor.fetchall()
    counts = {(day, allowed): number for day, allowed, number, _ in rows}
    cut = min(earliest for *_, earliest in rows) if sum(counts.values()) >= MOST_COUNTED else None
    span = [first + timedelta(days=number) for number in range(days)]
    return Days([Day(day, counts.get((day, True), 0), counts.get((day, False), 0)) for day in span], cut)
