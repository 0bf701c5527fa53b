"""Reads the facts of questions, each with the versions of the rows behind it and the policies that judge it."""

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from operator import itemgetter
from typing import Any, NamedTuple, cast

import orjson

from compliance.deciding.facts import Question, Value
from compliance.deciding.judge import ALIAS, ROUTE, SYSTEM, Policies
from compliance.selectors.deciding.cores import read_cores
from compliance.selectors.deciding.in_force import NOWHERE, places_in_force
from compliance.selectors.deciding.statement import MEMBERS, QUESTIONS
from evaluations.kernel.canonical import timestamp
from evaluations.kernel.prepared import Given, Row, Running, bigints, fetch_prepared, ints, texts, transaction

PART = 125
"""So many questions are looked up at once, where there are many."""
WHOLE_INSTANT = len("2026-01-01T00:00:00.000000+00:00")
_RETRACTED = "evidence_retracted:"
_NUMBERED = re.compile(r"(.+)@([1-9][0-9]{0,8})\Z", re.DOTALL)
_NUL = "\x00"
_WAIVER = ("uid", "policy", "rule", "rule_digest", "measured", "floor")
# Places in the row of a subject, as `_subject` takes it apart.
_KIND, _VERSION, _BEHIND = 3, 7, 13


class Caller(NamedTuple):
    """A token as it was read with the questions: `live` where it may be used, `unnoted` where its use is to be noted.

    `name_commitment` is that of the person it belongs to, "" where her name was erased.
    """

    id: str
    person: str
    name: str
    scopes: tuple[str, ...]
    live: bool
    unnoted: bool
    name_commitment: str

    def holds(self, scope: str, *, system: str = "") -> bool:
        """True when a scope is held, for everything or for the given system."""
        return scope in self.scopes or (bool(system) and f"{scope}:{system}" in self.scopes)


class Seen(NamedTuple):
    """A row that was read: its table's word, its id, and its version."""

    table: str
    id: int
    version: str


class Asked(NamedTuple):
    """One question with its facts, the compiled policies by digest, and the rows that must not have moved when it is recorded."""

    question: Question
    facts: Value
    policies: Policies
    seen: list[Seen]
    subject_version: int | None
    system: int | None
    grants: dict[str, int]


def read_questions(
    questions: Sequence[Question], *, token_digests: Sequence[str], at: datetime
) -> tuple[list[Caller | None], list[Asked]]:
    """Return who asks, by token digest, None for an unknown one, and each question with its facts.

    One statement, two where a route is asked about.
    """
    read = _Read(questions, token_digests, fetch_prepared(QUESTIONS, _given(questions, token_digests, at)), at)
    return read.callers(), read.asked()


def read_in_parts(
    questions: Sequence[Question], *, token_digests: Sequence[str], at: datetime
) -> Generator[tuple[list[Caller | None], list[Asked]]]:
    """Read many questions as `read_questions` does, part by part, all as of one moment of the database.

    It looks the next part up while the caller works on the one before, who uses no connection meanwhile.
    """
    parts = [questions[start : start + PART] for start in range(0, len(questions), PART)]
    with transaction("ISOLATION LEVEL REPEATABLE READ, READ ONLY"):
        running: Running | None = Running(QUESTIONS, _given(parts[0], token_digests, at))
        try:
            for part, following in zip_longest(parts, parts[1:]):
                taken, running = cast(Running, running), None
                read = _Read(part, token_digests, taken.rows(), at)
                if following is not None:
                    running = Running(QUESTIONS, _given(following, token_digests, at))
                yield read.callers(), read.asked()
        finally:
            if running is not None:
                running.rows()


def _given(questions: Sequence[Question], token_digests: Sequence[str], at: datetime) -> tuple[Given, ...]:
    keys = [_key_of(question) for question in questions]
    return (
        texts(token_digests),
        texts(_clean(question.subject) for question in questions),
        texts(key for key, _ in keys),
        ints(number for _, number in keys),
        texts(_clean(question.fingerprint) for question in questions),
        texts(_clean(question.system) for question in questions),
        at.isoformat(),
    )


class _Read:
    """What was found to some questions, and all else that is to be looked up for them: the database is asked when this is made."""

    def __init__(self, questions: Sequence[Question], token_digests: Sequence[str], rows: Sequence[Row], at: datetime) -> None:
        told = [orjson.loads(row[0] or b"null") for row in rows]
        self._questions, self._who, self._found = questions, told[: len(token_digests)], told[len(token_digests) :]
        self._in_force = places_in_force(*self._who[0][1:])
        self._members = _read_members(self._found, at)
        subjects = [row[5] for row in self._found] + [member for behind in self._members.values() for member in behind]
        self._cores = read_cores({standing[5]: standing[8] for subject in subjects for standing in _standings_of(subject)})

    def callers(self) -> list[Caller | None]:
        """Return who asks, token by token."""
        return [_caller(row[0]) for row in self._who]

    def asked(self) -> list[Asked]:
        """Return each question with its facts."""
        return [self._asked(question, row) for question, row in zip(self._questions, self._found, strict=True)]

    def _asked(self, question: Question, row: Sequence[Any]) -> Asked:
        seen: list[Seen] = []
        grants: dict[str, int] = {}
        place_row, known, by_alias, means, before, subject_row = row
        system_id, system = _system(place_row, seen)
        version, subject = _subject(subject_row, self._cores, seen, grants)
        place = NOWHERE
        if system is not None and system_id is not None:
            place = self._in_force.at(question.action, system_id, system["domain"])
            if subject is not None and version is not None:
                for member_row in self._members.get((version, system_id), ()):
                    subject["reaches"].append(_subject(member_row, self._cores, seen, grants)[1])
        facts: Value = {
            "alias": {"name": question.subject, "now": means or "", "before": before or ""} if by_alias else None,
            "known_subject": known,
            "policies": place.rows,
            "question": question.as_value(),
            "subject": subject,
            "system": system if question.resource_type == SYSTEM else None,
        }
        return Asked(question, facts, place.policies, seen, version, system_id, grants)


def _read_members(found: Iterable[Sequence[Any]], at: datetime) -> dict[tuple[int, int], list[Sequence[Any]]]:
    """Return what answers behind the routes that hold no grant of their own, by the route's version and the system."""
    pairs = list(
        dict.fromkeys(
            (subject[_VERSION], place[0])
            for place, _, _, _, _, subject in found
            if place is not None and subject is not None and subject[_KIND] == ROUTE and not subject[_BEHIND][0]
        )
    )
    if not pairs:
        return {}
    members: dict[tuple[int, int], list[Sequence[Any]]] = {pair: [] for pair in pairs}
    given = (bigints(version for version, _ in pairs), bigints(system for _, system in pairs), at.isoformat())
    for route, system, member in fetch_prepared(MEMBERS, given):
        members[int(route or 0), int(system or 0)].append(orjson.loads(member or b"null"))
    return members


def _standings_of(subject: Sequence[Any] | None) -> Sequence[Sequence[Any]]:
    behind = subject[_BEHIND] if subject is not None else None
    return (behind[1] or ()) if behind is not None else ()


def _key_of(question: Question) -> tuple[str, int]:
    """Return the key and number that a subject's id states; "" where only an alias is meant."""
    if question.subject_type == ALIAS:
        return "", 0
    name = _clean(question.subject)
    numbered = _NUMBERED.match(name)
    return (numbered[1], int(numbered[2])) if numbered else (name, 0)


def _clean(text: str) -> str:
    """Return text as the database takes it: with a NUL it is the name of nothing."""
    return text if _NUL not in text else ""


def _caller(row: Sequence[Any] | None) -> Caller | None:
    if row is None:
        return None
    token, person, name, scopes, live, unnoted, commitment = row
    return Caller(token, person, name, tuple(scopes), live, unnoted, commitment or "")


# --- facts

_SYSTEM = ("key", "domain", "environment", "reversible", "open_incident", "owner")


def _system(row: Sequence[Any] | None, seen: list[Seen]) -> tuple[int | None, Value | None]:
    if row is None:
        return None, None
    seen.append(Seen("system", row[0], row[1]))
    return row[0], dict(zip(_SYSTEM, row[2:8], strict=True))


def _subject(
    row: Sequence[Any] | None, cores: Mapping[str, Value], seen: list[Seen], grants: dict[str, int]
) -> tuple[int | None, Value | None]:
    if row is None:
        return None, None
    (
        subject_id, moved, key, kind, provider, changed_at, urgent_at,
        version_id, number, digest, closed, running, since, behind,
    ) = row  # fmt: skip
    held, stood, waived = map(_listed, behind or (None, None, None), _ORDERS)
    seen.append(Seen("subject", subject_id, moved))
    for grant in held:
        grants[grant[0]] = grant[15]
        seen.append(Seen("grant", grant[15], grant[16]))
    seen += [Seen("standing", standing[9], standing[10]) for standing in stood]
    return version_id, {
        "key": key,
        "kind": kind,
        "provider": provider,
        "version": number,
        "digest": digest,
        "closed": closed,
        "changed_at": _instant(changed_at),
        "urgent_at": _instant(urgent_at),
        "running": running,
        "running_since": _instant(since),
        "grants": [_grant(grant) for grant in held],
        "standings": [_standing(standing, cores[standing[5]]) for standing in stood],
        "waivers": [_waiver(waiver) for waiver in waived],
        "reaches": [],
    }


_Order = Callable[[Sequence[Any]], Any]
# Grants that are active come first, and the newest; then standings as they were made; then waivers, the newest first.
_ORDERS: tuple[_Order, ...] = (lambda grant: (grant[2] != "active", -grant[15]), itemgetter(9), lambda waiver: -waiver[7])


def _listed(rows: Sequence[Sequence[Any]] | None, order: _Order) -> Sequence[Sequence[Any]]:
    """Return rows in their order: the database gives them in any."""
    if not rows:
        return ()
    return sorted(rows, key=order) if len(rows) > 1 else rows


def _grant(row: Sequence[Any]) -> Value:
    (
        uid, kind, status, cause, actions, starts_at, ends_at, begun_at, recertify_by, signed_at,
        gone, evidence, person, team, roles, *_,
    ) = row  # fmt: skip
    return {
        "uid": uid,
        "kind": kind,
        "status": status,
        "cause": cause,
        "actions": actions,
        "starts_at": _instant(starts_at),
        "ends_at": _instant(ends_at),
        "begun_at": _instant(begun_at),
        "recertify_by": _instant(recertify_by),
        "signed_at": _instant(signed_at),
        "gone": sorted(gone) if gone else [],
        "retracted": [word.removeprefix(_RETRACTED) for word in evidence if word.startswith(_RETRACTED)] if evidence else [],
        "requester": {"key": person, "kind": "person", "team": team or "", "roles": sorted(set(roles)) if roles else []},
    }


def _waiver(row: Sequence[Any]) -> Value:
    return {**dict(zip(_WAIVER, row[:6], strict=True)), "ends_at": _instant(row[6])}


def _standing(row: Sequence[Any], said: Value) -> Value:
    policy, params_digest, domain, verdict, outcome, core_digest, checked_at, due_at, *_ = row
    return {
        "policy": policy,
        "params_digest": params_digest,
        "domain": domain,
        "verdict": verdict,
        "outcome": outcome,
        "core_digest": core_digest,
        "checked_at": _instant(checked_at),
        "due_at": _instant(due_at),
        **said,
    }


def _instant(text: str | None) -> str | None:
    """Return an instant as facts write it, from the database's JSON, which leaves out zeros at the end of a fraction."""
    if text is None:
        return None
    if len(text) == WHOLE_INSTANT and text.endswith("+00:00"):
        return f"{text[:-6]}Z"
    return timestamp(datetime.fromisoformat(text))
