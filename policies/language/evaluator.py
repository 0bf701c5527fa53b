"""The judge: a compiled policy and the facts in, a judgement out. Pure: same policy, same facts, same instant, same bytes.

One rule over one clause, after the observations have been weighed (see `qualifying`):

- a row that cannot be right → `error`; an open or upheld dispute → `contested`;
- *supporting* observations clear the whole order and the bar; *adverse* ones clear it up to attestation and miss the bar,
  whatever their age and errors;
- both → `contested`, unless a source of the policy's `prefer` list settles it: the first source in that list with a
  supporting or adverse observation decides alone;
- only supporting → `pass`; only adverse → `fail`; neither → `stale` where age alone turned a supporting one away, else
  `missing`.

Hence the promise "monotone": taking away, ageing or disputing an observation that is adverse to no rule, or tightening a
parameter, never turns a fail into a pass. Such an observation can only leave the supporting side, become contested, or
give back an older run that it had replaced.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from operator import itemgetter

from policies.language.compiled import Assertion, Clause, Combination, CompiledPolicy, Test
from policies.language.facts import Candidate, Candidates, Facts, Reasons, Shared
from policies.language.judgement import Judgement, NoVerdict, RuleResult, detail_of, lost_of
from policies.language.qualifying import AGED, FULL, Hearing, Weighed, hear
from policies.language.results import BADNESS, REASON_ORDER, Enforcement, Note, Outcome, Reason, Result

__all__ = ["Judgement", "NoVerdict", "RuleResult", "judge"]

_PASS, _FAIL, _MISSING = Result.PASS.value, Result.FAIL.value, Result.MISSING.value
_STALE, _CONTESTED, _ERROR = Result.STALE.value, Result.CONTESTED.value, Result.ERROR.value
_MEETS, _MISSES = Reason.MEETS_BAR.value, Reason.MISSES_BAR.value
_DISAGREES, _NO_EVIDENCE, _TOO_OLD = Reason.EVIDENCE_DISAGREES.value, Reason.NO_EVIDENCE.value, Reason.TOO_OLD.value
_NO_DOMAIN = Reason.NO_DOMAIN.value
_ADVISORY, _SOFT = Enforcement.ADVISORY.value, Enforcement.SOFT.value
_OUTCOME_PASS, _OUTCOME_FAIL = Outcome.PASS.value, Outcome.FAIL.value
_DISAGREEMENT, _SETTLED = Note.DISAGREEMENT.value, Note.SETTLED_BY_PREFER.value
_PASS_RANK = BADNESS[_PASS]
_NOBODY: tuple[Weighed, ...] = ()
_measure = itemgetter(Weighed._fields.index("measure"))
_new = tuple.__new__  # builds a named tuple at half the cost of calling its class


def judge(compiled: CompiledPolicy, facts: Facts, *, as_of: datetime, shared: Shared | None = None) -> Judgement:
    """Judge the facts by the policy as of one instant (aware).

    `shared` is handed from one judgement of a subject version at this instant to the next, and changes no result.
    Raises `NoVerdict` where there is nothing to judge, and `LooserParameter` where `facts.params` would loosen the policy.
    """
    if not compiled.rules:
        raise NoVerdict("policy_has_no_requirements", "the policy has no rules, so nothing can pass it")
    if as_of.tzinfo is not UTC:
        as_of = _in_utc(as_of)
    params = compiled.effective_params(facts.params)
    route = facts.route
    if route is None:
        hearings = _hear_all(compiled, facts.candidates, facts.domain, as_of, None, shared)
        results = [_judge_test(rule.test, hearings, params, rule.id, rule.enforcement, "") for rule in compiled.rules]
        reasons: dict[str, Reasons] = {"": {name: hearing.reasons for name, hearing in hearings.items()}}
        due = [hearing.due_at for hearing in hearings.values() if hearing.due_at is not None]
    else:
        results, reasons, due = _judge_route(compiled, facts, params, as_of, shared)
    blocking, waivable, worst = [], [], _PASS_RANK
    for result in results:
        word = result.result
        if word == _PASS or result.enforcement == _ADVISORY:
            continue
        rank = BADNESS[word]
        if rank < worst:
            worst = rank
        if result.enforcement == _SOFT and word == _FAIL and result.measured is not None:
            waivable.append(result.id)
        else:
            blocking.append(result.id)
    return Judgement(
        _OUTCOME_PASS if worst == _PASS_RANK else _OUTCOME_FAIL,
        _WORDS[worst],
        tuple(results),
        tuple(blocking),
        tuple(waivable),
        min(due) if due else None,
        reasons,
        compiled.digest,
        compiled.semantics,
        params,
        facts.subject_version_digest,
        facts.domain,
    )


_WORDS = tuple(BADNESS)
Hearings = dict[str, Hearing]


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("`as_of` has no time zone")
    return moment.astimezone(UTC)


def _hear_all(
    compiled: CompiledPolicy, candidates: Candidates, domain: str, as_of: datetime, about: str | None, shared: Shared | None
) -> Hearings:
    if shared is None:
        return {
            name: hear(clause, candidates.get(name, ()), domain, as_of)
            for name, clause in compiled.clauses.items()
            if about is None or clause.about == about
        }
    found: Hearings = {}
    heard = shared.heard
    for name, clause in compiled.clauses.items():
        if about is None or clause.about == about:
            given = candidates.get(name, ())
            key = clause.kin, id(given), domain if clause.by_domain else ""
            hearing = heard.get(key)
            if hearing is None:
                hearing = heard[key] = hear(clause, given, domain, as_of)
            found[name] = hearing
    return found


def _judge_route(
    compiled: CompiledPolicy, facts: Facts, params: Mapping[str, Decimal], as_of: datetime, shared: Shared | None
) -> tuple[list[RuleResult], dict[str, Reasons], list[datetime]]:
    """Judge an agent once per model that its route can reach; each rule keeps its worst result."""
    if not facts.route_closed:
        raise NoVerdict("route_not_closed", "the models that the route can reach are not a closed set")
    if not facts.route:
        raise NoVerdict("route_empty", "the route reaches no model, so there is nothing to judge")
    own = _hear_all(compiled, facts.candidates, facts.domain, as_of, "agent", shared)
    reasons: dict[str, Reasons] = {"": {name: hearing.reasons for name, hearing in own.items()}}
    due = [hearing.due_at for hearing in own.values()]
    worst: list[RuleResult | None] = [None] * len(compiled.rules)
    for member in sorted(facts.route, key=lambda item: (item.subject_key, item.subject_version_digest)):
        heard = _hear_all(compiled, member.candidates, facts.domain, as_of, "model", shared)
        reasons[member.subject_version_digest] = {name: hearing.reasons for name, hearing in heard.items()}
        due.extend(hearing.due_at for hearing in heard.values())
        hearings = {**own, **heard}
        for place, rule in enumerate(compiled.rules):
            model = member.subject_key if rule.about_models else ""
            result = _judge_test(rule.test, hearings, params, rule.id, rule.enforcement, model)
            before = worst[place]
            if before is None or BADNESS[result.result] < BADNESS[before.result]:
                worst[place] = result
    results = [result for result in worst if result is not None]
    return results, reasons, [moment for moment in due if moment is not None]


def _judge_test(
    test: Test, hearings: Hearings, params: Mapping[str, Decimal], id_: str, enforcement: str, model: str
) -> RuleResult:
    if isinstance(test, Assertion):
        bar = params[test.param] if test.param else test.bar
        clause = test.clause
        return _judge_assertion(clause, hearings[clause.name], bar, id_, enforcement, model)
    return _combine(test, hearings, params, id_, enforcement, model)


def _combine(
    test: Combination, hearings: Hearings, params: Mapping[str, Decimal], id_: str, enforcement: str, model: str
) -> RuleResult:
    """`all_of` shows its worst branch, `any_of` its best; among equals the first in the text."""
    children = tuple([_judge_test(branch, hearings, params, "", "", model) for branch in test.branches])
    pick = max if test.any_of else min
    deciding = pick(children, key=_badness)
    return _new(RuleResult, (id_, enforcement, *deciding[2:-1], children))


def _badness(result: RuleResult) -> int:
    return BADNESS[result.result]


def _judge_assertion(clause: Clause, hearing: Hearing, bar: Decimal, id_: str, enforcement: str, model: str) -> RuleResult:
    if hearing.broken or hearing.disputed:
        return _unusable(clause, hearing, bar, id_, enforcement, model)
    for_it: list[Weighed] = []
    against_it: list[Weighed] = []
    aged: list[Weighed] = []
    higher = clause.higher
    for entry in hearing.live:
        weight, _, _, _, _, measure = entry
        if measure >= bar if higher else measure <= bar:
            if weight == FULL:
                for_it.append(entry)
            elif weight == AGED:
                aged.append(entry)
        else:
            against_it.append(entry)
    supporting: Sequence[Weighed] = for_it
    adverse: Sequence[Weighed] = against_it
    side: Sequence[Weighed]
    others: Sequence[Weighed]
    note = ""
    if supporting and adverse and clause.prefer:
        settled = _settled(clause.prefer, supporting, adverse)
        if settled is not None:
            supporting, adverse = settled
            note = _SETTLED
    if adverse:
        side, others = adverse, supporting
        result, reason = (_CONTESTED, _DISAGREES) if supporting else (_FAIL, _MISSES)
    elif supporting:
        result, reason, side, others = _PASS, _MEETS, supporting, _NOBODY
        if len(supporting) > 1 and not note and any([entry[3] != supporting[0][3] for entry in supporting]):  # noqa: C419
            note = _DISAGREEMENT
    elif aged:
        result, reason, side, others = _STALE, _TOO_OLD, aged, _NOBODY
    else:
        return _missing(clause, hearing, bar, id_, enforcement, model)
    if len(side) == 1 and not others:
        first = side[0]
        deciding: tuple[str, ...] = (first[2][0],)
    else:
        if len(side) > 1:
            side = _worst_first(side, clause)
        first = side[0]
        all_of_them = (*side, *_worst_first(others, clause)) if others else side
        deciding = tuple(dict.fromkeys([entry[2][0] for entry in all_of_them]))
    _, _, item, value, bound, measure = first
    return _new(
        RuleResult,
        (
            id_, enforcement, result, reason, clause.name, None if result is _STALE else measure, value, bound, bar,
            item.k, item.n, lost_of(item), item.source, item.ended_at, "", deciding, note, model, (),
        ),
    )  # fmt: skip


def _settled(
    prefer: tuple[str, ...], supporting: Sequence[Weighed], adverse: Sequence[Weighed]
) -> tuple[list[Weighed], list[Weighed]] | None:
    """Return the observations of the first preferred source that has any, None where it is of two minds or none has."""
    for source in prefer:
        for_it = [entry for entry in supporting if entry.candidate.source == source]
        against_it = [entry for entry in adverse if entry.candidate.source == source]
        if for_it and against_it:
            return None
        if for_it or against_it:
            return for_it, against_it
    return None


def _worst_first(entries: Sequence[Weighed], clause: Clause) -> Sequence[Weighed]:
    # Ties are broken by name, so that the order in which candidates were handed in changes no byte.
    if len(entries) < 2:
        return entries
    if len(entries) == 2:  # by far the most common case
        first, second = entries
        if first[5] == second[5]:
            return entries if first[2][:2] <= second[2][:2] else (second, first)
        return entries if (first[5] < second[5]) is clause.higher else (second, first)
    named = sorted(entries, key=lambda entry: entry.candidate[:2])
    return sorted(named, key=_measure, reverse=not clause.higher)


def _unusable(clause: Clause, hearing: Hearing, bar: Decimal, id_: str, enforcement: str, model: str) -> RuleResult:
    result, places = (_ERROR, hearing.broken) if hearing.broken else (_CONTESTED, hearing.disputed)
    named = sorted(places, key=lambda place: _name(hearing.candidates[place]))
    item = hearing.candidates[named[0]]
    deciding = tuple(dict.fromkeys(hearing.candidates[place].evidence for place in named))
    return _unmeasured(clause, result, hearing.reasons[named[0]], item, bar, deciding, id_, enforcement, model)


def _missing(clause: Clause, hearing: Hearing, bar: Decimal, id_: str, enforcement: str, model: str) -> RuleResult:
    """Nothing counts either way: show the observation that came furthest in the order."""
    if hearing.no_domain or not hearing.candidates:
        reason = _NO_DOMAIN if hearing.no_domain else _NO_EVIDENCE
        return _unmeasured(clause, _MISSING, reason, None, bar, (), id_, enforcement, model)
    furthest = max(REASON_ORDER.get(reason, 0) for reason in hearing.reasons)
    nearest = [
        item for item, reason in zip(hearing.candidates, hearing.reasons, strict=True) if REASON_ORDER.get(reason, 0) == furthest
    ]
    nearest.sort(key=_name)
    reason = next(word for word in hearing.reasons if REASON_ORDER.get(word, 0) == furthest)
    deciding = tuple(dict.fromkeys(item.evidence for item in nearest))
    return _unmeasured(clause, _MISSING, reason, nearest[0], bar, deciding, id_, enforcement, model)


def _name(item: Candidate) -> tuple[str, int]:
    return item.evidence, item.ordinal


def _unmeasured(
    clause: Clause,
    result: str,
    reason: str,
    item: Candidate | None,
    bar: Decimal,
    deciding: tuple[str, ...],
    id_: str,
    enforcement: str,
    model: str,
) -> RuleResult:
    if item is None:
        return RuleResult(
            id_, enforcement, result, reason, clause.name,
            None, None, None, bar, None, None, None, "", None, "", deciding, "", model, (),
        )  # fmt: skip
    return RuleResult(
        id_, enforcement, result, reason, clause.name,
        None, item.value, None, bar, item.k, item.n, lost_of(item), item.source, item.ended_at,
        detail_of(reason, item), deciding, "", model, (),
    )  # fmt: skip
