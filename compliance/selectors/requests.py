"""Reads about requests: which there are, what waits for whom, and where each stands."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from compliance.models import (
    Dossier,
    PersonName,
    QuorumFactor,
    RequestComment,
    RequestSystem,
    RoleMembership,
    SignOff,
    SignOffRequest,
)
from compliance.selectors.links import with_request_links
from compliance.selectors.sight import Sight, visible_requests
from compliance.selectors.systems import roles_held
from compliance.vocabulary import Meaning, RequestKind, RequestStatus, Role
from evaluations.kernel.actor import ActorKind
from evaluations.kernel.canonical import digest

VERDICTS = (Meaning.APPROVED, Meaning.ACCEPTED_RESIDUAL_RISK, Meaning.REJECTED)
ABOUT_NO_SYSTEM = (
    RequestKind.ACTIVATION,
    RequestKind.BINDING,
    RequestKind.RULING,
    RequestKind.METRIC,
    RequestKind.BENCHMARK,
    RequestKind.SOURCE,
)
"""The kinds of requests that may name no system."""


def find_requests(
    sight: Sight,
    *,
    at: datetime,
    kind: str | None = None,
    status: str | None = None,
    system: str | None = None,
    subject: str | None = None,
    mine: bool | None = None,
    waiting_for_me: bool | None = None,
) -> QuerySet[SignOffRequest]:
    """Return the requests that somebody sees, unordered, by what was given; `status` is that at the instant, see `status_at`.

    Where `mine` or `waiting_for_me` is false, the others.
    """
    rows = _shown(_waiting_seen(sight.person, sight, at) if waiting_for_me else visible_requests(sight), sight)
    if kind is not None:
        rows = rows.filter(kind=kind)
    if status is not None:
        rows = rows.filter(_standing(status, at))
    if system is not None:
        rows = rows.filter(Exists(RequestSystem.objects.filter(request=OuterRef("pk"), system__key=system)))
    if subject is not None:
        rows = rows.filter(subject_version__subject__key=subject)
    if mine is not None:
        rows = rows.filter(requester=sight.person) if mine else rows.exclude(requester=sight.person)
    if waiting_for_me is False:
        rows = rows.exclude(pk__in=_waiting_for(sight.person, at=at).values("pk"))
    return rows.order_by()


def find_request(sight: Sight, *, uid: UUID) -> SignOffRequest | None:
    """Return one request with what it is about and its present dossier, None where there is none that somebody sees."""
    return _shown(visible_requests(sight), sight).filter(uid=uid).first()


def inbox(person_id: UUID, sight: Sight, *, at: datetime) -> QuerySet[SignOffRequest]:
    """Return the open requests that wait for a person's signature, the next to expire first: ordered by (`expires_at`, `id`).

    What SQL can tell is told here. A factor's filter, a hold, a missing second factor or a role that the requester gave may still bar
    her: whoever shows a row asks `read_quorum(…, only=[person_id])` about it.
    """
    return _shown(_waiting_seen(person_id, sight, at), sight).order_by("expires_at", "id")


def find_dossiers(*, request: SignOffRequest) -> QuerySet[Dossier]:
    """Return the dossiers of a request, without their contents."""
    return Dossier.objects.filter(request=request).defer("content")


def read_dossier(*, request: SignOffRequest) -> Dossier | None:
    """Return the present dossier of a request with its content, None where it has none yet."""
    return Dossier.objects.filter(pk=request.dossier_id or 0).first()


def find_sign_offs(*, request: SignOffRequest) -> QuerySet[SignOff]:
    """Return everything that was said on a request by signature, each with `signer_name`."""
    name = PersonName.objects.filter(person=OuterRef("person")).order_by("-id").values("name")[:1]
    rows = SignOff.objects.filter(request=request).select_related("dossier", "reauthentication").defer("dossier__content")
    return rows.annotate(signer_name=Subquery(name))


def find_comments(*, request: SignOffRequest) -> QuerySet[RequestComment]:
    """Return what was said about a request, each with `author_name`."""
    name = PersonName.objects.filter(person=OuterRef("person")).order_by("-id").values("name")[:1]
    return RequestComment.objects.filter(request=request).annotate(author_name=Subquery(name))


def version_of_request(request: SignOffRequest, at: datetime) -> str:
    """Return the digest of where a request stands: another one as soon as it moves, is signed, or gets another dossier."""
    last = SignOff.objects.filter(request=request).aggregate(last=Max("id"))["last"]
    number = request.dossier.number if request.dossier else 0
    return digest([str(request.uid), status_at(request, at), number, last or 0])


def status_at(request: SignOffRequest, at: datetime) -> str:
    """Return where a request stands at an instant: an open one past its end is expired, whatever is recorded yet."""
    if request.status == RequestStatus.OPEN and request.expires_at <= at:
        return RequestStatus.EXPIRED
    return request.status


def _standing(status: str, at: datetime) -> Q:
    if status == RequestStatus.OPEN:
        return Q(status=status, expires_at__gt=at)
    if status == RequestStatus.EXPIRED:
        return Q(status=status) | Q(status=RequestStatus.OPEN, expires_at__lte=at)
    return Q(status=status)


def _waiting_seen(person_id: UUID, sight: Sight, at: datetime) -> QuerySet[SignOffRequest]:
    rows = _waiting_for(person_id, at=at)
    if sight.systems is None:
        # Nothing to narrow: whatever waits for her, she sees.
        return rows
    return rows.filter(pk__in=visible_requests(sight).values("pk"))


def _waiting_for(person_id: UUID, *, at: datetime) -> QuerySet[SignOffRequest]:
    """Return the open, unexpired requests that ask for a role a person holds, in which she had no part, and on whose present dossier
    she has given no verdict.
    """
    given_by_herself = f"{ActorKind.PERSON.value}:{person_id}"
    held = [item for item in roles_held(person_id=person_id, at=at) if item.given_by != given_by_herself]
    if not held:
        return SignOffRequest.objects.none()
    said = SignOff.objects.filter(request=OuterRef("pk"), person=person_id, dossier=OuterRef("dossier")).order_by("-id")
    waiting = SignOffRequest.objects.filter(status=RequestStatus.OPEN, expires_at__gt=at).exclude(requester=person_id)
    return (
        _asking_for(waiting, held)
        .filter(~Q(dossier__excluded__contains=[person_id]))
        .alias(last_word=Coalesce(Subquery(said.values("meaning")[:1]), Value("")))
        .exclude(last_word__in=VERDICTS)
    )


def _asking_for(rows: QuerySet[SignOffRequest], held: Sequence[RoleMembership]) -> QuerySet[SignOffRequest]:
    """Return the requests whose present dossier asks for one of the roles, as `signers` counts them.

    Made for 100,000 open requests. For the roles that hold everywhere the database may begin at either end. What a system owner owns
    is read once; the rest is asked of a row alone, by scalar subqueries, which never read a whole table for the sake of one page.
    """
    factors = QuorumFactor.objects.filter(dossier=OuterRef("dossier"))
    roles = {membership.role for membership in held} - {Role.SYSTEM_OWNER}
    owns = [membership for membership in held if membership.role == Role.SYSTEM_OWNER]
    if not owns:
        return rows.filter(Exists(factors.filter(role__in=roles)))
    about = RequestSystem.objects.filter(request=OuterRef("pk"))
    teams = {team.key for membership in owns for team in (membership.team or membership.person.team,) if team is not None}
    owned = Q(kind__in=ABOUT_NO_SYSTEM) & ~Q(Exists(about))
    for team in sorted(teams):
        hers = RequestSystem.objects.filter(system__owner=team).values("request")
        owned |= Q(pk__in=hers) & ~Q(Exists(about.exclude(system__owner=team)))
    rows = rows.alias(for_owner=Subquery(factors.filter(role=Role.SYSTEM_OWNER).values("pk")[:1]))
    asks = owned & Q(for_owner__isnull=False)
    if roles:
        rows = rows.alias(for_role=Subquery(factors.filter(role__in=roles).values("pk")[:1]))
        asks |= Q(for_role__isnull=False)
    return rows.filter(asks)


def _shown(rows: QuerySet[SignOffRequest], sight: Sight) -> QuerySet[SignOffRequest]:
    about = ("requester__team", "subject_version__subject", "policy", "policy_version__policy", "evidence", "grant", "dossier")
    # Documents are large; who shows one reads it by itself.
    heavy = ("dossier__content", "policy_version__text", "policy_version__resolved", "subject_version__pin")
    return with_request_links(rows.select_related(*about).defer(*heavy).prefetch_related("about_systems__system"), sight)
