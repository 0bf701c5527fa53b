"""The dossier of a source: who vouches, how far they are trusted now, and what another tier would move."""

from datetime import datetime

from compliance.models import SignOffRequest
from compliance.selectors.dossiers.base import Built, Obstacle, close_dossier, excluded_people, floor_quorum, read_requester
from compliance.selectors.proposals import SourceProposal
from evaluations.models import Evidence, Source
from evaluations.selectors.refreshing import schedule_of
from evaluations.vocabulary import TrustTier
from policies.models import Policy
from policies.selectors.policies import policies_asking_between

_TOLD = ("title", "publisher", "url")


def build_source_dossier(request: SignOffRequest, *, at: datetime) -> Built:
    """Build the dossier of a source: what is said of it, its tier before and after, and whose bar lies between the two.

    Whether it has evidence is told, and not how much: each new file would take the signatures from under a tier that is to be lowered.
    For the same reason whoever stands behind what it handed in is barred from a tier that makes it count for more, and from no other:
    nobody gains by her own evidence counting for less, and nobody could stop a lowering by handing in more.
    """
    proposal = SourceProposal.read(bytes(request.proposal))
    source = Source.objects.filter(key=proposal.key).first()
    assigned = None if source is None else source.trust_assignments.order_by("-id").first()
    before = None if assigned is None else str(assigned.tier)
    obstacles = []
    if source is not None:
        other = [name for name in _TOLD if getattr(proposal, name) not in ("", getattr(source, name))]
        if other:
            told = f"`{source.key}` is registered with another {' and '.join(other)}: ask anew without it"
            obstacles.append(Obstacle("source_differs", told))
    if before == proposal.tier:
        obstacles.append(Obstacle("already_trusted", f"`{proposal.key}` is trusted as {before}: nothing would change"))
    moved = policies_asking_between(before, proposal.tier)
    quorum = floor_quorum(request.kind)
    body = {
        "question": {"source": proposal.key, "tier": proposal.tier, "replaces": before},
        "source": {
            "registered": source is not None,
            "key": proposal.key,
            **{name: getattr(source or proposal, name) for name in _TOLD},
        },
        "trust_before": None
        if assigned is None
        else {"tier": before, "reason": assigned.reason, "recorded_at": assigned.recorded_at},
        "has_evidence": source is not None and Evidence.objects.filter(source=source).exists(),
        "asked_between": sorted(Policy.objects.filter(pk__in=moved).values_list("name", flat=True)),
    }
    requester, gone = read_requester(request, at=at)
    return close_dossier(
        request,
        body,
        quorum=quorum,
        excluded=excluded_people(
            request,
            quorum,
            behind_source=_behind(source) if source is not None and _is_raised(before, proposal.tier) else (),
        ),
        asks=[{"requester": requester, "action": {"name": str(request.kind)}, "now": at}],
        obstacles=[*gone, *obstacles],
    )


def _is_raised(before: str | None, after: str) -> bool:
    return before is None or TrustTier.values.index(after) > TrustTier.values.index(before)


def _behind(source: Source) -> set[str]:
    """Return whoever submitted evidence of a source, and whoever stated its schedule, as rows cite them."""
    schedule = schedule_of(source.pk)
    stated = set() if schedule is None else {schedule.set_by}
    return stated | set(Evidence.objects.filter(source=source).order_by().values_list("submitted_by", flat=True).distinct())
