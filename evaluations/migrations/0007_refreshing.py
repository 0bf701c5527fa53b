"""From where and how often sources are refreshed, each run of that, and when a host may be asked again."""

import django.contrib.postgres.fields
import django.db.models.deletion
import evaluations.kernel.clock
import evaluations.kernel.fields
import uuid
from django.db import migrations, models


STATES = ["evaluations_sourceschedule", "evaluations_refreshrun", "evaluations_hostpace"]

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


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0006_late_commits"),
    ]

    operations = [
        migrations.CreateModel(
            name="HostPace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("host", models.CharField(max_length=300, unique=True)),
                ("next_at", models.DateTimeField()),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="RefreshRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("asked_by", models.CharField(max_length=200)),
                ("forced", models.BooleanField(default=False)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("running", "running"),
                            ("taken", "taken"),
                            ("unchanged", "unchanged"),
                            ("deferred", "deferred"),
                            ("failed", "failed"),
                            ("interrupted", "interrupted"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "cause",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("new_evidence", "new evidence was recorded"),
                            ("not_modified", "the source says that nothing has changed"),
                            ("same_bytes", "everything was recorded before from the same bytes"),
                            ("nothing_there", "no new file lies in the folder"),
                            ("asked_to_wait", "the host asks to come back later"),
                            ("host_busy", "the host has its share of requests"),
                            ("shape_refused", "the importer refuses what was fetched"),
                            ("key_refused", "the host does not accept the key"),
                            ("key_missing", "the key that the schedule names is not set"),
                            ("not_found", "nothing is at the address"),
                            ("http_error", "the host answers with an error"),
                            ("timed_out", "the answer was not whole in time"),
                            ("truncated", "the answer was cut off"),
                            ("too_large", "the answer is larger than is read"),
                            ("too_many_pages", "the list has more pages than are read"),
                            ("address_refused", "the address may not be asked"),
                            ("certificate", "the certificate does not hold"),
                            ("unreachable", "the host is not reached"),
                            ("no_http", "the answer is no HTTP that is understood"),
                            ("folder_refused", "the folder or a file in it cannot be read"),
                            ("worker_gone", "the worker ended in the middle"),
                            ("our_fault", "an error of ours; see the log"),
                        ],
                        max_length=20,
                    ),
                ),
                ("detail", models.CharField(blank=True, max_length=500)),
                ("http_status", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("requests", models.PositiveIntegerField(default=0)),
                ("bytes_received", models.BigIntegerField(default=0)),
                (
                    "documents",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=evaluations.kernel.fields.DigestField(max_length=71), blank=True, default=list, size=None
                    ),
                ),
                ("evidence", models.PositiveIntegerField(default=0)),
                ("taken", models.PositiveIntegerField(default=0)),
                ("held", models.PositiveIntegerField(default=0)),
                ("repeated", models.PositiveIntegerField(default=0)),
                ("refused", models.PositiveIntegerField(default=0)),
                ("problems", models.JSONField(blank=True, default=list)),
                ("etag", models.CharField(blank=True, max_length=300)),
                ("last_modified", models.CharField(blank=True, max_length=100)),
                ("asked_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "source",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="refresh_runs", to="evaluations.source"
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["source", "-id"], name="refresh_run_by_source")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("outcome__in", ["queued", "running", "taken", "unchanged", "deferred", "failed", "interrupted"])
                        ),
                        name="refresh_outcome_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cause", ""),
                            (
                                "cause__in",
                                [
                                    "new_evidence",
                                    "not_modified",
                                    "same_bytes",
                                    "nothing_there",
                                    "asked_to_wait",
                                    "host_busy",
                                    "shape_refused",
                                    "key_refused",
                                    "key_missing",
                                    "not_found",
                                    "http_error",
                                    "timed_out",
                                    "truncated",
                                    "too_large",
                                    "too_many_pages",
                                    "address_refused",
                                    "certificate",
                                    "unreachable",
                                    "no_http",
                                    "folder_refused",
                                    "worker_gone",
                                    "our_fault",
                                ],
                            ),
                            _connector="OR",
                        ),
                        name="refresh_cause_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("cause", ""), ("ended_at", None), ("outcome__in", ["queued", "running"])),
                            models.Q(
                                models.Q(("outcome__in", ["queued", "running"]), _negated=True),
                                ("ended_at__isnull", False),
                                models.Q(("cause", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="refresh_run_ends_with_a_cause",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)), fields=("source",), name="one_open_run_a_source"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SourceSchedule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "connector",
                    models.CharField(
                        choices=[
                            ("http", "an https address"),
                            ("folder", "a watched folder"),
                            ("artificial_analysis", "the Artificial Analysis API"),
                            ("hugging_face", "a file on Hugging Face"),
                            ("github", "a file on GitHub"),
                        ],
                        max_length=20,
                    ),
                ),
                ("address", models.CharField(blank=True, max_length=1000)),
                ("format", models.CharField(blank=True, max_length=60)),
                ("profile", models.CharField(blank=True, max_length=120)),
                ("subject", models.CharField(blank=True, max_length=300)),
                ("key_name", models.CharField(blank=True, max_length=120)),
                ("interval_minutes", models.PositiveIntegerField()),
                ("paused_at", models.DateTimeField(blank=True, null=True)),
                ("set_by", models.CharField(max_length=200)),
                ("set_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                ("due_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                ("queued_until", models.DateTimeField(blank=True, null=True)),
                ("marks", models.JSONField(blank=True, default=dict)),
                ("failed_runs", models.PositiveIntegerField(default=0)),
                ("succeeded_at", models.DateTimeField(blank=True, null=True)),
                ("alarmed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "source",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="schedule", to="evaluations.source"
                    ),
                ),
            ],
            options={
                "ordering": ["source__key"],
                "indexes": [models.Index(condition=models.Q(("paused_at", None)), fields=["due_at"], name="schedule_by_due_at")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("connector__in", ["http", "folder", "artificial_analysis", "hugging_face", "github"])
                        ),
                        name="schedule_connector_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("interval_minutes__gte", 1)), name="schedule_interval_is_positive"
                    ),
                ],
            },
        ),
        *(migrations.RunSQL(GUARD_STATE.format(table=table), UNGUARD_STATE.format(table=table)) for table in STATES),
    ]
