"""Ids whose neighbours in time are neighbours in their index, however long a table grows."""

import os
import uuid
from datetime import datetime

_FIXED = 0xF << 76 | 0b11 << 62
_VERSION_AND_VARIANT = 7 << 76 | 0b10 << 62


def time_ordered_uuid(at: datetime) -> uuid.UUID:
    """Return a UUID of version 7 (RFC 9562)."""
    milliseconds = int(at.timestamp() * 1000)
    bits = int.from_bytes(os.urandom(10), "big")
    return uuid.UUID(int=(milliseconds & 0xFFFF_FFFF_FFFF) << 80 | bits & ~_FIXED | _VERSION_AND_VARIANT)
