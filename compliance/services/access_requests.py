"""Filing a request about a denial: what the gate refused a machine becomes a question that people sign.

As the draft profile "Access Request and Approval" of AuthZEN 1.0 has it, bound by reference: the denial is looked up by the id that it
was recorded under, and nothing that the caller repeats of it is believed.
"""

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from compliance.deciding.facts import Question, Value
from compliance.deciding.judge import judge
from compliance.deciding.next_steps import REQUESTABLE_FOR, is_requestable
from compliance.models import Decision, ServiceToken, SignOffRequest
from compliance.selectors.access_tasks import BECAUSE, DENIALS, EMERGENCY, find_open_request
from compliance.selectors.deciding.conformance import read_asked
from compliance.selectors.decisions import body_of
from compliance.selectors.dossiers.access import judge_access, terms_value
from compliance.selectors.proposals import AccessProposal
from compliance.services.filing import access_problems, refuse_older
from compliance.services.idempotency import (
    apply_claim_key,
    apply_claim_request,
    apply_keep_request,
    apply_use_key,
    reference_of_request,
    request_in_reference,
)
from compliance.services.requests import MAX_TEXT, Asked, apply_file_request, person_behind
from compliance.vocabulary import RequestKind
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest, timestamp
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service
from evaluations.models import SubjectVersion
from policies.models import System

MAX_JUSTIFICATION = MAX_TEXT - 500
DEFAULT_DAYS = 30
"""So long is access asked for where the caller says no end, or as long as the policies allow, where that is shorter."""
_NO_TOKEN = "nobody's"  # noqa: S105 - the digest of no token: what is read here is read for nobody
_NOT_BOUND = "there is no denial of yours under this id that was given to this question"


class DenialNotBound(DomainError):
    """What is asked for is not what was denied, or the denial is unknown, or somebody else's: which of them is not told."""

    code = "invalid_denial_binding"
    kind = ErrorKind.INVALID


class NotRequestable(DomainError):
    """It was no denial, no request would cure it, or it needs none any more."""

    code = "not_requestable"
    kind = ErrorKind.INVALID


class ExpiredDenial(DomainError):
    """The denial is too old to be asked about: the world may have moved."""

    code = "expired_denial"
    kind = ErrorKind.CONFLICT


class RequestedAlready(DomainError):
    """A request for this is there already; `facts` holds its id under `task`."""

    code = "duplicate_request"
    kind = ErrorKind.CONFLICT


class Denial(NamedTuple):
    """Which denial is meant, what the caller says was asked, and until when it says that a request may be filed."""

    evaluation_id: UUID
    question: Question
    expires_at: datetime


class Wanted(NamedTuple):
    """What is asked for. `until` is None for as long as is usual; `emergency` is told to who signs, and changes nothing."""

    until: datetime | None = None
    justification: str = ""
    emergency: bool = False


def requestable_until(denied_at: datetime) -> datetime:
    """Return the instant from which on no request is filed about a denial."""
    return denied_at + REQUESTABLE_FOR


@service(refused="request.refused")
def request_denied_access(
    *,
    actor: Actor,
    denial: Denial,
    wanted: Wanted,
    body_digest: str,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> SignOffRequest:
    """Ask for a grant of exactly what was denied: this subject version, this action, this system.

    `body_digest` is of all that the caller sent: the same again under the same key gives the request that is there. One denial makes
    one request, and one question has one open request of a person at a time.

    Raises `DenialNotBound`, `NotRequestable`, `ExpiredDenial`, `RequestedAlready`, `IdempotencyKeyReused`, `OlderVersion`, and what
    filing raises.
    """
    at = now()
    what = [DENIALS, body_digest]
    known = apply_claim_request(actor=actor, key=idempotency_key, what=what)
    if known is not None:
        return SignOffRequest.objects.get(uid=known)
    decision, facts = _bound(actor, denial)
    claim = {"caller": DENIALS, "key": str(denial.evaluation_id), "request_digest": digest(DENIALS)}
    filed = apply_claim_key(**claim)
    if filed is not None:
        raise RequestedAlready("this denial was asked about before", task=request_in_reference(filed))
    if decision.allowed or not is_requestable(decision.codes, facts):
        raise NotRequestable("no request cures this: the answer held no `context.access_request`")
    if at >= requestable_until(decision.at):
        raise ExpiredDenial(
            f"the denial could be asked about until {requestable_until(decision.at):%Y-%m-%d %H:%M:%S} UTC: ask anew"
        )
    version, system = decision.subject_version, decision.system
    if version is None or system is None:
        raise NotRequestable("the denial names nobody, or no system, to be granted anything")
    _refuse_needless(actor, denial.question, version, system, at)
    refuse_older(version)
    asked = Asked(
        RequestKind.GRANT,
        _proposal(version, system, decision.action, wanted.until, at).to_bytes(),
        (system,),
        subject_version=version,
    )
    reason = _reason(denial, wanted)
    request = apply_file_request(actor=actor, asked=asked, reason=reason, at=at, request_id=request_id)
    apply_use_key(**claim, reference=reference_of_request(request.uid))
    apply_keep_request(actor=actor, key=idempotency_key, what=what, uid=request.uid)
    return request


def _bound(actor: Actor, denial: Denial) -> tuple[Decision, Value]:
    """Return the decision that is meant, given to a token of the same person about the same question, and the facts that it was read
    from. Raises `DenialNotBound`.
    """
    rows = Decision.objects.select_related("body", "subject_version__subject", "system")
    decision = rows.filter(uid=denial.evaluation_id).first()
    if decision is None or decision.token is None:
        raise DenialNotBound(_NOT_BOUND)
    if not ServiceToken.objects.filter(pk=decision.token, person=person_behind(actor)).exists():
        raise DenialNotBound(_NOT_BOUND)
    facts: Value = body_of(decision)["facts"]
    if {**denial.question.as_value(), "claims": ""} != {**facts["question"], "claims": ""}:
        raise DenialNotBound(_NOT_BOUND)
    if denial.expires_at != requestable_until(decision.at):
        raise DenialNotBound("`denial.expires_at` is not the `context.access_request.expires_at` of this denial")
    return decision, facts


def _refuse_needless(actor: Actor, question: Question, version: SubjectVersion, system: System, at: datetime) -> None:
    """Raise where the question is allowed by now, means somebody else, or is asked for by an open request of the same person."""
    person = person_behind(actor)
    with connection.cursor() as cursor:
        # Whoever asks the same at the same time waits here, and then sees the request of the first.
        lock = f"{person} {version.pk} {system.pk} {question.action}"
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 3))", [lock])
    _, (asked,) = read_asked([question], token_digests=[_NO_TOKEN], at=at)
    if judge(asked.facts, asked.policies, at, timestamp(at)).allowed:
        raise NotRequestable("this is allowed by now: ask the gate again")
    if asked.subject_version != version.pk:
        raise NotRequestable("another version is meant by now than when it was denied: ask the gate anew")
    waiting = find_open_request(person=person, subject_version=version, system=system, action=question.action, at=at)
    if waiting is not None:
        raise RequestedAlready("a request of yours for this is open", task=waiting)


def _proposal(version: SubjectVersion, system: System, action: str, until: datetime | None, at: datetime) -> AccessProposal:
    problems = access_problems([system], [action])
    if until is not None and until <= at:
        problems.append(Problem("the end lies in the past", field="requested_access.requested_until"))
    if problems:
        raise InputRefused(problems)
    if until is None:
        most = terms_value(judge_access(version, [system], [action], requester=None, at=at))["max_days"]
        until = at + timedelta(days=min(DEFAULT_DAYS, most or DEFAULT_DAYS))
    return AccessProposal((action,), None, until)


def _reason(denial: Denial, wanted: Wanted) -> str:
    """Return what those who sign read: what the caller says, and what a machine's request is to be known by."""
    said = wanted.justification.strip()
    if len(said) > MAX_JUSTIFICATION:
        hint = f"at most {MAX_JUSTIFICATION} characters"
        raise InputRefused([Problem("it is too long", field="context.business_justification", hint=hint)])
    if "\x00" in said:
        raise InputRefused([Problem("it holds the character NUL", field="context.business_justification", hint="leave it out")])
    parts = [
        said or "No justification was given.",
        EMERGENCY if wanted.emergency else "",
        BECAUSE.format(denial.evaluation_id),
    ]
    return "\n\n".join(part for part in parts if part)
