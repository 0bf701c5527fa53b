"""Locks on the facts of this app, guards on its state, and what the runtime role needs of Django's own tables.

`User` is guarded in the columns that decide who somebody is and what she may do; Django writes `password` and `last_login` itself.
`LedgerPending` takes inserts from any transaction, since entries are appended in all of them; only a service empties it.
`ServiceBeat` decides nothing and has no guard.
"""

from django.db import migrations

FACTS = ["compliance_ledgerentry"]
STATES = [
    "compliance_team",
    "compliance_person",
    "compliance_personname",
    "compliance_rolemembership",
    "compliance_servicetoken",
    "compliance_idempotencykey",
]

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


GUARD_USER = """
CREATE TRIGGER compliance_user_by_service
    BEFORE INSERT OR DELETE OR UPDATE OF is_active, is_staff, is_superuser, person_id, email ON compliance_user
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_require_service();
CREATE TRIGGER compliance_user_no_truncate BEFORE TRUNCATE ON compliance_user
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_refuse_change();
DO $$ BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON compliance_user TO %I', current_setting('writegate.runtime_role'));
    EXECUTE format(
        'GRANT SELECT ON compliance_user_groups, compliance_user_user_permissions TO %I', current_setting('writegate.runtime_role')
    );
END $$;
"""
UNGUARD_USER = """
DROP TRIGGER compliance_user_by_service ON compliance_user;
DROP TRIGGER compliance_user_no_truncate ON compliance_user;
DO $$ BEGIN
    EXECUTE format(
        'REVOKE ALL ON compliance_user, compliance_user_groups, compliance_user_user_permissions FROM %I',
        current_setting('writegate.runtime_role')
    );
END $$;
"""
GUARD_PENDING = """
CREATE TRIGGER compliance_ledgerpending_by_service BEFORE UPDATE OR DELETE ON compliance_ledgerpending
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_require_service();
CREATE TRIGGER compliance_ledgerpending_no_truncate BEFORE TRUNCATE ON compliance_ledgerpending
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_refuse_change();
DO $$ BEGIN
    EXECUTE format('GRANT SELECT, INSERT, DELETE ON compliance_ledgerpending TO %I', current_setting('writegate.runtime_role'));
END $$;
"""
UNGUARD_PENDING = """
DROP TRIGGER compliance_ledgerpending_by_service ON compliance_ledgerpending;
DROP TRIGGER compliance_ledgerpending_no_truncate ON compliance_ledgerpending;
DO $$ BEGIN
    EXECUTE format('REVOKE ALL ON compliance_ledgerpending FROM %I', current_setting('writegate.runtime_role'));
END $$;
"""
GRANT_OTHERS = """
DO $$
DECLARE role text := current_setting('writegate.runtime_role');
BEGIN
    EXECUTE format('GRANT DELETE ON compliance_personname TO %I', role);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON compliance_servicebeat TO %I', role);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON django_session TO %I', role);
    EXECUTE format('GRANT SELECT, INSERT ON django_admin_log TO %I', role);
    EXECUTE format('GRANT SELECT ON django_migrations, django_content_type, auth_group, auth_group_permissions, auth_permission TO %I', role);
END $$;
"""
REVOKE_OTHERS = """
DO $$
DECLARE role text := current_setting('writegate.runtime_role');
BEGIN
    EXECUTE format(
        'REVOKE ALL ON compliance_servicebeat, django_session, django_admin_log, django_migrations, django_content_type, '
        'auth_group, auth_group_permissions, auth_permission FROM %I', role
    );
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("compliance", "0001_tables"),
        ("evaluations", "0002_locks"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        *(migrations.RunSQL(LOCK_FACT.format(table=table), UNLOCK_FACT.format(table=table)) for table in FACTS),
        *(migrations.RunSQL(GUARD_STATE.format(table=table), UNGUARD_STATE.format(table=table)) for table in STATES),
        migrations.RunSQL(GUARD_USER, UNGUARD_USER),
        migrations.RunSQL(GUARD_PENDING, UNGUARD_PENDING),
        migrations.RunSQL(GRANT_OTHERS, REVOKE_OTHERS),
    ]
