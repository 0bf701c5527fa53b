"""What differs between the meanings of two policy versions, part by part, in which direction, and in plain sentences. Pure.

The direction says what the newer version asks of evidence, of people and of the moment: *looser* asks less than before, *tighter*
asks more, *other* asks something else. It is about the text alone; what it does to the subjects there are is told by the impact.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from difflib import unified_diff
from typing import Any

from evaluations.kernel.numbers import plain
from policies.language.changes import with_unit
from policies.language.compiled import (
    Assertion,
    Clause,
    Combination,
    CompiledPolicy,
    Drift,
    Factor,
    GrantTerms,
    Rule,
    SignOffs,
    Test,
    assertions_of,
)
from policies.language.meaning_kinds import (
    Direction,
    Found,
    MeaningChange,
    direction_of,
    limit_change,
    listed,
    named_changes,
    rank_change,
    section_change,
    set_change,
    value_change,
)
from policies.language.results import PROVENANCES, TRUST_TIERS

__all__ = ["Direction", "MeaningChange", "changes_of_meaning", "unified"]

_ENFORCEMENTS = ("advisory", "soft", "hard")


def changes_of_meaning(before: CompiledPolicy, after: CompiledPolicy) -> tuple[MeaningChange, ...]:
    """Return every difference in meaning, in the order of a policy's text. None is returned where both resolve to the same form."""
    if before.resolved_bytes == after.resolved_bytes:
        return ()
    found = tuple(_all(before, after))
    if found:
        return found
    # Two resolved forms that differ are never told to be one.
    digests = before.resolved_digest, after.resolved_digest
    return (MeaningChange("spec", "the order of its parts, in the resolved form", *digests, Direction.OTHER),)


def unified(before: bytes, after: bytes, *, named: tuple[str, str], lines: int = 3) -> list[str]:
    """Return the difference between two texts as a unified diff, line by line without line ends; `lines` stand round each change."""
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, after))
    return list(unified_diff(old, new, *named, n=lines, lineterm=""))


def _all(before: CompiledPolicy, after: CompiledPolicy) -> Found:
    yield from _metadata(before, after)
    yield from _applies(before, after)
    yield from _params(before, after)
    yield from named_changes("spec.evidence", "evidence", before.clauses, after.clauses, _clause_words, _clauses)
    yield from _rules(before, after)
    old, new = ({item.id: item.when.text for item in policy.forbid} for policy in (before, after))
    yield from named_changes("spec.forbid", "guardrail", old, new, str, _guardrails, added=Direction.TIGHTER)
    yield from section_change("spec.sign_offs", "the section of sign-offs", before.sign_offs, after.sign_offs, _sign_offs)
    yield from section_change("spec.grant", "the terms of grants", before.grant, after.grant, _grant)
    yield from section_change("spec.drift", "the section on drift", before.drift, after.drift, _drift)
    tests = [{str(test["name"]): _shown(test) for test in policy.tests} for policy in (before, after)]
    for name in dict.fromkeys([*tests[0], *tests[1]]):
        was, now = tests[0].get(name), tests[1].get(name)
        if was is None or now is None:
            yield MeaningChange(
                f"spec.tests.{name}", f"the test `{name}`", "there" if was else "", "there" if now else "", Direction.OTHER
            )
        elif was != now:
            yield MeaningChange(f"spec.tests.{name}", f"the test `{name}`", was, now, Direction.OTHER)


# The question.


def _metadata(before: CompiledPolicy, after: CompiledPolicy) -> Found:
    yield from value_change("metadata.name", "the name", before.name, after.name)
    yield from value_change("metadata.title", "the title", before.title, after.title)
    yield from value_change("metadata.profile", "the profile", before.profile or "none", after.profile or "none")
    yield from value_change("metadata.references", "the references", listed(before.references), listed(after.references))
    yield from value_change("semantics", "the semantics of the language", str(before.semantics), str(after.semantics))


def _applies(before: CompiledPolicy, after: CompiledPolicy) -> Found:
    actions = listed(sorted(before.actions)), listed(sorted(after.actions))
    yield from value_change("spec.appliesTo.actions", "the actions it is about", *actions)
    old, new = (policy.applies_when.text if policy.applies_when else "always" for policy in (before, after))
    yield from value_change("spec.appliesTo.when", "the condition under which it applies", old, new)


def _guardrails(path: str, was: str, now: str) -> Found:
    yield from value_change(path, f"the guardrail `{path.rpartition('.')[2]}`", was, now)


# Numbers.


def _params(before: CompiledPolicy, after: CompiledPolicy) -> Found:
    units = {item.param: item.clause.unit for policy in (before, after) for item in _assertions(policy) if item.param}
    for name in dict.fromkeys([*before.params, *after.params]):
        was, now = before.params.get(name), after.params.get(name)
        unit = units.get(name, "")
        users = [rule.id for rule in (after if now else before).rules if any(i.param == name for i in assertions_of(rule.test))]
        what = f"the parameter `{name}` (bar of {' and '.join(f'`{user}`' for user in users)})"
        old, new = ("" if held is None else with_unit(plain(held.value), unit) for held in (was, now))
        direction = Direction.OTHER
        if was is not None and now is not None and was.floor == now.floor:
            direction = direction_of(was.value, now.value, tighter_up=now.floor)
        yield from value_change(f"spec.params.{name}", what, old, new, direction)


def _assertions(policy: CompiledPolicy) -> list[Assertion]:
    return [item for rule in policy.rules for item in assertions_of(rule.test)]


# Evidence.


def _clause_words(clause: Clause) -> str:
    return f"{clause.metric} on {clause.benchmark} {listed(sorted(clause.versions))}, slice {clause.slice}"


def _clauses(path: str, was: Clause, now: Clause) -> Found:
    named = f"evidence `{now.name}`:"
    for key in ("metric", "benchmark"):
        yield from value_change(f"{path}.{key}", f"{named} the {key}", getattr(was, key), getattr(now, key))
    yield from set_change(f"{path}.versions", f"{named} the versions that count", was.versions, now.versions, Direction.LOOSER)
    yield from value_change(f"{path}.slice", f"{named} the slice", was.slice, now.slice)
    yield from value_change(f"{path}.about", f"{named} what is measured", was.about, now.about)
    weighed = direction_of(was.statistic != "point", now.statistic != "point", tighter_up=True)
    words = was.statistic.replace("_", " "), now.statistic.replace("_", " ")
    yield from value_change(f"{path}.statistic", f"{named} the statistic", *words, weighed)
    yield from limit_change(f"{path}.confidence", f"{named} the confidence", was.confidence, now.confidence, tighter_up=True)
    yield from limit_change(
        f"{path}.min_samples", f"{named} the fewest samples", was.min_samples, now.min_samples, tighter_up=True
    )
    shares = was.max_error_share, now.max_error_share
    yield from limit_change(f"{path}.max_error_share", f"{named} the largest share of errors", *shares, tighter_up=False)
    ages = [None if clause.max_age is None else clause.max_age.days for clause in (was, now)]
    what = f"{named} the largest age"
    yield from limit_change(f"{path}.max_age_days", what, ages[0], ages[1], tighter_up=False, unit=" days", none="unlimited")
    yield from rank_change(f"{path}.min_trust", f"{named} the least trust", was.min_trust, now.min_trust, TRUST_TIERS)
    tiers = was.min_provenance, now.min_provenance
    yield from rank_change(f"{path}.min_provenance", f"{named} the weakest provenance", *tiers, PROVENANCES)
    signed = ("not needed", "needed")
    old, new = (signed[clause.require_attestation] for clause in (was, now))
    yield from rank_change(f"{path}.require_attestation", f"{named} a verified signature", old, new, signed)
    what = f"{named} the sources that settle a contest"
    if set(was.prefer) == set(now.prefer):
        yield from value_change(f"{path}.prefer", what, listed(was.prefer), listed(now.prefer))
    else:
        yield from set_change(f"{path}.prefer", what, frozenset(was.prefer), frozenset(now.prefer), Direction.LOOSER)


# Rules.


def _rules(before: CompiledPolicy, after: CompiledPolicy) -> Found:
    old, new = ({rule.id: rule for rule in policy.rules} for policy in (before, after))
    gone = {_meaning_of(rule): rule.id for rule in before.rules if rule.id not in new}
    renamed = {gone[_meaning_of(rule)]: rule.id for rule in after.rules if rule.id not in old and _meaning_of(rule) in gone}
    for id_ in dict.fromkeys([*old, *new]):
        was, now = old.get(id_), new.get(id_)
        path, what = f"spec.rules.{id_}", f"the rule `{id_}`"
        if id_ in renamed:
            yield MeaningChange(path, "the name of a rule", f"`{id_}`", f"`{renamed[id_]}`", Direction.OTHER)
        elif was is not None and now is not None:
            words = was.enforcement, now.enforcement
            yield from rank_change(f"{path}.enforcement", f"{what}: the enforcement", *words, _ENFORCEMENTS)
            yield from _tests(path, what, was.test, now.test)
        elif was is not None:
            yield MeaningChange(path, what, _rule_words(was), "", _decides(was, Direction.LOOSER))
        elif now is not None and id_ not in renamed.values():
            yield MeaningChange(path, what, "", _rule_words(now), _decides(now, Direction.TIGHTER))


def _rule_words(rule: Rule) -> str:
    return f"{_test_words(rule.test)} ({rule.enforcement})"


def _decides(rule: Rule, direction: Direction) -> Direction:
    return Direction.OTHER if rule.enforcement == _ENFORCEMENTS[0] else direction


def _meaning_of(rule: Rule) -> tuple[str, str]:
    return rule.enforcement, _test_words(rule.test)


def _tests(path: str, what: str, was: Test, now: Test) -> Found:
    if _skeleton(was) == _skeleton(now):
        bars = list(zip(assertions_of(was), assertions_of(now), strict=True))
        for place, (old, new) in enumerate(bars, start=1):
            at = path if len(bars) == 1 else f"{path}.{place}"
            yield from _bar(at, f"{what}: the bar on `{new.clause.name}`", old, new)
    else:
        yield MeaningChange(path, f"{what}:", _test_words(was), _test_words(now), _regrouped(was, now))


def _bar(path: str, what: str, was: Assertion, now: Assertion) -> Found:
    if was.param and was.param == now.param:
        return  # told as the parameter's own change
    old, new = (
        f"{with_unit(plain(item.bar), item.clause.unit)}{f' (the parameter `{item.param}`)' if item.param else ''}"
        for item in (was, now)
    )
    yield from value_change(path, what, old, new, direction_of(was.bar, now.bar, tighter_up=now.floor))


def _skeleton(test: Test) -> Any:
    """Return the shape of a test without its bars."""
    if isinstance(test, Assertion):
        return test.clause.name, test.floor
    return test.any_of, tuple(_skeleton(branch) for branch in test.branches)


def _regrouped(was: Test, now: Test) -> Direction:
    """Return the direction of a change of shape, where one side merely has more branches, or joins the same ones otherwise."""
    old, new = ({_test_words(item) for item in _branches(test)} for test in (was, now))
    joins = {test.any_of for test in (was, now) if isinstance(test, Combination)}
    if old == new and isinstance(was, Combination) and isinstance(now, Combination) and was.any_of != now.any_of:
        return Direction.LOOSER if now.any_of else Direction.TIGHTER
    if len(joins) != 1 or not (old < new or new < old):
        return Direction.OTHER
    return Direction.LOOSER if (old < new) == joins.pop() else Direction.TIGHTER


def _branches(test: Test) -> Sequence[Test]:
    return test.branches if isinstance(test, Combination) else (test,)


def _test_words(test: Test) -> str:
    if isinstance(test, Assertion):
        bar = f"`{test.param}`" if test.param else with_unit(plain(test.bar), test.clause.unit)
        return f"`{test.clause.name}` at {'least' if test.floor else 'most'} {bar}"
    joined = (" or " if test.any_of else " and ").join(_test_words(branch) for branch in test.branches)
    return f"({joined})"


# People, grants and drift.


def _sign_offs(path: str, was: SignOffs, now: SignOffs) -> Found:
    old, new = ({item.factor: item for item in side.all_of} for side in (was, now))
    yield from named_changes(f"{path}.all_of", "sign-off", old, new, _factor_words, _factors, added=Direction.TIGHTER)
    excluded = frozenset(was.exclude), frozenset(now.exclude)
    yield from set_change(f"{path}.exclude", "who must not sign", *excluded, Direction.TIGHTER)
    minutes = was.reauthenticate_within_minutes, now.reauthenticate_within_minutes
    what = "how long a signer's proof counts"
    yield from limit_change(f"{path}.reauthenticate_within_minutes", what, *minutes, tighter_up=False, unit=" minutes")
    hours = was.request_expires_after_hours, now.request_expires_after_hours
    what = "how long a request can be signed"
    yield from limit_change(f"{path}.request_expires_after_hours", what, *hours, tighter_up=False, unit=" hours")


def _factor_words(factor: Factor) -> str:
    condition = f" where {factor.filter.text}" if factor.filter else ""
    return f"{factor.approve} × {factor.role}{condition}"


def _factors(path: str, was: Factor, now: Factor) -> Found:
    named = f"sign-off `{now.factor}`:"
    yield from value_change(f"{path}.role", f"{named} the role", was.role, now.role)
    yield from limit_change(f"{path}.approve", f"{named} the signatures", was.approve, now.approve, tighter_up=True)
    old, new = (item.filter.text if item.filter else "anybody with the role" for item in (was, now))
    direction = Direction.OTHER
    if (was.filter is None) != (now.filter is None):
        direction = Direction.TIGHTER if was.filter is None else Direction.LOOSER
    yield from value_change(f"{path}.filter", f"{named} who may sign", old, new, direction)


def _grant(path: str, was: GrantTerms, now: GrantTerms) -> Found:
    what = "the longest grant"
    yield from limit_change(f"{path}.max_days", what, was.max_days, now.max_days, tighter_up=False, unit=" days")
    days = was.recertify_every_days, now.recertify_every_days
    what = "the time between certifications"
    yield from limit_change(f"{path}.recertify_every_days", what, *days, tighter_up=False, unit=" days")


def _drift(path: str, was: Drift, now: Drift) -> Found:
    for key in ("on_fail", "on_stale", "on_contested"):
        words = getattr(was, key), getattr(now, key)
        what = f"a grant whose verdict {_DRIFTS[key]}"
        yield from rank_change(f"{path}.{key}", what, *words, ("notify", "suspend"))
    for name in dict.fromkeys([*was.max_fall, *now.max_fall]):
        falls = was.max_fall.get(name), now.max_fall.get(name)
        what = f"the largest tolerated fall of `{name}`"
        yield from limit_change(f"{path}.max_fall.{name}", what, *falls, tighter_up=False, none="any")


_DRIFTS: Mapping[str, str] = {"on_fail": "fails", "on_stale": "is stale", "on_contested": "is contested"}


def _shown(value: Any) -> str:
    """Spell a test in short."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_shown(held)}" for key, held in value.items() if key != "name") + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_shown(held) for held in value) + "]"
    return plain(value) if isinstance(value, Decimal) else str(value)
