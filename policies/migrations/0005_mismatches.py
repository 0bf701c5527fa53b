"""Verdicts that a replay found not to match, and facts documents kept anew after that. With its locks."""

import uuid

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import evaluations.kernel.clock
import evaluations.kernel.fields

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
DIFFERING = ["facts_document", "policy_text", "judgement", "row", "entry"]
TABLE = "policies_verdictmismatch"


class Migration(migrations.Migration):
    dependencies = [("policies", "0004_systems")]

    operations = [
        migrations.AlterField(
            model_name="factsdocument", name="digest", field=evaluations.kernel.fields.DigestField(max_length=71)
        ),
        migrations.AddIndex(model_name="factsdocument", index=models.Index(fields=["digest"], name="facts_document_by_digest")),
        migrations.CreateModel(
            name="VerdictMismatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "differs",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), size=None),
                ),
                ("found_by", models.CharField(max_length=200)),
                ("recorded_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                (
                    "verdict",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="mismatch", to="policies.verdict"
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("differs__contained_by", DIFFERING), models.Q(("differs", []), _negated=True)),
                        name="verdict_mismatch_is_known",
                    )
                ],
            },
        ),
        migrations.RunSQL(LOCK_FACT.format(table=TABLE), UNLOCK_FACT.format(table=TABLE)),
    ]
