"""What enforcement points decide by while the gate is down."""

from django.db import models

from evaluations.kernel.fields import DigestField
from evaluations.kernel.models import State
from policies.models import System


class OfflineBundle(State):
    """State. The newest offline bundle of a system: the payload that is signed, and until when it need not be made anew.

    `signature` is the log key's over the payload from when it was made: what lies here counts for nothing without it. `seen_size` is
    how many entries the log had when the list was last judged: a later one that tells of more than an answer makes it be judged again.
    Older bundles are not kept; the entry of each says under which digest it went out.
    """

    system = models.OneToOneField(System, on_delete=models.PROTECT, related_name="offline_bundle")
    serial = models.BigIntegerField()
    payload = models.BinaryField()
    signature = models.BinaryField()
    digest = DigestField()
    lines = models.PositiveIntegerField()
    lines_digest = models.CharField(max_length=64)
    seen_size = models.BigIntegerField()
    issued_at = models.DateTimeField()
    refresh_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["system"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(issued_at__lt=models.F("expires_at"), refresh_at__lt=models.F("expires_at")),
                name="offline_bundle_ends_after_it_began",
            ),
        ]

    def __str__(self) -> str:
        return f"offline bundle {self.serial} of {self.system}"
