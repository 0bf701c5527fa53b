"""Activations and bindings name the request whose signatures carry them.

No default for rows that are there: nothing could write these tables before, and a row without signatures must stop the migration.
"""

from django.db import migrations, models

HELP = "Id of the completed request whose signatures carry it; a value from the floor above."


class Migration(migrations.Migration):
    dependencies = [("policies", "0002_locks")]

    operations = [
        migrations.AddField(model_name=name, name="sign_off_request", field=models.UUIDField(unique=True, help_text=HELP))
        for name in ("policyactivation", "binding")
    ]
