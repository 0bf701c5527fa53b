"""What saying that a name means a subject version does: which evidence lands, and which verdicts and grants may read otherwise then."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.models import Count, QuerySet

from compliance.models import Grant
from compliance.selectors.sight import Sight, visible_grants
from compliance.vocabulary import GrantStatus
from evaluations.kernel.canonical import digest
from evaluations.models import AliasAssignment, Evidence, Source, SubjectVersion
from evaluations.selectors.names import versions_touched
from policies.models import Standing

SHOWN_EVIDENCE = 20
LIVE = (GrantStatus.ACTIVE, GrantStatus.SUSPENDED)


class Touched(NamedTuple):
    """What a statement about a name touches. `now` are its present meanings by source ("" for any), newest first.

    `evidence` is everything under the name in that source (or in any), newest first, and `landing` how much that is. `grants` live,
    `standings` are the present verdicts, each about a version whose evidence may read otherwise. `digest` is over all that.
    """

    name: str
    source: Source | None
    means: SubjectVersion | None
    now: Sequence[AliasAssignment]
    evidence: QuerySet[Evidence]
    landing: int
    standings: Sequence[Standing]
    grants: Sequence[Grant]
    digest: str


def touched_by(*, name: str, source: Source | None, means: SubjectVersion | None) -> Touched:
    """Return what would be touched if the name, in a source or in any, meant this version (None: nobody)."""
    now = list(
        AliasAssignment.objects.filter(name_as_written=name)
        .select_related("source", "subject_version__subject")
        .order_by("source_id", "-id")
        .distinct("source_id")
    )
    evidence = Evidence.objects.filter(subject_as_written=name, **({} if source is None else {"source": source}))
    versions = versions_touched(name, means)
    standings = list(
        Standing.objects.filter(subject_version_id__in=versions)
        .select_related("verdict", "policy_version__policy", "subject_version__subject")
        .order_by("subject_version__subject__key", "policy_version__policy__name", "id")
    )
    grants = list(
        Grant.objects.filter(subject_version_id__in=versions, status__in=LIVE)
        .select_related("subject_version__subject", "requester")
        .order_by("id")
    )
    landing = evidence.count()
    seen: dict[str, Any] = {
        "name": name,
        "source": source.key if source else "",
        "means": means.digest if means else "",
        "now": sorted(row.pk for row in now),
        "evidence": landing,
        "verdicts": [str(row.verdict.uid) for row in standings],
        "grants": [f"{row.uid} {row.status}" for row in grants],
    }
    newest = evidence.select_related("source", "document").annotate(seen=Count("observations")).order_by("-id")
    return Touched(name, source, means, now, newest, landing, standings, grants, digest(seen))


def grants_seen(touched: Touched, sight: Sight) -> list[Grant]:
    """Return those of the touched grants that somebody may see."""
    visible = set(visible_grants(sight).filter(pk__in=[row.pk for row in touched.grants]).values_list("pk", flat=True))
    return [row for row in touched.grants if row.pk in visible]
