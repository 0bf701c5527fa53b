"""What a standing grant should do when the verdict behind it is made again, and what changed. Pure.

Compared are two stored judgement cores (the JSON of `Judgement.core_bytes`): the one that was signed, and the newest. The
newest alone says whether the policy is still passed; the signed one is the mark against which a fall is measured, so that
many small falls add up.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from evaluations.kernel.numbers import plain
from policies.language.changes import (
    EXACT,
    Clauses,
    Core,
    RuleChange,
    change_sentence,
    noise_sentence,
    pairs_of,
    with_unit,
)
from policies.language.compiled import Clause, Drift
from policies.language.results import BADNESS, Outcome, Result

__all__ = [
    "GRAVITY",
    "Action",
    "Cause",
    "Comparison",
    "Fall",
    "RuleChange",
    "change_sentence",
    "compare",
    "fall_sentence",
    "gravest",
    "noise_sentence",
    "strictest",
]


class Action(StrEnum):
    """What a grant should do. A policy's `drift` says which of the last two."""

    NONE = "none"
    NOTIFY = "notify"
    SUSPEND = "suspend"


class Cause(StrEnum):
    """Why a grant should do something; the empty text means that nothing is the matter."""

    NOTHING = ""
    VERDICT_ERROR = "verdict_error"
    VERDICT_CONTESTED = "verdict_contested"
    VERDICT_MISSING = "verdict_missing"
    VERDICT_STALE = "verdict_stale"
    VERDICT_FAILED = "verdict_failed"
    FELL_BEYOND_LIMIT = "fell_beyond_limit"


GRAVITY: dict[str, int] = {action.value: place for place, action in enumerate(Action)}
"""Place of an action from the mildest to the strictest."""

_CAUSES: dict[str, Cause] = {
    Result.ERROR: Cause.VERDICT_ERROR,
    Result.CONTESTED: Cause.VERDICT_CONTESTED,
    Result.MISSING: Cause.VERDICT_MISSING,
    Result.STALE: Cause.VERDICT_STALE,
    Result.FAIL: Cause.VERDICT_FAILED,
}


class Fall(NamedTuple):
    """A clause whose judged statistic worsened by more than `drift.max_fall` allows."""

    clause: str
    before: Decimal
    after: Decimal
    fell_by: Decimal
    allowed: Decimal


class Comparison(NamedTuple):
    """What a grant should do and why. `cause` is the gravest of `causes`; `rules` names the rules behind them."""

    action: Action
    cause: Cause
    causes: tuple[Cause, ...]
    rules: tuple[str, ...]
    falls: tuple[Fall, ...]
    changes: tuple[RuleChange, ...]


def compare(
    drift: Drift,
    before: Core | None,
    after: Core | None,
    *,
    clauses: Clauses,
    before_clauses: Clauses | None = None,
    waived: Collection[str] = (),
) -> Comparison:
    """Say what a grant that was signed on the core `before` should do now that the newest core is `after`.

    `clauses` are those of the policy that judged `after` (`CompiledPolicy.clauses`), `before_clauses` those of the one that
    judged `before` where it is another. `waived` names the rules that a live waiver covers at their newest value: whether it
    does is the caller's business. None for `before` measures no fall; None for `after` is a verdict that is missing. A fall
    beyond the limit suspends, whatever the verdict says.
    """
    pairs = pairs_of(before, after, clauses, clauses if before_clauses is None else before_clauses)
    falls = tuple(_falls(drift, pairs))
    grounds = _grounds(drift, after, waived)
    if falls:
        rules = tuple(pair.rule for pair in pairs if pair.clause in {fall.clause for fall in falls} and pair.after_result)
        grounds.append((Action.SUSPEND, Cause.FELL_BEYOND_LIMIT, rules))
    grounds.sort(key=lambda ground: -GRAVITY[ground[0]])
    return Comparison(
        action=grounds[0][0] if grounds else Action.NONE,
        cause=grounds[0][1] if grounds else Cause.NOTHING,
        causes=tuple(ground[1] for ground in grounds),
        rules=tuple(dict.fromkeys(rule for ground in grounds for rule in ground[2])),
        falls=falls,
        changes=tuple(pair for pair in pairs if pair.differs),
    )


def strictest(own: Drift, others: Iterable[Drift]) -> Drift:
    """Return a policy's drift with the strictest reactions of all policies on its question; `max_fall` stays its own."""
    held = own
    for other in others:
        held = replace(
            held,
            on_fail=_stricter(held.on_fail, other.on_fail),
            on_stale=_stricter(held.on_stale, other.on_stale),
            on_contested=_stricter(held.on_contested, other.on_contested),
        )
    return held


def gravest(comparisons: Iterable[Comparison]) -> Comparison | None:
    """Return the comparison that asks most of the grant, the first among equals; None where there is none."""
    return max(comparisons, key=lambda comparison: GRAVITY[comparison.action], default=None)


def _stricter(one: str, other: str) -> str:
    return max(one, other, key=GRAVITY.__getitem__)


# What the newest verdict alone asks for.


def _grounds(drift: Drift, after: Core | None, waived: Collection[str]) -> list[tuple[Action, Cause, tuple[str, ...]]]:
    """Return each cause with what the policy does about it, the worst result first."""
    if after is None:
        return [(Action(drift.on_fail), Cause.VERDICT_MISSING, ())]
    if after["outcome"] == Outcome.PASS:
        return []
    uncovered = {*after["blocking"], *(rule for rule in after["waivable"] if rule not in waived)}
    if not uncovered and after["waivable"]:
        return []
    found: dict[str, list[str]] = {}
    for rule in after["rules"]:
        if rule["id"] in uncovered:
            found.setdefault(rule["result"], []).append(rule["id"])
    if not found:  # a core that fails and names nothing is none of ours; it passes nothing
        return [(Action(drift.on_fail), Cause.VERDICT_FAILED, ())]
    reactions = {Result.STALE: drift.on_stale, Result.CONTESTED: drift.on_contested}
    return [
        (Action(reactions.get(Result(word), drift.on_fail)), _CAUSES.get(word, Cause.VERDICT_FAILED), tuple(found[word]))
        for word in sorted(found, key=BADNESS.__getitem__)
    ]


def _falls(drift: Drift, pairs: Iterable[RuleChange]) -> Iterator[Fall]:
    worst: dict[str, Fall] = {}
    for pair in pairs:
        allowed = drift.max_fall.get(pair.clause)
        if allowed is None or not pair.worse or pair.change is None or pair.before_value is None or pair.after_value is None:
            continue
        fell_by = EXACT.abs(pair.change)
        held = worst.get(pair.clause)
        if fell_by > allowed and (held is None or fell_by > held.fell_by):
            worst[pair.clause] = Fall(pair.clause, pair.before_value, pair.after_value, fell_by, allowed)
    yield from worst.values()


def fall_sentence(fall: Fall, clause: Clause) -> str:
    """Return a plain sentence (without a full stop) that says by how much a clause fell and how much was allowed."""
    return stored_fall_sentence(fall, floor=clause.higher, unit=clause.unit)


def stored_fall_sentence(fall: Fall, *, floor: bool, unit: str) -> str:
    """Return the same sentence where the clause is not at hand, but its polarity and unit are."""
    verb = "fell" if floor else "rose"
    by, allowed = (with_unit(plain(number), unit) for number in (fall.fell_by, fall.allowed))
    return f"{fall.clause} {verb} by {by} since it was signed; {allowed} is allowed"
