"""An index from a name that answered to the evidence which says so: a name that moves puts in doubt whose answer that was."""

from django.contrib.postgres.indexes import GinIndex
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0004_urgent_news")]

    operations = [
        migrations.AddIndex(
            model_name="evidence",
            index=GinIndex(
                fields=["answered_as_written"],
                name="evidence_by_answered",
                condition=models.Q(("answered_as_written", []), _negated=True),
            ),
        ),
    ]
