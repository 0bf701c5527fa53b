"""People are told of policies in force whose texts cannot be read."""

from django.db import migrations, models

KINDS = [
    ("signature_wanted", "signature wanted"),
    ("request_decided", "request decided"),
    ("request_changed", "request changed"),
    ("grant_began", "grant began"),
    ("grant_suspended", "grant suspended"),
    ("grant_ending", "grant ending"),
    ("evidence_ending", "evidence ending"),
    ("evidence_retracted", "evidence retracted"),
    ("break_glass_opened", "break-glass opened"),
    ("review_due", "review due"),
    ("stop_pulled", "stop pulled"),
    ("drift_noticed", "drift noticed"),
    ("verdict_mismatched", "verdict mismatched"),
    ("source_failed", "source failed"),
    ("policy_unreadable", "policy unreadable"),
]
NAME = "notice_kind_is_known"


class Migration(migrations.Migration):
    dependencies = [("compliance", "0019_signed_definitions")]

    operations = [
        migrations.RemoveConstraint(model_name="outboxmessage", name=NAME),
        migrations.AlterField(model_name="outboxmessage", name="kind", field=models.CharField(choices=KINDS, max_length=40)),
        migrations.AddConstraint(
            model_name="outboxmessage",
            constraint=models.CheckConstraint(condition=models.Q(("kind__in", [word for word, _ in KINDS])), name=NAME),
        ),
    ]
