"""Grants as they stand at the moment of use: read from the row and the clock, never from what a sweeper has got round to."""

from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When

from compliance.models import Grant, GrantEvent, GrantSystem
from compliance.selectors.sight import Sight, visible_grants
from compliance.vocabulary import Cause, EffectiveStatus, GrantStatus, StopScope
from evaluations.models import Benchmark, Subject, SubjectVersionMember
from policies.models import PolicyVersion, System
from policies.selectors.policies import compile_readable


class GrantStanding(NamedTuple):
    """How a grant stands at an instant. `until` is when time alone changes that next, None where it does not."""

    usable: bool
    status: EffectiveStatus
    cause: Cause
    until: datetime | None


def standing_of(grant: Grant, *, at: datetime) -> GrantStanding:
    """Return how a grant stands, from its row and an instant alone.

    The instant of an end is the first at which it is over. A grant that nobody has begun is not usable, also after its start has
    come: its signers are looked at again first.
    """
    cause = Cause(grant.cause)
    if grant.status in (GrantStatus.EXPIRED, GrantStatus.REVOKED):
        return GrantStanding(False, EffectiveStatus(grant.status), cause, None)
    if at >= grant.ends_at:
        return GrantStanding(False, EffectiveStatus.EXPIRED, Cause.ENDED, None)
    if grant.status == GrantStatus.SUSPENDED:
        return GrantStanding(False, EffectiveStatus.SUSPENDED, cause, grant.ends_at)
    if grant.begun_at is None or at < grant.starts_at:
        return GrantStanding(False, EffectiveStatus.NOT_BEGUN, Cause.NOT_BEGUN, grant.starts_at if at < grant.starts_at else None)
    if grant.recertify_by is not None and at >= grant.recertify_by:
        return GrantStanding(False, EffectiveStatus.SUSPENDED, Cause.RECERTIFICATION_MISSED, grant.ends_at)
    return GrantStanding(True, EffectiveStatus.ACTIVE, cause, min(grant.recertify_by or grant.ends_at, grant.ends_at))


def with_standing(grants: QuerySet[Grant], *, at: datetime) -> QuerySet[Any]:
    """Return the grants with `standing` beside each: the status that `standing_of` gives, for the database to filter by."""
    return grants.annotate(
        standing=Case(
            When(status__in=[GrantStatus.EXPIRED, GrantStatus.REVOKED], then=F("status")),
            When(ends_at__lte=at, then=Value(EffectiveStatus.EXPIRED.value)),
            When(status=GrantStatus.SUSPENDED, then=F("status")),
            When(Q(begun_at=None) | Q(starts_at__gt=at), then=Value(EffectiveStatus.NOT_BEGUN.value)),
            When(recertify_by__lte=at, then=Value(EffectiveStatus.SUSPENDED.value)),
            default=Value(EffectiveStatus.ACTIVE.value),
        )
    )


def find_grants(
    sight: Sight,
    *,
    now: datetime,
    status: EffectiveStatus | None = None,
    system: str | None = None,
    subject: str | None = None,
    kind: str | None = None,
    at: datetime | None = None,
) -> QuerySet[Any]:
    """Return the grants that somebody may see, unordered, in one statement, each with `standing` now and `system_keys`.

    `status` is how they stand now; `at` leaves those that could be used at that instant, by what was recorded up to then:
    "who could write to hr-prod on 1 September?". One that was suspended at that instant is not among them.
    """
    grants = with_standing(visible_grants(sight), at=now)
    if status is not None:
        grants = grants.filter(standing=status)
    if system is not None:
        grants = grants.filter(Exists(GrantSystem.objects.filter(grant=OuterRef("pk"), system__key=system)))
    if subject is not None:
        grants = grants.filter(subject_version__subject__key=subject)
    if kind is not None:
        grants = grants.filter(kind=kind)
    if at is not None:
        grants = _usable_then(grants, at)
    keys = GrantSystem.objects.filter(grant=OuterRef("pk")).order_by("system__key").values("system__key")
    return grants.annotate(system_keys=ArraySubquery(keys)).select_related("subject_version__subject", "request", "renews")


def live_grants_on(*, subject_version_id: int, system_id: int, action: str, at: datetime) -> list[Grant]:
    """Return the grants that may be used at an instant for exactly this: the subject version, the system, the action."""
    link = GrantSystem.objects.filter(grant=OuterRef("pk"), system=system_id)
    named = Grant.objects.filter(Exists(link), subject_version=subject_version_id, actions__contains=[action])
    return list(with_standing(named, at=at).filter(standing=EffectiveStatus.ACTIVE).order_by("id"))


def _usable_then(grants: QuerySet[Any], at: datetime) -> QuerySet[Any]:
    # Once begun stays begun, and start and end never change: the rest is told by the last event up to then.
    last = GrantEvent.objects.filter(grant=OuterRef("pk"), at__lte=at).order_by("-number")
    active = GrantEvent.objects.filter(
        Q(recertify_by=None) | Q(recertify_by__gt=at), pk=OuterRef("last_event"), status=GrantStatus.ACTIVE
    )
    begun = grants.filter(starts_at__lte=at, ends_at__gt=at, begun_at__lte=at)
    return begun.annotate(last_event=Subquery(last.values("pk")[:1])).filter(Exists(active))


# --- what the stop button stops


def scope_exists(scope: StopScope, key: str) -> bool:
    """True where a scope names something that is registered."""
    match scope:
        case StopScope.SUBJECT:
            return Subject.objects.filter(key=key).exists()
        case StopScope.SYSTEM:
            return System.objects.filter(key=key).exists()
        case StopScope.PROVIDER:
            return bool(key) and Subject.objects.filter(provider=key).exists()
        case StopScope.BENCHMARK:
            return Benchmark.objects.filter(key=key).exists()
        case StopScope.ALL:
            return key == ""


def grants_in_scope(scope: StopScope, key: str, *, at: datetime) -> QuerySet[Grant]:
    """Return the active grants that a stop would suspend, also those that have not begun yet, but none that has ended.

    A subject and a provider reach every agent and route that has one of their models behind it. A benchmark reaches the grants of
    whose signed dossier a policy reads it; a break-glass was signed by no policy and rests on none.
    """
    active = Grant.objects.filter(status=GrantStatus.ACTIVE, ends_at__gt=at)
    match scope:
        case StopScope.SUBJECT:
            return active.filter(_reaches(subject__key=key))
        case StopScope.SYSTEM:
            return active.filter(Exists(GrantSystem.objects.filter(grant=OuterRef("pk"), system__key=key)))
        case StopScope.PROVIDER:
            return active.filter(_reaches(subject__provider=key))
        case StopScope.BENCHMARK:
            return active.filter(pk__in=_grants_reading(key))
        case StopScope.ALL:
            return active


def _reaches(**about: str) -> Q:
    behind = SubjectVersionMember.objects.filter(
        version=OuterRef("subject_version"), **{f"member__{name}": value for name, value in about.items()}
    )
    return Q(**{f"subject_version__{name}": value for name, value in about.items()}) | Q(Exists(behind))


_READING = """
SELECT held.id FROM compliance_grant held JOIN compliance_dossier paper ON paper.id = held.dossier_id
WHERE held.status = 'active' AND EXISTS (
    SELECT FROM jsonb_array_elements(convert_from(paper.content, 'UTF8')::jsonb -> 'policies') AS named
    WHERE named ->> 'digest' = ANY (%s)
)
"""


def _grants_reading(benchmark: str) -> list[int]:
    """Return the active grants whose dossier names a policy version with a clause on a benchmark."""
    versions = list(PolicyVersion.objects.filter(activations__isnull=False).distinct().order_by("id"))
    compiled, unreadable = compile_readable(versions)
    # What a text reads that cannot be read nobody can say: it may be this.
    reading = [version.digest for version, _ in unreadable]
    reading += [
        held.digest for held in compiled.values() if any(clause.benchmark == benchmark for clause in held.clauses.values())
    ]
    with connection.cursor() as cursor:
        cursor.execute(_READING, [reading])
        return [pk for (pk,) in cursor.fetchall()]
