"""The statement of an offline bundle: what is allowed at one system, from when until when. Pure; the client reads what this writes.

An in-toto Statement v1 under a predicate type of our own, signed as a DSSE envelope by the key that signs the log's checkpoints. One
key can do both: what DSSE signs begins with `DSSEv1` and a space, and the first line of a checkpoint, its origin, holds no space.

The subject is the list itself, by the digest of its bytes: there may be nothing to allow, and a statement about nobody is none. The
predicate has exactly the members `allowed checkpoint expires_at issued_at policies serial system`. Instants are text in UTC with
microseconds and `Z`; `policies` names those by whose verdicts it is allowed, by digest; `checkpoint` is the log's signed note as it is.

There is one spelling only (`ledger.bundle.write_json`), of payload and envelope alike: a byte that differs is a refusal.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

from compliance.ledger.bundle import NotJson, is_count, read_json, write_json
from compliance.ledger.note import SignerKey, VerifierKey
from evaluations.kernel.dsse import EnvelopeRefused, open_envelope, pae, seal_envelope

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:writegate:offline-bundle:v1"
MEDIA_TYPE = "application/vnd.in-toto.writegate-offline-bundle+dsse"
MAX_SECONDS = 3_600
"""No bundle counts for longer than this, whatever its text says."""
LEEWAY_SECONDS = 30
"""So much may the clock of an enforcement point be behind the gate's."""
MOST_LINES = 20_000
"""So many lines a bundle has at most: some nine megabytes, which envelope and archive still take."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z\Z")


class StatementRefused(ValueError):
    """Bytes that are no offline bundle, or not one of a key that is trusted."""


class Line(NamedTuple):
    """One subject version that may do one thing. `names` are aliases of it; `runs` says that its subject's key alone means it.

    `grants` and `policies` are what it rests on: ids, and digests. Time alone ends it at `valid_until`.
    """

    subject: str
    version: int
    fingerprint: str
    kind: str
    runs: bool
    names: Sequence[str]
    action: str
    grants: Sequence[str]
    policies: Sequence[str]
    break_glass: bool
    valid_until: str


class Cited(NamedTuple):
    """A policy version that a digest stands for."""

    policy: str
    version: int


class Statement(NamedTuple):
    """What a bundle states. It counts from `issued_at` to before `expires_at`; `serial` only ever rises at one system."""

    system: str
    serial: int
    issued_at: datetime
    expires_at: datetime
    checkpoint: str
    policies: Mapping[str, Cited]
    lines: Sequence[Line]


class Envelope(NamedTuple):
    """An opened envelope: the payload that was verified, and the key that signed it."""

    payload: bytes
    key: VerifierKey


def lines_digest(lines: Iterable[Line]) -> str:
    """Return the digest of a list, in hexadecimal: the digest of the statement's subject."""
    return sha256(write_json([line._asdict() for line in lines])).hexdigest()


def write_statement(statement: Statement) -> bytes:
    """Return the payload."""
    return write_json(
        {
            "_type": STATEMENT_TYPE,
            "predicateType": PREDICATE_TYPE,
            "subject": [{"name": statement.system, "digest": {"sha256": lines_digest(statement.lines)}}],
            "predicate": {
                "allowed": [line._asdict() for line in statement.lines],
                "checkpoint": statement.checkpoint,
                "expires_at": write_instant(statement.expires_at),
                "issued_at": write_instant(statement.issued_at),
                "policies": {digest: cited._asdict() for digest, cited in statement.policies.items()},
                "serial": statement.serial,
                "system": statement.system,
            },
        }
    )


def read_statement(payload: bytes) -> Statement:
    """Return what a payload states. Raises `StatementRefused` for anything that is not exactly such a statement."""
    try:
        whole = _members(read_json(payload), "_type", "predicate", "predicateType", "subject")
        if (whole["_type"], whole["predicateType"]) != (STATEMENT_TYPE, PREDICATE_TYPE):
            raise StatementRefused("it is a statement of another type")
        told = _members(whole["predicate"], "allowed", "checkpoint", "expires_at", "issued_at", "policies", "serial", "system")
        lines = tuple(_line(value) for value in _list(told["allowed"]))
        statement = Statement(
            _text(told["system"]),
            _whole(told["serial"]),
            read_instant(told["issued_at"]),
            read_instant(told["expires_at"]),
            _text(told["checkpoint"]),
            {_digest(digest): _cited(cited) for digest, cited in _object(told["policies"]).items()},
            lines,
        )
        if whole["subject"] != [{"name": statement.system, "digest": {"sha256": lines_digest(lines)}}]:
            raise StatementRefused("its subject is not the list that it holds")
    except (NotJson, TypeError, ValueError, KeyError) as error:
        raise StatementRefused(str(error) or "it is no statement of an offline bundle") from None
    return statement


def seal_statement(payload: bytes, key: SignerKey) -> bytes:
    """Return the envelope over a payload, signed by one key."""
    return seal_envelope(PAYLOAD_TYPE, payload, {key_name(key.verifier): key.sign})


def sign_payload(payload: bytes, key: SignerKey) -> bytes:
    """Return a key's signature over a payload: the one that its envelope holds."""
    return key.sign(pae(PAYLOAD_TYPE, payload))


def is_signed(payload: bytes, signature: bytes, keys: Iterable[VerifierKey]) -> bool:
    """Tell whether one of the keys signed a payload."""
    signed = pae(PAYLOAD_TYPE, payload)
    return any(key.verifies(signed, signature) for key in keys)


def open_statement(data: bytes, keys: Iterable[VerifierKey]) -> Envelope:
    """Return the payload of an envelope that one of the keys signed. Raises `StatementRefused`.

    Stricter than DSSE asks: one signature, the key's own name beside it, and one spelling, so that no byte can differ unseen.
    """
    trusted = {key_name(key): key for key in keys}
    try:
        opened = open_envelope(data, {name: _verifying(key) for name, key in trusted.items()})
        (signature,) = json.loads(data)["signatures"]
        again = seal_envelope(PAYLOAD_TYPE, opened.payload, {opened.signed_by[0]: lambda _: base64.b64decode(signature["sig"])})
    except (EnvelopeRefused, ValueError, TypeError, KeyError) as error:
        raise StatementRefused(str(error)) from None
    if again != data:
        raise StatementRefused("it is not written as a bundle is written, or it is of another type")
    return Envelope(opened.payload, trusted[opened.signed_by[0]])


def key_name(key: VerifierKey) -> str:
    """Return the `keyid` under which a key signs: its name and id, without its public part."""
    return f"{key.name}+{key.key_id.hex()}"


def bundle_tag(digest: str, key: VerifierKey) -> str:
    """Return what tells one bundle from every other, by its payload's digest in hexadecimal: the entity tag of its envelope."""
    return f"{digest}.{key.key_id.hex()}"


def write_instant(moment: datetime) -> str:
    """Return an aware instant as the statement writes it."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def read_instant(text: object) -> datetime:
    """Return the instant that a text states in that one spelling. Raises `ValueError`."""
    if not isinstance(text, str) or not _INSTANT.match(text):
        raise ValueError("an instant is not written as they are")
    return datetime.fromisoformat(text)


def _verifying(key: VerifierKey) -> Callable[[bytes, bytes], bool]:
    return key.verifies


def _line(value: Any) -> Line:
    told = _members(value, *Line._fields)
    read_instant(told["valid_until"])
    if type(told["runs"]) is not bool or type(told["break_glass"]) is not bool:
        raise StatementRefused("a line does not say whether its subject runs")
    return Line(
        subject=_text(told["subject"]),
        version=_whole(told["version"]),
        fingerprint=_digest(told["fingerprint"]),
        kind=_text(told["kind"]),
        runs=told["runs"],
        names=tuple(_text(name) for name in _list(told["names"])),
        action=_text(told["action"]),
        grants=tuple(_text(uid) for uid in _list(told["grants"])),
        policies=tuple(_digest(digest) for digest in _list(told["policies"])),
        break_glass=told["break_glass"],
        valid_until=told["valid_until"],
    )


def _cited(value: Any) -> Cited:
    told = _members(value, *Cited._fields)
    return Cited(_text(told["policy"]), _whole(told["version"]))


def _members(value: Any, *names: str) -> Mapping[str, Any]:
    found = _object(value)
    if set(found) != set(names):
        raise StatementRefused(f"it has other members than {', '.join(sorted(names))}")
    return found


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise StatementRefused("a part of it is no object")
    return value


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list) or len(value) > MOST_LINES:
        raise StatementRefused(f"a part of it is no list of at most {MOST_LINES}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise StatementRefused("a part of it is no text")
    return value


def _whole(value: Any) -> int:
    if not is_count(value):
        raise StatementRefused("a part of it is no whole number")
    return int(value)


def _digest(value: Any) -> str:
    if not isinstance(value, str) or not _DIGEST.match(value):
        raise StatementRefused("a part of it is no digest")
    return value
