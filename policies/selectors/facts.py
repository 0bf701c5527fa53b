"""Gathers the facts of judgements: what `judge` reads, for many subject versions and many policies at once."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from evaluations.models import SubjectVersion, SubjectVersionMember
from evaluations.selectors.evidence import names_meaning, observations_about
from evaluations.vocabulary import SubjectKind
from policies.language.compiled import CompiledPolicy
from policies.language.facts import NOTHING, AliasUsed, Candidate, Facts, Member
from policies.selectors.policies import metrics_of_all

Gathered = tuple[SubjectVersion, Facts]
Reading = tuple[str, str]
"""(metric, benchmark): what a clause reads, short of what it then says about each observation.

Not the slice, nor whom it is about: a rule that finds nothing better names the observation on another slice as its reason, and the
facts document holds it."""


class Asked(NamedTuple):
    """A policy in one domain, with what bindings make stricter there."""

    compiled: CompiledPolicy
    domain: str
    tightened: Mapping[str, Decimal] = NOTHING


def readings_of(compiled: CompiledPolicy) -> set[Reading]:
    """Return what the clauses of a policy read."""
    return {(clause.metric, clause.benchmark) for clause in compiled.clauses.values()}


def gather_facts(
    compiled: CompiledPolicy,
    versions: Sequence[SubjectVersion],
    *,
    domain: str,
    known_at: datetime,
    tightened: Mapping[str, Decimal] = NOTHING,
) -> Iterator[Gathered]:
    """Yield the facts of each subject version (with `subject` loaded), in the given order, as known at an instant.

    `tightened` holds the parameters that bindings make stricter. Raises `LooserParameter`.
    """
    gatherer = FactsGatherer([Asked(compiled, domain, tightened)], versions, known_at=known_at)
    for version in versions:
        yield version, gatherer.facts_of(version, 0)


class FactsGatherer:
    """The facts of some subject versions (with `subject` loaded) for many policies, as known at an instant.

    Everything is read at once, in as many queries for one policy as for a hundred, and policies that read the same observations are
    handed the very same tuples. Raises `LooserParameter`.
    """

    def __init__(self, asked: Sequence[Asked], versions: Sequence[SubjectVersion], *, known_at: datetime) -> None:
        self._asked = asked
        self._params = [item.compiled.effective_params(item.tightened) for item in asked]
        self._metrics = metrics_of_all([item.compiled for item in asked], known_at=known_at)
        self._read = [
            [(name, (clause.metric, clause.benchmark)) for name, clause in item.compiled.clauses.items()] for item in asked
        ]
        self._routes = _routes([version for version in versions if version.subject.kind != SubjectKind.MODEL])
        members = [member for route in self._routes.values() for member in route]
        ids = {version.pk for version in (*versions, *members)}
        self._seen = _seen(ids, {reading for clauses in self._read for _, reading in clauses}, known_at)
        self._names = {
            pk: tuple(AliasUsed(*meaning) for meaning in held) for pk, held in names_meaning(ids, known_at=known_at).items()
        }

    def facts_of(self, version: SubjectVersion, place: int) -> Facts:
        """Return the facts of a subject version for the policy at this place of `asked`."""
        route = None
        if version.subject.kind != SubjectKind.MODEL:
            route = tuple([self._member(member, place) for member in self._routes.get(version.pk, ())])
        return Facts(
            subject_key=version.subject.key,
            subject_version_digest=version.digest,
            domain=self._asked[place].domain,
            params=self._params[place],
            candidates=self._candidates(version.pk, place),
            aliases=self._names.get(version.pk, ()),
            metrics=self._metrics[place],
            route=route,
            route_closed=version.closed and route != (),
        )

    def _member(self, member: SubjectVersion, place: int) -> Member:
        return Member(member.subject.key, member.digest, self._candidates(member.pk, place), self._names.get(member.pk, ()))

    def _candidates(self, version_id: int, place: int) -> dict[str, tuple[Candidate, ...]]:
        seen = self._seen.get(version_id)
        if not seen:
            return {}
        # A clause of which nothing is known is left out, so that the facts of one policy do not depend on what others read.
        return {name: seen[reading] for name, reading in self._read[place] if reading in seen}


def _seen(ids: set[int], readings: set[Reading], known_at: datetime) -> dict[int, dict[Reading, tuple[Candidate, ...]]]:
    metrics, benchmarks = {metric for metric, _ in readings}, {benchmark for _, benchmark in readings}
    found: dict[int, dict[Reading, tuple[Candidate, ...]]] = {}
    for version_id, rows in observations_about(ids, metrics=metrics, benchmarks=benchmarks, known_at=known_at).items():
        groups: defaultdict[Reading, list[Candidate]] = defaultdict(list)
        for row in rows:
            reading = row.metric, row.benchmark
            if reading in readings:
                groups[reading].append(Candidate._make(row[1:]))
        found[version_id] = {reading: tuple(candidates) for reading, candidates in groups.items()}
    return found


def _routes(versions: Sequence[SubjectVersion]) -> dict[int, list[SubjectVersion]]:
    routes: dict[int, list[SubjectVersion]] = {version.pk: [] for version in versions}
    if not versions:
        return routes
    members = SubjectVersionMember.objects.filter(version__in=versions).select_related("member__subject").order_by("member_id")
    for membership in members:
        routes[membership.version_id].append(membership.member)
    return routes
