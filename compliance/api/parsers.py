"""Reading bodies as bytes: what was sent is what is kept, so no parser of a framework comes between."""

from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any, BinaryIO

from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from compliance.api.errors import BodyTooLarge, LengthRequired
from compliance.services.submissions import MAX_BYTES

YAML = "application/yaml"


class ExactJSON(BaseParser):
    """Takes `application/json` as the very bytes sent, at most 20 MiB. Whether they are JSON, the importer judges."""

    media_type = "application/json"

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        body: bytes = stream.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise BodyTooLarge(f"the body is larger than {MAX_BYTES // (1024 * 1024)} MiB: split it")
        return body


class StreamedFile(BaseParser):
    """Takes `application/octet-stream` as the stream that it is: a file of any size, for whoever writes it to disk as it comes."""

    media_type = "application/octet-stream"

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        return stream


def stream_of(request: Request) -> tuple[BinaryIO, int]:
    """Return the stream of a request to a view that takes `StreamedFile`, and how long it says to be. Raises `LengthRequired`."""
    length = request.headers.get("Content-Length", "")
    if not (length.isascii() and length.isdigit()):
        raise LengthRequired
    stream: Any = request.data
    return (stream if int(length) else BytesIO()), int(length)


class ExactYAML(ExactJSON):
    """Takes `application/yaml` as the very bytes sent."""

    media_type = YAML


def body_of(request: Request) -> bytes:
    """Return the body of a request to a view that takes `ExactJSON`. Raises `LengthRequired` rather than take it for empty."""
    body: Any = request.data
    if isinstance(body, bytes):
        return body
    if "Content-Length" not in request.headers:
        raise LengthRequired
    return b""
