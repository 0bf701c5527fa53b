"""A zip written a chunk at a time, that another process can go on with; and always the same bytes for the same content.

Each chunk is deflated on its own and ends on a byte, so that a member can be continued from `state()` alone. Python's own writer
cannot be interrupted, and a long export must be. Dates, attributes and order carry nothing of the moment.
"""

import struct
import zlib
from typing import Any, BinaryIO

STORED, DEFLATED = 0, 8
LEVEL = 3
_DATE = (1980 - 1980) << 9 | 1 << 5 | 1
_NEEDED = 45  # the version that knows zip64
_MADE_BY = 3 << 8 | _NEEDED  # a Unix, so that the mode below counts
_MODE = 0o100644 << 16
_UTF8 = 1 << 11
_FULL = 0xFFFFFFFF
_LOCAL = struct.Struct("<4sHHHHHLLLHH")
_LOCAL_SIZES = struct.Struct("<HHQQ")
_CENTRAL = struct.Struct("<4sHHHHHHLLLHHHHHLL")
_END = struct.Struct("<4sHHHHLLH")
_END64 = struct.Struct("<4sQHHLLQQQQ")
_LOCATOR64 = struct.Struct("<4sLQL")


class Archive:
    """Writes members one after the other to a seekable file. `state()` is JSON, and restores the writer at the end of a chunk."""

    def __init__(self, stream: BinaryIO, state: dict[str, Any] | None = None) -> None:
        self._stream = stream
        self._members: list[dict[str, Any]] = list(state["members"]) if state else []
        self._open: dict[str, Any] | None = dict(state["open"]) if state and state["open"] else None
        self._end: int = state["end"] if state else 0
        # What a dying process wrote behind the last known state is not part of the file.
        stream.truncate(self._end)
        stream.seek(self._end)

    def state(self) -> dict[str, Any]:
        """Return what is needed to go on; valid once the stream is flushed."""
        return {"members": self._members, "open": self._open, "end": self._end}

    def begin(self, name: str, *, compress: bool = True) -> None:
        """Open a member."""
        if self._open is not None:
            raise ValueError(f"`{self._open['name']}` is still open")
        self._open = {
            "name": name,
            "offset": self._end,
            "method": DEFLATED if compress else STORED,
            "crc": 0,
            "bytes": 0,
            "packed": 0,
        }
        self._write(self._local(self._open))

    def write(self, data: bytes) -> None:
        """Add a chunk to the open member. Chunks must be cut at the same places for the zip to be the same bytes."""
        member = self._current()
        member["crc"] = zlib.crc32(data, member["crc"])
        member["bytes"] += len(data)
        if member["method"] == DEFLATED:
            packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
            data = packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH)
        member["packed"] += len(data)
        self._write(data)

    def end(self) -> None:
        """Close the open member: its header now says its sizes."""
        member = self._current()
        if member["method"] == DEFLATED:
            last = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS).flush()
            member["packed"] += len(last)
            self._write(last)
        self._stream.seek(member["offset"])
        self._stream.write(self._local(member))
        self._stream.seek(self._end)
        self._members.append(member)
        self._open = None

    def add(self, name: str, data: bytes) -> None:
        """Write a whole member."""
        self.begin(name)
        self.write(data)
        self.end()

    def size_of(self, name: str) -> int:
        """Return how many bytes a closed member holds."""
        return int(next(member["bytes"] for member in self._members if member["name"] == name))

    def finish(self) -> None:
        """Write the directory: the file is whole."""
        start = self._end
        for member in self._members:
            self._write(_central(member))
        length = self._end - start
        count = len(self._members)
        if self._end > _FULL:
            tail = self._end
            self._write(_END64.pack(b"PK\x06\x06", _END64.size - 12, _MADE_BY, _NEEDED, 0, 0, count, count, length, start))
            self._write(_LOCATOR64.pack(b"PK\x06\x07", 0, tail, 1))
        self._write(_END.pack(b"PK\x05\x06", 0, 0, count, count, min(length, _FULL), min(start, _FULL), 0))
        self._stream.flush()

    def _current(self) -> dict[str, Any]:
        if self._open is None:
            raise ValueError("no member is open")
        return self._open

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self._end += len(data)

    @staticmethod
    def _local(member: dict[str, Any]) -> bytes:
        name: bytes = member["name"].encode()
        # Sizes go into the zip64 field from the start: nobody knows yet how long the member will be.
        extra = _LOCAL_SIZES.pack(1, 16, member["bytes"], member["packed"])
        head: bytes = _LOCAL.pack(
            b"PK\x03\x04", _NEEDED, _UTF8, member["method"], 0, _DATE, member["crc"], _FULL, _FULL, len(name), len(extra)
        )
        return head + name + extra


def _central(member: dict[str, Any]) -> bytes:
    name: bytes = member["name"].encode()
    values = [member["bytes"], member["packed"], member["offset"]]
    long = [value for value in values if value >= _FULL]
    extra = struct.pack(f"<HH{len(long)}Q", 1, 8 * len(long), *long) if long else b""
    size, packed, offset = (min(value, _FULL) for value in values)
    head: bytes = _CENTRAL.pack(
        b"PK\x01\x02",
        _MADE_BY,
        _NEEDED,
        _UTF8,
        member["method"],
        0,
        _DATE,
        member["crc"],
        packed,
        size,
        len(name),
        len(extra),
        0,
        0,
        0,
        _MODE,
        offset,
    )
    return head + name + extra
