"""Who has signed a request, who may, and why not the others, in words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from compliance.admin.sighted import person_reference
from compliance.models import Dossier, RequestComment, Seat, SignOff, SignOffRequest
from compliance.selectors.dossiers.base import EVIDENCE_SUBMITTER, NAME_SETTLER, POLICY_AUTHOR, REQUESTER, SOURCE_SUBMITTER
from compliance.selectors.signers import (
    ACCOUNT_INACTIVE,
    NO_SECOND_FACTOR,
    ROLE_GIVEN_BY_REQUESTER,
    SIGNING_ON_HOLD,
    QuorumState,
)
from compliance.vocabulary import CommentKind, Meaning, RequestStatus, Role
from evaluations.kernel.display import ActorReference, Cell, Mark, chip, instant
from policies.language.quorum import Hindrance

SHOWN = 50
VERDICTS = (Meaning.APPROVED, Meaning.ACCEPTED_RESIDUAL_RISK, Meaning.REJECTED)
MEANING_MARKS = {
    Meaning.REVIEWED: Mark("reviewed", "neutral", "visibility"),
    Meaning.APPROVED: Mark("approved", "pass", "check_circle"),
    Meaning.ACCEPTED_RESIDUAL_RISK: Mark("accepted residual risk", "stale", "warning"),
    Meaning.REJECTED: Mark("rejected", "fail", "cancel"),
    Meaning.WITHDRAWN: Mark("withdrawn", "missing", "undo"),
}
REASON_WORDS: Mapping[str, str] = {
    REQUESTER: "asked for it",
    EVIDENCE_SUBMITTER: "submitted evidence that decides",
    NAME_SETTLER: "settled whom a name in evidence that decides means",
    SOURCE_SUBMITTER: "stands behind what the source has handed in",
    POLICY_AUTHOR: "wrote the policy that judges",
    ACCOUNT_INACTIVE: "has no active account",
    NO_SECOND_FACTOR: "has no second factor",
    SIGNING_ON_HOLD: "was reset by an administrator, and no other has confirmed it",
    ROLE_GIVEN_BY_REQUESTER: "was given the role by the requester or by herself",
    Hindrance.UNKNOWN_PERSON: "holds no role that counts any more",
    Hindrance.NO_ROLE: "holds no role that counts here",
    Hindrance.FILTER_EXCLUDES: "is left out by the policy's condition for",
    Hindrance.FILTER_ERROR: "cannot be told by the policy's condition for",
    Hindrance.ALREADY_SIGNED: "has signed",
    Hindrance.NOT_NEEDED: "no place is left that she could fill",
    Hindrance.ENDED_BY_REJECTION: "it was rejected",
}


def reason_words(code: str) -> str:
    """Spell why a signature would not count."""
    word, _, factor = code.partition(":")
    told = REASON_WORDS.get(word, word.replace("_", " "))
    return f"{told} {factor}" if factor else told


def meaning_chip(word: str) -> Cell:
    return chip(MEANING_MARKS[Meaning(word)])


def sign_offs_of(request: SignOffRequest) -> list[SignOff]:
    """Return every sign-off of a request, oldest first."""
    return list(SignOff.objects.filter(request=request).select_related("reauthentication").order_by("id"))


def shown_sign_offs(
    request: SignOffRequest, given: Sequence[SignOff], numbered: Sequence[Dossier], state: QuorumState | None
) -> list[dict[str, Any]]:
    """Return sign-offs of a request as its page lists them; `void` says why one does not count, "" where it does."""
    dossiers = {item.pk: item for item in numbered}
    replaced = {item.number - 1: item.because for item in dossiers.values()}
    last = {item.person_id: item.pk for item in given}
    lapsed = state.assessment.lapsed if state else {}
    rows = []
    for item in given:
        number = dossiers[item.dossier_id].number
        void = ""
        if item.dossier_id != request.dossier_id:
            void = f"void: dossier {number} was replaced ({replaced.get(number) or 'it changed'})"
        elif last[item.person_id] != item.pk:
            void = "void: she has said something else since"
        elif item.meaning in VERDICTS and str(item.person_id) in lapsed:
            void = f"does not count now: {', '.join(map(reason_words, lapsed[str(item.person_id)]))}"
        rows.append(
            {
                "person": person_reference(item.person_id),
                "chip": meaning_chip(item.meaning),
                "roles": ", ".join(str(Role(role).label) for role in item.roles),
                "at": instant(item.signed_at),
                "shown_by": f"{item.reauthentication.get_method_display()}",
                "shown_at": instant(item.reauthentication.at),
                "dossier": number,
                "reason": item.reason,
                "void": void,
            }
        )
    return rows


def shown_quorum(state: QuorumState) -> dict[str, Any]:
    """Return who may still sign an open request, and who may not and why."""
    found = state.assessment
    may = list(found.may_sign.items())
    may_not = list(found.may_not.items())
    return {
        "may": [{"person": person_reference(person), "factors": ", ".join(factors)} for person, factors in may[:SHOWN]],
        "may_more": max(len(may) - SHOWN, 0),
        "may_not": [
            {"person": person_reference(person), "why": "; ".join(map(reason_words, reasons))}
            for person, reasons in may_not[:SHOWN]
        ],
        "may_not_more": max(len(may_not) - SHOWN, 0),
        "can_be_met": found.can_be_met,
    }


def shown_factors(request: SignOffRequest, value: Mapping[str, Any], state: QuorumState | None) -> list[dict[str, Any]]:
    """Return the factors of a dossier: who sits in each, as it stands now, or as it was when the request was completed."""
    seats: dict[str, list[ActorReference]] = {}
    if state is not None:
        for sitting in state.assessment.seats:
            seats.setdefault(sitting.factor, []).append(person_reference(sitting.person))
    elif request.status == RequestStatus.COMPLETED:
        for seat in Seat.objects.filter(dossier=request.dossier_id).select_related("factor").order_by("factor_id", "number"):
            seats.setdefault(seat.factor.factor, []).append(person_reference(seat.person_id))
    return [
        {
            "name": factor["factor"],
            "asks": f"{factor['approve']} × {Role(factor['role']).label}",
            "filter": factor["filter"],
            "open": max(factor["approve"] - len(seats.get(factor["factor"], [])), 0),
            "seated": seats.get(factor["factor"], []),
        }
        for factor in value["quorum"]["all_of"]
    ]


def shown_comments(request: SignOffRequest) -> list[dict[str, Any]]:
    """Return what was said about a request, oldest first."""
    return [
        {
            "person": person_reference(item.person_id),
            "at": instant(item.recorded_at),
            "text": item.text,
            "change": item.kind == CommentKind.CHANGE_REQUESTED,
        }
        for item in RequestComment.objects.filter(request=request).order_by("id")
    ]


def offered_meanings(state: QuorumState | None, person_id: UUID, *, risk: bool, obstacles: bool) -> list[tuple[str, str]]:
    """Return the meanings that a person may sign with now; none where her signature would not count."""
    if state is None or str(person_id) not in state.assessment.eligible:
        return []
    word = state.last_words.get(person_id)
    said = word.sign_off.meaning if word is not None and not word.void else ""
    approving = Meaning.ACCEPTED_RESIDUAL_RISK if risk else Meaning.APPROVED
    offered = []
    if not obstacles and said != approving:
        told = "I accept the residual risk of the waived rules, and approve" if risk else "I approve"
        offered.append((str(approving), told))
    offered.append((str(Meaning.REJECTED), "I reject: this ends the request"))
    offered.append((str(Meaning.REVIEWED), "I have reviewed it, without a verdict"))
    if said in VERDICTS:
        offered.append((str(Meaning.WITHDRAWN), "I withdraw my signature"))
    return offered


def why_not(state: QuorumState, person_id: UUID) -> str:
    """Say why a person may not sign, "" where she may."""
    if str(person_id) in state.assessment.eligible:
        return ""
    reasons: Iterable[str] = state.assessment.may_not.get(str(person_id), (Hindrance.NO_ROLE.value,))
    return "; ".join(map(reason_words, reasons))


def references_of(*parts: Any) -> list[ActorReference]:
    """Return every person that parts of a page name, however deep."""
    found: list[ActorReference] = []
    for part in parts:
        if isinstance(part, ActorReference):
            found.append(part)
        elif isinstance(part, Mapping):
            found += references_of(*part.values())
        elif isinstance(part, list | tuple):
            found += references_of(*part)
    return found
