"""The two locks on facts, and the guard on state, as SQL text.

First lock: the runtime role holds INSERT and SELECT on facts, and no TRUNCATE. Its name comes with the owner's connection, in the
setting `writegate.runtime_role`. Second lock: triggers refuse UPDATE, DELETE and TRUNCATE whoever asks, the owner included.

State tables refuse a change in a transaction that no service has opened (`SET LOCAL writegate.service`).
"""

from django.db import migrations

FACTS = [
    "evaluations_subjectversion",
    "evaluations_subjectversionmember",
    "evaluations_aliasassignment",
    "evaluations_benchmarkversion",
    "evaluations_metric",
    "evaluations_trustassignment",
    "evaluations_document",
    "evaluations_documentpart",
    "evaluations_evidence",
    "evaluations_observation",
    "evaluations_ruling",
]
STATES = ["evaluations_subject", "evaluations_benchmark", "evaluations_source"]

FUNCTIONS = """
CREATE FUNCTION writegate_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'writegate: % holds facts and is append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation';
END
$$;
CREATE FUNCTION writegate_require_service() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('writegate.service', true), '') = '' THEN
        RAISE EXCEPTION 'writegate: % is moved by services only: % refused', TG_TABLE_NAME, TG_OP
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END
$$;
"""
DROP_FUNCTIONS = "DROP FUNCTION writegate_refuse_change(); DROP FUNCTION writegate_require_service();"

LOCK_FACT = """
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION writegate_refuse_change();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_refuse_change();
DO $$ BEGIN
    EXECUTE format('GRANT SELECT, INSERT ON {table} TO %I', current_setting('writegate.runtime_role'));
END $$;
"""
UNLOCK_FACT = """
DROP TRIGGER {table}_append_only ON {table};
DROP TRIGGER {table}_no_truncate ON {table};
DO $$ BEGIN
    EXECUTE format('REVOKE ALL ON {table} FROM %I', current_setting('writegate.runtime_role'));
END $$;
"""
GUARD_STATE = """
CREATE TRIGGER {table}_by_service BEFORE INSERT OR UPDATE OR DELETE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_require_service();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_refuse_change();
DO $$ BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON {table} TO %I', current_setting('writegate.runtime_role'));
END $$;
"""
UNGUARD_STATE = """
DROP TRIGGER {table}_by_service ON {table};
DROP TRIGGER {table}_no_truncate ON {table};
DO $$ BEGIN
    EXECUTE format('REVOKE ALL ON {table} FROM %I', current_setting('writegate.runtime_role'));
END $$;
"""

# Observations come by the million: their three references are checked once a statement instead of once a row.
REFER = """
CREATE FUNCTION writegate_check_observations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM (SELECT DISTINCT evidence_id FROM fresh) f LEFT JOIN evaluations_evidence e ON e.id = f.evidence_id
        WHERE e.id IS NULL
    ) OR EXISTS (
        SELECT FROM (SELECT DISTINCT metric_id, benchmark_version_id FROM fresh) f
        LEFT JOIN evaluations_metric m ON m.id = f.metric_id
        LEFT JOIN evaluations_benchmarkversion b ON b.id = f.benchmark_version_id
        WHERE m.id IS NULL OR b.id IS NULL
    ) THEN
        RAISE EXCEPTION 'writegate: an observation refers to evidence, a metric or a benchmark version that is not there'
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER evaluations_observation_refers AFTER INSERT ON evaluations_observation
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION writegate_check_observations();
"""
REFER_NO_MORE = """
DROP TRIGGER evaluations_observation_refers ON evaluations_observation;
DROP FUNCTION writegate_check_observations();
"""

# After a large import the planner still believes the tables to be small, until the server's own housekeeping comes round: judging in
# that minute took fifty times as long. ANALYZE is the owner's right, so the runtime role is lent this one use of it.
STATISTICS = """
CREATE FUNCTION writegate_refresh_statistics() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp AS $$
BEGIN
    ANALYZE evaluations_evidence, evaluations_observation, evaluations_aliasassignment;
END
$$;
REVOKE ALL ON FUNCTION writegate_refresh_statistics() FROM PUBLIC;
DO $$ BEGIN
    EXECUTE format('GRANT EXECUTE ON FUNCTION writegate_refresh_statistics() TO %I', current_setting('writegate.runtime_role'));
END $$;
"""
STATISTICS_NO_MORE = "DROP FUNCTION writegate_refresh_statistics();"


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0001_tables")]

    operations = [
        migrations.RunSQL(FUNCTIONS, DROP_FUNCTIONS),
        *(migrations.RunSQL(LOCK_FACT.format(table=table), UNLOCK_FACT.format(table=table)) for table in FACTS),
        *(migrations.RunSQL(GUARD_STATE.format(table=table), UNGUARD_STATE.format(table=table)) for table in STATES),
        migrations.RunSQL(REFER, REFER_NO_MORE),
        migrations.RunSQL(STATISTICS, STATISTICS_NO_MORE),
    ]
