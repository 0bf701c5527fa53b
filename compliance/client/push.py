"""`writegate push`: hand evidence files to a service, and follow each until it was read, whole or not at all."""

import argparse
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from urllib.parse import urlencode

from compliance.client.http import AddressRefused, NoAnswer, Reply, Server
from compliance.client.options import server_of
from compliance.client.outcome import COULD_NOT, DONE, REFUSED, Refused, counted, explain, plain, tell_findings

PATH = "/api/v1/evidence/uploads"
MAX_FILE_BYTES = 2 * 1024**3
TIMEOUT_SECONDS = 600.0
"""For handing in one file."""
WAIT_SECONDS = 45 * 60.0
"""For reading one file: a service gives up after 30 minutes, and others may be before it."""
FIRST_LOOK_SECONDS = 0.2
"""After so long a first look how far it is; each further one after twice the time, up to `MAX_LOOK_SECONDS`."""
MAX_LOOK_SECONDS = 5.0
MAX_NAMES = 20

_COUNTS = ("evidence", "taken", "repeated")
_ENDS = ("done", "refused", "failed")


class Sendable(NamedTuple):
    """A file that may be sent: how it was named, its path, and the digest of its bytes."""

    name: str
    path: Path
    digest: str


class Trouble(Exception):
    """Nobody can tell what became of a file; the text says why."""


def run_push(given: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Hand in evidence files in their order; returns the exit code, the worst of all files."""
    try:
        files = [read_file(path) for path in given.files]
        server = server_of(given)
    except (Refused, AddressRefused) as refused:
        print(f"refused: {refused}; nothing was sent", file=err)
        return REFUSED
    run_id = given.run_id or uuid.uuid4().hex
    worst = DONE
    for place, file in enumerate(files):
        code = _push(server, file, given, run_id, out, err)
        if code == COULD_NOT:
            _name_left(files[place + 1 :], err)
            return COULD_NOT
        worst = worst or code
    return worst


def read_file(path: Path) -> Sendable:
    """Return what is sent of a file: its very bytes, whatever its format. Raises `Refused` where it cannot be sent."""
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            if not path.is_file() or not 0 < size <= MAX_FILE_BYTES:
                raise Refused(f"{path} is empty, or no file" if size <= MAX_FILE_BYTES else _too_large(path))
            return Sendable(str(path), path, f"sha256:{file_digest(stream, 'sha256').hexdigest()}")
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from error


def upload_key(file: Sendable, told: Mapping[str, str], run_id: str) -> str:
    """Return the idempotency key of handing in this file, said to be this, in this run of a pipeline.

    Of the content alone it must not be: what was refused for an unknown benchmark is taken once that is registered.
    """
    return f"push-{sha256(json.dumps([file.digest, told, run_id], sort_keys=True).encode()).hexdigest()}"


def _push(server: Server, file: Sendable, given: argparse.Namespace, run_id: str, out: TextIO, err: TextIO) -> int:
    said = {"file_name": file.path.name[-200:], "source": given.source, "format": given.format, "subject": given.subject}
    told = {name: text for name, text in said.items() if text}
    headers = {"Idempotency-Key": upload_key(file, told, run_id), "Content-Type": "application/octet-stream"}
    try:
        reply = server.send(
            "POST",
            f"{PATH}?{urlencode(told)}",
            file.path,
            headers=headers,
            timeout=given.timeout,
            retries=given.retries,
        )
        if reply.status != 202:
            return explain(reply, err, what=f"send {file.name}", file=file.name)
        upload = _upload_in(reply, file)
        print(f"{file.name}: handed in as upload {upload['uid']}", file=out)
        return _tell(file, _follow(server, file, upload, given, out), out, err)
    except (NoAnswer, Trouble) as failure:
        print(f"could not send {file.name}: {failure}", file=err)
        return COULD_NOT


def _follow(
    server: Server, file: Sendable, upload: Mapping[str, Any], given: argparse.Namespace, out: TextIO
) -> Mapping[str, Any]:
    """Return the upload as it ended, having told how far it was. Raises `NoAnswer`, `Trouble`."""
    until = time.monotonic() + given.wait
    pause, told = FIRST_LOOK_SECONDS, 0
    where = f"{PATH}/{upload['uid']}"
    while upload["status"] not in _ENDS:
        left = until - time.monotonic()
        if left <= 0:
            raise Trouble(f"it is still read ({upload['percent']} %): ask {server.url}{where}")
        time.sleep(min(pause, left))
        pause = min(2 * pause, MAX_LOOK_SECONDS)
        reply = server.send("GET", where, timeout=min(given.timeout, 60), retries=given.retries)
        if reply.status != 200:
            raise Trouble(f"what became of it is not told (status {reply.status}): ask {server.url}{where}")
        upload = _upload_in(reply, file)
        if upload["percent"] >= told + 10 and upload["status"] not in _ENDS:
            told = upload["percent"]
            print(f"{file.name}: {told} % read", file=out)
            out.flush()
    return upload


def _upload_in(reply: Reply, file: Sendable) -> Mapping[str, Any]:
    """Return the upload that a reply tells of, having checked that the service holds the very bytes that were sent."""
    made: Any = reply.value
    try:
        uid, status, percent = str(uuid.UUID(made["uid"])), made["status"], made["percent"]
        odd = any(type(made[word]) is not int for word in (*_COUNTS, "percent")) or not isinstance(status, str)
        held = {each["name"]: each["observations"] for each in made["held"]}
        refused, failure = made["refused"], str(made["failure"])
        digests = {made["file_digest"], made["document"] if status == "done" else file.digest}
    except (KeyError, TypeError, ValueError, AttributeError):
        odd = True
    if odd:
        raise Trouble("the answer is none of a Writegate service")
    if digests != {file.digest}:
        raise Trouble("the service recorded something other than this file")
    counts = {word: made[word] for word in _COUNTS}
    return {"uid": uid, "status": status, "percent": percent, "held": held, "refused": refused, "failure": failure, **counts}


def _tell(file: Sendable, upload: Mapping[str, Any], out: TextIO, err: TextIO) -> int:
    """Print what became of a file; returns the exit code."""
    if upload["status"] == "refused":
        why = "" if upload["refused"] else f": {plain(upload['failure'])}"
        print(f"refused: nothing of {file.name} was recorded{why}", file=err)
        tell_findings(upload["refused"], err, file=file.name)
        return REFUSED
    if upload["status"] == "failed":
        raise Trouble(f"it was not read: {plain(upload['failure'])}")
    held = upload["held"]
    waiting = sum(held.values())
    taken = f"{counted(upload['taken'], 'observation')} taken in {counted(upload['evidence'], 'piece')} of evidence"
    print(f"{file.name}: {taken}, {waiting} of them held, {counted(upload['repeated'], 'piece')} known already", file=out)
    print(f"  document  {file.digest}", file=out)
    for name, count in list(held.items())[:MAX_NAMES]:
        print(f"  held      {count} until somebody says whom `{plain(name)}` means", file=out)
    if len(held) > MAX_NAMES:
        print(f"  held      and those of {len(held) - MAX_NAMES} further names", file=out)
    return DONE


def _name_left(files: Sequence[Sendable], err: TextIO) -> None:
    for file in files:
        print(f"not sent: {file.name}", file=err)


def _too_large(path: Path) -> str:
    return f"{path} has more than {MAX_FILE_BYTES} bytes: split it"
