"""Do the grants of a database rest on valid signatures? Told from the raw rows, by code that shares nothing with ours."""

from collections import defaultdict
from itertools import permutations
from typing import Any

from django.db import connection

_GRANTS = """
SELECT made.id, made.uid::text AS uid, made.status, made.dossier_id, made.requester_id::text AS requester,
    asked.status AS asked_status, asked.closed_at, asked.requester_id::text AS asked_by, asked.dossier_id AS present,
    paper.excluded::text[] AS excluded, paper.digest, paper.request_id AS paper_request
FROM compliance_grant made
LEFT JOIN compliance_dossier paper ON paper.id = made.dossier_id
LEFT JOIN compliance_signoffrequest asked ON asked.id = paper.request_id
WHERE made.kind = 'standing' ORDER BY made.id
"""
_FACTORS = "SELECT dossier_id, factor, role, approve FROM compliance_quorumfactor ORDER BY dossier_id, ordinal"
_WORDS = """
SELECT DISTINCT ON (given.request_id, given.person_id) given.id, given.request_id, given.dossier_id, given.dossier_digest,
    given.person_id::text AS person, given.account_id, given.meaning, given.roles, given.signed_at
FROM compliance_signoff given ORDER BY given.request_id, given.person_id, given.id DESC
"""
_ROLES = "SELECT person_id::text AS person, role, given_by, starts_at, ends_at FROM compliance_rolemembership"
_CLOSED = """
SELECT (convert_from(content, 'UTF8')::jsonb -> 'new' ->> 'account')::int AS account, action, id FROM compliance_ledgerentry
WHERE action IN ('account.deactivated', 'account.reactivated') ORDER BY id
"""
_COMPLETED = "SELECT target_id, id FROM compliance_ledgerentry WHERE action = 'request.completed'"
_EVENTS = """
SELECT grant_id, count(*) FILTER (WHERE move = 'made') AS made, count(*) AS events, max(number) AS highest
FROM compliance_grantevent GROUP BY 1
"""
_LAST = "SELECT DISTINCT ON (grant_id) grant_id, status FROM compliance_grantevent ORDER BY grant_id, number DESC"
_UIDS = "SELECT id, uid::text AS uid FROM compliance_signoffrequest"


def unsigned_grants() -> list[str]:
    """Return what is wrong with any standing grant, one line a finding; empty where each rests on a full quorum of valid signatures."""
    words: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for word in _rows(_WORDS):
        words[word["request_id"]].append(word)
    factors: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for factor in _rows(_FACTORS):
        factors[factor["dossier_id"]].append(factor)
    roles: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for role in _rows(_ROLES):
        roles[role["person"]].append(role)
    closed = _rows(_CLOSED)
    completed = {row["target_id"]: row["id"] for row in _rows(_COMPLETED)}
    uids = {row["id"]: row["uid"] for row in _rows(_UIDS)}
    events = {row["grant_id"]: row for row in _rows(_EVENTS)}
    last = {row["grant_id"]: row["status"] for row in _rows(_LAST)}
    findings = []
    for grant in _rows(_GRANTS):
        told = events.get(grant["id"], {"made": 0, "events": 0, "highest": 0})
        if told["made"] != 1 or told["events"] != told["highest"]:
            findings.append(f"{grant['uid']}: {told['made']} times made, {told['events']} events up to number {told['highest']}")
        if last.get(grant["id"]) != grant["status"]:
            findings.append(f"{grant['uid']}: is {grant['status']}, its last event says {last.get(grant['id'])}")
        if grant["asked_status"] != "completed" or grant["present"] != grant["dossier_id"]:
            findings.append(f"{grant['uid']}: rests on a dossier that was not completed")
            continue
        ended = completed[uids[grant["paper_request"]]]
        able = []
        for word in words[grant["paper_request"]]:
            if word["meaning"] == "rejected" and word["dossier_id"] == grant["dossier_id"]:
                findings.append(f"{grant['uid']}: {word['person']} rejected it")
            if _counts(word, grant, closed, ended):
                able.append((word["person"], _held(word, grant, roles[word["person"]])))
        places = [factor["role"] for factor in factors[grant["dossier_id"]] for _ in range(factor["approve"])]
        if not places or not _seated(places, able):
            findings.append(f"{grant['uid']}: {able} do not fill {places}")
    return findings


def _counts(word: dict[str, Any], grant: dict[str, Any], closed: list[dict[str, Any]], ended: int) -> bool:
    before = [row["action"] for row in closed if row["account"] == word["account_id"] and row["id"] < ended]
    return (
        word["dossier_id"] == grant["dossier_id"]
        and word["dossier_digest"] == grant["digest"]
        and word["meaning"] in ("approved", "accepted_residual_risk")
        and word["person"] not in (grant["requester"], grant["asked_by"], *grant["excluded"])
        and (not before or before[-1] == "account.reactivated")
    )


def _held(word: dict[str, Any], grant: dict[str, Any], roles: list[dict[str, Any]]) -> set[str]:
    """Return the roles that the person signed with and held when the request was completed, given by somebody else."""
    at = grant["closed_at"]
    return {
        role["role"]
        for role in roles
        if role["role"] in word["roles"]
        and role["starts_at"] <= at
        and (role["ends_at"] is None or role["ends_at"] > at)
        and role["given_by"] not in (f"person:{word['person']}", f"person:{grant['asked_by']}")
    }


def _seated(places: list[str], able: list[tuple[str, set[str]]]) -> bool:
    """Try every way to seat people. Slow and plain on purpose: tests have few of either."""
    return any(
        all(place in held for place, (_, held) in zip(places, chosen, strict=True)) for chosen in permutations(able, len(places))
    )


def _rows(query: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
