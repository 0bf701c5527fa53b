"""Many requests and grants at once, in SQL: unrecorded, but in the shape that the services give them and the database checks."""

from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from compliance import embedded
from compliance.connections import with_parts
from compliance.models import SignOffRequest, User
from evaluations.kernel.services import service_transaction

_REQUESTS = """
WITH made AS (
    INSERT INTO compliance_signoffrequest (uid, kind, status, requester_id, requested_by, reason, proposal, subject_version_id,
        created_at, expires_at, closed_because)
    SELECT gen_random_uuid(), kind, 'open', requester_id, requested_by, reason, proposal, subject_version_id, created_at,
        expires_at + number * interval '1 second', ''
    FROM compliance_signoffrequest, generate_series(1, %(count)s) AS number WHERE id = %(pattern)s
    RETURNING id
), papers AS (
    INSERT INTO compliance_dossier (request_id, number, content, digest, excluded, because, recorded_at)
    SELECT made.id, 1, paper.content, paper.digest, paper.excluded, '', paper.recorded_at
    FROM made, compliance_dossier paper WHERE paper.id = %(dossier)s
    RETURNING id, request_id
), factors AS (
    INSERT INTO compliance_quorumfactor (dossier_id, ordinal, factor, role, approve, filter)
    SELECT papers.id, factor.ordinal, factor.factor, factor.role, factor.approve, factor.filter
    FROM papers, compliance_quorumfactor factor WHERE factor.dossier_id = %(dossier)s
), systems AS (
    INSERT INTO compliance_requestsystem (request_id, system_id)
    SELECT made.id, about.system_id FROM made, compliance_requestsystem about WHERE about.request_id = %(pattern)s
)
SELECT id, request_id FROM papers
"""
_POINT = """
UPDATE compliance_signoffrequest asked SET dossier_id = given.dossier
FROM unnest(%s::bigint[], %s::bigint[]) AS given(dossier, request) WHERE asked.id = given.request
"""
_SIGN = """
WITH signed AS (
    INSERT INTO compliance_signoff (uid, request_id, requester_id, dossier_id, dossier_digest, person_id, account_id, roles, meaning,
        reason, reauthentication_id, signed_at)
    SELECT gen_random_uuid(), asked.id, asked.requester_id, paper.id, paper.digest, %(person)s, %(account)s, ARRAY[factor.role],
        'approved', 'bench', %(shown)s, now()
    FROM compliance_signoffrequest asked JOIN compliance_dossier paper ON paper.id = asked.dossier_id
    JOIN compliance_quorumfactor factor ON factor.dossier_id = paper.id AND factor.role = %(role)s
    WHERE asked.id = ANY(%(requests)s)
    RETURNING id, dossier_id, person_id
)
SELECT signed.id, signed.dossier_id, factor.id FROM signed
JOIN compliance_quorumfactor factor ON factor.dossier_id = signed.dossier_id AND factor.role = %(role)s
"""
_SEAT = """
INSERT INTO compliance_seat (dossier_id, factor_id, number, sign_off_id, person_id)
SELECT dossier, factor, 1, sign_off, %s FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS given(sign_off, dossier, factor)
"""
_GRANTS = (
    """
    INSERT INTO compliance_grant (uid, kind, status, subject_version_id, actions, requester_id, request_id, dossier_id, starts_at,
        ends_at, begun_at, recertify_every_days, recertify_by, reason, cause, created_at)
    SELECT gen_random_uuid(), 'standing', 'active', asked.subject_version_id, ARRAY['write'], asked.requester_id, asked.id,
        asked.dossier_id, now(), (convert_from(asked.proposal, 'UTF8')::jsonb ->> 'ends_at')::timestamptz, now(), 30,
        now() + interval '30 days', 'bench', 'signed', now()
    FROM compliance_signoffrequest asked WHERE asked.id = ANY(%(requests)s)
    """,
    """
    INSERT INTO compliance_grantsystem (grant_id, system_id)
    SELECT made.id, about.system_id
    FROM compliance_grant made JOIN compliance_requestsystem about ON about.request_id = made.request_id
    WHERE made.request_id = ANY(%(requests)s)
    """,
    """
    INSERT INTO compliance_grantevent (grant_id, number, move, status, cause, detail, dossier_id, recertify_by, actor, at)
    SELECT id, 1, 'made', 'active', 'signed', '{}', dossier_id, recertify_by, 'system_job:bench', now()
    FROM compliance_grant WHERE request_id = ANY(%(requests)s)
    """,
    """
    UPDATE compliance_signoffrequest SET status = 'completed', closed_at = now(), closed_because = 'bench'
    WHERE id = ANY(%(requests)s)
    """,
)


def copy_request(pattern: SignOffRequest, count: int) -> list[int]:
    """Copy an open request with its dossier so many times; return the row ids of the copies."""
    with service_transaction("bench"), connection.cursor() as cursor:
        cursor.execute(_REQUESTS, {"count": count, "pattern": pattern.pk, "dossier": pattern.dossier_id})
        made = cursor.fetchall()
        dossiers, requests = [row[0] for row in made], [row[1] for row in made]
        cursor.execute(_POINT, [dossiers, requests])
        cursor.execute("SELECT writegate_refresh_statistics()")
    return requests


def grant_all(requests: list[int], signers: list[tuple[User, str, Any]]) -> None:
    """Have open requests signed, by (account, role, re-authentication) for each factor, and make their grants."""
    with service_transaction("bench"), connection.cursor() as cursor:
        for account, role, shown in signers:
            cursor.execute(
                _SIGN,
                {
                    "person": account.person_id,
                    "account": account.pk,
                    "role": role,
                    "shown": shown.pk,
                    "requests": requests,
                },
            )
            sign_offs, dossiers, factors = zip(*cursor.fetchall(), strict=True)
            cursor.execute(_SEAT, [account.person_id, list(sign_offs), list(dossiers), list(factors)])
        for statement in _GRANTS:
            cursor.execute(statement, {"requests": requests})


_MANY = """
INSERT INTO policies_system (key, title, domain, environment, reversible, open_incident, owner, registered_at)
SELECT 'system-' || n, 'System', domain, environment, reversible, false, owner, now()
FROM policies_system, generate_series(0, {systems} - 1) n WHERE key = 'hr-prod';

INSERT INTO evaluations_subject (key, kind, title, provider, candidate, registered_at, changed_at)
SELECT 'subject-' || n, 'model', 'Subject', '', false, now() - interval '1 day', now() - interval '1 day'
FROM generate_series(1, {subjects}) n;

INSERT INTO evaluations_subjectversion (subject_id, number, pin, digest, closed, registered_at, registered_by)
SELECT id, 1, '', 'sha256:' || encode(sha256(key::bytea), 'hex'), true, now() - interval '1 day', 'bench'
FROM evaluations_subject WHERE key LIKE 'subject-%';

INSERT INTO policies_standing (policy_version_id, params_digest, subject_version_id, domain, verdict_id, checked_at)
SELECT old.policy_version_id, old.params_digest, v.id, old.domain, old.verdict_id, now()
FROM evaluations_subjectversion v, policies_standing old WHERE v.registered_by = 'bench';

INSERT INTO compliance_signoffrequest (uid, kind, status, requester_id, requested_by, reason, proposal, subject_version_id,
    created_at, expires_at, closed_at, closed_because)
SELECT gen_random_uuid(), 'grant', 'completed', old.requester_id, old.requested_by, 'bench', '', v.id, old.created_at,
    old.expires_at, now(), 'bench'
FROM evaluations_subjectversion v, generate_series(1, {systems}),
    (SELECT * FROM compliance_signoffrequest WHERE kind = 'grant' ORDER BY id DESC LIMIT 1) old WHERE v.registered_by = 'bench';

INSERT INTO compliance_grant (uid, kind, status, subject_version_id, actions, requester_id, request_id, dossier_id, starts_at,
    ends_at, begun_at, recertify_every_days, recertify_by, reason, cause, created_at)
SELECT gen_random_uuid(), old.kind, old.status, asked.subject_version_id, old.actions, old.requester_id, asked.id,
    old.dossier_id, old.starts_at, old.ends_at, old.begun_at, 30, old.recertify_by, 'bench', old.cause, old.created_at
FROM compliance_signoffrequest asked, (SELECT * FROM compliance_grant ORDER BY id LIMIT 1) old WHERE asked.reason = 'bench';

INSERT INTO compliance_grantsystem (grant_id, system_id)
SELECT made.id, system.id FROM (
    SELECT id, row_number() OVER (PARTITION BY subject_version_id ORDER BY id) - 1 AS place
    FROM compliance_grant WHERE reason = 'bench'
) made JOIN policies_system system ON system.key = 'system-' || made.place;

INSERT INTO compliance_grantevent (grant_id, number, move, status, cause, detail, dossier_id, recertify_by, actor, at)
SELECT id, 1, 'made', 'active', 'signed', '{{}}', dossier_id, recertify_by, 'system_job:bench', created_at
FROM compliance_grant WHERE reason = 'bench';

ANALYZE;
"""


def many_grants(subjects: int, systems: int) -> list[int]:
    """Make so many subjects, each with a grant for each of so many systems, past all triggers; return the subjects' numbers."""
    server = embedded.start(settings.DATA_DIR)
    address = with_parts(server.superuser_url, dbname=connection.settings_dict["NAME"])
    with psycopg.connect(address, autocommit=True) as owner:
        owner.execute("SET session_replication_role = replica")
        for statement in _MANY.split(";\n\n"):
            owner.execute(statement.format(subjects=subjects, systems=systems))
    return list(range(1, subjects + 1))
