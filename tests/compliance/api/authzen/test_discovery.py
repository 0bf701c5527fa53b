"""Where the doors are: for the public address alone, signed where a key is given."""

import base64
import json
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.http import HttpResponse
from django.test import Client

from compliance.api.authzen.discovery import ENDPOINTS

ADDRESS = "/.well-known/authzen-configuration"


def read(path: str = "") -> HttpResponse:
    return Client().get(f"{ADDRESS}{path}")


def claims_of(token: str, key: Ed25519PublicKey) -> dict[str, Any]:
    """Return the claims of a JWT by EdDSA. Raises `InvalidSignature`."""
    header, claims, signature = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split("."))
    key.verify(signature, token.rpartition(".")[0].encode())
    assert json.loads(header)["alg"] == "EdDSA"
    found: dict[str, Any] = json.loads(claims)
    return found


def test_the_document_names_every_door_there_is(settings: Any) -> None:
    settings.PUBLIC_URL = "https://gate.example.org"
    answer = read()
    assert answer.headers["Cache-Control"] == "public, max-age=3600"
    assert answer.json() == {
        "policy_decision_point": "https://gate.example.org",
        **{name: f"https://gate.example.org{path}" for name, path in ENDPOINTS.items()},
        "capabilities": ["urn:openid:authzen:capability:access-request"],
    }
    for path in ENDPOINTS.values():
        assert Client().post(path).status_code == 401


def test_a_public_address_with_a_path_has_its_document_behind_the_well_known_one(settings: Any) -> None:
    settings.PUBLIC_URL = "https://gate.example.org/tenant1"
    assert read("/tenant1").json()["access_evaluation_endpoint"] == "https://gate.example.org/tenant1/access/v1/evaluation"
    for path in ("", "/tenant2", "/tenant1/more"):
        answer = read(path)
        assert answer.status_code == 404
        assert answer.headers["Content-Type"].startswith("text/plain")


def test_without_a_public_address_it_says_what_to_set(settings: Any) -> None:
    settings.PUBLIC_URL = ""
    answer = read()
    assert answer.status_code == 404
    assert "WRITEGATE_PUBLIC_URL" in answer.content.decode()


def test_it_is_read_and_nothing_else(settings: Any) -> None:
    settings.PUBLIC_URL = "https://gate.example.org"
    answer = Client().post(ADDRESS, {})
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_a_signature_fits_its_key_alone(settings: Any) -> None:
    private = Ed25519PrivateKey.generate()
    settings.PUBLIC_URL = "https://gate.example.org"
    settings.METADATA_KEY = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    token = read().json()["signed_metadata"]
    assert claims_of(token, private.public_key())["iss"] == "https://gate.example.org"
    with pytest.raises(InvalidSignature):
        claims_of(token, Ed25519PrivateKey.generate().public_key())
