"""Several FILEs, or a zip of a results folder, as one set of small files.

A zip is never unpacked to disk. Refused: absolute names and `..`, links, encrypted members, a name twice, more than
`MAX_MEMBERS` members, more than 100 times expansion, and more than `MAX_EXPANDED_BYTES` in all; sizes are counted while
reading, since a zip's own statement of them may lie.
"""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import BinaryIO

from evaluations.importers.base import refuse
from evaluations.importers.decoding import read_bounded

MAX_MEMBERS = 20_000
MAX_EXPANSION = 100
MAX_EXPANDED_BYTES = 4 * 1024 * 1024 * 1024
ZIP_MAGIC = b"PK\x03\x04"
GZIP_MAGIC = b"\x1f\x8b\x08"

# What `zipfile` raises on damaged bytes, as found by feeding it such; NotImplementedError is its word for a compression or a zip
# version that it does not read.
_BROKEN = (
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

_LINK_MODE = 0o120000
_MODE_MASK = 0o170000
_ALLOWED_ANYWAY = 8 * 1024 * 1024  # small texts of repeated words may compress a thousandfold without harm


def looks_like_zip(head: bytes) -> bool:
    """Whether bytes begin as a zip with at least one member."""
    return head.startswith(ZIP_MAGIC)


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
        except _BROKEN as error:
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
            members = _checked(name, archive)
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
    except _BROKEN as error:
        raise refuse(
            f"the archive cannot be read: {str(error)[:100] or type(error).__name__}",
            file=name,
            code="broken_archive",
            hint="make a new zip with the usual deflate compression and no password",
        ) from None


def _checked(name: str, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
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
