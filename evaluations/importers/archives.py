"""Several FILEs, or a zip of a results folder, as one set of small files.

A zip is never unpacked to disk. Refused: absolute names and `..`, links, encrypted members, a name twice, more than
`MAX_MEMBERS` members, more than 100 times expansion, and more than `MAX_EXPANDED_BYTES` in all; sizes are counted while
reading, since a zip's own statement of them may lie.

A large archive of which a few members are wanted is an `Archive`: its members are never read unless they are asked for.
"""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, BinaryIO

import zstandard

from evaluations.importers.base import MAX_BYTES, refuse
from evaluations.importers.decoding import read_bounded
from evaluations.kernel.errors import InputRefused

MAX_MEMBERS = 20_000
MAX_EXPANSION = 100
MAX_EXPANDED_BYTES = 4 * 1024 * 1024 * 1024
ZIP_MAGIC = b"PK\x03\x04"
GZIP_MAGIC = b"\x1f\x8b\x08"

# What `zipfile` raises on damaged bytes, as found by feeding it such; NotImplementedError is its word for a compression or a zip
# version that it does not read.
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ZSTANDARD = 93
_MAX_ZSTANDARD_WINDOW = 64 * 1024 * 1024
"""Memory that one member may ask of the reader; compressors use at most 8 MiB unless told otherwise."""

_LINK_MODE = 0o120000
_MODE_MASK = 0o170000
_ALLOWED_ANYWAY = 8 * 1024 * 1024  # small texts of repeated words may compress a thousandfold without harm


def looks_like_zip(head: bytes) -> bool:
    """Whether bytes begin as a zip with at least one member."""
    return head.startswith(ZIP_MAGIC)


def largest(head: bytes, limit: int) -> int:
    """Return how many bytes a file that begins so may have where `limit` are taken: all of them for a zip, else at most `MAX_BYTES`."""
    return limit if looks_like_zip(head) else min(limit, MAX_BYTES)


def gzip_head(head: bytes, *, limit: int) -> bytes:
    """Return the first bytes inside a gzip whose first bytes are given, or `head` itself where it is none."""
    if not head.startswith(GZIP_MAGIC):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, limit) or head
    except zlib.error:
        return head


def opened(stream: BinaryIO, *, name: str) -> BinaryIO:
    """Return a stream of what a gzip holds, or the stream itself where it is none. Reading it may raise `InputRefused`."""
    head = stream.read(len(GZIP_MAGIC))
    stream.seek(0)
    return _Gunzipped(stream, name) if head == GZIP_MAGIC else stream  # type: ignore[return-value]


class _Gunzipped(io.RawIOBase):
    """The bytes inside a gzip, counted while reading: the size that it states of itself is not believed."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        stream.seek(0, io.SEEK_END)
        self._allowed = min(MAX_EXPANDED_BYTES, max(stream.tell() * MAX_EXPANSION, _ALLOWED_ANYWAY))
        stream.seek(0)
        self._inner = gzip.GzipFile(fileobj=stream)
        self._name = name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._inner.read(size if 0 <= size <= self._allowed else self._allowed + 1)
        except BROKEN as error:
            raise refuse(
                f"the gzip cannot be read: {str(error)[:100] or type(error).__name__}",
                file=self._name,
                code="broken_archive",
                hint="compress the file again, or give it as it is",
            ) from None
        if self._inner.tell() > self._allowed:
            raise refuse(
                f"the gzip expands to more than {self._allowed} bytes",
                file=self._name,
                code="expansion",
                hint="give the file itself",
            )
        return data


def small_files(files: Mapping[str, BinaryIO], *, limit: int) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) of every file, members of zips included as "archive.zip/member", each at most `limit` bytes.

    Raises `InputRefused` for an unsafe or broken zip, and for files beyond the limits.
    """
    for name, stream in files.items():
        stream.seek(0)
        head = stream.read(len(ZIP_MAGIC))
        stream.seek(0)
        if looks_like_zip(head):
            yield from _members(name, stream, limit=limit)
        else:
            yield name, read_bounded(stream, name=name, limit=limit)


def _members(name: str, stream: BinaryIO, *, limit: int) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(stream) as archive:
            members = checked_members(name, archive)
            compressed = sum(member.compress_size for member in members)
            allowed = min(MAX_EXPANDED_BYTES, max(compressed * MAX_EXPANSION, _ALLOWED_ANYWAY))
            expanded = 0
            for member in members:
                place = f"{name}/{member.filename}"
                with archive.open(member) as opened:
                    data = read_bounded(opened, name=place, limit=limit)  # type: ignore[arg-type]
                expanded += len(data)
                if expanded > allowed:
                    raise refuse(
                        f"the archive expands to more than {allowed} bytes",
                        file=name,
                        code="expansion",
                        hint="give the files themselves",
                    )
                yield place, data
    except BROKEN as error:
        raise refuse(
            f"the archive cannot be read: {str(error)[:100] or type(error).__name__}",
            file=name,
            code="broken_archive",
            hint="make a new zip with the usual deflate compression and no password",
        ) from None


def checked_members(name: str, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the members that are files, in the order of their names, after refusing unsafe ones.

    What macOS adds to the zips it makes (`__MACOSX/…`, `.DS_Store`) is passed over.
    """
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and not member.filename.startswith("__MACOSX/") and not member.filename.endswith(".DS_Store")
    ]
    if len(members) > MAX_MEMBERS:
        raise refuse(
            f"the archive has {len(members)} members", file=name, code="too_large", hint=f"give at most {MAX_MEMBERS} files"
        )
    seen: set[str] = set()
    for member in members:
        path = PurePosixPath(member.filename)
        what = ""
        if path.is_absolute() or ".." in path.parts or "\\" in member.orig_filename or ":" in path.parts[0]:
            what = "leads out of the archive"
        elif (member.external_attr >> 16) & _MODE_MASK == _LINK_MODE:
            what = "is a link"
        elif member.flag_bits & 1:
            what = "is encrypted"
        elif member.compress_type not in _METHODS:
            what = "is compressed by a rare method"
        elif member.filename in seen:
            what = "stands twice in the archive"
        if what:
            shown = member.filename[:100].encode("unicode_escape").decode()
            raise refuse(f"the member `{shown}` {what}", file=name, code="unsafe_archive", hint="make a plain zip of the files")
        seen.add(member.filename)
    return sorted(members, key=lambda member: member.filename)


class Archive:
    """A zip of which only some members are wanted: names at once, bytes when asked for, Zstandard (method 93) included.

    Python's own zipfile reads that method from 3.14 on. `limit` of a member counts its expanded bytes while they are read.
    """

    def __init__(self, stream: BinaryIO, *, name: str, max_members: int = MAX_MEMBERS) -> None:
        self.name = name
        self._stream = stream
        try:
            self._zip = zipfile.ZipFile(stream)
        except BROKEN as error:
            raise self.broken(error) from None
        self.members: dict[str, zipfile.ZipInfo] = {}
        every = self._zip.infolist()
        if len(every) > max_members:
            raise refuse(f"the archive has {len(every)} members", file=name, code="too_large", hint=f"at most {max_members}")
        for member in every:
            if member.filename in self.members:
                raise self._unsafe(member, "stands twice in the archive")
            self.members[member.filename] = member
        compressed = sum(member.compress_size for member in every)
        self.allowed = min(MAX_EXPANDED_BYTES, max(compressed * MAX_EXPANSION, _ALLOWED_ANYWAY))

    def place(self, member: str) -> str:
        """Return what to call a member in a message."""
        return f"{self.name}/{member}"

    def open(self, member: str) -> BinaryIO:
        """Return a stream of a member's bytes. Reading it raises `InputRefused` where the archive is damaged or expands too far."""
        info = self.members[member]
        if info.flag_bits & 1:
            raise self._unsafe(info, "is encrypted")
        if info.compress_type in _METHODS:
            try:
                inner: BinaryIO = self._zip.open(info)  # type: ignore[assignment]
            except BROKEN as error:
                raise self.broken(error) from None
        elif info.compress_type == ZSTANDARD:
            inner = self._zstandard(info)
        else:
            raise self._unsafe(info, "is compressed by a rare method")
        return io.BufferedReader(_Member(self, inner, info), buffer_size=128 * 1024)

    def read(self, member: str, *, limit: int) -> bytes:
        """Return a small member's bytes."""
        with self.open(member) as opened:
            return read_bounded(opened, name=self.place(member), limit=limit)

    def _zstandard(self, info: zipfile.ZipInfo) -> BinaryIO:
        try:
            self._stream.seek(info.header_offset)
            head = self._stream.read(30)
            if len(head) < 30 or head[:4] != ZIP_MAGIC:
                raise zipfile.BadZipFile("the local header is damaged")
            name_length, extra_length = struct.unpack("<HH", head[26:30])
            start = info.header_offset + 30 + name_length + extra_length
        except BROKEN as error:
            raise self.broken(error) from None
        window = _Window(self._stream, start, info.compress_size)
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTANDARD_WINDOW)
        return decompressor.stream_reader(window, read_across_frames=True)  # type: ignore[arg-type]

    def broken(self, error: Exception) -> InputRefused:
        """Return the refusal of a damaged archive."""
        told = str(error)[:100] or type(error).__name__
        return refuse(
            f"the archive cannot be read: {told}",
            file=self.name,
            code="broken_archive",
            hint="fetch it again: it may be cut short",
        )

    def _unsafe(self, member: zipfile.ZipInfo, what: str) -> InputRefused:
        shown = member.filename[:100].encode("unicode_escape").decode()
        return refuse(f"the member `{shown}` {what}", file=self.name, code="unsafe_archive", hint="give it as its tool wrote it")


class _Window(io.RawIOBase):
    """The compressed bytes of one member, by its place in the file: members may be read in turns."""

    def __init__(self, stream: BinaryIO, start: int, size: int) -> None:
        self._stream, self._at, self._end = stream, start, start + size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        left = self._end - self._at
        size = left if size < 0 else min(size, left)
        self._stream.seek(self._at)
        data = self._stream.read(size)
        self._at += len(data)
        return data


class _Member(io.RawIOBase):
    """The expanded bytes of one member, counted and checked: the size and sum that the archive states must come out."""

    def __init__(self, archive: Archive, inner: BinaryIO, info: zipfile.ZipInfo) -> None:
        self._archive, self._inner, self._info = archive, inner, info
        self._size = self._sum = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._inner.read(len(buffer))
        except (*BROKEN, zstandard.ZstdError) as error:
            raise self._archive.broken(error) from None
        self._size += len(data)
        if self._size > self._archive.allowed:
            raise refuse(
                f"the member `{self._info.filename[:100]}` expands to more than {self._archive.allowed} bytes",
                file=self._archive.name,
                code="expansion",
                hint="fetch it again: no tool packs so tightly",
            )
        if self._info.compress_type == ZSTANDARD:  # zipfile checks its own methods
            self._sum = zlib.crc32(data, self._sum)
            if not data and (self._size, self._sum) != (self._info.file_size, self._info.CRC):
                raise self._archive.broken(zipfile.BadZipFile(f"bad sum of `{self._info.filename[:60]}`"))
        buffer[: len(data)] = data
        return len(data)
