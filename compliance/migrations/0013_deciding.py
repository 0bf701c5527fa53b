"""The two statements of a decision, as functions whose plans are kept for the session; they run with the caller's own rights.

`writegate_question` reads, and is stable: all it sees is what the one statement that calls it sees. `writegate_decide` locks what the
answers rest on, compares and inserts: it answers false, and has done nothing, where a row was moved since it was read. Else it inserts
bodies that are new, decisions, and each decision's entry with its queue row.
"""

from django.db import migrations

IN_FORCE = """
CREATE FUNCTION writegate_in_force() RETURNS bigint[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT coalesce(array_agg(a.version_id ORDER BY a.version_id), '{}') FROM (
        SELECT DISTINCT ON (policy_id) version_id FROM policies_policyactivation ORDER BY policy_id, id DESC) a);
END
$$;
"""
NO_IN_FORCE = "DROP FUNCTION writegate_in_force;"
# Who asks, and the ids of all that decides which policies judge: nothing under them ever changes.
CALLER = """
CREATE FUNCTION writegate_caller(token text, in_force bigint[], at timestamptz) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT json_build_array(
            CASE WHEN t.id IS NOT NULL THEN json_build_array(t.id, t.person_id, t.name, t.scopes,
                t.revoked_at IS NULL AND t.expires_at > writegate_caller.at AND EXISTS (
                    SELECT FROM compliance_user u WHERE u.person_id = t.person_id AND u.is_active),
                t.last_used_at IS NULL OR t.last_used_at <= writegate_caller.at - interval '1 minute',
                (SELECT n.commitment FROM compliance_personname n WHERE n.person_id = t.person_id ORDER BY n.id DESC LIMIT 1)) END,
            array_to_string(in_force, ','),
            (SELECT string_agg(b.id::text, ',' ORDER BY b.id) FROM policies_binding b),
            (SELECT count(*) FROM evaluations_metric))
        FROM (SELECT) one LEFT JOIN compliance_servicetoken t ON t.token_digest = token);
END
$$;
"""
NO_CALLER = "DROP FUNCTION writegate_caller;"
# Which version runs: the one registered last, or rolled back to since, which stands in the ledger alone.
RUNNING = """
CREATE FUNCTION writegate_running(subject bigint, key text, OUT id bigint, OUT number int, OUT since timestamptz)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    again record;
BEGIN
    SELECT v.id, v.number, v.registered_at INTO id, number, since
    FROM evaluations_subjectversion v WHERE v.subject_id = subject ORDER BY v.number DESC LIMIT 1;
    IF number > 1 THEN
        SELECT v.id, v.number, last.recorded_at INTO again FROM evaluations_subjectversion v, LATERAL (
            SELECT e.recorded_at FROM compliance_ledgerentry e
            WHERE e.target_kind = 'subject_version' AND e.target_id = writegate_running.key || '@' || v.number
                AND e.action = 'subject_version.reinstated'
            ORDER BY -e.id LIMIT 1) last
        WHERE v.subject_id = subject ORDER BY last.recorded_at DESC LIMIT 1;
        IF FOUND AND again.recorded_at > since THEN
            id := again.id;
            number := again.number;
            since := again.recorded_at;
        END IF;
    END IF;
END
$$;
"""
NO_RUNNING = "DROP FUNCTION writegate_running;"
HELD = """
CREATE FUNCTION writegate_held(version bigint, system bigint, domain text, in_force bigint[], at timestamptz)
RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT json_build_array(
        (SELECT json_agg(json_build_array(h.uid, h.kind, h.status, h.cause, h.actions, h.starts_at, h.ends_at, h.begun_at,
            h.recertify_by, coalesce(
                (SELECT paper.recorded_at FROM compliance_dossier paper WHERE paper.id = h.dossier_id), h.created_at),
            CASE WHEN h.status = 'active' THEN (
                SELECT json_agg(gone.person_id ORDER BY gone.person_id) FROM (
                    SELECT seat.person_id FROM compliance_seat seat WHERE seat.dossier_id = h.dossier_id
                    UNION ALL SELECT h.requester_id WHERE h.dossier_id IS NULL
                ) gone WHERE NOT EXISTS (
                    SELECT FROM compliance_user u WHERE u.person_id = gone.person_id AND u.is_active)) END,
            CASE WHEN h.status = 'suspended' THEN (
                SELECT last.detail -> 'evidence' FROM compliance_grantevent last WHERE last.grant_id = h.id
                ORDER BY last.number DESC LIMIT 1) END,
            h.requester_id, (
                SELECT team.key FROM compliance_person asker JOIN compliance_team team ON team.id = asker.team_id
                WHERE asker.id = h.requester_id),
            (SELECT json_agg(DISTINCT m.role ORDER BY m.role) FROM compliance_rolemembership m
                WHERE m.person_id = h.requester_id AND m.starts_at <= at AND (m.ends_at IS NULL OR m.ends_at > at)),
            h.id, h.moved) ORDER BY h.status <> 'active', h.id DESC)
        FROM (
            SELECT g.*, g.xmin::text AS moved FROM compliance_grant g
            JOIN compliance_grantsystem link ON link.grant_id = g.id AND link.system_id = system
            WHERE g.subject_version_id = version ORDER BY g.status <> 'active', g.id DESC LIMIT 5
        ) h),
        (SELECT json_agg(json_build_array(own.digest, st.params_digest, st.domain, d.uid, d.outcome, d.core_digest, st.checked_at,
            st.due_at, d.id, st.id, st.xmin::text) ORDER BY st.id)
        FROM policies_standing st JOIN policies_verdict d ON d.id = st.verdict_id
        JOIN policies_policyversion own ON own.id = st.policy_version_id
        WHERE st.subject_version_id = version AND st.policy_version_id = ANY (in_force)
            AND st.domain IN (writegate_held.domain, 'any')),
        (SELECT json_agg(json_build_array(w.uid, p.name, w.rule, w.rule_digest, w.measured::text, w.floor, w.ends_at)
            ORDER BY w.id DESC)
        FROM compliance_waiver w JOIN policies_policy p ON p.id = w.policy_id
        WHERE w.subject_version_id = version AND w.system_id = system AND w.starts_at <= at AND w.ends_at > at
            AND NOT EXISTS (SELECT FROM compliance_waiverrevocation r WHERE r.waiver_id = w.id))));
END
$$;
"""
NO_HELD = "DROP FUNCTION writegate_held;"
SUBJECT = """
CREATE FUNCTION writegate_subject(version bigint, system bigint, domain text, in_force bigint[], at timestamptz)
RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT json_build_array(s.id, s.xmin::text, s.key, s.kind, s.provider, s.changed_at, s.urgent_at,
            v.id, v.number, v.digest, v.closed, runs.number, runs.since,
            CASE WHEN system IS NOT NULL THEN writegate_held(v.id, system, writegate_subject.domain, in_force, at) END)
        FROM evaluations_subjectversion v JOIN evaluations_subject s ON s.id = v.subject_id,
            LATERAL writegate_running(s.id, s.key) runs
        WHERE v.id = version);
END
$$;
"""
NO_SUBJECT = "DROP FUNCTION writegate_subject;"
# The subject by its key, else by an alias of no particular source; its version by fingerprint, by number, else the one that runs.
QUESTION = """
CREATE FUNCTION writegate_question(
    name text, key text, number int, fingerprint text, system text, in_force bigint[], at timestamptz
) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
    y record;
    newest record;
    found_by_key bigint;
    owner bigint;
    alias record;
    now_means text;
    meant_before text;
    version bigint;
    place json;
    domain text;
BEGIN
    SELECT x.id, x.xmin::text AS moved, x.key, x.domain, x.environment, x.reversible, x.open_incident, x.owner,
        s.id AS subject, s.xmin::text AS subject_moved, s.key AS subject_key, s.kind, s.provider, s.changed_at, s.urgent_at INTO y
    FROM (SELECT) one LEFT JOIN policies_system x ON x.key = writegate_question.system
    LEFT JOIN evaluations_subject s ON s.key = writegate_question.key;
    IF y.id IS NOT NULL THEN
        place := json_build_array(y.id, y.moved, y.key, y.domain, y.environment, y.reversible, y.open_incident, y.owner);
    END IF;
    found_by_key := y.subject;
    owner := found_by_key;
    IF owner IS NULL THEN
        SELECT a.id, a.subject_version_id INTO alias FROM evaluations_aliasassignment a
        WHERE a.name_as_written = writegate_question.name AND a.source_id IS NULL
            AND (a.effective_from IS NULL OR a.effective_from <= at)
        ORDER BY a.id DESC LIMIT 1;
        IF NOT FOUND THEN
            RETURN json_build_array(place, false, false, NULL, NULL, NULL);
        END IF;
        SELECT w.subject_id, o.key || '@' || w.number INTO owner, now_means
        FROM evaluations_subjectversion w JOIN evaluations_subject o ON o.id = w.subject_id WHERE w.id = alias.subject_version_id;
        SELECT (SELECT o.key || '@' || w.number FROM evaluations_subjectversion w
            JOIN evaluations_subject o ON o.id = w.subject_id WHERE w.id = a.subject_version_id) INTO meant_before
        FROM evaluations_aliasassignment a
        WHERE a.name_as_written = writegate_question.name AND a.source_id IS NULL AND a.id < alias.id
            AND a.subject_version_id IS DISTINCT FROM alias.subject_version_id
        ORDER BY a.id DESC LIMIT 1;
        version := alias.subject_version_id;
        IF fingerprint <> '' AND NOT EXISTS (
            SELECT FROM evaluations_subjectversion f WHERE f.id = version AND f.digest = writegate_question.fingerprint) THEN
            version := NULL;
        END IF;
    ELSIF fingerprint <> '' THEN
        SELECT f.id INTO version FROM evaluations_subjectversion f
        WHERE f.subject_id = owner AND f.digest = writegate_question.fingerprint
            AND (writegate_question.number = 0 OR f.number = writegate_question.number);
    ELSIF number > 0 THEN
        SELECT f.id INTO version FROM evaluations_subjectversion f
        WHERE f.subject_id = owner AND f.number = writegate_question.number;
    ELSE
        SELECT v.id, v.number, v.digest, v.closed, v.registered_at INTO newest
        FROM evaluations_subjectversion v WHERE v.subject_id = owner ORDER BY v.number DESC LIMIT 1;
        IF newest.number = 1 AND y.id IS NOT NULL THEN
            -- What is asked most: the one version there is, with nothing more to look up.
            RETURN json_build_array(place, true, false, NULL, NULL, json_build_array(y.subject, y.subject_moved, y.subject_key, y.kind,
                y.provider, y.changed_at, y.urgent_at, newest.id, 1, newest.digest, newest.closed, 1, newest.registered_at,
                writegate_held(newest.id, y.id, y.domain, in_force, at)));
        END IF;
        SELECT r.id INTO version FROM writegate_running(owner, writegate_question.key) r;
    END IF;
    RETURN json_build_array(place, found_by_key IS NOT NULL, found_by_key IS NULL, now_means, meant_before,
        CASE WHEN version IS NOT NULL THEN writegate_subject(version, y.id, y.domain, in_force, at) END);
END
$$;
"""
NO_QUESTION = "DROP FUNCTION writegate_question;"
# A grant that is being moved is waited for, and then found at another version: no allow is entered behind its revocation. Those who
# move grants lock them in the order of ids too. Subjects, systems and standings, which thousands of answers a second share, are
# compared in the same statement and not locked: many holders of one row's lock cost more than the whole answer.
DECIDE = """
CREATE FUNCTION writegate_decide(
    grants bigint[], grant_versions xid[], subjects bigint[], subject_versions xid[], systems bigint[], system_versions xid[],
    standings bigint[], standing_versions xid[], new_bodies json, decisions json, decision_count int,
    observed boolean, token uuid, request_id text, actor text, at timestamptz, conformance boolean
) RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
    counted bigint;
BEGIN
    IF conformance AND EXISTS (SELECT FROM compliance_grant) THEN
        RAISE EXCEPTION 'the conformance profile answers only where there is no grant' USING ERRCODE = 'check_violation';
    END IF;
    FOR place IN 1..cardinality(grants) LOOP
        PERFORM FROM compliance_grant t WHERE t.id = grants[place] AND t.xmin = grant_versions[place] FOR SHARE;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
    END LOOP;
    SELECT (SELECT count(*) FROM unnest(subjects, subject_versions) AS w(id, version) JOIN evaluations_subject t
            ON t.id = w.id AND t.xmin = w.version)
        + (SELECT count(*) FROM unnest(systems, system_versions) AS w(id, version) JOIN policies_system t
            ON t.id = w.id AND t.xmin = w.version)
        + (SELECT count(*) FROM unnest(standings, standing_versions) AS w(id, version) JOIN policies_standing t
            ON t.id = w.id AND t.xmin = w.version) INTO counted;
    IF counted <> cardinality(subjects) + cardinality(systems) + cardinality(standings) THEN
        RETURN false;
    END IF;
    IF new_bodies IS NOT NULL THEN
        INSERT INTO compliance_decisionbody (digest, content, recorded_at)
        SELECT b.digest, convert_to(b.content, 'UTF8'), writegate_decide.at
        FROM json_to_recordset(new_bodies) AS b(digest text, content text) ON CONFLICT (digest) DO NOTHING;
    END IF;
    WITH given AS MATERIALIZED (
        SELECT * FROM ROWS FROM (json_to_recordset(decisions) AS (uid uuid, allowed boolean, codes text, subject text, action text,
            resource text, subject_version bigint, system bigint, "grant" bigint, body text, entry uuid, content text, digest text))
        WITH ORDINALITY AS d(uid, allowed, codes, subject, action, resource, subject_version, system, "grant", body, entry, content,
            digest, place)
    ), decided AS (
        INSERT INTO compliance_decision (uid, allowed, observed, conformance, codes, subject, action, resource, subject_version_id,
            system_id, grant_id, body_id, entry, token, request_id, at)
        SELECT d.uid, d.allowed, writegate_decide.observed, writegate_decide.conformance, string_to_array(d.codes, ','), d.subject,
            d.action, d.resource, d.subject_version, d.system, d."grant", body.id, d.entry, writegate_decide.token,
            writegate_decide.request_id, writegate_decide.at
        FROM given d JOIN compliance_decisionbody body ON body.digest = d.body ORDER BY d.place RETURNING id
    ), entered AS (
        INSERT INTO compliance_ledgerentry (uid, content, digest, action, actor, target_kind, target_id, recorded_at)
        SELECT d.entry, convert_to(d.content, 'UTF8'), d.digest, 'decision.made', writegate_decide.actor, 'decision', d.uid::text,
            writegate_decide.at
        FROM given d ORDER BY d.place RETURNING id
    ), queued AS (
        INSERT INTO compliance_ledgerpending (entry_id) SELECT id FROM entered
    )
    SELECT count(*) INTO counted FROM decided;
    IF counted <> decision_count THEN
        RAISE EXCEPTION 'a decision has no body' USING ERRCODE = 'no_data_found';
    END IF;
    RETURN true;
END
$$;
"""
NO_DECIDE = "DROP FUNCTION writegate_decide;"


class Migration(migrations.Migration):
    dependencies = [("compliance", "0012_routing")]

    operations = [
        migrations.RunSQL(IN_FORCE, NO_IN_FORCE),
        migrations.RunSQL(CALLER, NO_CALLER),
        migrations.RunSQL(RUNNING, NO_RUNNING),
        migrations.RunSQL(HELD, NO_HELD),
        migrations.RunSQL(SUBJECT, NO_SUBJECT),
        migrations.RunSQL(QUESTION, NO_QUESTION),
        migrations.RunSQL(DECIDE, NO_DECIDE),
    ]
