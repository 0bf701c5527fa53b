"""What a long transaction recorded is seen only when it commits, long after the instants that its rows state.

As the last thing before such a commit, its subjects are marked anew, with the instant of the commit: whatever looks for news by the
clock then finds them, and knows that the instants of the facts behind the mark say nothing. The setting
`writegate.longest_transaction` can make the time shorter, for a test, and never longer.
"""

from django.db import migrations, models

MARK = """
CREATE FUNCTION writegate_mark_late() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    longest interval := least(interval '2 minutes', nullif(current_setting('writegate.longest_transaction', true), '')::interval);
BEGIN
    IF clock_timestamp() - transaction_timestamp() > longest THEN
        UPDATE evaluations_subject SET changed_at = greatest(changed_at, clock_timestamp()), late_at = clock_timestamp()
        WHERE id = NEW.id AND (late_at IS NULL OR late_at < transaction_timestamp());
    END IF;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER evaluations_subject_marked_late AFTER UPDATE ON evaluations_subject DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.changed_at IS DISTINCT FROM OLD.changed_at) EXECUTE FUNCTION writegate_mark_late();
"""
UNMARK = "DROP TRIGGER evaluations_subject_marked_late ON evaluations_subject; DROP FUNCTION writegate_mark_late();"


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0005_answered_names")]

    operations = [
        migrations.AddField(model_name="subject", name="late_at", field=models.DateTimeField(blank=True, null=True)),
        migrations.RunSQL(MARK, UNMARK),
    ]
