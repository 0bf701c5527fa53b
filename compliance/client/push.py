"""`writegate push`: hand evidence files to a service, each whole or not at all."""

import argparse
import json
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from compliance.client.http import AddressRefused, NoAnswer, Reply, Server
from compliance.client.options import server_of
from compliance.client.outcome import COULD_NOT, DONE, REFUSED, Refused, explain, plain

PATH = "/api/v1/evidence"
FORMAT = "writegate-evidence/1"
MAX_FILE_BYTES = 20 * 1024 * 1024

_BEGIN = re.compile(rb"[ \t\r\n]*\{")


class Sendable(NamedTuple):
    """A file that may be sent: how it was named, and the bytes to send."""

    name: str
    body: bytes


def run_push(given: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Send evidence files in their order; returns the exit code, the worst of all files."""
    try:
        files = [read_file(path, given.source) for path in given.files]
        server = server_of(given)
    except (Refused, AddressRefused) as refused:
        print(f"refused: {refused}; nothing was sent", file=err)
        return REFUSED
    worst = DONE
    for place, file in enumerate(files):
        code = _push(server, file, given, out, err)
        if code == COULD_NOT:
            _name_left(files[place + 1 :], err)
            return COULD_NOT
        worst = worst or code
    return worst


def read_file(path: Path, source: str) -> Sendable:
    """Return what is sent of a file: its bytes, with the source put in where it names none. Raises `Refused`.

    The source goes in behind the first brace, on its line: what the service says of any line holds for the file.
    """
    try:
        with path.open("rb") as stream:
            body = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from error
    try:
        value = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        hint = "only the JSON form is taken over the network; `manage.py import_evidence` reads CSV, JSON Lines and the others"
        raise Refused(f"{path} is no JSON: {error}; {hint}") from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise Refused(f'{path} is none of our evidence files: they begin with "format": "{FORMAT}"')
    stated = value.get("source")
    if stated is None or stated == "":
        if "source" in value:
            raise Refused(f'{path} names an empty source: write "source": "{source}", or leave it out')
        begin = _BEGIN.match(body)
        at = begin.end() if begin else 0
        body = body[:at] + f'"source": {json.dumps(source)}, '.encode() + body[at:]
    elif stated != source:
        raise Refused(f"{path} names the source `{plain(stated)[:120]}`, not `{source}`")
    if len(body) > MAX_FILE_BYTES:
        raise Refused(f"{path} has more than {MAX_FILE_BYTES} bytes: split it")
    return Sendable(str(path), body)


def _push(server: Server, file: Sendable, given: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    headers = {"Idempotency-Key": f"push-{sha256(file.body).hexdigest()}"}
    try:
        reply = server.send("POST", PATH, file.body, headers=headers, timeout=given.timeout, retries=given.retries)
    except NoAnswer as failure:
        print(f"could not send {file.name}: {failure}", file=err)
        return COULD_NOT
    if reply.status not in (200, 201):
        return explain(reply, err, what=f"send {file.name}", file=file.name)
    return _accept(file, reply, out, err)


def _accept(file: Sendable, reply: Reply, out: TextIO, err: TextIO) -> int:
    """Print what was taken, having checked that the service holds the very bytes that were sent."""
    made: Any = reply.value
    digest = f"sha256:{sha256(file.body).hexdigest()}"
    counts = [made.get(word) if isinstance(made, dict) else None for word in ("recorded", "repeated", "observations")]
    if any(type(count) is not int for count in counts):
        print(f"could not send {file.name}: the answer is none of a Writegate service", file=err)
        return COULD_NOT
    if made.get("document") != digest:
        print(f"could not send {file.name}: the service recorded something other than this file", file=err)
        return COULD_NOT
    recorded, repeated, observations = counts
    print(f"{file.name}: {recorded} evidence with {observations} observations recorded, {repeated} known already", file=out)
    print(f"  document  {digest}", file=out)
    return DONE


def _name_left(files: Sequence[Sendable], err: TextIO) -> None:
    for file in files:
        print(f"not sent: {file.name}", file=err)
