"""The newest offline bundle of each system, with the guard of a state table."""

import django.db.models.deletion
from django.db import migrations, models

import evaluations.kernel.fields

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
TABLE = "compliance_offlinebundle"


class Migration(migrations.Migration):
    dependencies = [
        ("compliance", "0020_policy_unreadable"),
        ("policies", "0007_unreadable_versions"),
    ]

    operations = [
        migrations.CreateModel(
            name="OfflineBundle",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("serial", models.BigIntegerField()),
                ("payload", models.BinaryField()),
                ("signature", models.BinaryField()),
                ("digest", evaluations.kernel.fields.DigestField(max_length=71)),
                ("lines", models.PositiveIntegerField()),
                ("lines_digest", models.CharField(max_length=64)),
                ("seen_size", models.BigIntegerField()),
                ("issued_at", models.DateTimeField()),
                ("refresh_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                (
                    "system",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="offline_bundle", to="policies.system"
                    ),
                ),
            ],
            options={
                "ordering": ["system"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("issued_at__lt", models.F("expires_at")), ("refresh_at__lt", models.F("expires_at"))),
                        name="offline_bundle_ends_after_it_began",
                    )
                ],
            },
        ),
        migrations.RunSQL(GUARD_STATE.format(table=TABLE), UNGUARD_STATE.format(table=TABLE)),
    ]
