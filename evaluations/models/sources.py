"""Sources, how far we trust them, and the bytes they gave us."""

from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, KeyField, choice_constraint, key_constraint
from evaluations.kernel.models import Fact, State
from evaluations.vocabulary import TrustTier


class Source(State):
    """State. Who vouches for evidence."""

    key = KeyField(unique=True)
    title = models.CharField(max_length=200)
    publisher = models.CharField(max_length=200, blank=True)
    url = models.CharField(max_length=500, blank=True)
    notes = models.TextField(blank=True)
    registered_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["key"]
        constraints = [key_constraint("key", "source_key_is_ascii")]

    def __str__(self) -> str:
        return self.key


class TrustAssignment(Fact):
    """Fact. How far a source is trusted from here on. The newest one known counts; a source without one qualifies for nothing.

    `sign_off_request` names the request whose signatures carry it, null for the first word that comes with the product.
    """

    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="trust_assignments")
    tier = models.CharField(max_length=12, choices=TrustTier.choices)
    reason = models.CharField(max_length=500)
    assigned_by = models.CharField(max_length=200)
    sign_off_request = models.UUIDField(null=True, blank=True, unique=True)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        constraints = [choice_constraint("tier", TrustTier, "trust_tier_is_known")]
        indexes = [models.Index(fields=["source", "-id"], name="trust_by_source")]

    def __str__(self) -> str:
        return f"{self.source.key}: {self.tier}"


class Document(Fact):
    """Fact. The captured bytes that evidence was read from, by content digest; the bytes lie in its parts."""

    digest = DigestField(unique=True)
    size = models.BigIntegerField()
    media_type = models.CharField(max_length=120)
    file_name = models.CharField(max_length=200)
    title = models.CharField(max_length=300, blank=True)
    url = models.CharField(max_length=1000, blank=True)
    licence = models.CharField(max_length=200, blank=True)
    received_by = models.CharField(max_length=200)
    received_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.file_name} ({self.digest[7:19]})"


class DocumentPart(Fact):
    """Fact. Up to one mebibyte of a document, so that a large one never stands in memory whole."""

    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="parts")
    ordinal = models.PositiveIntegerField()
    content = models.BinaryField()

    class Meta:
        ordering = ["document_id", "ordinal"]
        constraints = [models.UniqueConstraint(fields=["document", "ordinal"], name="document_part_is_unique")]
