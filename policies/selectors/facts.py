"""Gathers the facts of judgements: what `judge` reads, for many subject versions at once."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from evaluations.models import SubjectVersion, SubjectVersionMember
from evaluations.selectors.evidence import NameMeaning, SeenObservation, names_meaning, observations_about
from evaluations.vocabulary import SubjectKind
from policies.language.compiled import CompiledPolicy
from policies.language.facts import NOTHING, AliasUsed, Candidate, Facts, Member
from policies.selectors.policies import metrics_of

Gathered = tuple[SubjectVersion, Facts]


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
    gatherer = _Gatherer(compiled, versions, domain, known_at, compiled.effective_params(tightened))
    for version in versions:
        yield version, gatherer.facts_of(version)


class _Gatherer:
    def __init__(
        self,
        compiled: CompiledPolicy,
        versions: Sequence[SubjectVersion],
        domain: str,
        known_at: datetime,
        params: Mapping[str, Decimal],
    ) -> None:
        self._compiled = compiled
        self._params = params
        self._domain = domain
        self._metrics = metrics_of(compiled, known_at=known_at)
        self._routes = _routes([version for version in versions if version.subject.kind != SubjectKind.MODEL])
        members = [member for route in self._routes.values() for member in route]
        ids = {version.pk for version in (*versions, *members)}
        clauses = compiled.clauses.values()
        self._seen = observations_about(
            ids,
            metrics={clause.metric for clause in clauses},
            benchmarks={clause.benchmark for clause in clauses},
            known_at=known_at,
        )
        self._names = names_meaning(ids, known_at=known_at)

    def facts_of(self, version: SubjectVersion) -> Facts:
        route = None
        if version.subject.kind != SubjectKind.MODEL:
            route = tuple(self._member(member) for member in self._routes.get(version.pk, ()))
        return Facts(
            subject_key=version.subject.key,
            subject_version_digest=version.digest,
            domain=self._domain,
            params=self._params,
            candidates=self._candidates(version.pk),
            aliases=self._aliases(version.pk),
            metrics=self._metrics,
            route=route,
            route_closed=version.closed and route != (),
        )

    def _member(self, member: SubjectVersion) -> Member:
        return Member(member.subject.key, member.digest, self._candidates(member.pk), self._aliases(member.pk))

    def _candidates(self, version_id: int) -> dict[str, tuple[Candidate, ...]]:
        seen = self._seen.get(version_id)
        if not seen:
            return {}
        return {
            name: tuple(_candidate(item) for item in seen if item.metric == clause.metric and item.benchmark == clause.benchmark)
            for name, clause in self._compiled.clauses.items()
        }

    def _aliases(self, version_id: int) -> tuple[AliasUsed, ...]:
        meanings: tuple[NameMeaning, ...] = self._names.get(version_id, ())
        return tuple(AliasUsed(*meaning) for meaning in meanings)


def _candidate(item: SeenObservation) -> Candidate:
    return Candidate._make(item[1:])


def _routes(versions: Sequence[SubjectVersion]) -> dict[int, list[SubjectVersion]]:
    routes: dict[int, list[SubjectVersion]] = {version.pk: [] for version in versions}
    if not versions:
        return routes
    members = SubjectVersionMember.objects.filter(version__in=versions).select_related("member__subject").order_by("member_id")
    for membership in members:
        routes[membership.version_id].append(membership.member)
    return routes
