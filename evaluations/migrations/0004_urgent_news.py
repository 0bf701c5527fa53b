"""When a ruling or a name's move last concerned a subject: what no answer may overlook, not even for a minute."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0003_signed_rulings")]

    operations = [
        migrations.AddField(model_name="subject", name="urgent_at", field=models.DateTimeField(blank=True, null=True)),
    ]
