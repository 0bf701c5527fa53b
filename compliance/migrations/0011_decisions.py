"""Decisions and what they were read from."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import evaluations.kernel.clock
import evaluations.kernel.fields
import uuid
from django.db import migrations, models

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
# Some two thousand bytes a body, most of them digests: pressing them costs more than it saves.
PLAIN_BODIES = """
ALTER TABLE compliance_decisionbody ALTER COLUMN content SET STORAGE EXTERNAL;
ALTER TABLE compliance_decisionbody SET (toast_tuple_target = 8160);
"""
PRESSED_BODIES = """
ALTER TABLE compliance_decisionbody RESET (toast_tuple_target);
ALTER TABLE compliance_decisionbody ALTER COLUMN content SET STORAGE EXTENDED;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("compliance", "0010_drift"),
        ("evaluations", "0004_urgent_news"),
        ("policies", "0004_systems"),
    ]

    operations = [
        migrations.CreateModel(
            name="DecisionBody",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", evaluations.kernel.fields.DigestField(max_length=71, unique=True)),
                ("content", models.BinaryField()),
                ("recorded_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
            ],
            options={"verbose_name_plural": "decision bodies"},
        ),
        migrations.CreateModel(
            name="Decision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("allowed", models.BooleanField()),
                (
                    "observed",
                    models.BooleanField(
                        default=False, help_text="Asked by a client that only looks on: a denial stops nobody there."
                    ),
                ),
                (
                    "conformance",
                    models.BooleanField(
                        default=False, help_text="Answered by the conformance profile, which rests on nothing: it clears nobody."
                    ),
                ),
                (
                    "codes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), default=list, size=None
                    ),
                ),
                ("subject", models.CharField(help_text="As asked.", max_length=300)),
                ("action", models.CharField(help_text="As asked.", max_length=200)),
                ("resource", models.CharField(help_text="As asked.", max_length=300)),
                ("entry", models.UUIDField()),
                ("token", models.UUIDField(null=True)),
                ("request_id", models.CharField(blank=True, max_length=128)),
                ("at", models.DateTimeField()),
                (
                    "grant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to="compliance.grant",
                    ),
                ),
                (
                    "subject_version",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evaluations.subjectversion",
                    ),
                ),
                (
                    "system",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="policies.system",
                    ),
                ),
                (
                    "body",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to="compliance.decisionbody",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["system", "-id"], name="decision_by_system"),
                    models.Index(condition=models.Q(("grant__isnull", False)), fields=["grant", "-id"], name="decision_by_grant"),
                    django.contrib.postgres.indexes.BrinIndex(
                        autosummarize=True, fields=["at"], name="decision_by_time", pages_per_range=32
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("allowed", True), models.Q(("codes", []), _negated=True), _connector="OR"),
                        name="decision_says_why_not",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("allowed", False),
                            models.Q(("codes", []), ("grant__isnull", False), ("subject_version__isnull", False)),
                            models.Q(("codes", []), ("conformance", True), ("grant__isnull", True)),
                            _connector="OR",
                        ),
                        name="allowed_decision_rests_on_a_grant",
                    ),
                ],
            },
        ),
        migrations.RunSQL(LOCK_FACT.format(table="compliance_decisionbody"), UNLOCK_FACT.format(table="compliance_decisionbody")),
        migrations.RunSQL(LOCK_FACT.format(table="compliance_decision"), UNLOCK_FACT.format(table="compliance_decision")),
        migrations.RunSQL(PLAIN_BODIES, PRESSED_BODIES),
    ]
