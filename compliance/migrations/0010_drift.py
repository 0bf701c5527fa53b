"""What drift looked at and told of, with its locks."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

import evaluations.kernel.clock

LOCK_FACT = """
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION writegate_refuse_change();
CREATE TRIGGER {table}_by_service BEFORE INSERT ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_require_service();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_refuse_change();
DO $$ BEGIN
    EXECUTE format('GRANT SELECT, INSERT ON {table} TO %I', current_setting('writegate.runtime_role'));
END $$;
"""
UNLOCK_FACT = """
DROP TRIGGER {table}_append_only ON {table};
DROP TRIGGER {table}_by_service ON {table};
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
CAUSES = [
    ("verdict_failed", "the verdict fails"),
    ("verdict_missing", "evidence is missing"),
    ("verdict_stale", "evidence is stale"),
    ("verdict_contested", "evidence is contested"),
    ("verdict_error", "judging ended in an error"),
    ("alias_moved", "a name it was granted under means another version"),
    ("evidence_retracted", "evidence it was signed on was retracted"),
    ("not_comparable", "a result on a version that the policy does not pin misses the bar"),
]


class Migration(migrations.Migration):
    dependencies = [("compliance", "0009_sign_off_locks")]

    operations = [
        migrations.CreateModel(
            name="GrantReview",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seen", models.CharField(blank=True, max_length=64)),
                ("reviewed_at", models.DateTimeField()),
                ("unjudged_since", models.DateTimeField(blank=True, null=True)),
                (
                    "grant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="review", to="compliance.grant"
                    ),
                ),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="DriftNotice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("cause", models.CharField(choices=CAUSES, max_length=40)),
                ("key", models.CharField(max_length=200)),
                ("detail", models.JSONField(default=dict)),
                ("actor", models.CharField(max_length=200)),
                ("at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                (
                    "grant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="drift_notices", to="compliance.grant"
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["-at", "-id"], name="drift_notice_by_time")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("cause__in", [word for word, _ in CAUSES])), name="drift_cause_is_known"
                    ),
                    models.UniqueConstraint(fields=("grant", "cause", "key"), name="drift_is_noticed_once"),
                ],
            },
        ),
        migrations.RunSQL(LOCK_FACT.format(table="compliance_driftnotice"), UNLOCK_FACT.format(table="compliance_driftnotice")),
        migrations.RunSQL(
            GUARD_STATE.format(table="compliance_grantreview"), UNGUARD_STATE.format(table="compliance_grantreview")
        ),
    ]
