"""What changed between two stored judgement cores, rule by rule, how likely it is noise, and the sentences that say so. Pure.

How likely a fall is noise: Fisher's exact test, one-sided (R. A. Fisher, "The Logic of Inductive Inference", Journal of the
Royal Statistical Society 98, 1935, 39-82). Were both runs drawn from one rate, the count of the later run, given the total
of both, would be hypergeometric; the chance is its tail from the count seen to the worse end. Two runs over the same tasks
are paired, which varies less than the test supposes: the chance stated is, if anything, too high.
"""

from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from evaluations.kernel.numbers import plain
from policies.language.compiled import Clause
from policies.language.results import Result
from policies.language.statistics import count_of, tally

Core = Mapping[str, Any]
"""A judgement core as parsed; its numbers are texts, so any JSON reader keeps them exact."""

Clauses = Mapping[str, Clause]

EXACT = Context(prec=60)
_FOUR_PLACES = Decimal("0.0001")
_FEWEST_PLACES, _MOST_PLACES = 2, 6
_THIRD, _NEARLY_ONE = Decimal("0.3334"), Decimal("0.95")


class RuleChange(NamedTuple):
    """What changed in one rule, or in one part of a rule that has several (`part` is its path, such as `2.1`; else "").

    `before_result` and `after_result` are what the whole rule gave, `before_part` and `after_part` what this part gave; ""
    where that verdict has no such rule or part. The values are the judged statistic, None where nothing was measured; the
    rates have errors counted against the subject. `bar` is the newest, `floor` says that less is worse. The models are those
    of an agent's route that gave the results, "" for models. `change` is after less before, None where the two cannot be
    compared. `chance` is how likely a worsening at least as large is by noise alone, to four decimals; None where nothing
    got worse or where it cannot be said.

    Where the signed verdict has no such rule, but measured the same clause under another rule, that measurement stands in.
    """

    rule: str
    part: str
    clause: str
    before_result: str
    after_result: str
    before_part: str
    after_part: str
    before_value: Decimal | None
    after_value: Decimal | None
    before_rate: Decimal | None
    after_rate: Decimal | None
    before_k: Decimal | None
    before_n: int | None
    after_k: Decimal | None
    after_n: int | None
    before_bar: Decimal | None
    bar: Decimal
    before_model: str
    after_model: str
    floor: bool
    change: Decimal | None
    chance: Decimal | None
    unit: str
    statistic: str
    confidence: Decimal

    @property
    def differs(self) -> bool:
        """Whether anything changed that a person should see."""
        before = (self.before_result, self.before_part, self.before_value, self.before_rate, self.before_k, self.before_n)
        after = (self.after_result, self.after_part, self.after_value, self.after_rate, self.after_k, self.after_n)
        return (*before, self.before_bar, self.before_model) != (*after, self.bar, self.after_model)

    @property
    def worse(self) -> bool:
        """Whether the statistic moved to the bad side."""
        return self.change is not None and (self.change < 0 if self.floor else self.change > 0)


class _Part(NamedTuple):
    """One comparison of a stored core: a rule, or one part of it."""

    rule_result: str
    result: str
    measured: Decimal | None
    rate: Decimal | None
    bar: Decimal
    k: Decimal | None
    n: int | None
    lost: int
    model: str


_ABSENT = _Part("", "", None, None, Decimal(0), None, None, 0, "")
_Key = tuple[str, str, str]  # rule, part, clause
_Parts = dict[_Key, _Part]


# What changed.


def pairs_of(before: Core | None, after: Core | None, clauses: Clauses, earlier: Clauses) -> tuple[RuleChange, ...]:
    """Return what two cores say of each part of each rule, changed or not: those of `after` first, in its order.

    `clauses` belong to the policy that judged `after`, `earlier` to the one that judged `before`.
    """
    same_domain = before is None or after is None or before["domain"] == after["domain"]
    old, new = _parts(before), _parts(after)
    pairs = []
    for key in dict.fromkeys([*new, *old]):
        name = key[2]
        was, now = old.get(key), new.get(key)
        clause = clauses.get(name) or earlier[name]
        comparable = _asks_the_same(clauses.get(name), earlier.get(name), same_domain=same_domain)
        if was is None and comparable:
            stand_in = _stand_in(name, old, higher=clause.higher)
            was = None if stand_in is None else stand_in._replace(rule_result="", result="")
        pairs.append(_pair(key, was, now, clause, comparable=comparable))
    return tuple(pairs)


def _parts(core: Core | None) -> _Parts:
    parts: _Parts = {}
    for rule in () if core is None else core["rules"]:
        for path, item in _leaves(rule, ""):
            parts[rule["id"], path, item["clause"]] = _Part(
                rule["result"],
                item["result"],
                _number(item["measured"]),
                _number(item["value"]),
                Decimal(item["bar"]),
                _number(item["k"]),
                item["n"],
                item["lost"] or 0,
                item["model"],
            )
    return parts


def _leaves(item: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not item["children"]:
        yield path, item
    for place, child in enumerate(item["children"], start=1):
        yield from _leaves(child, f"{path}.{place}" if path else str(place))


def _number(stored: str | Decimal | None) -> Decimal | None:
    """A core spells its numbers as text; one that is not finite was measured by nobody."""
    if stored is None:
        return None
    number = Decimal(stored)
    return number if number.is_finite() else None


def _pair(key: _Key, was: _Part | None, now: _Part | None, clause: Clause, *, comparable: bool) -> RuleChange:
    before, after = was or _ABSENT, now or _ABSENT
    change = chance = None
    if before.measured is not None and after.measured is not None and comparable:
        change = EXACT.subtract(after.measured, before.measured)
        if change and (change < 0) is clause.higher and before.model == after.model:
            chance = _chance(before, after, clause)
    return RuleChange(
        *key,
        before_result=before.rule_result,
        after_result=after.rule_result,
        before_part=before.result,
        after_part=after.result,
        before_value=before.measured,
        after_value=after.measured,
        before_rate=before.rate,
        after_rate=after.rate,
        before_k=before.k,
        before_n=before.n,
        after_k=after.k,
        after_n=after.n,
        before_bar=None if was is None else was.bar,
        bar=before.bar if now is None else now.bar,
        before_model=before.model,
        after_model=after.model,
        floor=clause.higher,
        change=change,
        chance=chance,
        unit=clause.unit,
        statistic=clause.statistic,
        confidence=clause.confidence,
    )


def _stand_in(clause: str, old: _Parts, *, higher: bool) -> _Part | None:
    """Return what another rule measured on a clause: a rule that a new policy version renamed is no way out of a limit."""
    held = [(part.measured, part) for (_, _, name), part in old.items() if name == clause and part.measured is not None]
    if not held:
        return None
    return (max if higher else min)(held, key=lambda pair: pair[0])[1]


def _asks_the_same(now: Clause | None, was: Clause | None, *, same_domain: bool) -> bool:
    """Whether two clauses of one name measure one thing, so that their numbers may be compared."""
    if now is None or was is None:
        return False
    if now is was:
        return same_domain or not now.by_domain
    asked, asked_before = (
        (clause.metric, clause.benchmark, clause.slice, clause.about, clause.statistic, clause.confidence)
        for clause in (now, was)
    )
    return asked == asked_before and not now.versions.isdisjoint(was.versions) and (same_domain or not now.by_domain)


# How likely it is noise.


def _chance(was: _Part, now: _Part, clause: Clause) -> Decimal | None:
    before, after = _counted(was, clause), _counted(now, clause)
    if before is None or after is None:
        return None
    return chance_of_fall(before[0], before[1], after[0], after[1], clause.higher)


def _counted(part: _Part, clause: Clause) -> tuple[int, int] | None:
    """Return the whole count behind a rate (successes where higher is better, else failures) and its n."""
    if part.n is None or part.rate is None or not clause.percent:
        return None
    if part.k is None:
        return count_of(part.rate, part.n, part.lost, clause.higher), part.n
    return tally(part.k, part.n, part.lost, clause.higher)[1], part.n


@lru_cache(maxsize=65_536)
def chance_of_fall(before_k: int, before_n: int, after_k: int, after_n: int, higher: bool) -> Decimal:  # noqa: FBT001 - a memo's key, always given by name of its variable
    """Return the chance, to four decimals, that two runs of one rate differ by at least this much to the worse.

    The counts are successes where `higher` is better, else failures. Raises `ValueError` for counts that cannot be.
    """
    for k, n in ((before_k, before_n), (after_k, after_n)):
        if not 0 <= k <= n or n < 1:
            raise ValueError(f"{k} of {n} is no count")
    together, drawn, marked = before_n + after_n, after_n, before_k + after_k
    if higher:
        tail = _hypergeometric().cdf(after_k, together, marked, drawn)
    else:
        tail = _hypergeometric().sf(after_k - 1, together, marked, drawn)
    return Decimal(float(tail)).quantize(_FOUR_PLACES, context=EXACT)


@lru_cache(maxsize=1)
def _hypergeometric() -> Any:
    # Loaded at the first fall: it costs seconds, and most comparisons find none.
    from scipy.stats import hypergeom

    return hypergeom


# Sentences. Rendered on demand, never kept.


def noise_sentence(change: RuleChange) -> str:
    """Return a plain sentence (without a full stop) that says how likely a change is noise, or why that cannot be said."""
    if change.change is None:
        measured = change.before_value is not None and change.after_value is not None
        return f"cannot be said: {'the two numbers are not comparable' if measured else 'there are not two measurements'}"
    if not change.worse:
        return "nothing got worse"
    if change.chance is None:
        return f"cannot be said: {_why_no_chance(change)}"
    what = f"a {'fall' if change.floor else 'rise'} as large would come about by chance in"
    if change.chance < _FOUR_PLACES:
        return f"{what} fewer than 1 of 10000 runs"
    if change.chance >= _NEARLY_ONE:
        return f"{what} nearly every run"
    if change.chance >= _THIRD:
        return f"{what} {round(change.chance * 10)} of 10 runs"
    return f"{what} 1 of {round(1 / change.chance)} runs"


def _why_no_chance(change: RuleChange) -> str:
    if change.before_model != change.after_model:
        return "the two numbers are of two models"
    return "n is not stated" if change.before_n is None or change.after_n is None else "the measure is no rate"


def change_sentence(change: RuleChange) -> str:
    """Return a plain sentence (without a full stop) that says what changed, in the unit and with the digits that matter."""
    named = _named(change)
    if not change.after_result:
        return f"{named} is no longer asked for by `{change.rule}`"
    before, after = change.before_value, change.after_value
    if after is None:
        state = _STATES.get(change.after_part, change.after_part)
        return f"{named} {state} (before: {_shown(before, change)})" if before is not None else f"{named} {state}"
    stands = f"{_side(after, change)} the bar of {_shown(change.bar, change)}"
    contested = ", and other evidence disagrees" if change.after_part == Result.CONTESTED else ""
    if before is None:
        return f"{named} is {_shown(after, change)}, {stands}{contested} (before: {change.before_part or 'not asked'})"
    if change.change is None:
        return f"{named} is {_shown(after, change)}, {stands}{contested} (before, not comparable: {_shown(before, change)})"
    if not change.change:
        return f"{named} is still {_shown(after, change)}, {stands}{contested}"
    verb = "fell" if change.change < 0 else "rose"
    return f"{named} {verb} from {_shown(before, change)} to {_shown(after, change)}, {stands}{contested}"


_STATES: Mapping[str, str] = {
    Result.MISSING: "is missing now",
    Result.STALE: "is too old now",
    Result.CONTESTED: "is in dispute now",
    Result.ERROR: "rests on a stored row that cannot be right",
}


def _named(change: RuleChange) -> str:
    model = change.after_model or change.before_model
    whose = f"for `{model}`: " if model else ""
    if change.statistic == "point":
        return f"{whose}{change.clause}"
    side = "lower" if change.statistic == "lower_bound" else "upper"
    return f"{whose}the {plain(EXACT.scaleb(change.confidence, 2))} % {side} bound of {change.clause}"


def _side(value: Decimal, change: RuleChange) -> str:
    if value == change.bar:
        return "at"
    return "above" if value > change.bar else "below"


def _shown(number: Decimal, change: RuleChange) -> str:
    """Show a number with the fewest decimals that keep it apart from the others of the same sentence, cut to the worse."""
    others = [held for held in (change.before_value, change.after_value, change.bar) if held is not None and held != number]
    rounding = ROUND_FLOOR if change.floor else ROUND_CEILING
    cut = number
    for places in range(_FEWEST_PLACES, _MOST_PLACES):
        cut = number.quantize(Decimal(1).scaleb(-places), rounding=rounding, context=EXACT)
        if all(cut.compare(other) == number.compare(other) for other in others):
            return with_unit(plain(cut), change.unit)
    return with_unit(plain(number), change.unit)


def with_unit(text: str, unit: str) -> str:
    return {"percent": f"{text} %", "usd": f"{text} USD"}.get(unit, text)
