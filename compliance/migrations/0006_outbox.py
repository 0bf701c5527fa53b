"""The outbox and the webhook endpoints, with their guards."""

import django.contrib.postgres.fields
import django.db.models.deletion
import evaluations.kernel.clock
import evaluations.kernel.fields
import uuid
from django.db import migrations, models

STATES = ["compliance_webhookendpoint", "compliance_outboxmessage"]

GUARD_STATE = """
CREATE TRIGGER {table}_by_service BEFORE INSERT OR UPDATE OR DELETE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_require_service();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION writegate_refuse_change();
DO $$ BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON {table} TO %I', current_setting('writegate.runtime_role'));
END $$;
"""
UNGUARD_STATE = """
DROP TRIGGER {table}_by_service ON {table};
DROP TRIGGER {table}_no_truncate ON {table};
DO $$ BEGIN
    EXECUTE format('REVOKE ALL ON {table} FROM %I', current_setting('writegate.runtime_role'));
END $$;
"""
SIZE = "ALTER TABLE compliance_outboxmessage ADD CONSTRAINT notice_data_is_small CHECK (octet_length(data) <= 65536);"
NO_SIZE = "ALTER TABLE compliance_outboxmessage DROP CONSTRAINT notice_data_is_small;"


# allauth's step that lowers addresses writes to our accounts, of which all are lower-case already: it is let through the guard as a
# service is, in this session, until our next step ends that.
LET_ADDRESSES_BE_LOWERED = "SELECT set_config('writegate.service', 'migrate', false);"


class Migration(migrations.Migration):
    dependencies = [("compliance", "0005_ledger_append")]
    run_before = [("account", "0006_emailaddress_lower")]

    operations = [
        migrations.CreateModel(
            name="WebhookEndpoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("title", models.CharField(max_length=120)),
                ("url", models.CharField(max_length=1000)),
                ("events", django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), size=None)),
                ("secret", models.CharField(max_length=100)),
                ("previous_secret", models.CharField(blank=True, max_length=100)),
                ("previous_until", models.DateTimeField(blank=True, null=True)),
                ("created_by", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                ("disabled_by", models.CharField(blank=True, max_length=200)),
                ("disabled_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "webhook",
                "ordering": ["-id"],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("events", []), _negated=True), name="webhook_wants_an_event")
                ],
            },
        ),
        migrations.CreateModel(
            name="OutboxMessage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
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
                        ],
                        max_length=40,
                    ),
                ),
                ("event_id", models.UUIDField()),
                ("event_type", models.CharField(max_length=200)),
                ("source", models.CharField(max_length=300)),
                ("subject", models.CharField(help_text="What it is about, as kind/id.", max_length=300)),
                ("title", models.CharField(max_length=200)),
                ("text", models.TextField(blank=True, help_text="What a person reads.")),
                ("data", models.TextField(help_text="What a machine reads: canonical JSON without names of people.")),
                (
                    "channel",
                    models.CharField(choices=[("mail", "mail"), ("chat", "chat"), ("webhook", "webhook")], max_length=10),
                ),
                (
                    "person",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="compliance.person",
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="messages",
                        to="compliance.webhookendpoint",
                    ),
                ),
                (
                    "destination",
                    models.CharField(
                        blank=True, help_text="The mark of a configured chat, which keeps its address.", max_length=40
                    ),
                ),
                ("dedupe_key", evaluations.kernel.fields.DigestField(max_length=71, unique=True)),
                (
                    "status",
                    models.CharField(
                        choices=[("waiting", "waiting"), ("sent", "sent"), ("dead", "dead")], default="waiting", max_length=10
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("due_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                ("claimed_until", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "notice",
                "ordering": ["-id"],
                "indexes": [
                    models.Index(condition=models.Q(("status", "waiting")), fields=["due_at", "id"], name="notice_by_due"),
                    models.Index(fields=["status", "-id"], name="notice_by_status"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                [
                                    "signature_wanted",
                                    "request_decided",
                                    "request_changed",
                                    "grant_began",
                                    "grant_suspended",
                                    "grant_ending",
                                    "evidence_ending",
                                    "evidence_retracted",
                                    "break_glass_opened",
                                    "review_due",
                                    "stop_pulled",
                                    "drift_noticed",
                                ],
                            )
                        ),
                        name="notice_kind_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("channel__in", ["mail", "chat", "webhook"])), name="notice_channel_is_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["waiting", "sent", "dead"])), name="notice_status_is_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("channel", "mail"), ("destination", ""), ("endpoint", None), ("person__isnull", False)),
                            models.Q(("channel", "webhook"), ("destination", ""), ("endpoint__isnull", False), ("person", None)),
                            models.Q(
                                ("channel", "chat"),
                                ("endpoint", None),
                                ("person", None),
                                models.Q(("destination", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="notice_has_its_recipient",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("sent_at__isnull", False), ("status", "sent")),
                            models.Q(models.Q(("status", "sent"), _negated=True), ("sent_at", None)),
                            _connector="OR",
                        ),
                        name="notice_is_sent_at_an_instant",
                    ),
                ],
            },
        ),
        *(migrations.RunSQL(GUARD_STATE.format(table=table), UNGUARD_STATE.format(table=table)) for table in STATES),
        migrations.RunSQL(SIZE, NO_SIZE),
        migrations.RunSQL(LET_ADDRESSES_BE_LOWERED, migrations.RunSQL.noop),
    ]
