"""in-toto Statements in DSSE envelopes: they raise the trust of the file that they are about, and hold no number themselves.

Source of the formats: in-toto/attestation (Statement v1 and v0.1, predicate test-result v0.1), secure-systems-lab/dsse (protocol
1.0), and Sigstore's bundle, which holds an envelope as `dsseEnvelope`. A file holds one of these, or one a line.

An envelope is given together with the file that it is about, and the public keys to trust. In this order: the signature is verified
by one of those keys (`keyid` is a hint that decides nothing, and a certificate inside is not trusted), the very bytes that were
verified are parsed, the predicate must be a test result, and the SHA-256 of the file must be among the statement's subjects. Whatever
fails is refused: an attestation that does not hold is never passed over. The same envelope twice is one attestation.

Alone, a statement is refused and told apart: a test result says PASSED and names of tests, an SCAI report names of attributes.
Neither is evidence without the log.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from evaluations.importers.base import Intake, Pair, refuse
from evaluations.importers.decoding import read_bounded
from evaluations.importers.fields import shown
from evaluations.kernel.dsse import EnvelopeRefused, Opened, Verify, open_envelope

NAME = "in-toto"
VERSION = 1
GROUP = False

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENTS = ("https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1")
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
MAX_BYTES = 4 * 1024 * 1024
MAX_ENVELOPES = 100

_KINDS = (b'"dsseEnvelope"', b'"payloadType"', b"https://in-toto.io/Statement/")
_HINT = "give the envelope as its maker wrote it"


class Statement(NamedTuple):
    """What a statement says: its subjects' SHA-256 (lower-case hex), its predicate's type, and what stands in it, in words."""

    subjects: frozenset[str]
    predicate_type: str
    said: str


class Attestation(NamedTuple):
    """A statement that a trusted key signed: which key, and the digest of the signed bytes."""

    statement: Statement
    key: str
    digest: str

    @property
    def told(self) -> str:
        return f"attested by the key {self.key}: {self.statement.said}, statement {self.digest}"


def sniff(head: bytes, name: str) -> bool:
    """An envelope, a Sigstore bundle, or a bare statement."""
    if head.lstrip()[:1] != b"{":
        return False
    return (
        _KINDS[0] in head or (_KINDS[1] in head and b'"signatures"' in head) or (_KINDS[2] in head and b'"predicateType"' in head)
    )


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Refuse: a statement alone is no evidence. The message says what it is about."""
    ((name, stream),) = files.items()
    values = _values(read_bounded(stream, name=name, limit=MAX_BYTES), name)
    said = [statement_of(_payload(value, name), name).said for value in values]
    yield from ()
    raise refuse(
        f"a statement holds no number ({'; '.join(said)[:300]})",
        file=name,
        code="no_numbers",
        hint="give it together with the file whose digest it names, and the key to trust with --trusted-key",
    )


def read_attestations(data: bytes, *, name: str, trusted: Mapping[str, Verify]) -> tuple[Attestation, ...]:
    """Return the test results in a file that a trusted key signed, each once. Raises `InputRefused` where any does not hold."""
    found: dict[str, Attestation] = {}
    for value in _values(data, name):
        envelope = _envelope(value)
        if envelope is None:
            hint = "a bare statement is only a claim: give it in an envelope that is signed, or leave it out"
            raise refuse("the statement is not signed", file=name, code="not_signed", hint=hint)
        if not trusted:
            raise refuse("no key is trusted", file=name, code="no_key", hint="name the signer's public key with --trusted-key")
        try:
            opened: Opened = open_envelope(json.dumps(envelope).encode(), trusted)
        except EnvelopeRefused as error:
            hint = "get the envelope from its signer again, and his public key by another way than with it"
            raise refuse(f"the signature does not verify: {error}", file=name, code="signature", hint=hint) from None
        if opened.payload_type != PAYLOAD_TYPE:
            raise refuse(f"{shown(opened.payload_type)} is no in-toto statement", file=name, code="payload_type", hint=_HINT)
        statement = statement_of(opened.payload, name)
        if statement.predicate_type != TEST_RESULT:
            message = f"the predicate type {shown(statement.predicate_type)} is not accepted ({statement.said})"
            raise refuse(message, file=name, code="predicate_type", hint=f"only {TEST_RESULT} attests results")
        digest = f"sha256:{hashlib.sha256(opened.payload).hexdigest()}"
        found[digest] = Attestation(statement, opened.signed_by[0], digest)
    return tuple(found.values())


def statement_of(payload: bytes, name: str) -> Statement:
    """Return what the bytes of a statement say. Raises `InputRefused`."""
    value = _json(payload, name)
    subjects = value.get("subject") if isinstance(value, dict) else None
    predicate_type = value.get("predicateType") if isinstance(value, dict) else None
    predicate = value.get("predicate") if isinstance(value, dict) else None
    if (
        not isinstance(value, dict)
        or value.get("_type") not in STATEMENTS
        or not isinstance(predicate_type, str)
        or not isinstance(subjects, list)
        or not subjects
    ):
        raise refuse("it is no in-toto statement", file=name, code="unknown_shape", hint=_HINT)
    digests = set()
    for subject in subjects:
        held = subject.get("digest") if isinstance(subject, dict) else None
        digest = held.get("sha256") if isinstance(held, dict) else None
        if isinstance(digest, str):
            digests.add(digest.lower())
    return Statement(frozenset(digests), predicate_type, _said(predicate_type, predicate))


def _said(predicate_type: str, predicate: object) -> str:
    parts = [predicate_type.rsplit("/in-toto.io/attestation/", maxsplit=1)[-1][:80]]
    if isinstance(predicate, dict):
        result, attributes = predicate.get("result"), predicate.get("attributes")
        if isinstance(result, str):
            parts.append(result)
        for each in attributes if isinstance(attributes, list) else []:
            named = each.get("attribute") if isinstance(each, dict) else None
            if isinstance(named, str):
                parts.append(named)
    return "".join(letter if letter.isprintable() else " " for letter in " ".join(parts))[:200]


def _values(data: bytes, name: str) -> list[Any]:
    """Return the objects of a file: one, or one a line."""
    lines = [line for line in data.split(b"\n") if line.strip()]
    whole = len(lines) < 2 or not all(line.startswith(b"{") and line.rstrip().endswith(b"}") for line in lines)
    values = [_json(data, name)] if whole else [_json(line, name) for line in lines[: MAX_ENVELOPES + 1]]
    if len(values) > MAX_ENVELOPES:
        raise refuse(
            f"it holds more than {MAX_ENVELOPES} envelopes", file=name, code="too_large", hint="give those that are needed"
        )
    return values


def _json(data: bytes, name: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise refuse("this is no JSON", file=name, code="malformed", hint=_HINT) from None


def _envelope(value: Any) -> dict[str, Any] | None:
    """Return the envelope in an object, that of a Sigstore bundle included, or None where it is a bare statement."""
    if isinstance(value, dict) and isinstance(value.get("dsseEnvelope"), dict):
        value = value["dsseEnvelope"]
    return value if isinstance(value, dict) and "payloadType" in value else None


def _payload(value: Any, name: str) -> bytes:
    """Return the bytes of a statement without asking who signed them: to say what it is, and for nothing else."""
    envelope = _envelope(value)
    if envelope is None:
        return json.dumps(value).encode()
    try:
        # Every key is "trusted" by a verifier that always agrees; nothing is attested by it.
        return open_envelope(json.dumps(envelope).encode(), {"anybody": lambda signed, signature: True}).payload
    except EnvelopeRefused as error:
        raise refuse(str(error), file=name, code="malformed", hint=_HINT) from None
