"""What gateways serve, with its locks, and drift of routes among the causes of a notice."""

import uuid

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
CAUSES = [
    ("verdict_failed", "the verdict fails"),
    ("verdict_missing", "evidence is missing"),
    ("verdict_stale", "evidence is stale"),
    ("verdict_contested", "evidence is contested"),
    ("verdict_error", "judging ended in an error"),
    ("alias_moved", "a name it was granted under means another version"),
    ("evidence_retracted", "evidence it was signed on was retracted"),
    ("not_comparable", "a result on a version that the policy does not pin misses the bar"),
    ("route_changed", "its route reaches what is not cleared"),
]


class Migration(migrations.Migration):
    dependencies = [("compliance", "0011_decisions")]

    operations = [
        migrations.CreateModel(
            name="RoutingInventory",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", evaluations.kernel.fields.KeyField(max_length=120)),
                ("digest", evaluations.kernel.fields.DigestField(max_length=71)),
                ("content", models.BinaryField()),
                ("imported_by", models.CharField(max_length=200)),
                ("imported_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                (
                    "previous",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="next",
                        to="compliance.routinginventory",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "routing inventories",
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["name", "-id"], name="routing_inventory_by_name")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name__regex", "^[a-z0-9](?:[a-z0-9._:@+/-]*[a-z0-9])?$")),
                        name="routing_inventory_name_is_ascii",
                    )
                ],
            },
        ),
        migrations.RunSQL(
            LOCK_FACT.format(table="compliance_routinginventory"), UNLOCK_FACT.format(table="compliance_routinginventory")
        ),
        migrations.RemoveConstraint(model_name="driftnotice", name="drift_cause_is_known"),
        migrations.AlterField(model_name="driftnotice", name="cause", field=models.CharField(choices=CAUSES, max_length=40)),
        migrations.AddConstraint(
            model_name="driftnotice",
            constraint=models.CheckConstraint(
                condition=models.Q(("cause__in", [word for word, _ in CAUSES])), name="drift_cause_is_known"
            ),
        ),
    ]
