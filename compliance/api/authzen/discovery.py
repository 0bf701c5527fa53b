"""`/.well-known/authzen-configuration`: where the doors are, for clients that know the gate's public address alone.

The path of the public address stands behind the well-known one. Where a key is given for it, the document is signed, as a JWT by
EdDSA (RFC 8037) whose header carries the public key.
"""

import base64
import json
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from compliance.api.authzen.denials import REQUESTS
from compliance.api.authzen.frame import Outgoing, json_answer, text_answer

CACHED_SECONDS = 60 * 60
ENDPOINTS = {
    "access_evaluation_endpoint": "/access/v1/evaluation",
    "access_evaluations_endpoint": "/access/v1/evaluations",
    "search_subject_endpoint": "/access/v1/search/subject",
    "search_resource_endpoint": "/access/v1/search/resource",
    "search_action_endpoint": "/access/v1/search/action",
    "access_request_endpoint": REQUESTS,
}
CAPABILITIES = ["urn:openid:authzen:capability:access-request"]
UNSET = "the public address of this service is not known: set WRITEGATE_PUBLIC_URL to its https address"


@csrf_exempt
def discovery(request: HttpRequest, path: str = "") -> HttpResponse:
    """`GET /.well-known/authzen-configuration[/path]`."""
    status, content, headers = _answer(request, path)
    return HttpResponse(content, status=status, headers=headers)


def _answer(request: HttpRequest, path: str) -> Outgoing:
    if request.method not in ("GET", "HEAD"):
        return text_answer("read this by GET", status=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
    address = settings.PUBLIC_URL
    if not address:
        return text_answer(UNSET, status=HTTPStatus.NOT_FOUND)
    if path.strip("/") != urlsplit(address).path.strip("/"):
        return text_answer("there is no decision point at this path", status=HTTPStatus.NOT_FOUND)
    return json_answer(metadata(address, settings.METADATA_KEY), headers={"Cache-Control": f"public, max-age={CACHED_SECONDS}"})


@lru_cache(maxsize=4)
def metadata(address: str, key: str = "") -> dict[str, Any]:
    """Return the document for a public address, with its signed form where a key (PEM) is given."""
    plain = {
        "policy_decision_point": address,
        **{name: f"{address}{path}" for name, path in ENDPOINTS.items()},
        "capabilities": CAPABILITIES,
    }
    return {**plain, "signed_metadata": _signed(plain, key)} if key else plain


def _signed(plain: dict[str, Any], key: str) -> str:
    private = load_pem_private_key(key.encode(), password=None)
    if not isinstance(private, Ed25519PrivateKey):
        raise TypeError("WRITEGATE_METADATA_KEY is no Ed25519 key")
    public = {"crv": "Ed25519", "kty": "OKP", "x": _base64(private.public_key().public_bytes_raw())}
    header = {"alg": "EdDSA", "typ": "JWT", "jwk": public}
    claims = {"iss": plain["policy_decision_point"], **plain}
    parts = ".".join(_base64(json.dumps(part, separators=(",", ":"), sort_keys=True).encode()) for part in (header, claims))
    return f"{parts}.{_base64(private.sign(parts.encode('ascii')))}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
