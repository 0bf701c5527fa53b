"""Large JSON read piece by piece: one value in memory at a time, however long the list around it is.

    reader = Reader(stream, name="log.json", limit=…)
    for key in reader.keys():                 # of the object that comes next
        if key == "samples":
            for row in reader.items(): …      # of the list that comes next
        else:
            value = reader.value()

Whoever asks for a key must take its value, whole or piece by piece. The standard library's scanner reads each
value; fractions, and the words NaN and Infinity, come as `NumberText`, whole numbers as int. Duplicate keys are refused in the
objects that are walked; within a value read whole the last one stands, as for the tools that write such files.
"""

import codecs
import json
import re
from collections.abc import Iterator
from json.decoder import JSONDecodeError
from typing import Any, BinaryIO

from evaluations.importers.base import refuse
from evaluations.importers.fields import NumberText, shown
from evaluations.kernel.errors import InputRefused

CHUNK_BYTES = 256 * 1024

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(parse_float=NumberText, parse_constant=NumberText)


class Reader:
    """Reads one JSON text from a stream of UTF-8, with or without a byte order mark.

    `limit` is the most characters that one value may have.
    """

    def __init__(self, stream: BinaryIO, *, name: str, limit: int) -> None:
        self._stream = stream
        self._name = name
        self._limit = limit
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._before = 0  # characters that were read and let go
        self._ended = False

    def value(self) -> Any:
        """Return the next value, whole."""
        self._peek()
        wanted = CHUNK_BYTES
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except JSONDecodeError as error:
                if self._ended:
                    raise self._broken(error.msg, error.pos) from None
            except RecursionError:
                raise self._broken("it is nested too deeply", self._at) from None
            except ValueError:  # more digits than Python turns into a number
                raise self._broken("a number has too many digits", self._at) from None
            else:
                # At the very end a number may go on in what is not read yet.
                if end - self._at > self._limit:
                    raise self._long()
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            if len(self._text) - self._at > self._limit:
                raise self._long()
            self._more(wanted)
            wanted *= 2  # so that a long value is scanned over and over a few times only

    def keys(self) -> Iterator[str]:
        """Yield the keys of the object that comes next."""
        seen: set[str] = set()
        for _ in self._walk("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise self._broken("a key is no text", self._at)
            if key in seen:
                raise refuse(
                    f"the key {shown(key)} stands twice", file=self._name, code="duplicate_key", hint="fetch the file again"
                )
            seen.add(key)
            if self._peek() != ":":
                raise self._broken("a colon is missing", self._at)
            self._at += 1
            yield key

    def items(self) -> Iterator[Any]:
        """Yield the values of the list that comes next, each whole."""
        for _ in self._walk("[", "]"):
            yield self.value()

    def places(self) -> Iterator[int]:
        """Yield the index of each item of the list that comes next; the caller takes the item."""
        yield from self._walk("[", "]")

    def starts(self, letter: str) -> bool:
        """Whether what comes next begins with this letter: `{`, `[`, `n` of null."""
        return self._peek() == letter

    def end(self) -> None:
        """Refuse anything but space after the value."""
        if self._peek():
            raise self._broken("there is more after the end", self._at)

    def _walk(self, opening: str, closing: str) -> Iterator[int]:
        if self._peek() != opening:
            raise self._broken(f"`{opening}` was expected", self._at)
        self._at += 1
        index = 0
        while self._peek() != closing:
            if index:
                if self._text[self._at : self._at + 1] != ",":
                    raise self._broken("a comma is missing", self._at)
                self._at += 1
                self._peek()
            yield index
            index += 1
        self._at += 1

    def _peek(self) -> str:
        """Skip space; return the next character, or "" at the end."""
        while True:
            letter = self._text[self._at : self._at + 1]
            if letter and letter not in " \t\n\r":
                return letter
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._more(CHUNK_BYTES)

    def _more(self, size: int) -> None:
        chunk = self._stream.read(size)
        self._ended = not chunk
        try:
            text = self._decode.decode(chunk, final=self._ended)
        except UnicodeDecodeError as error:
            raise refuse(
                f"byte 0x{error.object[error.start]:02x} is not UTF-8", file=self._name, code="encoding", hint="fetch it again"
            ) from None
        self._before += self._at
        self._text = self._text[self._at :] + text
        self._at = 0

    def _long(self) -> InputRefused:
        hint = "fetch the file again, or give it in its other form"
        return refuse(f"a value has more than {self._limit} characters", file=self._name, code="too_large", hint=hint)

    def _broken(self, message: str, place: int) -> InputRefused:
        cut = self._ended and place >= len(self._text.rstrip())
        told = "the JSON breaks off" if cut or message.startswith("Unterminated string") else f"this is no JSON: {message}"
        return refuse(
            f"{told} (character {self._before + place + 1})", file=self._name, code="malformed", hint="fetch the file again"
        )
