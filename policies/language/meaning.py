"""What one policy asks otherwise than another, in sentences: the difference of two meanings, never of two texts. Pure.

Compared are the resolved forms, in which every default is filled in. What is known to ask more or less carries `tighter` or
`looser`; everything else that differs is named as `other`, so that nothing slips by in silence. The direction says what a
change asks of those who want to be let in; whom it would let in today is for the impact to say.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from policies.language.compiled import CompiledPolicy, Rule
from policies.language.meaning_change import Change, Direction, in_order, listed, other, quoted, shown, towards
from policies.language.meaning_evidence import clause_changes, clause_words
from policies.language.meaning_rules import numbered, rule_words, test_changes
from policies.language.results import Enforcement

__all__ = ["Change", "Direction", "compare_meaning"]

_STRICTER_PROFILE: Mapping[str, int] = {"": 0, "supplement": 1}
_ENFORCEMENT: Mapping[str, int] = {Enforcement.ADVISORY: 0, Enforcement.SOFT: 1, Enforcement.HARD: 2}
_DRIFT: Mapping[str, int] = {"notify": 0, "suspend": 1}
_UNITS: Mapping[str, str] = {
    "reauthenticate_within_minutes": "minutes",
    "request_expires_after_hours": "hours",
    "max_days": "days",
    "recertify_every_days": "days",
}
_TERMS: Mapping[str, str] = {
    "reauthenticate_within_minutes": "whoever signs has shown again who she is within",
    "request_expires_after_hours": "a request can be signed for",
    "max_days": "a grant lasts at most",
    "recertify_every_days": "a grant is certified anew every",
}
_DRIFT_WORDS: Mapping[str, str] = {
    "on_fail": "when the verdict fails",
    "on_stale": "when the evidence is stale",
    "on_contested": "when the evidence is contested",
}


def compare_meaning(before: CompiledPolicy, after: CompiledPolicy) -> tuple[Change, ...]:
    """Return what `after` asks otherwise than `before`: looser changes first, then others, then tighter, each in the order of a text.

    Both are compiled by the same metric definitions. Empty where both mean the same, however their texts differ. With the two
    sides swapped, the same changes come out with `tighter` and `looser` swapped.
    """
    return in_order(_Comparison(before, after).changes())


class _Comparison:
    def __init__(self, before: CompiledPolicy, after: CompiledPolicy) -> None:
        self.before, self.after = before, after
        self.old, self.new = before.resolved, after.resolved

    def changes(self) -> Iterator[Change]:
        sections = {"metadata": self.metadata, "spec": self.spec}
        for name in _names(self.old, self.new):
            if self.old.get(name) != self.new.get(name):
                own = sections.get(name)
                yield from own() if own else [_differs(name, self.old.get(name), self.new.get(name))]

    def metadata(self) -> Iterator[Change]:
        old, new = self.old["metadata"], self.new["metadata"]
        for name in _names(old, new):
            was, now = old.get(name), new.get(name)
            if was == now:
                continue
            place = f"metadata.{name}"
            if name == "profile" and {was or "", now or ""} <= _STRICTER_PROFILE.keys():
                told = ("none", "supplement (it permits nothing by itself)")
                first, second = (told[_STRICTER_PROFILE[word or ""]] for word in (was, now))
                step = _STRICTER_PROFILE[now or ""] - _STRICTER_PROFILE[was or ""]
                yield Change(towards(step), place, "profile", first, second)
            else:
                yield _differs(place, was, now, what=name)

    def spec(self) -> Iterator[Change]:
        old, new = self.old["spec"], self.new["spec"]
        sections = {
            "appliesTo": self.applies,
            "params": self.params,
            "evidence": self.evidence,
            "rules": self.rules,
            "forbid": self.forbid,
            "sign_offs": self.sign_offs,
            "grant": self.grant,
            "drift": self.drift,
            "tests": self.tests,
        }
        for name in dict.fromkeys([*sections, *_names(old, new)]):
            was, now = old.get(name), new.get(name)
            if was == now:
                continue
            own = sections.get(name)
            if own is None or (name != "tests" and (was is None or now is None)):
                # A section that one side lacks altogether: one of the two is of the conformance profile.
                yield _differs(f"spec.{name}", was, now)
            else:
                yield from own(was, now)

    # Where it applies.

    def applies(self, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
        both_add = self.before.profile == self.after.profile == "supplement"
        for name in _names(was, now):
            old, new, place = was.get(name), now.get(name), f"spec.appliesTo.{name}"
            if old == new:
                continue
            if name == "actions":
                gone, come = sorted(set(old) - set(new)), sorted(set(new) - set(old))
                if come:
                    yield Change(towards(1 if both_add else 0), place, "actions it applies to", "", listed(come))
                if gone:
                    note = "what it leaves it no longer refuses"
                    yield Change(towards(-1 if both_add else 0), place, "actions it applies to", listed(gone), "", note)
            elif name == "when":
                step = 0 if old is not None and new is not None or not both_add else (1 if new is None else -1)
                note = "what it leaves it no longer refuses" if new is not None else ""
                first, second = (quoted(text) if text is not None else "always" for text in (old, new))
                yield Change(towards(step), place, "it applies when", first, second, note)
            else:
                yield _differs(place, old, new)

    # Numbers, evidence, rules.

    def params(self, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
        for name in _names(was, now):
            old, new, place = self.before.params.get(name), self.after.params.get(name), f"spec.params.{name}"
            if was.get(name) == now.get(name):
                continue
            rules = _reading(self.after if new is not None else self.before, name)
            what = f"parameter `{name}`" + (f" of {listed(rules)}" if rules else "")
            first = "" if old is None else numbered(old.value, _unit(self.before, name))
            second = "" if new is None else numbered(new.value, _unit(self.after, name))
            if old is None or new is None or old.floor != new.floor:
                yield Change(Direction.OTHER, place, what, first, second)
            else:
                step = new.value.compare(old.value) if new.floor else old.value.compare(new.value)
                yield Change(towards(int(step)), place, what, first, second)

    def evidence(self, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
        for name in _names(was, now):
            old, new, place = self.before.clauses.get(name), self.after.clauses.get(name), f"spec.evidence.{name}"
            if old is not None and new is not None:
                yield from clause_changes(place, was[name], now[name], new)
            else:
                yield other(place, f"evidence `{name}`", clause_words(old), clause_words(new))

    def rules(self, was: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> Iterator[Change]:
        old, new = ({rule.id: rule for rule in policy.rules} for policy in (self.before, self.after))
        stated = [{item["id"]: item for item in items} for items in (was, now)]
        yield from _order("spec.rules", "rules", [item["id"] for item in was], [item["id"] for item in now])
        for name in _names(old, new):
            yield from self.rule(old.get(name), new.get(name), stated[0].get(name, {}), stated[1].get(name, {}))

    def rule(
        self, old: Rule | None, new: Rule | None, was: Mapping[str, Any], now: Mapping[str, Any]
    ) -> Iterator[Change]:
        one = old or new
        if one is None:
            return
        place, what = f"spec.rules.{one.id}", f"rule `{one.id}`"
        if old is None or new is None:
            step = (1 if old is None else -1) if one.enforcement != Enforcement.ADVISORY else 0
            yield Change(towards(step), place, what, rule_words(old), rule_words(new))
            return
        if old.enforcement != new.enforcement:
            step = _ENFORCEMENT[new.enforcement] - _ENFORCEMENT[old.enforcement]
            yield Change(towards(step), f"{place}.enforcement", f"enforcement of {what}", old.enforcement, new.enforcement)
        yield from test_changes(place, what, old.test, new.test, decides=_decides(old) or _decides(new))
        for name in _names(was, now):
            if name not in {"id", "enforcement", "evidence", "at_least", "at_most", "all_of", "any_of"} and was.get(
                name
            ) != now.get(name):
                yield _differs(f"{place}.{name}", was.get(name), now.get(name), what=f"`{name}` of {what}")

    def forbid(self, was: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> Iterator[Change]:
        old, new = ({item["id"]: item for item in items} for items in (was, now))
        yield from _order("spec.forbid", "guardrails", list(old), list(new))
        for name in _names(old, new):
            first, second, place = old.get(name), new.get(name), f"spec.forbid.{name}"
            if first != second:
                step = 0 if first and second else (1 if second else -1)
                words = [item["when"] if item else "" for item in (first, second)]
                yield Change(towards(step), place, f"guardrail `{name}`", *(quoted(text) if text else "" for text in words))

    # People.

    def sign_offs(self, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
        for name in _names(was, now):
            first, second, place = was.get(name), now.get(name), f"spec.sign_offs.{name}"
            if first == second:
                continue
            if name == "all_of":
                yield from self.factors(first, second)
            elif name == "exclude":
                gone, come = sorted(set(first) - set(second)), sorted(set(second) - set(first))
                if come:
                    yield Change(Direction.TIGHTER, place, "who may not sign", "", listed(come))
                if gone:
                    yield Change(Direction.LOOSER, place, "who may not sign", listed(gone), "")
            elif name in _TERMS:
                yield _fewer(place, name, first, second)
            else:
                yield _differs(place, first, second)

    def factors(self, was: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> Iterator[Change]:
        old, new = ({item["factor"]: item for item in items} for items in (was, now))
        yield from _order("spec.sign_offs.all_of", "sign-offs", list(old), list(new))
        for name in _names(old, new):
            first, second, place = old.get(name), new.get(name), f"spec.sign_offs.{name}"
            what = f"sign-off `{name}`"
            if first is None or second is None:
                yield Change(towards(1 if first is None else -1), place, what, _factor_words(first), _factor_words(second))
                continue
            for field in _names(first, second):
                held, wanted = first.get(field), second.get(field)
                if held == wanted:
                    continue
                if field == "approve":
                    yield Change(towards(wanted - held), f"{place}.approve", f"signatures for {what}", str(held), str(wanted))
                elif field == "filter":
                    step = 0 if held is not None and wanted is not None else (1 if wanted is not None else -1)
                    told = (quoted(text) if text is not None else "anybody with the role" for text in (held, wanted))
                    yield Change(towards(step), f"{place}.filter", f"who may give {what}", *told)
                else:
                    yield _differs(f"{place}.{field}", held, wanted, what=f"{field} of {what}")

    def grant(self, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
        for name in _names(was, now):
            if was.get(name) != now.get(name):
                place = f"spec.grant.{name}"
                yield (_fewer if name in _TERMS else _differs_named)(place, name, was.get(name), now.get(name))

    def drift(self, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
        for name in _names(was, now):
            first, second, place = was.get(name), now.get(name), f"spec.drift.{name}"
            if first == second:
                continue
            if name in _DRIFT_WORDS and {first, second} <= _DRIFT.keys():
                yield Change(towards(_DRIFT[second] - _DRIFT[first]), place, f"a grant, {_DRIFT_WORDS[name]}", first, second)
            elif name == "max_fall":
                yield from self.max_fall(place, first, second)
            else:
                yield _differs(place, first, second)

    def max_fall(self, place: str, was: Mapping[str, Decimal], now: Mapping[str, Decimal]) -> Iterator[Change]:
        for name in _names(was, now):
            first, second = was.get(name), now.get(name)
            if first == second:
                continue
            policy = self.after if name in self.after.clauses else self.before
            unit = policy.clauses[name].unit if name in policy.clauses else ""
            if first is None or second is None:
                step = 1 if first is None else -1
            else:
                step = int(first.compare(second))
            told = ("no limit" if number is None else numbered(number, unit) for number in (first, second))
            yield Change(towards(step), f"{place}.{name}", f"`{name}` may fall by at most", *told)

    # Tests that travel with the policy: they ask nothing of anybody.

    def tests(self, was: Sequence[Mapping[str, Any]] | None, now: Sequence[Mapping[str, Any]] | None) -> Iterator[Change]:
        old, new = ({item["name"]: item for item in items or ()} for items in (was, now))
        yield from _order("spec.tests", "tests", list(old), list(new))
        for name in _names(old, new):
            first, second = old.get(name), new.get(name)
            if first != second:
                words = [_test_words(item) for item in (first, second)]
                yield other(f"spec.tests.{name}", f"test `{name}`", *words)


def _names(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names of both sides, in one order whichever side comes first."""
    shared = [name for name in now if name in was]
    return [*shared, *sorted(name for name in {*was, *now} if name not in was or name not in now)]


def _order(place: str, what: str, was: Sequence[str], now: Sequence[str]) -> Iterator[Change]:
    if [name for name in was if name in now] != [name for name in now if name in was]:
        yield other(place, f"order of the {what}", listed(was), listed(now))


def _differs(place: str, was: Any, now: Any, *, what: str = "") -> Change:
    return other(place, what or f"`{place}`", shown(was), shown(now))


def _differs_named(place: str, name: str, was: Any, now: Any) -> Change:
    return _differs(place, was, now, what=f"`{name}`")


def _fewer(place: str, name: str, was: int, now: int) -> Change:
    """Return the change of a time: the shorter, the tighter."""
    return Change(towards(was - now), place, _TERMS[name], f"{was} {_UNITS[name]}", f"{now} {_UNITS[name]}")


def _decides(rule: Rule) -> bool:
    return rule.enforcement != Enforcement.ADVISORY


def _factor_words(item: Mapping[str, Any] | None) -> str:
    if item is None:
        return ""
    kept = f", {quoted(item['filter'])}" if item["filter"] is not None else ""
    return f"{item['approve']} with the role `{item['role']}`{kept}"


def _test_words(item: Mapping[str, Any] | None) -> str:
    if item is None:
        return ""
    facts = shown(item["facts"]) if item["facts"] else "nothing known"
    return f"{facts}, expecting {shown(item['expect'])}"


def _reading(policy: CompiledPolicy, param: str) -> list[str]:
    """Return the rules that compare with a parameter."""
    return [f"rule `{rule.id}`" for rule in policy.rules if any(item.param == param for item in rule.assertions)]


def _unit(policy: CompiledPolicy, param: str) -> str:
    for rule in policy.rules:
        for item in rule.assertions:
            if item.param == param:
                return item.clause.unit
    return ""
