"""Drift as people read it: what fell, from what to what, what was suspended or told, and what would restore it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from compliance.models import DriftNotice, Grant, GrantEvent, SignOffRequest
from compliance.selectors.sight import Sight, visible_grants
from compliance.vocabulary import DRIFT_CAUSES, Cause, DriftCause, GrantMove, RequestKind, RequestStatus
from evaluations.kernel.numbers import plain
from policies.language.changes import RuleChange, change_sentence, noise_sentence, with_unit
from policies.language.drift import Fall, stored_fall_sentence
from policies.language.restoring import change_of, restoring_sentence
from policies.language.results import Result
from policies.language.routing import REASONS, shown_path
from policies.models import Verdict

ABOUT_ACCESS = (
    RequestKind.GRANT,
    RequestKind.RENEWAL,
    RequestKind.REINSTATEMENT,
    RequestKind.RECERTIFICATION,
    RequestKind.WAIVER,
)


class DriftRow(NamedTuple):
    """One thing that drift did: it suspended a grant, or told of something. `lines` are sentences, `restoring` what would mend it."""

    grant: Grant
    at: datetime
    suspended: bool
    cause: str
    because: str
    actor: str
    detail: Mapping[str, Any]
    changes: tuple[RuleChange, ...]
    lines: tuple[str, ...]
    restoring: tuple[str, ...]


def recent_drift(sight: Sight, *, since: datetime, limit: int) -> list[DriftRow]:
    """Return what drift did since an instant to the grants that somebody may see, newest first."""
    seen = visible_grants(sight)
    events = (
        GrantEvent.objects.filter(at__gte=since, move=GrantMove.SUSPENDED, cause__in=DRIFT_CAUSES, grant__in=seen)
        .select_related("grant__subject_version__subject", "grant__requester")
        .order_by("-at", "-id")[:limit]
    )
    notices = (
        DriftNotice.objects.filter(at__gte=since, grant__in=seen)
        .select_related("grant__subject_version__subject", "grant__requester")
        .order_by("-at", "-id")[:limit]
    )
    rows = [drift_row(row) for row in (*events, *notices)]
    return sorted(rows, key=lambda row: row.at, reverse=True)[:limit]


def drift_row(row: GrantEvent | DriftNotice) -> DriftRow:
    """Return a suspension by drift, or a notice of it, as people read it: from its own detail alone."""
    suspended = isinstance(row, GrantEvent)
    because = Cause(row.cause).label if suspended else DriftCause(row.cause).label
    changes = changes_of(row.detail)
    restoring = tuple(
        dict.fromkeys(restoring_sentence(change) for change in changes if change.after_part not in (Result.PASS, ""))
    )
    return DriftRow(
        row.grant,
        row.at,
        suspended,
        row.cause,
        str(because),
        row.actor,
        row.detail,
        changes,
        tuple(lines_of(row.detail)),
        restoring,
    )


def changes_of(detail: Mapping[str, Any]) -> tuple[RuleChange, ...]:
    """Return the changes of rules that a detail holds."""
    return tuple(change_of(value) for policy in detail.get("policies", ()) for value in policy["changes"])


def lines_of(detail: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a detail says, in sentences: what fell from what to what, the bar, and how likely it is noise."""
    if detail.get("newer_version"):
        yield f"The version that runs now is {detail['newer_version']}; the signatures are on another."
    for gap in detail.get("uncovered", ()):
        yield f"No policy in force covers `{gap['action']}` on `{gap['system']}`."
    for gap in detail.get("unjudged", ()):
        yield f"`{gap['policy']}` gives no verdict on this version for `{gap['system']}`."
    for policy in detail.get("policies", ()):
        yield from _lines_of_policy(policy)
    for factor in detail.get("factors", ()):
        among = f" (where {factor['filter']})" if factor["filter"] else ""
        yield f"Now asked for: {factor['asked']} × {factor['role'].replace('_', ' ')}{among}; signed by {factor['filled']}."
    for ruled in detail.get("evidence", ()):
        word, _, uid = ruled.partition(":")
        yield f"It was signed on evidence {uid}, which is {word.removeprefix('evidence_').replace('_', ' ')} now."
    for name in detail.get("names", ()):
        yield f"`{name['name']}` means {name['now'] or 'nobody'} now; the grant stays with the version that was signed."
    for route in detail.get("routes", ()):
        yield _line_of_route(route)
    for stranger in detail.get("strangers", ()):
        value, bar = (with_unit(stranger[part], stranger["unit"]) for part in ("value", "bar"))
        yield (
            f"{stranger['clause']} is {value} on {stranger['benchmark']} {stranger['version']}, which misses the bar of {bar}; the "
            f"policy pins {', '.join(stranger['pinned'])}, and results of two versions are not compared."
        )


def open_requests(
    *, subject_version_ids: Sequence[int], policy_ids: Sequence[int], after: int, limit: int, at: datetime
) -> list[SignOffRequest]:
    """Return open requests, from the one after `after` on, whose dossier may read otherwise now: for access by these subject versions,
    or for a change of these policies."""
    access = SignOffRequest.objects.filter(kind__in=ABOUT_ACCESS, subject_version__in=subject_version_ids)
    change = SignOffRequest.objects.filter(kind__in=(RequestKind.ACTIVATION, RequestKind.BINDING), policy__in=policy_ids)
    activation = SignOffRequest.objects.filter(kind=RequestKind.ACTIVATION, policy_version__policy__in=policy_ids)
    waiting = (access | change | activation).filter(status=RequestStatus.OPEN, expires_at__gt=at, pk__gt=after)
    return list(waiting.order_by("pk")[:limit])


def policies_of(verdict_uids: Sequence[str]) -> list[int]:
    """Return the ids of the policies that gave these verdicts."""
    found = Verdict.objects.filter(uid__in=verdict_uids).order_by().values_list("policy_version__policy", flat=True)
    return sorted(set(found))


def _line_of_route(route: Mapping[str, Any]) -> str:
    where = f" `{route['action']}` on `{route['system']}`" if route["system"] else ""
    if route["problem"] in REASONS:
        return f"`{route['route']}` is open now, since {REASONS[route['problem']]}: {shown_path(route['path'])}."
    why = {
        "unknown_model": "means no registered model",
        "not_pinned": f"({route['subject']}) is not among the models that were signed",
        "no_grant": f"({route['subject']}) has no grant for{where}",
    }[route["problem"]]
    return f"`{route['route']}` reaches {shown_path(route['path'])} now: `{route['path'][-1]}` {why}."


def _lines_of_policy(policy: Mapping[str, Any]) -> Iterator[str]:
    where = f"`{policy['policy']}` v{policy['version']} on `{policy['system']}`"
    for value in policy["changes"]:
        change = change_of(value)
        sentence = change_sentence(change)
        yield f"{where}, rule `{change.rule}`: {sentence}."
        if change.worse:
            yield f"How likely that is noise: {noise_sentence(change)}."
    if not policy["changes"]:
        yield f"{where}: {', '.join(policy['rules']) or 'the verdict'} is not passed."
    for fall in policy["falls"]:
        numbers = {name: Decimal(fall[name]) for name in ("before", "after", "fell_by", "allowed")}
        yield f"{stored_fall_sentence(Fall(fall['clause'], **numbers), floor=fall['floor'], unit=fall['unit'])}."
    left_out = policy["changes_count"] - len(policy["changes"])
    if left_out:
        yield f"{plain(Decimal(left_out))} further parts of its rules are in the same state."
