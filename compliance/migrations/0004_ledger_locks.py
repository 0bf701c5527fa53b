"""Locks, guards and grants of the ledger's tree and of the exports.

Leaves must continue the log: an insert whose rows do not begin at the next index, or leave one out, is refused whoever asks. Hashes
have their 32 bytes, tiles their 256 hashes. The sealer locks queue rows (`FOR UPDATE SKIP LOCKED`), which asks for UPDATE on them.
"""

from django.db import migrations

FACTS = ["compliance_ledgerleaf", "compliance_ledgertile", "compliance_checkpoint"]
STATES = ["compliance_signingkey", "compliance_auditexport"]

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
GAPLESS = """
CREATE FUNCTION writegate_require_next_index() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    first bigint;
    last bigint;
    amount bigint;
    before bigint;
BEGIN
    SELECT min("index"), max("index"), count(*) INTO first, last, amount FROM added;
    SELECT max("index") INTO before FROM compliance_ledgerleaf WHERE "index" < first;
    IF amount > 0 AND (first <> coalesce(before, -1) + 1 OR last - first + 1 <> amount) THEN
        RAISE EXCEPTION 'writegate: the log continues at index %, not at %', coalesce(before, -1) + 1, first
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER compliance_ledgerleaf_gapless AFTER INSERT ON compliance_ledgerleaf
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION writegate_require_next_index();
"""
NOT_GAPLESS = """
DROP TRIGGER compliance_ledgerleaf_gapless ON compliance_ledgerleaf;
DROP FUNCTION writegate_require_next_index();
"""
LENGTHS = """
ALTER TABLE compliance_ledgerleaf ADD CONSTRAINT ledger_leaf_hash_is_whole CHECK (octet_length(leaf_hash) = 32);
ALTER TABLE compliance_ledgertile ADD CONSTRAINT ledger_tile_is_whole CHECK (octet_length(hashes) = 8192 AND octet_length(root) = 32);
ALTER TABLE compliance_checkpoint ADD CONSTRAINT checkpoint_root_is_whole CHECK (octet_length(root) = 32);
"""
NO_LENGTHS = """
ALTER TABLE compliance_ledgerleaf DROP CONSTRAINT ledger_leaf_hash_is_whole;
ALTER TABLE compliance_ledgertile DROP CONSTRAINT ledger_tile_is_whole;
ALTER TABLE compliance_checkpoint DROP CONSTRAINT checkpoint_root_is_whole;
"""
LOCK_ROWS = """
DO $$ BEGIN
    EXECUTE format('GRANT UPDATE ON compliance_ledgerpending TO %I', current_setting('writegate.runtime_role'));
END $$;
"""
NO_LOCK_ROWS = """
DO $$ BEGIN
    EXECUTE format('REVOKE UPDATE ON compliance_ledgerpending FROM %I', current_setting('writegate.runtime_role'));
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("compliance", "0003_ledger_tree")]

    operations = [
        *(migrations.RunSQL(LOCK_FACT.format(table=table), UNLOCK_FACT.format(table=table)) for table in FACTS),
        *(migrations.RunSQL(GUARD_STATE.format(table=table), UNGUARD_STATE.format(table=table)) for table in STATES),
        migrations.RunSQL(GAPLESS, NOT_GAPLESS),
        migrations.RunSQL(LENGTHS, NO_LENGTHS),
        migrations.RunSQL(LOCK_ROWS, NO_LOCK_ROWS),
    ]
