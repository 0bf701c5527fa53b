"""The ledger's entries and its queue. Sealing gives each entry its index a moment later."""

import uuid

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField
from evaluations.kernel.models import Fact, State


class LedgerEntry(Fact):
    """Fact. One entry: canonical bytes as stored, and their digest. The other columns repeat parts of the bytes for searching."""

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    content = models.BinaryField()
    digest = DigestField()
    action = models.CharField(max_length=80)
    actor = models.CharField(max_length=200)
    target_kind = models.CharField(max_length=60)
    target_id = models.CharField(max_length=200)
    recorded_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "ledger entries"
        constraints = [
            models.CheckConstraint(condition=~models.Q(actor=""), name="ledger_entry_has_an_actor"),
            models.CheckConstraint(condition=models.Q(action__regex=r"^[a-z_]+\.[a-z_]+$"), name="ledger_entry_action_is_named"),
        ]
        indexes = [
            models.Index(fields=["target_kind", "target_id", "-id"], name="ledger_entry_by_target"),
            models.Index(fields=["actor", "-id"], name="ledger_entry_by_actor"),
            models.Index(fields=["action", "-id"], name="ledger_entry_by_action"),
            # Entries arrive in the order of time: a summary per range of pages finds a period, and costs an append nothing.
            BrinIndex(fields=["recorded_at"], name="ledger_entry_by_time", pages_per_range=32, autosummarize=True),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target_kind} {self.target_id}"


class LedgerPending(models.Model):
    """State. The queue row that appears with its entry in one commit, so that a late commit cannot be skipped by the sealer.

    It takes inserts without a service's mark; only the sealer deletes.
    """

    # No foreign key: the row comes in one statement with its entry, which nobody can delete; the check would slow every append.
    entry = models.OneToOneField(
        LedgerEntry, on_delete=models.PROTECT, primary_key=True, related_name="pending", db_constraint=False
    )

    class Meta:
        verbose_name_plural = "ledger pending"


class LedgerLeaf(Fact):
    """Fact. An entry's place in the log: `index` from 0 without a gap, and the RFC 6962 hash under which it stands there.

    A trigger refuses rows that do not continue at the next index.
    """

    index = models.BigIntegerField(primary_key=True)
    entry = models.OneToOneField(LedgerEntry, on_delete=models.PROTECT, related_name="leaf")
    leaf_hash = models.BinaryField()

    class Meta:
        ordering = ["index"]
        verbose_name_plural = "ledger leaves"
        constraints = [models.CheckConstraint(condition=models.Q(index__gte=0), name="ledger_leaf_index_is_not_negative")]

    def __str__(self) -> str:
        return str(self.index)


class LedgerTile(Fact):
    """Fact. A full tile of the tree: 256 hashes of level 8 * `level`, and the root over them, which is a hash of the tile above.

    Partial tiles are computed from leaves and from the roots of the tiles below.
    """

    level = models.PositiveSmallIntegerField()
    number = models.BigIntegerField()
    hashes = models.BinaryField()
    root = models.BinaryField()

    class Meta:
        ordering = ["level", "number"]
        constraints = [models.UniqueConstraint(fields=["level", "number"], name="ledger_tile_is_unique")]

    def __str__(self) -> str:
        return f"{self.level}/{self.number}"


class Checkpoint(Fact):
    """Fact. A signed (size, root): `note` is the C2SP checkpoint as signed, and carries no time. `signed_at` is our own word."""

    size = models.BigIntegerField(unique=True)
    root = models.BinaryField()
    note = models.TextField()
    signed_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-size"]
        constraints = [models.CheckConstraint(condition=models.Q(size__gt=0), name="checkpoint_is_not_of_nothing")]

    def __str__(self) -> str:
        return f"checkpoint of {self.size}"


class SigningKey(State):
    """State. The public part of a key that signs checkpoints, live from its announcement on until the next key's.

    `announced_index` is the entry that announced it; the checkpoint right behind that entry is signed by this key and by the one
    before it. The private part lies in a file or in the environment, never here.
    """

    name = models.CharField(max_length=200)
    key_id = models.CharField(max_length=8)
    algorithm = models.CharField(max_length=20, default="ed25519")
    verifier_key = models.CharField(max_length=300, unique=True)
    announced_index = models.BigIntegerField()
    since_at = models.DateTimeField(default=now)
    until_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-announced_index"]
        constraints = [
            models.UniqueConstraint(fields=["algorithm"], condition=models.Q(until_at=None), name="one_signing_key_is_live"),
        ]

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id}"
