"""Plain sentences for results and reasons, with the digits that explain them. Rendered on demand, never hashed.

A number that was stated is shown with all its digits. A computed one (a bound, a rate from k of n) is cut to two decimals,
away from flattering the subject, and to more where two would hide why it passed or failed: 79.9995 never reads 80.
"""

from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import NamedTuple

from evaluations.kernel.numbers import plain
from policies.language.compiled import Clause, CompiledPolicy
from policies.language.facts import Candidate
from policies.language.judgement import RuleResult, detail_of, lost_of
from policies.language.results import REASON_ORDER, Note, Reason, Result

_EXACT = Context(prec=60)
_FEWEST_PLACES, _MOST_PLACES = 2, 6


class _Seen(NamedTuple):
    """The observation that a sentence is about."""

    value: Decimal | None
    k: Decimal | None
    n: int | None
    lost: int | None
    source: str
    ended_on: str
    detail: str


def sentence(result: RuleResult, compiled: CompiledPolicy) -> str:
    """Return one plain sentence (two where there is a note) that says what a rule gave and why."""
    text = _text(result, compiled)
    return f"For `{result.model}`: {text[0].lower()}{text[1:]}" if result.model else text


def candidate_sentence(reason: str, item: Candidate, clause: Clause) -> str:
    """Return one plain sentence that says why an observation counts for a clause, or why it does not."""
    seen = _Seen(item.value, item.k, item.n, lost_of(item), item.source, _day(item.ended_at), detail_of(reason, item))
    what = _observation(seen, clause)
    if not reason:
        return f"{what} qualifies."
    return f"{what} does not count: {_why_not(reason, clause, seen)}."


def _text(result: RuleResult, compiled: CompiledPolicy) -> str:
    return _combined(result, compiled) if result.children else _single(result, compiled.clauses[result.clause])


def _combined(result: RuleResult, compiled: CompiledPolicy) -> str:
    inner = _text(result.children[_deciding(result)], compiled)
    passing = sum(child.result == Result.PASS for child in result.children)
    total = len(result.children)
    if passing == total:
        return f"All {total} parts pass; the first: {inner}"
    if result.result == Result.PASS:
        return (
            f"{passing} of {total} alternatives passes: {inner}"
            if passing == 1
            else f"{passing} of {total} alternatives pass: {inner}"
        )
    return f"{passing} of {total} parts pass; the one that decides: {inner}"


def _deciding(result: RuleResult) -> int:
    shown = (result.result, result.reason, result.clause, result.bar, result.measured)
    for place, child in enumerate(result.children):
        if (child.result, child.reason, child.clause, child.bar, child.measured) == shown:
            return place
    return 0


def _single(result: RuleResult, clause: Clause) -> str:
    seen = _Seen(result.value, result.k, result.n, result.lost, result.source, _day(result.ended_at), result.detail)
    word = result.result
    if word in {Result.PASS, Result.FAIL}:
        return f"{_comparison(result, clause, seen)}.{_note(result)}"
    if word == Result.CONTESTED:
        if result.reason == Reason.EVIDENCE_DISAGREES:
            tail = "while other qualifying evidence passes, and no preferred source settles it"
            return f"Evidence disagrees: {_lowered(_comparison(result, clause, seen))}, {tail}."
        return f"{_observation(seen, clause)} is contested: {_why_not(result.reason, clause, seen)}."
    if word == Result.STALE:
        return f"{_observation(seen, clause)} would pass, but {_why_not(result.reason, clause, seen)}."
    if word == Result.ERROR:
        return f"A stored row cannot be right, so nothing is judged: {_why_not(result.reason, clause, seen)}."
    if not result.deciding:
        return f"No evidence: {_why_not(result.reason, clause, seen)}."
    nearest = _lowered(_observation(seen, clause))
    return f"No evidence counts. The nearest, {nearest}, does not: {_why_not(result.reason, clause, seen)}."


def _comparison(result: RuleResult, clause: Clause, seen: _Seen) -> str:
    higher, met = clause.higher, result.result == Result.PASS
    side = ("at least" if met else "below") if higher else ("at most" if met else "above")
    wanted = "required" if higher else "allowed"
    bar = f"{side} the {wanted} {_number(result.bar, clause)}"
    if result.bound is not None:
        bound = _number(_cut(result.bound, result.bar, higher=higher), clause)
        confidence = plain(_EXACT.scaleb(clause.confidence, 2))
        which = "lower" if higher else "upper"
        return f"The {confidence} % {which} bound of the {_named(clause)} is {bound} ({_measured(seen, clause)}), {bar}"
    value = _value(seen, clause, result.bar)
    return f"The {_named(clause)} is {value} ({_counts(seen)}{_from(seen)}), {bar}"


def _note(result: RuleResult) -> str:
    if result.note == Note.DISAGREEMENT:
        return " Other qualifying evidence gives another value and passes too."
    if result.note == Note.SETTLED_BY_PREFER:
        return f" Other evidence disagrees; the policy prefers `{result.source}`."
    return ""


def _observation(seen: _Seen, clause: Clause) -> str:
    if seen.value is None:
        return f"The {_named(clause)}"
    return f"The {_named(clause)} of {_measured(seen, clause)}"


def _measured(seen: _Seen, clause: Clause) -> str:
    return f"{_value(seen, clause, None)}, {_counts(seen)}{_from(seen)}"


def _value(seen: _Seen, clause: Clause, bar: Decimal | None) -> str:
    value = Decimal(0) if seen.value is None else seen.value
    computed = clause.percent and seen.k is not None and seen.n is not None
    return _number(_cut(value, bar, higher=clause.higher) if computed else value, clause)


def _counts(seen: _Seen) -> str:
    if seen.n is None:
        return "n not stated"
    text = f"n = {seen.n}" if seen.k is None or not seen.k.is_finite() else f"{plain(seen.k)} of {seen.n}"
    return f"{text}, {seen.lost} errored or unscored counted against it" if seen.lost else text


def _from(seen: _Seen) -> str:
    return f", source `{seen.source}`" if seen.source else ""


def _cut(number: Decimal, bar: Decimal | None, *, higher: bool) -> Decimal:
    """Cut a computed number to the fewest decimals that still show on which side of the bar it stands."""
    if not number.is_finite():
        return number
    for places in range(_FEWEST_PLACES, _MOST_PLACES):
        step = Decimal(1).scaleb(-places)
        cut = number.quantize(step, rounding=ROUND_FLOOR if higher else ROUND_CEILING, context=_EXACT)
        if bar is None or cut.compare(bar) == number.compare(bar):
            return cut
    return number


def _number(number: Decimal, clause: Clause) -> str:
    text = _shown(number)
    return {"percent": f"{text} %", "usd": f"{text} USD"}.get(clause.unit, text)


def _shown(number: Decimal) -> str:
    return plain(number) if number.is_finite() else str(number)


def _named(clause: Clause) -> str:
    return clause.metric.replace("_", " ").removesuffix(" usd")


def _asked(clause: Clause) -> str:
    return f"{_named(clause)} on `{clause.benchmark}` {_versions(clause)}"


def _versions(clause: Clause) -> str:
    return " or ".join(f"`{version}`" for version in sorted(clause.versions))


def _day(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d}"


def _lowered(text: str) -> str:
    return text[0].lower() + text[1:]


def _share(share: Decimal | None) -> str:
    return "" if share is None else f"{plain(_EXACT.scaleb(share, 2))} %"


def _why_not(reason: str, clause: Clause, seen: _Seen) -> str:
    """Return the half-sentence for a reason."""
    detail = f"`{seen.detail}`"
    days = clause.max_age.days if clause.max_age is not None else 0
    ended = f"it is of {seen.ended_on}" if seen.ended_on else "it has no date"
    slice_ = "the system's domain" if clause.by_domain else f"the slice `{clause.slice}`"
    words = {
        Reason.NO_EVIDENCE: f"no observation of the {_asked(clause)} is known",
        Reason.NO_DOMAIN: "the policy asks about the system's domain, and no system with a domain is named",
        Reason.NOT_YET_ENDED: f"its run had not ended by the instant judged ({ended})",
        Reason.IDENTITY_UNRESOLVED: f"the name {detail} is not known to mean this subject version",
        Reason.IDENTITY_CONTESTED: f"it is contested which model or harness answered under the name {detail}",
        Reason.OTHER_KIND: f"it is about the {seen.detail}, and the policy asks about the {clause.about}",
        Reason.OTHER_METRIC: f"it measures {detail}, not `{clause.metric}`",
        Reason.OTHER_BENCHMARK: f"it is on {detail}, not on `{clause.benchmark}`",
        Reason.NOT_COMPARABLE: f"version {detail} is not the pinned version {_versions(clause)}, so it is not comparable",
        Reason.OTHER_SLICE: f"it covers the slice {detail}, and the policy asks about {slice_}",
        Reason.RUN_NOT_COMPLETE: f"its run is {detail}, not complete",
        Reason.RETRACTED: "it was retracted",
        Reason.VALUE_NOT_FINITE: f"the number {'' if seen.value is None else seen.value} is not finite",
        Reason.VALUE_OUT_OF_RANGE: f"{'' if seen.value is None else _shown(seen.value)} is outside the metric's range",
        Reason.COUNTS_INCONSISTENT: f"its counts contradict each other ({_counts(seen)})",
        Reason.DISPUTED: "a dispute about it is open",
        Reason.DISPUTE_UPHELD: "a dispute about it was upheld",
        Reason.TRUST_TOO_LOW: f"its source is trusted as {detail}, and the policy asks for `{clause.min_trust}` or better",
        Reason.PROVENANCE_TOO_WEAK: f"it is held as {detail}, and the policy asks for `{clause.min_provenance}` or better",
        Reason.NOT_ATTESTED: "it carries no verified signature",
        Reason.SUPERSEDED: "a later run of the same source replaces it",
        Reason.NO_SAMPLE_SIZE: "it states no sample size, so there is no confidence bound"
        if clause.statistic != "point"
        else "it states no sample size",
        Reason.TOO_FEW_SAMPLES: f"{seen.n} samples are fewer than the {clause.min_samples} required",
        Reason.ERRORS_NOT_STATED: "it does not state how many tasks errored or went unscored",
        Reason.TOO_MANY_ERRORS: f"{seen.lost} of {seen.n} tasks lost are more than {_share(clause.max_error_share)}",
        Reason.NO_DATE: "it has no date, so its age is not known",
        Reason.TOO_OLD: f"{ended}, more than {days} days before the instant judged",
    }
    return words.get(Reason(reason), reason) if reason in REASON_ORDER else reason.replace("_", " ")
