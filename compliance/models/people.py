"""Persons, their accounts, teams, roles, and the tokens of machines."""

import uuid
from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.contrib.postgres.fields import ArrayField
from django.db import models

from compliance.vocabulary import Role
from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, KeyField, choice_constraint, key_constraint
from evaluations.kernel.models import State


class Team(State):
    """State. Owns systems; people and tokens belong to one."""

    key = KeyField(unique=True)
    title = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["key"]
        constraints = [key_constraint("key", "team_key_is_ascii")]

    def __str__(self) -> str:
        return self.key


class Person(State):
    """State. A human, once, however many accounts she has. Her name lies in `PersonName` alone, so that it can be erased."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, null=True, blank=True, related_name="people")
    created_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["created_at", "id"]
        verbose_name_plural = "people"

    def __str__(self) -> str:
        named = PersonName.objects.filter(person=self).order_by("-id").first()
        return named.name if named else str(self.id)


class PersonName(State):
    """State. A person's printed name and the salt of the commitment that entries carry; erasing the row leaves every proof standing."""

    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="names")
    name = models.CharField(max_length=200)
    salt = models.BinaryField()
    commitment = DigestField()
    created_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.name


class UserManager(BaseUserManager["User"]):
    """Finds accounts. Accounts are made by `compliance.services.people`, never here: the database refuses others."""

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email__iexact=username)


class User(AbstractBaseUser, PermissionsMixin):
    """State. One account of a person, signed in by e-mail address."""

    email = models.EmailField(unique=True)
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="accounts")
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    must_change_password = models.BooleanField(default=False)
    date_joined = models.DateTimeField(default=now)

    objects = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        ordering = ["email"]

    def __str__(self) -> str:
        return self.email

    @property
    def username(self) -> str:
        """The name that the console's frame shows."""
        return self.email


class RoleMembership(State):
    """State. A person holds a role from a day on, until a day or until it is taken back; never deleted."""

    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="roles")
    role = models.CharField(max_length=20, choices=Role.choices)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, null=True, blank=True, related_name="role_memberships")
    given_by = models.CharField(max_length=200)
    starts_at = models.DateTimeField(default=now)
    ends_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [choice_constraint("role", Role, "role_is_known")]

    def __str__(self) -> str:
        return f"{self.person_id}: {self.role}"


class ServiceToken(State):
    """State. A machine's credential. Only its hash is kept; it belongs to a person and a team, is scoped, and always expires."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    prefix = models.CharField(max_length=12)
    token_digest = DigestField(unique=True)
    scopes = ArrayField(models.CharField(max_length=160))
    person = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="tokens")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, null=True, blank=True, related_name="tokens")
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(expires_at__gt=models.F("created_at")), name="token_expires_after_creation"
            ),
            models.CheckConstraint(condition=~models.Q(scopes=[]), name="token_has_a_scope"),
        ]

    def __str__(self) -> str:
        return self.name

    def is_live(self, at: datetime) -> bool:
        """True while the token may be used: not revoked and not past its end, read at the moment of use."""
        return self.revoked_at is None and at < self.expires_at

    def holds(self, scope: str, *, system: str = "") -> bool:
        """True when a scope is held, for everything or for the given system."""
        return scope in self.scopes or (bool(system) and f"{scope}:{system}" in self.scopes)


def normalise_email(address: str) -> str:
    """Return the address in the one form in which accounts are kept."""
    result: Any = UserManager.normalize_email(address)
    return str(result).lower()
