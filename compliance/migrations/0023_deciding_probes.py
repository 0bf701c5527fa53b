"""What the first statement of a decision looks up, with fewer looks: a batch of a thousand spent half of its time in them.

What a question names is found once, not by its key and again by its id; of what a subject holds, the grants at the system are found by
one search for all of them, not one for each; and what is listed comes in any order, for Python puts one row in order for nothing and a
plan does not. The rows are what they were, but for these orders.
"""

from importlib import import_module

from django.db import migrations

before = import_module("compliance.migrations.0016_deciding_plans")
first = import_module("compliance.migrations.0014_deciding_together")

# What is held at a system by the version VERSION, with the system SYSTEM in DOMAIN.
_HELD = """json_build_array(
            (SELECT json_agg(json_build_array(h.uid, h.kind, h.status, h.cause, h.actions, h.starts_at, h.ends_at, h.begun_at,
                h.recertify_by, coalesce(
                    (SELECT paper.recorded_at FROM compliance_dossier paper WHERE paper.id = h.dossier_id), h.created_at),
                CASE WHEN h.status = 'active' THEN (
                    SELECT json_agg(gone.person_id) FROM (
                        SELECT seat.person_id FROM compliance_seat seat WHERE seat.dossier_id = h.dossier_id
                        UNION ALL SELECT h.requester_id WHERE h.dossier_id IS NULL
                    ) gone WHERE NOT EXISTS (
                        SELECT FROM compliance_user u WHERE u.person_id = gone.person_id AND u.is_active OFFSET 0)) END,
                CASE WHEN h.status = 'suspended' THEN (
                    SELECT last.detail -> 'evidence' FROM compliance_grantevent last WHERE last.grant_id = h.id
                    ORDER BY last.number DESC LIMIT 1) END,
                h.requester_id, (
                    SELECT team.key FROM compliance_team team WHERE team.id = (
                        SELECT asker.team_id FROM compliance_person asker WHERE asker.id = h.requester_id)),
                (SELECT json_agg(m.role) FROM compliance_rolemembership m
                    WHERE m.person_id = h.requester_id AND m.starts_at <= at AND (m.ends_at IS NULL OR m.ends_at > at)),
                h.id, h.moved))
            FROM (
                SELECT g.*, g.xmin::text AS moved FROM compliance_grant g
                WHERE g.id = ANY (ARRAY(
                    SELECT link.grant_id FROM compliance_grantsystem link
                    WHERE link.system_id = a.system AND link.grant_id = ANY (ARRAY(
                        SELECT own.id FROM compliance_grant own WHERE own.subject_version_id = a.version))))
                ORDER BY g.status <> 'active', g.id DESC LIMIT 5
            ) h),
            (SELECT json_agg(json_build_array(
                (SELECT own.digest FROM policies_policyversion own WHERE own.id = st.policy_version_id), st.params_digest, st.domain,
                d.uid, d.outcome, d.core_digest, st.checked_at, st.due_at, d.id, st.id, st.moved))
            FROM (
                SELECT one.*, one.xmin::text AS moved FROM policies_standing one
                WHERE one.subject_version_id = a.version AND one.policy_version_id = ANY (in_force)
                    AND one.domain IN (a.domain, 'any') OFFSET 0
            ) st, LATERAL (SELECT v.id, v.uid, v.outcome, v.core_digest FROM policies_verdict v WHERE v.id = st.verdict_id OFFSET 0) d),
            (SELECT json_agg(json_build_array(w.uid, (SELECT p.name FROM policies_policy p WHERE p.id = w.policy_id), w.rule,
                w.rule_digest, w.measured::text, w.floor, w.ends_at, w.id))
            FROM compliance_waiver w
            WHERE w.subject_version_id = a.version AND w.system_id = a.system AND w.starts_at <= at AND w.ends_at > at
                AND NOT EXISTS (SELECT FROM compliance_waiverrevocation r WHERE r.waiver_id = w.id OFFSET 0)))"""


# A row a token (`caller`), then one a question: what names it, and the subject's version with what it holds at the system.
READ = """
CREATE OR REPLACE FUNCTION writegate_read(tokens text[], names text[], keys text[], numbers int[], fingerprints text[], systems text[],
    at timestamptz) RETURNS TABLE (found json) LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_memoize = off AS $$
DECLARE
    in_force bigint[] := writegate_in_force();
BEGIN
    RETURN QUERY SELECT writegate_caller(t.token, in_force, at) FROM unnest(tokens) WITH ORDINALITY t(token, place) ORDER BY t.place;
    RETURN QUERY SELECT json_build_array(
        CASE WHEN a.system IS NOT NULL THEN
            json_build_array(a.system, a.moved, a.key, a.domain, a.environment, a.reversible, a.open_incident, a.owner) END,
        a.named IS NOT NULL, coalesce(a.by_alias, false), a.now_means, a.meant_before,
        CASE WHEN a.subject IS NOT NULL THEN json_build_array(a.subject, a.subject_moved, a.subject_key, a.kind, a.provider,
            a.changed_at, a.urgent_at, a.version, a.number, a.digest, a.closed, a.running, a.since,
            CASE WHEN a.system IS NOT NULL THEN HELD_HERE END) END)
    FROM (
        SELECT q.place, y.*, named.id AS named, meant.by_alias, meant.now_means, meant.meant_before, s.*
        FROM unnest(names, keys, numbers, fingerprints, systems)
            WITH ORDINALITY q(name, key, number, fingerprint, system, place)
        LEFT JOIN LATERAL (
            SELECT x.id AS system, x.xmin::text AS moved, x.key, x.domain, x.environment, x.reversible, x.open_incident, x.owner
            FROM policies_system x WHERE x.key = q.system OFFSET 0
        ) y ON true
        LEFT JOIN LATERAL (
            SELECT o.id, o.xmin::text AS moved, o.key, o.kind, o.provider, o.changed_at, o.urgent_at
            FROM evaluations_subject o WHERE o.key = q.key OFFSET 0
        ) named ON true
        LEFT JOIN LATERAL (
            SELECT n.id, n.number, n.digest, n.closed, n.registered_at FROM evaluations_subjectversion n
            WHERE n.subject_id = named.id ORDER BY n.number DESC LIMIT 1
        ) newest ON true
        CROSS JOIN LATERAL (SELECT coalesce(q.fingerprint = '' AND q.number = 0 AND newest.number = 1, false) AS one OFFSET 0) simple
        LEFT JOIN LATERAL (
            SELECT m.* FROM writegate_version(q.name, q.key, q.number, q.fingerprint, named.id, at) m WHERE NOT simple.one OFFSET 0
        ) meant ON true
        LEFT JOIN LATERAL (
            SELECT named.id AS subject, named.moved AS subject_moved, named.key AS subject_key, named.kind, named.provider,
                named.changed_at, named.urgent_at, newest.id AS version, newest.number, newest.digest, newest.closed,
                newest.number AS running, newest.registered_at AS since
            WHERE simple.one
            UNION ALL
            SELECT o.id, o.xmin::text, o.key, o.kind, o.provider, o.changed_at, o.urgent_at, w.id, w.number, w.digest, w.closed,
                runs.number, runs.since
            FROM evaluations_subjectversion w JOIN evaluations_subject o ON o.id = w.subject_id
                LEFT JOIN LATERAL writegate_running(o.id, o.key) runs ON true
            WHERE NOT simple.one AND w.id = meant.id
        ) s ON true
        OFFSET 0
    ) a
    ORDER BY a.place;
END
$$;
""".replace("HELD_HERE", _HELD)

PLANNED = "LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_memoize = off AS"
REPLACED = first.MEMBERS.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
MEMBERS = REPLACED.replace("LANGUAGE plpgsql STABLE AS", PLANNED).replace(first._HELD, _HELD)  # noqa: SLF001  (an older step's text)

# Both as they were, with what migration 0016 set for them, which a replaced function loses.
_SET = "ALTER FUNCTION {name} SET enable_seqscan = off;"
READ_AS_BEFORE = f"{before.READ}{_SET.format(name='writegate_read')}"
MEMBERS_AS_BEFORE = f"{REPLACED}{_SET.format(name='writegate_read_members')}"


class Migration(migrations.Migration):
    dependencies = [("compliance", "0022_signed_trust")]

    operations = [
        migrations.RunSQL(READ, READ_AS_BEFORE),
        migrations.RunSQL(MEMBERS, MEMBERS_AS_BEFORE),
    ]
