"""Requests for signatures: filed, talked about, closed. What each kind asks for is read in `filing`; this is the road all take."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from compliance.models import Dossier, Person, QuorumFactor, RequestComment, RequestSystem, SignOffRequest
from compliance.selectors.access import holds_any_role
from compliance.selectors.dossiers.base import Built
from compliance.selectors.dossiers.build import build_dossier
from compliance.selectors.signers import can_be_met
from compliance.services.notices import apply_want_signatures
from compliance.vocabulary import CommentKind, Meaning, RequestKind, RequestStatus, Role
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor, ActorKind
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.models import Evidence, SubjectVersion
from policies.models import Policy, PolicyVersion, System

MAX_TEXT = 4_000
FAR_AHEAD = timedelta(days=3_650)

MAY_ASK: Mapping[str, tuple[Role, ...]] = {
    RequestKind.GRANT: (Role.REQUESTER, Role.SYSTEM_OWNER),
    RequestKind.RENEWAL: (Role.REQUESTER, Role.SYSTEM_OWNER),
    RequestKind.REINSTATEMENT: (Role.REQUESTER, Role.SYSTEM_OWNER),
    RequestKind.RECERTIFICATION: (Role.REQUESTER, Role.SYSTEM_OWNER),
    RequestKind.WAIVER: (Role.REQUESTER, Role.SYSTEM_OWNER),
    RequestKind.ACTIVATION: (Role.POLICY_AUTHOR, Role.POLICY_APPROVER),
    RequestKind.BINDING: (Role.POLICY_AUTHOR, Role.POLICY_APPROVER, Role.SYSTEM_OWNER),
    RequestKind.RULING: (Role.EVIDENCE_STEWARD,),
    RequestKind.METRIC: (Role.EVIDENCE_STEWARD,),
    RequestKind.BENCHMARK: (Role.EVIDENCE_STEWARD,),
    RequestKind.SOURCE: (Role.EVIDENCE_STEWARD,),
}
"""Which roles may ask for what. Asking and signing are apart: nobody signs what she asked for."""


class NotARequester(DomainError):
    """Who asks holds none of the roles that may ask for this, or is no person and acts for none."""

    code = "not_a_requester"
    kind = ErrorKind.FORBIDDEN


class NotCleared(DomainError):
    """What is asked for cannot be approved as things stand; `facts` holds the obstacles by code."""

    code = "not_cleared"
    kind = ErrorKind.CONFLICT

    def __init__(self, built: Built) -> None:
        sentences = "; ".join(item.sentence for item in built.obstacles)
        super().__init__(sentences, obstacles=[item._asdict() for item in built.obstacles])


class QuorumCannotBeMet(DomainError):
    """Too few people could sign: it is refused now rather than left to expire."""

    code = "quorum_cannot_be_met"
    kind = ErrorKind.CONFLICT


class RequestClosed(DomainError):
    """The request is no longer open."""

    code = "request_closed"
    kind = ErrorKind.CONFLICT


class RequestExpired(DomainError):
    """The time in which the request could be signed is over."""

    code = "request_expired"
    kind = ErrorKind.CONFLICT


class Asked(NamedTuple):
    """What a request is about: the object of its kind, and its systems."""

    kind: RequestKind
    proposal: bytes
    systems: Sequence[System] = ()
    subject_version: SubjectVersion | None = None
    policy: Policy | None = None
    policy_version: PolicyVersion | None = None
    evidence: Evidence | None = None
    grant: Any = None


def person_behind(actor: Actor) -> UUID:
    """Return the person who asks: herself, or the one whose token it is. Raises `NotARequester` for a system job."""
    for one in (actor, actor.on_behalf_of):
        if one is not None and one.kind is ActorKind.PERSON:
            return UUID(one.id)
    raise NotARequester("only a person asks, or a token that acts for one")


def apply_file_request(*, actor: Actor, asked: Asked, reason: str, at: datetime, request_id: str = "") -> SignOffRequest:
    """File a request inside an open service transaction: its dossier is built, and whoever may sign is told.

    Raises `InputRefused`, `NotARequester`, `NotCleared` and `QuorumCannotBeMet`; nothing is filed then.
    """
    requester = person_behind(actor)
    roles = MAY_ASK[asked.kind]
    if not holds_any_role(person_id=requester, roles=roles, at=at):
        raise NotARequester(f"asking for a {RequestKind(asked.kind).label} needs the role {' or '.join(roles)}")
    request = apply_open_request(actor=actor, requester_id=requester, asked=asked, reason=reason, at=at)
    built = build_dossier(request, at=at)
    if built.obstacles:
        raise NotCleared(built)
    assessment = can_be_met(request, built, at=at)
    if not assessment.can_be_met:
        raise QuorumCannotBeMet(
            "not enough different people could sign: "
            + ", ".join(f"`{name}` lacks {missing}" for name, missing in assessment.open.items() if missing),
            may_not={person: list(reasons) for person, reasons in assessment.may_not.items()},
        )
    apply_record_dossier(actor=actor, request=request, built=built, because="", at=at)
    apply_record_filing(actor=actor, request=request, built=built, request_id=request_id)
    apply_want_signatures(request=request, built=built, people=[UUID(person) for person in assessment.may_sign], at=at)
    return request


def apply_record_filing(*, actor: Actor, request: SignOffRequest, built: Built, request_id: str = "") -> None:
    """Record the entry of a request that was filed, inside an open service transaction."""
    audit.record(
        audit.Event(
            action="request.filed",
            actor=actor,
            target=("request", str(request.uid)),
            new={
                "kind": str(request.kind),
                "requester": str(request.requester_id),
                "question": built.value["question"],
                "reason": request.reason,
                "expires_at": request.expires_at,
            },
            digests={"dossier": built.digest},
            request_id=request_id,
        )
    )


def apply_open_request(*, actor: Actor, requester_id: UUID, asked: Asked, reason: str, at: datetime) -> SignOffRequest:
    """Insert the row of a request without its dossier, inside an open service transaction. Raises `InputRefused`."""
    said = reason.strip()
    if not said or len(said) > MAX_TEXT:
        raise InputRefused([Problem(f"a reason has 1 to {MAX_TEXT} characters", field="reason", hint="say why it is needed")])
    request = SignOffRequest.objects.create(
        kind=asked.kind,
        requester=Person.objects.get(pk=requester_id),
        requested_by=actor.reference,
        reason=said,
        proposal=asked.proposal,
        subject_version=asked.subject_version,
        policy=asked.policy,
        policy_version=asked.policy_version,
        evidence=asked.evidence,
        grant=asked.grant,
        created_at=at,
        expires_at=at + FAR_AHEAD,
    )
    RequestSystem.objects.bulk_create(RequestSystem(request=request, system=system) for system in asked.systems)
    return request


def apply_record_dossier(
    *, actor: Actor, request: SignOffRequest, built: Built, because: str, at: datetime, request_id: str = ""
) -> Dossier:
    """Record what is to be signed from now on, inside an open service transaction; a first dossier sets when the request expires."""
    before = request.dossier
    dossier = Dossier(
        request=request,
        number=1 if before is None else before.number + 1,
        content=built.content,
        digest=built.digest,
        excluded=sorted(built.excluded),
        because=because,
        recorded_at=at,
    )
    dossier.save()
    QuorumFactor.objects.bulk_create(
        QuorumFactor(
            dossier=dossier,
            ordinal=place,
            factor=factor.factor,
            role=factor.role,
            approve=factor.approve,
            filter=factor.filter.text if factor.filter else "",
        )
        for place, factor in enumerate(built.quorum.all_of)
    )
    moved: dict[str, Any] = {"dossier": dossier}
    if before is None:
        moved["expires_at"] = request.created_at + timedelta(hours=built.quorum.request_expires_after_hours)
    SignOffRequest.claim(request.pk, expected={"status": RequestStatus.OPEN}, moved_to=moved)
    request.refresh_from_db()
    void = [] if before is None else _voided(request, before)
    audit.record(
        audit.Event(
            action="dossier.recorded",
            actor=actor,
            target=("request", str(request.uid)),
            old=None if before is None else {"number": before.number, "voided_signers": void},
            new={"number": dossier.number, "because": because},
            digests={"dossier": dossier.digest, **({"before": before.digest} if before else {})},
            request_id=request_id,
        )
    )
    return dossier


def apply_close_request(
    *, actor: Actor, request: SignOffRequest, status: RequestStatus, because: str, at: datetime, request_id: str = ""
) -> None:
    """Close an open request by claim, inside an open service transaction. Raises `RequestClosed` where somebody was first."""
    closed = SignOffRequest.claim(
        request.pk,
        expected={"status": RequestStatus.OPEN},
        moved_to={"status": status, "closed_at": at, "closed_because": because[:300]},
    )
    if not closed:
        raise RequestClosed("the request is closed already")
    audit.record(
        audit.Event(
            action=f"request.{status}",
            actor=actor,
            target=("request", str(request.uid)),
            old={"status": str(RequestStatus.OPEN)},
            new={"status": str(status), "because": because},
            digests={"dossier": request.dossier.digest} if request.dossier else {},
            request_id=request_id,
        )
    )


def apply_lock_open(request: SignOffRequest, *, at: datetime) -> SignOffRequest:
    """Lock a request's row and return it as it stands, inside an open service transaction. Raises `RequestClosed`, `RequestExpired`."""
    held = SignOffRequest.objects.select_for_update(of=("self",)).select_related("dossier").get(pk=request.pk)
    if held.status != RequestStatus.OPEN:
        raise RequestClosed(f"the request is {held.get_status_display()}: nothing is left to sign")
    if at >= held.expires_at:
        raise expired(held)
    return held


def expired(request: SignOffRequest) -> RequestExpired:
    """Return the refusal of a request whose time is over."""
    return RequestExpired(f"the request expired at {request.expires_at:%Y-%m-%d %H:%M} UTC: file it anew")


def apply_comment(
    *, actor: Actor, request: SignOffRequest, person_id: UUID, kind: CommentKind, text: str, at: datetime, request_id: str = ""
) -> RequestComment:
    """Record a comment inside an open service transaction. Raises `InputRefused`, `RequestClosed`."""
    said = text.strip()
    if not said or len(said) > MAX_TEXT:
        raise InputRefused([Problem(f"a comment has 1 to {MAX_TEXT} characters", field="text")])
    if SignOffRequest.objects.filter(pk=request.pk, status=RequestStatus.OPEN).first() is None:
        raise RequestClosed("the request is closed: nothing is added to it any more")
    comment = RequestComment(request=request, person_id=person_id, kind=kind, text=said, recorded_at=at)
    comment.save()
    audit.record(
        audit.Event(
            action="request.commented",
            actor=actor,
            target=("request", str(request.uid)),
            new={"kind": str(kind), "text": said},
            request_id=request_id,
        )
    )
    return comment


def _voided(request: SignOffRequest, dossier: Dossier) -> list[str]:
    """Return who had signed a dossier that is replaced now."""
    signed = request.sign_offs.filter(dossier=dossier).exclude(meaning=Meaning.WITHDRAWN)
    return sorted({str(person) for person in signed.values_list("person_id", flat=True)})
