"""What facts are bound by stays: a row of state may move in everything else, and never in the columns that say which one it is.

Evidence, rulings and signatures name a source, a benchmark or a subject by its row, and a dossier by its key: under another key, kind or
publisher they would speak of another one, whoever asks for it.
"""

from django.db import migrations

KEPT = {
    "evaluations_subject": "id key kind",
    "evaluations_benchmark": "id key title publisher url description",
    "evaluations_source": "id key title publisher url",
    "evaluations_sourceschedule": "id source_id",
}

FUNCTION = """
CREATE FUNCTION writegate_keep_columns() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moved text;
BEGIN
    SELECT string_agg(kept.name, ', ') INTO moved FROM unnest(string_to_array(TG_ARGV[0], ' ')) AS kept(name)
    WHERE to_jsonb(NEW) -> kept.name IS DISTINCT FROM to_jsonb(OLD) -> kept.name;
    RAISE EXCEPTION 'writegate: what tells one row of % from another stays as it is: a change of % refused', TG_TABLE_NAME, moved
        USING ERRCODE = 'restrict_violation';
END
$$;
"""
NO_FUNCTION = "DROP FUNCTION writegate_keep_columns();"


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
    dependencies = [("evaluations", "0009_signed_trust")]

    operations = [
        migrations.RunSQL(FUNCTION, NO_FUNCTION),
        *(keep(table, columns) for table, columns in KEPT.items()),
    ]
