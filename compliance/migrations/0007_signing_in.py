"""Signing in: proofs and holds of our own, and what the runtime role needs of the tables that allauth brings.

A hold is lifted by another administrator than the one who placed it, and never by the person it is about. Attempts and used codes are
counted in `compliance_cache`, in the shape of Django's database cache. Nothing in allauth's tables outlives what is granted here:
addresses and company accounts are added and never taken away, factors are added, used and removed.
"""

import django.db.models.deletion
import evaluations.kernel.clock
import evaluations.kernel.fields
from django.conf import settings
from django.db import migrations, models

FACTS = ["compliance_reauthentication"]
STATES = ["compliance_signinghold"]

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
NOT_BY_HERSELF = """
ALTER TABLE compliance_signinghold ADD CONSTRAINT signing_hold_is_not_lifted_by_herself
    CHECK (lifted_by <> 'person:' || person_id::text);
"""
BY_ANYBODY = "ALTER TABLE compliance_signinghold DROP CONSTRAINT signing_hold_is_not_lifted_by_herself;"
CACHE = """
CREATE TABLE compliance_cache (
    cache_key varchar(255) NOT NULL PRIMARY KEY,
    value text NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE INDEX compliance_cache_expires ON compliance_cache (expires);
DO $$ BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON compliance_cache TO %I', current_setting('writegate.runtime_role'));
END $$;
"""
NO_CACHE = "DROP TABLE compliance_cache;"
GRANT_OTHERS = """
DO $$
DECLARE role text := current_setting('writegate.runtime_role');
BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON mfa_authenticator TO %I', role);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON account_emailaddress, socialaccount_socialaccount TO %I', role);
    EXECUTE format('GRANT SELECT ON socialaccount_socialapp, socialaccount_socialtoken TO %I', role);
END $$;
"""
REVOKE_OTHERS = """
DO $$
DECLARE role text := current_setting('writegate.runtime_role');
BEGIN
    EXECUTE format(
        'REVOKE ALL ON mfa_authenticator, account_emailaddress, socialaccount_socialaccount, socialaccount_socialapp, '
        'socialaccount_socialtoken FROM %I', role
    );
END $$;
"""


GUARD_AGAIN = "SELECT set_config('writegate.service', '', false);"


class Migration(migrations.Migration):
    dependencies = [
        ("compliance", "0006_outbox"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
    ]

    operations = [
        migrations.RunSQL(GUARD_AGAIN, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="Reauthentication",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("session_digest", evaluations.kernel.fields.DigestField(max_length=71)),
                (
                    "method",
                    models.CharField(
                        choices=[
                            ("password", "password"),
                            ("totp", "authenticator app"),
                            ("webauthn", "passkey"),
                            ("recovery_code", "recovery code"),
                        ],
                        max_length=20,
                    ),
                ),
                ("at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="reauthentications", to="compliance.person"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reauthentications",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["user", "session_digest", "-id"], name="reauthentication_by_session")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("method__in", ["password", "totp", "webauthn", "recovery_code"])),
                        name="reauthentication_method_is_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SigningHold",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "cause",
                    models.CharField(
                        choices=[
                            ("password_reset", "password reset by somebody else"),
                            ("factors_reset", "second factors reset by somebody else"),
                        ],
                        max_length=20,
                    ),
                ),
                ("placed_by", models.CharField(max_length=200)),
                ("placed_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                ("lifted_by", models.CharField(blank=True, default="", max_length=200)),
                ("lifted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="signing_holds", to="compliance.person"
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(condition=models.Q(("lifted_at", None)), fields=["person"], name="signing_hold_that_stands")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("cause__in", ["password_reset", "factors_reset"])), name="signing_hold_cause_is_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("placed_by", ""), _negated=True), name="signing_hold_has_a_placer"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lifted_at", None), ("lifted_by", "")),
                            models.Q(models.Q(("lifted_by", ""), _negated=True), ("lifted_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="signing_hold_is_lifted_by_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("lifted_by", models.F("placed_by")), _negated=True),
                        name="signing_hold_is_lifted_by_another",
                    ),
                ],
            },
        ),
        *(migrations.RunSQL(LOCK_FACT.format(table=table), UNLOCK_FACT.format(table=table)) for table in FACTS),
        *(migrations.RunSQL(GUARD_STATE.format(table=table), UNGUARD_STATE.format(table=table)) for table in STATES),
        migrations.RunSQL(NOT_BY_HERSELF, BY_ANYBODY),
        migrations.RunSQL(CACHE, NO_CACHE),
        migrations.RunSQL(GRANT_OTHERS, REVOKE_OTHERS),
    ]
