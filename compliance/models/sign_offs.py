"""Requests for signatures, what exactly is signed, who signed it, and which place each signature fills."""

import uuid
from collections.abc import Iterable
from typing import Any, ClassVar, NoReturn

from django.contrib.postgres.fields import ArrayField
from django.db import models

from compliance.models.people import Person, User
from compliance.models.signing_in import Reauthentication
from compliance.vocabulary import CommentKind, Meaning, RequestKind, RequestStatus
from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind
from evaluations.kernel.fields import DigestField, choice_constraint
from evaluations.kernel.models import Fact, FactQuerySet, State
from evaluations.kernel.services import record_refusal, running_service
from evaluations.models import Evidence, SubjectVersion
from policies.models import Policy, PolicyVersion, System

SIGNING_SERVICE = "give_sign_off"
"""The one service that writes signatures: it judges who may sign."""


class SignOffOutsideService(DomainError):
    """A signature was about to be written past the service that judges who may sign."""

    code = "sign_off_outside_service"
    kind = ErrorKind.FORBIDDEN


class SignOffRequest(State):
    """State. Somebody asks for something that no one person may do: a grant, an activation, a waiver, a ruling and their kin.

    `proposal` holds the canonical bytes of what exactly is asked, by kind. `dossier` points to the document that is signed now;
    a newer one voids the signatures on the one before. `expires_at` is read whenever it matters; the status follows later.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=20, choices=RequestKind.choices)
    status = models.CharField(max_length=10, choices=RequestStatus.choices, default=RequestStatus.OPEN)
    requester = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="requests")
    requested_by = models.CharField(max_length=200)
    reason = models.TextField()
    proposal = models.BinaryField()
    subject_version = models.ForeignKey(
        SubjectVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="sign_off_requests"
    )
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, null=True, blank=True, related_name="sign_off_requests")
    policy_version = models.ForeignKey(
        PolicyVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="sign_off_requests"
    )
    evidence = models.ForeignKey(Evidence, on_delete=models.PROTECT, null=True, blank=True, related_name="sign_off_requests")
    grant = models.ForeignKey("compliance.Grant", on_delete=models.PROTECT, null=True, blank=True, related_name="later_requests")
    dossier = models.ForeignKey("compliance.Dossier", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_because = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            choice_constraint("kind", RequestKind, "request_kind_is_known"),
            choice_constraint("status", RequestStatus, "request_status_is_known"),
            # What signatures refer to, so that "the signer is not the requester" is a plain check on their own row.
            models.UniqueConstraint(fields=["id", "requester"], name="request_with_its_requester"),
            models.CheckConstraint(
                name="request_is_closed_at_a_time",
                condition=models.Q(status=RequestStatus.OPEN, closed_at=None)
                | (~models.Q(status=RequestStatus.OPEN) & models.Q(closed_at__isnull=False)),
            ),
        ]
        indexes = [
            models.Index(
                fields=["expires_at", "id"], name="request_open_by_expiry", condition=models.Q(status=RequestStatus.OPEN)
            ),
            models.Index(fields=["requester", "-id"], name="request_by_requester"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.uid}"


class RequestSystem(Fact):
    """Fact. One system that a request is about."""

    request = models.ForeignKey(SignOffRequest, on_delete=models.PROTECT, related_name="about_systems")
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="sign_off_requests")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["request", "system"], name="request_names_a_system_once")]


class Dossier(Fact):
    """Fact. The canonical document that signers sign, by digest. `excluded` holds the persons who may not sign it.

    `because` says what made it differ from the dossier before.
    """

    request = models.ForeignKey(SignOffRequest, on_delete=models.PROTECT, related_name="dossiers")
    number = models.PositiveIntegerField()
    content = models.BinaryField()
    digest = DigestField()
    excluded = ArrayField(models.UUIDField(), default=list)
    because = models.CharField(max_length=300, blank=True)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["request_id", "number"]
        constraints = [models.UniqueConstraint(fields=["request", "number"], name="dossier_number_is_unique")]
        indexes = [models.Index(fields=["digest"], name="dossier_by_digest")]

    def __str__(self) -> str:
        return f"dossier {self.number} of {self.request_id}"


class QuorumFactor(Fact):
    """Fact. So many different people with a role must approve a dossier. `filter` is the CEL text that each must meet, or empty."""

    dossier = models.ForeignKey(Dossier, on_delete=models.PROTECT, related_name="factors")
    ordinal = models.PositiveSmallIntegerField()
    factor = models.CharField(max_length=120)
    role = models.CharField(max_length=20)
    approve = models.PositiveSmallIntegerField()
    filter = models.TextField(blank=True)

    class Meta:
        ordering = ["dossier_id", "ordinal"]
        constraints = [
            models.UniqueConstraint(fields=["dossier", "factor"], name="factor_name_is_unique"),
            models.CheckConstraint(condition=models.Q(approve__gte=1), name="factor_asks_for_somebody"),
        ]
        indexes = [models.Index(fields=["role", "dossier"], name="factor_by_role")]

    def __str__(self) -> str:
        return f"{self.factor}: {self.approve} × {self.role}"


class SignOffQuerySet(FactQuerySet):
    """Reads; every road past the service is refused, and the ledger tells of the attempt."""

    def bulk_create(self, objs: Iterable[Any], *args: Any, **options: Any) -> list[Any]:
        _refuse_sign_off()

    def _refuse(self) -> NoReturn:
        _refuse_sign_off()


class SignOff(Fact):
    """Fact. One person's yes or no to one exact dossier, with its meaning. Her last one on a request is her state.

    `roles` are those that counted then, `reauthentication` how and when she showed that it is she. `requester` repeats the request's,
    held to it by a foreign key, so that nobody signs her own request whatever the road.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    request = models.ForeignKey(SignOffRequest, on_delete=models.PROTECT, related_name="sign_offs")
    requester = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+")
    dossier = models.ForeignKey(Dossier, on_delete=models.PROTECT, related_name="sign_offs")
    dossier_digest = DigestField()
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="sign_offs")
    account = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    roles = ArrayField(models.CharField(max_length=20))
    meaning = models.CharField(max_length=24, choices=Meaning.choices)
    reason = models.TextField()
    reauthentication = models.ForeignKey(Reauthentication, on_delete=models.PROTECT, related_name="sign_offs")
    signed_at = models.DateTimeField(default=now)

    objects: ClassVar[models.Manager[Any]] = models.Manager.from_queryset(SignOffQuerySet)()

    class Meta:
        ordering = ["id"]
        constraints = [
            choice_constraint("meaning", Meaning, "sign_off_meaning_is_known"),
            models.CheckConstraint(condition=~models.Q(person=models.F("requester")), name="sign_off_is_not_by_the_requester"),
            models.CheckConstraint(condition=~models.Q(roles=[]), name="sign_off_has_a_role"),
            models.CheckConstraint(condition=~models.Q(reason=""), name="sign_off_has_a_reason"),
        ]
        indexes = [models.Index(fields=["request", "person", "-id"], name="sign_off_by_request_and_person")]

    def __str__(self) -> str:
        return f"{self.person_id}: {self.meaning}"

    def save(self, *args: Any, **options: Any) -> None:
        if running_service() != SIGNING_SERVICE:
            _refuse_sign_off()
        super().save(*args, **options)


class Seat(Fact):
    """Fact. The place of a factor that a signature filled when its request was completed; a person sits once on a dossier."""

    dossier = models.ForeignKey(Dossier, on_delete=models.PROTECT, related_name="seats")
    factor = models.ForeignKey(QuorumFactor, on_delete=models.PROTECT, related_name="seats")
    number = models.PositiveSmallIntegerField()
    sign_off = models.OneToOneField(SignOff, on_delete=models.PROTECT, related_name="seat")
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["factor_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["dossier", "person"], name="seat_is_a_person_once"),
            models.UniqueConstraint(fields=["factor", "number"], name="seat_is_taken_once"),
        ]

    def __str__(self) -> str:
        return f"{self.factor.factor} {self.number}: {self.person_id}"


class RequestComment(Fact):
    """Fact. What somebody says about a request, or which change she asks for."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    request = models.ForeignKey(SignOffRequest, on_delete=models.PROTECT, related_name="comments")
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16, choices=CommentKind.choices)
    text = models.TextField()
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["id"]
        constraints = [
            choice_constraint("kind", CommentKind, "comment_kind_is_known"),
            models.CheckConstraint(condition=~models.Q(text=""), name="comment_says_something"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text[:40]}"


def _refuse_sign_off() -> NoReturn:
    refusal = SignOffOutsideService("signatures are given through the service alone; it judges who may sign")
    # Nobody is named: whoever writes past the service did not say who she is.
    record_refusal("sign_off.refused", SIGNING_SERVICE, system_job("direct-write"), refusal)
    raise refusal
