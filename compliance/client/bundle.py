"""`writegate bundle fetch` and `verify`, and `writegate check --offline`: what an enforcement point does with offline bundles."""

import argparse
import json
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

from compliance.client.answers import Answer, Question, cannot_tell
from compliance.client.http import NOT_MODIFIED, AddressRefused, NoAnswer, Reply, Server
from compliance.client.offline import Bundle, BundleRefused, Prove, read_file
from compliance.client.options import server_of
from compliance.client.outcome import COULD_NOT, DONE, REFUSED, Refused, counted, explain, plain, whole_seconds
from compliance.client.seen import Seen
from compliance.client.verify import keys_of
from compliance.ledger.findings import Unreadable
from compliance.ledger.merkle import HASH_BYTES, ProofRefused, check_consistency, consistency_path, node_hash
from compliance.ledger.note import CheckpointText, NoteRefused, VerifierKey, decode_hash
from compliance.ledger.offline import LEEWAY_SECONDS, write_statement
from compliance.ledger.tiles import HEIGHT, WIDTH, TileName, partial_width, split_tile
from evaluations.kernel.dsse import MAX_ENVELOPE_BYTES

VERIFIES, DOES_NOT_VERIFY, CANNOT_READ = 0, 1, 2
NOT_FOUND = 404
PATH = "/api/v1/systems/{system}/bundle"
TILE_PATH = "/ledger/tile/{name}"


def add_bundle_options(parser: argparse.ArgumentParser) -> None:
    """Add what says by which key a bundle is verified, and where what was seen is kept."""
    parser.add_argument(
        "--key", action="append", default=[], metavar="KEY", help="the log's public key, or a file that holds it; repeatable"
    )
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="what was seen of bundles is kept here; default: the bundle's name with .seen"
    )


def run_fetch(given: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Fetch the newest bundle where it is newer than the one held; returns the exit code."""
    until = time.monotonic() + given.timeout
    try:
        server, keys, state = server_of(given), _keys(given.key), _state(given.state, given.out)
        held = _held(given.out, given.system, keys)
        reply = server.send(
            "GET",
            PATH.format(system=quote(given.system, safe="/:@+")),
            headers={} if held is None else {"If-None-Match": f'"{held.tag}"'},
            timeout=given.timeout,
            retries=given.retries,
            most=MAX_ENVELOPE_BYTES,
        )
        _check_clock(reply)
        if reply.status == NOT_MODIFIED and held is not None:
            print(f"unchanged  {_told(held)}", file=out)
            return DONE
        if reply.status == NOT_FOUND:
            raise Refused(f"the service knows no system `{given.system}`")
        if reply.status != 200:
            return explain(reply, err, what="fetch the bundle")
        bundle = Bundle.read(reply.content, system=given.system, keys=keys, state=state, prove=_prover(server, until))
        _put(given.out, reply.content)
    except (Refused, AddressRefused) as refused:
        print(f"refused: {refused}", file=err)
        return REFUSED
    except NoAnswer as failure:
        print(f"could not fetch the bundle: {failure}", file=err)
        return COULD_NOT
    print(f"fetched  {_told(bundle)}", file=out)
    return DONE


def run_verify_bundle(given: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Say whether a bundle can be decided by; returns the exit code."""
    try:
        keys = _keys(given.key)
        bundle = Bundle.open(given.file, system=given.system, keys=keys, state=_state(given.state, given.file))
    except BundleRefused as refused:
        print(f"DOES NOT VERIFY  {refused.code}: {plain(refused)}", file=out)
        return DOES_NOT_VERIFY
    except Refused as refused:
        print(f"refused: {plain(refused)}", file=err)
        return CANNOT_READ
    if given.json:
        print(json.dumps(json.loads(write_statement(bundle.statement))["predicate"], ensure_ascii=False, indent=2), file=out)
        return VERIFIES
    print(f"verifies  {_told(bundle)}", file=out)
    for line in bundle.statement.lines:
        print(plain(f"  {line.subject}@{line.version} may {line.action}, until {whole_seconds(line.valid_until)}"), file=out)
    return VERIFIES


def ask_bundle(given: argparse.Namespace, question: Question) -> Answer:
    """Return what the bundle of `check --offline` answers. Never raises for what the bundle is."""
    try:
        if given.fingerprint_of is not None or given.request:
            raise Refused("--fingerprint-of and --request ask the server: neither goes with --offline")
        bundle = Bundle.open(
            given.offline, system=question.system, keys=_keys(given.key), state=_state(given.state, given.offline)
        )
    except BundleRefused as refused:
        return cannot_tell(question, refused.code, plain(refused))
    found = bundle.check(question.subject, question.action, question.fingerprint, type=question.type)
    return Answer(question, found.allowed, found.certain, found.reasons, valid_until=found.valid_until, subject=found.subject)


def _keys(given: Iterable[str]) -> list[VerifierKey]:
    try:
        keys = keys_of(given)
    except Unreadable as error:
        raise Refused(str(error)) from error
    except OSError as error:
        raise Refused(f"{error.filename} cannot be read: {error.strerror}") from error
    if not keys:
        raise Refused("no key: give the log's public key with --key")
    return keys


def _state(given: Path | None, bundle: Path) -> Path:
    return given or bundle.with_name(f"{bundle.name}.seen")


def _held(path: Path, system: str, keys: Iterable[VerifierKey]) -> Bundle | None:
    """Return the bundle that is held, None where there is none that could be decided by."""
    try:
        return Bundle.verified(read_file(path), system=system, keys=keys)
    except Refused:
        return None


def _put(path: Path, content: bytes) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}") from error


def _check_clock(reply: Reply) -> None:
    """Raise `Refused` where this machine's clock is behind the service's: every bundle would count for so much longer here."""
    try:
        stated = parsedate_to_datetime(reply.headers.get("date", ""))
    except ValueError:
        raise Refused("the service does not say what time it is, so this machine's clock cannot be held against it") from None
    behind = stated.replace(tzinfo=stated.tzinfo or UTC) - datetime.now(UTC)
    if behind > timedelta(seconds=LEEWAY_SECONDS):
        raise Refused(f"this machine's clock is {behind.total_seconds():.0f} seconds behind the service's: set it right")


def _told(bundle: Bundle) -> str:
    told = bundle.statement
    return (
        f"bundle {told.serial} of {plain(told.system)}: {counted(len(told.lines), 'line')}, made {told.issued_at:%Y-%m-%dT%H:%M:%SZ}, "
        f"counts until {told.expires_at:%Y-%m-%dT%H:%M:%SZ}"
    )


# --- does the log continue the one that was seen?


def _prover(server: Server, until: float) -> Prove:
    """Return what proves, by the log's public tiles, that a checkpoint continues the one seen before."""

    def prove(seen: Seen, checkpoint: CheckpointText) -> None:
        if not 0 < seen.size < checkpoint.size:
            return
        try:
            tiles = _Tiles(server, checkpoint.size, until)
            path = consistency_path(seen.size, checkpoint.size, tiles.node)
            check_consistency(seen.size, checkpoint.size, path, decode_hash(seen.root), checkpoint.root)
        except (ProofRefused, NoteRefused, ValueError) as error:
            text = f"the log does not continue the one of {seen.size} entries that was seen: {error}"
            raise BundleRefused("older", text) from error

    return prove


class _Tiles:
    """The nodes of a log of so many entries, from its tiles (C2SP tlog-tiles)."""

    def __init__(self, server: Server, size: int, until: float) -> None:
        self._server, self._size, self._until = server, size, until
        self._rows: dict[TileName, list[list[bytes]]] = {}

    def node(self, level: int, number: int) -> bytes:
        """Return the root of a complete subtree."""
        tile_level, row = divmod(level, HEIGHT)
        tile_number, place = divmod(number, 1 << (HEIGHT - row))
        full = self._size >> (HEIGHT * (tile_level + 1))
        width = WIDTH if tile_number < full else partial_width(tile_level, self._size)
        rows = self._tile(TileName(tile_level, tile_number, width))
        if row >= len(rows) or place >= len(rows[row]):
            raise ProofRefused("a tile of the log is not whole")
        return rows[row][place]

    def _tile(self, name: TileName) -> list[list[bytes]]:
        if name not in self._rows:
            left = self._until - time.monotonic()
            if left <= 0:
                raise NoAnswer("the time limit was reached before the log was compared", again=False)
            reply = self._server.send("GET", TILE_PATH.format(name=name.path), timeout=left)
            if reply.status != 200 or len(reply.content) != name.width * HASH_BYTES:
                raise NoAnswer(f"the service gave no tile {name.path} of its log (status {reply.status})", again=False)
            rows = [split_tile(reply.content)]
            while len(rows[-1]) > 1:
                below = rows[-1]
                rows.append([node_hash(below[at], below[at + 1]) for at in range(0, len(below) - 1, 2)])
            self._rows[name] = rows
        return self._rows[name]
