"""in-toto statements: only a trusted key's signature over the very bytes attests, and only the file whose digest is named."""

import base64
import hashlib
import io
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from evaluations.importers import in_toto
from evaluations.importers.registry import pick
from evaluations.kernel.dsse import EnvelopeRefused, Verify, open_envelope, pae
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.signatures import read_keys
from tests.evaluations.importers.foreign import refused
from tests.evaluations.importers.helpers import only
from tests.support.evidence_files import evidence_bytes

EXPECTED = json.loads(evidence_bytes("in-toto/expected.json"))["files"]
GENERATED = [name for name in EXPECTED if name.startswith("generated/dsse")]
UNKNOWN_ROOT = [name for name, right in EXPECTED.items() if str(right.get("signature_valid")).startswith("not checkable")]
BARE = [name for name, right in EXPECTED.items() if right.get("envelope", "") is None]
CODES = {
    "signature does not verify": "signature",
    "signature does not verify with the trusted key": "signature",
    "predicate type not accepted": "predicate_type",
}


def data(name: str) -> bytes:
    return evidence_bytes(f"in-toto/{name}")


def trusted() -> dict[str, Verify]:
    return read_keys(data("generated/trusted-key.pem"), name="trusted-key.pem")


def problem_of(content: bytes, keys: dict[str, Verify]) -> Problem:
    with pytest.raises(InputRefused) as caught:
        in_toto.read_attestations(content, name="a.json", trusted=keys)
    problem = only(list(caught.value.problems))
    assert problem.file == "a.json"
    assert problem.hint
    return problem


@pytest.mark.parametrize("name", GENERATED)
def test_an_envelope_attests_the_log_or_is_refused_for_its_reason(name):
    right = EXPECTED[name]
    if right["applies_to_log"]:
        (found,) = in_toto.read_attestations(data(name), name=name, trusted=trusted())
        log = hashlib.sha256(evidence_bytes("inspect/generated/success-20.eval")).hexdigest()
        assert found.statement.subjects == {log}
        assert found.key in trusted()
        assert "PASSED" in found.told
    else:
        assert problem_of(data(name), trusted()).code == CODES[right["reason"]]


def test_the_same_envelope_twice_is_one_attestation():
    name = "generated/bundle-two-lines.intoto.jsonl"
    assert data(name).strip().count(b"\n") + 1 == EXPECTED[name]["envelopes"]
    assert len(in_toto.read_attestations(data(name), name=name, trusted=trusted())) == EXPECTED[name]["distinct"]


def test_the_test_vector_of_dsse_verifies_and_is_no_statement():
    right = EXPECTED["dsse-test-vector.json"]
    point = right["public_key"]
    key = ec.EllipticCurvePublicNumbers(int(point["x"]), int(point["y"]), ec.SECP256R1()).public_key()
    keys = read_keys(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), name="vector.pem")
    opened = open_envelope(data("dsse-test-vector.json"), keys)
    assert pae(opened.payload_type, opened.payload).decode() == right["pae"]
    assert problem_of(data("dsse-test-vector.json"), keys).code == "payload_type"
    with pytest.raises(EnvelopeRefused):
        open_envelope(data("dsse-test-vector.json"), trusted())


@pytest.mark.parametrize("name", [*UNKNOWN_ROOT, *BARE])
def test_real_statements_are_told_apart_and_attest_nothing_without_a_trusted_key(name):
    right = EXPECTED[name]
    assert pick(None, data(name), name) is in_toto
    (value,) = in_toto._values(data(name), name)
    statement = in_toto.statement_of(in_toto._payload(value, name), name)
    assert statement.predicate_type == right["predicate_type"]
    assert statement.subjects == {digest["sha256"] for _, digest in right["subjects"] if "sha256" in digest}
    for attribute in right.get("attributes", []):
        assert attribute in statement.said
    assert problem_of(data(name), trusted()).code == ("not_signed" if name in BARE else "signature")
    assert problem_of(data(name), {}).code == ("not_signed" if name in BARE else "no_key")


def test_file_names_lie_and_the_statement_is_read():
    said = {
        name: only(refused({name: data(name)})).message for name in ("dsse-build.1f575092.json", "dsse-bad-build.1f575092.json")
    }
    assert "NonHermeticBuild" in said["dsse-build.1f575092.json"]
    assert "IsHermeticBuild" in said["dsse-bad-build.1f575092.json"]


def test_a_statement_alone_is_no_evidence():
    problem = only(refused({"a.json": data("generated/dsse-valid.json")}))
    assert (problem.code, "PASSED" in problem.message) == ("no_numbers", True)


@pytest.mark.parametrize(
    "change",
    [
        {"payload": "####"},
        {"signatures": []},
        {"signatures": [{"keyid": "x"}]},
        {"payload": base64.b64encode(b"[]").decode()},
        {"payloadType": 1},
        {"payloadType": "application/\ud800"},
    ],
)
def test_an_envelope_that_is_none_is_refused(change: dict[str, Any]):
    value = {**json.loads(data("generated/dsse-valid.json")), **change}
    assert problem_of(json.dumps(value).encode(), trusted()).code == "signature"


def test_keys_that_cannot_be_trusted_are_refused():
    for content in (b"", b"x", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"):
        with pytest.raises(InputRefused):
            read_keys(content, name="k.pem")
    assert io.BytesIO(data("generated/trusted-key.pem")).read().startswith(b"-----BEGIN PUBLIC KEY-----")
