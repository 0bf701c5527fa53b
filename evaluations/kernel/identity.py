"""Ids whose neighbours in time are neighbours in their index, however long a table grows."""

import os
import uuid
from datetime import datetime


def time_ordered_uuid(at: datetime) -> uuid.UUID:
    """Return a UUID of version 7 (RFC 9562)."""
    milliseconds = int(at.timestamp() * 1000)
    bits = int.from_bytes(os.urandom(10), "big")
    value = (
        (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | 7 << 76 | (bits >> 68 & 0xFFF) << 64 | 0b10 << 62 | bits & 0x3FFF_FFFF_FFFF_FFFF
    )
    return uuid.UUID(int=value)
