"""From bytes to lines of text: UTF-8 without a byte order mark, or a refusal that says where.

One encoding, because a guess would change names: the bytes of `é` in Latin-1 are other letters in cp1250. A UTF-8 byte
order mark is refused too: it would glue itself to the first column's name, and two files that look the same would have
two digests.
"""

import io
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from evaluations.importers.base import MAX_BYTES, MAX_LINE_BYTES, refuse, too_large
from evaluations.kernel.errors import InputRefused

CHUNK_BYTES = 256 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_HINT = "save it as UTF-8 without a byte order mark"


class Rejoined:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self.head = head
        self.stream = stream

    def read(self, size: int = -1) -> bytes:
        if self.head:
            cut = len(self.head) if size < 0 else size
            part, self.head = self.head[:cut], self.head[cut:]
            return part + self.stream.read() if size < 0 else part
        return self.stream.read(size)


def check_encoding(head: bytes, name: str) -> None:
    """Refuse what the first bytes give away: an empty file, byte order marks, UTF-16 and UTF-32."""
    if not head:
        raise refuse("the file is empty", file=name, code="empty", hint="give a file with at least one observation")
    if head.startswith(BYTE_ORDER_MARK):
        raise refuse("the file begins with a UTF-8 byte order mark", file=name, line=1, code="byte_order_mark", hint=_HINT)
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        raise refuse(
            "the file begins with the byte order mark of UTF-16 or UTF-32", file=name, line=1, code="encoding", hint=_HINT
        )
    zero = head.find(b"\x00")
    if zero >= 0:
        line = head.count(b"\n", 0, zero) + 1
        raise refuse(
            f"zero byte at offset {zero}: the file is no text, or UTF-16", file=name, line=line, code="encoding", hint=_HINT
        )


def text_lines(stream: BinaryIO, *, name: str, max_line: int = MAX_LINE_BYTES) -> Iterator[str]:
    """Return the lines of a UTF-8 stream with their line ends, reading it in chunks.

    Raises `InputRefused` while iterating: at a byte that is not UTF-8 (naming offset and line), at a zero byte, at a line
    longer than `max_line` bytes, and beyond `MAX_BYTES`.
    """
    return chain.from_iterable(_chunks_of_lines(stream, name, max_line))


def _chunks_of_lines(stream: BinaryIO, name: str, max_line: int) -> Iterator[io.StringIO]:
    rest = b""
    offset = 0  # of the first byte of `rest`
    lines = 0
    first = True
    while True:
        chunk = stream.read(CHUNK_BYTES)
        if first:
            check_encoding(chunk, name)
            first = False
        block = rest + chunk
        if chunk:
            cut = block.rfind(b"\n") + 1
            block, rest = block[:cut], block[cut:]
            if len(rest) > max_line:
                raise _long_line(name, lines + block.count(b"\n") + 1, max_line)
        if block:
            yield io.StringIO(_decode(block, name=name, offset=offset, lines=lines), newline="")
            offset += len(block)
            lines += block.count(b"\n")
            if offset + len(rest) > MAX_BYTES:
                raise too_large(name)
        if not chunk:
            return


def decode_text(data: bytes, *, name: str) -> str:
    """Return a whole small file as text, under the same rules as `text_lines`."""
    check_encoding(data, name)
    return _decode(data, name=name, offset=0, lines=0)


def _decode(block: bytes, *, name: str, offset: int, lines: int) -> str:
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        place = error.start
        raise refuse(
            f"byte 0x{block[place]:02x} at offset {offset + place} is not UTF-8",
            file=name,
            line=lines + block.count(b"\n", 0, place) + 1,
            code="encoding",
            hint=_HINT,
        ) from None
    zero = block.find(b"\x00")
    if zero >= 0:
        raise refuse(
            f"zero byte at offset {offset + zero}",
            file=name,
            line=lines + block.count(b"\n", 0, zero) + 1,
            code="encoding",
            hint="remove it",
        )
    return text


def read_bounded(stream: BinaryIO, *, name: str, limit: int, hint: str = "") -> bytes:
    """Return all bytes of a stream, or refuse when there are more than `limit`."""
    parts: list[bytes] = []
    size = 0
    while chunk := stream.read(min(1024 * 1024, limit - size + 1)):
        parts.append(chunk)
        size += len(chunk)
        if size > limit:
            raise refuse(f"the file is larger than {limit // (1024 * 1024)} MiB", file=name, code="too_large", hint=hint)
    return b"".join(parts)


def _long_line(name: str, line: int, max_line: int) -> InputRefused:
    return refuse(
        f"the line is longer than {max_line // 1024} KiB",
        file=name,
        line=line,
        code="line_too_long",
        hint="write one record a line",
    )
