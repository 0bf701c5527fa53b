"""DSSE envelopes (secure-systems-lab/dsse, protocol 1.0): signatures over a payload together with its type. Pure."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

MAX_ENVELOPE_BYTES = 16 * 1024 * 1024

Verify = Callable[[bytes, bytes], bool]
"""(signed bytes, signature) → whether the signature is this key's."""


class EnvelopeRefused(ValueError):
    """An envelope that cannot be read, or that too few trusted keys signed."""


class Opened(NamedTuple):
    """The bytes that were verified, to be parsed as they are; and the names of the keys that signed them."""

    payload: bytes
    payload_type: str
    signed_by: tuple[str, ...]


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the pre-authentication encoding: what is really signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def seal_envelope(payload_type: str, payload: bytes, signers: Mapping[str, Callable[[bytes], bytes]]) -> bytes:
    """Return the JSON envelope; `signers` maps a key id to its signing function."""
    signed = pae(payload_type, payload)
    return json.dumps(
        {
            "payload": base64.b64encode(payload).decode("ascii"),
            "payloadType": payload_type,
            "signatures": [
                {"keyid": key_id, "sig": base64.b64encode(sign(signed)).decode("ascii")} for key_id, sign in signers.items()
            ],
        },
        sort_keys=True,
        separators=(",", ":"),
    ).encode()


def open_envelope(data: bytes, trusted: Mapping[str, Verify], *, threshold: int = 1) -> Opened:
    """Return the payload when at least `threshold` distinct trusted keys signed it. Raises `EnvelopeRefused`.

    An envelope's `keyid` is a hint that decides nothing: every trusted key is tried.
    """
    if threshold < 1:
        raise ValueError("at least one signature is asked for")
    payload_type, payload, signatures = _parse(data)
    signed = pae(payload_type, payload)
    found = tuple(name for name, verify in trusted.items() if any(verify(signed, signature) for signature in signatures))
    if len(found) < threshold:
        raise EnvelopeRefused(f"{len(found)} of the trusted keys signed this, and {threshold} are asked for")
    return Opened(payload, payload_type, found)


def _parse(data: bytes) -> tuple[str, bytes, list[bytes]]:
    if len(data) > MAX_ENVELOPE_BYTES:
        raise EnvelopeRefused(f"an envelope has at most {MAX_ENVELOPE_BYTES} bytes")
    try:
        value: Any = json.loads(data)
        payload_type, payload, signatures = value["payloadType"], _decode(value["payload"]), value["signatures"]
        if not isinstance(payload_type, str) or not isinstance(signatures, list) or not signatures:
            raise TypeError
        # JSON can write half a character, which has no bytes that anybody could have signed.
        payload_type.encode()
        return payload_type, payload, [_decode(one["sig"]) for one in signatures]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise EnvelopeRefused("an envelope has `payload`, `payloadType` and `signatures`, each with `sig`, in base64") from None


def _decode(text: str) -> bytes:
    """Standard and URL-safe base64 must both be accepted."""
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, AttributeError):
        raise ValueError("not base64") from None
