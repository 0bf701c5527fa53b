"""Public keys in PEM, and whether a signature is theirs: Ed25519, ECDSA on P-256 or P-384, RSA-PSS with SHA-256. Pure."""

import hashlib
import re
from collections.abc import Callable

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from evaluations.kernel.errors import InputRefused, Problem

Verify = Callable[[bytes, bytes], bool]
"""(signed bytes, signature) → whether the signature is this key's."""

MIN_RSA_BITS = 2048
_PEM = re.compile(rb"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)


def read_keys(data: bytes, *, name: str) -> dict[str, Verify]:
    """Return the public keys of a PEM text, each by its fingerprint (SHA-256 of its SubjectPublicKeyInfo). Raises `InputRefused`."""
    keys: dict[str, Verify] = {}
    for block in _PEM.findall(data):
        try:
            key = load_pem_public_key(block)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise InputRefused([Problem(f"a key cannot be read: {str(error)[:80]}", file=name, hint="give it in PEM")]) from None
        fingerprint = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
        keys[f"sha256:{fingerprint}"] = _verifier(key, name)
    if not keys:
        hint = "give public keys in PEM, -----BEGIN PUBLIC KEY-----"
        raise InputRefused([Problem("it holds no public key", file=name, code="no_key", hint=hint)])
    return keys


def _verifier(key: object, name: str) -> Verify:
    if isinstance(key, ed25519.Ed25519PublicKey):
        return lambda signed, signature, key=key: _holds(lambda: key.verify(signature, signed))  # type: ignore[misc]
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1):
        size = key.curve.key_size // 8
        algorithm = ec.ECDSA(hashes.SHA256() if size == 32 else hashes.SHA384())

        def verify(signed: bytes, signature: bytes) -> bool:
            forms = [signature]
            if len(signature) == 2 * size:  # the bare r and s, as in the test vector of DSSE
                forms.append(
                    encode_dss_signature(int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big"))
                )
            return any(_holds(lambda form=form: key.verify(form, signed, algorithm)) for form in forms)  # type: ignore[misc]

        return verify
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= MIN_RSA_BITS:
        pss = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.AUTO)
        return lambda signed, signature, key=key: _holds(lambda: key.verify(signature, signed, pss, hashes.SHA256()))  # type: ignore[misc]
    hint = "use Ed25519, ECDSA on P-256 or P-384, or RSA of 2,048 bits or more"
    raise InputRefused([Problem("a key is of a kind that is not trusted", file=name, code="weak_key", hint=hint)])


def _holds(check: Callable[[], object]) -> bool:
    try:
        check()
    except (InvalidSignature, ValueError):
        return False
    return True
