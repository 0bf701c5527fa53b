"""Reads the facts of questions, each with the versions of the rows behind it and the policies that judge it."""

import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

import orjson

from compliance.deciding.facts import Question, Value
from compliance.deciding.judge import ALIAS, ROUTE, SYSTEM, Policies
from compliance.selectors.deciding.statement import MEMBERS, QUESTIONS
from compliance.selectors.dossiers.access import deciding_of
from evaluations.kernel.canonical import timestamp
from evaluations.kernel.prepared import bigints, fetch_prepared, ints, texts
from policies.language.compiled import CompiledPolicy
from policies.models import PolicyVersion, System, Verdict
from policies.selectors.applicable import CONFORMANCE, InForce, read_in_force
from policies.selectors.bindings import join_bindings, params_digest_of
from policies.selectors.systems import domain_for

MOST_EVIDENCE = 20
"""So many pieces of evidence are named of each verdict and rule; all of them stand under the verdict."""
PLACES_KEPT, CORES_KEPT = 4_096, 4_096
_RETRACTED = "evidence_retracted:"
_NUMBERED = re.compile(r"(.+)@([1-9][0-9]{0,8})\Z", re.DOTALL)
_NUL = "\x00"


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
    keys = [_key_of(question) for question in questions]
    given = (
        texts(token_digests),
        texts(_clean(question.subject) for question in questions),
        texts(key for key, _ in keys),
        ints(number for _, number in keys),
        texts(_clean(question.fingerprint) for question in questions),
        texts(_clean(question.system) for question in questions),
        at.isoformat(),
    )
    rows = [orjson.loads(row[0] or b"null") for row in fetch_prepared(QUESTIONS, given)]
    who, found = rows[: len(token_digests)], rows[len(token_digests) :]
    in_force = _in_force(*who[0][1:])
    asked = [_asked(question, row, in_force) for question, row in zip(questions, found, strict=True)]
    _add_members(asked, at)
    return [_caller(row[0]) for row in who], asked


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


# --- policies: what is in force never changes under the ids that name it


class _Place(NamedTuple):
    """What the policies in force come to at one system, for one action."""

    rows: list[Value]
    policies: Policies


class _InForce:
    """The versions in force under one set of ids, and what they come to at each system that was asked about."""

    def __init__(self, in_force: InForce) -> None:
        self._in_force = in_force
        # No door lets such a text in. However it came into force, nobody can say what it covers: it denies everything.
        self.refused: Sequence[Value] = [
            {"policy": version.policy.name, "version": version.number, "digest": version.digest, "refused": list(codes)}
            for version, codes in in_force.unreadable
        ]
        self._places: dict[tuple[str, int, str], _Place] = {}

    def at(self, action: str, system: int, domain: str) -> _Place:
        """Return the versions that name the action, with their parameters at the system."""
        found = self._places.get((action, system, domain))
        if found is None:
            if len(self._places) >= PLACES_KEPT:
                self._places.clear()
            found = self._places[action, system, domain] = self._make(action, System(pk=system, domain=domain))
        return found

    def _make(self, action: str, place: System) -> _Place:
        rows: list[Value] = list(self.refused)
        policies: dict[str, CompiledPolicy] = {}
        for version, compiled in zip(self._in_force.versions, self._in_force.compiled, strict=True):
            if compiled.profile == CONFORMANCE or action not in compiled.actions:
                continue
            tightened = join_bindings(compiled, self._in_force.bindings.get(version.policy_id, ()), system=place)
            rows.append(
                {
                    "policy": version.policy.name,
                    "version": version.number,
                    "digest": version.digest,
                    "profile": compiled.profile,
                    "params_digest": params_digest_of(compiled, tightened),
                    "domain": domain_for(compiled, place),
                }
            )
            policies[version.digest] = compiled
        return _Place(rows, policies)


def _in_force(active: str | None, bound: str | None, metrics: int) -> _InForce:
    """Return the versions in force. The ids of all that decides it are the key, and no door changes the rows under them."""
    held = _kept_in_force(active, bound, metrics)
    if held.refused:
        # Somebody has changed one past every door, and may put it back: it is read again, until it can be.
        _kept_in_force.cache_clear()
    return held


@lru_cache(maxsize=8)
def _kept_in_force(active: str | None, bound: str | None, metrics: int) -> _InForce:
    del bound, metrics
    ids = [int(pk) for pk in (active or "").split(",") if pk]
    versions = PolicyVersion.objects.filter(pk__in=ids).select_related("policy").order_by("policy__name")
    return _InForce(read_in_force(list(versions)))


# --- verdicts: what a judgement core says never changes under its digest

_said: "OrderedDict[str, Value]" = OrderedDict()
_said_lock = Lock()


def _read_cores(rows: Iterable[Sequence[Any]]) -> dict[str, Value]:
    """Return what the verdicts of standings say, by core digest: from what was read before, else in one query."""
    wanted = {row[5]: row[8] for row in rows}
    found = {digest: held for digest in wanted if (held := _said.get(digest)) is not None}
    missing = [pk for digest, pk in wanted.items() if digest not in found]
    if missing:
        cores = Verdict.objects.filter(pk__in=missing).values_list("core_digest", "core")
        read = {digest: said_in_core(json.loads(bytes(core))) for digest, core in cores}
        found.update(read)
        with _said_lock:
            _said.update(read)
            while len(_said) > CORES_KEPT:
                _said.popitem(last=False)
    return found


def said_in_core(core: Mapping[str, Any]) -> Value:
    """Return what the facts of a decision hold of a parsed judgement core."""
    rules = {rule["id"]: rule for rule in core["rules"]}
    evidence = dict.fromkeys(uid for rule in core["rules"] for uid in sorted(deciding_of(rule)))
    return {
        "blocking": [_rule(rules[name]) for name in core["blocking"]],
        "waivable": [_rule(rules[name]) for name in core["waivable"]],
        "evidence": list(evidence)[:MOST_EVIDENCE],
    }


def _rule(rule: Mapping[str, Any]) -> Value:
    told = {name: rule[name] for name in ("result", "reason", "clause", "measured", "bar", "n")}
    return {"rule": rule["id"], **told, "evidence": rule["deciding"][:MOST_EVIDENCE]}


# --- facts

_NOWHERE = _Place([], {})
_SYSTEM = ("key", "domain", "environment", "reversible", "open_incident", "owner")


def _asked(question: Question, row: Sequence[Any], in_force: _InForce) -> Asked:
    seen: list[Seen] = []
    grants: dict[str, int] = {}
    place_row, known, by_alias, means, before, subject_row = row
    system_id, system = _system(place_row, seen)
    version, subject = _subject(subject_row, seen, grants)
    place = in_force.at(question.action, system_id, system["domain"]) if system is not None and system_id else _NOWHERE
    facts: Value = {
        "alias": {"name": question.subject, "now": means or "", "before": before or ""} if by_alias else None,
        "known_subject": known,
        "policies": place.rows,
        "question": question.as_value(),
        "subject": subject,
        "system": system if question.resource_type == SYSTEM else None,
    }
    return Asked(question, facts, place.policies, seen, version, system_id, grants)


def _system(row: Sequence[Any] | None, seen: list[Seen]) -> tuple[int | None, Value | None]:
    if row is None:
        return None, None
    seen.append(Seen("system", row[0], row[1]))
    return row[0], dict(zip(_SYSTEM, row[2:8], strict=True))


def _subject(row: Sequence[Any] | None, seen: list[Seen], grants: dict[str, int]) -> tuple[int | None, Value | None]:
    if row is None:
        return None, None
    (
        subject_id, moved, key, kind, provider, changed_at, urgent_at,
        version_id, number, digest, closed, running, since, behind,
    ) = row  # fmt: skip
    held, stood, waived = behind or (None, None, None)
    seen.append(Seen("subject", subject_id, moved))
    for grant in held or ():
        grants[grant[0]] = grant[15]
        seen.append(Seen("grant", grant[15], grant[16]))
    seen += [Seen("standing", standing[9], standing[10]) for standing in stood or ()]
    cores = _read_cores(stood or ())
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
        "grants": [_grant(grant) for grant in held or ()],
        "standings": [_standing(standing, cores[standing[5]]) for standing in stood or ()],
        "waivers": [_waiver(waiver) for waiver in waived or ()],
        "reaches": [],
    }


_GRANT = ("uid", "kind", "status", "cause", "actions")
_GRANT_AT = ("starts_at", "ends_at", "begun_at", "recertify_by", "signed_at")
_WAIVER = ("uid", "policy", "rule", "rule_digest", "measured", "floor")
_STANDING = ("policy", "params_digest", "domain", "verdict", "outcome", "core_digest")


def _grant(row: Sequence[Any]) -> Value:
    gone, evidence, person, team, roles = row[10:15]
    return {
        **dict(zip(_GRANT, row[:5], strict=True)),
        **{name: _instant(text) for name, text in zip(_GRANT_AT, row[5:10], strict=True)},
        "gone": gone or [],
        "retracted": [word.removeprefix(_RETRACTED) for word in evidence or () if word.startswith(_RETRACTED)],
        "requester": {"key": person, "kind": "person", "team": team or "", "roles": roles or []},
    }


def _waiver(row: Sequence[Any]) -> Value:
    return {**dict(zip(_WAIVER, row[:6], strict=True)), "ends_at": _instant(row[6])}


def _standing(row: Sequence[Any], said: Value) -> Value:
    return {
        **dict(zip(_STANDING, row[:6], strict=True)),
        "checked_at": _instant(row[6]),
        "due_at": _instant(row[7]),
        **said,
    }


def _instant(text: str | None) -> str | None:
    """Return an instant as facts write it, from the database's JSON, which leaves out zeros at the end of a fraction."""
    if text is None:
        return None
    if not text.endswith("+00:00"):
        return timestamp(datetime.fromisoformat(text))
    bare = text[:-6]
    return f"{bare}Z" if len(bare) == 26 else timestamp(datetime.fromisoformat(text))


def _add_members(asked: Sequence[Asked], at: datetime) -> None:
    """Read what answers behind the routes that hold no grant of their own, and put it into their facts."""
    routes = [
        item
        for item in asked
        if item.system is not None
        and (subject := item.facts["subject"]) is not None
        and subject["kind"] == ROUTE
        and not subject["grants"]
    ]
    if not routes:
        return
    pairs = list(dict.fromkeys((item.subject_version, item.system) for item in routes))
    given = (bigints(version for version, _ in pairs), bigints(system for _, system in pairs), at.isoformat())
    rows = [[orjson.loads(cell or b"null") for cell in row] for row in fetch_prepared(MEMBERS, given)]
    for item in routes:
        for row in rows:
            if (row[0], row[1]) != (item.subject_version, item.system):
                continue
            _, member = _subject(row[2], item.seen, item.grants)
            if member is not None:
                item.facts["subject"]["reaches"].append(member)
