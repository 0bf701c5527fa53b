"""`writegate fingerprint` and `writegate register`: say what an agent is, and tell the service."""

import argparse
import json
import uuid
from hashlib import sha256
from typing import Any, TextIO

from compliance.client.fingerprint import Fingerprint, fingerprint
from compliance.client.http import AddressRefused, NoAnswer, Reply, Server
from compliance.client.options import read_token, server_address
from compliance.client.outcome import COULD_NOT, DONE, REFUSED, Refused, counted, explain, plain

PATH = "/api/v1/subjects"


def run_fingerprint(given: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Print what an agent's directory states; returns the exit code."""
    try:
        found = fingerprint(given.directory, prompts=given.prompt, tools=given.tools)
    except Refused as refused:
        print(f"refused: {refused}", file=err)
        return REFUSED
    if given.json:
        print(json.dumps(found.as_value(), indent=2, ensure_ascii=False), file=out)
    else:
        _print(found, out)
    return DONE


def run_register(given: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Register the agent in a directory at a server; returns the exit code."""
    try:
        found = fingerprint(given.directory, prompts=given.prompt, tools=given.tools)
        address = server_address(given)
        if given.dry_run:
            print(f"would send to {address.geturl().rstrip('/')}{PATH}:", file=out)
            print(json.dumps(found.request(), indent=2, ensure_ascii=False), file=out)
            return DONE
        server = Server(address, read_token(given.token_file))
    except (Refused, AddressRefused) as refused:
        print(f"refused: {refused}", file=err)
        return REFUSED
    headers = {"Idempotency-Key": request_key(found, given.run_id or uuid.uuid4().hex)}
    try:
        reply = server.send(
            "POST",
            PATH,
            json.dumps(found.request(), ensure_ascii=False).encode(),
            headers=headers,
            timeout=given.timeout,
            retries=given.retries,
        )
    except NoAnswer as failure:
        print(f"could not register: {failure}", file=err)
        return COULD_NOT
    if reply.status not in (200, 201):
        return explain(reply, err, what="register")
    return _accept(found, reply, out, err, quiet=given.quiet)


def request_key(found: Fingerprint, run_id: str) -> str:
    """Return the idempotency key of registering this content in this run of a pipeline.

    Of the content alone it must not be: a server answers a key with what it answered first, and what was true of this content then need
    not be true now: a model named without its number may have a new version, or this may be a roll-back to what ran before.
    """
    content = json.dumps([found.request(), run_id], sort_keys=True).encode()
    return f"register-{sha256(content).hexdigest()}"


def _accept(found: Fingerprint, reply: Reply, out: TextIO, err: TextIO, *, quiet: bool) -> int:
    """Print what was registered, having checked that the server pinned what the files state."""
    made: Any = reply.value
    try:
        reaches = [str(one["digest"]) for one in made["reaches"]]
        agrees = made["digest"] == found.version_digest(reaches) and made["subject"] == found.key
        named = [plain(f"{one['subject']}@{one['number']}") for one in made["reaches"]]
        line = plain(f"{made['subject']} v{made['number']} ({'new' if made['is_new'] else 'known'})")
    except (KeyError, TypeError):
        print("could not register: the answer is none of a Writegate service", file=err)
        return COULD_NOT
    if not agrees:
        print("could not register: the server pinned something other than these files state", file=err)
        return COULD_NOT
    if quiet:
        print(made["digest"], file=out)
        return DONE
    print(line, file=out)
    print(f"  version digest  {made['digest']}", file=out)
    print(f"  fingerprint     {found.digest}", file=out)
    print(f"  reaches         {', '.join(named)}", file=out)
    if not found.closed:
        print("  the set of models is open: no verdict is possible", file=out)
    return DONE


def _print(found: Fingerprint, out: TextIO) -> None:
    rows = [
        ("fingerprint", found.digest),
        ("key", found.key),
        ("models", ", ".join(found.models) + ("" if found.closed else " (open: others may answer too)")),
        ("prompts", f"{found.prompts.digest} ({counted(len(found.prompts.files), 'file')})"),
        ("tools", f"{found.tools.digest} ({counted(len(found.tools.files), 'file')})"),
        ("harness", f"{found.harness} {found.harness_version}"),
    ]
    for word, text in rows:
        print(f"{word.ljust(11)}  {text}", file=out)
