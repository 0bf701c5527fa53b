"""Requests for grants as the draft profile "Access Request and Approval" of AuthZEN 1.0 tells of them: a task, and its approval.

A task is a request of the kind `grant`, whoever filed it and by whichever door, and its id is the request's. An approval is the grant
that the signatures made: its scope is the grant's subject version, actions and systems, which is what was denied where a denial was
asked about. So nothing is kept twice, and what an approval is worth is read where it is decided.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef

from compliance.models import Decision, Grant, IdempotencyKey, RequestSystem, SignOffRequest
from compliance.selectors.grants import standing_of
from compliance.selectors.proposals import AccessProposal
from compliance.selectors.requests import find_request, status_at
from compliance.selectors.sight import Sight, visible_decisions, visible_grants, visible_requests
from compliance.selectors.standings import read_standing
from compliance.vocabulary import EffectiveStatus, RequestKind, RequestStatus
from evaluations.models import SubjectVersion
from policies.models import System

DENIALS = "denial"
"""Under this caller a denial's id is a key that is used once: its reference is the request that was filed about it."""
EMERGENCY = "The caller calls it an emergency."
"""A paragraph of the reason of a request about a denial."""
BECAUSE = "A machine asked for it when it was denied: decision {}."
"""The last paragraph of such a reason."""
_BECAUSE = re.compile(BECAUSE.format("([0-9a-f-]{36})") + r"\Z")
TASK_KEPT = timedelta(days=30)
"""So long is a closed task told of, and at least until the end of the grant that it made; its request is kept for good."""

STATUS: Mapping[str, str] = {
    RequestStatus.OPEN: "pending",
    RequestStatus.COMPLETED: "approved",
    RequestStatus.REJECTED: "denied",
    RequestStatus.WITHDRAWN: "cancelled",
    RequestStatus.EXPIRED: "expired",
}
"""The profile's word for where a request stands. Its `failed` is never said: what breaks while somebody signs is undone, and pends."""


class Progress(NamedTuple):
    """How far the signatures are: the next one, of so many, the factor it fills, and the roles that are waited for."""

    current_step: int
    total_steps: int
    step_name: str
    awaiting: Sequence[str]


class Task(NamedTuple):
    """Where a request stands at an instant. At `expires_at` it can be signed no longer or, where it is closed, is told of no longer."""

    request: SignOffRequest
    status: str
    expires_at: datetime
    progress: Progress | None
    grant: Grant | None

    def is_over(self, at: datetime) -> bool:
        """True where nothing is told of the task any more."""
        return self.status != STATUS[RequestStatus.OPEN] and at >= self.expires_at


def find_task(sight: Sight, *, uid: UUID, at: datetime) -> Task | None:
    """Return a task that somebody may see, None where there is none."""
    request = find_request(sight, uid=uid)
    return None if request is None or request.kind != RequestKind.GRANT else read_task(request, at=at)


def read_task(request: SignOffRequest, *, at: datetime) -> Task:
    """Return where a request for a grant stands at an instant."""
    status = status_at(request, at)
    if status == RequestStatus.OPEN:
        return Task(request, STATUS[status], request.expires_at, _progress(request, at), None)
    grant = Grant.objects.filter(request=request).first()
    kept = (request.closed_at or request.expires_at) + TASK_KEPT
    return Task(request, STATUS[status], kept if grant is None else max(kept, grant.ends_at), None, grant)


def find_open_request(*, person: UUID, subject_version: SubjectVersion, system: System, action: str, at: datetime) -> UUID | None:
    """Return an open request of a person's that asks for this among other things, None where there is none."""
    about = RequestSystem.objects.filter(request=OuterRef("pk"), system=system)
    rows = SignOffRequest.objects.filter(
        Exists(about),
        kind=RequestKind.GRANT,
        status=RequestStatus.OPEN,
        expires_at__gt=at,
        requester=person,
        subject_version=subject_version,
    )
    found = (row.uid for row in rows.order_by("id") if action in AccessProposal.read(bytes(row.proposal)).actions)
    return next(found, None)


def find_request_about(sight: Sight, *, denial: UUID) -> SignOffRequest | None:
    """Return the request that was filed about a denial, None where there is none that somebody sees."""
    held = IdempotencyKey.objects.filter(caller=DENIALS, key=str(denial)).first()
    if held is None:
        return None
    return visible_requests(sight).filter(uid=held.reference.rpartition(" ")[2]).first()


class Origin(NamedTuple):
    """The denial that a request was filed about. `decision` is None where the reader does not see it."""

    denial: UUID
    decision: Decision | None
    emergency: bool


def origin_of(sight: Sight, request: SignOffRequest) -> Origin | None:
    """Return which denial a request was filed about by a machine, None for a request of any other origin."""
    found = _BECAUSE.search(request.reason)
    # A reason is what somebody wrote; the key is what was done.
    if (
        found is None
        or not IdempotencyKey.objects.filter(caller=DENIALS, key=found[1], reference__endswith=f" {request.uid}").exists()
    ):
        return None
    denial = UUID(found[1])
    return Origin(denial, visible_decisions(sight).filter(uid=denial).first(), called_emergency(request))


def called_emergency(request: SignOffRequest) -> bool:
    """True where the reason of a machine's request says that its caller calls it an emergency."""
    return EMERGENCY in request.reason.split("\n\n")


def _progress(request: SignOffRequest, at: datetime) -> Progress:
    factors = read_standing(request, at=at).factors
    total = sum(factor.approve for factor in factors)
    waiting = [factor for factor in factors if factor.open]
    done = total - sum(factor.open for factor in waiting)
    roles = list(dict.fromkeys(factor.role for factor in waiting))
    return Progress(min(done + 1, total), total, waiting[0].factor if waiting else "", roles)


# --- approvals


class Presented(NamedTuple):
    """What a denied question was about, as the gate understood it: a subject version by key and number, an action, a system."""

    subject: str
    version: int
    action: str
    system: str


def approval_value(task: Task) -> dict[str, Any]:
    """Return the approval of a task that is approved. `state` is the digest of what was signed."""
    grant, dossier = task.grant, task.request.dossier
    if grant is None or dossier is None or task.request.closed_at is None:
        raise ValueError("the task is not approved")
    return {
        "id": str(grant.uid),
        "approved_at": task.request.closed_at,
        "approved_until": grant.ends_at,
        "state": dossier.digest,
    }


def find_approved(sight: Sight, approvals: Iterable[Any]) -> Mapping[UUID, Grant]:
    """Return the grants that approvals are of, by id, as far as somebody sees them; however many there are, in as many queries."""
    rows = visible_grants(sight).filter(request__kind=RequestKind.GRANT, request__dossier__isnull=False)
    named = {uid for uid in map(_id_of, approvals) if uid is not None}
    found = rows.select_related("subject_version__subject", "request__dossier").prefetch_related("grant_systems__system")
    return {grant.uid: grant for grant in found.filter(uid__in=named)} if named else {}


def word_for_approval(
    approved: Mapping[UUID, Grant], approval: Any, asked: Presented | None, *, waits: bool, at: datetime
) -> str:
    """Return the profile's reason for a denial to which an approval was presented, "" where none of its reasons is why.

    `approved` is what `find_approved` found. `asked` is None where the gate found nobody or nothing; `waits` says that the denial
    passes by itself. An approval that somebody does not see is one that is not there.
    """
    grant = _presented(approved, approval)
    if grant is None:
        return "approval_unverifiable"
    standing = standing_of(grant, at=at).status
    if standing in (EffectiveStatus.REVOKED, EffectiveStatus.EXPIRED):
        return "approval_expired"
    if asked is None or not _covers(grant, asked):
        return "out_of_scope"
    if standing == EffectiveStatus.NOT_BEGUN:
        return "grant_pending"
    return "" if waits else "policy_denied"


def _id_of(approval: Any) -> UUID | None:
    if not isinstance(approval, dict) or not isinstance(approval.get("id"), str):
        return None
    try:
        return UUID(approval["id"])
    except ValueError:
        return None


def _presented(approved: Mapping[UUID, Grant], approval: Any) -> Grant | None:
    uid = _id_of(approval)
    grant = None if uid is None else approved.get(uid)
    if grant is None or grant.request is None or grant.request.dossier is None:
        return None
    return grant if approval.get("state", grant.request.dossier.digest) == grant.request.dossier.digest else None


def _covers(grant: Grant, asked: Presented) -> bool:
    version = grant.subject_version
    if (version.subject.key, version.number) != (asked.subject, asked.version) or asked.action not in grant.actions:
        return False
    return asked.system in {link.system.key for link in grant.grant_systems.all()}
