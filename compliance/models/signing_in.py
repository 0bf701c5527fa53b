"""Proof that somebody was herself a moment ago, and holds on her signing."""

from hashlib import sha256

from django.db import models

from compliance.models.people import Person, User
from compliance.vocabulary import HoldCause, ReauthenticationMethod
from evaluations.kernel.canonical import DIGEST_PREFIX
from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, choice_constraint
from evaluations.kernel.models import Fact, State


def session_digest(session_key: str) -> str:
    """Return the digest under which facts cite a session: who reads the facts learns no key that opens it."""
    return DIGEST_PREFIX + sha256(session_key.encode()).hexdigest()


class Reauthentication(Fact):
    """Fact. A signed-in person proved once more that it is she, by a method, in one session.

    It counts for that session alone: signing out, or changing the password, gives the session another key.
    """

    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="reauthentications")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="reauthentications")
    session_digest = DigestField()
    method = models.CharField(max_length=20, choices=ReauthenticationMethod.choices)
    at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["user", "session_digest", "-id"], name="reauthentication_by_session")]
        constraints = [choice_constraint("method", ReauthenticationMethod, "reauthentication_method_is_known")]


class SigningHold(State):
    """State. A person's signatures do not count while a hold stands: somebody else reset her password or her factors.

    Lifted by another administrator than the one who placed it, and never by herself; the database holds both.
    """

    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="signing_holds")
    cause = models.CharField(max_length=20, choices=HoldCause.choices)
    placed_by = models.CharField(max_length=200)
    placed_at = models.DateTimeField(default=now)
    lifted_by = models.CharField(max_length=200, blank=True, default="")
    lifted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            choice_constraint("cause", HoldCause, "signing_hold_cause_is_known"),
            models.CheckConstraint(condition=~models.Q(placed_by=""), name="signing_hold_has_a_placer"),
            models.CheckConstraint(
                condition=models.Q(lifted_by="", lifted_at=None) | (~models.Q(lifted_by="") & models.Q(lifted_at__isnull=False)),
                name="signing_hold_is_lifted_by_somebody",
            ),
            models.CheckConstraint(
                condition=~models.Q(lifted_by=models.F("placed_by")), name="signing_hold_is_lifted_by_another"
            ),
        ]
        indexes = [models.Index(fields=["person"], condition=models.Q(lifted_at=None), name="signing_hold_that_stands")]
