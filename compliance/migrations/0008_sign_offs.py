"""Requests for signatures, dossiers, sign-offs, seats, grants and waivers."""

from datetime import timedelta
import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.math
import evaluations.kernel.clock
import evaluations.kernel.fields
import uuid
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("compliance", "0007_signing_in"),
        ("evaluations", "0003_signed_rulings"),
        ("policies", "0004_systems"),
    ]

    operations = [
        migrations.CreateModel(
            name="Dossier",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("content", models.BinaryField()),
                ("digest", evaluations.kernel.fields.DigestField(max_length=71)),
                ("excluded", django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None)),
                ("because", models.CharField(blank=True, max_length=300)),
                ("recorded_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
            ],
            options={
                "ordering": ["request_id", "number"],
            },
        ),
        migrations.CreateModel(
            name="Grant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("standing", "standing"), ("break_glass", "break-glass")], default="standing", max_length=12
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("active", "active"),
                            ("suspended", "suspended"),
                            ("expired", "expired"),
                            ("revoked", "revoked"),
                        ],
                        default="active",
                        max_length=10,
                    ),
                ),
                ("actions", django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), size=None)),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("begun_at", models.DateTimeField(blank=True, null=True)),
                ("recertify_every_days", models.PositiveIntegerField(blank=True, null=True)),
                ("recertify_by", models.DateTimeField(blank=True, null=True)),
                ("reason", models.TextField()),
                (
                    "cause",
                    models.CharField(
                        blank=True, help_text="Why it stands as it stands: a word of the closed list.", max_length=40
                    ),
                ),
                ("created_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                (
                    "dossier",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="grants",
                        to="compliance.dossier",
                    ),
                ),
                (
                    "renews",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="renewed_by",
                        to="compliance.grant",
                    ),
                ),
                (
                    "requester",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="grants", to="compliance.person"),
                ),
                (
                    "subject_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="grants", to="evaluations.subjectversion"
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="QuorumFactor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ordinal", models.PositiveSmallIntegerField()),
                ("factor", models.CharField(max_length=120)),
                ("role", models.CharField(max_length=20)),
                ("approve", models.PositiveSmallIntegerField()),
                ("filter", models.TextField(blank=True)),
                (
                    "dossier",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="factors", to="compliance.dossier"
                    ),
                ),
            ],
            options={
                "ordering": ["dossier_id", "ordinal"],
            },
        ),
        migrations.CreateModel(
            name="SignOff",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("dossier_digest", evaluations.kernel.fields.DigestField(max_length=71)),
                ("roles", django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), size=None)),
                (
                    "meaning",
                    models.CharField(
                        choices=[
                            ("reviewed", "reviewed"),
                            ("approved", "approved"),
                            ("accepted_residual_risk", "accepted residual risk"),
                            ("rejected", "rejected"),
                            ("withdrawn", "withdrawn"),
                        ],
                        max_length=24,
                    ),
                ),
                ("reason", models.TextField()),
                (
                    "reauthentication",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="sign_offs", to="compliance.reauthentication"
                    ),
                ),
                ("signed_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                (
                    "account",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
                (
                    "dossier",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="sign_offs", to="compliance.dossier"
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="sign_offs", to="compliance.person"
                    ),
                ),
                (
                    "requester",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="compliance.person"),
                ),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="Seat",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveSmallIntegerField()),
                (
                    "dossier",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="seats", to="compliance.dossier"),
                ),
                (
                    "factor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="seats", to="compliance.quorumfactor"
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="compliance.person"),
                ),
                (
                    "sign_off",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="seat", to="compliance.signoff"
                    ),
                ),
            ],
            options={
                "ordering": ["factor_id", "number"],
            },
        ),
        migrations.CreateModel(
            name="SignOffRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("grant", "grant"),
                            ("renewal", "renewal"),
                            ("reinstatement", "reinstatement"),
                            ("recertification", "recertification"),
                            ("waiver", "waiver"),
                            ("activation", "policy activation"),
                            ("binding", "binding"),
                            ("ruling", "ruling"),
                            ("break_glass_review", "break-glass review"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("completed", "completed"),
                            ("rejected", "rejected"),
                            ("withdrawn", "withdrawn"),
                            ("expired", "expired"),
                        ],
                        default="open",
                        max_length=10,
                    ),
                ),
                ("requested_by", models.CharField(max_length=200)),
                ("reason", models.TextField()),
                ("proposal", models.BinaryField()),
                ("created_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                ("expires_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                ("closed_because", models.CharField(blank=True, max_length=300)),
                (
                    "dossier",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="compliance.dossier",
                    ),
                ),
                (
                    "evidence",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sign_off_requests",
                        to="evaluations.evidence",
                    ),
                ),
                (
                    "grant",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="later_requests",
                        to="compliance.grant",
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sign_off_requests",
                        to="policies.policy",
                    ),
                ),
                (
                    "policy_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sign_off_requests",
                        to="policies.policyversion",
                    ),
                ),
                (
                    "requester",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="requests", to="compliance.person"
                    ),
                ),
                (
                    "subject_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sign_off_requests",
                        to="evaluations.subjectversion",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.AddField(
            model_name="signoff",
            name="request",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="sign_offs", to="compliance.signoffrequest"
            ),
        ),
        migrations.CreateModel(
            name="RequestSystem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "system",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="sign_off_requests", to="policies.system"
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="about_systems", to="compliance.signoffrequest"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RequestComment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "kind",
                    models.CharField(choices=[("comment", "comment"), ("change_requested", "change requested")], max_length=16),
                ),
                ("text", models.TextField()),
                ("recorded_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                (
                    "person",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="compliance.person"),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="comments", to="compliance.signoffrequest"
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.AddField(
            model_name="grant",
            name="request",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="made_grant",
                to="compliance.signoffrequest",
            ),
        ),
        migrations.AddField(
            model_name="dossier",
            name="request",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="dossiers", to="compliance.signoffrequest"
            ),
        ),
        migrations.CreateModel(
            name="Waiver",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("rule", models.CharField(max_length=120)),
                ("rule_digest", evaluations.kernel.fields.DigestField(max_length=71)),
                ("measured", evaluations.kernel.fields.ExactDecimalField(decimal_places=6, max_digits=18)),
                ("floor", models.BooleanField()),
                ("reason", models.TextField()),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("waived_by", models.CharField(max_length=200)),
                ("recorded_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                (
                    "dossier",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="waivers", to="compliance.dossier"
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="waivers", to="policies.policy"),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="waivers", to="compliance.signoffrequest"
                    ),
                ),
                (
                    "subject_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="waivers", to="evaluations.subjectversion"
                    ),
                ),
                (
                    "system",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="waivers", to="policies.system"),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="WaiverRevocation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reason", models.TextField()),
                ("revoked_by", models.CharField(max_length=200)),
                ("recorded_at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                (
                    "waiver",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="revocation", to="compliance.waiver"
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="GrantEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                (
                    "move",
                    models.CharField(
                        choices=[
                            ("made", "made"),
                            ("begun", "begun"),
                            ("suspended", "suspended"),
                            ("reinstated", "reinstated"),
                            ("recertified", "recertified"),
                            ("expired", "expired"),
                            ("revoked", "revoked"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("active", "active"),
                            ("suspended", "suspended"),
                            ("expired", "expired"),
                            ("revoked", "revoked"),
                        ],
                        max_length=10,
                    ),
                ),
                ("cause", models.CharField(max_length=40)),
                ("detail", models.JSONField(default=dict)),
                ("recertify_by", models.DateTimeField(blank=True, null=True)),
                ("actor", models.CharField(max_length=200)),
                ("at", models.DateTimeField(default=evaluations.kernel.clock.now)),
                (
                    "dossier",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="compliance.dossier",
                    ),
                ),
                (
                    "grant",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="events", to="compliance.grant"),
                ),
            ],
            options={
                "ordering": ["grant_id", "number"],
                "indexes": [models.Index(fields=["-at", "-id"], name="grant_event_by_time")],
                "constraints": [
                    models.UniqueConstraint(fields=("grant", "number"), name="grant_event_number_is_unique"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("move__in", ["made", "begun", "suspended", "reinstated", "recertified", "expired", "revoked"])
                        ),
                        name="grant_move_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["active", "suspended", "expired", "revoked"])),
                        name="grant_event_status_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GrantSystem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "grant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="grant_systems", to="compliance.grant"
                    ),
                ),
                (
                    "system",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="grant_systems", to="policies.system"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["system", "grant"], name="grant_by_system")],
                "constraints": [models.UniqueConstraint(fields=("grant", "system"), name="grant_names_a_system_once")],
            },
        ),
        migrations.AddConstraint(
            model_name="quorumfactor",
            constraint=models.UniqueConstraint(fields=("dossier", "factor"), name="factor_name_is_unique"),
        ),
        migrations.AddConstraint(
            model_name="quorumfactor",
            constraint=models.CheckConstraint(condition=models.Q(("approve__gte", 1)), name="factor_asks_for_somebody"),
        ),
        migrations.AddIndex(model_name="quorumfactor", index=models.Index(fields=["role", "dossier"], name="factor_by_role")),
        migrations.AddConstraint(
            model_name="seat",
            constraint=models.UniqueConstraint(fields=("dossier", "person"), name="seat_is_a_person_once"),
        ),
        migrations.AddConstraint(
            model_name="seat",
            constraint=models.UniqueConstraint(fields=("factor", "number"), name="seat_is_taken_once"),
        ),
        migrations.AddIndex(
            model_name="signoffrequest",
            index=models.Index(
                condition=models.Q(("status", "open")), fields=["expires_at", "id"], name="request_open_by_expiry"
            ),
        ),
        migrations.AddIndex(
            model_name="signoffrequest",
            index=models.Index(fields=["requester", "-id"], name="request_by_requester"),
        ),
        migrations.AddConstraint(
            model_name="signoffrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "grant",
                            "renewal",
                            "reinstatement",
                            "recertification",
                            "waiver",
                            "activation",
                            "binding",
                            "ruling",
                            "break_glass_review",
                        ],
                    )
                ),
                name="request_kind_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="signoffrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["open", "completed", "rejected", "withdrawn", "expired"])),
                name="request_status_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="signoffrequest",
            constraint=models.UniqueConstraint(fields=("id", "requester"), name="request_with_its_requester"),
        ),
        migrations.AddConstraint(
            model_name="signoffrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("closed_at", None), ("status", "open")),
                    models.Q(models.Q(("status", "open"), _negated=True), ("closed_at__isnull", False)),
                    _connector="OR",
                ),
                name="request_is_closed_at_a_time",
            ),
        ),
        migrations.AddIndex(
            model_name="signoff",
            index=models.Index(fields=["request", "person", "-id"], name="sign_off_by_request_and_person"),
        ),
        migrations.AddConstraint(
            model_name="signoff",
            constraint=models.CheckConstraint(
                condition=models.Q(("meaning__in", ["reviewed", "approved", "accepted_residual_risk", "rejected", "withdrawn"])),
                name="sign_off_meaning_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="signoff",
            constraint=models.CheckConstraint(
                condition=models.Q(("person", models.F("requester")), _negated=True), name="sign_off_is_not_by_the_requester"
            ),
        ),
        migrations.AddConstraint(
            model_name="signoff",
            constraint=models.CheckConstraint(condition=models.Q(("roles", []), _negated=True), name="sign_off_has_a_role"),
        ),
        migrations.AddConstraint(
            model_name="signoff",
            constraint=models.CheckConstraint(condition=models.Q(("reason", ""), _negated=True), name="sign_off_has_a_reason"),
        ),
        migrations.AddConstraint(
            model_name="requestsystem",
            constraint=models.UniqueConstraint(fields=("request", "system"), name="request_names_a_system_once"),
        ),
        migrations.AddConstraint(
            model_name="requestcomment",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["comment", "change_requested"])), name="comment_kind_is_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="requestcomment",
            constraint=models.CheckConstraint(condition=models.Q(("text", ""), _negated=True), name="comment_says_something"),
        ),
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(fields=["subject_version", "status"], name="grant_by_subject"),
        ),
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(
                condition=models.Q(("status__in", ["active", "suspended"])), fields=["ends_at"], name="grant_by_end"
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["standing", "break_glass"])), name="grant_kind_is_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["active", "suspended", "expired", "revoked"])), name="grant_status_is_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(("ends_at__gt", models.F("starts_at"))), name="grant_ends_after_it_starts"
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(condition=models.Q(("actions", []), _negated=True), name="grant_has_an_action"),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "break_glass"), _negated=True),
                    (
                        "ends_at__lte",
                        django.db.models.expressions.CombinedExpression(
                            models.F("starts_at"), "+", models.Value(timedelta(seconds=14400))
                        ),
                    ),
                    _connector="OR",
                ),
                name="break_glass_is_short",
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind", "break_glass"),
                    models.Q(("dossier__isnull", False), ("recertify_by__isnull", False), ("request__isnull", False)),
                    _connector="OR",
                ),
                name="standing_grant_rests_on_a_dossier",
            ),
        ),
        migrations.AddIndex(
            model_name="dossier",
            index=models.Index(fields=["digest"], name="dossier_by_digest"),
        ),
        migrations.AddConstraint(
            model_name="dossier",
            constraint=models.UniqueConstraint(fields=("request", "number"), name="dossier_number_is_unique"),
        ),
        migrations.AddIndex(
            model_name="waiver",
            index=models.Index(fields=["subject_version", "system"], name="waiver_by_subject_and_system"),
        ),
        migrations.AddConstraint(
            model_name="waiver",
            constraint=models.CheckConstraint(
                condition=models.Q(("ends_at__gt", models.F("starts_at"))), name="waiver_ends_after_it_starts"
            ),
        ),
        migrations.AddConstraint(
            model_name="waiver",
            constraint=models.CheckConstraint(condition=models.Q(("reason", ""), _negated=True), name="waiver_has_a_reason"),
        ),
        migrations.AddConstraint(
            model_name="waiver",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("measured", django.db.models.functions.math.Round(models.F("measured"), 6)),
                    ("measured__gt", Decimal("-1000000000000")),
                    ("measured__lt", Decimal("1000000000000")),
                ),
                name="waiver_measured_is_finite",
            ),
        ),
    ]
