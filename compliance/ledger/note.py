"""Signed notes and checkpoints of C2SP (`c2sp.org/signed-note`, `c2sp.org/tlog-checkpoint`), signed with Ed25519. Pure.

A signed note is text that ends in a newline, an empty line, and signature lines `— <key name> <base64(key id ‖ signature)>`. A
checkpoint is a note whose text has the lines origin, tree size, base64 of the root; it carries no time.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from compliance.ledger.merkle import HASH_BYTES

ED25519 = 0x01
MAX_NOTE_BYTES = 64 * 1024
MAX_SIGNATURES = 64
DASH = "— "
_KEY_ID_BYTES = 4
_SIZE = re.compile(r"(?:0|[1-9][0-9]{0,18})\Z")
_PRIVATE = "PRIVATE+KEY+"


class NoteRefused(ValueError):
    """A note, key or checkpoint that is not well formed."""


class SignatureRefused(ValueError):
    """No known key signed a note, or a known key's signature is wrong."""


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key by name: `<name>+<8 hex digits of the key id>+<base64(0x01 ‖ 32 bytes)>`."""

    name: str
    key_id: bytes
    public: bytes

    @classmethod
    def of(cls, name: str, public: bytes) -> "VerifierKey":
        """Return the key of a name and 32 public bytes."""
        check_key_name(name)
        return cls(name, sha256(name.encode() + b"\n" + bytes([ED25519]) + public).digest()[:_KEY_ID_BYTES], public)

    @classmethod
    def parse(cls, text: str) -> "VerifierKey":
        """Return the key that its text states. Raises `NoteRefused`."""
        name, hex_id, encoded = _key_parts(text.strip())
        key = cls.of(name, _typed(encoded))
        if key.key_id.hex() != hex_id:
            raise NoteRefused(f"the key id `{hex_id}` is not that of the key beside it")
        return key

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{_b64(bytes([ED25519]) + self.public)}"

    def verifies(self, text: bytes, signature: bytes) -> bool:
        """True when the signature over the note's text is this key's."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text)
        except InvalidSignature:
            return False
        return True


class SignerKey:
    """A private key by name: `PRIVATE+KEY+<name>+<key id>+<base64(0x01 ‖ 32 bytes)>`. Its text never shows the private part."""

    __slots__ = ("_private", "verifier")

    def __init__(self, name: str, seed: bytes) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = VerifierKey.of(name, self._private.public_key().public_bytes_raw())

    @classmethod
    def generate(cls, name: str) -> "SignerKey":
        """Return a new random key."""
        return cls(name, Ed25519PrivateKey.generate().private_bytes_raw())

    @classmethod
    def parse(cls, text: str) -> "SignerKey":
        """Return the key that its text states. Raises `NoteRefused`, whose message holds nothing of the text."""
        text = text.strip()
        if not text.startswith(_PRIVATE):
            raise NoteRefused("a signing key begins with `PRIVATE+KEY+`")
        name, hex_id, encoded = _key_parts(text.removeprefix(_PRIVATE), secret=True)
        key = cls(name, _typed(encoded))
        if key.verifier.key_id.hex() != hex_id:
            raise NoteRefused("the signing key's id is not that of the key beside it")
        return key

    @property
    def name(self) -> str:
        return self.verifier.name

    def secret_text(self) -> str:
        """Return the text that `parse` reads: a secret, for a file of mode 0600 and nothing else."""
        return f"{_PRIVATE}{self.name}+{self.verifier.key_id.hex()}+{_b64(bytes([ED25519]) + self._private.private_bytes_raw())}"

    def sign(self, text: bytes) -> bytes:
        """Return the 64 bytes of the signature over a note's text."""
        return self._private.sign(text)

    def __repr__(self) -> str:
        return f"<signing key of {self.verifier}>"


class Signature(NamedTuple):
    """One signature line."""

    name: str
    key_id: bytes
    signature: bytes


class Note(NamedTuple):
    """A parsed note: `text` with its final newline, and its signature lines in order."""

    text: str
    signatures: tuple[Signature, ...]


class CheckpointText(NamedTuple):
    """What a checkpoint's text says."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """Return the note text of it."""
        return f"{self.origin}\n{self.size}\n{_b64(self.root)}\n"


def check_key_name(name: str) -> None:
    """Raise `NoteRefused` unless a key can bear this name: not empty, no space, no plus, no control character."""
    if not name or "+" in name or any(character.isspace() or ord(character) < 0x20 for character in name):
        raise NoteRefused(f"`{name}` cannot name a key: it must not be empty nor hold spaces or `+`")


def sign_note(text: str, keys: Sequence[SignerKey]) -> str:
    """Return the note over `text`, signed by every key in order."""
    if not text.endswith("\n"):
        raise NoteRefused("a note's text ends in a newline")
    body = text.encode()
    lines = [f"{DASH}{key.name} {_b64(key.verifier.key_id + key.sign(body))}\n" for key in keys]
    return f"{text}\n{''.join(lines)}"


def parse_note(data: bytes) -> Note:
    """Return a note's text and signatures. Raises `NoteRefused`; verifies nothing."""
    if len(data) > MAX_NOTE_BYTES:
        raise NoteRefused(f"a note has at most {MAX_NOTE_BYTES} bytes")
    try:
        whole = data.decode("utf-8")
    except UnicodeDecodeError:
        raise NoteRefused("a note is UTF-8 text") from None
    if any(ord(character) < 0x20 and character != "\n" for character in whole):
        raise NoteRefused("a note holds no control character but the newline")
    head, separator, tail = whole.rpartition("\n\n")
    if not separator or not tail.endswith("\n"):
        raise NoteRefused("a note is text, an empty line and signature lines, each ended by a newline")
    lines = tail[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise NoteRefused(f"a note has at most {MAX_SIGNATURES} signatures")
    return Note(head + "\n", tuple(_signature(line) for line in lines))


def verify_note(note: Note, keys: Iterable[VerifierKey]) -> tuple[VerifierKey, ...]:
    """Return the known keys that signed. Raises `SignatureRefused` when none did, or when a known key's signature is wrong."""
    known = {(key.name, key.key_id): key for key in keys}
    body = note.text.encode()
    found: list[VerifierKey] = []
    for line in note.signatures:
        key = known.get((line.name, line.key_id))
        if key is None:
            continue
        if not key.verifies(body, line.signature):
            raise SignatureRefused(f"the signature of the key {key.name}+{key.key_id.hex()} does not fit the text")
        if key not in found:
            found.append(key)
    if not found:
        raise SignatureRefused("no key that you trust has signed this")
    return tuple(found)


def parse_checkpoint(text: str) -> CheckpointText:
    """Return what a checkpoint's note text says. Raises `NoteRefused`."""
    lines = text.split("\n")
    if len(lines) < 4 or not all(lines[:3]) or lines[-1]:
        raise NoteRefused("a checkpoint has the lines origin, size and root")
    origin, size, encoded = lines[:3]
    if not _SIZE.match(size):
        raise NoteRefused(f"`{size[:40]}` is no tree size")
    root = decode_hash(encoded)
    return CheckpointText(origin, int(size), root)


def decode_hash(text: str) -> bytes:
    """Return the 32 bytes that strict base64 text states. Raises `NoteRefused`."""
    data = _unb64(text)
    if len(data) != HASH_BYTES:
        raise NoteRefused(f"a hash has {HASH_BYTES} bytes, not {len(data)}")
    return data


def encode_hash(data: bytes) -> str:
    """Return base64 of a hash."""
    return _b64(data)


def _signature(line: str) -> Signature:
    if not line.startswith(DASH):
        raise NoteRefused("a signature line begins with an em dash and a space")
    name, separator, encoded = line.removeprefix(DASH).partition(" ")
    if not separator:
        raise NoteRefused("a signature line has a key name and a signature")
    check_key_name(name)
    data = _unb64(encoded)
    if len(data) <= _KEY_ID_BYTES:
        raise NoteRefused("a signature is longer than its key id")
    return Signature(name, data[:_KEY_ID_BYTES], data[_KEY_ID_BYTES:])


def _key_parts(text: str, *, secret: bool = False) -> tuple[str, str, str]:
    parts = text.split("+", 2)
    if len(parts) != 3 or not re.fullmatch(r"[0-9a-f]{8}", parts[1]):
        shown = "" if secret else f", unlike `{text[:80]}`"
        raise NoteRefused(f"a key is written `name+8 hex digits+base64`{shown}")
    return parts[0], parts[1], parts[2]


def _typed(encoded: str) -> bytes:
    try:
        data = _unb64(encoded)
    except NoteRefused:
        raise NoteRefused("the key is not base64") from None
    if not data or data[0] != ED25519:
        raise NoteRefused("only Ed25519 keys (type 0x01) are known here")
    if len(data) != 1 + 32:
        raise NoteRefused("an Ed25519 key has 32 bytes")
    return data[1:]


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _unb64(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NoteRefused(f"`{text[:60]}` is not base64") from None
    # Only the one canonical spelling: spare bits in the last character would let two texts mean the same bytes.
    if _b64(data) != text:
        raise NoteRefused(f"`{text[:60]}` is not canonical base64")
    return data
