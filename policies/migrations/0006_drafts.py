"""Texts of policies that are being written, one fact each."""

import uuid

from django.db import migrations, models

import evaluations.kernel.clock
import evaluations.kernel.fields

TABLE = "policies_policydraft"
LOCK = f"""
CREATE TRIGGER {TABLE}_append_only BEFORE UPDATE OR DELETE ON {TABLE}
    FOR EACH ROW EXECUTE FUNCTION writegate_refuse_change();
CREATE TRIGGER {TABLE}_no_truncate BEFORE TRUNCATE ON {TABLE}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_refuse_change();
DO $$ BEGIN
    EXECUTE format('GRANT SELECT, INSERT ON {TABLE} TO %I', current_setting('writegate.runtime_role'));
END $$;
"""
UNLOCK = f"""
DROP TRIGGER {TABLE}_append_only ON {TABLE};
DROP TRIGGER {TABLE}_no_truncate ON {TABLE};
DO $$ BEGIN
    EXECUTE format('REVOKE ALL ON {TABLE} FROM %I', current_setting('writegate.runtime_role'));
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("policies", "0005_mismatches")]

    operations = [
        migrations.CreateModel(
            name="PolicyDraft",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, unique=True)),
                (
                    "policy_name",
                    evaluations.kernel.fields.KeyField(
                        help_text="The policy that it is a draft of, which may not be registered yet.", max_length=120
                    ),
                ),
                ("text", models.BinaryField()),
                ("digest", evaluations.kernel.fields.DigestField(max_length=71)),
                ("edited_by", models.CharField(max_length=200)),
                ("recorded_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["policy_name", "-id"], name="policy_draft_by_name")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("policy_name__regex", "^[a-z0-9](?:[a-z0-9._:@+/-]*[a-z0-9])?$")),
                        name="policy_draft_name_is_ascii",
                    )
                ],
            },
        ),
        migrations.RunSQL(LOCK, UNLOCK),
    ]
