"""What a review of standing grants reads, for many grants at once: the number of queries does not grow with grants."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Count, Exists, OuterRef, Q

from compliance.models import Grant, GrantSystem, LedgerEntry, Person, Seat, SignOffRequest
from compliance.selectors.access import all_live_roles
from compliance.selectors.dossiers.access import Judged, deciding_of, judge_applied
from compliance.selectors.dossiers.base import person_facts
from compliance.selectors.proposals import plain_value
from compliance.selectors.waivers import live_waivers
from compliance.vocabulary import GrantKind, GrantStatus, RequestStatus
from evaluations.kernel.numbers import plain
from evaluations.models import AliasAssignment, Observation, Ruling, SubjectVersion, SubjectVersionMember
from evaluations.vocabulary import RulingKind
from policies.language.compiled import Clause
from policies.language.quorum import unite
from policies.models import PolicyVersion, System, Verdict
from policies.selectors.applicable import Applied, applicable_policies, read_in_force, standings_for
from policies.selectors.policies import compile_readable

REINSTATED = "subject_version.reinstated"
MOST_STRANGERS = 20


class Signed(NamedTuple):
    """The verdict that a grant was signed on, at one system under one policy."""

    uid: str
    core: Mapping[str, Any]
    clauses: Mapping[str, Clause]


class Stranger(NamedTuple):
    """A result newer than the signatures, on a version that the policy does not pin, that misses the bar. It decides nothing."""

    key: str
    value: Mapping[str, Any]


class Case(NamedTuple):
    """A grant with all that decides whether it may stand. What is told of it is held as plain values.

    `newer` names the version that runs now where it is another one and began to after the signatures; `moved` the names under which
    it was granted and that mean something else now; `rulings` what was ruled since on evidence that it was signed on, as
    `evidence_retracted:UID`; `uncovered` the actions that no policy covers; `factors` what the quorum asks for beyond its seats.
    """

    grant: Grant
    systems: tuple[System, ...]
    judged: tuple[Judged, ...]
    signed: Mapping[tuple[str, str], Signed]
    newer: str
    moved: tuple[Mapping[str, Any], ...]
    rulings: tuple[str, ...]
    strangers: tuple[Stranger, ...]
    uncovered: tuple[Mapping[str, str], ...]
    factors: tuple[Mapping[str, Any], ...]


def standing_grants(*, subject_version_ids: Collection[int], after: int = 0, limit: int | None = None) -> list[int]:
    """Return the ids of the active standing grants of these subject versions, in order, from the one after `after` on."""
    found = Grant.objects.filter(
        pk__gt=after, subject_version__in=subject_version_ids, status=GrantStatus.ACTIVE, kind=GrantKind.STANDING
    ).order_by("id")
    return list(found.values_list("id", flat=True)[:limit])


def subject_versions_of(subject_id: int) -> list[int]:
    """Return the versions of a subject that a grant was made for."""
    granted = Grant.objects.filter(subject_version__subject=subject_id).order_by()
    return sorted(set(granted.values_list("subject_version", flat=True)))


def subject_versions_at(system_id: int) -> list[int]:
    """Return the subject versions with a live grant for a system, and those with an open request about it."""
    live = Grant.objects.filter(grant_systems__system=system_id, status=GrantStatus.ACTIVE).order_by()
    asked = SignOffRequest.objects.filter(about_systems__system=system_id, status=RequestStatus.OPEN).order_by()
    return sorted(
        {
            *live.values_list("subject_version", flat=True),
            *asked.exclude(subject_version=None).values_list("subject_version", flat=True),
        }
    )


def read_cases(grant_ids: Collection[int], *, at: datetime) -> list[Case]:
    """Return those of the grants that are active and standing, each with all that decides whether it may stay so."""
    grants = list(
        Grant.objects.filter(pk__in=grant_ids, status=GrantStatus.ACTIVE, kind=GrantKind.STANDING)
        .select_related("subject_version__subject", "dossier")
        .order_by("pk")
    )
    return _Reader(grants, at).cases() if grants else []


class _Reader:
    def __init__(self, grants: Sequence[Grant], at: datetime) -> None:
        self._grants = grants
        self._at = at
        self._unreadable = False
        self._versions = {grant.subject_version_id: grant.subject_version for grant in grants}
        self._signed_at = {grant.pk: grant.dossier.recorded_at for grant in grants if grant.dossier is not None}
        self._since = min(self._signed_at.values(), default=at)
        self._reach = {pk: {pk} for pk in self._versions}
        members = SubjectVersionMember.objects.filter(version__in=self._versions)
        for version, member in members.values_list("version_id", "member_id"):
            self._reach[version].add(member)

    def cases(self) -> list[Case]:
        systems = self._systems()
        applied = self._applied(systems)
        judged = self._judged(applied)
        signed = self._signed()
        seats = self._seats()
        runs, names = self._runs(), self._names()
        rulings, strangers = self._rulings(signed), self._strangers(judged, names)
        return [
            Case(
                grant,
                systems[grant.pk],
                judged[grant.pk],
                signed[grant.pk],
                self._newer(grant, runs),
                tuple(self._moved(grant, names)),
                rulings[grant.pk],
                strangers[grant.pk],
                # What an unreadable text covers nobody can say. The gate denies meanwhile; nothing has to end for it.
                () if self._unreadable else tuple(_uncovered(grant, systems[grant.pk], applied[grant.pk])),
                tuple(_new_factors(applied[grant.pk], seats[grant.pk])),
            )
            for grant in self._grants
        ]

    def _systems(self) -> dict[int, tuple[System, ...]]:
        found: defaultdict[int, list[System]] = defaultdict(list)
        for link in GrantSystem.objects.filter(grant__in=self._grants).select_related("system").order_by("system__key"):
            found[link.grant_id].append(link.system)
        return {grant.pk: tuple(found[grant.pk]) for grant in self._grants}

    def _applied(self, systems: Mapping[int, tuple[System, ...]]) -> dict[int, list[Applied]]:
        people = {grant.requester_id for grant in self._grants}
        roles: defaultdict[Any, set[str]] = defaultdict(set)
        for membership in all_live_roles(person_ids=people, at=self._at):
            roles[membership.person_id].add(membership.role)
        requesters = {
            person.pk: person_facts(person, roles[person.pk])
            for person in Person.objects.filter(pk__in=people).select_related("team")
        }
        in_force = read_in_force()
        self._unreadable = bool(in_force.unreadable)
        asked: dict[Any, list[Applied]] = {}
        found: dict[int, list[Applied]] = {}
        for grant in self._grants:
            subject = grant.subject_version.subject
            places = systems[grant.pk]
            key = (subject.pk, tuple(grant.actions), tuple(system.pk for system in places), grant.requester_id)
            if key not in asked:
                asked[key] = applicable_policies(
                    subject=subject,
                    actions=grant.actions,
                    systems=places,
                    requester=requesters[grant.requester_id],
                    at=self._at,
                    in_force=in_force,
                )
            found[grant.pk] = asked[key]
        return found

    def _judged(self, applied: Mapping[int, Sequence[Applied]]) -> dict[int, tuple[Judged, ...]]:
        standings = standings_for([item for items in applied.values() for item in items], self._versions)
        waivers = defaultdict(list)
        for waiver in live_waivers(self._versions, at=self._at):
            waivers[waiver.subject_version_id].append(waiver)
        return {
            grant.pk: tuple(
                judge_applied(item, grant.subject_version_id, standings=standings, waivers=waivers[grant.subject_version_id])
                for item in applied[grant.pk]
            )
            for grant in self._grants
        }

    def _signed(self) -> dict[int, dict[tuple[str, str], Signed]]:
        places: dict[int, dict[tuple[str, str], str]] = {}
        for grant in self._grants:
            content = plain_value(bytes(grant.dossier.content)) if grant.dossier is not None else {"policies": []}
            places[grant.pk] = {
                (held["policy"], held["system"]): held["verdict"]["uid"] for held in content["policies"] if held["verdict"]
            }
        uids = {uid for held in places.values() for uid in held.values()}
        verdicts = {str(row.uid): row for row in Verdict.objects.filter(uid__in=uids)}
        versions = PolicyVersion.objects.filter(pk__in={row.policy_version_id for row in verdicts.values()})
        compiled, _ = compile_readable(versions)
        by_uid = {
            uid: Signed(uid, json.loads(bytes(row.core)), compiled[row.policy_version_id].clauses)
            for uid, row in verdicts.items()
            if row.policy_version_id in compiled
        }
        return {pk: {place: by_uid[uid] for place, uid in held.items() if uid in by_uid} for pk, held in places.items()}

    def _seats(self) -> dict[int, dict[tuple[str, str], int]]:
        """Return by grant how many seats its dossier fills, by role and filter."""
        found: defaultdict[int, dict[tuple[str, str], int]] = defaultdict(dict)
        rows = (
            Seat.objects.filter(dossier__in={grant.dossier_id for grant in self._grants})
            .order_by()
            .values_list("dossier_id", "factor__role", "factor__filter")
            .annotate(filled=Count("id"))
        )
        for dossier, role, text, filled in rows:
            found[dossier][role, text] = filled
        return {grant.pk: found[grant.dossier_id or 0] for grant in self._grants}

    def _runs(self) -> dict[int, list[tuple[datetime, int, str]]]:
        """Return by subject when which of its versions began to run, since the oldest signatures: registered, or rolled back to."""
        subjects = {version.subject_id: version.subject.key for version in self._versions.values()}
        cites: dict[str, tuple[int, int]] = {}
        runs: defaultdict[int, list[tuple[datetime, int, str]]] = defaultdict(list)
        rows = SubjectVersion.objects.filter(subject__in=subjects).order_by("id")
        for pk, subject, number, registered_at in rows.values_list("id", "subject_id", "number", "registered_at"):
            cite = f"{subjects[subject]}@{number}"
            cites[cite] = (subject, pk)
            if registered_at > self._since:
                runs[subject].append((registered_at, pk, cite))
        again = LedgerEntry.objects.filter(action=REINSTATED, target_id__in=cites, recorded_at__gt=self._since)
        for cite, at in again.values_list("target_id", "recorded_at"):
            subject, pk = cites[cite]
            runs[subject].append((at, pk, cite))
        for held in runs.values():
            held.sort()
        return runs

    def _newer(self, grant: Grant, runs: Mapping[int, Sequence[tuple[datetime, int, str]]]) -> str:
        signed_at = self._signed_at[grant.pk]
        later = [run for run in runs.get(grant.subject_version.subject_id, ()) if run[0] > signed_at]
        return later[-1][2] if later and later[-1][1] != grant.subject_version_id else ""

    def _names(self) -> dict[tuple[str, int | None], list[AliasAssignment]]:
        """Return by name and source what was assigned, oldest first: of every name that ever meant a version or what it reaches."""
        meant = set().union(*self._reach.values())
        ever = AliasAssignment.objects.filter(subject_version__in=meant).order_by().values("name_as_written")
        found: defaultdict[tuple[str, int | None], list[AliasAssignment]] = defaultdict(list)
        rows = AliasAssignment.objects.filter(name_as_written__in=ever).select_related("subject_version__subject", "source")
        for row in rows.order_by("id"):
            found[row.name_as_written, row.source_id].append(row)
        return found

    def _moved(
        self, grant: Grant, names: Mapping[tuple[str, int | None], Sequence[AliasAssignment]]
    ) -> Iterator[Mapping[str, Any]]:
        signed_at = self._signed_at[grant.pk]
        for (name, _), rows in names.items():
            then = [row for row in rows if row.recorded_at <= signed_at]
            newest = rows[-1]
            if then and then[-1].subject_version_id == grant.subject_version_id != newest.subject_version_id:
                meaning = newest.subject_version
                yield {
                    "name": name,
                    "source": newest.source.key if newest.source else "",
                    "now": f"{meaning.subject.key}@{meaning.number}" if meaning else "",
                    "assignment": newest.pk,
                    "by": newest.assigned_by,
                }

    def _rulings(self, signed: Mapping[int, Mapping[Any, Signed]]) -> dict[int, tuple[str, ...]]:
        rested = {
            pk: {uid for held in places.values() for rule in held.core["rules"] for uid in deciding_of(rule)}
            for pk, places in signed.items()
        }
        ruled: defaultdict[str, list[tuple[datetime, str]]] = defaultdict(list)
        rows = Ruling.objects.filter(evidence__uid__in=set().union(*rested.values()), recorded_at__gt=self._since)
        for uid, kind, at in rows.order_by("id").values_list("evidence__uid", "kind", "recorded_at"):
            ruled[str(uid)].append((at, kind))
        found: dict[int, tuple[str, ...]] = {}
        for grant in self._grants:
            told = []
            for uid in sorted(rested[grant.pk] & ruled.keys()):
                kinds = [kind for at, kind in ruled[uid] if at > self._signed_at[grant.pk]]
                word = RulingKind.RETRACTED if RulingKind.RETRACTED in kinds else (kinds[-1] if kinds else "")
                if word and word != RulingKind.DISPUTE_DISMISSED:
                    told.append(f"evidence_{word}:{uid}")
            found[grant.pk] = tuple(told)
        return found

    def _strangers(
        self,
        judged: Mapping[int, Sequence[Judged]],
        names: Mapping[tuple[str, int | None], Sequence[AliasAssignment]],
    ) -> dict[int, tuple[Stranger, ...]]:
        policies = {item.applied.version.pk: item.applied.compiled for held in judged.values() for item in held}
        other = Q(pk__in=[])
        for clause in (clause for compiled in policies.values() for clause in compiled.clauses.values()):
            other |= Q(metric__key=clause.metric, benchmark_version__benchmark__key=clause.benchmark) & ~Q(
                benchmark_version__version__in=clause.versions
            )
        mean: defaultdict[int, set[str]] = defaultdict(set)
        for (name, _), assigned in names.items():
            if assigned[-1].subject_version_id is not None:
                mean[assigned[-1].subject_version_id].add(name)
        gone = Ruling.objects.filter(evidence=OuterRef("evidence"), kind=RulingKind.RETRACTED)
        rows = (
            Observation.objects.filter(
                other, evidence__subject_as_written__in=set().union(*mean.values()), evidence__recorded_at__gt=self._since
            )
            .exclude(Exists(gone))
            .select_related("evidence", "metric", "benchmark_version__benchmark")
            .order_by("-evidence_id", "ordinal")[: MOST_STRANGERS * len(self._grants)]
        )
        by_name: defaultdict[str, list[Observation]] = defaultdict(list)
        for row in rows:
            by_name[row.evidence.subject_as_written].append(row)
        found = {}
        for grant in self._grants:
            reach = self._reach[grant.subject_version_id]
            own = [row for pk in reach for name in sorted(mean[pk]) for row in by_name.get(name, ())]
            news = [row for row in own if row.evidence.recorded_at > self._signed_at[grant.pk]]
            told = [item for held in judged[grant.pk] for row in news for item in _missing_its_bar(held, row)] if news else []
            found[grant.pk] = tuple({item.key: item for item in told}.values())[:MOST_STRANGERS]
        return found


def _missing_its_bar(held: Judged, row: Observation) -> Iterator[Stranger]:
    for clause in held.applied.compiled.clauses.values():
        same = (clause.metric, clause.benchmark) == (row.metric.key, row.benchmark_version.benchmark.key)
        if not same or row.benchmark_version.version in clause.versions or held.core is None:
            continue
        bars = [Decimal(leaf["bar"]) for rule in held.core["rules"] for leaf in _leaves(rule) if leaf["clause"] == clause.name]
        if not bars:
            continue
        bar = max(bars) if clause.higher else min(bars)
        if row.value < bar if clause.higher else row.value > bar:
            uid = str(row.evidence.uid)
            yield Stranger(
                f"{uid}:{row.ordinal}:{clause.name}",
                {
                    "evidence": uid,
                    "clause": clause.name,
                    "benchmark": clause.benchmark,
                    "version": row.benchmark_version.version,
                    "pinned": sorted(clause.versions),
                    "value": plain(row.value),
                    "bar": plain(bar),
                    "floor": clause.higher,
                    "unit": clause.unit,
                    "policy": held.applied.version.policy.name,
                },
            )


def _leaves(rule: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if not rule["children"]:
        yield rule
    for child in rule["children"]:
        yield from _leaves(child)


def _uncovered(grant: Grant, systems: Sequence[System], applied: Sequence[Applied]) -> Iterator[Mapping[str, str]]:
    for system in systems:
        for action in grant.actions:
            covering = [item for item in applied if item.system.pk == system.pk and action in item.actions]
            if all(item.supplement for item in covering):
                yield {"action": action, "system": system.key}


def _new_factors(applied: Iterable[Applied], seats: Mapping[tuple[str, str], int]) -> Iterator[Mapping[str, Any]]:
    for factor in unite([item.compiled.sign_offs for item in applied if item.compiled.sign_offs is not None]).all_of:
        text = factor.filter.text if factor.filter else ""
        filled = seats.get((factor.role, text), 0)
        if filled < factor.approve:
            yield {"factor": factor.factor, "role": factor.role, "filter": text, "asked": factor.approve, "filled": filled}
