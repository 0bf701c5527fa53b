"""What would flip a refusal: which observation decided, by how much, and the nearest evidence that would pass. Pure.

The nearest evidence is said as what can be brought: a run with so many successes of so many tasks (`ways`). Who must bring it
follows from how evidence is weighed: an adverse run is gone only when a later one of the same source (and benchmark version,
slice and harness) replaces it, or when it is retracted; a good run of another source alone would leave the rule contested.
What is offered is offered on the word of the judge: `brought` makes the runs that a flip asks for, and with them the rule passes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from policies.language.compiled import Assertion, Clause, CompiledPolicy, Rule, Test
from policies.language.evaluator import judge
from policies.language.facts import Candidate, Candidates, Facts
from policies.language.judgement import Judgement, RuleResult
from policies.language.qualifying import hear
from policies.language.results import ANY_DOMAIN, Enforcement, Reason, Result, Ruling
from policies.language.ways import TaskCost, Way, ways_to_clear

Costs = Mapping[str, Sequence[TaskCost]]
"""Subject version digest → what one task costs it, by benchmark."""


class Remedy(StrEnum):
    """What kind of thing would make a part of a rule pass. Words are added, never renamed."""

    RUN = "run"  # a run by anybody who is trusted enough, or by the sources named
    LATER_RUN = "later_run"  # later runs of the sources named, which replace theirs
    RULING = "ruling"  # the dispute dismissed
    RETRACTION = "retraction"  # rows withdrawn, which a quorum signs
    SYSTEM = "system"  # the question asked about a system
    NONE = "none"  # no run of a size that anybody makes


class Origin(NamedTuple):
    """Whose run it must be: one replaces only what shares all three. `source` is "" where any trusted one will do."""

    source: str
    version: str
    harness: str


class Flip(NamedTuple):
    """What one part of a rule lacks. All flips of one rule (and one `model` of a route) are needed together.

    `evidence` is the uid of the observation that decided ("" where there is none) and `source` its source. `gap` says by how much
    its judged statistic misses the bar, in `unit`; None where nothing was measured. `origins` are whose runs are asked for, each of
    which passes in any of `ways` (empty where the metric is no rate: then at the bar). `since` is the earliest end that is not too
    old. `lifted` names what alone keeps the nearest observation from passing, "" where more does. `cost` is what was reckoned with.
    """

    rule: str
    model: str
    clause: str
    result: str
    evidence: str
    source: str
    gap: Decimal | None
    unit: str
    bar: Decimal
    remedy: Remedy
    origins: tuple[Origin, ...]
    ways: tuple[Way, ...]
    since: datetime | None
    lifted: str
    cost: TaskCost | None


def flips_of(
    compiled: CompiledPolicy, facts: Facts, judgement: Judgement, *, as_of: datetime, costs: Costs | None = None
) -> tuple[Flip, ...]:
    """Return what would flip each rule that decides and did not pass, in the order of the rules.

    `judgement` is what `judge` made of these very facts at `as_of`. For an agent every model of the route that does not pass is
    told, each by its name.
    """
    known = costs or {}
    if facts.route is None:
        reader = _Reader(compiled, facts.candidates, facts.domain, as_of, known.get(facts.subject_version_digest, ()))
        return tuple(reader.flips(judgement.rules))
    found: dict[Flip, None] = {}
    for member in sorted(facts.route, key=lambda item: (item.subject_key, item.subject_version_digest)):
        alone = judge(compiled, facts._replace(route=(member,)), as_of=as_of)
        heard = {name: (member.candidates if clause.about == "model" else facts.candidates).get(name, ())
                 for name, clause in compiled.clauses.items()}  # fmt: skip
        reader = _Reader(compiled, heard, facts.domain, as_of, known.get(member.subject_version_digest, ()))
        found.update(dict.fromkeys(reader.flips(alone.rules)))
    order = {rule.id: place for place, rule in enumerate(compiled.rules)}
    return tuple(sorted(found, key=lambda flip: order[flip.rule]))


class _Reader:
    """Reads the results of one subject, or of one model of a route, against its own candidates."""

    def __init__(
        self, compiled: CompiledPolicy, candidates: Candidates, domain: str, as_of: datetime, costs: Sequence[TaskCost]
    ) -> None:
        self.compiled = compiled
        self.candidates = candidates
        self.domain = domain
        self.as_of = as_of
        self.costs = costs

    def flips(self, results: Sequence[RuleResult]) -> Iterator[Flip]:
        for rule, result in zip(self.compiled.rules, results, strict=True):
            if result.result != Result.PASS and rule.enforcement != Enforcement.ADVISORY:
                yield from self._parts(rule, rule.test, result)

    def _parts(self, rule: Rule, test: Test, result: RuleResult) -> list[Flip]:
        if isinstance(test, Assertion):
            return [self._flip(rule, test, result)]
        lacking = [
            self._parts(rule, branch, child)
            for branch, child in zip(test.branches, result.children, strict=True)
            if child.result != Result.PASS
        ]
        if test.any_of:
            return min(lacking, key=_effort)  # one branch is enough: the one that asks for least
        return _strictest([flip for flips in lacking for flip in flips])

    def _flip(self, rule: Rule, test: Assertion, result: RuleResult) -> Flip:
        clause, bar = test.clause, result.bar
        cost = _cost(clause, self.costs)
        ways = ways_to_clear(clause, bar, same_n=result.n, cost=cost)
        remedy, origins, lifted = self._remedy(clause, result)
        if remedy in {Remedy.RUN, Remedy.LATER_RUN} and not ways and _needs_tasks(clause):
            remedy = Remedy.NONE
        measured = result.measured if result.result in {Result.FAIL, Result.CONTESTED} else None
        return Flip(
            rule=rule.id,
            model=result.model,
            clause=clause.name,
            result=result.result,
            evidence=result.deciding[0] if result.deciding else "",
            source=result.source,
            gap=None if measured is None else abs(measured - bar),
            unit=clause.unit,
            bar=bar,
            remedy=remedy,
            origins=origins,
            ways=ways,
            since=None if clause.max_age is None else self.as_of - clause.max_age,
            lifted=lifted,
            cost=cost,
        )

    def _remedy(self, clause: Clause, result: RuleResult) -> tuple[Remedy, tuple[Origin, ...], str]:
        items = self.candidates.get(clause.name, ())
        hearing = hear(clause, items, self.domain, self.as_of)
        if hearing.no_domain:
            return Remedy.SYSTEM, (), ""
        if hearing.broken:
            return Remedy.RETRACTION, _origins([items[place] for place in hearing.broken]), ""
        disputed = [items[place] for place in hearing.disputed]
        if any(item.ruling == Ruling.DISPUTED for item in disputed) and self._passes(clause, result, _dismissed(items)):
            return Remedy.RULING, (), ""
        missed = [entry.candidate for entry in hearing.live if (entry.measure < result.bar) is clause.higher
                  and entry.measure != result.bar]  # fmt: skip
        against = [*disputed, *missed]
        if not against:
            return Remedy.RUN, (), self._lifted(clause, result, items)
        first = next(iter(clause.prefer), None)
        if first is not None and not disputed:
            against = [item for item in missed if item.source == first]
            if not against:  # the source that settles a contest has said nothing against it yet
                return Remedy.RUN, (Origin(first, _one_of(clause.versions), ""),), ""
        if all(item.run_ended and item.ended_at is not None for item in against):
            return Remedy.LATER_RUN, _origins(against), ""
        return Remedy.RETRACTION, _origins([item for item in against if not item.run_ended or item.ended_at is None]), ""

    def _passes(self, clause: Clause, result: RuleResult, items: Sequence[Candidate]) -> bool:
        assertion = Assertion(clause, clause.higher, result.bar, "")
        rule = Rule("probe", Enforcement.HARD.value, assertion, (clause.name,), clause.about == "model", "")
        alone = replace(self.compiled, rules=(rule,), clauses={clause.name: clause})
        facts = Facts("", "", self.domain, candidates={clause.name: tuple(items)})
        return judge(alone, facts, as_of=self.as_of).outcome == Result.PASS

    def _lifted(self, clause: Clause, result: RuleResult, items: Sequence[Candidate]) -> str:
        """Return the one reason without which the nearest observation would pass, "" where more than that is wrong."""
        change = _LIFTS.get(result.reason)
        if change is None:
            return ""
        word, wanted = change
        value = getattr(clause, wanted) if isinstance(wanted, str) and wanted else wanted
        cleared = [item._replace(**{word: value}) if item.evidence in result.deciding else item for item in items]
        return result.reason if self._passes(clause, result, cleared) else ""


_LIFTS: Mapping[str, tuple[str, Any]] = {
    Reason.IDENTITY_UNRESOLVED: ("identity_problem", ""),
    Reason.IDENTITY_CONTESTED: ("identity_problem", ""),
    Reason.TRUST_TOO_LOW: ("trust", "min_trust"),
    Reason.PROVENANCE_TOO_WEAK: ("provenance", "min_provenance"),
    Reason.NOT_ATTESTED: ("attested", True),
}


def brought(clause: Clause, flip: Flip, way: Way | None, *, as_of: datetime, domain: str = ANY_DOMAIN) -> tuple[Candidate, ...]:
    """Return the runs that a flip of the remedies `run` and `later_run` asks for, ended at `as_of`, each in this way.

    None stands for the bar itself, of a metric that is no rate.
    """
    return tuple(
        Candidate(
            evidence=f"brought-{place}",
            ordinal=0,
            subject_as_written="",
            source=origin.source,
            trust=clause.min_trust,
            provenance=clause.min_provenance,
            attested=clause.require_attestation,
            metric=clause.metric,
            benchmark=clause.benchmark,
            version=origin.version,
            slice=domain if clause.by_domain else clause.slice,
            value=flip.bar if way is None else way.rate,
            k=None if way is None else Decimal(way.k),
            n=clause.min_samples if way is None else way.n,
            errored=0,
            unscored=0,
            ended_at=as_of,
            run_ended=True,
            harness=origin.harness,
            about=clause.about,
        )
        for place, origin in enumerate(flip.origins or (Origin("", _one_of(clause.versions), ""),))
    )


def _needs_tasks(clause: Clause) -> bool:
    return clause.percent and (clause.statistic != "point" or clause.min_samples is not None)


def _cost(clause: Clause, costs: Sequence[TaskCost]) -> TaskCost | None:
    """Return the cost on the clause's own benchmark, else the highest known on another: a guess that promises nothing."""
    own = [cost for cost in costs if cost.benchmark == clause.benchmark]
    return max(own or costs, key=lambda cost: (cost.usd, cost.benchmark), default=None)


def _dismissed(items: Sequence[Candidate]) -> list[Candidate]:
    dismissed = Ruling.DISPUTE_DISMISSED.value
    return [item._replace(ruling=dismissed) if item.ruling == Ruling.DISPUTED else item for item in items]


def _origins(items: Sequence[Candidate]) -> tuple[Origin, ...]:
    return tuple(sorted({Origin(item.source, item.version, item.harness) for item in items}))


def _one_of(versions: frozenset[str]) -> str:
    return max(versions)  # of several that are pinned, most likely the newest


def _strictest(flips: Sequence[Flip]) -> list[Flip]:
    """Keep one flip a clause: what clears its strictest bar clears the others."""
    kept: dict[str, Flip] = {}
    for flip in flips:
        held = kept.get(flip.clause)
        if held is None or _effort([flip]) > _effort([held]):
            kept[flip.clause] = flip
    return list(kept.values())


_EFFORT = (Remedy.SYSTEM, Remedy.RUN, Remedy.LATER_RUN, Remedy.RULING, Remedy.RETRACTION, Remedy.NONE)


def _effort(flips: Sequence[Flip]) -> tuple[int, int]:
    kind = max(_EFFORT.index(flip.remedy) for flip in flips)
    return kind, sum(flip.ways[0].n * max(len(flip.origins), 1) for flip in flips if flip.ways)
