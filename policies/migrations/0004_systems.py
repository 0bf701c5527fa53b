"""What the owner of a system states about the harm that a wrong write can do. Empty means not known."""

from decimal import Decimal

import django.db.models.functions.math
from django.db import migrations, models

import evaluations.kernel.fields


class Migration(migrations.Migration):
    dependencies = [("policies", "0003_signed_changes")]

    operations = [
        migrations.AddField(
            model_name="system",
            name="people_affected",
            field=models.PositiveIntegerField(blank=True, help_text="How many people its records are about.", null=True),
        ),
        migrations.AddField(
            model_name="system",
            name="writes_per_day",
            field=models.PositiveIntegerField(blank=True, help_text="How many writes a day it takes now.", null=True),
        ),
        migrations.AddField(
            model_name="system",
            name="holds_personal_data",
            field=models.BooleanField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="system",
            name="money_at_stake_usd",
            field=evaluations.kernel.fields.ExactDecimalField(
                blank=True,
                decimal_places=6,
                help_text="The most that one wrong write can cost, in US dollars.",
                max_digits=18,
                null=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="system",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("money_at_stake_usd", django.db.models.functions.math.Round(models.F("money_at_stake_usd"), 6)),
                    ("money_at_stake_usd__gt", Decimal("-1000000000000")),
                    ("money_at_stake_usd__lt", Decimal("1000000000000")),
                ),
                name="system_money_is_exact",
            ),
        ),
        migrations.AddConstraint(
            model_name="system",
            constraint=models.CheckConstraint(
                condition=models.Q(("money_at_stake_usd__gte", 0)), name="system_money_is_not_negative"
            ),
        ),
    ]
