"""Reading the members of an export without trusting it: nothing is unpacked to disk, nothing grows beyond what was said. Pure."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Protocol

from compliance.ledger import bundle
from compliance.ledger.findings import Unreadable
from compliance.ledger.tiles import MAX_ENTRY_BYTES

READ = 1 << 20
MAX_GROWTH = 200
"""Times the zip's own size that its content may be: log lines shrink to a tenth, a bomb to a thousandth."""
SLACK = 64 * 2**20

_LOCAL = struct.Struct("<4s22xHH")
"""Of a member's own header only the mark and the lengths of name and extra field; all else is said in the directory."""


class PartBroken(ValueError):
    """A member cannot be read to its end. `line` is the number, from 0, of the line at fault where it is one line's."""

    def __init__(self, part: str, problem: str, *, line: int | None = None) -> None:
        super().__init__(f"{part} {problem}")
        self.part = part
        self.problem = problem
        self.line = line


class Parts(Protocol):
    """The members of an export."""

    def names(self) -> frozenset[str]:
        """Return which members there are."""
        ...

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield a member's bytes. Raises `PartBroken`."""
        ...


class ZipParts:
    """The members of a zip. Raises `Unreadable` for what is no export: strange names, doubled names, a bomb."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        try:
            members = zipfile.ZipFile(stream).infolist()
        # NotImplementedError is what `zipfile` raises for a directory that asks for a newer zip version than it reads.
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, struct.error) as error:
            raise Unreadable(f"this is no zip file, or its directory is damaged ({type(error).__name__})") from None
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in members:
            # Compared with the closed list as it is written: a path that leaves the directory is simply no member of ours.
            if member.orig_filename not in bundle.MEMBERS or member.filename != member.orig_filename:
                raise Unreadable(f"`{member.orig_filename[:80]!r}` is no member of an export")
            if member.filename in self._members:
                raise Unreadable(f"`{member.filename}` is there twice")
            self._members[member.filename] = member
        stream.seek(0, 2)
        self._size = stream.tell()
        whole = sum(member.file_size for member in members)
        if whole > SLACK + MAX_GROWTH * self._size:
            raise Unreadable(f"its content would grow to {whole} bytes: this is a decompression bomb, and is not opened")

    def names(self) -> frozenset[str]:
        return frozenset(self._members)

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield a member's bytes, never more than its directory says. Read here and not by `zipfile`, which keeps the last chunk
        to itself when the checksum is wrong: all that can be read shall be judged."""
        member = self._members[name]
        crc = size = 0
        for data in self._unpacked(member):
            size += len(data)
            if size > member.file_size:
                raise PartBroken(name, "is longer than the zip's directory says")
            crc = zlib.crc32(data, crc)
            yield data
        if size != member.file_size:
            raise PartBroken(name, "is shorter than the zip's directory says")
        if crc != member.CRC:
            raise PartBroken(name, "does not have the checksum that the zip's directory says")

    def _unpacked(self, member: zipfile.ZipInfo) -> Iterator[bytes]:
        packed = self._packed(member)
        if member.compress_type == zipfile.ZIP_STORED:
            yield from packed
            return
        if member.compress_type != zipfile.ZIP_DEFLATED:
            raise PartBroken(member.filename, "is packed in a way that exports do not use")
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            for data in packed:
                yield from _inflate(unpacker, data)
            if not unpacker.eof:
                raise PartBroken(member.filename, "breaks off")
        except zlib.error:
            raise PartBroken(member.filename, "cannot be unpacked any further") from None

    def _packed(self, member: zipfile.ZipInfo) -> Iterator[bytes]:
        place = member.header_offset
        if not 0 <= place < self._size:
            raise PartBroken(member.filename, "does not begin where the zip's directory says")
        self._stream.seek(place)
        head = self._stream.read(_LOCAL.size)
        if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
            raise PartBroken(member.filename, "does not begin where the zip's directory says")
        _, name_length, extra_length = _LOCAL.unpack(head)
        if self._stream.read(name_length) != member.filename.encode():
            raise PartBroken(member.filename, "bears another name than in the zip's directory")
        place += _LOCAL.size + name_length + extra_length
        left = member.compress_size
        while left > 0:
            # Two members may be read in turn: each remembers its own place.
            self._stream.seek(place)
            data = self._stream.read(min(left, READ))
            if not data:
                raise PartBroken(member.filename, "breaks off")
            place += len(data)
            left -= len(data)
            yield data


def _inflate(unpacker: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    while data and not unpacker.eof:
        unpacked = unpacker.decompress(data, READ)
        data = unpacker.unconsumed_tail
        if unpacked:
            yield unpacked


class MemoryParts:
    """Members held in memory."""

    def __init__(self, members: dict[str, bytes]) -> None:
        self.members = members

    def names(self) -> frozenset[str]:
        return frozenset(self.members)

    def chunks(self, name: str) -> Iterator[bytes]:
        if self.members[name]:
            yield self.members[name]


def read_small(parts: Parts, name: str) -> bytes:
    """Return a short member. Raises `PartBroken`, also when it is longer than such a member ever is."""
    data = bytearray()
    for chunk in parts.chunks(name):
        data += chunk
        if len(data) > bundle.SMALL_LIMIT[name]:
            raise PartBroken(name, f"is longer than {bundle.SMALL_LIMIT[name]} bytes")
    return bytes(data)


def line_batches(parts: Parts, name: str, *, max_line: int = MAX_ENTRY_BYTES) -> Iterator[list[bytes]]:
    """Yield a member's lines without their newlines, many at a time. Raises `PartBroken`.

    A last line that has no newline is a fault of its own: it is yielded, and then told. So is a line that is too long, cut to
    `max_line` and with the lines that were read along with it.
    """
    rest = b""
    read = 0
    for chunk in parts.chunks(name):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        if len(rest) > max_line:
            lines.append(rest)
        if lines and max(map(len, lines)) > max_line:
            yield [line[:max_line] for line in lines]
            first = next(place for place, line in enumerate(lines) if len(line) > max_line)
            raise PartBroken(name, f"has a line longer than {max_line} bytes", line=read + first)
        if lines:
            yield lines
            read += len(lines)
    if rest:
        yield [rest]
        raise PartBroken(name, "does not end with a newline", line=read)


def record_batches(parts: Parts, name: str, size: int) -> Iterator[list[bytes]]:
    """Yield a member's records of `size` bytes, many at a time. Raises `PartBroken`."""
    rest = b""
    for chunk in parts.chunks(name):
        data = rest + chunk
        whole = len(data) - len(data) % size
        rest = data[whole:]
        yield [data[place : place + size] for place in range(0, whole, size)]
    if rest:
        raise PartBroken(name, f"ends in the middle of a record of {size} bytes")
