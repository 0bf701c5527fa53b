"""How far a judgement is from its edge: by how much what was measured would have to move for the outcome to turn. Pure.

Only rates are compared: a distance in dollars is neither nearer nor farther than one in percent.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from policies.language.compiled import Assertion, Combination, CompiledPolicy, Test
from policies.language.judgement import RuleResult
from policies.language.results import Enforcement, Result

_PASS, _ADVISORY = Result.PASS.value, Enforcement.ADVISORY.value


class Seen(NamedTuple):
    """What one rule, or one branch of it, gave, short of everything that says nothing about its edge."""

    result: str
    measured: Decimal | None
    bar: Decimal
    children: tuple["Seen", ...]


Shown = Seen | RuleResult


def seen_in(core: Mapping[str, Any]) -> tuple[Seen, ...]:
    """Return the rules of a parsed judgement core, in their order."""
    return tuple([_seen(rule) for rule in core["rules"]])


def distance(compiled: CompiledPolicy, results: Sequence[Shown]) -> Decimal | None:
    """Return how far, in percent, what `compiled` measured is from turning the outcome; `results` are those of its rules, in order.

    Of a pass it is the smallest margin that a rule has; of a fail the largest gap, since every rule must pass. None where no rate was
    measured, or a rule that refuses measured nothing: then no number says how near it is.
    """
    pairs = [(rule.test, result) for rule, result in zip(compiled.rules, results, strict=True) if rule.enforcement != _ADVISORY]
    refusing = [_gap(test, result) for test, result in pairs if result.result != _PASS]
    if refusing:
        return _largest(refusing)
    return _smallest(_margin(test, result) for test, result in pairs)


def _margin(test: Test, result: Shown) -> Decimal | None:
    """Return how far something that passes is from passing no more."""
    if isinstance(test, Assertion):
        return _between(test, result)
    held = [_margin(branch, child) for branch, child in _branches(test, result) if child.result == _PASS]
    return _largest(held) if test.any_of else _smallest(held)


def _gap(test: Test, result: Shown) -> Decimal | None:
    """Return how far something that does not pass is from passing."""
    if isinstance(test, Assertion):
        return _between(test, result)
    lacking = [_gap(branch, child) for branch, child in _branches(test, result) if child.result != _PASS]
    return _smallest(lacking) if test.any_of else _largest(lacking)


def _branches(test: Combination, result: Shown) -> list[tuple[Test, Shown]]:
    children: Sequence[Shown] = result.children
    return list(zip(test.branches, children, strict=True))


def _between(test: Assertion, result: Shown) -> Decimal | None:
    if result.measured is None or not test.clause.percent:
        return None
    return abs(result.measured - result.bar)


def _smallest(found: Iterable[Decimal | None]) -> Decimal | None:
    return min([one for one in found if one is not None], default=None)


def _largest(found: Sequence[Decimal | None]) -> Decimal | None:
    known = [one for one in found if one is not None]
    return max(known) if known and len(known) == len(found) else None


def _seen(rule: Mapping[str, Any]) -> Seen:
    measured = rule["measured"]
    children = tuple([_seen(child) for child in rule["children"]])
    return Seen(rule["result"], None if measured is None else Decimal(measured), Decimal(rule["bar"]), children)
