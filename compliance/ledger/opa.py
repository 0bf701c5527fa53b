"""An offline bundle in the form that Open Policy Agent loads: data, a policy that denies by default, a manifest, and signatures.

Written by OPA's own account of bundles and of their signatures (openpolicyagent.org/docs/management-bundles, and `bundle/hash.go`): a
gzipped tar with `.manifest` (revision, roots), `data.json`, a policy, and `.signatures.json`, whose one JWT lists every other file with
its SHA-256. Of JSON files the hash is over the keys in order and no white space, which is how they are written here. OPA takes no
Ed25519 for this; the key is its own, P-256 (ES256) or RSA (RS256), and both sign the same bytes alike each time.

OPA keeps no serial number: that a list is newer than the one before is what its end is for.
"""

import gzip
import io
import json
import re
import tarfile
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from compliance.ledger.offline import LEEWAY_SECONDS, Line, Statement, read_instant, read_statement

KEY_ID = "writegate"
"""The name of the key in OPA's configuration, where no other is given there."""
POLICY = Path(__file__).with_name("offline.rego")

_LIST = "writegate_lists"
_NUMBERED = re.compile(r".+@[1-9][0-9]{0,8}\Z", re.DOTALL)
_LEAST_RSA_BITS = 2_048
_P256_BYTES = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ESCAPED = str.maketrans({"\u2028": "\\u2028", "\u2029": "\\u2029"})


class KeyRefused(ValueError):
    """A key by which no bundle for OPA can be signed."""


class Signer(NamedTuple):
    """A key for OPA: the algorithm's name, how it signs, and the first digits of its public part's digest."""

    algorithm: str
    sign: Callable[[bytes], bytes]
    short: str


@lru_cache(maxsize=4)
def read_signer(pem: str) -> Signer:
    """Return the key of a PEM text. Raises `KeyRefused`, whose message holds nothing of the text."""
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyRefused("it is no private key in PEM without a password") from None
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    short = sha256(public).hexdigest()[:8]
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        return Signer("ES256", lambda data: _raw(key.sign(data, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))), short)
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size >= _LEAST_RSA_BITS:
        return Signer("RS256", lambda data: key.sign(data, padding.PKCS1v15(), hashes.SHA256()), short)
    raise KeyRefused(f"it is neither a P-256 key nor an RSA key of {_LEAST_RSA_BITS} bits")


def write_archive(payload: bytes, signer: Signer) -> bytes:
    """Return the bundle of a payload: the same bytes for the same payload and key."""
    statement = read_statement(payload)
    place = place_of(statement.system)
    files = {
        ".manifest": _json(
            {
                "metadata": {"system": statement.system},
                "revision": f"{statement.serial}-{sha256(payload).hexdigest()[:16]}",
                "rego_version": 1,
                "roots": [f"writegate/{place}", f"{_LIST}/{place}"],
            }
        ),
        "data.json": _json({_LIST: {place: _list(statement)}}),
        "policy.rego": POLICY.read_text(encoding="utf-8").replace("@PLACE@", place).encode(),
    }
    files[".signatures.json"] = _json({"signatures": [_token(files, signer, statement)]})
    return _packed(files)


def place_of(system: str) -> str:
    """Return the name of a system in paths of OPA's data: its key, with `~` for `/`, which no key holds."""
    return system.replace("/", "~")


def _list(statement: Statement) -> Mapping[str, Any]:
    """Return the list as the policy looks things up in it."""
    keys: dict[str, set[str]] = defaultdict(set)
    aliases: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    numbered = defaultdict(list)
    for line in statement.lines:
        name = f"{line.subject}@{line.version}"
        numbered[name].append(_line(line))
        # A question that ends in a number means that version, whatever keys there are.
        if not _NUMBERED.match(line.subject):
            keys[line.subject].add(name)
        for alias in line.names:
            # A name of one line says nothing of another one.
            aliases[alias][line.action].add(name)
    return {
        "aliases": {alias: {action: sorted(names) for action, names in held.items()} for alias, held in aliases.items()},
        "expires_at_ns": _nanoseconds(statement.expires_at),
        "issued_at_ns": _nanoseconds(statement.issued_at),
        "keys": {key: sorted(names) for key, names in keys.items()},
        "leeway_ns": LEEWAY_SECONDS * 10**9,
        "numbered": numbered,
        "serial": statement.serial,
        "system": statement.system,
    }


def _line(line: Line) -> Mapping[str, Any]:
    return {
        "action": line.action,
        "fingerprint": line.fingerprint,
        "grants": list(line.grants),
        "kind": line.kind,
        "runs": line.runs,
        "valid_until_ns": _nanoseconds(read_instant(line.valid_until)),
    }


def _nanoseconds(moment: datetime) -> int:
    spent = moment - _EPOCH
    return ((spent.days * 86_400 + spent.seconds) * 10**6 + spent.microseconds) * 1_000


def _token(files: Mapping[str, bytes], signer: Signer, statement: Statement) -> str:
    claims = {
        "files": [
            {"algorithm": "SHA-256", "hash": sha256(content).hexdigest(), "name": name} for name, content in sorted(files.items())
        ],
        "iat": _nanoseconds(statement.issued_at) // 10**9,
        "iss": "writegate",
        "keyid": KEY_ID,
    }
    parts = ".".join(_base64(_json(part)) for part in ({"alg": signer.algorithm, "kid": KEY_ID, "typ": "JWT"}, claims))
    return f"{parts}.{_base64(signer.sign(parts.encode('ascii')))}"


def _packed(files: Mapping[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(whole.getvalue(), compresslevel=6, mtime=0)


def _json(value: Any) -> bytes:
    # As OPA's own encoder spells what it hashes: it escapes these two letters and no others beyond ASCII.
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).translate(_ESCAPED).encode()


def _raw(signature: bytes) -> bytes:
    """Return r ‖ s, as JWS has it (RFC 7518, 3.4)."""
    return b"".join(part.to_bytes(_P256_BYTES, "big") for part in decode_dss_signature(signature))


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
