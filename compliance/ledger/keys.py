"""The log's private keys: from the environment or a file, else generated once into the data directory, for this user alone.

The text is one key a line. The first signs; the others are keys before it, needed once, to announce the first one under them too.
No function here logs, stores or shows a private part.
"""

import os
import secrets
from pathlib import Path
from typing import NamedTuple

from compliance.ledger.note import NoteRefused, SignerKey, check_key_name
from evaluations.kernel.errors import DomainError, ErrorKind


class KeysRefused(DomainError):
    """The log's keys cannot be read, or are not this log's."""

    code = "ledger_keys_refused"
    kind = ErrorKind.UNAVAILABLE


class Keyring(NamedTuple):
    """The key that signs, and those before it. All bear the log's origin as their name."""

    current: SignerKey
    previous: tuple[SignerKey, ...] = ()

    @property
    def origin(self) -> str:
        return self.current.name


def load_keyring(*, text: str, path: Path, origin: str, default_origin: str) -> Keyring:
    """Return the keys that `text` states; where it is empty, those in the file at `path`, which is made when it is missing.

    `origin` is the name that the keys must bear, or empty: then their own name counts, and `default_origin` names a new one.
    Raises `KeysRefused`.
    """
    if not text.strip():
        text = _read_or_make(path, origin or default_origin)
        where = str(path)
    else:
        where = "WRITEGATE_LEDGER_KEY"
    try:
        keys = [SignerKey.parse(line) for line in text.splitlines() if line.strip()]
    except NoteRefused as error:
        raise KeysRefused(f"{where} cannot be read: {error}") from None
    if not keys:
        raise KeysRefused(f"{where} holds no key")
    named = {key.name for key in keys}
    if len(named) > 1:
        raise KeysRefused(f"the keys in {where} bear different names; a log's keys all bear its origin")
    if origin and named != {origin}:
        raise KeysRefused(f"the key in {where} is `{named.pop()}`'s, but WRITEGATE_LEDGER_ORIGIN says `{origin}`")
    return Keyring(keys[0], tuple(keys[1:]))


def put_new_key_first(path: Path) -> SignerKey:
    """Write a new key before those in the file and return it; the next sealing announces it. Raises `KeysRefused`."""
    try:
        lines = [line for line in path.read_text(encoding="ascii").splitlines() if line.strip()]
        key = SignerKey.generate(SignerKey.parse(lines[0]).name)
    except (OSError, IndexError, UnicodeDecodeError, NoteRefused):
        raise KeysRefused(f"{path} holds no key to follow") from None
    draft = _draft(path, "\n".join([key.secret_text(), lines[0]]) + "\n")
    draft.replace(path)
    return key


def _read_or_make(path: Path, origin: str) -> str:
    try:
        check_key_name(origin)
    except NoteRefused as error:
        raise KeysRefused(f"the log's origin cannot be used: {error}") from None
    try:
        return _read(path)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = _draft(path, SignerKey.generate(origin).secret_text() + "\n")
        try:
            # A link fails where a file is: of two processes that start at once, one makes the key and both read it.
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        return _read(path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise KeysRefused(f"{path} cannot be read: {type(error).__name__}") from None


def _draft(path: Path, text: str) -> Path:
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    return draft
