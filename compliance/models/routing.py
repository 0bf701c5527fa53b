"""What gateways serve, as they were handed in."""

import uuid

from django.db import models

from evaluations.kernel.clock import now
from evaluations.kernel.fields import DigestField, KeyField, key_constraint
from evaluations.kernel.models import Fact


class RoutingInventory(Fact):
    """Fact. What one gateway serves from an instant on: names, deployments and fallbacks, without its keys and passwords.

    `name` is the gateway; its newest inventory is the one in effect, and `previous` the one before. `content` holds the canonical
    bytes under `digest`: two files that differ only in what was left out are one document.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = KeyField()
    digest = DigestField()
    content = models.BinaryField()
    previous = models.OneToOneField("self", on_delete=models.PROTECT, null=True, blank=True, related_name="next")
    imported_by = models.CharField(max_length=200)
    imported_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "routing inventories"
        constraints = [key_constraint("name", "routing_inventory_name_is_ascii")]
        indexes = [models.Index(fields=["name", "-id"], name="routing_inventory_by_name")]

    def __str__(self) -> str:
        return f"routing of {self.name}, {self.digest[:19]}"
