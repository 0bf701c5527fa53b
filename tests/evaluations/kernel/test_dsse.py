"""DSSE envelopes: the vector of the specification, and who may count as a signer."""

import base64
import json

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from evaluations.kernel.dsse import EnvelopeRefused, open_envelope, pae, seal_envelope

TYPE = "http://example.com/HelloWorld"
VECTOR = {
    "payload": "aGVsbG8gd29ybGQ=",
    "payloadType": TYPE,
    "signatures": [{"sig": "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="}],
}
X = 46950820868899156662930047687818585632848591499744589407958293238635476079160
Y = 5640078356564379163099075877009565129882514886557779369047442380624545832820


def by_vector_key(signed: bytes, signature: bytes) -> bool:
    key = ec.EllipticCurvePublicNumbers(X, Y, ec.SECP256R1()).public_key()
    raw = encode_dss_signature(int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
    try:
        key.verify(raw, signed, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def test_the_vector_of_the_specification_verifies() -> None:
    assert pae(TYPE, b"hello world") == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    opened = open_envelope(json.dumps(VECTOR).encode(), {"vector": by_vector_key})
    assert opened == (b"hello world", TYPE, ("vector",))


@pytest.mark.parametrize("change", [{"payload": "aGVsbG8gd29ybGU="}, {"payloadType": TYPE + "s"}])
def test_payload_and_type_are_both_signed(change: dict) -> None:
    with pytest.raises(EnvelopeRefused, match="0 of the trusted keys"):
        open_envelope(json.dumps(VECTOR | change).encode(), {"vector": by_vector_key})


def verifier(key: Ed25519PrivateKey):
    def verify(signed: bytes, signature: bytes) -> bool:
        try:
            key.public_key().verify(signature, signed)
        except InvalidSignature:
            return False
        return True

    return verify


def test_a_threshold_counts_distinct_keys_and_not_signatures() -> None:
    first, second, third = (Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2, 3))
    envelope = seal_envelope("application/x", b"body", {"a": first.sign, "b": second.sign})
    trusted = {"one": verifier(first), "two": verifier(second), "three": verifier(third)}
    assert open_envelope(envelope, trusted, threshold=2).signed_by == ("one", "two")
    with pytest.raises(EnvelopeRefused):
        open_envelope(envelope, trusted, threshold=3)
    twice = json.loads(envelope)
    twice["signatures"] = [twice["signatures"][0]] * 2
    with pytest.raises(EnvelopeRefused):
        open_envelope(json.dumps(twice).encode(), trusted, threshold=2)


def test_both_alphabets_of_base64_are_read() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    envelope = json.loads(seal_envelope("application/x", b"\xfb\xff\xfe", {"a": key.sign}))
    envelope["payload"] = base64.urlsafe_b64encode(b"\xfb\xff\xfe").decode()
    envelope["signatures"][0]["sig"] = envelope["signatures"][0]["sig"].replace("+", "-").replace("/", "_")
    assert open_envelope(json.dumps(envelope).encode(), {"k": verifier(key)}).payload == b"\xfb\xff\xfe"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"payload":"","payloadType":"x","signatures":[]}',
        b'{"payload":1,"payloadType":"x","signatures":[{}]}',
        b'{"payload":"","payloadType":"\\ud800","signatures":[{"sig":""}]}',
    ],
)
def test_what_is_no_envelope_is_refused(data: bytes) -> None:
    with pytest.raises(EnvelopeRefused):
        open_envelope(data, {})
