"""Drift as values that are kept, and what evidence would restore what fell. Pure.

The values are those of `RuleChange` with decimals as text, so that a page can be drawn from a stored event alone.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from evaluations.kernel.numbers import plain
from policies.language.changes import EXACT, RuleChange, with_unit
from policies.language.results import Result
from policies.language.ways import half_way, samples_needed

_DECIMALS = frozenset(
    {
        "before_value",
        "after_value",
        "before_rate",
        "after_rate",
        "before_k",
        "after_k",
        "before_bar",
        "bar",
        "change",
        "chance",
        "confidence",
    }
)
_HUNDRED = Decimal(100)


def change_value(change: RuleChange) -> dict[str, Any]:
    """Return a change as a value of plain texts, numbers and nulls."""
    return {name: plain(value) if isinstance(value, Decimal) else value for name, value in change._asdict().items()}


def change_of(value: Mapping[str, Any]) -> RuleChange:
    """Return the change that `change_value` gave."""
    parts: dict[str, Any] = {
        name: Decimal(held) if name in _DECIMALS and held is not None else held for name, held in value.items()
    }
    return RuleChange(**parts)


def restoring_sentence(change: RuleChange) -> str:
    """Return a plain sentence (without a full stop) that says which evidence would restore a part of a rule.

    For a bound it says from how many tasks on a rate clears the bar: one half-way between the bar and perfect, and a perfect one.
    """
    side = "at least" if change.floor else "at most"
    bar = with_unit(plain(change.bar), change.unit)
    needed = f"{_KINDS.get(change.after_part, 'a newer result')} of {change.clause}"
    if change.after_part == Result.CONTESTED:
        needed += ", or a ruling on the evidence that disagrees"
    if change.statistic == "point":
        return f"{needed}: {side} {bar}"
    bound = f"{plain(EXACT.scaleb(change.confidence, 2))} % {'lower' if change.floor else 'upper'} bound"
    ways = [
        f"{with_unit(plain(rate), change.unit)} observed clears it {'at any n' if n == 1 else f'from n = {n} on'}"
        for rate in _rates(change.bar, higher=change.floor)
        if (n := samples_needed(change.statistic, change.confidence, change.bar, change.floor, rate)) is not None
    ]
    return f"{needed} whose {bound} is {side} {bar}" + (f" ({'; '.join(ways)})" if ways else "")


_KINDS: Mapping[str, str] = {
    Result.MISSING: "a result",
    Result.STALE: "a newer run",
    Result.ERROR: "a sound result",
}


def _rates(bar: Decimal, *, higher: bool) -> tuple[Decimal, ...]:
    """Return the rates to speak of: about half-way from the bar to perfect, and perfect."""
    perfect = _HUNDRED if higher else Decimal(0)
    return tuple(dict.fromkeys(rate for rate in (half_way(bar, perfect), perfect) if rate != bar))
