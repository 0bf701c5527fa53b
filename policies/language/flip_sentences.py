"""Plain sentences about what would flip a refusal, and the same as values for programs. Rendered on demand, never hashed."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from evaluations.kernel.numbers import plain
from policies.language.changes import with_unit
from policies.language.compiled import Clause, CompiledPolicy
from policies.language.flipping import Flip, Origin, Remedy
from policies.language.results import Reason, Result
from policies.language.ways import MOST_TASKS, TaskCost, Way

_CEILING = Context(prec=60, rounding=ROUND_CEILING)
_CENT, _SIX_PLACES = Decimal("0.01"), Decimal("0.000001")
_LIFTED = {
    Reason.IDENTITY_UNRESOLVED: "the name it was measured under were assigned to this subject",
    Reason.IDENTITY_CONTESTED: "it were settled which model or harness answered",
    Reason.TRUST_TOO_LOW: "its source were trusted as `{clause.min_trust}`",
    Reason.PROVENANCE_TOO_WEAK: "it were held as `{clause.min_provenance}`",
    Reason.NOT_ATTESTED: "it carried a verified signature",
}


def flip_sentence(flip: Flip, compiled: CompiledPolicy) -> str:
    """Return what would flip one part of a rule, in one to three plain sentences."""
    clause = compiled.clauses[flip.clause]
    told = [part for part in (_gap(flip, clause), _remedy(flip, clause), _cost(flip)) if part]
    text = " ".join(told)
    return f"For `{flip.model}`: {text[0].lower()}{text[1:]}" if flip.model else text


def flip_value(flip: Flip, compiled: CompiledPolicy) -> dict[str, Any]:
    """Return a flip as it is published: numbers as plain text, `since` as an instant of ISO 8601, null for what is not known."""
    return {
        "remedy": flip.remedy.value,
        "clause": flip.clause,
        "model": flip.model,
        "evidence": flip.evidence or None,
        "source": flip.source or None,
        "gap": None if flip.gap is None else plain(flip.gap),
        "unit": flip.unit,
        "sources": [origin.source for origin in flip.origins if origin.source],
        "since": None if flip.since is None else flip.since.isoformat().replace("+00:00", "Z"),
        "ways": [_way_value(way) for way in flip.ways] if flip.remedy in _MEASURED else [],
        "message": flip_sentence(flip, compiled),
    }


_MEASURED = (Remedy.RUN, Remedy.LATER_RUN)


def _way_value(way: Way) -> dict[str, Any]:
    return {
        "k": way.k,
        "n": way.n,
        "rate": plain(way.rate),
        "bound": None if way.bound is None else plain(way.bound),
        "onward": way.onward,
        "cost_usd": None if way.cost_usd is None else plain(way.cost_usd),
    }


def _gap(flip: Flip, clause: Clause) -> str:
    if not flip.gap:
        return ""
    side = "Short" if clause.higher else "Over"
    cut = _CEILING.quantize(flip.gap, _CENT if flip.gap >= _CENT else _SIX_PLACES)
    amount = f"{plain(cut)} percentage point{'' if cut == 1 else 's'}" if clause.percent else with_unit(plain(cut), clause.unit)
    return f"{side} by {amount}{f' (`{flip.source}`)' if flip.source else ''}."


def _remedy(flip: Flip, clause: Clause) -> str:
    if flip.remedy == Remedy.SYSTEM:
        return "Ask about a system: the policy judges by its domain."
    if flip.remedy == Remedy.RULING:
        return "It passes if the dispute is dismissed, which a quorum signs."
    if flip.remedy == Remedy.RETRACTION:
        if flip.result == Result.ERROR:
            return f"The row of {_sources(flip.origins)} that cannot be right must be retracted, which a quorum signs."
        return f"It names no end of a run, so no later run replaces it: that of {_sources(flip.origins)} must be retracted by a quorum."
    if flip.remedy == Remedy.NONE:
        return f"No run of up to {MOST_TASKS} tasks clears {_bar(flip)}, not even one without a miss."
    return f"{_run(flip, clause)} with {_ways(flip, clause)}.{_beside(flip, clause)}"


def _run(flip: Flip, clause: Clause) -> str:
    if flip.remedy == Remedy.LATER_RUN:
        return f"It passes by a later run of {_sources(flip.origins)}, which replaces what stands against it,"
    where = f"on `{clause.benchmark}` {' or '.join(f'`{version}`' for version in sorted(clause.versions))}"
    if flip.origins:
        return f"It passes by a run of {_sources(flip.origins)}, which the policy prefers, {where}"
    who = f"from a source trusted as `{clause.min_trust}` or better"
    if flip.since is not None:
        who += f", ended on {flip.since:%Y-%m-%d} or later,"
    return f"It passes by a run {where} {who}"


def _ways(flip: Flip, clause: Clause) -> str:
    told = [_way(way, clause) for way in flip.ways]
    if flip.result == Result.STALE:
        told.insert(0, "the same numbers")
    if not told:
        return f"{'at least' if clause.higher else 'at most'} {_bar(flip)}"
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} or {told[-1]}"


def _way(way: Way, clause: Clause) -> str:
    if way.k == (way.n if clause.higher else 0):
        return f"{way.k} of {way.n}"
    if way.onward:
        return f"{plain(way.rate)} % from n = {way.n} on"
    return f"{'at least' if clause.higher else 'at most'} {way.k} of {way.n}"


def _beside(flip: Flip, clause: Clause) -> str:
    if flip.lifted:
        return f" The nearest would pass if {_LIFTED[Reason(flip.lifted)].format(clause=clause)}."
    if flip.remedy == Remedy.LATER_RUN:
        return " A run of another source alone leaves it contested."
    return ""


def _cost(flip: Flip) -> str:
    if flip.cost is None or flip.remedy not in _MEASURED or not flip.ways:
        return ""
    return f"{_tasks(flip.ways[0], flip.cost, max(len(flip.origins), 1))}."


def _tasks(way: Way, cost: TaskCost, runs: int) -> str:
    each = " each" if runs > 1 else ""
    return f"{way.n} tasks{each} cost about {_usd(way.cost_usd)} USD, at {plain(cost.usd)} USD a task on `{cost.benchmark}`"


def _usd(amount: Decimal | None) -> str:
    return "" if amount is None else f"{amount:.2f}"


def _bar(flip: Flip) -> str:
    return with_unit(plain(flip.bar), flip.unit)


def _sources(origins: Sequence[Origin]) -> str:
    named = [f"`{origin.source}`{f' (harness `{origin.harness}`)' if origin.harness else ''}" for origin in origins]
    named = list(dict.fromkeys(named)) or ["the source"]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
