"""Two texts of a policy side by side: where each is asked, and what each says about every subject version there.

Facts are gathered once for both. What is compared comes in slices of subject versions, so that memory follows a slice, not the fleet.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import connection

from evaluations.models import SubjectVersion
from policies.language.compiled import CompiledPolicy
from policies.language.conditions import Answer, ask_values
from policies.language.edge import distance, seen_in
from policies.language.evaluator import NoVerdict, judge
from policies.language.facts import Shared
from policies.models import Binding, PolicyVersion, System
from policies.selectors.applicable import SUPPLEMENT, system_facts
from policies.selectors.bindings import join_bindings, params_digest_of
from policies.selectors.facts import Asked, FactsGatherer
from policies.selectors.systems import domain_for
from policies.vocabulary import ANY_DOMAIN, Change, Said

SLICE = 500
"""So many subject versions are compared at once."""

_OF_THE_SYSTEM = ("resource.", "action.")

_STANDING = """
SELECT s.subject_version_id, s.policy_version_id, s.params_digest, s.domain, v.outcome, v.as_of,
    CASE WHEN s.policy_version_id = %(after)s THEN v.core END
FROM policies_standing s JOIN policies_verdict v ON v.id = s.verdict_id
WHERE s.subject_version_id = ANY(%(versions)s) AND s.policy_version_id = ANY(%(policies)s)
"""


class Place(NamedTuple):
    """Systems and actions for which both texts are asked alike: in one domain, under one tightening, each. None: not asked there.

    `domain` is that of the systems where a text reads it, else `any`. Where no system is registered there is one place without any.
    """

    domain: str
    systems: tuple[str, ...]
    actions: tuple[str, ...]
    before: Asked | None
    after: Asked | None


class Compared(NamedTuple):
    """What the two texts say about a subject version in a place. `distance` is how far, in percent, the new one is from turning (None
    where no number says so). `as_of` is the instant of the new one's verdict, None where nothing is stored."""

    version: SubjectVersion
    place: Place
    before: Said
    after: Said
    distance: Decimal | None
    as_of: datetime | None

    @property
    def change(self) -> Change:
        asked = self.place.after or self.place.before
        supplement = asked is not None and asked.compiled.profile == SUPPLEMENT
        return change_between(self.before, self.after, supplement=supplement)


def change_between(before: Said, after: Said, *, supplement: bool) -> Change:
    """Return what becomes of an answer. Where a text is not asked it refuses nobody, and, alone, permits nobody.

    A supplement only adds to what others permit: where it was not asked it had refused nobody. What has not been judged may be
    permitted, so it counts as if it were.
    """
    if before == after:
        return Change.UNCHANGED
    if after == Said.UNJUDGED:
        return Change.UNJUDGED
    asked_nobody = Said.PASS if supplement else Said.FAIL
    was = asked_nobody if before == Said.NOT_ASKED else before
    if after == Said.NOT_ASKED:
        # Whom it refused it refuses no longer; whom it permitted somebody else would have to permit.
        return Change.NEWLY_PERMITTED if was == Said.FAIL else Change.UNCHANGED if supplement else Change.NEWLY_REFUSED
    if (was == Said.PASS) == (after == Said.PASS):
        return Change.UNCHANGED
    return Change.NEWLY_PERMITTED if after == Said.PASS else Change.NEWLY_REFUSED


def places_of(
    before: CompiledPolicy | None,
    after: CompiledPolicy,
    *,
    systems: Sequence[System],
    bindings: Iterable[Binding],
    at: datetime,
) -> list[Place]:
    """Return every place in which one of the texts is asked, in the order of the systems given."""
    own = list(bindings)
    if not systems:
        return [
            Place(ANY_DOMAIN, (), after.actions, None if before is None else Asked(before, ANY_DOMAIN), Asked(after, ANY_DOMAIN))
        ]
    texts = [text for text in (before, after) if text is not None]
    actions = list(dict.fromkeys(action for text in texts for action in text.actions))
    groups: dict[tuple[Any, ...], tuple[list[str], list[str], Asked | None, Asked | None]] = {}
    for system in systems:
        held = [None if text is None else Asked(text, domain_for(text, system), join_bindings(text, own, system=system))
                for text in (before, after)]  # fmt: skip
        domain = system.domain if any(text.uses_domain for text in texts) else ANY_DOMAIN
        for action in actions:
            was, now = (one if one is not None and _covers(one.compiled, action, system, at) else None for one in held)
            if was is None and now is None:
                continue
            key = domain, _key(was), _key(now)
            named, acting, *_ = groups.setdefault(key, ([], [], was, now))
            named.append(system.key)
            acting.append(action)
    return [
        Place(key[0], tuple(dict.fromkeys(named)), tuple(dict.fromkeys(acting)), was, now)
        for key, (named, acting, was, now) in groups.items()
    ]


def slices_of(ids: Iterable[int]) -> Iterator[list[SubjectVersion]]:
    """Yield subject versions, with `subject` loaded, in the order of their ids, a slice at a time."""
    ordered = sorted(set(ids))
    for start in range(0, len(ordered), SLICE):
        wanted = ordered[start : start + SLICE]
        yield list(SubjectVersion.objects.filter(pk__in=wanted).select_related("subject").defer("pin").order_by("pk"))


def compare_judging(places: Sequence[Place], versions: Sequence[SubjectVersion], *, at: datetime) -> Iterator[Compared]:
    """Judge subject versions (with `subject` loaded) by both texts, as of an instant and on what was known then."""
    asked: list[Asked] = []
    numbers: dict[tuple[Any, ...], int] = {}
    for place in places:
        for one in (place.before, place.after):
            if one is not None and numbers.setdefault((one.compiled.digest, *_key(one)), len(asked)) == len(asked):
                asked.append(one)
    pairs = [
        tuple(None if one is None else numbers[one.compiled.digest, *_key(one)] for one in (place.before, place.after))
        for place in places
    ]
    gatherer = FactsGatherer(asked, versions, known_at=at)
    for version in versions:
        shared = Shared()
        said: dict[int | None, tuple[Said, Decimal | None]] = {None: (Said.NOT_ASKED, None)}
        wanted_distances = {after for _, after in pairs}
        for number, one in enumerate(asked):
            try:
                judgement = judge(one.compiled, gatherer.facts_of(version, number), as_of=at, shared=shared)
            except NoVerdict:
                said[number] = Said.FAIL, None
            else:
                edge = distance(one.compiled, judgement.rules) if number in wanted_distances else None
                said[number] = Said(judgement.outcome), edge
        for place, (before, after) in zip(places, pairs, strict=True):
            now, edge = said[after]
            yield Compared(version, place, said[before][0], now, edge, None)


def compare_standing(
    places: Sequence[Place],
    versions: Sequence[SubjectVersion],
    *,
    before: PolicyVersion | None,
    after: PolicyVersion,
) -> Iterator[Compared]:
    """Read what stands for subject versions (with `subject` loaded) under two versions that are kept judged: nothing is judged here.

    What the new version has not judged is `unjudged`; what the old one has not, it refuses, as the gate does.
    """
    keys = [tuple(None if one is None else (params_digest_of(one.compiled, one.tightened), one.domain)
                  for one in (place.before, place.after)) for place in places]  # fmt: skip
    held: defaultdict[int, dict[tuple[int, str, str], tuple[str, datetime, bytes | None]]] = defaultdict(dict)
    given: Mapping[str, Any] = {
        "versions": [version.pk for version in versions],
        "policies": [after.pk, *([] if before is None else [before.pk])],
        "after": after.pk,
    }
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, given)
        for subject_version, policy_version, params, domain, outcome, as_of, core in cursor.fetchall():
            held[subject_version][policy_version, params, domain] = outcome, as_of, core
    for version in versions:
        own = held[version.pk]
        for place, (was, now) in zip(places, keys, strict=True):
            old = Said.NOT_ASKED
            if was is not None and before is not None:
                old = Said(own[before.pk, *was][0]) if (before.pk, *was) in own else Said.FAIL
            new, edge, as_of = Said.NOT_ASKED, None, None
            if now is not None and place.after is not None:
                found = own.get((after.pk, *now))
                if found is None:
                    # An open route has no verdict, which denies, and never will have one.
                    new = Said.UNJUDGED if version.closed else Said.FAIL
                else:
                    new, as_of = Said(found[0]), found[1]
                    edge = None if found[2] is None else distance(place.after.compiled, seen_in(json.loads(bytes(found[2]))))
            yield Compared(version, place, old, new, edge, as_of)


def _covers(compiled: CompiledPolicy, action: str, system: System, at: datetime) -> bool:
    """True where a policy may apply. Whatever its condition reads beside the system and the action is somebody's, so it may."""
    when = compiled.applies_when
    if action not in compiled.actions:
        return False
    if when is None or not all(name.startswith(_OF_THE_SYSTEM) for name in when.uses):
        return True
    values = ask_values({"subject": {}, "action": {"name": action}, "resource": system_facts(system), "requester": {}, "now": at})
    return when.evaluate(values).answer != Answer.FALSE


def _key(asked: Asked | None) -> tuple[Any, ...]:
    return () if asked is None else (asked.domain, *sorted(asked.tightened.items()))
