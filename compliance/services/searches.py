"""Search: who may do this there, where may this subject do it, what may it do there. The judge of decisions answers, unrecorded.

What is found would be allowed by `decide` at this instant, to the token that asks. A page that had to look far ends before it is
full; the next one goes on from there.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS, Error, connections

from compliance.deciding.conformance import MARK
from compliance.deciding.facts import Question
from compliance.deciding.judge import SYSTEM
from compliance.selectors.deciding.candidates import (
    Candidate,
    Candidates,
    carried_routes,
    granted_actions,
    granted_subjects,
    granted_systems,
    kinds_of,
    listed_names,
    versions_behind,
)
from compliance.selectors.deciding.conformance import actions_in_force, read_attributes
from compliance.selectors.deciding.read import Asked, Caller
from compliance.services.decisions import ATTEMPTS, Admit, Unavailable, judge_asked, read_admitted
from compliance.services.tokens import note_use
from compliance.vocabulary import Scope
from evaluations.kernel.canonical import timestamp
from evaluations.kernel.clock import now

MOST_JUDGED = 200
"""So many candidates are judged for one page, and somewhat more where its last batch goes beyond: a page takes a tenth of a second."""
MOST_LOOKS = 4
"""So often a page looks for further candidates."""
LEAST_BATCH, LARGEST_BATCH = 20, 200

logger = logging.getLogger("compliance.searches")


class Place(NamedTuple):
    """Where a page begins: in which list, and behind which of its keys."""

    stage: int = 0
    after: int = 0


class Found(NamedTuple):
    """A page: what was found, in order, and where the next one begins, None where nothing is left."""

    results: list[str]
    behind: Place | None


More = Callable[[int, int], Candidates]
"""Lists candidates: from behind a key on, so many at most."""


class _Search(NamedTuple):
    """What one search looks through: lists, one after the other; the question about a candidate, and what it is called."""

    stages: Sequence[More]
    ask: Callable[[Candidate], Question]
    called: Callable[[Candidate, Asked], str]


class _Asker:
    """Who searches: reads questions as decisions do, each counted against the token's limit."""

    def __init__(self, token_digest: str, admit: Admit | None) -> None:
        self._digest, self._admit = token_digest, admit
        self.at: datetime = now()
        self.caller: Caller

    def read(self, questions: Sequence[Question]) -> Sequence[Asked]:
        self.caller, asked = read_admitted(questions, token_digest=self._digest, at=self.at, admit=self._admit)
        return asked

    def read_one(self, question: Question) -> Asked:
        return self.read([question])[0]

    def allows(self, asked: Asked) -> bool:
        return judge_asked(asked, self.caller, self.at, timestamp(self.at)).allowed


def search_subjects(*, question: Question, token_digest: str, place: Place, limit: int, admit: Admit | None = None) -> Found:
    """Return the subjects of the question's type that may do its action at its system: `key`, or `key@number` where another runs.

    The question's subject names nobody. Raises, as the others do, `TokenRefused`, `ScopeMissing`, `Unavailable` and what `admit` does.
    """

    def plan(asker: _Asker) -> _Search | None:
        first = asker.read_one(question)
        if MARK in first.facts:
            return _registered(question.subject_type, "subject", question) if _is_known(question, "resource") else None
        kinds = kinds_of(question.subject_type)
        if first.system is None or question.resource_type != SYSTEM or not kinds or not _may_ask(asker, question):
            return None
        given = {"system": first.system, "action": question.action, "kinds": kinds}
        return _Search(
            [partial(_stage, granted_subjects, given), partial(_stage, carried_routes, given)],
            lambda candidate: question._replace(subject=f"{candidate.name}@{candidate.number}"),
            _subject_called,
        )

    return _search(plan, token_digest, place, limit, admit)


def search_resources(*, question: Question, token_digest: str, place: Place, limit: int, admit: Admit | None = None) -> Found:
    """Return the systems at which the question's subject may do its action. The question's resource names nothing."""

    def plan(asker: _Asker) -> _Search | None:
        first = asker.read_one(question)
        if MARK in first.facts:
            return _registered(question.resource_type, "resource", question) if _is_known(question, "subject") else None
        if first.subject_version is None or question.resource_type != SYSTEM:
            return None
        narrowed = [scope.partition(":")[2] for scope in asker.caller.scopes if scope.startswith(f"{Scope.DECIDE}:")]
        given = {
            "versions": versions_behind(first.subject_version),
            "action": question.action,
            "within": None if asker.caller.holds(Scope.DECIDE) else narrowed,
        }
        return _Search(
            [partial(_stage, granted_systems, given)],
            lambda candidate: question._replace(system=candidate.name),
            lambda candidate, _: candidate.name,
        )

    return _search(plan, token_digest, place, limit, admit)


def search_actions(*, question: Question, token_digest: str, place: Place, limit: int, admit: Admit | None = None) -> Found:
    """Return what the question's subject may do at its system. The question's action names nothing."""

    def plan(asker: _Asker) -> _Search | None:
        first = asker.read_one(question)
        if MARK in first.facts:
            known = _is_known(question, "subject") and _is_known(question, "resource")
            names = actions_in_force() if known else []
        elif first.subject_version is None or first.system is None or not _may_ask(asker, question):
            names = []
        else:
            names = granted_actions(versions=versions_behind(first.subject_version), system=first.system)
        return _Search(
            [partial(_stage, listed_names, {"names": names})],
            lambda candidate: question._replace(action=candidate.name),
            lambda candidate, _: candidate.name,
        )

    return _search(plan, token_digest, place, limit, admit)


def _search(plan: Callable[[_Asker], _Search | None], token_digest: str, place: Place, limit: int, admit: Admit | None) -> Found:
    for _ in range(ATTEMPTS):
        try:
            asker = _Asker(token_digest, admit)
            search = plan(asker)
            found = Found([], None) if search is None else _page(asker, search, place, limit)
        except Error as error:
            lost = error
            connections[DEFAULT_DB_ALIAS].close()
            continue
        note_use(token_id=asker.caller.id, unnoted=asker.caller.unnoted, at=asker.at)
        return found
    logger.error("no database to search: %s", type(lost.__cause__ or lost).__name__)
    raise Unavailable("the gate cannot reach its database; ask again shortly") from lost


def _page(asker: _Asker, search: _Search, place: Place, limit: int) -> Found:
    results: list[str] = []
    judged = looks = 0
    while place.stage < len(search.stages):
        if judged >= MOST_JUDGED or looks >= MOST_LOOKS:
            return Found(results, place)
        wanted = limit - len(results) + 1
        more = search.stages[place.stage](place.after, min(max(wanted, LEAST_BATCH), LARGEST_BATCH))
        looks += 1
        judged += len(more.found)
        asked = asker.read([search.ask(candidate) for candidate in more.found]) if more.found else []
        for candidate, item in zip(more.found, asked, strict=True):
            if asker.allows(item):
                if len(results) == limit:
                    # There is one more: the next page begins with it.
                    return Found(results, place)
                results.append(search.called(candidate, item))
            place = Place(place.stage, candidate.place)
        place = Place(place.stage + 1) if more.ended else Place(place.stage, more.reached)
    return Found(results, None)


def _stage(more: Callable[..., Candidates], given: Mapping[str, object], after: int, most: int) -> Candidates:
    return more(**given, after=after, most=most)


def _may_ask(asker: _Asker, question: Question) -> bool:
    return asker.caller.holds(Scope.DECIDE, system=question.system)


def _subject_called(candidate: Candidate, asked: Asked) -> str:
    subject = asked.facts["subject"]
    running = subject is not None and subject["running"] == candidate.number
    return candidate.name if running else f"{candidate.name}@{candidate.number}"


# --- the conformance profile: what is registered is what can be found


def _registered(kind: str, part: str, question: Question) -> _Search:
    field = "subject" if part == "subject" else "system"
    return _Search(
        [partial(_stage, listed_names, {"names": sorted(read_attributes().get(kind, {}))})],
        lambda candidate: question._replace(**{field: candidate.name}),
        lambda candidate, _: candidate.name,
    )


def _is_known(question: Question, part: str) -> bool:
    kind, name = (question.subject_type, question.subject) if part == "subject" else (question.resource_type, question.system)
    return name in read_attributes().get(kind, {})
