"""What a policy text would change if it came into force: whom it newly permits and refuses, which grants, and who is near the edge."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from heapq import heappush, heapreplace
from itertools import count
from typing import Any, NamedTuple
from uuid import UUID

from compliance.models import Grant
from compliance.selectors.grants import with_standing
from compliance.vocabulary import EffectiveStatus
from evaluations.kernel.canonical import DIGEST_PREFIX, canonical_bytes
from evaluations.models import SubjectVersion
from evaluations.selectors.subjects import current_versions
from policies.language.compiled import CompiledPolicy
from policies.models import Policy, PolicyVersion, System
from policies.selectors.bindings import live_bindings
from policies.selectors.comparing import (
    Compared,
    Place,
    compare_judging,
    compare_standing,
    places_of,
    slices_of,
)
from policies.selectors.policies import compile_version, version_in_force, versions_to_keep_judged
from policies.vocabulary import Change, Said

SHOWN = 50
NEAREST = 10
NEAR = Decimal(3)
"""At most so many points from turning is near the edge."""
_SYSTEMS_NAMED = 5

LISTED = (Change.NEWLY_PERMITTED, Change.NEWLY_REFUSED)
Progress = Callable[[int, int], None]
"""Hears how many subject versions are done, of how many."""


class Texts(NamedTuple):
    """A text that may come into force, and the one it is compared with; None where there is none: then nobody is permitted."""

    after: CompiledPolicy
    before: CompiledPolicy | None = None

    def loosened(self) -> list[str]:
        """Return in which ways the new text asks less of a question than the old one, whatever is known about subjects."""
        if self.before is None:
            return []
        found = [
            f"it no longer covers the action `{action}`" for action in self.before.actions if action not in self.after.actions
        ]
        when, earlier = (None if one.applies_when is None else one.applies_when.text for one in (self.after, self.before))
        if when is not None and when != earlier:
            found.append("it covers under another condition")
        kept = {guardrail.when.text for guardrail in self.after.forbid}
        found += [
            f"its guardrail `{guardrail.id}` is gone or reads otherwise"
            for guardrail in self.before.forbid
            if guardrail.when.text not in kept
        ]
        return found


class ImpactRow(NamedTuple):
    """A subject version in a place for which two texts differ, or that is near the edge of the new one.

    `systems` names the first systems of the place, "" where none is registered. `distance` is how far the new answer is from turning.
    """

    subject: str
    subject_version: int
    domain: str
    systems: str
    before: str
    after: str
    distance: Decimal | None


class Impact(NamedTuple):
    """What a change of text would change, over subject versions in the places in which they are judged.

    The lists hold the first of each kind, their counts all. `near` counts those at most `NEAR` from turning; `nearest` are the
    nearest of them all. `unjudged` counts what the new version has said nothing about yet. `loosened` says in which ways the text
    itself asks less. `digest` is that of every row that differs, in order. `judged_at` is the instant of the newest verdict among
    those it shows, None where it was judged for the occasion. `grants_refused` are live grants that it would no longer carry,
    `grants_permitted` those that it would carry again.
    """

    newly_permitted: Sequence[ImpactRow]
    newly_refused: Sequence[ImpactRow]
    counts: Mapping[Change, int]
    near: int
    nearest: Sequence[ImpactRow]
    loosened: Sequence[str]
    digest: str
    judged_at: datetime | None
    grants_refused: Sequence[str]
    grants_refused_count: int
    grants_permitted: Sequence[str]
    grants_permitted_count: int

    @property
    def unjudged(self) -> int:
        return self.counts[Change.UNJUDGED]

    @property
    def why(self) -> list[str]:
        """Return why it may open access, in sentences; none where it opens none."""
        permitted = self.counts[Change.NEWLY_PERMITTED]
        found = [f"{permitted:,} newly permitted"] if permitted else []
        if self.unjudged:
            found.append(f"{self.unjudged:,} not judged yet, which it may permit")
        return [*found, *self.loosened]

    @property
    def no_new_access(self) -> bool:
        return not self.why

    def as_value(self) -> dict[str, Any]:
        """Return the canonical value that a dossier holds and the API answers: whole counts, and the first of each list."""
        return {
            "no_new_access": self.no_new_access,
            "why": self.why,
            "newly_permitted": [row._asdict() for row in self.newly_permitted],
            "newly_permitted_count": self.counts[Change.NEWLY_PERMITTED],
            "newly_refused": [row._asdict() for row in self.newly_refused],
            "newly_refused_count": self.counts[Change.NEWLY_REFUSED],
            "unchanged": self.counts[Change.UNCHANGED],
            "unjudged": self.unjudged,
            "near_edge_count": self.near,
            "nearest": [row._asdict() for row in self.nearest],
            "lists_digest": self.digest,
            "judged_at": self.judged_at,
            "grants_refused": list(self.grants_refused),
            "grants_refused_count": self.grants_refused_count,
            "grants_permitted": list(self.grants_permitted),
            "grants_permitted_count": self.grants_permitted_count,
        }


class Tally:
    """Adds up what is compared, keeping no more than it will show."""

    def __init__(self, texts: Texts, grants: Mapping[int, Sequence[tuple[UUID, frozenset[str]]]], *, shown: int = SHOWN) -> None:
        self._texts = texts
        self._grants = grants
        self._shown = shown
        self._counts = dict.fromkeys(Change, 0)
        self._listed: dict[Change, list[ImpactRow]] = {change: [] for change in LISTED}
        self._near = 0
        # A heap of the nearest with the farthest on top; the number keeps equal distances in the order in which they came.
        self._nearest: list[tuple[Decimal, int, ImpactRow, datetime | None]] = []
        self._number = count()
        self._digest = sha256()
        self._judged_at: datetime | None = None
        self._carried: dict[Change, dict[UUID, None]] = {change: {} for change in LISTED}

    def add(self, compared: Compared) -> None:
        change = compared.change
        self._counts[change] += 1
        edge = compared.distance
        if change in self._listed:
            row = row_of(compared)
            self._digest.update(canonical_bytes([str(change), *row[:-1]]))
            self._seen(compared.as_of)
            if len(self._listed[change]) < self._shown:
                self._listed[change].append(row)
        if edge is not None:
            self._near += edge <= NEAR
            self._consider(edge, compared)
        for uid, systems in self._grants.get(compared.version.pk, ()):
            if not systems.isdisjoint(compared.place.systems) and compared.before != compared.after:
                if compared.after == Said.FAIL:
                    self._carried[Change.NEWLY_REFUSED][uid] = None
                elif compared.before == Said.FAIL:
                    self._carried[Change.NEWLY_PERMITTED][uid] = None

    def _consider(self, edge: Decimal, compared: Compared) -> None:
        if len(self._nearest) < NEAREST:
            heappush(self._nearest, (-edge, -next(self._number), row_of(compared), compared.as_of))
        elif edge < -self._nearest[0][0]:
            heapreplace(self._nearest, (-edge, -next(self._number), row_of(compared), compared.as_of))

    def _seen(self, moment: datetime | None) -> None:
        if moment is not None and (self._judged_at is None or moment > self._judged_at):
            self._judged_at = moment

    def impact(self) -> Impact:
        nearest = sorted(self._nearest, key=lambda item: (-item[0], -item[1]))
        for *_, moment in nearest:
            self._seen(moment)
        refused, permitted = (
            [str(uid) for uid in self._carried[change]] for change in (Change.NEWLY_REFUSED, Change.NEWLY_PERMITTED)
        )
        return Impact(
            self._listed[Change.NEWLY_PERMITTED],
            self._listed[Change.NEWLY_REFUSED],
            self._counts,
            self._near,
            [row for _, _, row, _ in nearest],
            self._texts.loosened(),
            DIGEST_PREFIX + self._digest.hexdigest(),
            self._judged_at,
            refused[: self._shown],
            len(refused),
            permitted[: self._shown],
            len(permitted),
        )


class Measure(NamedTuple):
    """What an impact is measured over: the places in which the texts are asked, subject versions, and their live grants."""

    texts: Texts
    places: Sequence[Place]
    versions: Sequence[int]
    grants: Mapping[int, Sequence[tuple[UUID, frozenset[str]]]]
    at: datetime


def measure_of(texts: Texts, *, at: datetime) -> Measure:
    """Return what the impact of a change of text is measured over now: the newest version of each subject, and those with a grant."""
    policy = Policy.objects.filter(name=texts.after.name).first()
    bindings = [] if policy is None else live_bindings(policy)
    places = places_of(texts.before, texts.after, systems=list(System.objects.order_by("key")), bindings=bindings, at=at)
    grants = _live_grants(at)
    return Measure(texts, places, sorted({*(version.pk for version in current_versions(known_at=at)), *grants}), grants, at)


def measure_impact(texts: Texts, *, at: datetime, shown: int = SHOWN, progress: Progress | None = None) -> Impact:
    """Judge every subject version by both texts, as of an instant, and add up what differs."""
    measure = measure_of(texts, at=at)
    tally = Tally(texts, measure.grants, shown=shown)
    done = 0
    for versions in slices_of(measure.versions):
        for compared in compare_judging(measure.places, versions, at=at):
            tally.add(compared)
        done += len(versions)
        if progress is not None:
            progress(done, len(measure.versions))
    return tally.impact()


def read_impact(version: PolicyVersion, *, at: datetime, shown: int = SHOWN) -> Impact:
    """Return what a version would change against the one in force.

    Both are kept judged while the version is its policy's newest: then what stands is read, which costs a fraction. Whatever it has not
    judged yet it may permit, so that counts as if it did. An older version, to which somebody would go back, is judged here.
    """
    measure = measure_of(texts_of(version), at=at)
    tally = Tally(measure.texts, measure.grants, shown=shown)
    kept = is_kept(version)
    for versions in slices_of(measure.versions):
        for compared in _compared(version, measure, versions, kept=kept):
            tally.add(compared)
    return tally.impact()


def read_changes(version: PolicyVersion, subject_versions: Sequence[SubjectVersion], *, at: datetime) -> list[Compared]:
    """Return what a version would change for these subject versions (with `subject` loaded), unchanged answers left out."""
    measure = measure_of(texts_of(version), at=at)
    compared = _compared(version, measure, subject_versions, kept=is_kept(version))
    return [one for one in compared if one.change != Change.UNCHANGED]


def _compared(
    version: PolicyVersion, measure: Measure, subject_versions: Sequence[SubjectVersion], *, kept: bool
) -> Iterator[Compared]:
    if not kept:
        return compare_judging(measure.places, subject_versions, at=measure.at)
    return compare_standing(measure.places, subject_versions, before=version_in_force(version.policy), after=version)


def texts_of(version: PolicyVersion, against: PolicyVersion | None = None) -> Texts:
    """Return a version beside another, unless given the one in force."""
    before = version_in_force(version.policy) if against is None else against
    return Texts(compile_version(version), None if before is None else compile_version(before))


def is_kept(version: PolicyVersion) -> bool:
    """True where what stands under a version is kept judged."""
    return version.pk in {kept.pk for kept in versions_to_keep_judged([version.policy_id])}


def row_of(compared: Compared) -> ImpactRow:
    """Return what is shown of a comparison."""
    version, place = compared.version, compared.place
    return ImpactRow(
        version.subject.key,
        version.number,
        place.domain,
        _named(place.systems),
        str(compared.before),
        str(compared.after),
        compared.distance,
    )


def _named(systems: Collection[str]) -> str:
    first = list(systems)[:_SYSTEMS_NAMED]
    more = len(systems) - len(first)
    return ", ".join(first) + (f" and {more:,} more" if more else "")


def _live_grants(at: datetime) -> dict[int, list[tuple[UUID, frozenset[str]]]]:
    """Return the grants that may be used at an instant, or will be once they begin, with their systems, by subject version."""
    live = with_standing(Grant.objects.all(), at=at).filter(standing__in=[EffectiveStatus.ACTIVE, EffectiveStatus.NOT_BEGUN])
    systems: defaultdict[tuple[int, UUID], set[str]] = defaultdict(set)
    for version, uid, key in live.order_by("id").values_list("subject_version", "uid", "grant_systems__system__key"):
        systems[version, uid].add(key)
    found: defaultdict[int, list[tuple[UUID, frozenset[str]]]] = defaultdict(list)
    for (version, uid), keys in systems.items():
        found[version].append((uid, frozenset(keys)))
    return dict(found)
