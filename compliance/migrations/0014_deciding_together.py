"""The two statements of a decision for many questions at once: what is the same for all is done once, whoever asked.

`writegate_read` answers a row a question and a row a token, from what its one calling statement sees; `writegate_read_members` does so
for what is behind routes. `writegate_decide` records the answers to several callers in one transaction. Both take arrays, which cost
the database a tenth of what JSON costs, and look each row up by its key: `OFFSET 0` keeps the planner from joining whole tables.
"""

from importlib import import_module

from django.db import migrations

before = import_module("compliance.migrations.0013_deciding")

# The version a question means, where it is not simply the one version of a subject found by its key: by an alias of no particular
# source, by fingerprint, by number, or the one of several that runs.
VERSION = """
CREATE FUNCTION writegate_version(name text, key text, number int, fingerprint text, subject bigint, at timestamptz,
    OUT id bigint, OUT by_alias boolean, OUT now_means text, OUT meant_before text)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    alias record;
BEGIN
    by_alias := false;
    IF subject IS NULL THEN
        SELECT a.id, a.subject_version_id INTO alias FROM evaluations_aliasassignment a
        WHERE a.name_as_written = writegate_version.name AND a.source_id IS NULL
            AND (a.effective_from IS NULL OR a.effective_from <= at)
        ORDER BY a.id DESC LIMIT 1;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        by_alias := true;
        SELECT o.key || '@' || w.number INTO now_means
        FROM evaluations_subjectversion w JOIN evaluations_subject o ON o.id = w.subject_id WHERE w.id = alias.subject_version_id;
        SELECT (SELECT o.key || '@' || w.number FROM evaluations_subjectversion w
            JOIN evaluations_subject o ON o.id = w.subject_id WHERE w.id = a.subject_version_id) INTO meant_before
        FROM evaluations_aliasassignment a
        WHERE a.name_as_written = writegate_version.name AND a.source_id IS NULL AND a.id < alias.id
            AND a.subject_version_id IS DISTINCT FROM alias.subject_version_id
        ORDER BY a.id DESC LIMIT 1;
        SELECT f.id INTO id FROM evaluations_subjectversion f
        WHERE f.id = alias.subject_version_id AND (fingerprint = '' OR f.digest = writegate_version.fingerprint);
    ELSIF fingerprint <> '' THEN
        SELECT f.id INTO id FROM evaluations_subjectversion f
        WHERE f.subject_id = subject AND f.digest = writegate_version.fingerprint
            AND (writegate_version.number = 0 OR f.number = writegate_version.number);
    ELSIF number > 0 THEN
        SELECT f.id INTO id FROM evaluations_subjectversion f
        WHERE f.subject_id = subject AND f.number = writegate_version.number;
    ELSE
        SELECT r.id INTO id FROM writegate_running(subject, writegate_version.key) r;
    END IF;
END
$$;
"""
NO_VERSION = "DROP FUNCTION writegate_version;"

# What is held at a system by the version `a.version`, with the system `a.system` in `a.domain`.
_HELD = """json_build_array(
            (SELECT json_agg(json_build_array(h.uid, h.kind, h.status, h.cause, h.actions, h.starts_at, h.ends_at, h.begun_at,
                h.recertify_by, coalesce(
                    (SELECT paper.recorded_at FROM compliance_dossier paper WHERE paper.id = h.dossier_id), h.created_at),
                CASE WHEN h.status = 'active' THEN (
                    SELECT json_agg(gone.person_id ORDER BY gone.person_id) FROM (
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
                (SELECT json_agg(DISTINCT m.role ORDER BY m.role) FROM compliance_rolemembership m
                    WHERE m.person_id = h.requester_id AND m.starts_at <= at AND (m.ends_at IS NULL OR m.ends_at > at)),
                h.id, h.moved) ORDER BY h.status <> 'active', h.id DESC)
            FROM (
                SELECT g.*, g.xmin::text AS moved FROM compliance_grant g
                WHERE g.subject_version_id = a.version AND EXISTS (
                    SELECT FROM compliance_grantsystem link WHERE link.grant_id = g.id AND link.system_id = a.system OFFSET 0)
                ORDER BY g.status <> 'active', g.id DESC LIMIT 5
            ) h),
            (SELECT json_agg(json_build_array(
                (SELECT own.digest FROM policies_policyversion own WHERE own.id = st.policy_version_id), st.params_digest, st.domain,
                d.uid, d.outcome, d.core_digest, st.checked_at, st.due_at, d.id, st.id, st.moved) ORDER BY st.id)
            FROM (
                SELECT one.*, one.xmin::text AS moved FROM policies_standing one
                WHERE one.subject_version_id = a.version AND one.policy_version_id = ANY (in_force)
                    AND one.domain IN (a.domain, 'any') OFFSET 0
            ) st, LATERAL (SELECT v.id, v.uid, v.outcome, v.core_digest FROM policies_verdict v WHERE v.id = st.verdict_id OFFSET 0) d),
            (SELECT json_agg(json_build_array(w.uid, (SELECT p.name FROM policies_policy p WHERE p.id = w.policy_id), w.rule,
                w.rule_digest, w.measured::text, w.floor, w.ends_at) ORDER BY w.id DESC)
            FROM compliance_waiver w
            WHERE w.subject_version_id = a.version AND w.system_id = a.system AND w.starts_at <= at AND w.ends_at > at
                AND NOT EXISTS (SELECT FROM compliance_waiverrevocation r WHERE r.waiver_id = w.id OFFSET 0)))"""

# One row a token (`caller`), then one a question: what names it, and the subject's version with what it holds at the system.
READ = """
CREATE FUNCTION writegate_read(tokens text[], names text[], keys text[], numbers int[], fingerprints text[], systems text[],
    at timestamptz) RETURNS TABLE (found json) LANGUAGE plpgsql STABLE AS $$
DECLARE
    in_force bigint[] := writegate_in_force();
BEGIN
    RETURN QUERY SELECT writegate_caller(t.token, in_force, at) FROM unnest(tokens) WITH ORDINALITY t(token, place) ORDER BY t.place;
    RETURN QUERY SELECT json_build_array(
        CASE WHEN a.system IS NOT NULL THEN
            json_build_array(a.system, a.moved, a.key, a.domain, a.environment, a.reversible, a.open_incident, a.owner) END,
        a.subject IS NOT NULL, a.by_alias, a.now_means, a.meant_before,
        CASE WHEN s.id IS NOT NULL THEN json_build_array(s.id, s.moved, s.key, s.kind, s.provider, s.changed_at, s.urgent_at,
            v.id, v.number, v.digest, v.closed, runs.number, runs.since,
            CASE WHEN a.system IS NOT NULL THEN HELD_HERE END) END)
    FROM (
        SELECT q.place, y.id AS system, y.moved, y.key, y.domain, y.environment, y.reversible, y.open_incident, y.owner,
            named.id AS subject, newest.id AS newest, newest.number AS newest_number, newest.registered_at AS newest_since,
            coalesce(meant.by_alias, false) AS by_alias, meant.now_means, meant.meant_before,
            CASE WHEN simple.one THEN newest.id ELSE meant.id END AS version, simple.one AS simple
        FROM unnest(names, keys, numbers, fingerprints, systems)
            WITH ORDINALITY q(name, key, number, fingerprint, system, place)
        LEFT JOIN LATERAL (SELECT x.*, x.xmin::text AS moved FROM policies_system x WHERE x.key = q.system OFFSET 0) y ON true
        LEFT JOIN LATERAL (SELECT o.id FROM evaluations_subject o WHERE o.key = q.key OFFSET 0) named ON true
        LEFT JOIN LATERAL (
            SELECT n.id, n.number, n.registered_at FROM evaluations_subjectversion n WHERE n.subject_id = named.id
            ORDER BY n.number DESC LIMIT 1) newest ON true
        CROSS JOIN LATERAL (SELECT coalesce(q.fingerprint = '' AND q.number = 0 AND newest.number = 1, false) AS one OFFSET 0) simple
        LEFT JOIN LATERAL writegate_version(q.name, q.key, q.number, q.fingerprint, named.id, at) meant ON NOT simple.one
        OFFSET 0
    ) a
    LEFT JOIN LATERAL (SELECT w.* FROM evaluations_subjectversion w WHERE w.id = a.version OFFSET 0) v ON true
    LEFT JOIN LATERAL (SELECT o.*, o.xmin::text AS moved FROM evaluations_subject o WHERE o.id = v.subject_id OFFSET 0) s ON true
    LEFT JOIN LATERAL (
        SELECT a.newest_number AS number, a.newest_since AS since WHERE a.simple
        UNION ALL SELECT r.number, r.since FROM writegate_running(s.id, s.key) r WHERE NOT a.simple AND s.id IS NOT NULL
    ) runs ON true
    ORDER BY a.place;
END
$$;
"""
READ = READ.replace("HELD_HERE", _HELD)
NO_READ = "DROP FUNCTION writegate_read;"

MEMBERS = """
CREATE FUNCTION writegate_read_members(routes bigint[], systems bigint[], at timestamptz)
RETURNS TABLE (route bigint, "system" bigint, member json) LANGUAGE plpgsql STABLE AS $$
DECLARE
    in_force bigint[] := writegate_in_force();
BEGIN
    RETURN QUERY SELECT a.route, a.system, json_build_array(s.id, s.xmin::text, s.key, s.kind, s.provider, s.changed_at, s.urgent_at,
        v.id, v.number, v.digest, v.closed, runs.number, runs.since, HELD_HERE)
    FROM (
        SELECT q.place, q.route, q.system, y.domain, link.id AS link, link.member_id AS version
        FROM unnest(routes, systems) WITH ORDINALITY q(route, system, place)
        JOIN policies_system y ON y.id = q.system
        JOIN evaluations_subjectversionmember link ON link.version_id = q.route
        OFFSET 0
    ) a
    JOIN evaluations_subjectversion v ON v.id = a.version
    JOIN evaluations_subject s ON s.id = v.subject_id, LATERAL writegate_running(s.id, s.key) runs
    ORDER BY a.place, a.link;
END
$$;
"""
MEMBERS = MEMBERS.replace("HELD_HERE", _HELD)
NO_MEMBERS = "DROP FUNCTION writegate_read_members;"

# A grant that is being moved is waited for where the caller is patient, and then found at another version: no allow is entered behind
# its revocation. Those who move grants lock them in the order of ids too. Subjects, systems and standings, which thousands of answers
# a second share, are compared in the same transaction and not locked: many holders of one row's lock cost more than the whole answer.
DECIDE = """
CREATE FUNCTION writegate_decide(
    grants bigint[], grant_versions xid[], subjects bigint[], subject_versions xid[], systems bigint[], system_versions xid[],
    standings bigint[], standing_versions xid[], body_digests text[], bodies bytea[], uids uuid[], alloweds boolean[],
    observeds boolean[], codes text[], subject_names text[], actions text[], resources text[], subject_version_ids bigint[],
    system_ids bigint[], grant_ids bigint[], decided_bodies text[], entries uuid[], contents bytea[], digests text[], tokens uuid[],
    request_ids text[], actors text[], at timestamptz, conformance boolean, patient boolean
) RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
    counted bigint;
BEGIN
    IF conformance AND EXISTS (SELECT FROM compliance_grant) THEN
        RAISE EXCEPTION 'the conformance profile answers only where there is no grant' USING ERRCODE = 'check_violation';
    END IF;
    IF cardinality(grants) > 0 THEN
        IF patient THEN
            SELECT count(*) INTO counted FROM unnest(grants, grant_versions) AS w(id, version),
                LATERAL (SELECT FROM compliance_grant t WHERE t.id = w.id AND t.xmin = w.version FOR SHARE) held;
        ELSE
            SELECT count(*) INTO counted FROM unnest(grants, grant_versions) AS w(id, version),
                LATERAL (SELECT FROM compliance_grant t WHERE t.id = w.id AND t.xmin = w.version FOR SHARE SKIP LOCKED) held;
        END IF;
        IF counted <> cardinality(grants) THEN
            RETURN false;
        END IF;
    END IF;
    IF cardinality(subjects) + cardinality(systems) + cardinality(standings) > 0 THEN
        SELECT (SELECT count(*) FROM unnest(subjects, subject_versions) AS w(id, version) WHERE EXISTS (
                SELECT FROM evaluations_subject t WHERE t.id = w.id AND t.xmin = w.version OFFSET 0))
            + (SELECT count(*) FROM unnest(systems, system_versions) AS w(id, version) WHERE EXISTS (
                SELECT FROM policies_system t WHERE t.id = w.id AND t.xmin = w.version OFFSET 0))
            + (SELECT count(*) FROM unnest(standings, standing_versions) AS w(id, version) WHERE EXISTS (
                SELECT FROM policies_standing t WHERE t.id = w.id AND t.xmin = w.version OFFSET 0)) INTO counted;
        IF counted <> cardinality(subjects) + cardinality(systems) + cardinality(standings) THEN
            RETURN false;
        END IF;
    END IF;
    IF cardinality(body_digests) > 0 THEN
        INSERT INTO compliance_decisionbody (digest, content, recorded_at)
        SELECT b.digest, b.content, writegate_decide.at FROM unnest(body_digests, bodies) AS b(digest, content)
        ON CONFLICT (digest) DO NOTHING;
    END IF;
    WITH entered AS (
        INSERT INTO compliance_ledgerentry (uid, content, digest, action, actor, target_kind, target_id, recorded_at)
        SELECT d.entry, d.content, d.digest, 'decision.made', d.actor, 'decision', d.uid::text, writegate_decide.at
        FROM unnest(entries, contents, digests, actors, uids) WITH ORDINALITY AS d(entry, content, digest, actor, uid, place)
        ORDER BY d.place RETURNING id
    ), queued AS (
        INSERT INTO compliance_ledgerpending (entry_id) SELECT id FROM entered
    ), decided AS (
        INSERT INTO compliance_decision (uid, allowed, observed, conformance, codes, subject, action, resource, subject_version_id,
            system_id, grant_id, body_id, entry, token, request_id, at)
        SELECT d.uid, d.allowed, d.observed, writegate_decide.conformance, string_to_array(d.codes, ','), d.subject, d.action,
            d.resource, d.subject_version, d.system, d."grant", body.id, d.entry, d.token, d.request_id, writegate_decide.at
        FROM unnest(uids, alloweds, observeds, writegate_decide.codes, subject_names, actions, resources, subject_version_ids,
            system_ids, grant_ids, decided_bodies, entries, tokens, request_ids)
            WITH ORDINALITY AS d(uid, allowed, observed, codes, subject, action, resource, subject_version, system, "grant", body,
                entry, token, request_id, place),
            LATERAL (SELECT b.id FROM compliance_decisionbody b WHERE b.digest = d.body OFFSET 0) body
        ORDER BY d.place RETURNING id
    )
    SELECT count(*) INTO counted FROM decided;
    IF counted <> cardinality(uids) THEN
        RAISE EXCEPTION 'a decision has no body' USING ERRCODE = 'no_data_found';
    END IF;
    RETURN true;
END
$$;
"""
NO_DECIDE = "DROP FUNCTION writegate_decide;"


class Migration(migrations.Migration):
    dependencies = [("compliance", "0013_deciding")]

    operations = [
        migrations.RunSQL(before.NO_DECIDE, before.DECIDE),
        migrations.RunSQL(before.NO_QUESTION, before.QUESTION),
        migrations.RunSQL(before.NO_SUBJECT, before.SUBJECT),
        migrations.RunSQL(before.NO_HELD, before.HELD),
        migrations.RunSQL(VERSION, NO_VERSION),
        migrations.RunSQL(READ, NO_READ),
        migrations.RunSQL(MEMBERS, NO_MEMBERS),
        migrations.RunSQL(DECIDE, NO_DECIDE),
    ]
