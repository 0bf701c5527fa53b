"""Which standings a change can have touched: the index from what was recorded to the policies that read it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from evaluations.kernel.bulk import fetch_with_arrays
from evaluations.models import SubjectVersion
from evaluations.selectors.news import News, metrics_redefined, news_about
from policies.language.compiled import CompiledPolicy
from policies.selectors.bindings import JudgedKey
from policies.selectors.facts import Reading, readings_of

LONGEST_COMMIT = timedelta(minutes=5)
"""What a transaction recorded is seen only when it commits: changes are looked for this much further back. One that takes longer
marks its subjects at its commit (`Subject.late_at`), and about them everything is judged."""

_HELD = """
SELECT s.id, s.policy_version_id, s.params_digest, s.domain, s.subject_version_id, s.checked_at, s.due_at,
    o.changed_at >= s.checked_at - %(longest)s, coalesce(o.late_at >= s.checked_at - %(longest)s, false)
FROM policies_standing s
JOIN evaluations_subjectversion v ON v.id = s.subject_version_id
JOIN evaluations_subject o ON o.id = v.subject_id
WHERE s.subject_version_id = ANY(%(versions)s) AND s.policy_version_id = ANY(%(policies)s)
"""


class Held(NamedTuple):
    """A standing as it is. `behind` where something may have been recorded about its subject since it was last looked at; `late`
    where that may have been recorded under an earlier instant."""

    pk: int
    checked_at: datetime
    due_at: datetime | None
    behind: bool
    late: bool


def held_standings(keys: Sequence[JudgedKey], versions: Sequence[SubjectVersion]) -> dict[tuple[int, int], Held]:
    """Return the standings of these subject versions under these keys, by (subject version id, place of the key)."""
    places = {(key.policy_version.pk, key.params_digest, key.domain): place for place, key in enumerate(keys)}
    parameters: dict[str, Any] = {
        "versions": [version.pk for version in versions],
        "policies": list({key.policy_version.pk for key in keys}),
        "longest": LONGEST_COMMIT,
    }
    found: dict[tuple[int, int], Held] = {}
    for pk, policy, params, domain, version, checked_at, due_at, behind, late in fetch_with_arrays(_HELD, parameters):
        place = places.get((policy, params, domain))
        if place is not None:
            found[version, place] = Held(pk, checked_at, due_at, behind, late)
    return found


def to_judge(
    keys: Sequence[JudgedKey],
    compiled: Sequence[CompiledPolicy],
    versions: Sequence[SubjectVersion],
    held: Mapping[tuple[int, int], Held],
    *,
    at: datetime,
    fully: bool,
) -> tuple[dict[int, list[int]], list[Held]]:
    """Return the places (in `keys`) to judge of each subject version that has any, and the standings that nothing can have changed.

    A place is judged where there is no standing yet, where it is due, and where something was recorded since it was last looked at
    that one of the policy's clauses reads: a name that moved, a metric's new definition, or evidence, a ruling or a source's trust
    behind an observation of the same metric on the same benchmark. Where news cannot be told apart, more is judged, never less; where
    it was committed late, everything about its subject.
    """
    if fully:
        return {version.pk: list(range(len(keys))) for version in versions}, []
    looked_at: dict[int, list[datetime]] = defaultdict(list)
    for (version_id, _), item in held.items():
        if item.behind:
            looked_at[version_id].append(item.checked_at)
    news = news_about({version_id: min(moments) - LONGEST_COMMIT for version_id, moments in looked_at.items()})
    redefined = metrics_redefined()
    wanted: dict[int, list[int]] = {}
    untouched: list[Held] = []
    readers = _Readers(compiled, redefined)
    for version in versions:
        about = readers.places(news.get(version.pk))
        for place in range(len(keys)):
            stands = held.get((version.pk, place))
            if stands is None or stands.late or place in about or _is_due(stands, at) or readers.is_redefined(place, stands):
                wanted.setdefault(version.pk, []).append(place)
            else:
                untouched.append(stands)
    return wanted, untouched


class _Readers:
    """The index from (metric, benchmark) to the policies that read it, and from policies to when a metric of theirs was redefined."""

    def __init__(self, compiled: Sequence[CompiledPolicy], redefined: Mapping[str, datetime]) -> None:
        self._everyone = frozenset(range(len(compiled)))
        self._by_reading: defaultdict[Reading, set[int]] = defaultdict(set)
        self._redefined_at: dict[int, datetime] = {}
        for place, policy in enumerate(compiled):
            for reading in readings_of(policy):
                self._by_reading[reading].add(place)
                since = redefined.get(reading[0])
                if since is not None:
                    self._redefined_at[place] = max(since, self._redefined_at.get(place, since))

    def places(self, news: News | None) -> frozenset[int]:
        """Return the places of the policies that read any of the news."""
        if news is None:
            return frozenset()
        if news.everything:
            return self._everyone
        return frozenset().union(*(self._by_reading.get(reading, ()) for reading in news.readings))

    def is_redefined(self, place: int, item: Held) -> bool:
        """True where a metric that the policy reads got another definition since the standing was looked at."""
        since = self._redefined_at.get(place)
        return since is not None and since >= item.checked_at - LONGEST_COMMIT


def _is_due(item: Held, at: datetime) -> bool:
    return item.due_at is not None and item.due_at <= at
