"""Ids whose neighbours in time are neighbours in their index, however long a table grows."""

import os
import uuid
from datetime import datetime

_FIXED = 0xF << 76 | 0b11 << 62
_VERSION_AND_VARIANT = 7 << 76 | 0b10 << 62


_RANDOM = 10


def time_ordered_uuid(at: datetime) -> uuid.UUID:
    """Return a UUID of version 7 (RFC 9562)."""
    return time_ordered_uuids(at, 1)[0]


def time_ordered_uuids(at: datetime, count: int) -> list[uuid.UUID]:
    """Return so many UUIDs of version 7: the system is asked for chance once, which costs more than all else."""
    prefix = (int(at.timestamp() * 1000) & 0xFFFF_FFFF_FFFF) << 80 | _VERSION_AND_VARIANT
    chance = os.urandom(_RANDOM * count)
    parts = (chance[start : start + _RANDOM] for start in range(0, len(chance), _RANDOM))
    return [uuid.UUID(int=prefix | int.from_bytes(part, "big") & ~_FIXED) for part in parts]
