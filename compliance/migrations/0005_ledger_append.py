"""Appending made cheap: one function for an entry and its queue row, and no foreign key from the queue.

`writegate_append` runs with the caller's own rights; its plans are kept for the session. A queue row is only ever inserted in the
statement that inserts its entry, and entries are never deleted: the key proved what cannot happen, and cost every append a look-up
and a row lock.
"""

import django.db.models.deletion
from django.db import migrations, models

APPEND = """
CREATE OR REPLACE FUNCTION writegate_append(
    uid uuid, content bytea, digest text, action text, actor text, target_kind text, target_id text, recorded_at timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    made bigint;
BEGIN
    INSERT INTO compliance_ledgerentry (uid, content, digest, action, actor, target_kind, target_id, recorded_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING compliance_ledgerentry.id INTO made;
    INSERT INTO compliance_ledgerpending (entry_id) VALUES (made);
END
$$;
"""
NO_APPEND = "DROP FUNCTION writegate_append(uuid, bytea, text, text, text, text, text, timestamptz);"


class Migration(migrations.Migration):
    dependencies = [("compliance", "0004_ledger_locks")]

    operations = [
        migrations.AlterField(
            model_name="ledgerpending",
            name="entry",
            field=models.OneToOneField(
                db_constraint=False,
                on_delete=django.db.models.deletion.PROTECT,
                primary_key=True,
                related_name="pending",
                serialize=False,
                to="compliance.ledgerentry",
            ),
        ),
        migrations.RunSQL(APPEND, NO_APPEND),
    ]
