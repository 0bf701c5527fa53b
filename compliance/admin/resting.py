"""What rests on evidence, and on a subject: verdicts before and after a ruling, and the grants that would fall with them."""

from django.http import HttpRequest

from compliance.admin.grants import grants_table
from compliance.admin.sighted import sight
from compliance.selectors.grants import find_grants
from compliance.selectors.resting import MOST_VERDICTS, Resting, read_resting, versions_meant
from evaluations.admin.evidence import EvidenceAdmin
from evaluations.admin.subjects import SubjectAdmin
from evaluations.kernel.clock import now
from evaluations.kernel.display import Cell, Section, Table, link
from evaluations.models import Evidence, Subject, SubjectVersionMember
from policies.admin.marks import domain_words, result_chip
from policies.models import Verdict

SHOWN = 50
NO_VERDICT = "no verdict"


@EvidenceAdmin.add_section
def verdicts_resting(row: Evidence, request: HttpRequest) -> Section:
    found = read_resting(row, at=now())
    columns = ("Subject version", "Policy version", "Domain", *(("Before the ruling",) if found.ruled_at else ()), "Now")
    return Table(
        "Verdicts that rest on it",
        columns,
        [_verdicts(item, ruled=found.ruled_at is not None) for item in found.verdicts],
        empty="No verdict that stands is decided by it.",
        note=_told(found.ruled_at),
        more=f"The first {MOST_VERDICTS}." if found.more else "",
    )


def _told(ruled_at: object) -> Cell:
    if ruled_at is None:
        return "What it decides now. A dispute or a retraction would change these."
    return "What it decided when it was ruled on, beside what stands since."


def _verdicts(item: Resting, *, ruled: bool) -> list[Cell]:
    cells: list[Cell] = [
        link(item.now.subject_version),
        link(item.now.policy_version),
        domain_words(item.now.domain),
    ]
    if ruled:
        cells.append(_chip(item.before))
    return [*cells, _chip(item.now)]


def _chip(verdict: Verdict | None) -> Cell:
    return NO_VERDICT if verdict is None else link(verdict, result_chip(verdict.result))


@EvidenceAdmin.add_section
def grants_resting(row: Evidence, request: HttpRequest) -> Section:
    at = now()
    grants = find_grants(sight(request), now=at).filter(subject_version__in=versions_meant(row), ends_at__gt=at)
    return grants_table("Grants that may fall with it", list(grants.order_by("-id")[:SHOWN]))


@SubjectAdmin.add_section
def grants_of_subject(row: Subject, request: HttpRequest) -> Section:
    """Show the grants that the reader sees of a subject, and of agents and routes that reach it: with it they would fall."""
    reached = SubjectVersionMember.objects.filter(member__subject=row).values("version")
    seen = find_grants(sight(request), now=now())
    grants = seen.filter(subject_version__subject=row) | seen.filter(subject_version__in=reached)
    return grants_table("Grants that rest on it", list(grants.order_by("-id")[:SHOWN]))
