"""Break-glass: one person opens access at once, for hours, loudly, and others review it afterwards. It goes round no record."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings

from compliance.models import Grant, GrantSystem, SignOffRequest, User
from compliance.models.grants import BREAK_GLASS_MAX
from compliance.selectors.access import held_signing_holds
from compliance.selectors.break_glass import ordinary_road, unreviewed
from compliance.selectors.dossiers.build import build_dossier
from compliance.selectors.recipients import holders_of, owners_by_team
from compliance.selectors.signers import can_be_met
from compliance.selectors.systems import may_manage_system, roles_held
from compliance.services.administration import apply_require_administrator
from compliance.services.filing import access_problems, refuse_older
from compliance.services.grants import apply_record_making
from compliance.services.idempotency import apply_claim_request, apply_keep_request
from compliance.services.notices import apply_want_signatures, grant_path
from compliance.services.outbox import Notice, apply_notify_all
from compliance.services.proofs import apply_hold_people, require_proof
from compliance.services.requests import MAX_TEXT, Asked, apply_open_request, apply_record_dossier, apply_record_filing
from compliance.vocabulary import Cause, GrantKind, NoticeKind, RequestKind, Role
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor, ActorKind
from evaluations.kernel.canonical import canonical_bytes
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service
from evaluations.models import SubjectVersion
from policies.models import System

LEAST_MINUTES = 5
MOST_MINUTES = int(BREAK_GLASS_MAX / timedelta(minutes=1))
LEAST_JUSTIFICATION = 20


class TokenCannotOpen(DomainError):
    """A machine tried to open a break-glass. Only people do, signed in themselves."""

    code = "token_cannot_open"
    kind = ErrorKind.FORBIDDEN


class MayNotOpen(DomainError):
    """Who opens a break-glass holds security, or owns every system it reaches; her account is active and her signing not on hold."""

    code = "may_not_open"
    kind = ErrorKind.FORBIDDEN


class ReviewOverdue(DomainError):
    """An earlier break-glass of hers was not reviewed in time: nobody opens another before that."""

    code = "review_overdue"
    kind = ErrorKind.CONFLICT


class ReviewNotDue(DomainError):
    """The break-glass was reviewed, or its review is open."""

    code = "review_not_due"
    kind = ErrorKind.CONFLICT


class Opened(NamedTuple):
    """An open break-glass and the request for its review."""

    grant: Grant
    review: SignOffRequest


@service(refused="break_glass.refused")
def open_break_glass(
    *,
    actor: Actor,
    account: User,
    session: str,
    subject_version: SubjectVersion,
    systems: Sequence[System],
    actions: Sequence[str],
    justification: str,
    minutes: int,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> Opened:
    """Grant access at once, for 5 to 240 minutes, on one person's word; what the ordinary road would have said is recorded beside it.

    `session` is the digest of her session. Security, administrators and the systems' owners are told, and its review by others is
    asked for, in the same transaction. Raises `TokenCannotOpen`, `InputRefused`, `MayNotOpen`, `ReauthenticationNeeded`,
    `ReviewOverdue`, `OlderVersion`; nothing is opened then.
    """
    at = now()
    if actor.kind is not ActorKind.PERSON or UUID(actor.id) != account.person_id:
        raise TokenCannotOpen("people open a break-glass, signed in themselves: neither a token nor a job does")
    said = _checked(systems, actions, justification, minutes)
    refuse_older(subject_version)
    apply_hold_people([account.person_id])
    _refuse_person(account, systems, at)
    shown = require_proof(account=account, session=session, minutes=settings.SIGN_OFF_MINUTES, at=at)
    keys = sorted(system.key for system in systems)
    what = ["break_glass", subject_version.digest, *keys, *actions, said, str(minutes)]
    known = apply_claim_request(actor=actor, key=idempotency_key, what=what)
    if known is not None:
        review = SignOffRequest.objects.select_related("grant").get(uid=known)
        return Opened(_grant_of(review), review)
    if unreviewed(at=at).filter(requester=account.person_id).exists():
        raise ReviewOverdue("an earlier break-glass of yours waits for its review: have security and the system's owner sign it")
    on_record = ordinary_road(subject_version, systems, actions, person=account.person_id, at=at)
    grant = Grant.objects.create(
        kind=GrantKind.BREAK_GLASS,
        subject_version=subject_version,
        actions=list(actions),
        requester_id=account.person_id,
        starts_at=at,
        ends_at=at + timedelta(minutes=minutes),
        begun_at=at,
        reason=said,
        cause=Cause.BREAK_GLASS,
        created_at=at,
    )
    GrantSystem.objects.bulk_create(GrantSystem(grant=grant, system=system) for system in systems)
    apply_record_making(actor=actor, grant=grant, systems=keys, at=at)
    review = _apply_open_review(actor, grant, systems, canonical_bytes(on_record), at, request_id)
    apply_keep_request(actor=actor, key=idempotency_key, what=what, uid=review.uid)
    _tell_opened(grant, systems, at)
    audit.record(
        audit.Event(
            action="break_glass.opened",
            actor=actor,
            target=("grant", str(grant.uid)),
            new={
                "justification": said,
                "minutes": minutes,
                "ordinary_road": on_record,
                "review": str(review.uid),
                "account": account.pk,
                "reauthenticated_at": shown.at,
                "reauthentication_method": str(shown.method),
            },
            request_id=request_id,
        )
    )
    return Opened(grant, review)


@service(refused="break_glass.refused")
def reopen_review(*, actor: Actor, grant: Grant, request_id: str = "") -> SignOffRequest:
    """Ask anew for the review of a break-glass whose last one expired unsigned; an administrator does. It stays its opener's request.

    Raises `AdministratorNeeded`, `ReviewNotDue`.
    """
    at = now()
    apply_require_administrator(actor=actor)
    held = Grant.objects.select_for_update().get(pk=grant.pk)
    last = held.later_requests.filter(kind=RequestKind.BREAK_GLASS_REVIEW).order_by("-id").first()
    if last is None or not unreviewed(at=at).filter(pk=held.pk).exists():
        raise ReviewNotDue("this was reviewed, or its review is open: nothing is to be asked for anew")
    systems = list(System.objects.filter(grant_systems__grant=held).order_by("key"))
    return _apply_open_review(actor, held, systems, bytes(last.proposal), at, request_id)


def _checked(systems: Sequence[System], actions: Sequence[str], justification: str, minutes: int) -> str:
    said = justification.strip()
    problems = access_problems(systems, actions)
    if not LEAST_JUSTIFICATION <= len(said) <= MAX_TEXT:
        problems.append(
            Problem(
                f"a justification has {LEAST_JUSTIFICATION} to {MAX_TEXT} characters",
                field="justification",
                hint="say what is broken and why it cannot wait: others review it",
            )
        )
    if not LEAST_MINUTES <= minutes <= MOST_MINUTES:
        problems.append(Problem(f"it is open for {LEAST_MINUTES} to {MOST_MINUTES} minutes", field="minutes"))
    if problems:
        raise InputRefused(problems)
    return said


def _refuse_person(account: User, systems: Sequence[System], at: datetime) -> None:
    """Raise `MayNotOpen` unless her account is open, her signing not on hold, and her roles reach all of it."""
    if not User.objects.filter(pk=account.pk, is_active=True).exists() or held_signing_holds(
        person_ids=[account.person_id], at=at
    ):
        raise MayNotOpen("the account is closed, or its signing on hold: an administrator looks at it", reasons=["account"])
    herself = f"{ActorKind.PERSON.value}:{account.person_id}"
    roles = [
        item
        for item in roles_held(person_id=account.person_id, at=at)
        if item.role in (Role.SECURITY, Role.SYSTEM_OWNER) and item.given_by != herself
    ]
    if not all(may_manage_system(roles, system) for system in systems):
        raise MayNotOpen("only security, or the owner of every one of these systems, opens a break-glass", reasons=["no_role"])


def _apply_open_review(
    actor: Actor, grant: Grant, systems: Sequence[System], on_record: bytes, at: datetime, request_id: str
) -> SignOffRequest:
    """File the review of a break-glass, whose opener is its requester and so never signs it.

    It is filed also where nobody could sign it today: the access is open, and administrators are told that a review is due.
    """
    asked = Asked(RequestKind.BREAK_GLASS_REVIEW, on_record, systems=systems, subject_version=grant.subject_version, grant=grant)
    review = apply_open_request(actor=actor, requester_id=grant.requester_id, asked=asked, reason=grant.reason, at=at)
    built = build_dossier(review, at=at)
    apply_record_dossier(actor=actor, request=review, built=built, because="", at=at, request_id=request_id)
    apply_record_filing(actor=actor, request=review, built=built, request_id=request_id)
    may_sign = can_be_met(review, built, at=at).may_sign
    apply_want_signatures(request=review, built=built, people=[UUID(person) for person in may_sign], at=at)
    return review


def _tell_opened(grant: Grant, systems: Iterable[System], at: datetime) -> None:
    owners = owners_by_team({system.owner for system in systems}, at=at)
    people = holders_of((Role.SECURITY, Role.ADMINISTRATOR), at=at).union(*owners.values())
    reached = sorted(system.key for system in systems)
    notice = Notice(
        NoticeKind.BREAK_GLASS_OPENED,
        ("grant", str(grant.uid)),
        f"Break-glass: {grant.subject_version.subject.key} may {' and '.join(grant.actions)} to {' and '.join(reached)} now",
        cause="opened",
        lines=[grant.reason, f"It ends at {grant.ends_at:%Y-%m-%d %H:%M} UTC. You can revoke it before."],
        link=grant_path(grant),
        data={"grant": str(grant.uid), "systems": reached, "actions": list(grant.actions), "ends_at": grant.ends_at},
        people=people,
    )
    apply_notify_all([notice], at=at)


def _grant_of(review: SignOffRequest) -> Grant:
    if review.grant is None:
        raise ReviewNotDue("the request reviews no grant")
    return review.grant
