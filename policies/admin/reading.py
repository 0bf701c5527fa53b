"""Reads a stored verdict for people: its core, its facts document, and what each candidate observation did.

Everything shown is what was stored under the verdict's digests. The sentences alone are made now, by the same code that judged.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation
from typing import Any

from evaluations.kernel.display import number
from policies.language.compiled import CompiledPolicy
from policies.language.compiler import compile_policy
from policies.language.evaluator import judge
from policies.language.explain import candidate_sentence, sentence
from policies.language.facts import Candidate, Candidates, Facts, from_document
from policies.language.flip_sentences import flip_sentence
from policies.language.flipping import Flip, flips_of
from policies.language.judgement import Judgement, RuleResult
from policies.language.names import Names
from policies.language.results import Outcome, Reason
from policies.language.statistics import interval_of
from policies.models import Verdict
from policies.selectors.costs import digests_in, task_costs

CONFIDENCE = Decimal("0.95")
"""One-sided, each way: what the intervals on pages are drawn at, whatever a policy asks."""
_TENTH = Decimal("0.1")
_COMPARED = frozenset({Reason.MEETS_BAR, Reason.MISSES_BAR, Reason.EVIDENCE_DISAGREES})
_SPEAKS = frozenset(
    {
        "",
        Reason.NO_SAMPLE_SIZE,
        Reason.TOO_FEW_SAMPLES,
        Reason.ERRORS_NOT_STATED,
        Reason.TOO_MANY_ERRORS,
        Reason.NO_DATE,
        Reason.TOO_OLD,
    }
)
"""Reasons with which an observation is still compared with the bar: what is too thin or too old can speak against the subject."""
_NUMBERS = ("measured", "value", "bound", "bar", "k")


@dataclass(frozen=True)
class Scale:
    """Where a measurement and its bar stand from 0 to 100, for a drawing. `floor`: the good side is above the bar."""

    measured: Decimal
    bar: Decimal
    floor: bool

    @property
    def good_width(self) -> Decimal:
        return 100 - self.bar if self.floor else self.bar


@dataclass(frozen=True)
class RuleView:
    """One rule or branch as shown. `candidates` are those of its clause, with the route member's name for agents."""

    result: RuleResult
    sentence: str
    unit: str
    bar: str
    measured: str
    distance: str
    scale: Scale | None
    candidates: "tuple[CandidateView, ...]"
    children: "tuple[RuleView, ...]"
    flips: tuple[str, ...] = ()
    """What would flip it, in sentences; for a rule, not for its parts."""


@dataclass(frozen=True)
class CandidateView:
    """One candidate observation: its fields as the facts document holds them, and what is worked out from them."""

    fact: Mapping[str, Any]
    value: str
    age: str
    model: str
    why: str
    decides: bool


@dataclass(frozen=True)
class Reading:
    """A verdict, read. `trouble` says why sentences or replay are not to be had; `replayed` whether judging again agreed."""

    rules: tuple[RuleView, ...]
    evidence: frozenset[str]
    due_at: datetime | None
    params: Mapping[str, str]
    aliases: tuple[Mapping[str, str], ...]
    replayed: bool
    trouble: str


def read_verdict(verdict: Verdict) -> Reading:
    """Return what a verdict's page shows. Never raises for stored bytes that cannot be replayed: the page must say so."""
    try:
        return _read(verdict)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        # Somebody wrote these bytes by another road.
        return Reading((), frozenset(), None, {}, (), replayed=False, trouble=f"what is stored cannot be read: {error}")


def _read(verdict: Verdict) -> Reading:
    core = json.loads(bytes(verdict.core))
    document = json.loads(bytes(verdict.facts.content))
    compiled, facts, trouble = _again(verdict)
    replayed = False
    flips: tuple[Flip, ...] = ()
    if compiled is not None and facts is not None:
        try:
            judgement = judge(compiled, facts, as_of=verdict.as_of)
            replayed = judgement.core_bytes() == bytes(verdict.core)
            flips = _flips(verdict, compiled, facts, judgement) if replayed else ()
        except ValueError as error:
            trouble = str(error)
        if not replayed and not trouble:
            trouble = "judging again from the stored facts and policy text gives other bytes than those stored"
    page = _Page(document, compiled, facts, verdict.as_of)
    rules = tuple(page.view(rule_from_core(item)) for item in core["rules"])
    if compiled is not None and flips:
        said = {
            rule.result.id: tuple(flip_sentence(flip, compiled) for flip in flips if flip.rule == rule.result.id)
            for rule in rules
        }
        rules = tuple(replace(rule, flips=said[rule.result.id]) for rule in rules)
    evidence = frozenset(fact["evidence"] for _, fact in _facts(document))
    due = core.get("due_at")
    aliases = [
        *document.get("aliases", ()),
        *(alias for member in document.get("route") or () for alias in member.get("aliases", ())),
    ]
    return Reading(
        rules,
        evidence,
        datetime.fromisoformat(due) if due else None,
        core.get("params", {}),
        tuple(aliases),
        replayed,
        trouble,
    )


def _flips(verdict: Verdict, compiled: CompiledPolicy, facts: Facts, judgement: Judgement) -> tuple[Flip, ...]:
    if judgement.outcome == Outcome.PASS:
        return ()
    costs = task_costs(digests_in(facts), known_at=verdict.known_at)
    return flips_of(compiled, facts, judgement, as_of=verdict.as_of, costs=costs)


def rule_from_core(item: Mapping[str, Any]) -> RuleResult:
    """Return a rule's result from the canonical form in which a judgement core keeps it."""
    shape = {name: item[name] for name in RuleResult._fields}
    for name in _NUMBERS:
        if shape[name] is not None:
            shape[name] = _decimal(shape[name])
    if shape["ended_at"] is not None:
        shape["ended_at"] = datetime.fromisoformat(shape["ended_at"])
    shape["deciding"] = tuple(shape["deciding"])
    shape["children"] = tuple(rule_from_core(child) for child in shape["children"])
    return RuleResult(**shape)


def shown_value(fact: Mapping[str, Any], metric: Mapping[str, Any]) -> str:
    """Spell a measurement with unit, interval and n: `84.4 % · 79.7-88.4 · n 212`, or `53.9 % · n not stated`."""
    value = _decimal(fact["value"])
    parts = [number(value, metric.get("unit", ""))]
    n = fact["n"]
    if n and value.is_finite() and metric.get("unit") == "percent":
        interval = _interval(fact, value, n, higher=metric.get("better") == "higher")
        if interval:
            parts.append(interval)
    parts.append(f"n {n}" if n is not None else "n not stated")
    return " · ".join(parts)


def _interval(fact: Mapping[str, Any], value: Decimal, n: int, *, higher: bool) -> str:
    lost = (fact["errored"] or 0) + (fact["unscored"] or 0)
    k = None if fact["k"] is None else _decimal(fact["k"])
    return shown_interval(interval_of(value, k, n, lost, higher=higher, confidence=CONFIDENCE))


def shown_interval(ends: tuple[Decimal, Decimal] | None) -> str:
    """Spell an interval to a tenth, rounded outward: `79.7–88.4`; "" where there is none."""
    return "" if ends is None else f"{ends[0].quantize(_TENTH, ROUND_FLOOR)}–{ends[1].quantize(_TENTH, ROUND_CEILING)}"


def _again(verdict: Verdict) -> tuple[CompiledPolicy | None, Facts | None, str]:
    try:
        facts = from_document(bytes(verdict.facts.content))
        compiled = compile_policy(bytes(verdict.policy_version.text), Names.for_replay(facts.metrics))
    except Exception as error:
        # Whatever is wrong with stored bytes, the page shows them and says what is wrong.
        return None, None, str(error)
    return compiled, facts, ""


class _Page:
    """What every rule of one verdict is read against."""

    def __init__(
        self, document: Mapping[str, Any], compiled: CompiledPolicy | None, facts: Facts | None, as_of: datetime
    ) -> None:
        self._document = document
        self._compiled = compiled
        self._facts = facts
        self._as_of = as_of
        self._metrics: Mapping[str, Any] = document.get("metrics", {})

    def view(self, rule: RuleResult) -> RuleView:
        metric = self._metric_of(rule.clause)
        unit = metric.get("unit", "")
        floor = metric.get("better") == "higher"
        return RuleView(
            result=rule,
            sentence=sentence(rule, self._compiled) if self._compiled is not None else "",
            unit=unit,
            bar=f"{'at least' if floor else 'at most'} {number(rule.bar, unit)}" if metric else number(rule.bar),
            measured=number(rule.measured, unit, empty="nothing that counts"),
            distance=_distance(rule, unit),
            scale=_scale(rule, unit, floor=floor),
            candidates=() if rule.children else self._candidates(rule),
            children=tuple(self.view(child) for child in rule.children),
        )

    def _metric_of(self, clause: str) -> Mapping[str, Any]:
        """Return the definition of a clause's metric as the facts document holds it; by its candidates where nothing compiles."""
        if self._compiled is not None and clause in self._compiled.clauses:
            found: Mapping[str, Any] = self._metrics.get(self._compiled.clauses[clause].metric, {})
            return found
        for name, fact in _facts(self._document):
            if name == clause:
                return dict(self._metrics.get(fact["metric"], {}))
        return {}

    def _candidates(self, rule: RuleResult) -> tuple[CandidateView, ...]:
        found = []
        for model, facts, read in _places(self._document, self._facts):
            heard = read.get(rule.clause, ())
            for place, fact in enumerate(facts.get(rule.clause, ())):
                found.append(
                    CandidateView(
                        fact,
                        shown_value(fact, self._metrics.get(fact["metric"], {})),
                        _age(fact, self._as_of),
                        model,
                        self._why(rule.clause, fact["reason"], heard[place] if place < len(heard) else None),
                        _decides(rule, fact),
                    )
                )
        found.sort(key=lambda item: (not item.decides, item.fact["reason"] != "", item.model, item.fact["evidence"]))
        return tuple(found)

    def _why(self, clause: str, reason: str, candidate: Candidate | None) -> str:
        """Return why an observation does not count, in the half-sentence of the language, "" where it counts."""
        if not reason or self._compiled is None or candidate is None:
            return ""
        return candidate_sentence(reason, candidate, self._compiled.clauses[clause]).partition(" does not count: ")[2].rstrip(".")


def _decides(rule: RuleResult, fact: Mapping[str, Any]) -> bool:
    """Say whether a result rests on this observation: its evidence decides, and it is not merely another number in it."""
    if fact["evidence"] not in rule.deciding:
        return False
    if rule.reason in _COMPARED:
        return fact["reason"] in _SPEAKS
    return bool(fact["reason"] == rule.reason)


def _distance(rule: RuleResult, unit: str) -> str:
    if rule.measured is None:
        return ""
    gap = rule.measured - rule.bar
    if not gap:
        return "exactly at the bar"
    return f"{number(abs(gap), unit)} {'above' if gap > 0 else 'below'} the bar"


def _scale(rule: RuleResult, unit: str, *, floor: bool) -> Scale | None:
    if unit != "percent" or rule.measured is None or not rule.measured.is_finite():
        return None
    return Scale(rule.measured, rule.bar, floor)


def _places(document: Mapping[str, Any], facts: Facts | None) -> Iterator[tuple[str, Mapping[str, Any], Candidates]]:
    """Yield the subject and each model of its route: name, candidates as stored, and the same ones as the language reads them."""
    yield "", document.get("candidates", {}), facts.candidates if facts else {}
    members = facts.route or () if facts else ()
    for place, member in enumerate(document.get("route") or ()):
        yield member["subject"], member.get("candidates", {}), members[place].candidates if place < len(members) else {}


def _facts(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for _, candidates, _ in _places(document, None):
        for clause, facts in candidates.items():
            for fact in facts:
                yield clause, fact


def _age(fact: Mapping[str, Any], as_of: datetime) -> str:
    if fact["ended_at"] is None:
        return "no date stated"
    days = (as_of - datetime.fromisoformat(fact["ended_at"])).days
    since = "run" if fact["run_ended"] else "publication"
    if days < 0:
        return f"{since} after the instant judged"
    return f"{days} day{'' if days == 1 else 's'} since the {since}"


def _decimal(text: Any) -> Decimal:
    try:
        return Decimal(str(text))
    except InvalidOperation:
        return Decimal("NaN")
