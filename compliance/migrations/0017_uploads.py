"""Evidence files handed in, with the guard of a state table."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

import evaluations.kernel.clock
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


class Migration(migrations.Migration):
    dependencies = [
        ("compliance", "0016_deciding_plans"),
        ("evaluations", "0006_late_commits"),
    ]

    operations = [
        migrations.CreateModel(
            name="Upload",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("running", "running"),
                            ("done", "done"),
                            ("refused", "refused"),
                            ("failed", "failed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("file_name", models.CharField(max_length=200)),
                ("file_digest", evaluations.kernel.fields.DigestField(max_length=71)),
                ("file_bytes", models.BigIntegerField()),
                ("format_name", models.CharField(blank=True, max_length=60)),
                ("source", models.CharField(blank=True, max_length=120)),
                ("subject", models.CharField(blank=True, max_length=300)),
                ("published_at", models.DateTimeField(blank=True, null=True)),
                ("submitted_by", models.CharField(max_length=200)),
                ("submitted_as", models.JSONField()),
                ("received_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("touched_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("bytes_read", models.BigIntegerField(default=0)),
                ("importer", models.CharField(blank=True, max_length=60)),
                ("evidence", models.PositiveIntegerField(default=0)),
                ("taken", models.PositiveBigIntegerField(default=0)),
                ("repeated", models.PositiveIntegerField(default=0)),
                ("held", models.JSONField(blank=True, default=dict)),
                ("refused", models.JSONField(blank=True, default=list)),
                ("failure", models.CharField(blank=True, max_length=500)),
                (
                    "document",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="uploads",
                        to="evaluations.document",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("status__in", ["queued", "running"])), fields=["received_at"], name="upload_open"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["queued", "running", "done", "refused", "failed"])),
                        name="upload_status_is_known",
                    )
                ],
            },
        ),
        migrations.RunSQL(GUARD_STATE.format(table="compliance_upload"), UNGUARD_STATE.format(table="compliance_upload")),
    ]
