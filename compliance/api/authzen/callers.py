"""Who calls, as the headers of a request tell: by which token, from where, and under which name for the request."""

import re
import uuid
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from compliance.api.authentication import MAX_TOKEN_LENGTH
from compliance.services.people import TOKEN_PREFIX, token_digest

MAX_REQUEST_ID = 128
_PRINTABLE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?\Z")

Meta = Mapping[str, Any]
"""Headers by their CGI names."""


def request_id_of(meta: Meta) -> str:
    """Return the caller's `X-Request-ID` where it is printable and short, else one made here."""
    given = meta.get("HTTP_X_REQUEST_ID", "")
    return given if len(given) <= MAX_REQUEST_ID and _PRINTABLE.match(given) else uuid.uuid4().hex


def token_digest_of(meta: Meta) -> str | None:
    """Return the digest of the bearer token, None for what cannot be one: nobody is asked about that."""
    scheme, _, rest = meta.get("HTTP_AUTHORIZATION", "").partition(" ")
    secret = rest.strip()
    if scheme.lower() != "bearer" or not secret.startswith(TOKEN_PREFIX):
        return None
    return token_digest(secret) if secret.isascii() and len(secret) <= MAX_TOKEN_LENGTH else None


def why_unheard(meta: Meta) -> str:
    """Return what to tell a caller that no token of ours admits."""
    given = meta.get("HTTP_AUTHORIZATION", "").lower().startswith("bearer")
    return "the token is unknown, expired or revoked" if given else "send a token: Authorization: Bearer wg_…"


def address_of(meta: Meta) -> str:
    """Return the client's address: behind a proxy of ours, as the proxy states it."""
    if getattr(settings, "SECURE_PROXY_SSL_HEADER", None):
        return str(meta.get("HTTP_X_FORWARDED_FOR", "")).rpartition(",")[2].strip()[:64]
    return str(meta.get("REMOTE_ADDR", ""))[:64]
