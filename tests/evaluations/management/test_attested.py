"""A trusted key's signature makes evidence attested; one that does not hold stops the import, and nothing is kept."""

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.management import call_command

from evaluations.importers.in_toto import PAYLOAD_TYPE, STATEMENTS, TEST_RESULT
from evaluations.kernel.dsse import seal_envelope
from evaluations.models import Document, Evidence
from tests.support import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Return a file of evidence, an envelope about it, one about another file, a tampered one, the key, and another key."""
    world.register("m")
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    content = json.dumps(world.submission("m")).encode()

    def envelope(data: bytes) -> bytes:
        digest = hashlib.sha256(data).hexdigest()
        statement: dict[str, Any] = {"_type": STATEMENTS[0], "subject": [{"name": "r", "digest": {"sha256": digest}}]}
        statement |= {"predicateType": TEST_RESULT, "predicate": {"result": "PASSED"}}
        return seal_envelope(PAYLOAD_TYPE, json.dumps(statement).encode(), {"k": key.sign})

    tampered = json.loads(envelope(b"another"))
    tampered["payload"] = json.loads(envelope(content))["payload"]
    made = {
        "results.json": content,
        "good.dsse.json": envelope(content),
        "other.dsse.json": envelope(b"another"),
        "tampered.dsse.json": json.dumps(tampered).encode(),
        "key.pem": key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "wrong.pem": other.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    }
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    return {name: tmp_path / name for name in made}


def run(*arguments: object) -> tuple[int, str]:
    err = io.StringIO()
    try:
        call_command("import_evidence", *map(str, arguments), stdout=io.StringIO(), stderr=err)
    except SystemExit as stop:
        return int(stop.code or 0), err.getvalue()
    return 0, err.getvalue()


def test_a_verified_signature_makes_the_evidence_attested_and_its_bytes_are_kept(files: dict[str, Path]) -> None:
    assert run(files["results.json"]) == (0, "")
    assert run(files["results.json"], files["good.dsse.json"], "--trusted-key", files["key.pem"]) == (0, "")
    plain, attested = Evidence.objects.order_by("id")
    assert (plain.attested, attested.attested) == (False, True)
    assert plain.digest != attested.digest
    assert "attested by the key sha256:" in attested.note
    assert Document.objects.filter(file_name="good.dsse.json").exists()


@pytest.mark.parametrize(
    ("envelope", "keys", "told"),
    [
        ("tampered.dsse.json", ["key.pem"], "does not verify"),
        ("good.dsse.json", ["wrong.pem"], "does not verify"),
        ("good.dsse.json", [], "no key is trusted"),
        ("other.dsse.json", ["key.pem"], "about none of the files"),
    ],
)
def test_an_attestation_that_does_not_hold_stops_the_import(
    files: dict[str, Path], envelope: str, keys: list[str], told: str
) -> None:
    given = [part for key in keys for part in ("--trusted-key", files[key])]
    code, err = run(files["results.json"], files[envelope], *given)
    assert code == 2
    assert told in err
    assert envelope in err
    assert not Evidence.objects.exists()
    assert not Document.objects.exists()


def test_keys_of_the_installation_are_trusted_too(files: dict[str, Path], settings: Any) -> None:
    settings.EVIDENCE_KEYS = files["key.pem"].read_text()
    assert run(files["results.json"], files["good.dsse.json"]) == (0, "")
    assert Evidence.objects.get().attested
