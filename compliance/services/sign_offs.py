"""Sign-offs: given, taken back, and what the last one sets in motion. The one place that judges who may sign."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import IntegrityError

from compliance.models import Dossier, Grant, SignOff, SignOffRequest, User
from compliance.selectors.dossiers.base import REQUESTER, Built, difference_between
from compliance.selectors.dossiers.build import build_dossier
from compliance.selectors.signers import ACCOUNT_INACTIVE, QuorumState, after_sign_off, read_quorum
from compliance.services.administration import apply_refuse_reader
from compliance.services.completion import apply_complete
from compliance.services.grants import apply_moves
from compliance.services.idempotency import apply_first_time
from compliance.services.notices import apply_tell_request, apply_want_signatures, question_of
from compliance.services.proofs import apply_hold_people, require_proof
from compliance.services.requests import (
    MAX_TEXT,
    NotCleared,
    RequestClosed,
    apply_close_request,
    apply_lock_open,
    apply_record_dossier,
    expired,
    person_behind,
)
from compliance.services.stopping import apply_tell_suspended
from compliance.vocabulary import Cause, GrantMove, Meaning, NoticeKind, RequestKind, RequestStatus
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor, ActorKind
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service
from evaluations.services.benchmarks import apply_hold_registry

APPROVING = (Meaning.APPROVED, Meaning.ACCEPTED_RESIDUAL_RISK)
VERDICTS = (*APPROVING, Meaning.REJECTED)


class TokenCannotSign(DomainError):
    """A machine tried to sign. Only people do, signed in themselves."""

    code = "token_cannot_sign"
    kind = ErrorKind.FORBIDDEN


class SelfSignOffRefused(DomainError):
    """The requester tried to sign her own request."""

    code = "self_sign_off_refused"
    kind = ErrorKind.CONFLICT


class SignerNotEligible(DomainError):
    """This person may not sign this request; `facts["reasons"]` says why, by code."""

    code = "signer_not_eligible"
    kind = ErrorKind.FORBIDDEN


class DossierChanged(DomainError):
    """What was shown is not what would be signed: the dossier has changed, and earlier signatures on it are void."""

    code = "dossier_changed"
    kind = ErrorKind.CONFLICT


class SignOffRefused(DomainError):
    """The database refused the signature, for a reason that came up after the service had looked."""

    code = "sign_off_refused"
    kind = ErrorKind.CONFLICT


class RiskNotAccepted(DomainError):
    """Soft rules are to be waived: whoever approves accepts the residual risk by that name."""

    code = "risk_not_accepted"
    kind = ErrorKind.CONFLICT


class QuorumNotMet(DomainError):
    """The signatures that count now are not enough; `facts` says whose lapsed and what is open."""

    code = "quorum_not_met"
    kind = ErrorKind.CONFLICT


class Signed(NamedTuple):
    """A sign-off, where the quorum stands with it, and whether it completed the request."""

    sign_off: SignOff
    state: QuorumState
    completed: bool


def sign(
    *,
    actor: Actor,
    request: SignOffRequest,
    account: User,
    session: str,
    meaning: str,
    reason: str,
    digest: str,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> Signed:
    """Give a sign-off; where the dossier has changed meanwhile, record the new one and raise `DossierChanged`.

    `session` is the digest of the signer's session and `digest` that of the dossier she was shown. Errors are those of `give_sign_off`.
    """
    try:
        return give_sign_off(
            actor=actor,
            request=request,
            account=account,
            session=session,
            meaning=meaning,
            reason=reason,
            digest=digest,
            idempotency_key=idempotency_key,
            request_id=request_id,
        )
    except DossierChanged:
        refresh_dossier(actor=actor, request=request, request_id=request_id)
        raise


@service(refused="sign_off.refused")
def give_sign_off(
    *,
    actor: Actor,
    request: SignOffRequest,
    account: User,
    session: str,
    meaning: str,
    reason: str,
    digest: str,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> Signed:
    """Record one person's word on the present dossier; the last one that is needed completes the request in the same transaction.

    Raises `TokenCannotSign`, `InputRefused`, `RequestClosed`, `RequestExpired`, `DossierChanged`, `SelfSignOffRefused`,
    `SignerNotEligible`, `ReauthenticationNeeded`, `RiskNotAccepted`, `NotCleared`, `SignOffRefused`; nothing is signed then.
    """
    if actor.kind is not ActorKind.PERSON or UUID(actor.id) != account.person_id:
        raise TokenCannotSign("people sign, signed in themselves: neither a token nor a job does")
    word, said = _checked(meaning, reason)
    act = f"sign_off.given {request.uid} {word} {digest_of(f'{digest} {said}'.encode())}"
    if not apply_first_time(actor=actor, key=idempotency_key, act=act):
        return _given_before(request, account, now())
    held, at = _hold(request, account)
    dossier = _present(held)
    built = build_dossier(held, at=at)
    if built.digest != dossier.digest or digest != dossier.digest:
        raise DossierChanged("the dossier has changed since it was shown: read what is new and sign that")
    before = read_quorum(held, built, dossier, at=at)
    roles = _refuse_ineligible(before, account, word)
    shown = require_proof(account=account, session=session, minutes=built.quorum.reauthenticate_within_minutes, at=at)
    if word in APPROVING:
        if built.risk_accepted and word == Meaning.APPROVED:
            raise RiskNotAccepted("soft rules are to be waived here: sign it as `accepted_residual_risk`, or reject it")
        if built.obstacles:
            raise NotCleared(built)
    sign_off = SignOff(
        request=held,
        requester_id=held.requester_id,
        dossier=dossier,
        dossier_digest=dossier.digest,
        person_id=account.person_id,
        account=account,
        roles=roles,
        meaning=word,
        reason=said,
        reauthentication=shown,
        signed_at=at,
    )
    try:
        sign_off.save()
    except IntegrityError as refused:
        raise SignOffRefused(f"the database refused the signature: {str(refused).splitlines()[0]}") from refused
    audit.record(
        audit.Event(
            action="sign_off.given",
            actor=actor,
            target=("request", str(held.uid)),
            new={
                "sign_off": str(sign_off.uid),
                "meaning": str(word),
                "reason": said,
                "roles": roles,
                "account": account.pk,
                "reauthenticated_at": shown.at,
                "reauthentication_method": str(shown.method),
            },
            digests={"dossier": dossier.digest},
            request_id=request_id,
        )
    )
    state = after_sign_off(before, built, sign_off)
    if state.assessment.rejected_by:
        apply_close_request(actor=actor, request=held, status=RequestStatus.REJECTED, because=said, at=at, request_id=request_id)
        _apply_end_break_glass(actor, held, said, at, request_id)
        _tell_decided(held.reload(), built, at)
        return Signed(sign_off, state, completed=False)
    if state.assessment.met:
        apply_complete(actor=actor, request=held, dossier=dossier, built=built, state=state, at=at, request_id=request_id)
        _tell_decided(held.reload(), built, at)
    return Signed(sign_off, state, completed=state.assessment.met)


@service(refused="request.refused")
def complete_request(
    *, actor: Actor, request: SignOffRequest, idempotency_key: str | None = None, request_id: str = ""
) -> SignOffRequest:
    """Complete a request whose signatures are enough without a further one, such as after a role came back.

    Completing it twice is no error and happens once. Raises `QuorumNotMet` naming whose signature lapsed, `DossierChanged`,
    `NotCleared`, `RequestExpired`, `RequestClosed`.
    """
    apply_refuse_reader(actor)
    apply_first_time(actor=actor, key=idempotency_key, act=f"request.completed {request.uid}")
    held = SignOffRequest.objects.select_for_update(of=("self",)).get(pk=request.pk)
    if held.status == RequestStatus.COMPLETED:
        return held
    held, at = _hold(held, None)
    dossier = _present(held)
    built = build_dossier(held, at=at)
    if built.digest != dossier.digest:
        raise DossierChanged("the dossier has changed since it was signed: its signatures are void")
    if built.obstacles:
        raise NotCleared(built)
    state = read_quorum(held, built, dossier, at=at)
    if not state.assessment.met:
        lapsed = {person: list(reasons) for person, reasons in state.assessment.lapsed.items()}
        told = f"signer_no_longer_eligible: {', '.join(sorted(lapsed))}; " if lapsed else ""
        raise QuorumNotMet(f"{told}signatures are missing", lapsed=lapsed, open=dict(state.assessment.open))
    apply_complete(actor=actor, request=held, dossier=dossier, built=built, state=state, at=at, request_id=request_id)
    _tell_decided(held.reload(), built, at)
    return held


@service(refused="dossier.refused")
def refresh_dossier(*, actor: Actor, request: SignOffRequest, request_id: str = "") -> Dossier:
    """Record the dossier as it now stands, where it differs; earlier signatures are void, and those who may sign are told.

    Refreshing an unchanged dossier changes nothing. Raises `RequestClosed`, `RequestExpired`.
    """
    held, at = _hold(request, None)
    dossier = _present(held)
    built = build_dossier(held, at=at)
    if built.digest == dossier.digest:
        return dossier
    fresh = apply_record_dossier(
        actor=actor, request=held, built=built, because=difference_between(dossier, built), at=at, request_id=request_id
    )
    held = SignOffRequest.objects.select_related("dossier").get(pk=held.pk)
    may_sign = read_quorum(held, built, fresh, at=at).assessment.may_sign
    apply_want_signatures(request=held, built=built, people=[UUID(person) for person in may_sign], at=at)
    return fresh


@service(refused="request.refused")
def withdraw_request(
    *, actor: Actor, request: SignOffRequest, reason: str, idempotency_key: str | None = None, request_id: str = ""
) -> SignOffRequest:
    """Take back one's own request. Raises `SignerNotEligible` for anybody else's, `InputRefused`, `RequestClosed`, `RequestExpired`."""
    at = now()
    said = _checked_reason(reason, hint="say why it is not needed any more")
    act = f"request.withdrawn {request.uid} {digest_of(reason.encode())}"
    if not apply_first_time(actor=actor, key=idempotency_key, act=act):
        return request.reload()
    if person_behind(actor) != request.requester_id:
        raise SignerNotEligible("only whoever asked takes a request back; a signer rejects it", reasons=["not_the_requester"])
    if request.kind == RequestKind.BREAK_GLASS_REVIEW:
        raise SignerNotEligible("the review of a break-glass is not taken back", reasons=["review_is_mandatory"])
    held = apply_lock_open(request, at=at)
    apply_close_request(actor=actor, request=held, status=RequestStatus.WITHDRAWN, because=said, at=at, request_id=request_id)
    return held.reload()


def _apply_end_break_glass(actor: Actor, request: SignOffRequest, because: str, at: datetime, request_id: str) -> None:
    """End a break-glass whose review was rejected, where it is still open: the gate says no longer yes to what people refused."""
    grant = request.grant
    if request.kind != RequestKind.BREAK_GLASS_REVIEW or grant is None or grant.ends_at <= at:
        return
    events = apply_moves(
        actor=actor,
        grants=[grant],
        move=GrantMove.REVOKED,
        cause=Cause.TAKEN_BACK,
        at=at,
        detail={"reason": because, "review": str(request.uid)},
        request_id=request_id,
    )
    apply_tell_suspended(events=events, at=at)


def _given_before(request: SignOffRequest, account: User, at: datetime) -> Signed:
    """Return the person's last sign-off on a request, and where its quorum stands now."""
    held = SignOffRequest.objects.select_related("dossier").get(pk=request.pk)
    given = SignOff.objects.filter(request=held, person=account.person_id).select_related("reauthentication").latest("id")
    state = read_quorum(held, build_dossier(held, at=at), held.dossier, at=at)
    return Signed(given, state, completed=held.status == RequestStatus.COMPLETED)


def _checked(meaning: str, reason: str) -> tuple[Meaning, str]:
    problems = []
    if meaning not in Meaning.values:
        problems.append(
            Problem(f"`{meaning[:40]}` is no meaning of a signature", field="meaning", hint=f"one of {', '.join(Meaning.values)}")
        )
    try:
        said = _checked_reason(reason, hint="say what you looked at and why")
    except InputRefused as refused:
        raise InputRefused([*problems, *refused.problems]) from refused
    if problems:
        raise InputRefused(problems)
    return Meaning(meaning), said


def _checked_reason(reason: str, *, hint: str) -> str:
    said = reason.strip()
    if not said or len(said) > MAX_TEXT:
        raise InputRefused([Problem(f"a reason has 1 to {MAX_TEXT} characters", field="reason", hint=hint)])
    return said


def _hold(request: SignOffRequest, account: User | None) -> tuple[SignOffRequest, datetime]:
    """Lock a request, everybody whose signature might count, and what it is about; return it and the instant to judge at.

    The instant is read behind the locks: whatever somebody else committed while this waited came before it. Raises `RequestClosed`,
    `RequestExpired`.
    """
    held = apply_lock_open(request, at=now())
    _lock_signers(held, account)
    if held.grant_id is not None:
        list(Grant.objects.select_for_update(no_key=True).filter(pk=held.grant_id).values_list("pk", flat=True))
    if held.kind in (RequestKind.METRIC, RequestKind.BENCHMARK, RequestKind.SOURCE):
        apply_hold_registry()
    at = now()
    if at >= held.expires_at:
        raise expired(held)
    return held, at


def _present(request: SignOffRequest) -> Dossier:
    if request.dossier is None:
        raise RequestClosed("the request has no dossier")
    return request.dossier


def _lock_signers(request: SignOffRequest, account: User | None) -> None:
    """Hold everybody whose signature might count as she is until this transaction ends."""
    people = set(SignOff.objects.filter(request=request).values_list("person_id", flat=True))
    apply_hold_people(people if account is None else people | {account.person_id})


def _refuse_ineligible(state: QuorumState, account: User, meaning: Meaning) -> list[str]:
    """Return the roles with which a person signs. Raises `SelfSignOffRefused`, `SignerNotEligible`."""
    if not User.objects.filter(pk=account.pk, person=account.person_id, is_active=True).exists():
        raise SignerNotEligible("this account is closed", reasons=[ACCOUNT_INACTIVE])
    person = str(account.person_id)
    assessment = state.assessment
    barred = state.candidates[account.person_id].barred if account.person_id in state.candidates else ()
    if REQUESTER in barred:
        raise SelfSignOffRefused("nobody signs her own request", reasons=[REQUESTER])
    if person not in assessment.eligible:
        reasons = list(assessment.may_not.get(person, ("no_role",)))
        raise SignerNotEligible(f"this person may not sign: {', '.join(reasons)}", reasons=reasons)
    last = state.last_words.get(account.person_id)
    if meaning == Meaning.WITHDRAWN and (last is None or last.void or last.sign_off.meaning not in VERDICTS):
        raise SignerNotEligible("there is no signature to take back", reasons=["nothing_to_withdraw"])
    if meaning in APPROVING and last is not None and not last.void and last.sign_off.meaning == meaning:
        raise SignerNotEligible("this person has signed this dossier already", reasons=["already_signed"])
    return sorted(state.candidates[account.person_id].roles)


def _tell_decided(request: SignOffRequest, built: Built, at: datetime) -> None:
    apply_tell_request(
        request=request,
        kind=NoticeKind.REQUEST_DECIDED,
        title=f"{RequestStatus(request.status).label}: {question_of(built.value)}",
        cause=f"status:{request.status}",
        people=[request.requester_id],
        at=at,
    )
