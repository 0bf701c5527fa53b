"""Metrics and benchmark versions name the request whose signatures carry them; versions say what they carry and whether they lie open.

What a key measures stays: a definition of a known key with another unit, direction, level or bound is refused, whatever the road. Numbers
that were recorded and policies that were signed under the one before would mean something else.
"""

import django.contrib.postgres.fields
from django.db import migrations, models

KEEP = """
CREATE FUNCTION writegate_keep_measure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM evaluations_metric before
        WHERE before.key = NEW.key AND (before.unit, before.better, before.level, before.minimum, before.maximum)
            IS DISTINCT FROM (NEW.unit, NEW.better, NEW.level, NEW.minimum, NEW.maximum)
    ) THEN
        RAISE EXCEPTION 'writegate: what a metric measures stays as it is: another measure has another key' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER evaluations_metric_keep BEFORE INSERT ON evaluations_metric
    FOR EACH ROW EXECUTE FUNCTION writegate_keep_measure();
"""
NO_KEEP = """
DROP TRIGGER evaluations_metric_keep ON evaluations_metric;
DROP FUNCTION writegate_keep_measure();
"""


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0007_refreshing")]

    operations = [
        migrations.AddField(
            model_name="benchmarkversion",
            name="exposure",
            field=models.CharField(
                choices=[("public", "public"), ("private", "private"), ("unknown", "not stated")], default="unknown", max_length=8
            ),
        ),
        migrations.AddField(
            model_name="benchmarkversion",
            name="metrics",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=120), blank=True, default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="benchmarkversion",
            name="sign_off_request",
            field=models.UUIDField(blank=True, null=True, unique=True),
        ),
        migrations.AddField(
            model_name="metric",
            name="sign_off_request",
            field=models.UUIDField(blank=True, null=True, unique=True),
        ),
        migrations.AddConstraint(
            model_name="benchmarkversion",
            constraint=models.CheckConstraint(
                condition=models.Q(("exposure__in", ["public", "private", "unknown"])), name="benchmark_version_exposure_is_known"
            ),
        ),
        migrations.RunSQL(KEEP, NO_KEEP),
    ]
