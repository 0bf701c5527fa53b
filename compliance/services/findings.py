"""What a review makes of one grant: whether it may stand, why not, and what is told where it may. Reads and writes nothing."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from compliance.selectors.dossiers.access import Judged
from compliance.selectors.reviewing import Case, Signed
from compliance.vocabulary import Cause, DriftCause
from evaluations.kernel.numbers import plain
from policies.language.changes import RuleChange, pairs_of
from policies.language.compiled import Drift
from policies.language.drift import GRAVITY, Action, Comparison, compare, strictest
from policies.language.restoring import change_value

MOST_CHANGES, MOST_LISTED = 40, 20
"""So many parts of rules are told of one grant, and so many of each list; a notice has room for them."""


class Alert(NamedTuple):
    """Something to tell of that stops nothing. `key` names it, so that it is told once."""

    cause: DriftCause
    key: str
    detail: Mapping[str, Any]


class Finding(NamedTuple):
    """What a review makes of a grant. No `cause`: it may stand. `waiting`: a policy has yet to judge it, in a little time."""

    cause: Cause | None
    detail: Mapping[str, Any]
    alerts: tuple[Alert, ...]
    waiting: bool


class _Compared(NamedTuple):
    judged: Judged
    comparison: Comparison
    signed: Signed | None


def find(case: Case, *, patient: bool) -> Finding:
    """Return what becomes of a grant. The causes are asked in this order, and the first one names the suspension:

    another version runs, no policy covers it, there is no verdict, the verdict's own cause, further signatures are asked for.
    While `patient`, a policy that could judge the version and has not done so is waited for.
    """
    compared = [_compare(case, item) for item in case.judged if item.core is not None]
    asking = sorted(
        (held for held in compared if held.comparison.action != Action.NONE), key=lambda held: -GRAVITY[held.comparison.action]
    )
    unjudged = [item for item in case.judged if item.core is None]
    waiting = bool(unjudged) and patient and case.grant.subject_version.closed
    causes: list[Cause] = []
    if case.newer:
        causes.append(Cause.SUBJECT_CHANGED)
    if case.uncovered:
        causes.append(Cause.NO_POLICY)
    if unjudged and not waiting:
        causes.append(Cause.NO_VERDICT)
    causes += [Cause(held.comparison.cause) for held in asking if held.comparison.action == Action.SUSPEND]
    if case.factors:
        causes.append(Cause.NEW_FACTOR_REQUIRED)
    if causes:
        parts: dict[str, Any] = {
            "causes": list(dict.fromkeys(str(cause) for cause in causes)),
            "newer_version": case.newer,
            "uncovered": list(case.uncovered),
            "unjudged": [{"policy": item.applied.version.policy.name, "system": item.applied.system.key} for item in unjudged],
            "policies": _policies_value(asking),
            "factors": list(case.factors),
            "evidence": list(case.rulings),
            "names": list(case.moved),
            "strangers": [stranger.value for stranger in case.strangers],
        }
        return Finding(causes[0], _shown(parts), (), waiting=False)
    return Finding(None, {}, tuple(_alerts(case, asking)), waiting)


def _shown(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what there is to tell, each list cut to what a notice has room for."""
    return {name: held[:MOST_LISTED] if isinstance(held, list) else held for name, held in parts.items() if held}


def _compare(case: Case, item: Judged) -> _Compared:
    signed = case.signed.get((item.applied.version.policy.name, item.applied.system.key))
    own = item.applied.compiled.drift
    if own is None:
        raise ValueError(f"policy {item.applied.version} applies and does not say what drift does")
    others: list[Drift] = [held.applied.compiled.drift for held in case.judged if held.applied.compiled.drift is not None]
    comparison = compare(
        strictest(own, others),
        signed.core if signed else None,
        item.core,
        clauses=item.applied.compiled.clauses,
        before_clauses=signed.clauses if signed else None,
        waived=set(item.waived),
    )
    return _Compared(item, comparison, signed)


def _alerts(case: Case, asking: list[_Compared]) -> list[Alert]:
    alerts: dict[str, Alert] = {}
    for held in asking:
        verdict = held.judged.verdict
        key = f"verdict:{verdict.uid if verdict else ''}"
        detail: dict[str, Any] = {"policies": _policies_value([held])}
        if case.rulings:
            detail["evidence"] = list(case.rulings)[:MOST_LISTED]
        alerts.setdefault(key, Alert(DriftCause(held.comparison.cause), key, detail))
    found = list(alerts.values())
    if not asking:
        # Where a verdict is told of, it names the evidence; else the policies are passed without it, which is news of its own.
        retracted = [ruled for ruled in case.rulings if ruled.startswith(f"{DriftCause.EVIDENCE_RETRACTED}:")]
        found += [Alert(DriftCause.EVIDENCE_RETRACTED, ruled.partition(":")[2], {"evidence": [ruled]}) for ruled in retracted]
    found += [Alert(DriftCause.ALIAS_MOVED, f"alias:{name['assignment']}", {"names": [name]}) for name in case.moved]
    found += [Alert(DriftCause.NOT_COMPARABLE, item.key, {"strangers": [item.value]}) for item in case.strangers]
    return found


def _policies_value(asking: list[_Compared]) -> list[dict[str, Any]]:
    """Return what fell under each policy, by what it asks for, the strictest first."""
    room = MOST_CHANGES
    values = []
    for judged, comparison, signed in asking[:MOST_LISTED]:
        applied, verdict = judged.applied, judged.verdict
        clauses = applied.compiled.clauses
        pairs = pairs_of(signed.core if signed else None, judged.core, clauses, signed.clauses if signed else clauses)
        told = _told(comparison, pairs)
        shown = told[:room]
        room -= len(shown)
        values.append(
            {
                "policy": applied.version.policy.name,
                "version": applied.version.number,
                "system": applied.system.key,
                "domain": applied.domain,
                "action": str(comparison.action),
                "causes": [str(cause) for cause in comparison.causes],
                "rules": list(comparison.rules)[:MOST_LISTED],
                "verdict": str(verdict.uid) if verdict else "",
                "signed_verdict": signed.uid if signed else "",
                "falls": [
                    {
                        "clause": fall.clause,
                        "before": plain(fall.before),
                        "after": plain(fall.after),
                        "fell_by": plain(fall.fell_by),
                        "allowed": plain(fall.allowed),
                        "floor": clauses[fall.clause].higher,
                        "unit": clauses[fall.clause].unit,
                    }
                    for fall in comparison.falls
                ],
                "changes": [change_value(pair) for pair in shown],
                "changes_count": len(told),
            }
        )
    return values


def _told(comparison: Comparison, pairs: tuple[RuleChange, ...]) -> list[RuleChange]:
    """Return the parts of the rules behind a comparison, what moved first: a waiver's end leaves the numbers as they were."""
    own = [pair for pair in pairs if pair.rule in comparison.rules and pair.after_result]
    return sorted(own, key=lambda pair: not pair.differs)
