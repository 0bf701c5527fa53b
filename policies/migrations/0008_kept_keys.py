"""What verdicts, grants and answers are bound by stays; see the same step of the evaluations app."""

from django.db import migrations

KEPT = {"policies_policy": "id name", "policies_system": "id key"}

KEEP = """
CREATE TRIGGER {table}_keep BEFORE UPDATE ON {table} FOR EACH ROW WHEN (({before}) IS DISTINCT FROM ({after}))
    EXECUTE FUNCTION writegate_keep_columns('{columns}');
"""
KEEP_NO_MORE = "DROP TRIGGER {table}_keep ON {table};"


def keep(table: str, columns: str) -> migrations.RunSQL:
    """Return the operation that lets no update move these columns of a table; they are divided by spaces."""
    before, after = (", ".join(f"{row}.{name}" for name in columns.split()) for row in ("OLD", "NEW"))
    return migrations.RunSQL(
        KEEP.format(table=table, columns=columns, before=before, after=after), KEEP_NO_MORE.format(table=table)
    )


class Migration(migrations.Migration):
    dependencies = [("policies", "0007_unreadable_versions"), ("evaluations", "0010_kept_keys")]

    operations = [keep(table, columns) for table, columns in KEPT.items()]
