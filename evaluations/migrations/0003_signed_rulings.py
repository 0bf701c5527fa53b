"""Rulings beyond a dispute name the completed request whose signatures carry them.

Rulings recorded before, by nobody's signature, stay as they are: the constraint holds for what comes.
"""

from django.db import migrations, models

CONDITION = """
ALTER TABLE evaluations_ruling ADD CONSTRAINT ruling_beyond_a_dispute_is_signed
    CHECK (kind = 'disputed' OR sign_off_request IS NOT NULL) NOT VALID;
"""
NO_CONDITION = "ALTER TABLE evaluations_ruling DROP CONSTRAINT ruling_beyond_a_dispute_is_signed;"


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0002_locks")]

    operations = [
        migrations.AddField(
            model_name="ruling",
            name="sign_off_request",
            field=models.UUIDField(blank=True, null=True, unique=True),
        ),
        migrations.RunSQL(
            CONDITION,
            NO_CONDITION,
            state_operations=[
                migrations.AddConstraint(
                    model_name="ruling",
                    constraint=models.CheckConstraint(
                        condition=models.Q(("kind", "disputed"), ("sign_off_request__isnull", False), _connector="OR"),
                        name="ruling_beyond_a_dispute_is_signed",
                    ),
                )
            ],
        ),
    ]
