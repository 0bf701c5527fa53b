"""Reads about break-glasses: what was on record when one was opened, and whose review is owed."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from compliance.models import Grant, Person, SignOffRequest
from compliance.selectors.access import live_roles
from compliance.selectors.dossiers.access import judge_access, obstacles_of
from compliance.selectors.dossiers.base import person_facts
from compliance.vocabulary import GrantKind, RequestKind, RequestStatus
from evaluations.models import SubjectVersion
from policies.models import System
from policies.selectors.applicable import read_in_force
from policies.vocabulary import Outcome, Result

REVIEW_WITHIN = timedelta(hours=72)
REVIEWED = (RequestStatus.COMPLETED, RequestStatus.REJECTED)
"""A review took place, whatever it said."""


def ordinary_road(
    version: SubjectVersion, systems: Sequence[System], actions: Sequence[str], *, person: UUID, at: datetime
) -> dict[str, Any]:
    """Return what a request for the same access would have met: the verdicts, and the obstacles; none where nothing was in its way."""
    roles = {membership.role for membership in live_roles(person_id=person, at=at)}
    requester: Mapping[str, Any] = person_facts(Person.objects.select_related("team").get(pk=person), roles)
    in_force = read_in_force()
    judged = judge_access(version, systems, actions, requester=requester, in_force=in_force, at=at)
    obstacles = obstacles_of(judged, systems, actions, version, unreadable=in_force.unreadable, at=at)
    return {
        "verdicts": [
            {
                "policy": item.applied.version.policy.name,
                "version": item.applied.version.number,
                "system": item.applied.system.key,
                "domain": item.applied.domain,
                "verdict": str(item.verdict.uid) if item.verdict else None,
                "outcome": str(item.verdict.outcome) if item.verdict else str(Outcome.FAIL),
                "result": str(item.verdict.result) if item.verdict else str(Result.MISSING),
            }
            for item in judged
        ],
        "obstacles": [item._asdict() for item in obstacles],
    }


def unreviewed(*, at: datetime) -> QuerySet[Grant]:
    """Return the break-glasses whose review is overdue: none took place, and none is open that was asked for in the last 72 hours."""
    reviews = SignOffRequest.objects.filter(grant=OuterRef("pk"), kind=RequestKind.BREAK_GLASS_REVIEW)
    under_way = reviews.filter(status=RequestStatus.OPEN, created_at__gt=at - REVIEW_WITHIN, expires_at__gt=at)
    opened = Grant.objects.filter(kind=GrantKind.BREAK_GLASS)
    return opened.exclude(Exists(reviews.filter(status__in=REVIEWED))).exclude(Exists(under_way))
