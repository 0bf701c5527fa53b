"""Keys that make a retry harmless. Claimed in the transaction of the act itself: the key and what it made stand together, or
neither does.
"""

import re
from collections.abc import Sequence
from uuid import UUID

from django.db import connection

from compliance.models import IdempotencyKey
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem

_KEY = re.compile(r"[\x21-\x7e]{1,200}\Z")
_REQUEST = "request "


class IdempotencyKeyReused(DomainError):
    """The key was used before, for something else."""

    code = "idempotency_key_reused"
    kind = ErrorKind.CONFLICT


def apply_claim_key(*, caller: str, key: str, request_digest: str) -> str | None:
    """Return what the first request under this key made, or None where this is the first: then it holds the key until the
    transaction ends, and says by `apply_use_key` what it made.

    Raises `InputRefused` for a key that is not well formed, `IdempotencyKeyReused` for one used with another body.
    """
    if not _KEY.match(key):
        hint = "1 to 200 printable ASCII characters without spaces, such as a UUID"
        raise InputRefused([Problem("the key is not well formed", field="Idempotency-Key", code="invalid", hint=hint)])
    with connection.cursor() as cursor:
        # A second request under this key waits here until the first has committed or failed, and then sees what became of it.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", [f"{caller} {key}"])
    known = IdempotencyKey.objects.filter(caller=caller, key=key).first()
    if known is None:
        return None
    if known.request_digest != request_digest:
        raise IdempotencyKeyReused("this Idempotency-Key was used with another body; take a new key for a new request")
    return known.reference


def apply_use_key(*, caller: str, key: str, request_digest: str, reference: str) -> None:
    """Keep what the request under a claimed key made."""
    IdempotencyKey.objects.create(caller=caller, key=key, request_digest=request_digest, reference=reference)


def apply_first_time(*, actor: Actor, key: str | None, act: str) -> bool:
    """True unless this caller did this act under this idempotency key before. Raises `IdempotencyKeyReused` for another act."""
    if key is None:
        return True
    claim = {"caller": actor.reference, "key": key, "request_digest": digest(act)}
    if apply_claim_key(**claim) is not None:
        return False
    apply_use_key(**claim, reference=act)
    return True


def apply_claim_request(*, actor: Actor, key: str | None, what: Sequence[str]) -> UUID | None:
    """Return the request that an earlier call under this key filed, None where this is the first, or where no key was given.

    `what` is all that the call asks: another question under a used key raises `IdempotencyKeyReused`.
    """
    if key is None:
        return None
    known = apply_claim_key(caller=actor.reference, key=key, request_digest=digest(list(what)))
    return None if known is None else request_in_reference(known)


def apply_keep_request(*, actor: Actor, key: str | None, what: Sequence[str], uid: UUID) -> None:
    """Keep which request a call under a claimed key filed."""
    if key is not None:
        made = reference_of_request(uid)
        apply_use_key(caller=actor.reference, key=key, request_digest=digest(list(what)), reference=made)


def reference_of_request(uid: UUID) -> str:
    """Return how a key cites the request that was filed under it."""
    return f"{_REQUEST}{uid}"


def request_in_reference(reference: str) -> UUID:
    """Return the request that a key cites. Raises `IdempotencyKeyReused` where it was used for something else."""
    if not reference.startswith(_REQUEST):
        raise IdempotencyKeyReused("this Idempotency-Key was used for something else; take a new key")
    return UUID(reference.removeprefix(_REQUEST))
