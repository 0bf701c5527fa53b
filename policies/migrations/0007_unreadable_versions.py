"""Policy versions whose stored texts could not be read while they were in force. With its locks."""

import uuid

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import evaluations.kernel.clock
import evaluations.kernel.fields

TABLE = "policies_unreadableversion"
LOCK = f"""
CREATE TRIGGER {TABLE}_append_only BEFORE UPDATE OR DELETE ON {TABLE}
    FOR EACH ROW EXECUTE FUNCTION writegate_refuse_change();
CREATE TRIGGER {TABLE}_by_service BEFORE INSERT ON {TABLE}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_require_service();
CREATE TRIGGER {TABLE}_no_truncate BEFORE TRUNCATE ON {TABLE}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_refuse_change();
DO $$ BEGIN
    EXECUTE format('GRANT SELECT, INSERT ON {TABLE} TO %I', current_setting('writegate.runtime_role'));
END $$;
"""
UNLOCK = f"""
DROP TRIGGER {TABLE}_append_only ON {TABLE};
DROP TRIGGER {TABLE}_by_service ON {TABLE};
DROP TRIGGER {TABLE}_no_truncate ON {TABLE};
DO $$ BEGIN
    EXECUTE format('REVOKE ALL ON {TABLE} FROM %I', current_setting('writegate.runtime_role'));
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("policies", "0006_drafts")]

    operations = [
        migrations.CreateModel(
            name="UnreadableVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("found_digest", evaluations.kernel.fields.DigestField(max_length=71)),
                (
                    "codes",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), size=None),
                ),
                ("found_by", models.CharField(max_length=200)),
                ("recorded_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="unreadable", to="policies.policyversion"
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.UniqueConstraint(fields=["version", "found_digest"], name="unreadable_version_is_noted_once"),
                    models.CheckConstraint(condition=models.Q(("codes", []), _negated=True), name="unreadable_version_has_codes"),
                ],
            },
        ),
        migrations.RunSQL(LOCK, UNLOCK),
    ]
