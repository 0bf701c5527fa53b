"""Which pulls of the stop button reach what a request asks for: whoever signed before one of them did not know of it.

A stop suspends what is active; what is still being signed has no grant to suspend, and so is told of it. It is looked for in the
ledger: one that found nothing to suspend moves no row.
"""

from collections.abc import Sequence
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import QuerySet

from compliance.models import LedgerEntry, SignOffRequest
from compliance.selectors.proposals import plain_value
from compliance.vocabulary import StopScope
from evaluations.models import SubjectVersion, SubjectVersionMember
from policies.models import System
from policies.selectors.applicable import InForce

PULLED = "stop.pulled"
Pulled = Sequence[dict[str, Any]]
"""Entries of the ledger, as parsed."""


def with_stops(versions: QuerySet[SubjectVersion], request: SignOffRequest) -> tuple[SubjectVersion, Pulled]:
    """Return the subject version of a request, and every stop that was pulled since it was filed, in one query."""
    entries = LedgerEntry.objects.filter(action=PULLED, recorded_at__gte=request.created_at).order_by("id").values("content")
    found: Any = versions.annotate(pulled=ArraySubquery(entries)).get(sign_off_requests=request)
    return found, [plain_value(bytes(content)) for content in found.pulled]


def stops_over(pulled: Pulled, version: SubjectVersion, systems: Sequence[System], in_force: InForce) -> list[dict[str, Any]]:
    """Return those of the stops that reach a subject version at systems, under the policies in force, in their order."""
    if not pulled:
        return []
    members = SubjectVersionMember.objects.filter(version=version).select_related("member__subject")
    reached = [version.subject, *(link.member.subject for link in members)]
    benchmarks = {clause.benchmark for compiled in in_force.compiled for clause in compiled.clauses.values()}
    if in_force.unreadable:
        # What a text reads that cannot be read nobody can say: it may be this.
        benchmarks |= {entry["new"]["key"] for entry in pulled}
    keys: dict[str, set[str]] = {
        StopScope.SUBJECT: {subject.key for subject in reached},
        StopScope.PROVIDER: {subject.provider for subject in reached},
        StopScope.SYSTEM: {system.key for system in systems},
        StopScope.BENCHMARK: benchmarks,
        StopScope.ALL: {""},
    }
    return [
        {**{name: entry["new"][name] for name in ("scope", "key", "reason")}, "at": entry["at"]}
        for entry in pulled
        if entry["new"]["key"] in keys[entry["new"]["scope"]]
    ]
