"""The dossiers of judgements by people: a ruling on evidence, and the review of a break-glass."""

import json
from datetime import datetime

from compliance.models import Grant, SignOffRequest
from compliance.selectors.dossiers.access import subject_value, system_value
from compliance.selectors.dossiers.base import Built, close_dossier, excluded_people, floor_quorum, read_requester
from compliance.selectors.proposals import RulingProposal, shown_instant
from compliance.selectors.resting import grants_resting_on
from evaluations.models import Evidence, Observation
from policies.models import System
from policies.selectors.applicable import ask_facts
from policies.selectors.blast_radius import blast_radius, joined

SHOWN = 50


def build_ruling_dossier(request: SignOffRequest, *, at: datetime) -> Built:
    """Build the dossier of a ruling: the evidence, what was ruled before, and the grants that rest on it."""
    proposal = RulingProposal.read(bytes(request.proposal))
    evidence = Evidence.objects.select_related("document", "source").get(pk=request.evidence_id)
    quorum = floor_quorum("ruling")
    grants = [str(grant.uid) for grant in grants_resting_on(evidence)]
    body = {
        "question": {"ruling": proposal.kind, "link": proposal.link, "evidence": str(evidence.uid), "digest": evidence.digest},
        "evidence": {
            "source": evidence.source.key,
            "subject_as_written": evidence.subject_as_written,
            "document": evidence.document.digest,
            "submitted_by": evidence.submitted_by,
            "observations": Observation.objects.filter(evidence=evidence).count(),
        },
        "rulings": [
            {"ruling": ruling.kind, "reason": ruling.reason, "ruled_by": ruling.ruled_by}
            for ruling in evidence.rulings.order_by("id")
        ],
        "grants": grants[:SHOWN],
        "grants_count": len(grants),
    }
    requester, gone = read_requester(request, at=at)
    return close_dossier(
        request,
        body,
        quorum=quorum,
        excluded=excluded_people(request, quorum, submitters=[evidence.submitted_by]),
        asks=[{"requester": requester, "action": {"name": str(request.kind)}, "now": at}],
        obstacles=gone,
    )


def build_review_dossier(request: SignOffRequest, *, at: datetime) -> Built:
    """Build the dossier of a break-glass review: what was opened, by whom, why, and how much it could reach."""
    grant = Grant.objects.select_related("subject_version__subject").get(later_requests=request)
    systems = tuple(System.objects.filter(sign_off_requests__request=request).order_by("key"))
    quorum = floor_quorum("break_glass_review")
    # Who opened the glass may be gone by now: it is looked back at all the same.
    requester, _ = read_requester(request, at=at)
    body = {
        "question": {
            "grant": str(grant.uid),
            **subject_value(grant.subject_version),
            "actions": list(grant.actions),
            "systems": [system_value(system) for system in systems],
            "starts_at": shown_instant(grant.starts_at),
            "ends_at": shown_instant(grant.ends_at),
        },
        "justification": grant.reason,
        "blast_radius": joined(blast_radius(system, grant.actions) for system in systems).as_value(),
        "on_record": json.loads(bytes(request.proposal)),
    }
    return close_dossier(
        request,
        body,
        quorum=quorum,
        excluded=excluded_people(request, quorum),
        asks=[ask_facts(grant.subject_version.subject, grant.actions[0], system, requester, at) for system in systems],
        systems=systems,
    )
