"""The trust in a source names the request whose signatures carry it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0008_signed_definitions")]

    operations = [
        migrations.AddField(
            model_name="trustassignment",
            name="sign_off_request",
            field=models.UUIDField(blank=True, null=True, unique=True),
        ),
    ]
