"""Sealing, the hourly beat, and the change of the signing key.

`seal` records nothing: it only gives entries their places. What else moves here (a key's announcement) is an entry of its own.
"""

import time
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from compliance.ledger.keys import Keyring, KeysRefused, load_keyring, put_new_key_first
from compliance.ledger.note import VerifierKey
from compliance.ledger.sealer import BATCH, Sealed, seal_batch
from compliance.models import Checkpoint, LedgerEntry, LedgerLeaf
from compliance.selectors.ledger import last_checkpoint, leaf_count, pending_count
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.clock import now
from evaluations.kernel.services import service, service_transaction

BEAT = "ledger.beat"
BEATS_APART = timedelta(minutes=30)
"""A beat that follows another sooner than this is a task that ran twice."""


class SealingDone(NamedTuple):
    """How many entries got an index, and the newest checkpoint; `is_complete` when none was left waiting."""

    entries: int
    checkpoint: Checkpoint | None
    is_complete: bool


def keyring() -> Keyring:
    """Return the log's keys as settings name them; makes them on first use. Raises `KeysRefused`."""
    return load_keyring(
        text=settings.LEDGER_KEY,
        path=Path(settings.LEDGER_KEY_PATH),
        origin=settings.LEDGER_ORIGIN,
        default_origin=settings.LEDGER_DEFAULT_ORIGIN,
    )


def seal(*, wait: bool = True, seconds: float | None = None, batch: int = BATCH) -> SealingDone:
    """Seal what waits, a batch a transaction, until none waits or `seconds` have passed. Every batch signs a checkpoint.

    With `wait` false it leaves at once where another sealer works. Raises `LedgerDamaged`, `KeysRefused`.
    """
    keys = keyring()
    until = None if seconds is None else time.monotonic() + seconds
    entries = 0
    while True:
        sealed = _seal_once(keys, batch=batch, wait=wait)
        if sealed is None:
            return SealingDone(entries, last_checkpoint(), is_complete=True)
        entries += sealed.entries
        if until is not None and time.monotonic() >= until:
            return SealingDone(entries, sealed.checkpoint, is_complete=False)


def _seal_once(keys: Keyring, *, batch: int, wait: bool) -> Sealed | None:
    with service_transaction("seal"):
        return seal_batch(keys, limit=batch, wait=wait)


@service(refused="ledger.refused")
def record_ledger_beat(*, actor: Actor) -> bool:
    """Append the hourly sign of life: the time, and how many entries came since the last one. False when one is fresh."""
    last = LedgerEntry.objects.filter(action=BEAT).order_by("-id").first()
    moment = now()
    if last is not None and moment - last.recorded_at < BEATS_APART:
        return False
    newest = last_checkpoint()
    sealed, pending = leaf_count(), pending_count()
    beat_index = LedgerLeaf.objects.filter(entry=last).values_list("index", flat=True).first() if last else None
    before = 0 if beat_index is None else beat_index + 1
    audit.record(
        audit.Event(
            action=BEAT,
            actor=actor,
            target=("ledger", newest.note.partition("\n")[0] if newest else "new"),
            new={
                "entries_since_last_beat": sealed + pending - before,
                "last_beat_at": last.recorded_at if last else None,
                "pending": pending,
                "sealed": sealed,
            },
        )
    )
    return True


@service(refused="signing_key.refused")
def rotate_signing_key(*, actor: Actor) -> VerifierKey:
    """Put a new key before the present one in the key file; the next sealing announces it under both. Returns its public part.

    Raises `KeysRefused` where the key comes from the environment: then put the new key on the first line, the old one below.
    """
    if settings.LEDGER_KEY:
        raise KeysRefused(
            "the key comes from WRITEGATE_LEDGER_KEY: put the new key on its first line, the old one on the second, and seal"
        )
    keys = keyring()
    audit.record(
        audit.Event(
            action="signing_key.replaced",
            actor=actor,
            target=("signing_key", f"{keys.origin}+{keys.current.verifier.key_id.hex()}"),
            old={"verifier_key": str(keys.current.verifier)},
        )
    )
    return put_new_key_first(Path(settings.LEDGER_KEY_PATH)).verifier
