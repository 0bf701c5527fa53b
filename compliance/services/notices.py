"""What people are told about requests and grants, and who: only those who can act on it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from compliance.models import Grant, GrantEvent, SignOffRequest
from compliance.selectors.dossiers.base import Built
from compliance.services.outbox import Notice, apply_notify_all
from compliance.vocabulary import Cause, NoticeKind, RequestKind
from evaluations.kernel.canonical import timestamp


def question_of(value: Mapping[str, Any]) -> str:
    """Return what a dossier asks, in one sentence."""
    asked = value["question"]
    if value["kind"] == RequestKind.METRIC:
        return f"Shall the metric {asked['metric']} be {'registered' if asked['replaces'] is None else 'defined anew'}?"
    if value["kind"] == RequestKind.BENCHMARK:
        return f"Shall {asked['benchmark']} {asked['version']} be registered as a benchmark?"
    if value["kind"] == RequestKind.SOURCE:
        return f"Shall the source {asked['source']} be trusted as {asked['tier']}, until now {asked['replaces'] or 'not at all'}?"
    if "systems" in asked:
        systems = " and ".join(system["title"] or system["key"] for system in asked["systems"])
        until = asked["ends_at"][:10]
        if value["kind"] == RequestKind.BREAK_GLASS_REVIEW:
            actions = " and ".join(asked["actions"])
            return (
                f"Was it right that {asked['subject']} (v{asked['subject_version']}) could {actions} to {systems} by break-glass?"
            )
        return (
            f"May {asked['subject']} (v{asked['subject_version']}) {' and '.join(asked['actions'])} to {systems} until {until}?"
        )
    if "replaces" in asked and "params" not in asked and "version" in asked:
        return f"Shall {asked['policy']} v{asked['version']} come into force?"
    if "params" in asked:
        place = asked["system"] or asked["domain"]
        numbers = ", ".join(f"{name} {number}" for name, number in sorted(asked["params"].items()))
        return f"Shall {asked['policy']} be tightened for {place}: {numbers}?"
    return f"Shall evidence {asked['evidence'][:8]} be ruled {asked['ruling'].replace('_', ' ')}?"


def request_path(request: SignOffRequest) -> str:
    """Return the console's path of a request."""
    return f"/admin/compliance/signoffrequest/{request.pk}/change/"


def grant_path(grant: Grant) -> str:
    """Return the console's path of a grant."""
    return f"/admin/compliance/grant/{grant.pk}/change/"


def apply_want_signatures(*, request: SignOffRequest, built: Built, people: Iterable[UUID], at: datetime) -> int:
    """Tell those who may sign a request that it waits for them, inside an open service transaction."""
    dossier = request.dossier
    number = dossier.number if dossier else 0
    notice = Notice(
        NoticeKind.SIGNATURE_WANTED,
        ("request", str(request.uid)),
        f"Signature wanted: {question_of(built.value)}",
        cause=f"dossier:{number}",
        lines=[request.reason, f"It can be signed until {request.expires_at:%Y-%m-%d %H:%M} UTC."],
        link=request_path(request),
        data={"request": str(request.uid), "kind": str(request.kind), "dossier": built.digest, "expires_at": request.expires_at},
        people=people,
    )
    return apply_notify_all([notice], at=at)


def apply_tell_request(
    *,
    request: SignOffRequest,
    kind: NoticeKind,
    title: str,
    cause: str,
    people: Iterable[UUID],
    at: datetime,
    lines: Sequence[str] = (),
) -> int:
    """Tell what became of a request, inside an open service transaction."""
    notice = Notice(
        kind,
        ("request", str(request.uid)),
        title,
        cause=cause,
        lines=lines,
        link=request_path(request),
        data={"request": str(request.uid), "kind": str(request.kind), "status": str(request.status)},
        people=people,
    )
    return apply_notify_all([notice], at=at)


def grant_notice(*, kind: NoticeKind, event: GrantEvent, title: str, lines: Sequence[str], people: Iterable[UUID]) -> Notice:
    """Return the notice of one move of a grant; its cause is the event, so that it is told once."""
    grant = event.grant
    return Notice(
        kind,
        ("grant", str(grant.uid)),
        title,
        cause=f"event:{event.number}",
        lines=[*lines, f"Since {event.at:%Y-%m-%d %H:%M:%S} UTC: {Cause(event.cause).label}."],
        link=grant_path(grant),
        data={
            "grant": str(grant.uid),
            "status": str(event.status),
            "cause": str(event.cause),
            "at": timestamp(event.at),
            "detail": event.detail,
        },
        people=people,
    )
