"""What verdicts, grants and answers are bound by stays; see the same step of the evaluations app."""

from importlib import import_module

from django.db import migrations

keep = import_module("evaluations.migrations.0010_kept_keys").keep

KEPT = {"policies_policy": "id name", "policies_system": "id key"}


class Migration(migrations.Migration):
    dependencies = [("policies", "0007_unreadable_versions"), ("evaluations", "0010_kept_keys")]

    operations = [keep(table, columns) for table, columns in KEPT.items()]
