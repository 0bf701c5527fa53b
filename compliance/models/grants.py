"""Grants, every move they made, and the waivers that some of them rest on."""

import uuid
from datetime import timedelta

from django.contrib.postgres.fields import ArrayField
from django.db import models

from compliance.models.people import Person
from compliance.models.sign_offs import Dossier, SignOffRequest
from compliance.vocabulary import GrantKind, GrantMove, GrantStatus
from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, ExactDecimalField, choice_constraint, finite_constraint
from evaluations.kernel.models import Fact, State
from evaluations.models import SubjectVersion
from policies.models import Policy, System

BREAK_GLASS_MAX = timedelta(hours=4)


class Grant(State):
    """State. Permission resting on completed sign-offs: subject version, actions, systems, from, until.

    `status` is what was last recorded; whether it may be used is read at the moment of use, from `starts_at`, `ends_at` and
    `recertify_by` too. `dossier` is the one whose signatures carry it now. The database lets no row be active without a quorum.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=12, choices=GrantKind.choices, default=GrantKind.STANDING)
    status = models.CharField(max_length=10, choices=GrantStatus.choices, default=GrantStatus.ACTIVE)
    subject_version = models.ForeignKey(SubjectVersion, on_delete=models.PROTECT, related_name="grants")
    actions = ArrayField(models.CharField(max_length=40))
    requester = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="grants")
    request = models.OneToOneField(SignOffRequest, on_delete=models.PROTECT, null=True, blank=True, related_name="made_grant")
    dossier = models.ForeignKey(Dossier, on_delete=models.PROTECT, null=True, blank=True, related_name="grants")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    begun_at = models.DateTimeField(null=True, blank=True)
    recertify_every_days = models.PositiveIntegerField(null=True, blank=True)
    recertify_by = models.DateTimeField(null=True, blank=True)
    renews = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, related_name="renewed_by")
    reason = models.TextField()
    cause = models.CharField(max_length=40, blank=True, help_text="Why it stands as it stands: a word of the closed list.")
    created_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        constraints = [
            choice_constraint("kind", GrantKind, "grant_kind_is_known"),
            choice_constraint("status", GrantStatus, "grant_status_is_known"),
            models.CheckConstraint(condition=models.Q(ends_at__gt=models.F("starts_at")), name="grant_ends_after_it_starts"),
            models.CheckConstraint(condition=~models.Q(actions=[]), name="grant_has_an_action"),
            models.CheckConstraint(
                name="break_glass_is_short",
                condition=~models.Q(kind=GrantKind.BREAK_GLASS) | models.Q(ends_at__lte=models.F("starts_at") + BREAK_GLASS_MAX),
            ),
            models.CheckConstraint(
                name="standing_grant_rests_on_a_dossier",
                condition=models.Q(kind=GrantKind.BREAK_GLASS)
                | models.Q(request__isnull=False, dossier__isnull=False, recertify_by__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["subject_version", "status"], name="grant_by_subject"),
            models.Index(fields=["ends_at"], name="grant_by_end", condition=models.Q(status__in=["active", "suspended"])),
        ]

    def __str__(self) -> str:
        return f"grant {self.uid}"


class GrantSystem(Fact):
    """Fact. One system that a grant reaches; never a pattern."""

    grant = models.ForeignKey(Grant, on_delete=models.PROTECT, related_name="grant_systems")
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="grant_systems")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["grant", "system"], name="grant_names_a_system_once")]
        indexes = [models.Index(fields=["system", "grant"], name="grant_by_system")]

    def __str__(self) -> str:
        return self.system.key


class GrantEvent(Fact):
    """Fact. One move of a grant: what it became, why, by whom, and until when it is certified from then on.

    `cause` is a word of the closed list; `detail` says more (values before and after, the verdict, the order that stopped it).
    """

    grant = models.ForeignKey(Grant, on_delete=models.PROTECT, related_name="events")
    number = models.PositiveIntegerField()
    move = models.CharField(max_length=12, choices=GrantMove.choices)
    status = models.CharField(max_length=10, choices=GrantStatus.choices)
    cause = models.CharField(max_length=40)
    detail = models.JSONField(default=dict)
    dossier = models.ForeignKey(Dossier, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    recertify_by = models.DateTimeField(null=True, blank=True)
    actor = models.CharField(max_length=200)
    at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["grant_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["grant", "number"], name="grant_event_number_is_unique"),
            choice_constraint("move", GrantMove, "grant_move_is_known"),
            choice_constraint("status", GrantStatus, "grant_event_status_is_known"),
        ]
        indexes = [models.Index(fields=["-at", "-id"], name="grant_event_by_time")]

    def __str__(self) -> str:
        return f"{self.grant_id} {self.move}: {self.cause}"


class Waiver(Fact):
    """Fact. A signed, reasoned, expiring acceptance of one failing soft rule for one subject version on one system.

    It covers the rule under `rule_digest` as long as what is measured is no worse than `measured` (at least it where `floor`, at
    most it otherwise). The rule still shows as failed.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    request = models.ForeignKey(SignOffRequest, on_delete=models.PROTECT, related_name="waivers")
    dossier = models.ForeignKey(Dossier, on_delete=models.PROTECT, related_name="waivers")
    subject_version = models.ForeignKey(SubjectVersion, on_delete=models.PROTECT, related_name="waivers")
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="waivers")
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="waivers")
    rule = models.CharField(max_length=120)
    rule_digest = DigestField()
    measured = ExactDecimalField()
    floor = models.BooleanField()
    reason = models.TextField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    waived_by = models.CharField(max_length=200)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=models.Q(ends_at__gt=models.F("starts_at")), name="waiver_ends_after_it_starts"),
            models.CheckConstraint(condition=~models.Q(reason=""), name="waiver_has_a_reason"),
            finite_constraint("measured", "waiver_measured_is_finite"),
        ]
        indexes = [models.Index(fields=["subject_version", "system"], name="waiver_by_subject_and_system")]

    def __str__(self) -> str:
        return f"waiver of {self.rule} until {self.ends_at:%Y-%m-%d}"


class WaiverRevocation(Fact):
    """Fact. A waiver was taken back before its end."""

    waiver = models.OneToOneField(Waiver, on_delete=models.PROTECT, related_name="revocation")
    reason = models.TextField()
    revoked_by = models.CharField(max_length=200)
    recorded_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return f"{self.waiver} taken back"
